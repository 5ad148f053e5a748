/** The examples of every operation are true in their languages: what they send is the example of the OpenAPI document. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { stripTypeScriptTypes } from "node:module";
import { describe, it } from "node:test";
import { declaredCommand } from "../../../cli/src/declared.ts";
import { exampleArguments } from "../../../cli/src/example-command.ts";
import { EXAMPLE_URL } from "../../src/reader/example-url.ts";
import { exampleCalls, repository } from "./example-calls.ts";

const calls = exampleCalls();

/** Reads the calls on standard input, and writes what a shell and Python make of them. */
const reader = `
import ast, json, shlex, sys
methods = {}
client = ast.parse(open(sys.argv[1]).read())
def add(name, function):
    given = function.args
    methods.setdefault(name, []).append({a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs]})
lists = {}
for node in ast.walk(client):
    if isinstance(node, ast.FunctionDef):
        add(node.name, node)
    if isinstance(node, ast.ClassDef):
        lists.update({node.name: f for f in node.body if getattr(f, "name", "") == "__call__"})
# Lists are members that can be called.
for node in ast.walk(client):
    if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") in lists:
        add(node.target.attr, lists[node.value.func.id])
def python(code):
    call = next(n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    names = [k.arg for k in call.keywords]
    known = [m for m in methods.get(call.func.attr, []) if set(names) <= m]
    values = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    return {"isKnown": bool(known), "values": values, "positional": [ast.literal_eval(a) for a in call.args]}
print(json.dumps([
    {"curl": shlex.split(c["curl"].replace("\\\\\\n", " ")), "CLI": shlex.split(c["CLI"]), "Python": python(c["Python"])}
    for c in json.load(sys.stdin)
]))
`;

describe("examples", () => {
  it("have one body in the words of a shell and of Python", { skip: lacks("python3") }, () => {
    assert.ok(calls.length > 100, String(calls.length));
    const { stdout, stderr, status } = spawnSync(
      "python3",
      ["-c", reader, repository("clients/python/src/latchkey/_operations.py")],
      { input: JSON.stringify(calls.map(({ examples }) => examples)), encoding: "utf8", maxBuffer: 64 * 1024 * 1024 },
    );
    assert.equal(status, 0, stderr);
    for (const [index, read] of JSON.parse(stdout).entries()) {
      const { name, value } = calls[index]!;
      assert.deepEqual(JSON.parse(read.curl.at(-1)), value, name);
      assert.ok(read.curl.includes(`${EXAMPLE_URL}/v2/${name}`), name);
      const { words, flags } = declaredCommand(name);
      assert.deepEqual(read.CLI, ["latchkey", ...words, ...exampleArguments(flags, value)], name);
      assert.ok(read.Python.isKnown, `${name}: the Python client has no such method or argument`);
      const given = Array.isArray(value) ? read.Python.positional[0] : Object.values(read.Python.values);
      assert.deepEqual(given, Array.isArray(value) ? value : Object.values(value as object), name);
    }
  });

  it("are TypeScript, and send the body", async () => {
    for (const { name, value, examples } of calls) {
      const code = stripTypeScriptTypes(examples.TypeScript, { mode: "strip" });
      const body = code.slice(code.indexOf("new Latchkey"));
      assert.ok(code.startsWith('import { Latchkey } from "@latchkey/sdk";'), name);
      let sent: unknown;
      const method = (_: unknown, method: string) => async (input: unknown) => {
        sent = [method, input];
        return { data: {} };
      };
      class Latchkey {
        constructor() {
          // biome-ignore lint/correctness/noConstructorReturn: every namespace has every method.
          return new Proxy(
            {},
            {
              get: (_, scope: string) => new Proxy({}, { get: (own, verb: string) => method(own, `${scope}.${verb}`) }),
            },
          ) as Latchkey;
        }
      }
      const run = Object.getPrototypeOf(async () => {}).constructor("Latchkey", `const latchkey = ${body}`);
      await run(Latchkey);
      assert.deepEqual(sent, [name, value], name);
    }
  });

  it("are Go", { skip: lacks("gofmt") }, () => {
    const functions = calls.map(({ examples: { Go } }, index) => {
      const [, ...lines] = Go.split("\n");
      return `func example${index}(ctx context.Context) {\n${lines.map((line) => line && `\t${line}`).join("\n")}\n}\n`;
    });
    const { status, stderr } = spawnSync("gofmt", ["-e"], {
      input: `package examples\n\n${functions.join("\n")}`,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    for (const {
      value,
      examples: { Go },
    } of calls) {
      const literal = /\[\]byte\(([`"][\s\S]*[`"])\), &input/.exec(Go)![1]!;
      assert.deepEqual(JSON.parse(literal.startsWith("`") ? literal.slice(1, -1) : JSON.parse(literal)), value);
    }
  });
});

/** Why a test of a program is skipped; false: the program is installed. */
function lacks(program: string): string | false {
  return spawnSync(program, ["--help"]).error !== undefined && `${program} is not installed`;
}
