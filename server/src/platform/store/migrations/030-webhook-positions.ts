import { type Kysely, sql } from "kysely";

/** The events that wait for a webhook without a delivery of their own, and what decides how many deliveries it may have. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(`alter table webhooks add column behind ${text}`);
  await run(`alter table webhooks add column behind_since ${integer}`);
  await run(`alter table webhooks add column handed_at ${integer}`);
  await run(`alter table webhooks add column delivered_at ${integer}`);
  await run("create index webhooks_behind on webhooks (id) where behind is not null");
}
