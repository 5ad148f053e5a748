/** Commands that call a service: logins, profiles, decisions in words, completion, and services that are hostile. */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { promisify } from "node:util";
import { declaredCommands } from "../../cli/src/declared.ts";
import { CommandLine } from "./command-line.ts";
import { TestServer } from "./harness.ts";
import { makeFolder, needProgram } from "./process.ts";

let commandLine: CommandLine;
before(() => {
  commandLine = new CommandLine();
});
after(() => commandLine.close());

describe("commands beside a service", () => {
  const server = new TestServer({ settings: { PORT: "0" } });
  let url: string;
  before(async () => {
    await server.open();
    const { address, port } = await server.service.listen();
    url = `http://${address}:${port}`;
  });
  after(() => server.close());

  /** A user with a home folder of its own. */
  function user(t: TestContext, environment: Record<string, string> = {}) {
    const home = makeFolder(t);
    const run = (...args: string[]) =>
      commandLine.run({ args, environment: { HOME: home, ...environment }, directory: home });
    return { home, file: join(home, ".config", "latchkey", "profiles.json"), run };
  }

  it("login checks the root key, and keeps it in a file of mode 0600", async (t) => {
    const { run, file } = user(t);
    const wrong = await run("login", url, "--root-key", "lk_root_of_nobody");
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^latchkey: Unauthorized \(401\): .*\n {2}About this error: .*\n {2}Request req_\w+\n$/);
    assert.throws(() => statSync(file), "a root key that does not work is saved");

    const login = await run("login", `${url}/`, "--root-key", server.rootKey);
    assert.deepEqual(login, { code: 0, stdout: `Logged in to ${url} as profile default.\n`, stderr: "" });
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal(statSync(join(file, "..")).mode & 0o777, 0o700);
    assert.equal((await run("apis", "list-apis", "--json")).stdout, "[]\n");
  });

  it("login accepts a root key without the permission of its check", async (t) => {
    const { run } = user(t);
    const { key } = await server.grant("apis.*.create_api");
    assert.equal((await run("login", url, "--root-key", key)).code, 0);
    assert.equal((await run("apis", "create-api", "--name", "a")).code, 0);
  });

  it("profiles are listed without root keys, chosen, and removed", async (t) => {
    const { run, file } = user(t);
    const { key } = await server.grant("apis.*.read_api");
    await run("login", url, "--root-key", server.rootKey);
    await run("login", url, "--root-key", key, "--profile", "reader");
    const listed = await run("profiles", "--json");
    assert.deepEqual(JSON.parse(listed.stdout), [
      { name: "default", url, current: false },
      { name: "reader", url, current: true },
    ]);
    const create = ["apis", "create-api", "--name", "a"];
    assert.match((await run(...create)).stderr, /^latchkey: Insufficient Permissions \(403\): /);
    assert.equal((await run(...create, "--profile", "default")).code, 0);
    assert.equal((await run("profiles", "use", "default")).code, 0);
    assert.equal((await run(...create)).code, 0);
    assert.match(
      (await run(...create, "--profile", "none")).stderr,
      /There is no profile none\. The profiles are default, reader\./,
    );
    assert.equal((await run("logout")).code, 0);
    assert(!readFileSync(file, "utf8").includes(server.rootKey));
    assert.match((await run(...create)).stderr, /^latchkey: Insufficient Permissions/, "the other profile is current");
  });

  it("profiles that others can read, or that are damaged, are not used", async (t) => {
    const { run, file } = user(t);
    await run("login", url, "--root-key", server.rootKey);
    chmodSync(file, 0o644);
    assert.match(
      (await run("apis", "list-apis")).stderr,
      /^latchkey: Other users can read the root keys in .* chmod 600 /,
    );
    chmodSync(file, 0o600);
    writeFileSync(file, '{"profiles":{"default":{"url":1}}}');
    assert.match((await run("apis", "list-apis")).stderr, /profiles\.json is damaged\. Remove it/);
  });

  it("the root key of a profile is sent to no other address", async (t) => {
    const { run } = user(t);
    await run("login", url, "--root-key", server.rootKey);
    const authorizations: (string | undefined)[] = [];
    const other = await listen(t, (request, response) => {
      authorizations.push(request.headers.authorization);
      response.end();
    });
    const { code, stderr } = await run("apis", "list-apis", "--url", other);
    assert.equal(code, 1);
    assert.match(stderr, /There is no root key for http:.*Type `latchkey login http:/);
    assert.deepEqual(authorizations, []);
    // A verification may work without a root key, so it is sent without one.
    await run("verify", "some_key", "--url", other);
    assert.deepEqual([...new Set(authorizations)], [undefined]);
  });

  it("variables replace a profile, and a flag replaces the variables", async (t) => {
    const variables = { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey };
    const { run } = user(t, variables);
    assert.equal((await run("apis", "list-apis")).code, 0);
    const { key } = await server.grant("apis.*.create_api");
    await run("login", url, "--root-key", key, "--profile", "creator");
    assert.equal((await run("apis", "list-apis")).code, 0);
    assert.match(
      (await run("apis", "list-apis", "--profile", "creator")).stderr,
      /^latchkey: Insufficient Permissions/,
    );
  });

  it("a misspelled variable stops a command before it calls another service than was meant", async (t) => {
    const { run, home } = user(t);
    await run("login", url, "--root-key", server.rootKey);
    const misspelled = (...args: string[]) =>
      commandLine.run({ args, environment: { HOME: home, LATCHKEY_ULR: "https://staging.example" }, directory: home });
    for (const args of [
      ["apis", "create-api", "--name", "misspelled"],
      ["verify", "some_key"],
      ["health"],
      ["apply", "--file", "latchkey.yaml"],
      ["import", "limits.yaml", "--from", "envoy-ratelimit"],
      ["edge"],
    ]) {
      const { code, stdout, stderr } = await misspelled(...args);
      assert.deepEqual({ code, stdout }, { code: 1, stdout: "" }, args.join(" "));
      assert.match(
        stderr,
        /^latchkey: LATCHKEY_ULR: there is no such (variable|setting)\. Did you mean LATCHKEY_URL\?\n$/,
      );
    }
    assert(!(await run("apis", "list-apis", "--json")).stdout.includes("misspelled"), "the profile was called");
    // These call no service.
    for (const args of [["apis", "create-api", "--help"], ["completion", "bash"], ["profiles"]]) {
      assert.equal((await misspelled(...args)).code, 0, args.join(" "));
    }
  });

  it("without a login say what to type, with the root key file of a service on this machine", async (t) => {
    const { port } = new URL(url);
    const { run, home } = user(t, { LATCHKEY_PORT: port });
    const lost = await run("apis", "list-apis");
    assert.equal(lost.code, 1);
    assert.match(
      lost.stderr,
      new RegExp(`^latchkey: There is no login\\. A service runs at ${url}\\. Type:\\n  latchkey login ${url}\\n`),
    );
    mkdirSync(join(home, "data"));
    writeFileSync(join(home, "data", "root-key"), server.rootKey);
    const known = await run("apis", "list-apis");
    assert.equal(known.stderr.split("\n")[1], `  latchkey login ${url} < data/root-key`);
    const nothing = await user(t, { LATCHKEY_PORT: "1" }).run("apis", "list-apis");
    assert.match(
      nothing.stderr,
      /Type `latchkey login URL` with the address of your service, or start one .*`latchkey serve`/,
    );
  });

  it("reject a wrong command line with exit code 2", async (t) => {
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey });
    const wrong: [args: string[], message: RegExp][] = [
      [["keys", "create-key"], /^latchkey: Missing: --api-id\. See: latchkey keys create-key --help\n$/],
      [["keys", "create-key", "--nmae", "a"], /^latchkey: unknown option '--nmae'\n\(Did you mean --name\?\)/],
      [["apis", "create-api", "--name", "a", "--timeout", "soon"], /^latchkey: --timeout soon: give a duration/],
      [["apis", "create-api", "--body", "{"], /^latchkey: --body is not JSON: see position 1 /],
      [["apis", "create-api", "--body", "[]"], /^latchkey: --body: give a JSON object\./],
      [["apis", "list-apis", "--json", "--yaml"], /^latchkey: option '--yaml' cannot be used with option '--json'/],
      [
        ["apis", "list-apis", "--json", "--only", "id"],
        /^latchkey: option '--only <member>' cannot be used with option '--json'/,
      ],
      [
        ["keys", "create", "--api-id", "api_1", "--expires", "2020-01-01"],
        /^latchkey: --expires 2020-01-01 is in the past: 2020-01-01T00:00:00\.000Z\. Give a later time, .* --allow-past\.\n$/,
      ],
      [["keys", "update", "--body", '{"keyId":"key_1"}', "--expires", "1700000000"], /is in the past: 1970-01-20T/],
      [
        ["keys", "creat"],
        /^latchkey: There is no command keys creat\. Did you mean `latchkey keys create`\? All commands: /,
      ],
      [["apis.listApis"], /^latchkey: There is no command apis\.listApis\. Did you mean `latchkey apis list-apis`\?/],
      [["apiss", "list"], /Did you mean `latchkey apis list`\?/],
      [["verfy", "prod_1"], /Did you mean `latchkey verify`\?/],
      [["nothing-like-it"], /^latchkey: There is no command nothing-like-it\. All commands: latchkey --help\n$/],
      [["keys", "create", "--idempotency-key", "a b"], /^latchkey: Missing: --api-id/],
      [["keys", "create", "--api-id", "a", "--idempotency-key", "a b"], /^latchkey: --idempotency-key: give 1 to 255 /],
      [["apis", "list-apis", "--url", "https://me:secret@host"], /^latchkey: https:\/\/…@host is no address/],
    ];
    for (const [args, message] of wrong) {
      const { code, stdout, stderr } = await run(...args);
      assert.deepEqual({ code, stdout }, { code: 2, stdout: "" }, args.join(" "));
      assert.match(stderr, message);
    }
  });

  it("accept an expiry in the past if that is asked for", async (t) => {
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey });
    const apiId = (await run("apis", "create", "--name", "past", "--only", "apiId")).stdout.trim();
    const past = ["keys", "create", "--api-id", apiId, "--expires", "2020-01-01", "--allow-past"];
    const { code, stderr } = await run(...past, "--json");
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  });

  it("check --only before the call, and print an empty line for a member that an entry does not have", async (t) => {
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey });
    const { apiId } = await server.ok("apis.createApi", { name: "only" });
    const wrong = await run("keys", "create", "--api-id", apiId, "--only", "keyid");
    assert.deepEqual(wrong, {
      code: 2,
      stdout: "",
      stderr: "latchkey: --only keyid: the result has the members keyId, key.\n",
    });
    assert.deepEqual(await server.ok("apis.listKeys", { apiId }), [], "a key was created that nobody has seen");
    const none = await run("keys", "delete", "--key-id", "key_1", "--yes", "--only", "keyId");
    assert.equal(none.stderr, "latchkey: --only keyId: the result has no members.\n");

    await server.ok("keys.createKey", { apiId, name: "first" });
    server.clock.step(1);
    await server.ok("keys.createKey", { apiId });
    for (const all of [[], ["--all"]]) {
      const names = await run("keys", "list", "--api-id", apiId, "--only", "name", ...all);
      assert.deepEqual(names, { code: 0, stdout: "first\n\n", stderr: "" });
    }
    const prefix = await run("apis", "get", "--api-id", apiId, "--only", "prefix");
    assert.deepEqual(prefix, { code: 0, stdout: "\n", stderr: "" });
  });

  it("have short forms, which help shows", async (t) => {
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey });
    const apiId = (await run("apis", "create", "--name", "short", "--only", "apiId")).stdout.trim();
    const keyId = (
      await run("keys", "create", "--api-id", apiId, "--meta.plan", "pro", "--only", "keyId")
    ).stdout.trim();
    assert.equal((await run("keys", "list", "--api-id", apiId, "--only", "keyId")).stdout, `${keyId}\n`);
    assert.equal((await run("apis", "get", "--api-id", apiId, "--only", "name")).stdout, "short\n");
    const help = (await run("keys", "--help")).stdout;
    assert.match(help, /^ {2}create-key\|create \[options\] /m);
    assert.match(help, /^ {2}list \[options\] +List the keys of an API/m);
    const { stdout: script } = await run("completion", "bash");
    assert.match(script, /'keys create'\) words='' flags='[^']*--api-id/);
  });

  it("delete only what is confirmed", async (t) => {
    const { run, home } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey });
    const apiId = (await run("apis", "create", "--name", "confirmed", "--only", "apiId")).stdout.trim();
    const asked = await run("apis", "delete-api", "--api-id", apiId);
    assert.deepEqual(asked, {
      code: 2,
      stdout: "",
      stderr: `latchkey: Delete an API and its keys (apiId ${apiId}) at ${url}? Without a terminal to answer on, add --yes. Nothing was changed.\n`,
    });
    const script = await needProgram("script");
    const main = new URL("../src/main.ts", import.meta.url).pathname;
    /** Answers on a terminal. */
    const answer = (text: string) =>
      new Promise<string>((resolve) => {
        const command = `'${process.execPath}' '${main}' apis delete --api-id ${apiId}`;
        const child = execFile(
          script,
          ["-qec", command, "/dev/null"],
          { env: { ...process.env, HOME: home, LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey } },
          (_, stdout) => resolve(stdout),
        );
        child.stdout!.on("data", (shown: string) => shown.includes("[y/N]") && child.stdin!.write(`${text}\r`));
      });
    assert.match(
      await answer("n"),
      /Delete an API and its keys \(apiId api_\w+\) at http:.*\? \[y\/N\] .*latchkey:.* Nothing was changed\./s,
    );
    assert.equal((await run("apis", "get", "--api-id", apiId)).code, 0);
    assert.match(await answer("y"), /Done\./);
    assert.match((await run("apis", "get", "--api-id", apiId)).stderr, /Not Found \(404\)/);
  });

  it("ask for confirmation for every operation that deletes, and for no other", () => {
    for (const { operation, deletes } of declaredCommands) {
      assert.equal(deletes === true, /\.delete/.test(operation), operation);
    }
  });

  it("login says when there is no root key", async (t) => {
    const { run } = user(t);
    const { code, stderr } = await run("login", url);
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: The root key: none given\. Type `latchkey login http.*< data\/root-key\n$/);
  });

  it("that cannot write their output end with one line", async (t) => {
    if (!existsSync("/dev/full")) return t.skip("needs /dev/full");
    const { home } = user(t);
    const main = new URL("../src/main.ts", import.meta.url).pathname;
    const runs = [["--help"], ["profiles"], ["settings"]].map(async (args) => {
      const command = `'${process.execPath}' '${main}' ${args.join(" ")} > /dev/full`;
      await assert.rejects(promisify(execFile)("sh", ["-c", command], { cwd: home, env: { HOME: home } }), {
        code: 1,
        stderr: "latchkey: the output cannot be written (ENOSPC).\n",
      });
    });
    await Promise.all(runs);
  });

  it("print the errors of members with their remedies, and the request", async (t) => {
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: server.rootKey });
    const { code, stderr } = await run("apis", "create-api", "--name", "");
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^latchkey: Bad Request \(400\): .*\n {2}\/properties\/name\/minLength: name must be .*\. Send at least 1 character\.\n {2}About this error: http:.*\/errors\/application\/invalid_input\n {2}Request req_\w+\n$/,
    );
  });

  it("list all pages, as JSON, YAML and a table", async (t) => {
    const { key } = await server.workspace("many");
    for (let i = 0; i < 205; i++) {
      await server.ok("apis.createApi", { name: `api ${i}` }, { as: key });
      server.clock.step(1);
    }
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: key });
    const json = JSON.parse((await run("apis", "list-apis", "--all", "--json")).stdout);
    assert.deepEqual(
      json.map(({ name }: { name: string }) => name),
      Array.from({ length: 205 }, (_, i) => `api ${i}`),
    );
    const { parse } = await import("yaml");
    assert.deepEqual(parse((await run("apis", "list-apis", "--all", "--yaml")).stdout), json);
    const names = json.map(({ name }: { name: string }) => `${name}\n`).join("");
    assert.equal((await run("apis", "list-apis", "--all", "--only", "name")).stdout, names);
    const unknown = await run("apis", "list-apis", "--only", "colour");
    assert.deepEqual({ code: unknown.code, stdout: unknown.stdout }, { code: 2, stdout: "" });
    assert.match(unknown.stderr, /^latchkey: --only colour: the result has the members id, apiId, name, /);
    const lines = (await run("apis", "list-apis", "--all")).stdout.trimEnd().split("\n");
    assert.equal(lines.length, 206);
    assert.match(lines[0]!, /^id +apiId +name$/);
    assert.match((await run("apis", "list", "--columns", "name, id", "--limit", "2")).stdout, /^name +id\napi 0 +api_/);
    const wrong = await run("apis", "list", "--columns", "name,colour");
    assert.match(wrong.stderr, /^latchkey: --columns colour: the columns are id, apiId, name, /);
    const page = await run("apis", "list-apis", "--limit", "10");
    assert.equal(page.stdout.trimEnd().split("\n").length, 11);
    assert.match(page.stderr, /^There are more: add --all, or --cursor \S+\n$/);
  });

  it("verify explains each decision in words", async (t) => {
    const { key: rootKey } = await server.workspace("words");
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: rootKey });
    const { apiId } = await server.ok("apis.createApi", { name: "words" }, { as: rootKey });
    const create = async (more: object) =>
      (await server.ok("keys.createKey", { apiId, ...more }, { as: rootKey })).key as string;
    const now = server.clock.now();
    const limited = await create({ ratelimits: [{ name: "calls", limit: 1, duration: 60_000, autoApply: true }] });
    const decisions: [key: string, flags: string[], code: number, words: RegExp][] = [
      [
        await create({ name: "Acme", credits: { remaining: 10 } }),
        [],
        0,
        /^VALID: every check passed\..*\n {2}Key key_\w+ \(Acme\) of the API api_\w+\n(.*\n)*.*Credits: 9 left/,
      ],
      ["prod_nothing", [], 1, /^NOT_FOUND: there is no such key for this root key\. It is mistyped or deleted/],
      [await create({}), ["--api-id", "api_other"], 1, /^NOT_FOUND: there is no such key in the API api_other/],
      [await create({ enabled: false }), [], 1, /^DISABLED: .*`latchkey keys update-key --enabled true`/],
      [await create({ expires: now - 1 }), [], 1, /^EXPIRED: the key expired .* ago, at 2026-01-15T12:00:00\.\d{3}Z\./],
      [
        await create({ permissions: ["a.b"] }),
        ["--permissions", "c.d"],
        1,
        /^INSUFFICIENT_PERMISSIONS: .* do not satisfy c\.d\. It has a\.b\./,
      ],
      [
        await create({ credits: { remaining: 1 } }),
        ["--credits.cost", "2"],
        1,
        /^USAGE_EXCEEDED: the verification costs 2 and the key has 1 credits left\./,
      ],
      [limited, [], 0, /^VALID: (.*\n)*.*Limit calls: 0 of 1 in 1 minute left/],
      [limited, [], 1, /^RATE_LIMITED: the limit calls is exhausted\. It passes in 60 seconds if/],
    ];
    for (const [key, flags, expected, words] of decisions) {
      const { code, stdout, stderr } = await run("verify", key, ...flags);
      assert.equal(code, expected, stdout + stderr);
      assert.match(stdout, words);
    }
    const { code, stdout } = await run("verify", "prod_nothing", "--json");
    assert.deepEqual([code, JSON.parse(stdout)], [1, { valid: false, code: "NOT_FOUND" }]);
  });

  it("explains verifications and limits in words", async (t) => {
    const { key: rootKey } = await server.workspace("explained words");
    const { run } = user(t, { LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: rootKey });
    const ok = (name: string, body: object) => server.ok(name, body, { as: rootKey });
    const { apiId } = await ok("apis.createApi", { name: "words" });
    await ok("permissions.createRole", { name: "reader", permissions: ["documents.*"] });
    const { keyId } = await ok("keys.createKey", {
      apiId,
      roles: ["reader"],
      credits: { remaining: 5, refill: { interval: "daily", amount: 9 } },
      ratelimits: [{ name: "calls", limit: 1_000, duration: 60_000, autoApply: true }],
    });
    const explain = ["keys", "explain-verification", "--key-id", keyId, "--permissions", "documents.read AND admin"];
    const { code, stdout } = await run(...explain);
    assert.equal(code, 0);
    assert.match(stdout, /^INSUFFICIENT_PERMISSIONS: The permissions of the key do not satisfy admin\.\n/);
    assert.match(
      stdout,
      /\n {2}ok {2}enabled {6}The key is enabled\.\n(.*\n)* {2}NO {2}permissions {2}The.*\n {2}-- {2}concurrency {2}No.*\n {2}-- {2}limits /,
    );
    assert.match(stdout, /\n {2}NO {2}admin\n {6}documents\.read: by documents\.\*\n {6}admin: not granted\n/);
    assert.match(stdout, /\n {2}documents\.\*: role reader\n/);
    assert.match(
      stdout,
      /\n {2}calls: 0 of 1,000 in 1 minute used, window ends at 2026.*Z\n {4}from the key, costs 1, charged\n/,
    );
    assert.match(stdout, /\nCredits: 5 left, the call costs 1, set to 9 at 2026-01-16T00:00:00\.000Z\n/);
    assert.equal(JSON.parse((await run(...explain, "--json")).stdout).code, "INSUFFICIENT_PERMISSIONS");
    assert.equal((await run(...explain, "--only", "code")).stdout, "INSUFFICIENT_PERMISSIONS\n");

    const call = { namespace: "words", identifier: "acme_eu", limit: 2, duration: 60_000 };
    await ok("ratelimits.limit", { ...call, cost: 2 });
    for (const [identifier, limit] of [
      ["acme_*", 2],
      ["*", 1],
    ] as const)
      await ok("ratelimits.setOverride", { namespace: "words", identifier, limit, duration: 60_000 });
    const flags = Object.entries(call).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const limited = await run("ratelimits", "explain-limit", ...flags);
    assert.match(
      limited.stdout,
      /^DENIED: The override 'acme_\*' applies: 2 of 2 are used, and the call costs 1\. It passes in \d+ (?:seconds|minute) without/,
    );
    assert.match(limited.stdout, /\n {2}Also matches: \*, 1 in 1 minute\n/);
  });

  it("health has exit code 0 only for a service that can work", async (t) => {
    const { port } = new URL(url);
    const { run, file } = user(t, { LATCHKEY_PORT: port });
    assert.deepEqual(await run("health"), { code: 0, stdout: `${url} {"status":"ok"}\n`, stderr: "" });
    assert.equal((await run("health", "--live", "--url", url)).code, 0);
    const asJson = await run("health", "--json");
    assert.deepEqual(JSON.parse(asJson.stdout), { url, healthy: true, status: 200, answer: { status: "ok" } });
    let authorization: string | undefined;
    const down = await listen(t, ({ headers }, response) => {
      authorization = headers.authorization;
      response.writeHead(503).end('{"status":"fail"}');
    });
    const failed = await run("health", "--json", "--url", down);
    assert.equal(failed.code, 1);
    assert.deepEqual(JSON.parse(failed.stdout), { url: down, healthy: false, status: 503, answer: { status: "fail" } });

    // A profile decides as for every other command, and its root key stays here.
    assert.equal((await run("login", url, "--root-key", server.rootKey)).code, 0);
    writeFileSync(file, readFileSync(file, "utf8").replace(url, down));
    assert.match((await run("health")).stderr, /is not healthy: status 503/);
    assert.match((await run("health", "--profile", "default")).stderr, /is not healthy: status 503/);
    assert.equal(authorization, undefined);
    assert.match((await run("health", "--url", down)).stderr, /is not healthy: status 503 \{"status":"fail"\}/);
    const { code, stderr } = await run("health", "--url", "http://127.0.0.1:1");
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: http:\/\/127\.0\.0\.1:1 cannot be reached: /);
    const unreachable = await run("health", "--json", "--url", "http://127.0.0.1:1");
    assert.deepEqual([unreachable.code, unreachable.stderr], [1, ""]);
    const { error, ...rest } = JSON.parse(unreachable.stdout);
    assert.deepEqual(rest, { url: "http://127.0.0.1:1", healthy: false });
    assert.match(error, /^http:\/\/127\.0\.0\.1:1 cannot be reached: /);
  });
});

describe("completion", () => {
  it("completes words and flags in bash", async () => {
    const { stdout: script } = await commandLine.run({ args: ["completion", "bash"] });
    const complete = (...words: string[]) =>
      execFileSync(
        "bash",
        ["-c", `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _latchkey; echo "\${COMPREPLY[@]}"`, "-", ...words],
        {
          encoding: "utf8",
        },
      ).trim();
    assert.equal(complete("latchkey", "ke"), "keys");
    assert.equal(complete("latchkey", "keys", "create"), "create-key create");
    assert.match(
      complete("latchkey", "keys", "create-key", "--credits.re"),
      /^--credits\.remaining --credits\.refill /,
    );
    assert.match(complete("latchkey", "keys", "create-key", "--name", "verify-key", "--api"), /^--api-id$/);
    assert.equal(complete("latchkey", "import", "keys.csv", "--from", "k"), "kong");
    assert.equal(
      complete("latchkey", "keys", "create-key", "--credits.refill.interval", ""),
      "hourly daily weekly monthly yearly",
    );
    assert.equal(complete("latchkey", "serve", "--data"), "--data-dir --database-url");
  });

  const checks: Record<string, string> = {
    zsh: 'autoload -U compinit; compinit -D; source "$0"; whence -w _latchkey',
    fish: 'source "$argv[1]"; complete -C "latchkey keys create-k"',
  };
  for (const [shell, check] of Object.entries(checks)) {
    it(`is a script that ${shell} can read`, async (t) => {
      const { stdout: script } = await commandLine.run({ args: ["completion", shell] });
      const file = join(makeFolder(t), "script");
      writeFileSync(file, script);
      const { stdout, stderr } = await promisify(execFile)(await needProgram(shell), ["-c", check, file]);
      assert.equal(stderr, "");
      assert.equal(stdout, shell === "fish" ? "create-key\tCreate a key\n" : "_latchkey: function\n");
    });
  }
});

describe("a hostile service", () => {
  const ROOT_KEY = "lk_root_that_must_not_leak_7Tq2";

  async function against(t: TestContext, answer: RequestListener, ...args: string[]) {
    const url = await listen(t, answer);
    const environment = { HOME: makeFolder(t), LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: ROOT_KEY };
    const ran = await commandLine.run({
      args: args.length > 0 ? args : ["apis", "create-api", "--name", "a"],
      environment,
    });
    assert.equal(ran.code, 1, ran.stdout);
    assert(!(ran.stdout + ran.stderr).includes(ROOT_KEY), "the root key is in the output");
    return ran.stderr;
  }

  const json = { "content-type": "application/json" };
  const meta = { requestId: "req_1" };

  it("cannot send an endless body", async (t) => {
    const chunk = Buffer.alloc(1024 * 1024, " ");
    const stderr = await against(t, (_request, response) => {
      response.writeHead(200, json);
      const send = () => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once("drain", send);
      };
      send();
    });
    assert.match(stderr, /^latchkey: The answer is longer than 128 MiB/);
  });

  it("cannot hold a command with a body that never ends", async (t) => {
    const stderr = await against(
      t,
      (_request, response) => void response.writeHead(200, json).write('{"data":'),
      ...["apis", "delete-api", "--api-id", "api_1", "--yes", "--timeout", "200ms"],
    );
    assert.match(stderr, /^latchkey: http:\S+ did not answer completely within 0\.2 s/);
  });

  it("cannot hold a command with Retry-After", async (t) => {
    let count = 0;
    const stderr = await against(t, (_request, response) => {
      count++;
      response.writeHead(503, { ...json, "retry-after": "999999" }).end('{"error":{"title":"Later"}}');
    });
    assert.match(stderr, /^latchkey: Later \(503\): the service gave no detail\n/);
    assert.equal(count, 1);
  });

  it("cannot redirect a root key to another host", async (t) => {
    let stolen: string | undefined;
    const thief = await listen(t, ({ headers }, response) => {
      stolen = headers.authorization ?? "a request";
      response.end();
    });
    for (const status of [301, 302, 307, 308]) {
      const stderr = await against(t, (_request, response) =>
        response.writeHead(status, { location: `${thief}/v2/apis.createApi` }).end(),
      );
      assert.match(stderr, /redirects to http:.*Redirects are not followed/);
    }
    assert.equal(stolen, undefined);
  });

  it("cannot answer with something else than JSON", async (t) => {
    const answers: [status: number, type: string, body: string][] = [
      [200, "text/html", "<html>"],
      [200, "application/json", "not json"],
      [200, "application/json", "17"],
      [200, "application/json", "{}"],
      [204, "", ""],
    ];
    for (const [status, type, body] of answers) {
      const stderr = await against(t, (_request, response) =>
        response.writeHead(status, type ? { "content-type": type } : {}).end(body),
      );
      assert.match(stderr, /not as a Latchkey service does|the service gave no detail/, `${type} ${body}`);
    }
  });

  it("cannot send control characters to the terminal", async (t) => {
    const evil = "\u001b[2J\u009b\u202e";
    const stderr = await against(t, (_request, response) =>
      response
        .writeHead(400, json)
        .end(JSON.stringify({ error: { title: evil, detail: evil, type: evil, errors: [{ message: evil }, null] } })),
    );
    assert.doesNotMatch(stderr.replaceAll("\n", ""), /[\p{Cc}\u202e]/u);
    const url = await listen(t, (_request, response) =>
      response.writeHead(200, json).end(JSON.stringify({ meta, data: { [evil]: evil, list: [{ a: evil }] } })),
    );
    const environment = { HOME: makeFolder(t), LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: ROOT_KEY };
    for (const format of [[], ["--json"], ["--yaml"]]) {
      const { code, stdout } = await commandLine.run({
        args: ["apis", "create-api", "--name", "a", ...format],
        environment,
      });
      assert.equal(code, 0);
      assert.doesNotMatch(stdout.replaceAll("\n", ""), /[\p{Cc}]/u, format[0] ?? "table");
    }
  });

  it("cannot make a list endless with one cursor", async (t) => {
    const page = JSON.stringify({ meta, data: [], pagination: { hasMore: true, cursor: "again" } });
    const stderr = await against(
      t,
      (_request, response) => response.writeHead(200, json).end(page),
      "apis",
      "list-apis",
      "--all",
    );
    assert.match(stderr, /answered with the same page again/);
  });

  it("that limits requests is asked again, also for what cannot be repeated otherwise", async (t) => {
    let count = 0;
    const url = await listen(t, (_request, response) => {
      const [status, body] = count++ === 0 ? [429, { error: { title: "Slow down" } }] : [200, { meta, data: {} }];
      response.writeHead(status, json).end(JSON.stringify(body));
    });
    const environment = { HOME: makeFolder(t), LATCHKEY_URL: url, LATCHKEY_ROOT_KEY: ROOT_KEY };
    const { code, stdout } = await commandLine.run({
      args: ["apis", "delete-api", "--api-id", "api_1", "--yes"],
      environment,
    });
    assert.deepEqual([code, stdout, count], [0, "Done.\n", 2]);
  });

  it("is called again only where that is safe", async (t) => {
    const seen: (string | undefined)[] = [];
    const drop: RequestListener = (request) => {
      seen.push(request.headers["idempotency-key"] as string | undefined);
      request.socket.destroy();
    };
    await against(t, drop);
    assert.equal(seen.length, 3);
    assert(seen[0] !== undefined && new Set(seen).size === 1, "the attempts have different keys");
    seen.length = 0;
    await against(t, drop, "apis", "delete-api", "--api-id", "api_1", "--yes");
    assert.deepEqual(seen, [undefined]);
  });
});

/** A server of the test that answers every request in one way. */
async function listen(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer((request, response) => {
    request.on("error", () => {});
    answer(request, response);
  });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
