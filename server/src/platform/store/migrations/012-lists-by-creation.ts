import { type Kysely, sql } from "kysely";

/** Lists are in the order of creation: indexes that serve a page of each without sorting, in place of those by id. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const run = (statement: string) => sql.raw(statement).execute(db);
  for (const table of ["apis", "identities", "permissions", "roles", "root_keys", "ratelimit_namespaces"]) {
    await run(`create index ${table}_created on ${table} (workspace_id, created_at, id)`);
    await run(`drop index ${table}_workspace`);
  }
  await run("create index ratelimit_overrides_created on ratelimit_overrides (namespace_id, created_at, id)");
  await run("drop index ratelimit_overrides_page");
  await run("create index keys_created on keys (api_id, created_at, id) where deleted_at is null");
  await run("drop index keys_api");
  await run("create index workspaces_created on workspaces (created_at, id)");
}
