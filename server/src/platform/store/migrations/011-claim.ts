import { type Kysely, sql } from "kysely";

/** The one row that says which process, or which group of processes, counts limits on this database. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  await sql
    .raw(
      `create table claim (
         id ${integer} not null primary key check (id = 1),
         holder ${text} not null,
         shared ${integer} not null,
         lease_ms ${integer} not null
       )${postgres ? "" : " strict"}`,
    )
    .execute(db);
}
