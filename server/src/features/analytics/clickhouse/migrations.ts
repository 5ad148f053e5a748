import type { ClickHouseClient } from "@clickhouse/client";
import { NewerSchema, versionOf } from "../../../platform/store/migrate.ts";

/**
 * All steps, in order. Each step can be repeated, because ClickHouse has no transactions. A step is not edited after its
 * release. Programs that do not know a step run beside it, unless its name contains `-contract-`.
 */
const steps: Readonly<Record<string, readonly string[]>> = {
  "001-rollups": [
    // One table for all levels, so that a batch is one insert. The engine sums rows with the same sort key in the
    // background, so queries sum too. The deduplication window drops repeated inserts by their token.
    `create table if not exists latchkey_rollups (
       subject String,
       level LowCardinality(String),
       time Int64,
       part String,
       outcome LowCardinality(String),
       label String,
       count Int64,
       amount Int64,
       latency_us Int64
     )
     engine = SummingMergeTree((count, amount, latency_us))
     partition by toYYYYMM(toDateTime(intDiv(time, 1000), 'UTC'))
     order by (subject, level, time, part, outcome)
     settings non_replicated_deduplication_window = 10000`,
  ],
  "002-usage": [
    `create table if not exists latchkey_usage (
       workspace_id String,
       level LowCardinality(String),
       time Int64,
       key_id String,
       identity_id String,
       outcome LowCardinality(String),
       api_id String,
       count Int64,
       credits_spent Int64
     )
     engine = SummingMergeTree((count, credits_spent))
     partition by toYYYYMM(toDateTime(intDiv(time, 1000), 'UTC'))
     order by (workspace_id, level, time, key_id, identity_id, outcome)
     settings non_replicated_deduplication_window = 10000`,
  ],
  "003-decisions": [
    `create table if not exists latchkey_decisions (
       workspace_id String,
       at Int64,
       id String,
       code LowCardinality(String),
       key_id String,
       api_id String,
       identity_id String,
       namespace_id String,
       request_id String,
       answer String
     )
     engine = MergeTree
     partition by toYYYYMM(toDateTime(intDiv(at, 1000), 'UTC'))
     order by (workspace_id, at, id)
     settings non_replicated_deduplication_window = 10000`,
  ],
  "004-sums": [
    // The engine adds up without a bound, and 64-bit integers become negative then. These numbers are exact up to the largest
    // sum that is kept, and stay large beyond it. Readers bound them.
    `alter table latchkey_rollups
       modify column count Float64, modify column amount Float64, modify column latency_us Float64`,
    "alter table latchkey_usage modify column count Float64, modify column credits_spent Float64",
  ],
};

/**
 * Runs the missing steps. Nodes may run it concurrently.
 *
 * @throws {NewerSchema} if a newer program has migrated the tables.
 */
export async function migrateClickHouse(client: ClickHouseClient): Promise<void> {
  await client.command({
    query: "create table if not exists latchkey_migrations (name String) engine = ReplacingMergeTree order by name",
  });
  const result = await client.query({ query: "select distinct name from latchkey_migrations", format: "JSONEachRow" });
  const ran = new Set((await result.json<{ name: string }>()).map(({ name }) => name));
  for (const name of ran) {
    if (name in steps || !name.includes("-contract-")) continue;
    throw new NewerSchema({ last: name, needs: versionOf(name), program: versionOf(Object.keys(steps).at(-1)) });
  }
  for (const [name, statements] of Object.entries(steps)) {
    if (ran.has(name)) continue;
    // Without waiting until existing rows are rewritten, which can take minutes: until then they are converted when they are read.
    for (const query of statements) await client.command({ query, clickhouse_settings: { alter_sync: "0" } });
    await client.insert({ table: "latchkey_migrations", values: [{ name }], format: "JSONEachRow" });
  }
}
