/** Moving a store with the real program, while a service serves from it. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it, type TestContext } from "node:test";
import { Client } from "pg";
import { newSealingKey } from "../../engine/src/crypto/seal.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { type FoundTable, findTables } from "../src/platform/store/catalog.ts";
import { openPostgresCopy } from "../src/platform/store/move/postgres.ts";
import { openSqliteCopy } from "../src/platform/store/move/sqlite.ts";
import { notCopied, tablesToCopy } from "../src/platform/store/move/tables.ts";
import { eventually, launch, makeFolder, Program, ROOT_KEY, run, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const main = new URL("../src/main.ts", import.meta.url).pathname;

async function fresh(t: TestContext): Promise<string> {
  const { url, drop } = await freshDatabase();
  t.after(drop);
  return url;
}

interface Report {
  tables: Record<string, { rows: number; digest: string }>;
  stoppedMs: number;
}

/** Starts to move the store of the data folder. */
function begin(directory: string, to: string, args: string[] = [], settings: Record<string, string> = {}): Program {
  return new Program([main, "migrate-store", "--to", to, "--json", ...args], {
    directory,
    settings: { DATA_DIR: join(directory, "data"), ...settings },
  });
}

/** The exit code of a program that ends by itself. One that does not is shown. */
async function codeOf(program: Program): Promise<number | null> {
  await eventually("the program to end", () => program.hasEnded).catch((error: Error) => {
    throw new Error(`${error.message} Its output:\n${program.output}`, { cause: error });
  });
  return (await program.ended).code;
}

async function reportOf(program: Program): Promise<Report> {
  const code = await codeOf(program);
  assert.equal(code, 0, program.output);
  return JSON.parse(program.stdout);
}

const move = (...given: Parameters<typeof begin>) => reportOf(begin(...given));

async function rejected(program: Program): Promise<string> {
  const code = await codeOf(program);
  assert.equal(code, 1, program.output);
  const lines = program.stderr.split("\n").filter((line) => line.startsWith("latchkey: "));
  assert.equal(lines.length, 1, program.output);
  return lines[0]!;
}

/** Runs one statement in PostgreSQL. */
async function query(url: string, text: string): Promise<Record<string, string>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const verify = (server: Server, key: string, input = {}) => server.ok("keys.verifyKey", { key, ...input });

/** Waits until the command prints a line that begins with this step. */
const reaches = (program: Program, step: string) =>
  eventually(`the step "${step}"`, () => {
    if (program.hasEnded) throw new Error(`It ended before "${step}": ${program.output}`);
    return program.stderr.includes(step);
  });

/** A service with `count` keys that have credits, identities, roles and limits among them. */
async function serveWithKeys(directory: string, count: number, settings: Record<string, string> = {}) {
  const server = await start({ directory, settings });
  const { apiId } = await server.ok("apis.createApi", { name: "orders" });
  const keys: { keyId: string; key: string }[] = [];
  for (let number = 0; number < count; number += 10) {
    const created = Array.from({ length: 10 }, (_, at) =>
      server.ok("keys.createKey", {
        apiId,
        name: `key ${number + at} ä 😀`,
        externalId: `customer_${number + at}`,
        credits: { remaining: 1_000_000 },
        recoverable: at === 0,
        ...(at === 1 && { permissions: ["documents.read"] }),
        ...(at === 2 && { ratelimits: [{ name: "calls", limit: 5, duration: 3_600_000, autoApply: true }] }),
      }),
    );
    keys.push(...(await Promise.all(created)));
  }
  return { server, apiId, keys };
}

/** Calls a service with random writes until it is stopped, and keeps what was acknowledged. */
class Writers {
  readonly created = new Map<string, string>();
  readonly deleted = new Set<string>();
  readonly names = new Map<string, string>();
  /** Credits spent by key. A call without an answer makes a key uncertain. */
  readonly spent = new Map<string, number>();
  readonly statuses = new Map<number, number>();
  unavailable = 0;
  #stopped = false;
  readonly #writing: Promise<void>;

  constructor(server: Server, apiId: string, keys: readonly { keyId: string; key: string }[], seed: number) {
    const random = seededRandom(seed);
    const call = async (operation: string, body: object) => {
      const { status, body: answer } = await server.call(operation, body);
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      if (status === 503) this.unavailable++;
      else assert.equal(status, 200, JSON.stringify(answer));
      return status === 200 ? answer.data : undefined;
    };
    const loop = async (own: readonly { keyId: string; key: string }[]) => {
      for (let number = 0; !this.#stopped; number++) {
        const { keyId, key } = own[random.below(own.length)]!;
        switch (random.below(4)) {
          case 0: {
            const created = await call("keys.createKey", { apiId, externalId: `of_${keyId}` });
            if (!created) break;
            this.created.set(created.keyId, created.key);
            // Half of them are deleted for good soon after.
            if (number % 2 === 0 && (await call("keys.deleteKey", { keyId: created.keyId, permanent: true }))) {
              this.created.delete(created.keyId);
              this.deleted.add(created.keyId);
            }
            break;
          }
          case 1:
            if (await call("keys.updateKey", { keyId, name: `name ${number}` }))
              this.names.set(keyId, `name ${number}`);
            break;
          default: {
            const answer = await call("keys.verifyKey", { key });
            if (!answer) break;
            assert.equal(answer.code, "VALID");
            this.spent.set(keyId, (this.spent.get(keyId) ?? 0) + 1);
          }
        }
      }
    };
    this.#writing = loop(keys.filter((_, at) => at % 10 > 3));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#writing;
  }

  /** Every acknowledged write is there, and credits to the unit. */
  async check(server: Server): Promise<void> {
    const all = <T>(items: Iterable<T>, expect: (item: T) => Promise<void>) => Promise.all([...items].map(expect));
    await all(this.created, async ([keyId, key]) =>
      assert.equal((await verify(server, key)).code, "VALID", `${keyId} was created`),
    );
    await all(this.deleted, async (keyId) =>
      assert.equal((await server.call("keys.getKey", { keyId })).status, 404, `${keyId} was deleted`),
    );
    await all(this.names, async ([keyId, name]) =>
      assert.equal((await server.ok("keys.getKey", { keyId })).name, name),
    );
    await all(this.spent, async ([keyId, spent]) => {
      const { credits } = await server.ok("keys.getKey", { keyId });
      assert.equal(credits.remaining, 1_000_000 - spent, `credits of ${keyId}`);
    });
  }
}

describe("moving a store", () => {
  it("to PostgreSQL and back keeps every acknowledged write, credits, counters and analytics", async (t) => {
    const directory = makeFolder(t);
    const url = await fresh(t);
    const { server, apiId, keys } = await serveWithKeys(directory, 100);
    const limited = keys[2]!;
    for (let i = 0; i < 4; i++) assert.equal((await verify(server, limited.key)).code, "VALID");
    const plain = await server.ok("keys.createKey", { apiId });
    const weekly = { remaining: 1, refill: { interval: "weekly", amount: 1, refillDay: 2, timeZone: "Europe/Berlin" } };
    const { keyId: weeklyId } = await server.ok("keys.createKey", { apiId, credits: weekly });
    assert.equal((await verify(server, plain.key)).code, "VALID");
    const writers = new Writers(server, apiId, keys, 1);
    await eventually("some writes", () => writers.spent.size > 20);

    const moving = begin(directory, url, ["--rate", "400"]);
    const known: string[] = [];
    const verifying = (async () => {
      while (!moving.hasEnded) known.push((await verify(server, plain.key)).code);
    })();
    const report = await reportOf(moving);
    await verifying;
    await eventually("a rejected write", () => writers.unavailable > 0);
    await writers.stop();
    assert(known.length > 10 && known.every((code) => code === "VALID"), `${known}`);
    assert.equal(report.tables.keys!.rows, keys.length + 2 + writers.created.size);

    // Afterwards the source verifies known keys without credits, and changes nothing.
    assert.equal((await verify(server, plain.key)).code, "VALID");
    const write = await fetch(`${server.address}/v2/keys.deleteKey`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${ROOT_KEY}` },
      body: JSON.stringify({ keyId: plain.keyId }),
    });
    assert.equal(write.status, 503);
    assert.match(write.headers.get("retry-after")!, /^[1-9]\d*$/);
    await eventually("the state of the source", async () =>
      /"database":/.test(await (await fetch(`${server.address}/health/ready`)).text()),
    );
    await server.kill("SIGTERM");
    const early = launch({ directory });
    assert.equal((await early.ended).code, 1);
    assert.match(early.stderr, /^latchkey: This database was moved to postgres:\/\/127[^\n]*--undo[^\n]*\n$/);
    assert(!early.stderr.includes("postgres@"), "no credentials");

    const settings = { DATABASE_URL: url, VAULT_KEY: readFileSync(join(directory, "data/vault-key"), "utf8").trim() };
    const second = await start({ directory, settings });
    await writers.check(second);
    assert.equal((await verify(second, limited.key)).code, "VALID");
    // The counters of the data folder count on.
    assert.equal((await verify(second, limited.key)).code, "RATE_LIMITED");
    assert.equal((await second.ok("keys.getKey", { keyId: keys[0]!.keyId, decrypt: true })).plaintext, keys[0]!.key);
    assert.deepEqual((await second.ok("keys.getKey", { keyId: weeklyId })).credits, weekly);
    await second.ok("keys.deleteKey", { keyId: keys[3]!.keyId });
    const more = new Writers(second, apiId, keys, 2);
    for (const [keyId, spent] of writers.spent) more.spent.set(keyId, spent);
    await eventually("more writes", () => more.spent.size > 30);

    const backReport = await move(directory, `sqlite:${join(directory, "back")}`, [], settings);
    await more.stop();
    await second.kill("SIGTERM");
    assert(backReport.tables.analytics_days!.rows > 0);
    const refused = launch({ directory, settings });
    assert.equal((await refused.ended).code, 1);
    const named = new RegExp(
      `was moved to sqlite:.* Start with LATCHKEY_DATA_DIR=${join(directory, "back")} and without`,
    );
    assert.match(refused.stderr, named);
    const third = await start({
      directory,
      settings: { DATA_DIR: join(directory, "back"), VAULT_KEY: settings.VAULT_KEY },
    });
    await more.check(third);
    // An older program, which would misread that refill, must not start on it.
    const back = new DatabaseSync(join(directory, "back/latchkey.db"), { readOnly: true });
    t.after(() => back.close());
    assert.equal(back.prepare("select max(needs) as needs from schema_steps").get()!.needs, 34);
    assert.equal((await verify(third, keys[3]!.key)).code, "NOT_FOUND");
  });

  for (const [direction, seed] of [
    ["to PostgreSQL", 11],
    ["to SQLite", 12],
  ] as const) {
    it(`${direction} that is killed at random moments continues, and ends with equal rows`, async (t) => {
      const directory = makeFolder(t);
      const url = await fresh(t);
      const vaultKey = newSealingKey().toString("base64");
      const [embedded, postgres] = [
        { DATA_DIR: join(directory, "embedded"), VAULT_KEY: vaultKey },
        { DATA_DIR: join(directory, "data"), DATABASE_URL: url, VAULT_KEY: vaultKey },
      ];
      const [from, to] = direction === "to SQLite" ? [postgres, embedded] : [embedded, postgres];
      const launchMove = (args: string[] = []) =>
        begin(directory, direction === "to SQLite" ? `sqlite:${embedded.DATA_DIR}` : url, args, from);
      const { server, apiId, keys } = await serveWithKeys(directory, 100, from);
      const writers = new Writers(server, apiId, keys, seed);
      const random = seededRandom(seed);
      const file = join(embedded.DATA_DIR, "latchkey.db");
      const ofTarget = async (text: string) => (direction === "to SQLite" ? queryFile(file, text) : query(url, text));
      const copied = async () => {
        const rows = await ofTarget("select coalesce(sum(rows), 0) as rows from move_tables").catch(() => []);
        return Number(rows[0]?.rows ?? 0);
      };
      for (let kill = 0; kill < 2; kill++) {
        const program = launchMove(["--rate", "200"]);
        const wanted = (await copied()) + 1 + random.below(150);
        await eventually(`${wanted} rows`, async () => program.hasEnded || (await copied()) >= wanted);
        await program.kill("SIGKILL");
        assert.equal(program.stdout, "", "it ended before the kill");
      }
      const steps = ["indexing", "comparing", "last step"];
      const program = launchMove();
      await reaches(program, steps[random.below(3)]!);
      await program.kill("SIGKILL");
      // A kill on a busy machine can come after the copy is complete, and before the program says so.
      const complete = await ofTarget("select id from moves where role = 'target' and ended_at is not null");
      if (complete.length === 0) {
        const early = launch({
          directory,
          settings: { ...to, DATA_DIR: join(directory, "early"), ...(to === embedded && to) },
        });
        assert.equal(await codeOf(early), 1);
        assert.match(early.stderr, /^latchkey: This database is an unfinished copy of (sqlite|postgres):[^\n]*\n$/);
      }
      await reportOf(launchMove());
      await writers.stop();
      await server.kill("SIGTERM");
      await assertEqual(embedded.DATA_DIR, url);
      await writers.check(await start({ directory, settings: to }));
      // Repeating it changes nothing.
      assert.deepEqual((await reportOf(launchMove())).tables, {});
    });
  }

  it("is refused when a row of the copy was changed by something else, and the source accepts writes", async (t) => {
    const directory = makeFolder(t);
    const url = await fresh(t);
    const { server, apiId, keys } = await serveWithKeys(directory, 100);
    const moving = begin(directory, url, ["--rate", "200"]);
    const change = `update keys set name = 'another' where id = '${keys[50]!.keyId}' returning id`;
    await eventually("the copied key", async () => (await query(url, change).catch(() => [])).length > 0);
    assert.match(
      await rejected(moving),
      /The table keys differs: 100 rows with the digest \w{64} .* Nothing was switched/,
    );
    assert.equal((await verify(server, keys[50]!.key)).code, "VALID");
    const { keyId } = await server.ok("keys.createKey", { apiId });
    // The copy stays refused; with an empty database the move begins again.
    assert.match(await rejected(begin(directory, url)), /The table keys differs/);
    await query(url, "drop schema public cascade; create schema public");
    assert.equal((await move(directory, url)).tables.keys!.rows, 101);
    await server.kill("SIGTERM");
    const settings = { DATABASE_URL: url, VAULT_KEY: readFileSync(join(directory, "data/vault-key"), "utf8").trim() };
    const second = await start({ directory, settings });
    assert.equal((await second.call("keys.getKey", { keyId })).status, 200);
  });

  it("seals data keys under another master key", async (t) => {
    const directory = makeFolder(t);
    const url = await fresh(t);
    const { server, keys } = await serveWithKeys(directory, 10);
    const [file, other] = [join(directory, "new-key"), join(directory, "other-key")];
    for (const path of [file, other]) writeFileSync(path, `${newSealingKey().toString("base64")}\n`);
    const killed = begin(directory, url, ["--new-vault-key-file", file]);
    await reaches(killed, "indexing");
    await killed.kill("SIGKILL");
    for (const args of [[], ["--new-vault-key-file", other]]) {
      assert.match(await rejected(begin(directory, url, args)), /begun with another --new-vault-key-file/);
    }
    await move(directory, url, ["--new-vault-key-file", file]);
    await server.kill("SIGTERM");
    const old = launch({
      directory,
      settings: { DATABASE_URL: url, VAULT_KEY_FILE: join(directory, "data/vault-key") },
    });
    assert.equal((await old.ended).code, 1);
    assert.match(old.stderr, /does not have the master key/);
    const second = await start({ directory, settings: { DATABASE_URL: url, VAULT_KEY_FILE: file } });
    const { plaintext } = await second.ok("keys.getKey", { keyId: keys[0]!.keyId, decrypt: true });
    assert.equal(plaintext, keys[0]!.key);
  });

  it("can be undone: the source is served again", async (t) => {
    const directory = makeFolder(t);
    const url = await fresh(t);
    const { server, apiId, keys } = await serveWithKeys(directory, 10);
    await move(directory, url);
    assert.equal((await server.call("keys.createKey", { apiId })).status, 503);
    const undo = (settings = { DATA_DIR: join(directory, "data") }) =>
      run(["migrate-store", "--undo"], { directory, settings });
    const both = ["migrate-store", "--undo", "--to", url];
    const ambiguous = await run(both, { directory, settings: { DATA_DIR: join(directory, "data") } });
    assert.match(ambiguous.stderr, /^latchkey: --undo: give it without --to/);
    assert.equal((await server.call("keys.createKey", { apiId })).status, 503);
    const undone = await undo();
    assert.equal(undone.code, 0, undone.output);
    assert.match(undone.stdout, /Never serve both/);
    assert.match((await undo()).stdout, /Nothing to undo/);
    assert.equal((await server.call("keys.createKey", { apiId })).status, 200);
    assert.equal((await verify(server, keys[0]!.key)).code, "VALID");
    // The copy is served elsewhere, perhaps.
    assert.match(await rejected(begin(directory, url)), /is not empty: it was copied from sqlite:/);
    const [, file] = /^sqlite:(.*)$/.exec(`sqlite:${join(directory, "data/latchkey.db")}`)!;
    const left = await queryFile(file!, "select name from sqlite_schema where name like 'move%' order by name");
    assert.deepEqual(
      left.map(({ name }) => name),
      ["moves"],
    );
  });

  it("that is killed at any moment leaves nothing on which a service starts, and continues", async (t) => {
    const directory = makeFolder(t);
    const { server, keys } = await serveWithKeys(directory, 20);
    const { key } = keys[0]!;
    const target = join(directory, "target");
    const to = `sqlite:${target}`;
    // What appears in the folder, in the order of the command.
    for (const file of ["moving", "latchkey.db", "latchkey.db-wal", "analytics.db", "move.lock"]) {
      const moving = begin(directory, to);
      await eventually(`${file} in the target`, () => moving.hasEnded || existsSync(join(target, file)));
      moving.kill("SIGKILL");
      await moving.ended;
      const early = launch({ directory, settings: { DATA_DIR: target } });
      assert.equal((await early.ended).code, 1, `after ${file}: ${early.output}`);
      assert.match(
        early.stderr,
        /^latchkey: .*(move of \S+ into this folder did not end|an unfinished copy of).*\n$/,
        file,
      );
    }
    const { stdout } = await run(["migrate-store", "--to", to], {
      directory,
      settings: { DATA_DIR: join(directory, "data") },
    });
    const vaultKey = join(directory, "data/vault-key");
    assert(stdout.includes(`Before the start, copy ${vaultKey} to ${join(target, "vault-key")}`), stdout);
    assert.match(stdout, /recoverable keys, secrets of webhooks/);
    copyFileSync(vaultKey, join(target, "vault-key"));
    await server.kill("SIGTERM");
    const moved = await start({ directory, settings: { DATA_DIR: target } });
    assert.equal((await verify(moved, key)).valid, true);
  });

  it("explains in one line what it cannot do", async (t) => {
    const directory = makeFolder(t);
    const url = await fresh(t);
    const nothing = await rejected(begin(directory, url));
    assert.match(nothing, /There is no database at .*data\/latchkey\.db\. Give/);
    const { server } = await serveWithKeys(directory, 0);
    await query(url, "create table unrelated (id int)");
    await query(url, "create table keys (id int)");
    for (const [to, message] of [
      ["mysql://x", /--to: give postgres:\/\/.* or sqlite:FOLDER/],
      [`sqlite:${join(directory, "data")}`, /is the configured database itself/],
      ["postgres://nobody@127.0.0.1:1/none", /postgres:\/\/127\.0\.0\.1:1\/none: .*ECONNREFUSED/],
      [url, /^latchkey: postgres:.* "keys" already exists/],
    ] as const) {
      const line = await rejected(begin(directory, to));
      assert.match(line, message);
      assert.doesNotMatch(line, /nobody@|postgres@/);
    }
    const served = await fresh(t);
    await (await start({ directory: makeFolder(t), settings: { DATABASE_URL: served } })).kill("SIGTERM");
    assert.match(await rejected(begin(directory, served)), /The target .* is not empty: its table \w+ has rows/);
    // Nothing was begun.
    assert.equal((await server.call("apis.createApi", { name: "more" })).status, 200);
    assert.deepEqual(await queryFile(join(directory, "data/latchkey.db"), "select * from moves"), []);
  });
});

describe("the tables of a move", () => {
  it("are all tables of both databases, except those that are listed with a reason", async (t) => {
    const directory = makeFolder(t);
    const url = await fresh(t);
    await (await start({ directory })).kill("SIGTERM");
    await (await start({ directory: makeFolder(t), settings: { DATABASE_URL: url } })).kill("SIGTERM");
    const embedded = ["latchkey.db", "analytics.db"].map((file) => openSqliteCopy(join(directory, "data", file)));
    const ofSqlite = (await Promise.all(embedded.map(findTables))).flat();
    const postgres = await openPostgresCopy(url);
    const ofPostgres = await findTables(postgres);
    for (const database of [...embedded, postgres]) await database.close();

    const names = (tables: readonly FoundTable[]) =>
      tables.map(({ name }) => name).filter((name) => !(name in notCopied));
    assert.deepEqual(names(ofSqlite).sort(), names(ofPostgres).sort(), "list a table of one database in `notCopied`");
    const copied = tablesToCopy(ofSqlite, ofPostgres);
    assert.deepEqual(copied.map(({ name }) => name).sort(), names(ofSqlite).sort());
    assert(copied.length > 25);
    for (const name of Object.keys(notCopied)) {
      assert(ofSqlite.some((table) => table.name === name) || ofPostgres.some((table) => table.name === name), name);
    }
    for (const { name, columns, order, key } of copied) {
      const of = (tables: readonly FoundTable[]) => tables.find((table) => table.name === name)!.columns;
      assert.deepEqual(of(ofSqlite), columns, name);
      assert.deepEqual(of(ofPostgres), columns, name);
      assert(order.length > 0 && key.length > 0, `${name} needs a primary key`);
    }
  });
});

async function queryFile(file: string, text: string): Promise<Record<string, unknown>[]> {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
  try {
    return database.prepare(text).all();
  } finally {
    database.close();
  }
}

/** Compares every copied row of both sides, without the program's digests. */
async function assertEqual(dataDirectory: string, url: string): Promise<void> {
  for (const file of ["latchkey.db", "analytics.db"]) {
    const database = new DatabaseSync(join(dataDirectory, file), { readOnly: true });
    const source = openSqliteCopy(join(dataDirectory, file));
    const target = await openPostgresCopy(url);
    for (const { name, columns } of tablesToCopy(await findTables(source), await findTables(target))) {
      const names = columns.map((column) => `"${column.name}"`).join(", ");
      const text = (row: unknown[]) => JSON.stringify(row.map((value) => (value === null ? null : String(value))));
      const ofSource = (database.prepare(`select ${names} from "${name}"`).all() as object[]).map((row) =>
        text(Object.values(row)),
      );
      const ofTarget = (await target.rows(`select ${names} from "${name}"`)).map(text);
      assert.deepEqual(ofTarget.sort(), ofSource.sort(), name);
    }
    database.close();
    await source.close();
    await target.close();
  }
}
