/** `latchkey import`: files of other systems, and rows that are rejected. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { hashSecret } from "../../engine/src/crypto/hash.ts";
import { TestServer } from "./harness.ts";
import { Importing } from "./importing.ts";
import { makeFolder } from "./process.ts";

describe("import", () => {
  const server = new TestServer({ settings: { PORT: "0" } });
  const importing = new Importing(server);

  /** A file to import into an API of a workspace of its own. */
  async function importer(t: TestContext, name: string, text: string) {
    const opened = await importing.open(makeFolder(t));
    writeFileSync(join(opened.directory, name), text);
    const run = (...args: string[]) => opened.run(name, ...args);
    const report = () => opened.linesOf(`${name}.report.jsonl`);
    const rejected = () => report().filter(({ outcome }) => outcome === "rejected");
    return { ...opened, run, report, rejected };
  }

  const csv = [
    "key,name,permissions,expires,credits.remaining",
    "plain_1,first,documents.read,2027-01-31,5",
    "plain_2,second,documents.read;documents.write,,",
    "plain_3,third,not a slug,,",
    "plain_4,fourth,,tomorrow,",
    "plain_1,again,,,",
    ",nothing,,,",
    "plain_5,short",
    "plain_6,last,,,",
  ].join("\n");

  it("sends no control character of a file to the terminal or the report", async (t) => {
    const evil = "\u001b[2J\u009b\u202e";
    const isClean = (text: string) => assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\u202e]/u);
    const twice = await importer(t, "twice.csv", `a${evil},a${evil}\n1,2\n`);
    const { code, stderr } = await twice.run("--from", "generic", "--dry-run");
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: twice\.csv has the column a\\u001b\[2j\\u009b\\u202e twice\.$/m);
    isClean(stderr);
    for (const args of [["--dry-run"], []]) {
      const { run, directory } = await importer(
        t,
        "names.csv",
        `key,name,${evil}\nplain_${args.length},${evil},\n,${evil},\n`,
      );
      const { stdout, stderr } = await run("--from", "generic", ...args);
      isClean(stdout + stderr);
      const report = readFileSync(join(directory, `names.csv.${args.length ? "dry-run" : "report"}.jsonl`), "utf8");
      isClean(report);
      assert.equal(JSON.parse(report.split("\n")[0]!).name, evil);
    }
  });

  it("imports what is valid, and reports every row, the others with their reasons, without a key", async (t) => {
    const { as, apiId, run, report, rejected, count, directory } = await importer(t, "keys.csv", csv);
    const { code, stdout, stderr } = await run("--from", "generic");
    assert.equal(code, 1, stderr);
    assert.match(
      stdout,
      /^rejected \(row 3, third\): permissions\[0\] .*\n(.*\n){4}8 rows: 3 imported, 5 rejected, 0 skipped\.\nkeys\.csv\.report\.jsonl has a line for each row\.\n$/,
    );
    assert.equal(await count(), 3);
    assert.deepEqual(
      report().map(({ row }) => row),
      [1, 2, 3, 4, 5, 6, 7, 8],
    );
    const listed = (await server.ok("apis.listKeys", { apiId }, { as })) as { keyId: string; name: string }[];
    assert.deepEqual(report()[0], {
      row: 1,
      name: "first",
      outcome: "imported",
      keyId: listed.find(({ name }) => name === "first")!.keyId,
      mapped: ["name", "permissions", "expires", "credits"],
      notes: [],
    });
    const rows = rejected();
    assert.deepEqual(
      rows.map(({ row, name }) => [row, name]),
      [
        [3, "third"],
        [4, "fourth"],
        [5, "again"],
        [6, "nothing"],
        [7, undefined],
      ],
    );
    assert.match(rows[0].reason, /^permissions\[0\] .*may hold letters/);
    assert.match(
      rows[1].reason,
      /^expires is no time that the import reads: a date such as 2027-01-31 or .*, or Unix time in seconds or milliseconds$/,
    );
    assert.equal(rows[2].reason, "a key with this hash exists already, or earlier in the file");
    assert.equal(rows[3].reason, "has neither hash nor key");
    assert.equal(rows[4].reason, "has 2 columns, and the header has 5");
    for (const file of ["keys.csv.report.jsonl", "keys.csv.import-state.json"]) {
      assert(!readFileSync(join(directory, file), "utf8").includes("plain_"), `${file} has a key string`);
    }
    const verified = await server.verify("plain_1", { permissions: "documents.read" }, { as });
    assert.deepEqual([verified.code, verified.credits, verified.name], ["VALID", 4, "first"]);
  });

  it("writes owners that are no external ids in a form that every operation accepts, and keeps the original", async (t) => {
    const owners = ["jane.doe+test@example.com", "auth0|5f7c", "acme", "enc--jane_40example.com", "auth0|5f7c"];
    const rows = owners.map((owner, i) => `owned_${i},row ${i},${owner}`);
    const { as, apiId, run, report, linesOf } = await importer(
      t,
      "owners.csv",
      ["key,name,externalId", ...rows].join("\n"),
    );
    // Made by another program, before the import.
    await server.ok("identities.createIdentity", { externalId: "enc--auth0_7C5f7c", meta: { plan: "pro" } }, { as });
    const jane = "enc--jane.doe_2Btest_40example.com";
    const written = [jane, "enc--auth0_7C5f7c", undefined, undefined, "enc--auth0_7C5f7c"];
    const outcomes = (lines: { outcome: string; externalId?: string }[]) =>
      lines.map(({ outcome, externalId }) => [outcome, externalId]);

    await run("--from", "generic", "--dry-run");
    const checked = outcomes(linesOf("owners.csv.dry-run.jsonl"));
    assert.deepEqual(
      checked,
      written.map((externalId, i) => [i === 3 ? "rejected" : "valid", externalId]),
    );
    const { code, stdout } = await run("--from", "generic");
    assert.equal(code, 1);
    assert.match(stdout, /^externalId \(3 rows, first row 1, row 0\): has characters that no external id can have/m);
    assert.match(stdout, /^rejected \(row 4, row 3\): has an owner that begins with enc--/m);
    assert.deepEqual(
      outcomes(report()),
      checked.map(([outcome, externalId]) => [outcome === "valid" ? "imported" : outcome, externalId]),
    );

    const metaOf = async (identity: string) =>
      ((await server.ok("identities.getIdentity", { identity }, { as })) as { meta?: object }).meta;
    assert.deepEqual(await metaOf(jane), { externalId: owners[0] });
    assert.deepEqual(await metaOf("enc--auth0_7C5f7c"), { plan: "pro", externalId: "auth0|5f7c" });
    assert.deepEqual(await metaOf("acme"), {});
    for (const externalId of [jane, "enc--auth0_7C5f7c", "acme"]) {
      await server.ok("keys.createKey", { apiId, externalId }, { as });
      await server.ok("portal.createSession", { apiId, externalId, actions: ["list"] }, { as });
    }
    assert.equal((await server.ok("apis.listKeys", { apiId, externalId: jane }, { as })).length, 2);
  });

  it("needs the permissions to write identities only to import, and continues when the root key has them", async (t) => {
    const { as, apiId, run, environment, count } = await importer(t, "owners.csv", "key,externalId\nowned_1,a@b");
    const permissions = [`apis.${apiId}.create_key`, "identities.*.read_identity"];
    const limited = await server.ok("rootKeys.createRootKey", { name: "import", permissions }, { as });
    environment.LATCHKEY_ROOT_KEY = limited.key;
    const checked = await run("--from", "generic", "--dry-run");
    assert.match(checked.stdout, /1 rows: 1 can be imported/, checked.stderr);
    const stopped = await run("--from", "generic");
    assert.equal(stopped.code, 1);
    assert.match(stopped.stderr, /identities\.\*\.create_identity/);
    assert.equal(await count(), 0);
    const more = [...permissions, "identities.*.create_identity"];
    await server.ok("rootKeys.updateRootKey", { rootKeyId: limited.rootKeyId, permissions: more }, { as });
    assert.equal((await run("--from", "generic")).code, 0);
    assert.equal(await count(), 1);
  });

  it("creates budgets once, also when it was interrupted after them", async (t) => {
    const dump = [
      'COPY public."LiteLLM_TeamTable" (team_id, max_budget) FROM stdin;',
      "team-1\t100",
      "\\.",
      'COPY public."LiteLLM_VerificationToken" (token, team_id) FROM stdin;',
      `${"0".repeat(64)}\tteam-1`,
      `${"1".repeat(64)}\tteam-1`,
      "\\.\n",
    ];
    const { as, apiId, run, environment, count } = await importer(t, "teams.sql", dump.join("\n"));
    const permissions = [`apis.${apiId}.create_key`, "budgets.*.read_budget"];
    const limited = await server.ok("rootKeys.createRootKey", { name: "import", permissions }, { as });
    environment.LATCHKEY_ROOT_KEY = limited.key;
    const { stdout, stderr } = await run("--from", "litellm", "--dry-run");
    assert.match(stdout, /2 rows: 2 can be imported/, stderr);
    const budgets = () => server.ok("budgets.listBudgets", {}, { as });
    for (const [missing, made] of [
      ["create_budget", 0],
      ["assign_budget", 1],
    ] as const) {
      const stopped = await run("--from", "litellm");
      assert.equal(stopped.code, 1);
      assert.match(stopped.stderr, new RegExp(`budgets\\.\\S+\\.${missing}`));
      assert.equal(((await budgets()) as unknown[]).length, made);
      assert.equal(await count(), 0);
      permissions.push(`budgets.*.${missing}`);
      await server.ok("rootKeys.updateRootKey", { rootKeyId: limited.rootKeyId, permissions }, { as });
    }
    const { code, stderr: problem } = await run("--from", "litellm");
    assert.equal(code, 0, problem);
    assert.equal(await count(), 2);
    const [created, ...others] = (await budgets()) as { budgetId: string }[];
    assert.equal(others.length, 0);
    for (const key of (await server.ok("apis.listKeys", { apiId }, { as })) as { budgetId: string }[]) {
      assert.equal(key.budgetId, created?.budgetId);
    }
  });

  it("rejects an owner whose written form belongs to another one", async (t) => {
    const { as, run, report } = await importer(t, "owner.csv", "key,externalId\nowned_x,a@b\nowned_y,acme");
    const taken = { externalId: "enc--a_40b", meta: { externalId: "somebody else" } };
    await server.ok("identities.createIdentity", taken, { as });
    const dry = JSON.parse((await run("--from", "generic", "--dry-run", "--json")).stdout);
    assert.deepEqual([dry.imported, dry.rejected], [1, 1]);
    assert.equal((await run("--from", "generic")).code, 1);
    const [first, second] = report();
    assert.deepEqual([first.outcome, second.outcome], ["rejected", "imported"]);
    assert.match(first.reason, /^has an owner whose written form is the external id of an identity with another/);
    const { meta } = (await server.ok("identities.getIdentity", { identity: "enc--a_40b" }, { as })) as {
      meta: object;
    };
    assert.deepEqual(meta, taken.meta);
  });

  it("a second run of a finished import changes nothing", async (t) => {
    const { run, count } = await importer(t, "keys.csv", csv);
    const first = await run("--from", "generic", "--json");
    const second = await run("--from", "generic", "--json");
    assert.deepEqual(second, first);
    assert.equal(await count(), 3);
  });

  it("a state file of another import is not used", async (t) => {
    const { run, directory } = await importer(t, "keys.csv", csv);
    await run("--from", "generic");
    writeFileSync(join(directory, "keys.csv"), `${csv}\nplain_7,more,,,`);
    const { code, stderr } = await run("--from", "generic");
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^latchkey: keys\.csv\.import-state\.json belongs to another import: the file has changed, or /,
    );
  });

  it("a dry run imports nothing, and reports every row, with --offline without a service", async (t) => {
    const { run, count, directory, linesOf } = await importer(t, "keys.csv", csv);
    for (const where of [[], ["--offline", "--url", "http://127.0.0.1:1"]]) {
      const { code, stdout } = await run("--from", "generic", "--dry-run", ...where);
      assert.equal(code, 1);
      assert.match(
        stdout,
        /^rejected \(row 3, third\): permissions\[0\] .*\n(.*\n)*8 rows: 3 can be imported, 5 rejected, 0 skipped\.\nkeys\.csv\.dry-run\.jsonl has a line for each row\.\n/,
      );
      assert.deepEqual(
        linesOf("keys.csv.dry-run.jsonl").map(({ outcome }) => outcome),
        ["valid", "valid", "rejected", "rejected", "rejected", "rejected", "rejected", "valid"],
      );
    }
    assert.equal(await count(), 0);
    assert(!existsSync(join(directory, "keys.csv.import-state.json")));
    const { code, stderr } = await run("--from", "generic", "--offline");
    assert.equal(code, 2);
    assert.match(stderr, /^latchkey: --offline: give --dry-run too/);
  });

  it("a dry run rejects what the import would reject", async (t) => {
    const lines = Array.from({ length: 45 }, (_, i) => `asked_${i},${i}`);
    const { run, count, directory } = await importer(t, "keys.csv", ["key,name", ...lines].join("\n"));
    const dryRun = (...args: string[]) => run("--from", "generic", "--dry-run", "--json", ...args);
    const first = JSON.parse((await dryRun()).stdout);
    assert.deepEqual([first.imported, first.rejected], [45, 0]);
    assert.equal((await run("--from", "generic")).code, 0);

    // The same keys from another file: they exist, except for one.
    writeFileSync(join(directory, "keys.csv"), ["key,name", ...lines, "asked_new,new"].join("\n"));
    const again = await dryRun("--migration-id", "again");
    const { imported, rejected, reasons } = JSON.parse(again.stdout);
    assert.deepEqual([again.code, imported, rejected], [1, 1, 45]);
    assert.equal(reasons[0].text, "a key with this hash exists already, or earlier in the file");
    assert.equal(await count(), 45);
    rmSync(join(directory, "keys.csv.import-state.json"));
    const real = JSON.parse((await run("--from", "generic", "--migration-id", "again", "--json")).stdout);
    assert.deepEqual([real.imported, real.rejected, real.reasons], [imported, rejected, reasons]);

    const missing = await dryRun("--api-id", "api_none");
    assert.match(missing.stderr, /^latchkey: Not Found \(404\): /);
    const other = await dryRun("--algorithm", "sha512", "--migration-id", "import-generic");
    assert.match(other.stderr, /^latchkey: Bad Request \(400\): .*holds hashes of sha256/);
  });

  it("a dry run says if the service is too old for it", async (t) => {
    const { run } = await importer(t, "keys.csv", csv);
    const old = createServer((request, response) => {
      request.resume();
      const errors = [
        { location: "/additionalProperties", message: "the body has a property 'dryRun' that is not known here" },
      ];
      const error = { title: "Bad Request", detail: "no", type: "/errors/application/invalid_input", errors };
      response
        .writeHead(400, { "content-type": "application/json" })
        .end(JSON.stringify({ meta: { requestId: "req_1" }, error }));
    });
    await new Promise<void>((resolve) => old.listen(0, "127.0.0.1", resolve));
    t.after(() => old.close());
    const { port } = old.address() as AddressInfo;
    const { code, stderr } = await run("--from", "generic", "--dry-run", "--url", `http://127.0.0.1:${port}`);
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: The service is too old for dry runs\. .* add --offline to this command\.\n$/);
  });

  it("reads JSON and JSON Lines", async (t) => {
    const items = [{ value: "aws_value_1", name: "a" }, { value: "aws_value_2", enabled: false }, { name: "none" }];
    const json = await importer(t, "keys.json", JSON.stringify({ items }));
    assert.match((await json.run("--from", "aws")).stdout, /^3 rows: 2 imported, 1 rejected/m);
    assert.equal((await server.verify("aws_value_2", {}, { as: json.as })).code, "DISABLED");
    const lines = await importer(t, "keys.jsonl", `${items.map((item) => JSON.stringify(item)).join("\n")}\n\nnull\n{`);
    assert.match((await lines.run("--from", "aws")).stdout, /^5 rows: 2 imported, 3 rejected/m);
  });

  it("stops with the reason of the service when the migration has another algorithm", async (t) => {
    const { run, apiId, as } = await importer(t, "keys.csv", `hash\n${hashSecret("a")}`);
    const keys = [{ hash: "0".repeat(128) }];
    await server.ok("keys.migrateKeys", { migrationId: "taken", apiId, algorithm: "sha512", keys }, { as });
    const { code, stderr } = await run("--from", "generic", "--migration-id", "taken");
    assert.equal(code, 1);
    assert.match(stderr, /The migration 'taken' holds hashes of sha512, not of sha256/);
  });

  it("finds the row that only the service rejects, and sends rows again that a broken call left", async (t) => {
    const {
      run,
      report,
      rejected: rejectedRows,
    } = await importer(
      t,
      "keys.jsonl",
      Array.from({ length: 100 }, (_, i) => JSON.stringify({ key: `k${i}`, name: i === 42 ? "bad" : "good" })).join(
        "\n",
      ),
    );
    const existing = new Set<string>([hashSecret("k7")]);
    let calls = 0;
    const fake = createServer(async (request, response) => {
      const { keys } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      const answer = (status: number, body: object) =>
        response
          .writeHead(status, { "content-type": "application/json" })
          .end(JSON.stringify({ meta: { requestId: "req_1" }, ...body }));
      if (keys.some(({ name }: { name: string }) => name === "bad")) {
        const errors = [{ location: "/properties/keys/items/properties/name", message: "keys[0].name is bad" }];
        return answer(400, {
          error: { title: "Bad Request", detail: "no", type: "/errors/application/invalid_input", errors },
        });
      }
      // The first call breaks off after one transaction, as after an error of the database.
      const taken = calls++ === 0 ? keys.slice(0, 20) : keys;
      const hashes = keys.map(({ hash }: { hash: string }) => hash);
      const migrated = taken.map(({ hash }: { hash: string }) => hash).filter((hash: string) => !existing.has(hash));
      for (const hash of migrated) existing.add(hash);
      const failed = hashes.filter((hash: string) => !migrated.includes(hash));
      return answer(200, { data: { migrated: migrated.map((hash: string) => ({ hash, keyId: "key_1" })), failed } });
    });
    await new Promise<void>((resolve) => fake.listen(0, "127.0.0.1", resolve));
    t.after(() => fake.close());
    const address = `http://127.0.0.1:${(fake.address() as AddressInfo).port}`;
    const { stdout, stderr } = await run("--from", "generic", "--url", address, "--json");
    assert.equal(stderr, "");
    const { rows, imported, present, rejected } = JSON.parse(stdout);
    assert.deepEqual({ rows, imported, present, rejected }, { rows: 100, imported: 98, present: 0, rejected: 2 });
    assert.equal(report().length, 100);
    assert.deepEqual(
      rejectedRows().map(({ row, reason }) => [row, reason.split(":")[0]]),
      [
        [8, "a key with this hash exists already, or earlier in the file"],
        [43, "/properties/keys/items/properties/name"],
      ],
    );
  });

  it("rejects keys that exist, also after an answer that the service has too many requests", async (t) => {
    const { run, report } = await importer(t, "keys.csv", "key,name\nlimited_1,first");
    const statuses: number[] = [];
    const fake = createServer(async (request, response) => {
      const { keys } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      const isLimited = statuses.length === 0;
      statuses.push(isLimited ? 429 : 200);
      const data = { migrated: [], failed: keys.map(({ hash }: { hash: string }) => hash) };
      response
        .writeHead(statuses.at(-1)!, { "content-type": "application/json", "retry-after": "0" })
        .end(
          JSON.stringify({ meta: { requestId: "req_1" }, ...(isLimited ? { error: { title: "Slow" } } : { data }) }),
        );
    });
    await new Promise<void>((resolve) => fake.listen(0, "127.0.0.1", resolve));
    t.after(() => fake.close());
    const address = `http://127.0.0.1:${(fake.address() as AddressInfo).port}`;
    const { code, stdout } = await run("--from", "generic", "--url", address, "--json");
    const { present, rejected } = JSON.parse(stdout);
    assert.deepEqual({ code, present, rejected }, { code: 1, present: 0, rejected: 1 });
    assert.equal(statuses[0], 429);
    assert.equal(report()[0].outcome, "rejected");
  });

  it("continues after a run that ended, with each row once in the report", async (t) => {
    const lines = Array.from({ length: 2_400 }, (_, i) => (i % 200 === 0 ? `,empty ${i + 1}` : `resumed_${i},good`));
    const {
      run,
      report,
      rejected: rejectedRows,
      directory,
    } = await importer(t, "keys.csv", `key,name\n${lines.join("\n")}`);
    let calls = 0;
    const proxy = createServer(async (request, response) => {
      // The second call is lost after the service has answered it.
      const body = Buffer.concat(await request.toArray());
      const reply = await fetch(`${importing.url}${request.url}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: request.headers.authorization! },
        body,
      });
      const text = await reply.text();
      if (++calls === 2)
        response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"title":"Stop"}}');
      else response.writeHead(reply.status, { "content-type": "application/json" }).end(text);
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      proxy.close();
      proxy.closeAllConnections();
    });
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const first = await run("--from", "generic", "--url", address);
    assert.match(first.stderr, /^latchkey: Stop \(401\)/);
    appendFileSync(join(directory, "keys.csv.report.jsonl"), `{"row":1001,"reason":"${"cut".repeat(10_000)}`);
    const { rows, imported, present, rejected } = JSON.parse(
      (await run("--from", "generic", "--url", address, "--json")).stdout,
    );
    assert.deepEqual(
      { rows, imported, present, rejected },
      { rows: 2_400, imported: 1_393, present: 995, rejected: 12 },
    );
    assert.deepEqual(
      report().map(({ row }) => row),
      Array.from({ length: 2_400 }, (_, i) => i + 1),
    );
    assert.deepEqual(
      rejectedRows().map(({ row }) => row),
      Array.from({ length: 12 }, (_, i) => i * 200 + 1),
    );
  });

  it("stops with the reason when an API does not exist, and continues later", async (t) => {
    const { run, count } = await importer(t, "keys.csv", csv);
    const { code, stderr } = await run("--from", "generic", "--api-id", "api_none");
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: Not Found \(404\): /);
    assert.equal(await count(), 0);
  });
});
