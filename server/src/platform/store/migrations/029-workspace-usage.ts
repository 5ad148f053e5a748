import { type Kysely, sql } from "kysely";

/** What each workspace has of what is limited, and what counts the overrides of one without reading those of others. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table workspace_usage (
       workspace_id ${text} not null,
       quota ${text} not null,
       total ${integer} not null,
       counted ${integer},
       counted_total ${integer} not null,
       counted_at ${integer} not null,
       primary key (workspace_id, quota)
     )${postgres ? "" : " strict, without rowid"}`,
  );
  await run("create index ratelimit_overrides_workspace on ratelimit_overrides (workspace_id, id)");
}
