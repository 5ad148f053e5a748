/**
 * `latchkey import`: keys of other systems. The files in `imports/` have the shape of real exports. A key that the other
 * system accepted verifies here, and the report says of each row what was imported and what was not.
 *
 * The keys of Better Auth (1.7.5) and LiteLLM (1.106.2) were made by those programs; the table of LiteLLM is that of its
 * migrations, written by PostgreSQL. The dump of Unkey was written by mariadb-dump 10.11 from tables with the columns of
 * Unkey. The dumps of Better Auth, LiteLLM and Kong were written by pg_dump 15 from tables that the migrations of the first
 * two made, and that have the columns of Kong 3.9. The others, and the dump of LiteLLM with budgets, follow the documentation
 * of each system. Expiry times of Better Auth were moved to 2096.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { stores, TestServer } from "./harness.ts";
import { Importing } from "./importing.ts";
import { makeFolder } from "./process.ts";

const exportsFolder = fileURLToPath(new URL("imports/", import.meta.url));

interface ReportRow {
  row: number;
  name?: string;
  outcome: string;
  keyId?: string;
  reason?: string;
  mapped?: string[];
  notes?: { field: string; note: string }[];
}

for (const store of stores)
  describe(`keys of other systems: ${store}`, () => {
    const server = new TestServer({
      store,
      settings: { PORT: "0", VAULT_KEY: Buffer.alloc(32, 7).toString("base64") },
    });
    const importing = new Importing(server);

    /** An empty API in a workspace of its own, and a folder with the exports. */
    async function importer(t: TestContext) {
      const opened = await importing.open(makeFolder(t));
      const { as, directory } = opened;
      cpSync(exportsFolder, directory, { recursive: true });
      const reportOf = (file: string): ReportRow[] => opened.linesOf(file);
      const verify = async (key: string, body: object = {}) => {
        const { code, name, credits, ratelimits, identity, meta, permissions, expires, plan } = await server.verify(
          key,
          body,
          { as },
        );
        const owner = identity?.externalId;
        return { code, name, credits, ratelimits, owner, meta, permissions, expires, ...(plan && { plan }) };
      };
      return { ...opened, reportOf, verify };
    }

    type Importer = Awaited<ReturnType<typeof importer>>;

    /** Runs an import dry, then for real, then again, and returns the report, which says the same each time. */
    async function imports({ run, reportOf, count }: Importer, file: string, options: string[], prefix = file) {
      const dry = await run(file, ...options, "--dry-run");
      assert.equal(await count(), 0, dry.stderr);
      const real = await run(file, ...options);
      const report = reportOf(`${prefix}.report.jsonl`);
      assert.deepEqual(
        reportOf(`${prefix}.dry-run.jsonl`),
        report.map(({ keyId: _, ...row }) => (row.outcome === "imported" ? { ...row, outcome: "valid" } : row)),
      );
      assert.deepEqual(await run(file, ...options), real, "a finished import has nothing to do");
      assert.equal(await count(), report.filter(({ outcome }) => outcome === "imported").length);
      return { ...real, report };
    }

    type Limit = { name: string; limit: number; duration: number };
    /** The plans of a workspace: the name, what it was, and the limits of each. */
    const plansIn = async ({ as }: { as: string }) => {
      const plans = await server.ok("plans.listPlans", {}, { as });
      // Those of one millisecond have no order.
      plans.sort((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1));
      return plans.map(
        ({ name, meta, ratelimits }: { name: string; meta: { importedFrom: string }; ratelimits: Limit[] }) => [
          name,
          meta.importedFrom,
          ratelimits.map(({ name, limit, duration }) => `${name} ${limit} ${duration}`),
        ],
      );
    };
    const notesOf = ({ notes }: ReportRow) => notes!.map(({ field }) => field);

    it("Unkey, a dump of the database", async (t) => {
      const own = await importer(t);
      const several = await own.run("unkey-dump.sql", "--from", "unkey-dump", "--dry-run");
      assert.equal(several.code, 2);
      assert.match(
        several.stderr,
        /several APIs: choose one with --source-api\. It has api_docs \(documents\), api_mail \(mail\)\./,
      );
      const options = ["--from", "unkey-dump", "--source-api", "api_docs"];
      const { code, stdout, report } = await imports(own, "unkey-dump.sql", options, "unkey-dump.sql.api_docs");
      assert.equal(code, 1);
      assert.match(stdout, /^5 rows: 2 imported, 1 rejected, 2 skipped\.$/m);
      assert.deepEqual(
        report.map(({ outcome }) => outcome),
        ["imported", "imported", "skipped", "rejected", "skipped"],
      );
      assert.deepEqual(report[0]!.mapped, [
        "name",
        "externalId",
        "meta",
        "roles",
        "permissions",
        "expires",
        "enabled",
        "credits",
        "ratelimits",
      ]);
      assert.deepEqual(report[0]!.notes, [
        {
          field: "roles",
          note: "the role editor is created without permissions if it does not exist yet. At Unkey it has documents.write: give them to it",
        },
        {
          field: "identity.meta",
          note: "metadata of identities is not imported: set it with identities.updateIdentity",
        },
        {
          field: "identity.ratelimits",
          note: "limits of identities are not imported: set them with identities.updateIdentity",
        },
      ]);
      assert.deepEqual(notesOf(report[1]!), ["environment"]);
      const verified = await own.verify("docs_3ZfQ8vB1kLm9XyT2", { permissions: "documents.read" });
      assert.deepEqual(
        { ...verified, ratelimits: verified.ratelimits.length },
        {
          code: "VALID",
          name: 'It\'s \\ "ci"\nline',
          credits: 249,
          ratelimits: 1,
          owner: "acme",
          meta: { plan: "pro", note: 'a;b),("c"' },
          permissions: ["documents.read"],
          expires: Date.UTC(2096, 0, 31),
        },
      );
      assert.equal((await own.verify("docs_disabled000000001")).code, "DISABLED");
      for (const key of ["docs_deleted0000000001", "mail_otherapi000000001", "unkey_rootkey00001"]) {
        assert.equal((await own.verify(key)).code, "NOT_FOUND");
      }
    });

    it("Unkey, keys that are pending in a migration there", async (t) => {
      const own = await importer(t);
      const options = ["--source-api", "api_docs", "--algorithm", "prefixed-api-key"];
      const { code, report } = await imports(
        own,
        "unkey-dump.sql",
        ["--from", "unkey-dump", ...options],
        "unkey-dump.sql.api_docs.prefixed-api-key",
      );
      assert.equal(code, 0);
      assert.deepEqual(
        report.filter(({ outcome }) => outcome === "imported").map(({ name }) => name),
        ["pending"],
      );
      const migrationId = "import-unkey-dump-prefixed-api-key";
      assert.equal((await own.verify("acme_short_longpart4567890", { migrationId })).code, "VALID");
    });

    it("Unkey, through its API", async (t) => {
      const own = await importer(t);
      // The service has the same API: here it plays Unkey.
      const { key: other } = await server.workspace("unkey");
      const { apiId: sourceApi } = await server.ok("apis.createApi", { name: "at Unkey" }, { as: other });
      const members = {
        name: "recoverable",
        externalId: "acme",
        roles: ["editor"],
        permissions: ["documents.read"],
        credits: { remaining: 9, refill: { interval: "monthly", amount: 9, refillDay: 15 } },
        ratelimits: [{ name: "requests", limit: 5, duration: 60_000, autoApply: true }],
        meta: { plan: "pro" },
        recoverable: true,
      };
      await server.ok("permissions.createRole", { name: "editor" }, { as: other });
      await server.ok("permissions.createPermission", { name: "read", slug: "documents.read" }, { as: other });
      const { key } = await server.ok("keys.createKey", { apiId: sourceApi, ...members }, { as: other });
      const lost: string[] = [];
      for (let i = 0; i < 101; i++) {
        lost.push((await server.ok("keys.createKey", { apiId: sourceApi, name: `lost ${i}` }, { as: other })).key);
      }
      writeFileSync(join(own.directory, "unkey.key"), `${other}\n`);
      const options = [
        "--from",
        "unkey",
        "--source-api",
        sourceApi,
        "--source-url",
        importing.url,
        "--source-key-file",
        "unkey.key",
      ];
      const first = await own.run("unkey.jsonl", ...options, "--dry-run");
      assert.match(first.stderr, /^102 keys downloaded to unkey\.jsonl, with hashes instead of key strings\.\n$/);
      assert(!readFileSync(join(own.directory, "unkey.jsonl"), "utf8").includes(key));
      const second = await own.run("unkey.jsonl", ...options);
      assert.match(second.stderr, /^unkey\.jsonl exists and is imported as it is\./);
      assert.match(
        second.stdout,
        /^rejected \(101 rows, first row \d+, lost \d+\): has no key string: Unkey gives only those of recoverable keys\./m,
      );
      assert.match(second.stdout, /^102 rows: 1 imported, 101 rejected, 0 skipped\.$/m);
      const verified = await own.verify(key, { permissions: "documents.read" });
      assert.deepEqual(
        [verified.code, verified.name, verified.owner, verified.credits, verified.ratelimits.length],
        ["VALID", "recoverable", "acme", 8, 1],
      );
      assert.equal((await own.verify(lost[0]!)).code, "NOT_FOUND");
      rmSync(join(own.directory, "unkey.jsonl"));
      writeFileSync(join(own.directory, "unkey.key"), "wrong");
      const refused = await own.run("unkey.jsonl", ...options);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /^latchkey: .*\(401\)/);
      assert(!existsSync(join(own.directory, "unkey.jsonl")));
    });

    it("Unkey, through its API, when the list breaks off or does not end", async (t) => {
      const own = await importer(t);
      let broken = true;
      let calls = 0;
      const unkey = createServer((_, response) => {
        calls++;
        const data = [{ keyId: `key_${calls}`, plaintext: `plain_${calls}`, name: "n", enabled: true }];
        const pagination = { hasMore: true, cursor: broken && calls > 1 ? "same" : `c${calls}` };
        if (!broken && calls > 2) pagination.hasMore = false;
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ meta: { requestId: "req_1" }, data, pagination }));
      });
      await new Promise<void>((resolve) => unkey.listen(0, "127.0.0.1", resolve));
      t.after(() => unkey.close());
      const address = `http://127.0.0.1:${(unkey.address() as AddressInfo).port}`;
      writeFileSync(join(own.directory, "unkey.key"), "unkey_root");
      const options = [
        "--from",
        "unkey",
        "--source-api",
        "api_1",
        "--source-url",
        address,
        "--source-key-file",
        "unkey.key",
      ];
      const first = await own.run("unkey.jsonl", ...options);
      assert.equal(first.code, 1);
      assert.match(first.stderr, /gives a list of keys that does not end\./);
      assert(!existsSync(join(own.directory, "unkey.jsonl")));
      [broken, calls] = [false, 0];
      const second = await own.run("unkey.jsonl", ...options);
      assert.match(second.stdout, /^3 rows: 3 imported, 0 rejected, 0 skipped\.$/m);
      assert.equal((await own.verify("plain_3")).code, "VALID");
    });

    it("Better Auth", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "better-auth.csv", ["--from", "better-auth"]);
      assert.equal(code, 1);
      assert.match(
        stdout,
        /^rejected \(row 4, two-hourly\): has a refill every 7200000 ms\. Refills here are hourly, daily, weekly or monthly/m,
      );
      assert.match(stdout, /^4 rows: 3 imported, 1 rejected, 0 skipped\.$/m);
      assert.deepEqual(report.slice(0, 3).map(notesOf), [["refillInterval"], [], []]);
      const verified = await own.verify("acme_fAAuULOtgaoFJJMbbRKbGWnGrVNzygeNljcIzCmkmkbzgLtMGNBBnoQzXYxOmDEl", {
        permissions: "files.read AND files.write",
      });
      assert.deepEqual(
        { ...verified, ratelimits: verified.ratelimits.map(({ limit, duration }: never) => [limit, duration]) },
        {
          code: "VALID",
          name: "ci",
          credits: 98,
          ratelimits: [[60, 60_000]],
          owner: "J8D0OyCyZR6tHrBpDj3USXwmQwGp57Ga",
          meta: { plan: "pro" },
          permissions: ["files.read", "files.write"],
          expires: Date.parse("2096-09-18T11:20:06.625Z"),
        },
      );
      assert.equal(
        (await own.verify("HgXLKYfEhIQwOMNZpPoOuxcGCtDyixKeFMkheQSEKqNXZcvDjCCidqKvUyGnOric")).code,
        "VALID",
      );
      assert.equal(
        (await own.verify("FYMtEcibrlyRMAzmxdbCxwIpTzOeETQKRtXEWWcYmBrtzaafKrFxrBpeDedrtgWP")).code,
        "DISABLED",
      );
    });

    it("Better Auth without hashing", async (t) => {
      const own = await importer(t);
      await imports(own, "better-auth-plain.csv", ["--from", "better-auth"]);
      const key = "acme_HiGkMkMSLxQplHFwOkZqvbeGguLmnPVzxtgvqtyBMWPZtFOFXjTiuGpUSFHDqjYg";
      assert.equal((await own.verify(key, { permissions: "files.read" })).code, "VALID");
    });

    it("LiteLLM", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "litellm.csv", ["--from", "litellm"]);
      assert.equal(code, 0);
      assert.match(stdout, /^skipped \(row 3, sk-\.\.\.u_xw\): is a session of the dashboard of LiteLLM\.$/m);
      assert.match(stdout, /^user_id \(row 4, ci\): is in another table: give a dump of the whole database/m);
      assert.match(stdout, /^4 rows: 3 imported, 0 rejected, 1 skipped\.$/m);
      assert.deepEqual(
        [report[0], report[1], report[3]].map((row) => notesOf(row!)),
        [[], ["team_id"], ["user_id", "max_parallel_requests", "models", "tpm_limit"]],
      );
      const verified = await own.verify("sk-7FNTLzuIrw5gjKlPruLYkA");
      assert.deepEqual(
        { ...verified, ratelimits: verified.ratelimits.map(({ limit, duration }: never) => [limit, duration]) },
        {
          code: "VALID",
          name: "ci",
          credits: 11_249_999,
          ratelimits: [[60, 60_000]],
          owner: "user-1",
          meta: {
            plan: "pro",
            litellm: { models: ["gpt-4o", "claude-sonnet"], spend: 1.25, maxParallelRequests: 4 },
          },
          permissions: undefined,
          expires: Date.parse("2095-05-04T11:27:36.130Z"),
        },
      );
      assert.equal((await own.verify("sk-HhEEXqk2O3iPBo0m3cBf0g")).code, "VALID");
      assert.equal((await own.verify("sk-RQkGguHTuPmi-e1K8X4i4g")).code, "DISABLED");
      assert.equal((await own.verify("sk-_wcjcVwg3RKduLROlZu_xw")).code, "NOT_FOUND");
    });

    it("Better Auth, a dump of PostgreSQL", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "better-auth.sql", ["--from", "better-auth"]);
      assert.equal(code, 1);
      assert.match(stdout, /^rejected \(row 3, two-hourly\): has a refill every 7200000 ms\./m);
      assert.match(stdout, /^4 rows: 3 imported, 1 rejected, 0 skipped\.$/m);
      assert.deepEqual(notesOf(report[3]!), ["refillInterval"]);
      const verified = await own.verify("acme_nZTeMqNGqJFzcjKDCylQVVkBmUwZnlzFhTwzxDJtNtzojmaOYRPKUlvYXGcKNHFa", {
        permissions: "files.read AND files.write",
      });
      assert.deepEqual(
        { ...verified, ratelimits: verified.ratelimits.map(({ limit, duration }: never) => [limit, duration]) },
        {
          code: "VALID",
          name: "ci",
          credits: 98,
          ratelimits: [[60, 60_000]],
          owner: "L3cVcoIz118toNguBGmRhGx2jrrgyYI0",
          meta: { plan: "pro", note: "tab\there \\ it's\nnew" },
          permissions: ["files.read", "files.write"],
          expires: Date.parse("2096-09-18T11:20:06.625Z"),
        },
      );
      for (const [key, expected] of [
        ["HozCCWVyAqvlxdQEVXxKpZokjaytJWcGyFmapFjDyrwFjfAqErmftxCNfMQFMEoS", "VALID"],
        ["ufXqTGRuTHRrDdIazBcojMMQXzPpgWbWNOrxzfQarCWoEZLYNTvFCQGGdKdnhvKn", "DISABLED"],
        ["PcOWXCzcjyFZsYvCNRWkHFVyAXKdsvieOHoDEAHPlSNxxWkJHphrbdBxQEGVSbyY", "NOT_FOUND"],
      ] as const) {
        assert.equal((await own.verify(key)).code, expected);
      }
    });

    it("LiteLLM, a dump of PostgreSQL", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "litellm.sql", ["--from", "litellm"]);
      assert.equal(code, 0);
      assert.match(stdout, /^4 rows: 3 imported, 0 rejected, 1 skipped\.$/m);
      assert.deepEqual(notesOf(report[3]!), ["max_parallel_requests", "models", "tpm_limit"]);
      const { code: answer, meta } = await own.verify("sk-7FNTLzuIrw5gjKlPruLYkA");
      assert.equal(answer, "VALID");
      assert.deepEqual(
        [meta.plan, meta.note, meta.litellm.models, meta.litellm.spend],
        ["pro", "tab\there \\ it's; \n(1)", ["gpt-4o", "claude, sonnet"], 0.0000125],
      );
      assert.equal((await own.verify("sk-RQkGguHTuPmi-e1K8X4i4g")).code, "DISABLED");
    });

    it("LiteLLM, a dump with budgets of teams, users and organizations", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "litellm-budgets.sql", ["--from", "litellm"]);
      assert.equal(code, 1);
      assert.match(stdout, /^10 rows: 8 imported, 2 rejected, 0 skipped\.$/m);
      const rejected = report.filter(({ outcome }) => outcome === "rejected");
      assert.deepEqual(
        rejected.map(({ name, reason }) => [name, reason]),
        [
          [
            "in-quarterly-team",
            "belongs to litellm team team-quarterly, which has a budget_duration that no refill here has: change it to 1h, 1d, 7d or 30d",
          ],
          ["negative", "has a max_budget that is not from 0 to 1,000,000,000 dollars"],
        ],
      );
      const notes = report.map(({ name, notes = [] }) => [name, ...notes.map(({ field, note }) => `${field} ${note}`)]);
      const ofTeam = "team_id of its team are not imported: rpm_limit, models";
      assert.deepEqual(
        notes.filter(([, note]) => note !== undefined),
        [
          ["in-team", ofTeam],
          ["of-member", ofTeam, "team_id of its membership are not imported: soft_budget, rpm_limit"],
          ["own-budget", notes[5]![1]],
          ["of-blocked-team", "team_id its team is blocked, so it is disabled here"],
          ["of-table", "budget_id of its budget are not imported: soft_budget"],
          ["of-lost-team", notes[9]![1]],
        ],
      );
      assert.match(notes[5]![1]!, /^tpm_limit becomes the limit `tokens`/);
      assert.match(notes[9]![1]!, /^team_id is in another table/);

      const budgets = await server.ok("budgets.listBudgets", {}, { as: own.as });
      const names = new Map(budgets.map(({ budgetId, name }: Record<string, unknown>) => [budgetId, name]));
      interface Shown {
        name: string;
        parentId?: string;
        unit: string;
        remaining: number;
        refill?: { interval: string; amount: number };
        meta: { importedFrom: string };
      }
      const shown = (budgets as Shown[]).map(({ name, parentId, unit, remaining, refill, meta }) => {
        const plan = refill && [refill.interval, refill.amount];
        return { name, parent: names.get(parentId), unit, remaining, refill: plan, ...meta };
      });
      const unit = "usd_micro";
      const none = { parent: undefined, unit, refill: undefined };
      assert.deepEqual(
        shown.toSorted((a, b) => a.name.localeCompare(b.name)),
        [
          { ...none, name: "Acme", remaining: 600_000_000, importedFrom: "litellm organization org-1" },
          { ...none, name: "Ada", remaining: 0, importedFrom: "litellm user user-1" },
          {
            name: "Search",
            parent: "Acme",
            unit,
            remaining: 74_500_000,
            refill: ["monthly", 100_000_000],
            importedFrom: "litellm team team-search",
          },
          {
            name: "user-2",
            parent: "Search",
            unit,
            remaining: 6_000_000,
            refill: ["weekly", 10_000_000],
            importedFrom: "litellm team team-search user user-2",
          },
        ],
      );

      const spend = async (name: string, cost: number) => {
        const { code, credits, budgets = [] } = await server.verify(`sk-test-${name}`, { credits: { cost } }, own);
        return [code, credits, ...budgets.map(({ name, remaining }: Record<string, unknown>) => [name, remaining])];
      };
      const [search, acme] = [
        ["Search", 74_499_999],
        ["Acme", 599_999_999],
      ];
      assert.deepEqual(await spend("in-team", 1), ["VALID", undefined, search, acme]);
      assert.deepEqual((await spend("of-member", 6_000_001)).slice(0, 3), [
        "USAGE_EXCEEDED",
        undefined,
        ["user-2", 6_000_000],
      ]);
      assert.deepEqual(await spend("personal", 1), ["USAGE_EXCEEDED", undefined, ["Ada", 0]]);
      assert.deepEqual(await spend("in-free-team", 1), ["VALID", undefined, ["Acme", 599_999_998]]);
      assert.deepEqual(await spend("own-budget", 1), ["VALID", 11_249_999]);
      assert.equal((await own.verify("sk-test-of-blocked-team")).code, "DISABLED");
      const { credits, ratelimits } = await own.verify("sk-test-of-table", { credits: { cost: 500_000 } });
      // Its own limit comes before that of the plan.
      assert.deepEqual([credits, ratelimits.length, ratelimits[0].limit], [2_000_000, 1, 7]);
      assert.deepEqual(await plansIn(own), [["budget-hourly", "litellm budget budget-hourly", ["requests 9 60000"]]]);
      const named = { ratelimits: [{ name: "tokens", cost: 900 }] };
      assert.equal((await own.verify("sk-test-own-budget", named)).code, "VALID");
      assert.equal((await own.verify("sk-test-own-budget", named)).code, "RATE_LIMITED");

      // Another API's import of the same teams finds their budgets, which are as they were.
      rmSync(join(own.directory, "litellm-budgets.sql.import-state.json"));
      await own.run("litellm-budgets.sql", "--from", "litellm");
      assert.equal((await server.ok("budgets.listBudgets", {}, { as: own.as })).length, budgets.length);
      assert.equal((await plansIn(own)).length, 1);
    });

    it("a CSV of hashes in each encoding", async (t) => {
      const own = await importer(t);
      const hashes = (["hex", "base64", "base64url"] as const).map((encoding) =>
        createHash("sha256").update(`own_${encoding}`).digest(encoding),
      );
      writeFileSync(join(own.directory, "hashes.csv"), `hash\n${hashes.join("\n")}\nmd5:d41d8cd98f00b204\n`);
      const { stdout } = await imports(own, "hashes.csv", ["--from", "generic"]);
      assert.match(stdout, /^4 rows: 3 imported, 1 rejected, 0 skipped\.$/m);
      for (const encoding of ["hex", "base64", "base64url"]) {
        assert.equal((await own.verify(`own_${encoding}`)).code, "VALID");
      }
    });

    it("Kong, credentials and consumers of the Admin API", async (t) => {
      const own = await importer(t);
      const options = ["--from", "kong", "--with", "kong-consumers.json"];
      const { code, report } = await imports(own, "kong-key-auths.json", options);
      assert.equal(code, 0);
      assert.deepEqual(report.map(notesOf), [[], ["consumer"]]);
      const first = await own.verify("IkVd1WBEXv6K8ZQf3mYpT0nRs7uLaGcH");
      assert.deepEqual([first.code, first.owner, first.meta], ["VALID", "acme", { tags: ["production"] }]);
      const second = await own.verify("globex-own-key");
      assert.deepEqual([second.code, second.owner], ["VALID", "d1f5b2f4-1c1b-45c4-8f4e-9b6cfe8d3a02"]);
      assert(second.expires > Date.UTC(2050));
    });

    it("Kong, a declarative configuration", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "kong-config.json", ["--from", "kong"]);
      assert.equal(code, 0);
      assert.match(stdout, /^3 rows: 2 imported, 0 rejected, 1 skipped\.$/m);
      assert.deepEqual(
        report.map(({ reason }) => reason),
        [undefined, undefined, "is a consumer without credentials of key-auth"],
      );
      assert.deepEqual(notesOf(report[0]!), ["acls"]);
      const { code: answer, owner, meta } = await own.verify("initech-key-2");
      assert.deepEqual([answer, owner, meta], ["VALID", "initech", { tags: ["old"], kong: { groups: ["admins"] } }]);
    });

    const limitsOf = ({ ratelimits }: { ratelimits?: { name: string; limit: number; duration: number }[] }) =>
      ratelimits?.map(({ name, limit, duration }) => [name, limit, duration]);

    it("Kong, a dump of PostgreSQL", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "kong.sql", ["--from", "kong"]);
      assert.equal(code, 0);
      assert.match(stdout, /^3 rows: 3 imported, 0 rejected, 0 skipped\.$/m);
      assert.deepEqual(report.map(notesOf), [
        ["acls", "plugins"],
        ["plugins", "externalId"],
        ["plugins", "externalId"],
      ]);
      const first = await own.verify("IkVd1WBEXv6K8ZQf3mYpT0nRs7uLaGcH");
      assert.deepEqual(
        [first.code, first.owner, first.meta],
        ["VALID", "acme", { tags: ["production", "eu, west"], kong: { groups: ["admins", "editors"] } }],
      );
      assert.deepEqual(limitsOf(first), [
        ["hour", 1_000, 3_600_000],
        ["minute", 60, 60_000],
      ]);
      // Its consumer has an ip-restriction.
      assert.equal((await own.verify('own \\key; it\'s\tfür "x"')).code, "FORBIDDEN");
      const second = await own.verify('own \\key; it\'s\tfür "x"', { clientIp: "10.1.2.3" });
      assert.deepEqual(
        [second.code, second.owner, second.expires, second.ratelimits],
        ["VALID", "enc--tab_09here_20_5C_20it_27s", Date.UTC(2096, 0, 31), undefined],
      );
      assert.equal((await own.verify("expired-already")).code, "EXPIRED");
      for (const key of ["in a function", "not-a-key"]) assert.equal((await own.verify(key)).code, "NOT_FOUND");
    });

    it("Kong, a declarative configuration of decK as YAML", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(own, "kong.yaml", ["--from", "kong"]);
      assert.equal(code, 1);
      assert.match(stdout, /^6 rows: 3 imported, 2 rejected, 1 skipped\.$/m);
      assert.deepEqual(
        report.map(({ outcome, reason }) => reason ?? outcome),
        [
          "imported",
          "imported",
          "imported",
          "is a consumer without credentials of key-auth",
          "has a reference in the place of its key, which is in a vault or a variable: write the key there",
          "has a key that is no text: put it in quotes",
        ],
      );
      assert.deepEqual(
        report.map(({ name }) => name),
        ["Acme Inc.", "Acme Inc.", "globex", "initech", "hooli", "hooli"],
      );
      assert.deepEqual(notesOf(report[0]!), ["acls", "plugins"]);
      assert.deepEqual(report[0]!.mapped?.includes("plan"), true);
      assert.deepEqual(await plansIn(own), [["gold", "kong consumer group gold", ["60 s 500 60000"]]]);
      const first = await own.verify("IkVd1WBEXv6K8ZQf3mYpT0nRs7uLaGcH");
      assert.deepEqual(
        [first.code, first.owner, first.plan, first.meta],
        [
          "VALID",
          "acme",
          "gold",
          { tags: ["production", "eu, west"], kong: { groups: ["admins", "editors"], consumerGroups: ["gold"] } },
        ],
      );
      assert.deepEqual(limitsOf(await own.verify("0123456789")), [
        ["hour", 1_000, 3_600_000],
        ["minute", 60, 60_000],
        ["60 s", 500, 60_000],
      ]);
      const second = await own.verify('own \\key; it\'s "x"');
      assert.deepEqual([second.code, second.owner], ["VALID", "globex"]);
      // It is in the group too, but in Kong a plugin of the consumer comes before the same plugin of a group.
      assert.deepEqual(limitsOf(second), [
        ["1 s", 25, 10_000],
        ["60 s", 5, 60_000],
      ]);
      assert.deepEqual([second.plan, notesOf(report[2]!)], [undefined, ["groups"]]);
    });

    it("Kong, a declarative configuration with its lists at the top", async (t) => {
      const own = await importer(t);
      const { code, report } = await imports(own, "kong-export.yaml", ["--from", "kong"]);
      assert.equal(code, 0);
      assert.deepEqual(report.map(notesOf), [["acls", "plugins"]]);
      const { code: answer, owner, meta } = await own.verify("umbrella-own-key");
      assert.deepEqual([answer, owner, meta], ["VALID", "umbrella", { kong: { groups: ["partners"] } }]);
    });

    it("Tyk", async (t) => {
      const own = await importer(t);
      const { code, stdout, report } = await imports(
        own,
        "tyk.jsonl",
        ["--from", "tyk", "--source-api", "orders"],
        "tyk.jsonl.orders",
      );
      assert.equal(code, 1);
      assert.match(stdout, /^7 rows: 3 imported, 2 rejected, 2 skipped\.$/m);
      assert.match(stdout, /^rejected \(row 3, murmur\): is stored as murmur64, which is no cryptographic hash/m);
      assert.match(stdout, /^rejected \(row 4, murmur32\): is stored as murmur32,/m);
      assert.deepEqual(
        report.filter(({ outcome }) => outcome === "skipped").map(({ name, reason }) => [name, reason]),
        [
          ["basic", "is a user of basic authentication"],
          ["other api", "has no access to the API of --source-api"],
        ],
      );
      const made =
        "eyJvcmciOiI1ZTlkOTU0NGExZGNkNjAwMDFkMGVkMjAiLCJpZCI6ImI3YjFjN2E0YzJmNjRkY2E4YTBmMGU1ZDNkOGExZjEwIiwiaCI6InNoYTI1NiJ9";
      const first = await own.verify(made);
      assert.deepEqual(
        { ...first, ratelimits: first.ratelimits.map(({ name, limit, duration }: never) => [name, limit, duration]) },
        {
          code: "VALID",
          name: "orders app",
          credits: undefined,
          ratelimits: [
            ["quota", 10_000, 86_400_000],
            ["rate", 25, 10_000],
          ],
          owner: "dev-1",
          meta: { tyk_developer_id: "dev-1", plan: "pro", tyk: { tags: ["eu"], apis: ["orders"] } },
          permissions: undefined,
          expires: 3_976_214_400_000,
        },
      );
      assert.deepEqual(notesOf(report[0]!), ["quota_remaining"]);
      assert.equal((await own.verify("acme-own-key")).code, "DISABLED");
      const plain = await own.verify("5e9d9544a1dcd60001d0ed201f1e4cbc2a9b4a0d8c41b0d2a3f4e5d6");
      assert.deepEqual([plain.code, plain.credits], ["VALID", 39]);
      assert.deepEqual(notesOf(report[4]!), ["allowed_urls", "apply_policies"]);
    });

    it("Amazon API Gateway, keys with their usage plans", async (t) => {
      const own = await importer(t);
      const plans = ["aws-usage-plans.json", "aws-plan-keys-c7y23b.json", "aws-plan-keys-glvrsr.json"];
      const { code, stdout, report } = await imports(own, "aws-api-keys.json", ["--from", "aws", "--with", ...plans]);
      assert.equal(code, 1);
      assert.match(
        stdout,
        /^rejected \(row 3, exported without its value\): has no value; export the keys with --include-values\.$/m,
      );
      assert.deepEqual(report.slice(0, 2).map(notesOf), [["throttle.burstLimit", "quota"], ["quota"]]);
      const first = await own.verify("8bklk8bl1k3sB38D9B3l0enyWT8c09B30lkq0blk");
      assert.deepEqual(
        { ...first, ratelimits: first.ratelimits.map(({ name, limit, duration }: never) => [name, limit, duration]) },
        {
          code: "VALID",
          name: "orders partner",
          credits: 4_999,
          ratelimits: [["throttle", 25, 10_000]],
          owner: "AWS-cust-1",
          meta: { description: "first partner", tags: { team: "sales" }, usagePlanIds: ["c7y23b"] },
          permissions: undefined,
          plan: "orders",
          expires: undefined,
        },
      );
      assert.equal((await own.verify("kD2v9Qm4tX7cR1zN8bY6pL3hW5sJ0gFa2uE4oIqT")).code, "DISABLED");
      const made = [
        ["orders", "aws usage plan c7y23b", ["throttle 25 10000"]],
        ["weekly", "aws usage plan glvrsr", ["quota 700 604800000"]],
      ];
      assert.deepEqual(await plansIn(own), made);

      // One change of the plan is for all its keys, and another import leaves it as it is.
      const raised = { name: "throttle", limit: 99, duration: 10_000, autoApply: true };
      await server.ok("plans.updatePlan", { plan: "orders", ratelimits: [raised] }, { as: own.as });
      rmSync(join(own.directory, "aws-api-keys.json.import-state.json"));
      await own.run("aws-api-keys.json", "--from", "aws", "--with", ...plans);
      assert.deepEqual(await plansIn(own), [["orders", "aws usage plan c7y23b", ["throttle 99 10000"]], made[1]]);
      const { ratelimits } = await own.verify("8bklk8bl1k3sB38D9B3l0enyWT8c09B30lkq0blk");
      assert.equal(ratelimits[0].limit, 99);
    });

    it("Amazon API Gateway, only the keys of one API", async (t) => {
      const own = await importer(t);
      const plans = ["aws-usage-plans.json", "aws-plan-keys-c7y23b.json", "aws-plan-keys-glvrsr.json"];
      const options = ["--from", "aws", "--source-api", "a1b2c3d4e5", "--with", ...plans];
      const { code, report } = await imports(own, "aws-api-keys.json", options, "aws-api-keys.json.a1b2c3d4e5");
      assert.equal(code, 0);
      assert.deepEqual(
        report.map(({ outcome }) => outcome),
        ["imported", "skipped", "skipped"],
      );
    });

    it("a dump is recognized by its content, and an archive of pg_dump refused", async (t) => {
      const { run, directory } = await importer(t);
      const name = (file: string) => join(directory, file);
      cpSync(name("better-auth.sql"), name("backup.dump"));
      const { stdout } = await run("backup.dump", "--from", "better-auth", "--dry-run");
      assert.match(stdout, /^4 rows: 3 can be imported, 1 rejected, 0 skipped\.$/m);
      writeFileSync(name("archive"), "PGDMP\x01\x0e\0");
      mkdirSync(name("folder.sql"));
      for (const [file, message] of [
        [
          "archive",
          /archive is a dump in the custom format of pg_dump\. Convert it: pg_restore --file=dump\.sql archive\.$/m,
        ],
        ["folder.sql", /folder\.sql is a folder\. To convert a dump in the directory format/],
        ["litellm.sql", /litellm\.sql has no table apikey\. It has LiteLLM_SpendLogs, LiteLLM_UserTable, LiteLLM_V/],
      ] as const) {
        const { code, stderr } = await run(file, "--from", "better-auth", "--dry-run");
        assert.equal(code, 1, file);
        assert.match(stderr, message);
      }
    });

    it("options that do not belong to the system are refused", async (t) => {
      const { run } = await importer(t);
      for (const [args, message] of [
        [["tyk.jsonl", "--from", "tyk", "--with", "tyk.jsonl"], /--with: keys from tyk need no other files\./],
        [["tyk.jsonl", "--from", "kong", "--source-api", "x"], /--source-api: rows from kong do not name an API\./],
        [["tyk.jsonl", "--from", "unkey", "--source-api", "x"], /--source-api: give --source-key-file too/],
        [["tyk.jsonl", "--from", "tyk", "--source-key-file", "x"], /keys from tyk cannot be downloaded/],
        [
          ["tyk.jsonl", "--from", "tyk", "--algorithm", "sha512"],
          /--algorithm: keys from tyk are hashed with sha256\./,
        ],
        [["unkey-dump.sql", "--from", "unkey"], /For a dump of the database as SQL, give --from unkey-dump\./],
        [["unkey-dump.sql", "--from", "tyk"], /--from tyk reads csv, json, jsonl, yaml, not SQL\./],
        [["better-auth.csv", "--from", "unkey-dump"], /reads a dump of the database as SQL, not csv\./],
        [
          ["unkey-dump.sql", "--from", "unkey-dump", "--source-api", "api_none"],
          /the dump has no such API\. It has api_docs/,
        ],
        [["aws-api-keys.json", "--from", "aws", "--source-api", "x"], /Give the plans with --with\./],
        [["aws-api-keys.json", "--from", "aws", "--with", "kong-config.json"], /a file has no list `items`/],
      ] as const) {
        const { code, stderr } = await run(...args);
        assert.equal(code, 2, args.join(" "));
        assert.match(stderr, message);
      }
    });
  });
