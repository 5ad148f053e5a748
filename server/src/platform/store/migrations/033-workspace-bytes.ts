import { type Kysely, sql } from "kysely";

/** The bytes that changes of each workspace wrote, by the day of their time, and since when a quota is nearly reached. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table workspace_bytes (
       workspace_id ${text} not null,
       kind ${text} not null,
       day ${integer} not null,
       bytes ${integer} not null,
       primary key (workspace_id, kind, day)
     )${postgres ? "" : " strict, without rowid"}`,
  );
  await run("create index workspace_bytes_day on workspace_bytes (kind, day)");
  await run(`alter table workspace_usage add column near_at ${integer}`);
  await run("create index workspace_usage_near on workspace_usage (quota, workspace_id) where near_at is not null");
}
