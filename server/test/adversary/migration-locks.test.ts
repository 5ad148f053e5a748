/** Migrations beside calls of nodes of the former release: neither waits for the other in a circle. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Kysely, sql as raw } from "kysely";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { type MigrationPlan, mainPlan, migrate } from "../../src/platform/store/migrate.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import type { Sql, Store } from "../../src/platform/store/store.ts";
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

const direct = {
  reading: {},
  writing: {
    migrate: (sql: Sql, _: null) => migrate(sql),
    migrateToNext: (sql: Sql, _: null) => migrate(sql, next),
  },
};

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
