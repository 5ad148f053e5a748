/** Every operation as a command, called over HTTP with its first example. New operations are included automatically. */
import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { declaredGroups } from "../../cli/src/declared.ts";
import { exampleArguments } from "../../cli/src/example-command.ts";
import { operations } from "../src/service/operations.ts";
import { CommandLine } from "./command-line.ts";
import { ExampleWorkspace, examplesOf } from "./example-workspace.ts";
import { TestServer } from "./harness.ts";
import { makeFolder } from "./process.ts";

const commands = declaredGroups.flatMap(({ commands }) => commands);

describe("commands of operations", () => {
  const shared = new TestServer({ settings: { PORT: "0" } });
  const addresses = new Map<TestServer, string>();
  const home = makeFolder({ after });
  let commandLine: CommandLine;
  before(async () => {
    await shared.open();
    commandLine = new CommandLine();
  });
  after(async () => {
    await commandLine.close();
    await shared.close();
  });

  async function addressOf(server: TestServer): Promise<string> {
    if (!addresses.has(server)) {
      const { address, port } = await server.service.listen();
      addresses.set(server, `http://${address}:${port}`);
    }
    return addresses.get(server)!;
  }

  async function run(workspace: ExampleWorkspace, ...args: string[]) {
    const environment = {
      HOME: home,
      LATCHKEY_URL: await addressOf(workspace.server),
      LATCHKEY_ROOT_KEY: workspace.as,
    };
    return commandLine.run({ args, environment });
  }

  it("exist for every operation", () => {
    assert.deepEqual(commands.map(({ operation }) => operation).sort(), operations.map(({ name }) => name).sort());
  });

  it("have no flag that the command line uses itself", () => {
    const own = ["json", "yaml", "only", "all", "body", "profile", "url", "timeout", "idempotency-key", "help"];
    own.push("yes", "allow-past", "columns");
    for (const { operation, flags } of commands) {
      const names = flags.map(({ name }) => name);
      assert.deepEqual(names, [...new Set(names)], operation);
      assert.deepEqual(
        names.filter((name) => own.includes(name)),
        [],
        operation,
      );
    }
  });

  for (const declared of commands) {
    const { operation, words, flags } = declared;
    const [example] = examplesOf(operation) as readonly { input: unknown; output: unknown }[];

    it(`${words.join(" ")} by flags prints what the example documents`, async (t) => {
      const workspace = await ExampleWorkspace.before(operation, shared, t as TestContext);
      const args = exampleArguments(flags, workspace.substitute(example!.input));
      const confirmation = declared.deletes ? ["--yes"] : [];
      const { code, stdout, stderr } = await run(workspace, ...words, ...args, "--json", ...confirmation);
      assert.equal(code, 0, stderr);
      assert.equal(stderr, "");
      const data = JSON.parse(stdout);
      const names = [data].flat().flatMap((entry: object) => Object.keys(entry));
      assert.deepEqual(
        names.filter((name) => !declared.members.includes(name)),
        [],
        "--only rejects these members",
      );
      // A list prints as a list, without the object around it.
      workspace.compare(example!.output, declared.listName ? { [declared.listName]: data } : data, operation);
    });
  }

  it("have help with the summary of the operation, each flag and the example", async (t) => {
    const workspace = await ExampleWorkspace.before("apis.createApi", shared, t as TestContext);
    for (const { operation, words, flags } of commands) {
      const { code, stdout } = await run(workspace, ...words, "--help");
      assert.equal(code, 0);
      const { summary } = operations.find(({ name }) => name === operation)!.declaration;
      assert(stdout.includes(`${summary}.`), operation);
      for (const { name } of flags) assert(stdout.includes(`--${name} `), `${operation} --${name}`);
      assert.match(stdout, new RegExp(`Example:\n  latchkey ${words.join(" ")}( --.*)?\n$`));
    }
  });
});
