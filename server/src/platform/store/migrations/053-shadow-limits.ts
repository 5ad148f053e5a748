import { type Kysely, sql } from "kysely";

/** The shadow mode of limits: they are counted and never deny. Null, for an override: as the call says. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const integer = sql.raw(dialect === "postgres" ? "bigint" : "integer");
  await sql`alter table ratelimits add column shadow ${integer} not null default 0`.execute(db);
  await sql`alter table ratelimit_overrides add column shadow ${integer}`.execute(db);
}
