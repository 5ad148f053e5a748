import { type Kysely, sql } from "kysely";

/**
 * Verifications by workspace and key, by hour and day: what `rollups` do not know. They are tables of their own, so that
 * nodes of the previous release continue to write the tables that they know.
 */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  for (const name of ["analytics_usage_hours", "analytics_usage_days"]) {
    await sql
      .raw(
        `create table ${name} (
           time ${integer} not null,
           workspace_id ${text} not null,
           key_id ${text} not null,
           identity_id ${text} not null,
           outcome ${text} not null,
           api_id ${text} not null,
           count ${integer} not null,
           credits_spent ${integer} not null,
           primary key (time, workspace_id, key_id, identity_id, outcome)
         )${postgres ? "" : " strict, without rowid"}`,
      )
      .execute(db);
  }
}
