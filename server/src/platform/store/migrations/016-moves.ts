import { type Kysely, sql } from "kysely";

/** The one row of a database that is moved, or that is a copy: see `latchkey migrate-store`. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  // `migrate-store` creates it too, where it is missing.
  await sql
    .raw(
      `create table if not exists moves (
         id ${integer} not null primary key check (id = 1),
         move_id ${text} not null,
         role ${text} not null,
         other ${text} not null,
         started_at ${integer} not null,
         closed_until ${integer},
         ended_at ${integer}
       )${postgres ? "" : " strict"}`,
    )
    .execute(db);
}
