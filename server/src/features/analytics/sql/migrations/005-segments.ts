import { type Kysely, sql } from "kysely";

/** Counts of writes with many keys, until they are merged into the tables of counts, and the list of these writes. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table analytics_segments (
       id ${postgres ? "bigint generated always as identity primary key" : "integer not null primary key autoincrement"},
       first_minute ${integer} not null,
       last_minute ${integer} not null,
       "rows" ${integer} not null,
       merged_to ${text}
     )${postgres ? "" : " strict"}`,
  );
  await run(
    `create table analytics_segment_rows (
       segment ${integer} not null,
       workspace_id ${text} not null,
       subject ${text} not null,
       identity_id ${text} not null,
       outcome ${text} not null,
       time ${integer} not null,
       api_id ${text} not null,
       count ${integer} not null,
       amount ${integer} not null,
       latency_us ${integer} not null,
       primary key (segment, workspace_id, subject, identity_id, outcome, time)
     )${postgres ? "" : " strict, without rowid"}`,
  );
}
