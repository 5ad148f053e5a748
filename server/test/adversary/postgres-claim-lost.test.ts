/** The connection of a claim ends between the lock and the first write: a start goes on, and the claim is regained. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { migrate } from "../../src/platform/store/migrate.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import type { Sql, Store } from "../../src/platform/store/store.ts";
import { eventually } from "../process.ts";
import { type FreshDatabase, freshDatabase } from "../services/postgres.ts";

const direct = { reading: {}, writing: { migrate: (sql: Sql, _: null) => migrate(sql) } };

describe("a claim whose connection ends before it is written", () => {
  let database: FreshDatabase;
  let store: Store<typeof direct>;
  let client: Client;

  before(async () => {
    database = await freshDatabase();
    store = await openPostgresStore({ url: database.url, clock: systemClock }, direct);
    await store.transact("migrate", null);
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  after(async () => {
    await client.end();
    await store.close();
    await database.drop();
  });

  /** Ends the connection of the claim of this holder on the server. */
  async function cut(holder: string): Promise<void> {
    const { rowCount } = await client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1",
      [`latchkey-claim-${holder}`],
    );
    assert.equal(rowCount, 1);
  }

  for (const [title, seen] of [
    ["at the write", false],
    ["before the write", true],
  ] as const) {
    it(`and is noticed ${title}, is regained`, async () => {
      const holder = `node_cut${Number(seen)}`;
      const lost: string[] = [];
      const claim = await store.claim({
        shared: false,
        holder,
        formerHolders: ["node_cut0"],
        lease: 5_000,
        onWait: () => {},
        onLost: () => lost.push("lost"),
        onRegained: () => {},
        onTaken: () => lost.push("taken"),
      });
      assert(claim);
      await cut(holder);
      // The end of the connection arrives with, or before, the answers to these queries.
      if (seen) for (let i = 0; i < 20; i++) await client.query("select 1");
      await claim.settle();
      await eventually("the claim", () => claim.mayCount);
      assert.deepEqual(lost, []);
      await claim.release();
    });
  }
});
