import type { ClickHouseClient } from "@clickhouse/client";
import { NewerSchema } from "../../store/migrate.ts";

/**
 * Every step, in order; each can be repeated, for ClickHouse has no transactions to run it in. A step that has shipped is
 * never edited.
 */
const steps: Readonly<Record<string, readonly string[]>> = {
  "001-rollups": [
    // One table for all levels, so that a batch is one insert. The engine adds up rows with the same order key; until it
    // has, queries do. A window of tokens is what makes an insert that is repeated count once.
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
};

/**
 * Makes the tables, or what has come since. Nodes that start together do it together.
 *
 * @throws {NewerSchema} when a newer program was here before.
 */
export async function migrateClickHouse(client: ClickHouseClient): Promise<void> {
  await client.command({
    query: "create table if not exists latchkey_migrations (name String) engine = ReplacingMergeTree order by name",
  });
  const result = await client.query({ query: "select distinct name from latchkey_migrations", format: "JSONEachRow" });
  const ran = new Set((await result.json<{ name: string }>()).map(({ name }) => name));
  for (const name of ran) if (!(name in steps)) throw new NewerSchema(name);
  for (const [name, statements] of Object.entries(steps)) {
    if (ran.has(name)) continue;
    for (const query of statements) await client.command({ query });
    await client.insert({ table: "latchkey_migrations", values: [{ name }], format: "JSONEachRow" });
  }
}
