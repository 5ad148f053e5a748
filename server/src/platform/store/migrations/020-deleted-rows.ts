import { type Kysely, sql } from "kysely";

/** Their index is built in some tenths of a second. */
const ROWS_INDEXED_HERE = 100_000;

/** What finds rows that were deleted long ago. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  for (const table of ["identities", "ratelimit_namespaces", "root_keys"]) {
    // A build blocks writes. On a large table of PostgreSQL, the index is built beside the service.
    const { rows } = await sql`select 1 from ${sql.table(table)} limit 1 offset ${sql.lit(ROWS_INDEXED_HERE)}`.execute(
      db,
    );
    if (dialect === "postgres" && rows.length > 0) continue;
    await sql.raw(`create index ${table}_deleted on ${table} (deleted_at) where deleted_at is not null`).execute(db);
  }
}
