import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** A part of a walk through the last uses of all keys. */
export interface LastUsesPage {
  /** The id after which it begins. */
  cursor: string;
  /** The most last uses that are examined. */
  limit: number;
}

/** A part of a walk through the keys that were used in a time. */
export interface RecentKeysPage extends LastUsesPage {
  /** The most ids that are returned. */
  idsMax: number;
  /** When the keys were last used: at this time or later, and before the other. */
  since: number;
  before: number;
}

/** Where a walk continues; null at the end. */
type Cursor = string | null;

/** Ages are told apart by their logarithm, to about 4 %. */
const STEPS_PER_DOUBLING = 16;

/** The age in milliseconds above all of those that have a step. */
export function ageAbove(step: number): number {
  return Math.ceil(2 ** ((step + 1) / STEPS_PER_DOUBLING));
}

/** How many of the keys of a part have an age, by steps of its logarithm. */
export async function lastUseAges(
  { db }: Sql,
  { cursor, limit, now }: LastUsesPage & { now: Instant },
): Promise<{ ages: { step: number; keys: number }[]; next: Cursor }> {
  const end = await endOf({ db }, { cursor, limit });
  const age = raw`(case when last_used_at < ${now} then ${now} - last_used_at else 1 end)`;
  let query = db
    .selectFrom("key_usage")
    .select(({ fn }) => [
      raw<number>`cast(ln(${age}) * ${STEPS_PER_DOUBLING / Math.LN2} as integer)`.as("step"),
      fn.countAll().as("keys"),
    ])
    .where("key_id", ">", cursor)
    .groupBy("step");
  if (end !== null) query = query.where("key_id", "<=", end);
  const rows = await query.execute();
  return { ages: rows.map(({ step, keys }) => ({ step, keys: Number(keys) })), next: end };
}

/** The ids of the keys of a part that were last used in a time. */
export async function recentKeyIds(
  { db }: Sql,
  { cursor, limit, idsMax, since, before }: RecentKeysPage,
): Promise<{ ids: string[]; next: Cursor }> {
  const end = await endOf({ db }, { cursor, limit });
  let query = db
    .selectFrom("key_usage")
    .select("key_id")
    .where("key_id", ">", cursor)
    .where("last_used_at", ">=", since)
    .where("last_used_at", "<", before)
    .orderBy("key_id")
    .limit(idsMax);
  if (end !== null) query = query.where("key_id", "<=", end);
  const ids = (await query.execute()).map(({ key_id }) => key_id);
  return { ids, next: ids.length < idsMax ? end : (ids.at(-1) ?? end) };
}

/** The last id of a part; null if the part is the last one. */
async function endOf({ db }: Pick<Sql, "db">, { cursor, limit }: LastUsesPage): Promise<Cursor> {
  const last = await db
    .selectFrom("key_usage")
    .select("key_id")
    .where("key_id", ">", cursor)
    .orderBy("key_id")
    .offset(limit - 1)
    .limit(1)
    .executeTakeFirst();
  return last?.key_id ?? null;
}
