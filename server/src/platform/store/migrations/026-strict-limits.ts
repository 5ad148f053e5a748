import type { Kysely } from "kysely";

/** The mode of limits. A limit without one counts as `standard`, an override without one in the mode of the call. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable("ratelimits")
    .addColumn("mode", "text", (column) => column.notNull().defaultTo("standard"))
    .execute();
  await db.schema.alterTable("ratelimit_overrides").addColumn("mode", "text").execute();
}
