/** The contract of a store, tested on each of the two databases. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, it } from "node:test";
import { type KyselyPlugin, sql as raw } from "kysely";
import { Client } from "pg";
import { z } from "zod";
import { type Instant, instantAt } from "../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../engine/src/clock/simulated.ts";
import { systemClock } from "../../engine/src/clock/system.ts";
import { CHANGES_PER_READ, CHANGES_RETENTION, type Changes } from "../../engine/src/directory/changes.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { AuditReader } from "../src/features/audit/statements/reader.ts";
import { PermissionWriter } from "../src/features/permissions/statements/permissions.ts";
import { RoleWriter } from "../src/features/permissions/statements/roles.ts";
import { AdministrationReader } from "../src/features/workspaces/statements.ts";
import { readConfig } from "../src/platform/config/config.ts";
import { readSecrets } from "../src/platform/config/secrets.ts";
import { type AuditEntry, recordChanges } from "../src/platform/store/audit/audit.ts";
import { insertChange, pruneChanges } from "../src/platform/store/changes.ts";
import { findIdempotencyRecords, insertIdempotencyRecords } from "../src/platform/store/idempotency.ts";
import { takeLease } from "../src/platform/store/lease.ts";
import {
  demandStep,
  isSupported,
  type MigrationPlan,
  mainPlan,
  migrate,
  pendingSteps,
  schemaState,
} from "../src/platform/store/migrate.ts";
import { contract, expand, firstSteps, schemaSteps } from "../src/platform/store/migrations/index.ts";
import { openPostgresStore } from "../src/platform/store/postgres/store.ts";
import { retain } from "../src/platform/store/retention.ts";
import type { BalanceRow } from "../src/platform/store/schema.ts";
import { openSqliteStoreHere } from "../src/platform/store/sqlite/store-here.ts";
import { Rollback, type Sql } from "../src/platform/store/store.ts";
import { openStore } from "../src/service/app-store.ts";
import { operations } from "../src/service/operations.ts";
import { retentionTables, retentionTasks } from "../src/service/retention-tasks.ts";
import { openTestServer, type StoreKind, stores } from "./harness.ts";
import { makeFolder } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const NOW = instantAt(1_768_478_400_000);

const HOUR = 3_600_000;

/** Runs the given function. */
const direct = {
  reading: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
  writing: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
};

/** A test, or anything else that runs functions at its end. */
interface Ending {
  after(undo: () => void | Promise<void>): void;
}

interface Database {
  /** In a transaction. */
  write<T>(work: (sql: Sql) => Promise<T>): Promise<T extends Rollback<infer V> ? V : T>;
  read<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** The store as the program opens it. */
  open(): ReturnType<typeof openStore>;
}

/** An empty database, which is removed at the end of `t`. */
async function openDatabase(t: Ending, kind: StoreKind): Promise<Database> {
  const settings = new Map([["DATA_DIR", makeFolder(t)]]);
  const clock = new SimulatedClock(NOW);
  let store: ReturnType<typeof openSqliteStoreHere<typeof direct>>;
  if (kind === "sqlite") {
    store = openSqliteStoreHere(join(settings.get("DATA_DIR")!, "latchkey.db"), direct);
    t.after(() => store.close());
  } else {
    const { url, drop } = await freshDatabase();
    settings.set("DATABASE_URL", url);
    store = await openPostgresStore({ url, clock }, direct);
    t.after(async () => {
      await store.close();
      await drop();
    });
  }
  return {
    write: (work) => store.transact("run", work) as never,
    read: (work) => store.read("run", work) as never,
    open: () => openStore(readConfig(settings), readSecrets(settings), { clock, seed: undefined }),
  };
}

for (const kind of stores) {
  const test = (name: string, work: (database: Database) => Promise<void>) =>
    it(name, async (t) => work(await openDatabase(t, kind)));
  /** A database with only the schema, one for all tests of a block. */
  const openMigrated = () => {
    const work: (() => void | Promise<void>)[] = [];
    let database!: Database;
    before(async () => {
      database = await openDatabase({ after: (undo) => void work.unshift(undo) }, kind);
      await database.write(migrate);
    });
    beforeEach(() =>
      database.write(async ({ db }) => {
        await db.deleteFrom("changes").execute();
        await db.deleteFrom("permissions").execute();
        await db.deleteFrom("workspaces").execute();
      }),
    );
    after(async () => {
      for (const undo of work) await undo();
    });
    return {
      read: ((work) => database.read(work)) as Database["read"],
      write: ((work) => database.write(work)) as Database["write"],
    };
  };

  describe(`migrations on ${kind}`, () => {
    test("run once, and report their names", async ({ open }) => {
      const store = await open();
      const names = [...Object.keys(firstSteps), ...Object.keys(schemaSteps)];
      const before = await store.read("schemaState", null);
      assert.deepEqual([before.database, before.needs, pendingSteps(before)], [0, 0, names]);
      assert.deepEqual(await store.transact("migrate", null), names);
      const { database, program, needs, steps } = await store.read("schemaState", null);
      assert.deepEqual([database, needs], [program, 15]);
      for (const { executedAt } of steps) assert.match(executedAt!, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      assert.deepEqual(await store.transact("migrate", null), []);
      await store.close();
    });

    it("take a demand when a value is stored that programs without a step misread", async (t) => {
      const database = await openDatabase(t, kind);
      await database.write(migrate);
      const names = Object.keys(schemaSteps);
      const before = names.slice(0, names.indexOf("034-refill-calendars"));
      const earlierSteps = Object.fromEntries(Object.entries(schemaSteps).filter(([name]) => before.includes(name)));
      const earlier = { ...mainPlan, steps: earlierSteps };
      assert.deepEqual(await database.write((sql) => migrate(sql, earlier)), []);
      const rolledBack = database.write(async (sql) => {
        assert.equal(await demandStep(sql, "034-refill-calendars"), true);
        throw new Error("rolled back");
      });
      await assert.rejects(rolledBack, /rolled back/);
      assert.deepEqual(await database.write((sql) => migrate(sql, earlier)), []);
      for (const _ of ["first", "second"]) {
        assert.equal(await database.write((sql) => demandStep(sql, "034-refill-calendars")), true);
        await assert.rejects(
          database.write((sql) => migrate(sql, earlier)),
          /needs a release of schema 34 or newer; this one is of schema 33/,
        );
      }
      const withFirstStepsAlone = await database.read(({ db }) =>
        raw<{ name: string }>`select name from kysely_migration where name > '016'`.execute(db),
      );
      assert.deepEqual(
        withFirstStepsAlone.rows.map(({ name }) => name),
        ["034-refill-calendars"],
      );
      assert.deepEqual(await database.write(migrate), []);
    });

    it("end in the same schema as every step in turn", async (t) => {
      const [atOnce, inTurn] = [await openDatabase(t, kind), await openDatabase(t, kind)];
      await atOnce.write(migrate);
      for (const step of [...Object.values(firstSteps), ...Object.values(schemaSteps).map(({ up }) => up)])
        await inTurn.write(({ db, dialect }) => step(db as never, dialect.name));
      const schema = await atOnce.read(describeSchema);
      assert(schema.length > 30);
      assert.deepEqual(await inTurn.read(describeSchema), schema);
    });

    it("index existing rows by name and by target", async (t) => {
      const database = await openDatabase(t, kind);
      const step = (name: string) => database.write(({ db, dialect }) => firstSteps[name]!(db as never, dialect.name));
      await step("001-initial");
      await database.write(async ({ db }) => {
        const made = {
          id: "ws_1",
          name: "ΟΔΟΣ Ärger",
          enabled: 1,
          has_imported_keys: 0,
          is_default: 1,
          created_at: NOW,
        };
        await db
          .insertInto("workspaces")
          .values(made as never)
          .execute();
        const event = { workspace_id: "ws_1", occurred_at: NOW, actor: "cli", action: "act", meta: "{}" };
        for (const [id, targets] of [
          ["evt_1", ["b", "a", "b"]],
          ["evt_2", []],
          ["evt_3", ["a"]],
        ] as const) {
          const row = { ...event, id, targets: JSON.stringify(targets) };
          await db.insertInto("audit_events").values(row).execute();
        }
      });
      await step("005-administration");
      const { allWorkspaces, audit } = await database.read(async (sql) => {
        const audit = new AuditReader(sql, "ws_1");
        const ofTarget = async (target: string) => (await audit.page({ target, limit: 10 })).map(({ id }) => id);
        const workspaces = (await new AdministrationReader(sql, "ws_1").allWorkspaces())!;
        return {
          allWorkspaces: (await workspaces.page({ search: "οδοσ ä", limit: 10 })).map(({ id }) => id),
          audit: [await ofTarget("a"), await ofTarget("b"), await ofTarget("c")],
        };
      });
      assert.deepEqual(allWorkspaces, ["ws_1"]);
      assert.deepEqual(audit, [["evt_3", "evt_1"], ["evt_1"], []]);
    });

    it("find the makers of existing root keys in the audit log", async (t) => {
      const database = await openDatabase(t, kind);
      const steps = {
        ...firstSteps,
        ...Object.fromEntries(Object.entries(schemaSteps).map(([name, { up }]) => [name, up])),
      };
      const names = Object.keys(steps);
      const at = names.indexOf("031-root-key-makers");
      const run = (from: number, to: number) =>
        database.write(async ({ db, dialect }) => {
          for (const name of names.slice(from, to)) await steps[name]!(db as never, dialect.name);
        });
      await run(0, at);
      const root = { workspace_id: "ws_1", name: "", name_folded: "", hash_version: 1, start: "", grants: "[]" };
      await database.write(async (sql) => {
        const workspace = { id: "ws_1", name: "", name_folded: "", enabled: 1, has_imported_keys: 0, is_default: 1 };
        await sql.db
          .insertInto("workspaces")
          .values({ ...workspace, created_at: NOW } as never)
          .execute();
        for (const [id, createdAt] of [
          ["rk_a", 1],
          ["rk_b", 2],
          ["rk_c", 3],
          ["rk_cli", 4],
          ["rk_forgotten", 5],
        ] as const) {
          const row = { ...root, id, hash: id, source: "issued", enabled: 1, created_at: createdAt };
          await sql.db
            .insertInto("root_keys")
            .values(row as never)
            .execute();
        }
        const entry = (actor: string, action: string, occurredAt: number, targets: string[]): AuditEntry => ({
          workspaceId: "ws_1",
          occurredAt: occurredAt as Instant,
          actor,
          action,
          targets,
          meta: {},
          events: [],
        });
        const entries = [
          entry("cli", "rootKeys.createRootKey", 1, ["rk_a"]),
          entry("rk_a", "rootKeys.createRootKey", 2, ["rk_b"]),
          entry("rk_b", "rootKeys.rerollRootKey", 3, ["rk_b", "rk_c"]),
          entry("rk_b", "rootKeys.updateRootKey", 4, ["rk_cli"]),
          entry("cli", "rootKeys.createRootKey", 4, ["rk_cli"]),
          entry("rk_a", "rootKeys.updateRootKey", 6, ["rk_forgotten"]),
        ];
        await recordChanges(sql, entries, seededRandom(1));
      });
      await run(at, at + 1);
      const rows = await database.read(({ db }) =>
        raw<{ id: string; created_by: string | null }>`
        select id, created_by from root_keys order by created_at`.execute(db),
      );
      assert.deepEqual(
        rows.rows.map(({ created_by }) => created_by),
        [null, "rk_a", "rk_b", null, null],
      );
    });

    it("keep the balances of keys, let only those that are watched fall below 0, and hold no less than 0", async (t) => {
      const database = await openDatabase(t, kind);
      const names = Object.keys(schemaSteps);
      const before = names.slice(0, names.indexOf("037-budgets"));
      const earlier = Object.fromEntries(Object.entries(schemaSteps).filter(([name]) => before.includes(name)));
      await database.write((sql) => migrate(sql, { ...mainPlan, steps: earlier }));
      const row = {
        pool_id: "pool_1",
        workspace_id: "ws_1",
        remaining: 3,
        refill_interval: "yearly",
        refill_amount: 4,
        refill_day: 5,
        refill_month: 6,
        refill_zone: "UTC",
        refill_rollover: 7,
        refill_due_at: 8,
        refill_mark: 9,
        low_at: 10,
      } as const;
      await database.write(({ db }) => db.insertInto("balances").values(row).execute());
      await database.write(migrate);
      const books = {
        ...{ granted: null, spent: null, lapsed: null, period: null, spent_before: null, watched: null },
        ...{ held: null, next_expiry_at: null, slots_of: null, slots_name: null, plan_id: null, plan_version: null },
      };
      const rows = async () => {
        const found = await database.read(({ db }) => db.selectFrom("balances").selectAll().execute());
        return found.map((columns) => ({ ...columns }));
      };
      assert.deepEqual(await rows(), [{ ...row, ...books }]);

      const change = (columns: Partial<BalanceRow>) =>
        database.write(({ db }) => db.updateTable("balances").set(columns).execute());
      await assert.rejects(change({ remaining: -1 }), /constraint/);
      await assert.rejects(change({ remaining: -1, watched: 0 }), /constraint/);
      await change({ remaining: -1, watched: 1 });
      assert.deepEqual(await rows(), [{ ...row, ...books, remaining: -1, watched: 1 }]);
      await assert.rejects(change({ held: -1 }), /constraint/);
      await change({ held: 1 });
    });

    it("roll back a step that fails", async (t) => {
      const database = await openDatabase(t, kind);
      // A table with the name of the last one exists already.
      await database.write(({ db }) => db.schema.createTable("changes").addColumn("a", "text").execute());
      const before = await database.read(describeSchema);
      await assert.rejects(database.write(migrate), /already exists/);
      assert.deepEqual(await database.read(describeSchema), before);
    });

    test("are accepted by an older program while they only add, until one takes something away", async ({
      write,
      read,
    }) => {
      const add = expand((db) => raw`create table later (id integer)`.execute(db).then(() => {}));
      const remove = contract((db) => raw`drop table later`.execute(db).then(() => {}), 900);
      const plan = (steps: MigrationPlan["steps"]) => ({ ...mainPlan, steps: { ...schemaSteps, ...steps } });
      const [older, next, newest] = [
        mainPlan,
        plan({ "900-adds": add }),
        plan({ "900-adds": add, "901-removes": remove }),
      ];
      await write(migrate);
      const { program } = await read(schemaState);

      assert.deepEqual(await write((sql) => migrate(sql, next)), ["900-adds"]);
      const ahead = await read((sql) => schemaState(sql, older));
      assert.deepEqual([ahead.database, ahead.program, ahead.needs, isSupported(ahead)], [900, program, 15, true]);
      assert.deepEqual(await write((sql) => migrate(sql, older)), []);

      assert.deepEqual(await write((sql) => migrate(sql, newest)), ["901-removes"]);
      assert.deepEqual(await write((sql) => migrate(sql, newest)), []);
      assert.deepEqual(await write((sql) => migrate(sql, next)), []);
      await assert.rejects(
        write((sql) => migrate(sql, older)),
        new RegExp(`"901-removes" .* of schema 900 or newer; this one is of schema ${program}`),
      );
      // Programs of the first steps know only this table, and reject a name that they do not have.
      const names = await read(({ db }) => raw<{ name: string }>`select name from kysely_migration`.execute(db));
      assert.deepEqual(names.rows.map(({ name }) => name).sort(), [...Object.keys(firstSteps), "901-removes"]);
    });

    test("are rejected by an older program", async ({ write, open }) => {
      await write(migrate);
      await write(({ db }) =>
        raw`insert into kysely_migration (name, timestamp) values ('999-from-the-future', ${"2030-01-01T00:00:00.000Z"})`.execute(
          db,
        ),
      );
      const store = await open();
      const rejected =
        /The database has the migration "999-from-the-future" of a newer Latchkey and needs a release of schema 999 or newer; this one is of schema \d+\. Start a newer release, or restore a backup from before the upgrade\./;
      await assert.rejects(store.transact("migrate", null), rejected);
      await assert.rejects(store.transact("prepare", { now: NOW, rootKey: undefined }), rejected);
      await store.close();
    });
  });

  describe(`the first start on ${kind}`, () => {
    test("creates one workspace and one root key, for any number of nodes", async ({ open, read }) => {
      const nodes = await Promise.all([open(), open(), open()]);
      const prepared = await Promise.all(
        nodes.map((node) => node.transact("prepare", { now: NOW, rootKey: undefined })),
      );
      assert.equal(prepared.filter(({ issued }) => issued).length, 1);
      assert.equal(new Set(prepared.map(({ workspaceId }) => workspaceId)).size, 1);
      assert.equal(await read(count("workspaces")), 1);
      assert.equal(await read(count("root_keys")), 1);
      await Promise.all(nodes.map((node) => node.close()));
    });

    test("stores the configured root key, and the next one instead of it", async ({ open, read }) => {
      const store = await open();
      const prepare = (rootKey: string) => store.transact("prepare", { now: NOW, rootKey });
      await prepare("the first root key of all");
      await prepare("the first root key of all");
      assert.equal(await read(count("root_keys")), 1);
      await prepare("the second root key of all");
      const rows = await read(({ db }) =>
        db.selectFrom("root_keys").select(["source", "deleted_at"]).orderBy("id").execute(),
      );
      assert.deepEqual(rows.map(({ deleted_at }) => deleted_at).sort(), [NOW, null]);
      await store.close();
    });

    test("does not change root keys of another workspace", async ({ open }) => {
      const store = await open();
      const act = { now: NOW, actor: "cli" };
      const { issued } = await store.transact("prepare", { now: NOW, rootKey: undefined });
      const theirs = await store.transact("createWorkspace", { ...act, name: "theirs" });
      for (const rootKeyId of ["rk_none", issued!.rootKeyId]) {
        const { workspaceId } = theirs;
        const rejected = `There is no root key ${rootKeyId} in workspace ${workspaceId}.`;
        assert.deepEqual(await store.transact("deleteRootKey", { ...act, workspaceId, rootKeyId }), { rejected });
      }
      await store.close();
    });
  });

  describe(`a transaction on ${kind}`, () => {
    const { read, write } = openMigrated();

    it("rolls back on request, and still returns its answer", async () => {
      const answer = await write(async (sql) => {
        await insertWorkspace(sql, "ws_1");
        return new Rollback("answered");
      });
      assert.equal(answer, "answered");
      assert.equal(await read(count("workspaces")), 0);
    });

    it("rolls back when it fails", async () => {
      const failing = write(async (sql) => {
        await insertWorkspace(sql, "ws_1");
        await insertWorkspace(sql, "ws_1");
      });
      await assert.rejects(failing, /unique/i);
      const thrown = write(async (sql) => {
        await insertWorkspace(sql, "ws_1");
        throw new Error("a bug");
      });
      await assert.rejects(thrown, /a bug/);
      assert.equal(await read(count("workspaces")), 0);
      await write((sql) => insertWorkspace(sql, "ws_1"));
      assert.equal(await read(count("workspaces")), 1);
    });

    it("of an operation that fails changes no table", async (t) => {
      const server = await openTestServer({ store: kind });
      t.after(() => server.close());
      const apiId = await server.createApi();
      const before = await server.rows();
      const input = { apiId, externalId: "new", permissions: ["new.permission"], roles: ["no such role"] };
      await server.rejected("keys.createKey", input, "role_not_found");
      assert.deepEqual(await server.rows(), before);
    });

    it("creates a thousand permissions with as many statements as one", async () => {
      await write((sql) => insertWorkspace(sql, "ws_1"));
      const random = seededRandom(1);
      const statementsFor = (permissions: number) =>
        write(async (sql) => {
          const { counted, statements } = counting(sql);
          const slugs = Array.from({ length: permissions }, (_, i) => `of-${permissions}.number-${i}`);
          const ensured = await new PermissionWriter(counted, "ws_1").ensure(slugs, random, NOW);
          assert.equal(ensured.permissions.length, permissions);
          return statements();
        });
      const one = await statementsFor(1);
      assert.equal(await statementsFor(1_000), one);
      assert(one <= 3, `${one} statements`);
    });
  });

  describe(`changes on ${kind}`, () => {
    const { read, write } = openMigrated();
    const numbered = ({ sequence, tags }: Changes["rows"][number]) => ({ sequence, tags });

    it("begin at the reader's start, and are read in order", async () => {
      const invalidate = (...tags: string[]) => write((sql) => insertChange(sql, tags, NOW, null));
      await invalidate("before");
      const { cursor, rows } = await read((sql) => sql.dialect.readChanges(sql, undefined));
      assert.deepEqual(rows, []);
      const sequence = await invalidate("a", "b");
      const first = await read((sql) => sql.dialect.readChanges(sql, cursor));
      assert.deepEqual(first.rows.map(numbered).at(-1), { sequence, tags: ["a", "b"] });

      const later = await invalidate("c");
      const second = await read((sql) => sql.dialect.readChanges(sql, first.cursor));
      assert.deepEqual(second.rows.map(numbered), [{ sequence: later, tags: ["c"] }]);
      const third = await read((sql) => sql.dialect.readChanges(sql, second.cursor));
      assert.deepEqual(third.rows, []);
    });

    it("are read in pages", async () => {
      const { cursor } = await read((sql) => sql.dialect.readChanges(sql, undefined));
      const count = 2 * CHANGES_PER_READ + 1;
      const rows = Array.from({ length: count }, (_, i) => ({ tags: `["${i}"]`, created_at: NOW }));
      await write(async ({ db }) => {
        while (rows.length > 0) await db.insertInto("changes").values(rows.splice(0, 5_000)).execute();
      });
      const tags: string[] = [];
      const pages: number[] = [];
      for (let at = cursor, hasMore = true; hasMore; ) {
        const changes = await read((sql) => sql.dialect.readChanges(sql, at));
        tags.push(...changes.rows.flatMap((row) => row.tags));
        pages.push(changes.rows.length);
        ({ cursor: at, hasMore } = changes);
      }
      assert.deepEqual(pages, [CHANGES_PER_READ, CHANGES_PER_READ, 1]);
      assert.deepEqual(
        tags,
        Array.from({ length: count }, (_, i) => String(i)),
      );
    });

    it("are deleted after a day, except for the newest", async () => {
      // PostgreSQL uses its own clock.
      const now = kind === "sqlite" ? NOW : instantAt(systemClock.now());
      const prune = () => write((sql) => pruneChanges(sql, instantAt(now - CHANGES_RETENTION), 1_000));
      const put = (tag: string, age: number) =>
        write(({ db }) =>
          db
            .insertInto("changes")
            .values({ tags: `["${tag}"]`, created_at: now - age })
            .execute(),
        );
      await put("old", CHANGES_RETENTION + 60_000);
      await put("young", CHANGES_RETENTION - 60_000);
      await prune();
      const left = async () => {
        const rows = await read(({ db }) => db.selectFrom("changes").select("tags").orderBy("sequence").execute());
        return rows.map(({ tags }) => JSON.parse(tags)[0]);
      };
      assert.deepEqual(await left(), ["young"]);
      await put("old and newest", CHANGES_RETENTION + 60_000);
      await prune();
      assert.deepEqual(await left(), ["young", "old and newest"]);
    });

    it("continue their numbers after the deletion", async () => {
      const { cursor } = await read((sql) => sql.dialect.readChanges(sql, undefined));
      const first = await write((sql) => insertChange(sql, ["a"], NOW, null));
      await write(({ db }) => db.deleteFrom("changes").execute());
      const second = await write((sql) => insertChange(sql, ["b"], NOW, null));
      assert(second > first);
      const { rows } = await read((sql) => sql.dialect.readChanges(sql, cursor));
      assert.deepEqual(rows.map(numbered), [{ sequence: second, tags: ["b"] }]);
    });
  });
}

describe("changes on postgres, with several writers", () => {
  it("are all read when they are committed in another order than numbered", async (t) => {
    const { url, drop } = await freshDatabase();
    const store = await openPostgresStore({ url, clock: new SimulatedClock(NOW) }, direct);
    const [slow, quick] = [new Client({ connectionString: url }), new Client({ connectionString: url })];
    await Promise.all([slow.connect(), quick.connect()]);
    t.after(async () => {
      await Promise.all([slow.end(), quick.end(), store.close()]);
      await drop();
    });
    await store.transact("run", migrate);
    const read = (cursor?: string) =>
      store.read("run", (sql) => sql.dialect.readChanges(sql, cursor)) as Promise<Changes>;
    const invalidate = (client: Client, tag: string) =>
      client.query("insert into changes (tags, created_at) values ($1, $2)", [JSON.stringify([tag]), NOW]);

    const { cursor } = await read();
    await slow.query("begin");
    await invalidate(slow, "numbered first");
    await invalidate(quick, "committed first");
    const early = await read(cursor);
    assert(early.rows.some(({ tags }) => tags[0] === "committed first"));
    assert(early.rows.every(({ tags }) => tags[0] !== "numbered first"));
    // A transaction that begins beside the slow one, and inserts no change until long after the next read.
    await quick.query("begin");
    await quick.query("select pg_current_xact_id()");
    await slow.query("commit");
    const late = await read(early.cursor);
    assert(late.rows.some(({ tags }) => tags[0] === "numbered first"));
    await invalidate(quick, "last");
    await quick.query("commit");
    const last = await read(late.cursor);
    assert(last.rows.some(({ tags }) => tags[0] === "last"));
  });
});

describe("a node whose clock is a day ahead", () => {
  it("deletes nothing on postgres that other nodes need", async (t) => {
    const { read, write } = await openDatabase(t, "postgres");
    await write(migrate);
    const now = instantAt(systemClock.now());
    const ahead = instantAt(now + 25 * 3_600_000);
    await write(async (sql) => {
      await insertWorkspace(sql, "ws_1");
      const record = { scope: "a", fingerprint: "b", workspaceId: "ws_1", outcome: "c", keyId: null };
      await insertIdempotencyRecords(sql, [record], now);
      await insertChange(sql, ["first"], ahead, null);
      await insertChange(sql, ["second"], ahead, null);
    });
    const lease = (await write((sql) => takeLease(sql, { name: "retention", holder: "ahead", now: ahead })))!;
    const times = { audit: HOUR, events: HOUR, deleted: HOUR, holds: HOUR, expiredHolds: HOUR };
    for (const table of retentionTables) {
      await write((sql) => retain(sql, retentionTasks[table], { now: ahead, lease, times }));
    }
    assert.equal((await read((sql) => findIdempotencyRecords(sql, ["a"], now))).size, 1);
    // And the change of the migration.
    assert.equal(await read(count("changes")), 3);
  });
});

describe("permissions and roles on postgres, with several writers", () => {
  const open = async (t: Ending) => {
    const { url, drop } = await freshDatabase();
    const store = await openPostgresStore({ url, clock: new SimulatedClock(NOW) }, direct);
    const rival = new Client({ connectionString: url });
    await rival.connect();
    t.after(async () => {
      await Promise.all([rival.end(), store.close()]);
      await drop();
    });
    const write = <T>(work: (sql: Sql) => Promise<T>) => store.transact("run", work) as Promise<T>;
    await write(async (sql) => {
      await migrate(sql);
      await insertWorkspace(sql, "ws_1");
      await new RoleWriter(sql, "ws_1").insert({ name: "reader", description: null }, random, NOW);
      await new PermissionWriter(sql, "ws_1").ensure(["docs.read"], random, NOW);
    });
    return { write, rival };
  };
  const random = seededRandom(2);

  it("are missing for a concurrent assignment while they are being deleted", async (t) => {
    const { write, rival } = await open(t);
    await rival.query("begin");
    await rival.query("delete from roles");
    await rival.query("delete from permissions");
    const roles = write((sql) => new RoleWriter(sql, "ws_1").lockByNames(["reader"]));
    const permissions = write((sql) => new PermissionWriter(sql, "ws_1").lockBySlugs(["docs.read"]));
    let [waiting, answered] = [0, false];
    void Promise.race([roles, permissions]).finally(() => {
      answered = true;
    });
    while (waiting < 2 && !answered) {
      const { rows } = await rival.query("select count(*)::int as waiting from pg_locks where not granted");
      waiting = rows[0].waiting;
    }
    await rival.query("commit");
    assert.deepEqual([await roles, await permissions], [[], []]);
  });

  it("are created when they are deleted after they were read", async (t) => {
    const { write, rival } = await open(t);
    class Overtaken extends PermissionWriter {
      override async lockBySlugs(slugs: readonly string[]) {
        await rival.query("delete from permissions");
        return super.lockBySlugs(slugs);
      }
    }
    const ensured = await write((sql) => new Overtaken(sql, "ws_1").ensure(["docs.read"], random, NOW));
    assert.deepEqual([ensured.permissions.map(({ slug }) => slug), ensured.created], [["docs.read"], ["docs.read"]]);
  });
});

describe("both databases", () => {
  it("have the same tables with the same columns", async (t) => {
    const columns = await Promise.all(
      stores.map(async (kind) => {
        const database = await openDatabase(t, kind);
        await database.write(migrate);
        const tables = await database.read(({ db }) => db.introspection.getTables());
        return (
          tables
            // Partitions have the columns of their table.
            .filter(({ name }) => !name.startsWith("sqlite_") && !/_(default|\d{4}_\d\d)$/.test(name))
            .flatMap((table) =>
              table.columns.map((column) => `${table.name}.${column.name}${column.isNullable ? "?" : ""}`),
            )
            // Only PostgreSQL has these columns: there, numbers are assigned before commits, and the server can change.
            .filter((column) => !/^(changes\.(transaction_id|nonce)|transaction_markers\..*)$/.test(column))
            // SQLite reports its row number as nullable, although it never is null.
            .map((column) => column.replace("changes.sequence?", "changes.sequence"))
            .sort()
        );
      }),
    );
    assert(columns[0]!.length > 50);
    assert.deepEqual(columns[0], columns[1]);
  });

  it("never return an integer that a number cannot represent", () => {
    let integers = 0;
    for (const { name, declaration } of operations) {
      const schema = z.toJSONSchema(declaration.input, { io: "input", unrepresentable: "any" });
      for (const [path, { type, minimum, maximum, enum: values }] of nodes(schema, name)) {
        assert.notEqual(type, "number", `${path} may have a fraction`);
        if (type !== "integer") continue;
        integers++;
        if (values?.every(Number.isSafeInteger)) continue;
        assert(minimum! >= Number.MIN_SAFE_INTEGER && maximum! <= Number.MAX_SAFE_INTEGER, `${path} has no bound`);
      }
    }
    assert(integers >= 10);
  });
});

describe("sqlite", () => {
  it("serves two processes at once", async (t) => {
    const database = await openDatabase(t, "sqlite");
    const nodes = await Promise.all([database.open(), database.open()]);
    await Promise.all(nodes.map((node) => node.transact("prepare", { now: NOW, rootKey: undefined })));
    const create = (i: number) =>
      nodes[i % 2]!.transact("createWorkspace", { now: NOW, actor: "cli", name: `number ${i}` });
    await Promise.all(Array.from({ length: 20 }, (_, i) => create(i)));
    for (const node of nodes) assert.equal((await node.read("listWorkspaces", null)).length, 21);
    await Promise.all(nodes.map((node) => node.close()));
  });

  it("rejects writes over the reading connection", async (t) => {
    const folder = makeFolder(t);
    const { openSqliteConnection } = await import("../src/platform/store/sqlite/connection.ts");
    const writer = openSqliteConnection(join(folder, "a.db"), "write");
    await migrate(writer.sql);
    const reader = openSqliteConnection(join(folder, "a.db"), "read");
    await assert.rejects(insertWorkspace(reader.sql, "ws_1"), /readonly/);
    reader.close();
    writer.close();
    const database = new DatabaseSync(join(folder, "a.db"));
    assert.deepEqual({ ...database.prepare("pragma journal_mode").get() }, { journal_mode: "wal" });
    database.close();
  });
});

async function insertWorkspace({ db }: Sql, id: string): Promise<void> {
  const workspace = {
    id,
    name: id,
    name_folded: id,
    enabled: 1,
    has_imported_keys: 0,
    is_default: 0,
    created_at: NOW,
  } as const;
  await db.insertInto("workspaces").values(workspace).execute();
}

function count(table: "workspaces" | "root_keys" | "changes") {
  return async ({ db }: Sql): Promise<number> => {
    const { rows } = await db
      .selectFrom(table)
      .select((query) => query.fn.countAll().as("rows"))
      .executeTakeFirstOrThrow();
    return Number(rows);
  };
}

/** The same connection, with its statements counted. */
function counting(sql: Sql): { counted: Sql; statements(): number } {
  let statements = 0;
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      statements++;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { counted: { ...sql, db: sql.db.withPlugin(plugin) }, statements: () => statements };
}

/** The schema in the database's own terms, without Kysely's own tables. */
async function describeSchema({ db, dialect }: Sql): Promise<string[]> {
  const statement =
    dialect.name === "sqlite"
      ? raw<{ line: string }>`select type || ' ' || name || ': ' || coalesce(sql, '') as line from sqlite_master
          where tbl_name not like 'kysely%' and tbl_name <> 'schema_steps' order by line`
      : raw<{ line: string }>`
          select concat_ws(' ', table_name, column_name, ordinal_position, data_type, collation_name, is_nullable,
              column_default, identity_generation) as line
            from information_schema.columns where table_schema = 'public' and table_name not like 'kysely%'
              and table_name <> 'schema_steps'
          union all select indexdef from pg_indexes where schemaname = 'public' and tablename not like 'kysely%'
              and tablename <> 'schema_steps'
          union all select conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint
            where connamespace = 'public'::regnamespace and conrelid::regclass::text not like 'kysely%'
              and conrelid::regclass::text <> 'schema_steps'
          order by line`;
  return (await statement.execute(db)).rows.map(({ line }) => line);
}

interface JsonSchema {
  type?: string;
  minimum?: number;
  maximum?: number;
  enum?: unknown[];
}

/** Every part of a JSON Schema, with its path. */
function nodes(schema: object, path: string): [path: string, node: JsonSchema][] {
  const below = Object.entries(schema).flatMap(([name, child]) =>
    typeof child === "object" && child !== null ? nodes(child, `${path}/${name}`) : [],
  );
  return [[path, schema], ...below];
}
