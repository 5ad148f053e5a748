/** `latchkey verify-store` on restored databases: what it accepts, and what it finds. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it, type TestContext } from "node:test";
import { Client } from "pg";
import { eventually, makeFolder, ROOT_KEY, run, type Server, start } from "./process.ts";
import { freshDatabase, runPostgresProgram } from "./services/postgres.ts";
import { sharedRedis } from "./services/redis.ts";

const VAULT_KEY = randomBytes(32).toString("base64");
const KEYS = 20;

/** The check with this name in the output of `verify-store --json`. */
interface Verified {
  code: number | null;
  stderr: string;
  ok: boolean;
  checks: { name: string; outcome: string; text: string }[];
  tables: Record<string, { rows: number; digest: string }>;
}

async function verify(directory: string, settings: Record<string, string>): Promise<Verified> {
  const { code, stdout, stderr } = await run(["verify-store", "--json"], { directory, settings });
  assert.match(stdout, /^\{/, stdout + stderr);
  return { code, stderr, ...JSON.parse(stdout) };
}

function wrong({ checks }: Verified): string[] {
  return checks.filter(({ outcome }) => outcome === "wrong").map(({ name, text }) => `${name}: ${text}`);
}

/** Keys with credits, roles, limits; some recoverable, some deleted. Returns those that verify. */
async function fill(server: Server): Promise<{ key: string; keyId: string }[]> {
  const { apiId } = await server.ok("apis.createApi", { name: "stored" });
  await server.ok("permissions.createRole", { name: "reader", permissions: ["documents.read"] });
  await server.ok("ratelimits.limit", { namespace: "mails", identifier: "a", limit: 5, duration: 60_000 });
  await server.ok("ratelimits.setOverride", { namespace: "mails", identifier: "vip", limit: 9, duration: 60_000 });
  const create = (_: unknown, i: number) =>
    server.ok("keys.createKey", {
      apiId,
      name: `key ${i}`,
      externalId: `customer_${i % 7}`,
      roles: ["reader"],
      recoverable: i % 3 === 0,
      ...(i % 2 === 0 && { credits: { remaining: 1_000 } }),
    });
  const keys: { key: string; keyId: string }[] = await Promise.all(Array.from({ length: KEYS }, create));
  const [permanent, kept] = keys.splice(-2);
  await server.ok("keys.deleteKey", { keyId: permanent!.keyId, permanent: true });
  await server.ok("keys.deleteKey", { keyId: kept!.keyId });
  return keys;
}

async function query(url: string, ...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

describe("a dump of PostgreSQL that was made while the service ran", () => {
  async function restored(t: TestContext) {
    const [source, target] = [await freshDatabase(), await freshDatabase()];
    t.after(() => Promise.all([source.drop(), target.drop()]));
    const settings = { DATABASE_URL: source.url, VAULT_KEY, REDIS_URL: await sharedRedis(), ANALYTICS: "on" };
    const directory = makeFolder(t);
    const server = await start({ directory, settings });
    const keys = await fill(server);
    // Spends and changes go on while the dump is made.
    const spent = keys[0]!;
    let isOver = false;
    let acknowledged = 0;
    const load = (async () => {
      for (; !isOver; acknowledged++) await server.ok("keys.verifyKey", { key: spent.key });
    })();
    await eventually("spends", () => acknowledged > 5);
    const before = acknowledged;
    const file = join(directory, "dump");
    runPostgresProgram("pg_dump", ["--format=custom", `--file=${file}`, source.url]);
    await eventually("spends after the dump", () => acknowledged > before + 5);
    isOver = true;
    await load;
    runPostgresProgram("pg_restore", ["--no-owner", "--exit-on-error", `--dbname=${target.url}`, file]);
    return { settings, server, keys, spent, before, source, target, directory };
  }

  it("is intact, and a service runs on it", async (t) => {
    const { settings, server, keys, spent, before, target } = await restored(t);
    const copy = makeFolder(t);
    const verified = await verify(copy, { ...settings, DATABASE_URL: target.url });
    assert.deepEqual(wrong(verified), []);
    assert.equal(verified.code, 0);
    assert.equal(verified.tables.keys!.rows, KEYS - 1);
    assert.match(verified.checks.find(({ name }) => name.startsWith("recoverable"))!.text, /^[1-9]\d* as a sample$/);
    assert(verified.checks.length >= 9);

    await server.kill("SIGTERM");
    const restoredServer = await start({
      directory: copy,
      settings: { ...settings, DATABASE_URL: target.url },
    });
    for (const { key } of keys.slice(1)) {
      assert.equal((await restoredServer.ok("keys.verifyKey", { key })).code, "VALID");
    }
    const { remaining } = (await restoredServer.ok("keys.getKey", { keyId: spent.keyId })).credits;
    assert(remaining <= 1_000 - before, `${remaining} credits, and ${before} were spent before the dump`);
    // Numbers continue after those of the copy: a change is seen, and an id is not given twice.
    await restoredServer.ok("keys.updateKey", { keyId: keys[1]!.keyId, name: "after" });
    await restoredServer.kill("SIGTERM");
    const after = await verify(copy, { ...settings, DATABASE_URL: target.url });
    assert.deepEqual(wrong(after), []);
    assert.notEqual(after.tables.keys!.digest, verified.tables.keys!.digest);
    assert.equal(after.tables.roles!.digest, verified.tables.roles!.digest);
  });

  it("shows what a bad copy lacks", async (t) => {
    const { settings, server, target } = await restored(t);
    await server.kill("SIGTERM");
    const damaged = { ...settings, DATABASE_URL: target.url };
    await query(
      target.url,
      "drop index keys_hash",
      "drop trigger announce_changes on changes",
      "alter table balances drop constraint balances_remaining_check",
      "update balances set remaining = -1 where pool_id = (select min(pool_id) from balances)",
      "alter table keys drop constraint keys_identity_id_fkey, add constraint keys_identity_id_fkey " +
        "foreign key (identity_id) references identities not valid",
      "alter table identities disable trigger all",
      "delete from identities where external_id = 'customer_1'",
      "insert into balances (pool_id, workspace_id, remaining) select 'pool_of_no_key', workspace_id, 1 from balances limit 1",
      "insert into budgets (id, workspace_id, name, name_folded, created_at) " +
        "select 'bud_of_bad_books', workspace_id, 'b', 'b', 1 from balances limit 1",
      "insert into balances (pool_id, workspace_id, remaining, granted, spent, lapsed, period, spent_before, watched) " +
        "select 'bud_of_bad_books', workspace_id, 1, 3, 1, 0, 0, 0, 0 from balances limit 1",
      "insert into budgets (id, workspace_id, name, name_folded, created_at) " +
        "select 'bud_of_no_balance', workspace_id, 'b', 'b', 1 from balances limit 1",
      "update keys set budget_id = 'bud_missing' where id = (select min(id) from keys where deleted_at is null)",
      "select setval('changes_sequence_seq', 1)",
      "update vault_secrets set sealed = 'A' || substr(sealed, 2) || 'A'",
    );
    const verified = await verify(makeFolder(t), damaged);
    assert.equal(verified.code, 1);
    assert.equal(verified.ok, false);
    assert.match(verified.stderr, /^latchkey: 9 of \d+ checks failed: .*Do not serve from this database/);
    const found = wrong(verified).join("\n");
    for (const expected of [
      /^schema: missing: index keys_hash, trigger announce_changes$/m,
      /^references: \d+ rows of keys without identities$/m,
      /^balances are not negative, unless they are watched: 1 rows break it$/m,
      /^every balance belongs to a key, a derived key, a budget or an identity: 1 rows break it$/m,
      /^the credits granted to a budget are spent, held, remaining or lapsed: 1 rows break it$/m,
      /^every budget has a balance with books: 1 rows break it$/m,
      /^the budget of every key exists: 1 rows break it$/m,
      /^sequences are ahead of the data: changes continues after 1, but has \d+$/m,
      /^recoverable keys can be decrypted: key_/m,
    ]) {
      assert.match(found, expected);
    }
  });

  it("needs the master key to check recoverable keys, and says which", async (t) => {
    const { settings, server, target } = await restored(t);
    const { VAULT_KEY: _, ...withoutKey } = settings;
    const verified = await verify(makeFolder(t), { ...withoutKey, DATABASE_URL: target.url });
    assert.equal(verified.code, 0);
    assert.match(
      verified.checks.find(({ outcome }) => outcome === "skipped")!.text,
      /LATCHKEY_VAULT_KEY.*[0-9a-f]{32}/,
    );
    await server.kill("SIGTERM");
  });
});

describe("the embedded database", () => {
  it("is verified, and damage is found", async (t) => {
    const directory = makeFolder(t);
    const settings = { DATA_DIR: join(directory, "data") };
    const server = await start({ directory, settings });
    await fill(server);
    // Beside the service.
    assert.deepEqual(wrong(await verify(directory, settings)), []);
    await server.kill("SIGTERM");

    const database = new DatabaseSync(join(directory, "data", "latchkey.db"), { enableForeignKeyConstraints: false });
    database.exec("drop index keys_pool; delete from apis; update sqlite_sequence set seq = 0 where name = 'changes'");
    database.close();
    const verified = await verify(directory, settings);
    assert.equal(verified.code, 1);
    assert.deepEqual(
      verified.checks.filter(({ outcome }) => outcome === "wrong").map(({ name }) => name),
      ["schema", "references", "sequences are ahead of the data"],
    );
  });

  it("that does not exist is an error", async (t) => {
    const directory = makeFolder(t);
    const { code, stderr } = await run(["verify-store"], { directory, settings: { ROOT_KEY } });
    assert.equal(code, 1);
    assert.match(stderr, /There is no database at /);
  });
});
