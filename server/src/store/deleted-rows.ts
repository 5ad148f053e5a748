import { sql as raw } from "kysely";
import type { Instant } from "../clock/clock.ts";
import { passOnMadeRootKeys } from "./administration/root-keys.ts";
import { isOneOf } from "./json.ts";
import { buildIndex } from "./postgres/build-index.ts";
import type { Sql } from "./store.ts";

/** Tables whose deleted rows stay for a while, with what still refers to such a row; null if other rules decide that. */
const references = {
  keys: null,
  identities:
    "select 1 from keys where keys.identity_id = identities.id " +
    "union all select 1 from portal_sessions where identity_id = identities.id",
  ratelimit_namespaces: "select 1 from ratelimit_overrides where namespace_id = ratelimit_namespaces.id",
  root_keys:
    "select 1 from sessions where root_key_id = root_keys.id " +
    "union all select 1 from sign_in_links where root_key_id = root_keys.id " +
    "union all select 1 from portal_sessions where root_key_id = root_keys.id",
  webhooks: "select 1 from webhook_deliveries where webhook_id = webhooks.id",
} as const;

/** The indexes by which rows to delete are found. On PostgreSQL, those of large tables are built beside the service. */
export const deletedRowIndexes: readonly string[] = [
  ...Object.keys(references).map((table) => `${table}_deleted`),
  "keys_ended",
];

/**
 * Builds the indexes by which deleted rows are found, where they are missing. On PostgreSQL they are built beside reads and
 * writes; a build that was interrupted starts again. Not in a transaction.
 */
export async function indexDeletedRows(sql: Sql): Promise<void> {
  if (sql.dialect !== "postgres") return;
  for (const table of Object.keys(references)) {
    await buildIndex(sql, `${table}_deleted`, raw`on ${raw.table(table)} (deleted_at) where deleted_at is not null`);
  }
  await buildIndex(
    sql,
    "keys_ended",
    raw`on keys (expires_at) where expires_at is not null and deleted_once_expired = 1 and deleted_at is null`,
  );
}

/** Finds and deletes the deleted rows of a table to which nothing refers, the oldest first. */
export function deletedRows(table: Exclude<keyof typeof references, "keys">) {
  const old = (before: Instant) => raw`deleted_at is not null and deleted_at < ${before}
    and not exists (${raw.raw(references[table])})`;
  return {
    async oldest({ db }: Sql, before: Instant): Promise<number | null> {
      const { rows } = await raw<{ at: number }>`
        select deleted_at as at from ${raw.table(table)} where ${old(before)} order by deleted_at limit 1`.execute(db);
      return rows[0] === undefined ? null : Number(rows[0].at);
    },
    async step(sql: Sql, before: Instant, limit: number): Promise<number> {
      const { rows } = await raw<{ id: string }>`
        select id from ${raw.table(table)} where ${old(before)} order by deleted_at limit ${limit}`.execute(sql.db);
      const ids = rows.map(({ id }) => id);
      if (ids.length === 0) return 0;
      if (table === "root_keys") await passOnMadeRootKeys(sql, ids);
      await raw`delete from ${raw.table(table)} where ${isOneOf(sql, "id", ids)}`.execute(sql.db);
      return ids.length;
    },
  };
}
