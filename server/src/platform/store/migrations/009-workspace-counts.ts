import { type Kysely, sql } from "kysely";

/** What counts the records of a workspace without reading those of others. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw("create index idempotency_records_workspace on idempotency_records (workspace_id)").execute(db);
  await sql.raw("create index keys_workspace on keys (workspace_id, id) where deleted_at is null").execute(db);
}
