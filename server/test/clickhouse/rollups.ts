/** The contract of all stores of rollups, on ClickHouse. Run by `npm run test:clickhouse`. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { batchText } from "../../src/features/analytics/batch.ts";
import { migrateClickHouse } from "../../src/features/analytics/clickhouse/migrations.ts";
import { openClickHouseRollups } from "../../src/features/analytics/clickhouse/rollups.ts";
import { levels } from "../../src/features/analytics/levels.ts";
import type { Rollups } from "../../src/features/analytics/rollups.ts";
import { describeRollups, LOG, NOON, RETENTION } from "../../src/features/analytics/rollups-contract.ts";

// It is not in the node_modules of this repository.
const { createChdbConnection } = createRequire(join(process.env.LATCHKEY_TEST_CHDB!, "package.json"))(
  "chdb/connection",
);

describeRollups("ClickHouse", async () => {
  const { client, remove } = openFolder();
  const rollups = await openClickHouseRollups(client, RETENTION, LOG);
  return {
    ...rollups,
    async close() {
      await rollups.close();
      remove();
    },
  };
});

describe("sums in ClickHouse", () => {
  const LARGEST = Number.MAX_SAFE_INTEGER;
  /** So many of the largest numbers are more than a 64-bit integer can be. */
  const ROWS = 1_025;

  async function openHere(t: TestContext) {
    const { client, remove } = openFolder();
    const rollups = await openClickHouseRollups(client, RETENTION, LOG);
    t.after(async () => {
      await rollups.close();
      remove();
    });
    /** Rows as the writes of many batches make them, which the engine adds up to one. */
    const insert = async (amount: number, rows: number) => {
      const key = { level: "hour", time: NOON, outcome: "VALID" };
      const row = { ...key, subject: "key_1", part: "", label: "", count: amount, amount, latency_us: amount };
      const ids = { workspace_id: "ws_1", key_id: "key_1", identity_id: "", api_id: "api_1" };
      const usage = { ...key, ...ids, count: amount, credits_spent: amount };
      const format = "JSONEachRow";
      await client.insert({ table: "latchkey_rollups", values: Array(rows).fill(row), format });
      await client.insert({ table: "latchkey_usage", values: Array(rows).fill(usage), format });
      for (const table of ["latchkey_rollups", "latchkey_usage"]) {
        await client.command({ query: `optimize table ${table} final` });
      }
    };
    return { client, rollups, insert };
  }

  /** Counts and credits, in the statistics of the key and in the ranking of its workspace. */
  async function sumsOf(rollups: Rollups, hours = 1): Promise<number[]> {
    const range = { workspaceId: "ws_1", level: "hour", start: NOON, end: NOON + hours * levels.hour } as const;
    const { entries } = await rollups.top({ ...range, by: "key", limit: 1, examinedMax: 10_000 });
    const query = { ...range, about: "verifications", subject: "key_1", tags: [] } as const;
    const { total, creditsSpent } = JSON.parse(`{${await rollups.stats(query)}}`);
    return [total, creditsSpent, entries[0]!.total, entries[0]!.creditsSpent];
  }

  it("of rows that the engine has added up stop at the largest number (rule 216)", async (t) => {
    const { rollups, insert } = await openHere(t);
    await insert(LARGEST, ROWS);
    assert.deepEqual(await sumsOf(rollups), [LARGEST, LARGEST, LARGEST, LARGEST]);
  });

  it("of many hours stop at the largest number (rule 216)", async (t) => {
    const { rollups } = await openHere(t);
    const cells = Array.from({ length: ROWS }, (_, hour) => [
      NOON + hour * levels.hour,
      ...["ws_1", "api_1", "key_1", null, "", "VALID", LARGEST, LARGEST, LARGEST],
    ]);
    const parts = { keys: [], ratelimits: [], decisions: [], verifications: [JSON.stringify(cells)] };
    await rollups.write([batchText({ recorder: "node_1", sequence: 1 }, parts)]);
    assert.deepEqual(await sumsOf(rollups, ROWS), [LARGEST, LARGEST, LARGEST, LARGEST]);
  });

  it("are kept by the step that widens columns of 64-bit integers", async (t) => {
    const { client, rollups, insert } = await openHere(t);
    for (const table of ["latchkey_rollups", "latchkey_usage"]) {
      const columns = table === "latchkey_usage" ? ["count", "credits_spent"] : ["count", "amount", "latency_us"];
      const changes = columns.map((column) => `modify column ${column} Int64`);
      await client.command({ query: `alter table ${table} ${changes.join(", ")}` });
    }
    await client.command({ query: "delete from latchkey_migrations where name = '004-sums'" });
    const odd = LARGEST - 2;
    await insert(odd, 1);
    await migrateClickHouse(client);
    assert.deepEqual(await sumsOf(rollups), [odd, odd, odd, odd]);
    await insert(LARGEST, ROWS);
    assert.deepEqual(await sumsOf(rollups), [LARGEST, LARGEST, LARGEST, LARGEST]);
  });
});

/** A database in a folder of its own. */
function openFolder(): { client: ClickHouseClient; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-clickhouse-"));
  const client = createClient({ connection: createChdbConnection({ path: folder }) });
  return { client, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
