/** Migrations beside calls of nodes of the former release, and demands of steps beside starts of programs. */
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { type Kysely, sql as raw } from "kysely";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { demandStep, type MigrationPlan, mainPlan, migrate, schemaState } from "../../src/platform/store/migrate.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import { Rollback, type Sql, type Store } from "../../src/platform/store/store.ts";
import { eventually } from "../process.ts";
import { type FreshDatabase, freshDatabase } from "../services/postgres.ts";

let attempts = 0;

/** A release whose steps change two tables in the order in which no call uses them. */
const next: MigrationPlan = {
  ...mainPlan,
  steps: {
    ...mainPlan.steps,
    "900-keys-then-root-keys": {
      needs: 0,
      up: async (db: Kysely<unknown>) => {
        attempts++;
        await raw`alter table keys add column added_by_test bigint`.execute(db);
        await raw`alter table root_keys add column added_by_test bigint`.execute(db);
      },
    },
  },
};

const STEP = "039-slots";

/** The release before the step. */
const former: MigrationPlan = {
  ...mainPlan,
  steps: Object.fromEntries(Object.entries(mainPlan.steps).filter(([name]) => name < STEP)),
};

const direct = {
  reading: { state: (sql: Sql, _: null) => schemaState(sql) },
  writing: {
    migrate: (sql: Sql, _: null) => migrate(sql),
    migrateToNext: (sql: Sql, _: null) => migrate(sql, next),
    migrateToFormer: (sql: Sql, _: null) => migrate(sql, former),
    demand: (sql: Sql, _: null) => demandStep(sql, STEP),
    /** Keeps its transaction open until `work` ends. */
    run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql),
  },
};

describe("the first demand of a step", () => {
  let database: FreshDatabase;
  let store: Store<typeof direct>;
  let observer: Client;
  /** Ends what a test that failed has left open. */
  let rollBack = () => {};

  beforeEach(async () => {
    database = await freshDatabase();
    store = await openPostgresStore({ url: database.url, clock: systemClock }, direct);
    await store.transact("migrate", null);
    observer = new Client({ connectionString: database.url });
    await observer.connect();
  });
  afterEach(async () => {
    rollBack();
    await observer.end();
    await store.close();
    await database.drop();
  });

  /** Runs work in a transaction that stays open until `end`. */
  const open = async (work: (sql: Sql) => Promise<unknown>) => {
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<"commit" | "rollback">()];
    rollBack = () => gate.resolve("rollback");
    const ended = store.transact("run", async (sql) => {
      await work(sql).then(() => begun.resolve(), begun.reject);
      return (await gate.promise) === "commit" ? null : new Rollback(null);
    });
    await begun.promise;
    return async (end: "commit" | "rollback") => {
      gate.resolve(end);
      await ended;
    };
  };
  const waiting = (count: number) =>
    eventually(`${count} transactions to wait`, async () => {
      const { rows } = await observer.query("select 1 from pg_locks where not granted and locktype <> 'virtualxid'");
      return rows.length >= count;
    });
  const needs = async () => (await store.read("state", null)).needs;

  for (const end of ["commit", "rollback"] as const) {
    it(`is waited for by others, which succeed after its ${end}`, async () => {
      const close = await open((sql) => demandStep(sql, STEP));
      const others = Array.from({ length: 5 }, () => store.transact("demand", null));
      await waiting(5);
      await close(end);
      assert.deepEqual(await Promise.all(others), Array(5).fill(true));
      assert.equal(await needs(), 39);
    });
  }

  it("is waited for by a program of an earlier release that starts, and rejects it", async () => {
    const close = await open((sql) => demandStep(sql, STEP));
    const start = assert.rejects(store.transact("migrateToFormer", null), /needs a release of schema 39 or newer/);
    await waiting(1);
    await close("commit");
    await start;
  });

  it("is refused while a program starts, which may be one of an earlier release", async () => {
    const close = await open((sql) => sql.dialect.locks.lockNumber(sql, mainPlan.lock));
    assert.equal(await store.transact("demand", null), false);
    await close("commit");
    assert.equal(await needs(), 15);
    assert.equal(await store.transact("demand", null), true);
  });
});

describe("a migration of tables that calls use in another order", () => {
  let database: FreshDatabase;
  let store: Store<typeof direct>;
  let call: Client;

  before(async () => {
    database = await freshDatabase();
    store = await openPostgresStore({ url: database.url, clock: systemClock }, direct);
    await store.transact("migrate", null);
    call = new Client({ connectionString: database.url });
    await call.connect();
  });
  after(async () => {
    await call.end();
    await store.close();
    await database.drop();
  });

  it("waits for a call that has read its root key, which then writes", async () => {
    await call.query("begin");
    await call.query("select * from root_keys");
    const migration = store.transact("migrateToNext", null);
    await eventually("the migration to wait for a lock", async () => {
      const { rows } = await call.query("select 1 from pg_locks where not granted and locktype = 'relation'");
      return rows.length > 0;
    });
    await call.query("update keys set name = 'written by the call'");
    await call.query("commit");
    assert.deepEqual(await migration, ["900-keys-then-root-keys"]);
    // A deadlock is tried again, and the next call could cause the next one.
    assert.equal(attempts, 1);
  });
});
