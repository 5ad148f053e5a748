import { type Kysely, sql } from "kysely";

/** Whether the holders of an API's keys may read them. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const integer = dialect === "postgres" ? "bigint" : "integer";
  await sql.raw(`alter table apis add column own_key_access ${integer} not null default 0`).execute(db);
}
