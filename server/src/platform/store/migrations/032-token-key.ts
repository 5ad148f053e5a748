import { type Kysely, sql } from "kysely";

/** The key that signs tokens of sessions, so that an invented token is recognized without a look-up. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const statement = `create table token_key (
       id ${integer} not null primary key check (id = 1),
       key ${text} not null
     )${postgres ? "" : " strict"}`;
  await sql.raw(statement).execute(db);
}
