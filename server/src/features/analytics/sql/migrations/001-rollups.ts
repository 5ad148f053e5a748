import { type Kysely, sql } from "kysely";

/** Rollups by minute, hour and day, and which batches are in them. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const table = (name: string, columns: string) =>
    sql.raw(`create table ${name} (${columns})${postgres ? "" : " strict, without rowid"}`).execute(db);

  for (const name of ["analytics_minutes", "analytics_hours", "analytics_days"]) {
    await table(
      name,
      `time ${integer} not null,
       subject ${text} not null,
       part ${text} not null,
       outcome ${text} not null,
       label ${text} not null,
       count ${integer} not null,
       amount ${integer} not null,
       latency_us ${integer} not null,
       primary key (time, subject, part, outcome)`,
    );
  }
  await table(
    "analytics_recorders",
    `id ${text} not null primary key,
     sequence ${integer} not null,
     seen_at ${integer} not null`,
  );
}
