import type { Sql } from "../../../platform/store/store.ts";
import type { PackedKey } from "../packed-key.ts";
import { findUsualKeys } from "./lookup.ts";

/** A part of a walk through the keys that were used. */
export interface RecentKeysPage {
  cursor: string;
  /** The most last uses that are examined. */
  limit: number;
  /** The most keys that are returned. */
  keysMax: number;
  /** When they were last used: at this time or later, and before the other. */
  since: number;
  before: number;
}

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
 * Of up to `limit` keys with ids after `cursor`, those that were last used in a time and are found by the SHA-256 of their
 * string, and how many were examined.
 */
export async function recentKeysAfter(
  connection: Sql,
  { cursor, limit, keysMax, since, before }: RecentKeysPage,
): Promise<{ keys: PackedKey[]; examined: number; next: Cursor }> {
  const used = await connection.db
    .selectFrom("key_usage")
    .select(["key_id", "last_used_at"])
    .where("key_id", ">", cursor)
    .orderBy("key_id")
    .limit(limit)
    .execute();
  const recent = used
    .filter(({ last_used_at }) => last_used_at >= since && last_used_at < before)
    .map(({ key_id }) => key_id);
  const ids = recent.slice(0, keysMax);
  const isCut = ids.length < recent.length;
  const last = (isCut ? ids : used.map(({ key_id }) => key_id)).at(-1);
  return {
    keys: ids.length === 0 ? [] : await findUsualKeys(connection, ids),
    examined: isCut ? used.findIndex(({ key_id }) => key_id === last) + 1 : used.length,
    next: !isCut && used.length < limit ? null : (last ?? null),
  };
}
