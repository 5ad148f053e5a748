import { type Kysely, sql } from "kysely";

/** What nodes last knew of the Redis that they count in, so that one that lost its data is noticed by a later process. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const statement = `create table redis_epochs (
       id ${integer} not null primary key check (id = 1),
       epoch ${text} not null,
       lost_at ${integer} not null,
       seen_at ${integer} not null
     )${postgres ? "" : " strict"}`;
  await sql.raw(statement).execute(db);
}
