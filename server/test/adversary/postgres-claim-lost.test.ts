/**
 * The connection of a claim ends between the lock and the first write: a start goes on, and the claim is regained. It ends
 * because the database was replaced by an earlier copy: that is claimed anew.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { migrate } from "../../src/platform/store/migrate.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import type { Claim, Sql, Store } from "../../src/platform/store/store.ts";
import { eventually } from "../process.ts";
import { type FreshDatabase, freshDatabase } from "../services/postgres.ts";

const direct = { reading: {}, writing: { migrate: (sql: Sql, _: null) => migrate(sql) } };

describe("a claim whose connection ends", () => {
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
    it(`before it is written, which is noticed ${title}, is regained`, async () => {
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

  /** A claim that is held, and what it reports. */
  async function claimed(): Promise<{ claim: Claim; reported: string[] }> {
    const reported: string[] = [];
    const claim = await store.claim({
      shared: false,
      holder: "node_now",
      formerHolders: ["node_before"],
      lease: 60_000,
      onWait: () => reported.push("wait"),
      onLost: () => reported.push("lost"),
      onRegained: () => reported.push("regained"),
      onTaken: () => reported.push("taken"),
    });
    assert(claim);
    await claim.settle();
    return { claim, reported };
  }

  it("is reported as lost once, however often an attempt to regain it fails", async () => {
    const { claim, reported } = await claimed();
    // As in a copy whose tables belong to another role: connections work, and statements do not.
    await client.query("alter table claim rename to claim_elsewhere");
    await cut("node_now");
    const attempts = new Set<number>();
    await eventually("attempts", async () => {
      const name = "latchkey-claim-node_now";
      const { rows } = await client.query("select pid from pg_stat_activity where application_name = $1", [name]);
      for (const { pid } of rows) attempts.add(pid);
      return attempts.size > 3;
    });
    await client.query("alter table claim_elsewhere rename to claim");
    await eventually("the claim", () => reported.includes("regained"));
    // The next loss is reported again.
    await cut("node_now");
    await eventually("the claim", () => reported.filter((event) => event === "regained").length > 1);
    assert.deepEqual(reported, ["lost", "regained", "lost", "regained"]);
    await claim.release();
  });

  /** What a holder reports when it regains its claim in a database whose row of the claim is replaced meanwhile. */
  async function claimedAgain(statement: string): Promise<{ reported: string[]; holder: string | undefined }> {
    const { claim, reported } = await claimed();
    await client.query(statement);
    await cut("node_now");
    await eventually("the end of the claim, or its return", () => reported.length > 1);
    const { rows } = await client.query<{ holder: string }>("select holder from claim");
    await claim.release();
    await client.query("delete from claim");
    return { reported, holder: rows[0]?.holder };
  }

  for (const [title, statement] of [
    ["while an earlier process on the data folder served", "update claim set holder = 'node_before'"],
    ["while nothing served", "delete from claim"],
  ]) {
    it(`is claimed anew in a copy that was made ${title}`, async () => {
      assert.deepEqual(await claimedAgain(statement!), { reported: ["lost", "regained"], holder: "node_now" });
    });
  }

  it("is taken where the row names another process", async () => {
    const other = "update claim set holder = 'node_other'";
    assert.deepEqual(await claimedAgain(other), { reported: ["lost", "taken"], holder: "node_other" });
  });
});
