/** The holder of the retention lease is frozen by SIGSTOP while it deletes; another node goes on, and it deletes nothing more. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { makeFolder, type Server, start } from "../process.ts";
import { parseExposition } from "../prometheus.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

/** A step deletes 1,000 of them at most. */
const ROWS = 60_000;
/** Nodes try to take the lease this often. */
const INTERVAL_MS = 20_000;
const names = ["a", "b"] as const;

describe("a node that is frozen while it deletes old rows", () => {
  it("is replaced, and deletes nothing after it wakes", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const observer = new Client({ connectionString: database.url });
    // Dropping the database disconnects it.
    observer.on("error", () => {});
    await observer.connect();
    const launch = async (name: string) => {
      // The account of the database says which node has deleted.
      const url = new URL(database.url);
      url.username = `${url.pathname.slice(1)}_${name}`;
      await observer.query(`create role ${url.username} superuser login`);
      const settings = { DATABASE_URL: url.href, REDIS_URL: await sharedRedis(), ANALYTICS: "off" };
      return start({ directory: makeFolder(t), settings });
    };
    const nodes: Record<string, Server> = {};
    for (const name of names) nodes[name] = await launch(name);
    await observer.query(`
      create table deletions (node text not null, rows bigint not null, at timestamptz not null);
      create function record_deletion() returns trigger language plpgsql as $$
      begin
        insert into deletions select right(session_user, 1), count(*), clock_timestamp() from gone;
        return null;
      end $$;
      create trigger recorded after delete on idempotency_records referencing old table as gone
        for each statement execute function record_deletion();
      insert into idempotency_records (scope, workspace_id, fingerprint, outcome, created_at)
        select 'scope' || i, 'none', '', '', 0 from generate_series(1, ${ROWS}) i;
    `);
    const deletedBy = async (name: string, since = new Date(0)) => {
      const { rows } = await observer.query(
        "select coalesce(sum(rows), 0)::int as count from deletions where node = $1 and at > $2",
        [name, since],
      );
      return rows[0].count as number;
    };
    const holds = async (name: string) => {
      const metrics = await (await fetch(`${nodes[name]!.address}/metrics`)).text();
      return parseExposition(metrics).value("latchkey_retention_lease") === 1;
    };

    let holder: string | undefined;
    await within(2 * INTERVAL_MS, "a node to delete", async () => {
      for (const name of names) if ((await deletedBy(name)) > 0) holder = name;
      return holder !== undefined;
    });
    const other = names.find((name) => name !== holder)!;
    const frozen = nodes[holder!]!;
    await freezeInStep(frozen, observer);
    const before = await deletedBy(holder!);
    assert(before < ROWS, "everything was deleted before the freeze");
    // The server ends the step of the frozen node. Nobody waits for the minute that a lease lasts.
    await observer.query("update leases set expires_at = 0");
    await within(2 * INTERVAL_MS, "another node to go on", async () => (await deletedBy(other)) > 0);
    assert.equal(await deletedBy(holder!), before, "the frozen step was committed");

    const { rows } = await observer.query("select clock_timestamp() as now");
    frozen.signal("SIGCONT");
    await within(2 * INTERVAL_MS, "the former holder to know", async () => !(await holds(holder!)));
    await within(2 * INTERVAL_MS, "all old rows to be deleted", async () => {
      return (await observer.query("select 1 from idempotency_records where created_at = 0 limit 1")).rows.length === 0;
    });
    assert.equal(await deletedBy(holder!, rows[0].now), 0, "the former holder has deleted rows");
    assert.equal((await deletedBy(other)) + before, ROWS);
    assert.equal(await holds(other), true);
    t.diagnostic(`${before} rows were deleted before the freeze, ${ROWS - before} by the other node`);
    for (const name of names) assert.equal((await nodes[name]!.kill("SIGTERM")).code, 0);
  });
});

/** Waits for longer than `eventually`. */
async function within(ms: number, what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + ms + 30_000;
  while (performance.now() < until) {
    if (await isTrue()) return;
    await setTimeout(50);
  }
  throw new Error(`Waited for ${what}.`);
}

/** Freezes a node in the middle of a step: its transaction has the row of the lease. */
async function freezeInStep(node: Server, observer: Client): Promise<void> {
  for (let attempts = 0; attempts < 300; attempts++) {
    node.signal("SIGSTOP");
    // The server completes the statement that it runs.
    await setTimeout(60);
    const { rows } = await observer.query("select 1 from leases where name = 'retention' for update skip locked");
    if (rows.length === 0) return;
    node.signal("SIGCONT");
    await setTimeout(5 + (attempts % 7));
  }
  throw new Error("The node was never frozen in the middle of a step");
}
