import type { KeyLocation } from "../../../../../engine/src/directory/stored.ts";
import { hashVersions } from "../../../../../engine/src/rules/imported-keys.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** Where a walk through the last uses of all keys continues; null at the end. */
type Cursor = string | null;

/** The times at which up to `limit` keys with ids after `cursor` were last used. */
export async function lastUsesAfter(
  { db }: Sql,
  { cursor, limit }: { cursor: string; limit: number },
): Promise<{ times: number[]; next: Cursor }> {
  const rows = await db
    .selectFrom("key_usage")
    .select(["key_id", "last_used_at"])
    .where("key_id", ">", cursor)
    .orderBy("key_id")
    .limit(limit)
    .execute();
  return {
    times: rows.map(({ last_used_at }) => Number(last_used_at)),
    next: rows.length < limit ? null : (rows.at(-1)?.key_id ?? null),
  };
}

/**
 * Of up to `limit` keys with ids after `cursor`, the locations of those that were last used at `since` or later and are
 * found by the SHA-256 of their string.
 */
export async function recentKeysAfter(
  { db }: Sql,
  { cursor, limit, since }: { cursor: string; limit: number; since: number },
): Promise<{ locations: KeyLocation[]; next: Cursor }> {
  const rows = await db
    .selectFrom((query) =>
      query
        .selectFrom("key_usage")
        .select(["key_id", "last_used_at"])
        .where("key_id", ">", cursor)
        .orderBy("key_id")
        .limit(limit)
        .as("used"),
    )
    .leftJoin("keys", (join) =>
      join
        .onRef("keys.id", "=", "used.key_id")
        .on("used.last_used_at", ">=", since)
        .on("keys.hash_version", "=", hashVersions.sha256)
        .on("keys.migration_id", "is", null)
        .on("keys.deleted_at", "is", null),
    )
    .select(["used.key_id", "keys.hash", "keys.workspace_id"])
    .orderBy("used.key_id")
    .execute();
  return {
    locations: rows.flatMap(({ hash, workspace_id }) =>
      hash === null || workspace_id === null ? [] : [{ hash, workspace_id }],
    ),
    next: rows.length < limit ? null : (rows.at(-1)?.key_id ?? null),
  };
}
