import { type Kysely, sql } from "kysely";

/** Refills by the calendar of a time zone, at more intervals, and with a rollover. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const columns = {
    refill_month: integer,
    refill_zone: text,
    refill_rollover: integer,
    refill_mark: integer,
  };
  for (const [column, type] of Object.entries(columns)) {
    await sql.raw(`alter table balances add column ${column} ${type}`).execute(db);
  }
}
