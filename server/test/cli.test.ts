/** The command line: the real program in separate processes. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, it, type TestContext } from "node:test";
import { promisify } from "node:util";
import { systemClock } from "../../engine/src/clock/system.ts";
import { banner } from "../src/cli/operator/banner.ts";
import { settings } from "../src/platform/config/settings.ts";
import {
  eventually,
  launch,
  makeFolder,
  needProgram,
  Program,
  programFile,
  type Ran,
  ROOT_KEY,
  run,
  runMany,
  type Server,
  start,
} from "./process.ts";
import { freePort } from "./services/free-port.ts";

const OTHER_ROOT_KEY = "another_root_key_of_a_test_7Yh3";

/** Runs commands beside a service, on the data folder of `start`. */
function beside(directory: string, ...commands: (readonly string[])[]) {
  const runs = commands.map((args) => ({ args }));
  return runMany(runs, { directory, settings: { DATA_DIR: join(directory, "data") } });
}

/** What a command prints as JSON. */
function printedBy({ code, stdout, stderr }: Ran) {
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

/** The same, of one command in a separate process. */
async function json(directory: string, ...args: string[]) {
  const ran = await run([...args, "--json"], { directory, settings: { DATA_DIR: join(directory, "data") } });
  return printedBy({ ...ran, code: ran.code!, stdout: ran.stdout, stderr: ran.stderr });
}

describe("help", () => {
  const commands = [
    "",
    "serve",
    "migrate",
    "migrate status",
    "migrate up",
    "workspace",
    "workspace create",
    "workspace list",
    "workspace disable",
    "workspace enable",
    "root-key",
    "root-key create",
    "root-key list",
    "root-key delete",
    "root-key revoke-others",
  ];

  it("exists for every command", async (t) => {
    const runs = commands.map((command) => ({ args: [...command.split(" ").filter(Boolean), "--help"] }));
    const ran = await runMany(runs, { directory: makeFolder(t) });
    for (const [i, { code, stdout, stderr }] of ran.entries()) {
      assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, commands[i]);
      assert.match(stdout, new RegExp(`^Usage: latchkey ${commands[i]}`));
    }
    const [, serve] = ran;
    for (const { name } of settings) {
      const flag = `--${name.toLowerCase().replaceAll("_", "-")}`;
      assert(serve!.stdout.includes(flag), `serve --help does not list ${flag}`);
    }
  });

  it("lists the settings for the service, and elsewhere a line that points at them", async (t) => {
    const directory = makeFolder(t);
    const others = commands.filter((command) =>
      /^(restore|backup|demo|sign-in|migrate|verify-store|vault|root|work)/.test(command),
    );
    assert(others.length > 10);
    for (const { stdout } of await runMany(
      others.map((command) => ({ args: [...command.split(" "), "--help"] })),
      { directory },
    )) {
      if (stdout.includes("\nCommands:\n") && !stdout.includes("--json")) continue;
      assert.match(stdout, /\nThe settings of the service are flags too: see `latchkey settings`\.\n$/);
      assert.doesNotMatch(stdout, /--host|--database-url|Settings:/);
    }
    const [listed, json] = await runMany([{ args: ["settings"] }, { args: ["settings", "--json"] }], { directory });
    const shown = JSON.parse(json!.stdout) as { variable: string; flag: string }[];
    assert.deepEqual(
      shown.map(({ variable }) => variable),
      settings.map(({ name }) => `LATCHKEY_${name}`),
    );
    assert.match(listed!.stdout, /^LATCHKEY_PORT\n {2}--port {2}.*\(3000\)$/m);
    // A setting is still a flag.
    const { stderr } = await run(["migrate", "status", "--port", "http"], { directory });
    assert.match(stderr, /^latchkey: LATCHKEY_PORT=http: give/);
  });

  it("is mentioned after a wrong command or option", async (t) => {
    const directory = makeFolder(t);
    const { code, stdout, stderr } = await run(["srve"], { directory });
    assert.deepEqual({ code, stdout }, { code: 2, stdout: "" });
    assert.match(
      stderr,
      /^latchkey: There is no command srve\. Did you mean `latchkey serve`\? All commands: latchkey --help\n$/,
    );
    const runs = [
      ["serve", "--prot", "1"],
      ["workspace", "create"],
      ["workspace", "disable"],
    ].map((args) => ({ args }));
    for (const ran of await runMany(runs, { directory })) {
      assert.deepEqual({ code: ran.code, stdout: ran.stdout }, { code: 2, stdout: "" });
      assert.match(ran.stderr, /^latchkey: .*\(add --help for the commands and options\)\n$/s);
    }
  });
});

describe("the command line without arguments", () => {
  it("starts the service", async (t) => {
    const settings = { PORT: "0", ROOT_KEY };
    const program = new Program([programFile()], { directory: makeFolder(t), settings });
    await program.logged("latchkey is listening");
  });
});

describe("commands beside a service", () => {
  it("say that a link to sign in leads to no service", async (t) => {
    const directory = makeFolder(t);
    const server = await start({ directory });
    const { port } = new URL(server.address);
    const link = (...args: string[]) => beside(directory, ["sign-in-link", ...args]);
    const [[right], [wrong]] = [await link("--port", port), await link("--port", String(await freePort()))];
    assert.match(right!.stdout, new RegExp(`^http://127\\.0\\.0\\.1:${port}/#link=\\S+\nIt signs in as .*\n$`));
    assert.match(
      wrong!.stdout,
      /^http\S+\nIt signs in as .*\nNo service answers at http:\S+\. .* its --host and --port\.\n$/,
    );
  });

  it("say so when there is no database yet", async (t) => {
    const [ran] = await beside(makeFolder(t), ["workspace", "list"]);
    assert.deepEqual({ code: ran!.code, stdout: ran!.stdout }, { code: 1, stdout: "" });
    assert.match(ran!.stderr, /^latchkey: There is no database at \/.*\/data\/latchkey\.db\. Run this command .*\n$/);
  });

  it("migrate a database, and show its migrations", async (t) => {
    const directory = makeFolder(t);
    const [missing] = await beside(directory, ["migrate", "status"]);
    assert.match(missing!.stderr, /^latchkey: There is no database at /);
    assert(!existsSync(join(directory, "data")), "a command created something in the wrong folder");
    mkdirSync(join(directory, "data"));
    writeFileSync(join(directory, "data", "latchkey.db"), "");
    const [waiting, waitingTable, up, again, done] = await beside(
      directory,
      ["migrate", "status", "--json"],
      ["migrate", "status"],
      ["migrate", "up", "--json"],
      ["migrate", "up"],
      ["migrate", "status"],
    );
    assert.deepEqual([waiting!.code, done!.code], [3, 0]);
    const { status, schemas } = JSON.parse(waiting!.stdout);
    const { database, program, pending, steps } = schemas.main;
    assert.deepEqual([status, database, steps.length], ["pending", 0, pending.length]);
    assert(program >= 15);
    assert.match(
      waitingTable!.stdout,
      /^main +none +\d+ +any$.*^001-initial +pending$.*^Pending in main: 001-initial/ms,
    );
    assert.deepEqual(printedBy(up!).executed, pending);
    assert.match(again!.stdout, /^Nothing to do/);
    assert.match(done!.stdout, /^001-initial +ran at \d{4}-.*^Nothing is pending\.$/ms);
    assert(done!.stdout.includes(`main    ${program}        ${program}`), done!.stdout);
  });

  it("create files that only their owner can read, also in a folder that everybody can read", async (t) => {
    const directory = makeFolder(t);
    for (const folder of ["made", "restored"]) mkdirSync(join(directory, folder), { mode: 0o755 });
    const under = ["sh", "-c", 'umask 022 && exec "$@"', "sh"];
    for (const args of [
      ["migrate", "up", "--data-dir", "made"],
      ["backup", "copy", "--data-dir", "made"],
      ["restore", "copy", "--data-dir", "restored"],
    ]) {
      const { code, stderr } = await run(args, { directory, under });
      assert.equal(code, 0, stderr);
    }
    const files = ["copy", ...["made", "restored"].flatMap((folder) => globSync(`${folder}/*`, { cwd: directory }))];
    assert(files.includes("restored/latchkey.db"));
    for (const file of files) assert.equal(statSync(join(directory, file)).mode & 0o077, 0, file);
  });

  it("report that a newer program created the database", async (t) => {
    const directory = makeFolder(t);
    await beside(directory, ["migrate", "up"]);
    const database = new DatabaseSync(join(directory, "data", "latchkey.db"));
    database.exec("insert into kysely_migration (name, timestamp) values ('999-later', '2030-01-01T00:00:00.000Z')");
    database.close();
    const commands = [["serve"], ["migrate", "up"], ["workspace", "list"]];
    for (const [i, { code, stdout, stderr }] of (await beside(directory, ...commands)).entries()) {
      assert.deepEqual({ code, stdout }, { code: 1, stdout: "" }, commands[i]!.join(" "));
      assert.match(stderr, /^latchkey: The database has the migration "999-later" of a newer Latchkey and needs .*\n$/);
    }
    const [status, asJson] = await beside(directory, ["migrate", "status"], ["migrate", "status", "--json"]);
    assert.equal(status!.code, 4);
    assert.match(status!.stdout, /^999-later +ran at 2030.*^This release is too old for the database/ms);
    const { status: state, schemas } = JSON.parse(asJson!.stdout);
    assert.deepEqual([asJson!.code, state, schemas.main.database, schemas.main.needs], [4, "too old", 999, 999]);
  });

  it("take effect in the running service within a second", async (t) => {
    const directory = makeFolder(t);
    const server = await start({ directory });
    const { apiId } = await server.ok("apis.createApi", { name: "mine" });
    const { key } = await server.ok("keys.createKey", { apiId });
    const code = async () => (await server.ok("keys.verifyKey", { key }, null)).code;
    assert.equal(await code(), "VALID");

    const [own] = await json(directory, "workspace", "list");
    assert.deepEqual(Object.keys(own).sort(), ["createdAt", "default", "enabled", "id", "name"]);
    assert.deepEqual(await json(directory, "workspace", "disable", own.id), { workspaceId: own.id, enabled: false });
    await withinASecond(async () => (await code()) === "FORBIDDEN");
    assert.equal((await server.call("apis.createApi", { name: "another" })).status, 403);
    const [enabled, created, workspace] = await beside(
      directory,
      ["workspace", "enable", own.id],
      ["root-key", "create", "--name", "ci", "--permissions", "apis.*.create_api", "--json"],
      ["workspace", "create", "--name", "theirs", "--json"],
    );
    assert.equal(enabled!.stdout, `Workspace ${own.id} is enabled.\n`);
    await withinASecond(async () => (await code()) === "VALID");

    const made = printedBy(created!);
    assert.equal((await server.call("apis.createApi", { name: "by ci" }, made.key)).status, 200);
    assert.equal((await server.call("keys.createKey", { apiId }, made.key)).status, 404);
    const theirs = printedBy(workspace!);
    const { apiId: theirApi } = await server.ok("apis.createApi", { name: "theirs" }, theirs.key);
    assert.equal((await server.call("apis.getApi", { apiId: theirApi })).status, 404);

    const deleted = await json(directory, "root-key", "delete", made.rootKeyId, "--yes");
    assert.deepEqual(deleted, { rootKeyId: made.rootKeyId, livingDescendants: 0 });
    await withinASecond(async () => (await server.call("apis.createApi", { name: "no" }, made.key)).status === 401);
  });

  it("list, and reject wrong arguments", async (t) => {
    const directory = makeFolder(t);
    const server = await start({ directory });
    await server.kill("SIGTERM");
    const [created, workspace] = await beside(
      directory,
      ["root-key", "create", "--name", "ci", "--permissions", "apis.*.create_api, apis.*.read_api", "--json"],
      ["workspace", "create", "--name", "theirs", "--json"],
    );
    const [made, theirs] = [printedBy(created!), printedBy(workspace!)];
    const [listed, table, workspaces, ...rejected] = await beside(
      directory,
      ["root-key", "list", "--json"],
      ["root-key", "list"],
      ["workspace", "list"],
      ["workspace", "disable", "ws_none"],
      ["root-key", "delete", theirs.rootKeyId, "--workspace", theirs.workspaceId, "--yes"],
      ["root-key", "create", "--name", "a", "--permissions", "no permission"],
    );
    const shown = printedBy(listed!).find(({ id }: { id: string }) => id === made.rootKeyId);
    assert.deepEqual(shown.permissions, ["apis.*.create_api", "apis.*.read_api"]);
    for (const { stdout } of [listed!, table!]) {
      assert(stdout.includes(made.rootKeyId) && !stdout.includes(made.key) && !stdout.includes(ROOT_KEY));
    }
    assert.match(table!.stdout, /^id +name +start +permissions +created\n/);
    assert.match(
      workspaces!.stdout,
      /^id +name +state +created\n.* default \(default\) +enabled .*\n.* theirs +enabled /,
    );
    const rejections = [
      /^latchkey: There is no workspace ws_none\.\n$/,
      /^latchkey: rk_\w+ is the last administrator of workspace ws_\w+\. Create another one first\.\n$/,
      /^latchkey: "no permission" is no permission\./,
    ];
    for (const [i, { code, stderr }] of rejected.entries()) {
      assert.equal(code, 1);
      assert.match(stderr, rejections[i]!);
    }
  });
});

describe("wrong settings", () => {
  const wrong: [setting: string, value: string, message: RegExp][] = [
    ["PORT", "http", /^latchkey: LATCHKEY_PORT=http: give .*0 to 65535/],
    ["PORT", "65536", /^latchkey: LATCHKEY_PORT=65536: give /],
    [
      "DATABASE_URL",
      "mysql://me:pass-word-1@host/db",
      /^latchkey: LATCHKEY_DATABASE_URL: give sqlite:<file> or postgres:/,
    ],
    ["ROOT_KEY", "too-short-secret", /^latchkey: LATCHKEY_ROOT_KEY: give 24 to 512 visible ASCII characters/],
    ["ROOT_KEY", "with blanks in it, though long enough", /^latchkey: LATCHKEY_ROOT_KEY: give 24 to 512/],
    ["VERIFY_AUTH", "sometimes", /^latchkey: LATCHKEY_VERIFY_AUTH=sometimes: give optional or required/],
    ["STALE_MAX", "soon", /^latchkey: LATCHKEY_STALE_MAX=soon: give a duration such as .* from 1s to 12h/],
    [
      "PUBLIC_URL",
      "keys.example.com",
      /^latchkey: LATCHKEY_PUBLIC_URL=keys\.example\.com: give an address such as https:/,
    ],
    ["TRUSTED_PROXIES", "10.0.0.0/33", /^latchkey: LATCHKEY_TRUSTED_PROXIES=10\.0\.0\.0\/33: give addresses or CIDRs/],
    ["LOG_LEVEL", "loud", /^latchkey: LATCHKEY_LOG_LEVEL=loud: give trace, debug, .* or silent/],
    ["DIRECTORY_BYTES", "1", /^latchkey: LATCHKEY_DIRECTORY_BYTES=1: give a size such as 64m or 1g, from 1m to 64g/],
    [
      "ROOTKEY",
      "a secret in a misspelt name",
      /^latchkey: LATCHKEY_ROOTKEY: there is no such setting\. Did you mean LATCHKEY_ROOT_KEY\?/,
    ],
    [
      "ROOT_KEY_FILE",
      "nowhere/root-key",
      /^latchkey: LATCHKEY_ROOT_KEY_FILE=nowhere\/root-key: the file cannot be read \(ENOENT\)/,
    ],
  ];

  it("stop the start with the name, the value unless it is secret, and the remedy", async (t) => {
    const directory = makeFolder(t);
    const runs = wrong.map(([name, value]) => ({ args: ["serve"], settings: { [name]: value } }));
    for (const [i, { code, stdout, stderr }] of (await runMany(runs, { directory })).entries()) {
      const [name, value, message] = wrong[i]!;
      assert.deepEqual({ code, stdout }, { code: 1, stdout: "" }, `${name}=${value} ${stderr}`);
      assert.match(stderr, message);
      assert.match(stderr, /^.*\n$/, "one line");
      if (["ROOT_KEY", "DATABASE_URL", "ROOTKEY"].includes(name)) assert(!stderr.includes(value), stderr);
    }
    const { code, stderr } = await run(["serve", "--port", "http"], { directory });
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: .*PORT=http: give /);
  });

  it("are flags of the program without a command too", async (t) => {
    const flags = ["--port", "0x"];
    const [bare, serve] = await runMany([{ args: flags }, { args: ["serve", ...flags] }], { directory: makeFolder(t) });
    assert.equal(bare!.code, 1);
    assert.match(bare!.stderr, /LATCHKEY_PORT/);
    assert.deepEqual(bare, serve);
  });

  it("such as places and servers that cannot be used stop the start in one line that names the setting", async (t) => {
    const directory = makeFolder(t);
    writeFileSync(join(directory, "file"), "");
    const unusable: [settings: Record<string, string>, message: RegExp][] = [
      [{ DATA_DIR: join(directory, "file") }, /^latchkey: LATCHKEY_DATA_DIR=.*: there is a file in the place/],
      [
        { DATA_DIR: join(directory, "file", "deeper") },
        /^latchkey: LATCHKEY_DATA_DIR=.*: a part of this path is a file/,
      ],
      [{ DATA_DIR: "/proc/latchkey" }, /^latchkey: LATCHKEY_DATA_DIR=\/proc\/latchkey: /],
      [{ DATABASE_URL: "postgres://latchkey.invalid/db" }, /^latchkey: LATCHKEY_DATABASE_URL: .*latchkey\.invalid/],
      [{ REDIS_URL: "redis://latchkey.invalid" }, /^latchkey: LATCHKEY_REDIS_URL: .*latchkey\.invalid/],
      [
        { CLICKHOUSE_URL: "http://127.0.0.1:1/db" },
        /^latchkey: ClickHouse at LATCHKEY_CLICKHOUSE_URL cannot be reached/,
      ],
      [{ HOST: "192.0.2.1" }, /^latchkey: LATCHKEY_HOST=192\.0\.2\.1: this machine does not have that address/],
    ];
    for (const [settings, message] of unusable) {
      const program = await run(["serve", "--port", "0"], {
        directory,
        settings: { DATA_DIR: join(directory, "usable"), ROOT_KEY, ...settings },
      });
      assert.equal(program.code, 1, JSON.stringify(settings));
      assert.match(program.stderr, message);
      assert.match(program.stderr, /^[^\n]*\n$/, "one line");
    }
  });

  it("that contradict one another are rejected", async (t) => {
    const directory = makeFolder(t);
    const settings = { ROOT_KEY, ROOT_KEY_FILE: join(directory, "file") };
    const { code, stderr } = await run(["serve", "--port", "0"], { directory, settings });
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: LATCHKEY_ROOT_KEY_FILE: give either this or LATCHKEY_ROOT_KEY, not both\n$/);

    const threads = await run(["serve", "--port", "0", "--workers", "2", "--fast-lane", "off"], { directory });
    assert.equal(threads.code, 1);
    assert.match(threads.stderr, /^latchkey: LATCHKEY_WORKERS=2: .* give 1, or LATCHKEY_FAST_LANE=on\n$/);
  });

  it("such as a port in use stop the start in one line", async (t) => {
    const directory = makeFolder(t);
    const server = await start({ directory });
    const { port } = new URL(server.address);
    const other = launch({ directory: makeFolder(t), args: ["--port", port] });
    assert.equal((await other.ended).code, 1);
    assert.match(other.stderr, /^latchkey: LATCHKEY_PORT=\d+: another process listens on .*EADDRINUSE\)\n$/);

    const directory2 = makeFolder(t);
    const first = launch({ directory: directory2, rootKey: null, args: ["--port", port] });
    assert.equal((await first.ended).code, 1);
    const file = join(directory2, "data", "root-key");
    assert(!first.output.includes(readFileSync(file, "utf8").trim()), "the root key is in its file and printed too");
  });
});

describe("the administrator's root key", () => {
  it("comes from a file, and a new one replaces it", async (t) => {
    const directory = makeFolder(t);
    const file = join(directory, "given");
    const isAccepted = async (server: Server, rootKey: string) =>
      (await server.call("apis.createApi", { name: "a" }, rootKey)).status === 200;
    // The flag takes precedence over the environment.
    const serve = () => start({ directory, args: ["--root-key-file", file] });

    writeFileSync(file, `${ROOT_KEY}\n`);
    const first = await serve();
    assert(await isAccepted(first, ROOT_KEY));
    assert.deepEqual(await first.kill("SIGTERM"), { code: 0, signal: null });

    writeFileSync(file, OTHER_ROOT_KEY);
    const second = await serve();
    assert(await isAccepted(second, OTHER_ROOT_KEY));
    assert(!(await isAccepted(second, ROOT_KEY)), "the former root key still works");
    await second.kill("SIGTERM");

    const third = await start({ directory });
    assert(await isAccepted(third, ROOT_KEY));
    assert(!(await isAccepted(third, OTHER_ROOT_KEY)));
  });
});

describe("root-key revoke-others", () => {
  it("keeps LATCHKEY_ROOT_KEY, and revokes the administrator that an earlier start without it created", async (t) => {
    const directory = makeFolder(t);
    const first = await start({ directory, rootKey: null });
    const made = readFileSync(join(directory, "data", "root-key"), "utf8").trim();
    const ci = await first.ok("rootKeys.createRootKey", { name: "ci", permissions: ["apis.*.create_api"] }, made);
    await first.kill("SIGTERM");

    const server = await start({ directory });
    const status = async (rootKey: string) => (await server.call("apis.createApi", { name: "a" }, rootKey)).status;
    const line = await server.logged(
      "other administrators' root keys work beside LATCHKEY_ROOT_KEY: list them with `latchkey root-key list`, " +
        "revoke them with `latchkey root-key revoke-others`",
    );
    assert.equal(line.count, 1);
    assert.equal(await status(made), 200);

    const { kept, revoked } = await json(directory, "root-key", "revoke-others", "--yes");
    assert.equal(revoked.length, 1);
    await withinASecond(async () => (await status(made)) === 401);
    assert.equal(await status(ROOT_KEY), 200);
    assert.equal(await status(ci.key), 200);

    const [again, unknown, powerless] = await beside(
      directory,
      ["root-key", "revoke-others", "--yes"],
      ["root-key", "revoke-others", "--keep", "rk_none", "--yes"],
      ["root-key", "revoke-others", "--keep", ci.rootKeyId, "--yes"],
    );
    assert.equal(again!.stdout, `${kept} is the only administrator's root key; nothing was revoked.\n`);
    assert.match(unknown!.stderr, /^latchkey: There is no root key rk_none in workspace/);
    assert.match(powerless!.stderr, /is no administrator that is enabled and without an expiry/);
    assert.equal(await status(ROOT_KEY), 200);
    await server.kill("SIGTERM");

    const third = await start({ directory });
    assert(!third.log.some(({ msg }) => String(msg).startsWith("other administrators")));
  });
});

describe("a service that gets a stop signal", () => {
  it("is no longer ready, finishes open requests, and ends with 0", async (t) => {
    const directory = makeFolder(t);
    const server = await start({ directory });
    const { apiId } = await server.ok("apis.createApi", { name: "mine" });
    const ready = await OpenRequest.begin(server, "GET /health/ready HTTP/1.1\r\nHost: latchkey\r\n");
    const body = JSON.stringify({ apiId });
    const create = await OpenRequest.begin(server, createKeyUpTo(body.length) + body.slice(0, 5));

    server.signal("SIGTERM");
    await server.logged("stopping: not ready for new requests, open requests are completed");
    assert.match(await ready.finish("\r\n"), /^HTTP\/1\.1 503 .*\{"status":"shutting down"\}$/s);
    await assert.rejects(fetch(`${server.address}/v2/liveness`), "a new connection is taken");
    const answer = await create.finish(body.slice(5));
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    assert.equal(server.log.at(-1)?.msg, "stopped");
    assert.equal(server.stderr, "");

    const { key } = JSON.parse(answer.slice(answer.indexOf("{"))).data;
    const next = await start({ directory });
    assert.equal((await next.ok("keys.verifyKey", { key })).code, "VALID");
  });

  it("does not wait for a connection without a request", async (t) => {
    const server = await start({ directory: makeFolder(t) });
    const silent = await OpenRequest.begin(server, "");
    assert.deepEqual(await server.kill("SIGTERM"), { code: 0, signal: null });
    assert.equal(await silent.finish(""), "");
  });

  it("ends at once at a second signal, unless both come in quick succession", async (t) => {
    const server = await start({ directory: makeFolder(t) });
    await OpenRequest.begin(server, `${createKeyUpTo(100)}{`);
    server.signal("SIGTERM");
    await server.logged("stopping: not ready for new requests, open requests are completed");
    const signalledAt = systemClock.monotonic();
    await eventually("the end", () => {
      server.signal("SIGTERM");
      return server.hasEnded;
    });
    assert.deepEqual(await server.ended, { code: 143, signal: null });
    // Measured from the log line, which comes a little after the signal.
    assert(systemClock.monotonic() - signalledAt > 400, "two signals in quick succession count as one");
  });
});

describe("the banner", () => {
  let shell: (script: string, environment?: Record<string, string>) => Promise<string>;
  before(async () => {
    for (const program of ["curl", "sed"]) await needProgram(program);
    shell = async (script, environment = {}) =>
      (await promisify(execFile)("sh", ["-c", script], { env: { PATH: process.env.PATH, ...environment } })).stdout;
  });

  const threeLines = (text: string) => {
    const lines = text.split("\n").filter((line) => line.includes("curl"));
    assert.equal(lines.length, 3);
    return lines.join("\n");
  };
  const verified = /^api_\w+\nprod_\w+\n\{.*"valid":true,"code":"VALID",.*\}\n$/;

  it("has three lines that work as printed, when the root key was given", async (t) => {
    const server = await start({ directory: makeFolder(t) });
    await printed(server);
    assert(!server.output.includes(ROOT_KEY));
    assert.match(await shell(threeLines(server.stdout), { LATCHKEY_ROOT_KEY: ROOT_KEY }), verified);
  });

  it("has three lines that work as printed, when the first start created the root key", async (t) => {
    const { server, file, directory } = await firstStart(t, "it's a folder");
    const rootKey = readFileSync(file, "utf8").trim();
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert(!server.output.includes(rootKey), "the root key is in what a log keeps");
    assert.match(await shell(threeLines(server.stdout)), verified);

    // On a terminal, the banner shows the root key itself.
    const issued = { rootKeyId: "rk_1", workspaceId: "ws_1", key: rootKey };
    const shown = banner({ url: server.address, issued, rootKeyFile: undefined, given: false, program: "node x" });
    assert.match(await shell(threeLines(shown)), verified);

    await server.kill("SIGTERM");
    const again = await start({ directory, ...unset(directory, "it's a folder") });
    await printed(again);
    assert.equal(readFileSync(file, "utf8").trim(), rootKey);
    assert.match(await shell(threeLines(again.stdout)), verified);

    // The operator moved the file to another place.
    await again.kill("SIGTERM");
    rmSync(file);
    const third = await start({ directory, ...unset(directory, "it's a folder") });
    await eventually("the banner", () => /root-key create.*\n/.test(third.stdout));
    assert(!third.stdout.includes("curl"), "lines without a root key cannot work");
    const [printedCommand] = /node \S+ root-key create .*/.exec(third.stdout)!;
    const made = await shell(`cd '${directory}' && ${printedCommand}`, {
      LATCHKEY_DATA_DIR: join(directory, "it's a folder"),
    });
    assert.match(made, /^Root key rk_\w+, shown this once:\n/);
  });

  it("is not printed with --json", async (t) => {
    const server = await start({ directory: makeFolder(t), args: ["--json"] });
    await server.kill("SIGTERM");
    for (const line of server.stdout.trimEnd().split("\n")) assert(JSON.parse(line).msg, line);
  });
});

/** A service without a root key in its settings. */
async function firstStart(t: TestContext, folder: string) {
  const directory = makeFolder(t);
  const server = await start({ directory, ...unset(directory, folder) });
  await printed(server);
  return { server, directory, file: join(directory, folder, "root-key") };
}

function unset(directory: string, folder: string) {
  return { rootKey: null, settings: { DATA_DIR: join(directory, folder) } };
}

async function printed(server: Server): Promise<void> {
  await eventually("the banner", () => /keys\.verifyKey .*\n/.test(server.stdout));
}

/** A request of which a part is sent. */
class OpenRequest {
  readonly #socket: Socket;
  readonly #answered: Promise<string>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    let answer = "";
    socket.setEncoding("utf8").on("data", (text) => {
      answer += text;
    });
    this.#answered = new Promise((resolve) => socket.on("error", () => {}).on("close", () => resolve(answer)));
  }

  /** A request of which only a part is sent. */
  static async begin(server: Server, part: string): Promise<OpenRequest> {
    const { hostname, port } = new URL(server.address);
    const socket = connect(Number(port), hostname);
    const request = new OpenRequest(socket);
    await new Promise<void>((resolve) => socket.once("connect", resolve));
    if (part) await new Promise<void>((resolve) => socket.write(part, () => resolve()));
    await fetch(`${server.address}/v2/liveness`).then((response) => response.text());
    return request;
  }

  /** Sends the rest. Returns everything that was answered until the connection closed. */
  finish(rest: string): Promise<string> {
    this.#socket.write(rest);
    return this.#answered;
  }
}

function createKeyUpTo(bodyBytes: number): string {
  const head = ["POST /v2/keys.createKey HTTP/1.1", "Host: latchkey", `Authorization: Bearer ${ROOT_KEY}`];
  head.push("Content-Type: application/json", `Content-Length: ${bodyBytes}`);
  return `${head.join("\r\n")}\r\n\r\n`;
}

/** Waits until a check succeeds. One that starts after a second, and an allowance for the machine, must succeed. */
async function withinASecond(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = systemClock.monotonic() + 5_000;
  await eventually("a change to take effect", async () => {
    const late = systemClock.monotonic() > deadline;
    const so = await isTrue();
    assert(so || !late, "not within a second");
    return so;
  });
}
