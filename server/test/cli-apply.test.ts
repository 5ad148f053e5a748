/** `latchkey apply`, `diff` and `export`: what a service has, as a document. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { parse, stringify } from "yaml";
import { CommandLine } from "./command-line.ts";
import { makeFolder, ROOT_KEY, type Server, start } from "./process.ts";

const document = {
  permissions: [{ slug: "documents.read", name: "Read documents", description: "Reads." }, { slug: "documents.write" }],
  roles: [
    { name: "editor", description: "Reads and writes.", permissions: ["documents.read", "documents.write"] },
    { name: "guest" },
  ],
  namespaces: [
    {
      name: "emails",
      overrides: [
        { identifier: "z_*", limit: 100, duration: 60_000 },
        { identifier: "a_*", limit: 0, duration: 60_000 },
      ],
    },
    { name: "letters" },
  ],
  apis: [
    { name: "Documents", prefix: "doc", byteLength: 32, deleteProtection: true, allowedIps: ["198.51.100.0/24"] },
    { name: "Twice" },
    { name: "Twice", prefix: "two" },
  ],
  rootKeys: [
    {
      name: "sign-up",
      permissions: ["apis.{Documents}.create_key", "apis.{Twice#2}.read_key", "ratelimits.{emails}.limit"],
    },
    { name: "old", permissions: ["apis.*.read_key"], enabled: false, expires: "2030-01-01T00:00:00.000Z" },
  ],
};

describe("documents", () => {
  const directory = makeFolder({ after });
  let server: Server;
  let commandLine: CommandLine;
  before(async () => {
    commandLine = new CommandLine();
    server = await start({ directory });
  });
  after(() => commandLine.close());

  /** An empty workspace, and commands on it. */
  async function workspace(t: TestContext) {
    const { key } = await server.ok("workspaces.createWorkspace", { name: "documents" }, ROOT_KEY);
    const directory = makeFolder(t);
    const environment = { HOME: directory, LATCHKEY_URL: server.address, LATCHKEY_ROOT_KEY: key as string };
    const run = (...args: string[]) => commandLine.run({ args, environment, directory });
    const withDocument = async (command: string, content: unknown, ...args: string[]) => {
      writeFileSync(join(directory, "latchkey.yaml"), typeof content === "string" ? content : stringify(content));
      return run(command, "-f", "latchkey.yaml", ...args);
    };
    return {
      key: key as string,
      run,
      apply: (content: unknown, ...args: string[]) => withDocument("apply", content, ...args),
      diff: (content: unknown, ...args: string[]) => withDocument("diff", content, ...args),
      ok: (operation: string, body: object) => server.ok(operation, body, key),
    };
  }

  it("are applied, and a second time changes nothing", async (t) => {
    const { apply, diff, ok } = await workspace(t);
    const planned = await diff(document);
    assert.equal(planned.code, 1, planned.stderr);
    assert.match(planned.stdout, /^\+ permission documents\.read {2}name: Read documents, description: Reads\.\n/);
    assert.match(planned.stdout, /\n13 to create, 0 to update, 0 to delete\.\n$/);
    assert.deepEqual(await ok("apis.listApis", {}), [], "diff has changed something");

    const first = await apply(document);
    assert.equal(first.code, 0, first.stderr);
    assert.equal(first.stdout.match(/shown this once:\n {2}lk_root_\w+\n/g)?.length, 2);
    const second = await apply(document);
    assert.equal(second.code, 0, second.stderr);
    assert.match(second.stdout, /^( {2}root key .*only in the service; --prune deletes it\)\n)?Nothing to change\.\n$/);
    assert.equal((await diff(document)).code, 0);
  });

  it("that are exported and applied to an empty service give the same export", async (t) => {
    const [source, target] = [await workspace(t), await workspace(t)];
    assert.equal((await source.apply(document)).code, 0);
    const exported = (await source.run("export")).stdout;
    const { rootKeys, ...rest } = parse(exported);
    const { rootKeys: _, ...described } = document;
    assert.deepEqual(rest, {
      ...described,
      permissions: [document.permissions[0], { slug: "documents.write", name: "documents.write" }],
    });
    assert.deepEqual(rootKeys.slice(1), document.rootKeys);
    assert(!/lk_root|api_|rlns_/.test(exported), "the export has a secret or an id");

    const applied = await target.apply(exported);
    assert.equal(applied.code, 0, applied.stderr);
    assert.equal((await target.run("export")).stdout, exported);
    assert.deepEqual(JSON.parse((await target.run("export", "--json")).stdout), parse(exported));
    const { apis } = parse((await target.run("export", "--sections", "apis")).stdout);
    assert.deepEqual(apis, document.apis);
  });

  it("change what differs, and leave what has no section", async (t) => {
    const { apply, run, ok } = await workspace(t);
    await apply(document);
    const changed = {
      permissions: [{ slug: "Documents.Read", name: "Read" }, { slug: "documents.write" }],
      roles: [{ name: "editor", permissions: ["documents.read", "documents.share"] }, { name: "guest" }],
      apis: [{ name: "Documents", prefix: "docs" }, { name: "Twice" }, { name: "Twice", prefix: "two" }],
    };
    const { code, stdout, stderr } = await apply(changed);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^~ permission Documents\.Read {2}slug: documents\.read → Documents\.Read, name: Read documents → Read, description: Reads\. → none\n/,
    );
    assert.match(
      stdout,
      /\n~ role editor {2}description: Reads and writes\. → none, permissions: \+documents\.share -documents\.write\n/,
    );
    assert.match(
      stdout,
      /\n~ api Documents {2}prefix: doc → docs, byteLength: 32 → none, deleteProtection: true → false, allowedIps: \["198\.51\.100\.0\/24"\] → none\n/,
    );
    const roles = await ok("permissions.listRoles", {});
    assert.deepEqual(
      roles[0].permissions.map(({ slug }: { slug: string }) => slug),
      ["Documents.Read", "documents.share"],
    );
    const { namespaces } = parse((await run("export")).stdout);
    assert.deepEqual(namespaces, document.namespaces);
    assert.match((await apply(changed)).stdout, /(^|\n)Nothing to change\.\n$/);
  });

  it("delete what they do not have only with --prune and a confirmation", async (t) => {
    const { apply, diff, run, ok, key } = await workspace(t);
    await apply({ ...document, apis: document.apis.map((api) => ({ ...api, deleteProtection: false })) });
    const empty = { permissions: [], roles: [], namespaces: [{ name: "emails" }], apis: [], rootKeys: [] };
    const kept = await apply(empty);
    assert.equal(kept.code, 0);
    assert.match(
      kept.stdout,
      / {2}api Documents {2}with all its keys {2}\(only in the service; --prune deletes it\)\n/,
    );
    assert.match(kept.stdout, /\nNothing to change\.\n$/);
    assert.equal((await diff(empty)).code, 0);
    assert.equal((await diff(empty, "--prune")).code, 1);

    const asked = await apply(empty, "--prune");
    assert.equal(asked.code, 2);
    assert.match(asked.stderr, /^latchkey: \d+ deletions need a confirmation: add --yes/);
    assert.equal((await ok("apis.listApis", {})).length, 3);

    const pruned = await apply(empty, "--prune", "--yes");
    assert.equal(pruned.code, 0, pruned.stderr);
    assert.match(pruned.stdout, /\n- override emails z_\*\n/);
    const { rootKeys, ...rest } = parse((await run("export")).stdout);
    assert.deepEqual(rest, { permissions: [], roles: [], namespaces: [{ name: "emails" }], apis: [] });
    assert.equal(rootKeys.length, 1, "the root key of the caller is kept");
    assert.equal((await server.call("apis.listApis", {}, key)).status, 200);
  });

  it("that are not valid change nothing, and name each mistake", async (t) => {
    const { apply, ok } = await workspace(t);
    const wrong: [content: string, message: RegExp][] = [
      ["apis: [", /^latchkey: latchkey\.yaml is not YAML\.\n {2}.* at line 1/],
      ["apis:\n  - nmae: a\n", /^latchkey: latchkey\.yaml is not valid\.\n(.*\n)*.*'name'/],
      ["apis:\n  - name: a\n    byteLength: 1\n", /apis\[0\]\.byteLength must be at least 16/],
      ["apis:\n  - name: a\nkeys: []\n", /'keys' that is not known/],
      ["roles:\n  - name: a\n  - name: A\n", /names a a second time/],
      [
        `a: &a [${"x,".repeat(50)}]\nb: &b [${"*a,".repeat(50)}]\nc: [${"*b,".repeat(50)}]\n`,
        /cannot be read: Excessive alias count/,
      ],
    ];
    for (const [content, message] of wrong) {
      const { code, stderr } = await apply(content);
      assert.equal(code, 1, content);
      assert.match(stderr, message);
    }
    assert.deepEqual(await ok("apis.listApis", {}), []);
  });

  it("stop at a change that the service rejects, and continue with the next apply", async (t) => {
    const { apply } = await workspace(t);
    const broken = { ...document, rootKeys: [{ name: "typo", permissions: ["apis.{Documents}.make_key"] }] };
    const { code, stderr } = await apply(broken);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^latchkey: create root key typo: Bad Request \(400\): .*\n(.*\n)* {2}The changes above it are made\. Run apply again to continue\.\n$/,
    );
    const unknown = await apply({ rootKeys: [{ name: "a", permissions: ["apis.{Nothing}.read_key"] }] });
    assert.match(
      unknown.stderr,
      /create root key a: The permission apis\.\{Nothing\}\.read_key names something that does not exist\./,
    );
    assert.match((await apply(document)).stdout, /\n2 to create, 0 to update, 0 to delete\.\n/);
  });
});
