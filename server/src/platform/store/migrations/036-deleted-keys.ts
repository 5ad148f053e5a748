import { type Kysely, sql } from "kysely";

/** Their index is built in some tenths of a second. */
const KEYS_INDEXED_HERE = 100_000;

/** What lists the deleted keys of an API. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  // A build blocks writes. On a large table of PostgreSQL, the index is built beside the service.
  const { rows } = await sql`select 1 from keys limit 1 offset ${sql.lit(KEYS_INDEXED_HERE)}`.execute(db);
  if (dialect === "postgres" && rows.length > 0) return;
  await sql
    .raw("create index keys_deleted_of_api on keys (api_id, created_at, id) where deleted_at is not null")
    .execute(db);
}
