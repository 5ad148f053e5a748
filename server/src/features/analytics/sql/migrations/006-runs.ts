import { type Kysely, sql } from "kysely";

/** Counts of writes with many keys on the embedded database, in blocks, until they are merged into the tables of counts. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table analytics_runs (
       id ${postgres ? "bigint generated always as identity primary key" : "integer not null primary key autoincrement"},
       first_minute ${integer} not null,
       last_minute ${integer} not null,
       "rows" ${integer} not null,
       merged_to ${text}
     )${postgres ? "" : " strict"}`,
  );
  await run(
    `create table analytics_run_blocks (
       run ${integer} not null,
       workspace_id ${text} not null,
       last_subject ${text} not null,
       data ${text} not null,
       primary key (run, workspace_id, last_subject)
     )${postgres ? "" : " strict, without rowid"}`,
  );
}
