import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../clock/clock.ts";
import type { Sql } from "../store.ts";
import { type Quota, type QuotaMaxima, quotaNames, quotas } from "./quotas.ts";

/** The most rows that a transaction counts itself: about a millisecond. */
const COUNTED_HERE_MAX = 5_000;

/** The most rows that one step of a longer count reads: about 5 ms. */
export const COUNT_STEP = 20_000;

/** A count is repeated after this time: nodes of an earlier release, and commands of an operator, add uncounted rows. */
const AGE_MAX: Milliseconds = 86_400_000;

/** Smallest number of additions after which a workspace near its quota is counted again. */
const ADDED_MIN = 100;

/** What a transaction adds to the usage of its workspace. */
export interface Taken {
  /** The quota that it exceeds; it must be rolled back. */
  exceeded: Quota | undefined;
  /** What should be counted again, outside of this transaction. */
  outdated: Quota[];
}

/** The number of rows that were inserted less those deleted, by table. */
export type RowChanges = ReadonlyMap<string, number>;

/**
 * Adds the rows that a transaction inserted to the usage of its workspace, and says whether they exceed a quota. Call it last:
 * it locks the usage until the transaction ends, so that transactions at the same time cannot exceed a quota together.
 *
 * The usage is the last count and what was added since, so it is never too low; rows that are deleted lower it at the next
 * count. Short counts are made here when they decide. Until a longer first count has ended, the quota is not enforced.
 */
export async function takeQuotas(
  sql: Sql,
  workspaceId: string,
  changes: RowChanges,
  maxima: QuotaMaxima,
  now: Instant,
): Promise<Taken> {
  const taken: Taken = { exceeded: undefined, outdated: [] };
  for (const quota of quotaNames) {
    const added = changes.get(quotas[quota].table) ?? 0;
    if (added === 0) continue;
    const state = await takeOne(sql, { workspaceId, quota, added, max: maxima[quota], now });
    if (state !== "current") taken.outdated.push(quota);
    if (state === "exceeded") {
      taken.exceeded = quota;
      break;
    }
  }
  return taken;
}

async function takeOne(
  sql: Sql,
  {
    workspaceId,
    quota,
    added,
    max,
    now,
  }: { workspaceId: string; quota: Quota; added: number; max: number; now: Instant },
): Promise<"current" | "outdated" | "exceeded"> {
  const row = await sql.db
    .insertInto("workspace_usage")
    .values({ workspace_id: workspaceId, quota, total: added, counted: null, counted_total: 0, counted_at: 0 })
    .onConflict((conflict) =>
      conflict
        .columns(["workspace_id", "quota"])
        .doUpdateSet(({ eb }) => ({ total: eb("workspace_usage.total", "+", added) })),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  const total = Number(row.total);
  const counted = row.counted === null ? null : Number(row.counted);
  const since = total - Number(row.counted_total);
  const isKnown = counted !== null;
  if (isKnown && counted + since <= max) {
    const isOld = now - Number(row.counted_at) > AGE_MAX;
    return isOld || since >= Math.max(ADDED_MIN, (max - counted) / 2) ? "outdated" : "current";
  }
  if (added < 0) return "current";
  // What cannot be counted here is uncertain without a former count, and else beyond the quota.
  const countedMax = Math.min(max, COUNTED_HERE_MAX) + 1;
  const { count } = await countRows(sql, { quota, workspaceId, after: FIRST, limit: countedMax });
  if (count > max) return "exceeded";
  if (count === countedMax) return isKnown ? "exceeded" : "outdated";
  await recordCount(sql, { workspaceId, quota, count, total, now });
  return "current";
}

/** A place among the rows of a quota. */
export interface CountPlace {
  at: number;
  id: string;
}

export const FIRST: CountPlace = { at: -1, id: "" };

/** One step of a count of a workspace's rows. */
export interface CountStep {
  quota: Quota;
  workspaceId: string;
  /** Counts rows after this place. */
  after: CountPlace;
  limit: number;
}

/** Counts up to `limit` rows that are not deleted. `last` is where the next step starts; null: there are no more rows. */
export async function countRows(
  { db }: Sql,
  { quota, workspaceId, after, limit }: CountStep,
): Promise<{ count: number; last: CountPlace | null }> {
  const { table, hasDeletedRows, order } = quotas[quota];
  const selected = raw`
    select created_at as at, id from ${raw.table(table)}
    where workspace_id = ${workspaceId} ${hasDeletedRows ? raw`and deleted_at is null` : raw``}
      and ${order === "id" ? raw`id > ${after.id}` : raw`(created_at, id) > (${after.at}, ${after.id})`}
    order by ${raw.raw(order)}`;
  const { rows } = await raw<CountPlace>`${selected} limit 1 offset ${limit - 1}`.execute(db);
  const last = rows[0];
  if (last !== undefined) return { count: limit, last: { at: Number(last.at), id: last.id } };
  const counted = await raw<{ count: number | string }>`
    select count(*) as count from (${selected} limit ${limit}) as counted`.execute(db);
  return { count: Number(counted.rows[0]!.count), last: null };
}

/** What is known of the rows of a workspace. */
export interface Usage {
  /** The rows that were ever added: the total of a count that begins now. */
  total: number;
  /** The rows of the last count and those added since; null: not counted yet. */
  used: number | null;
}

export async function findUsage(
  { db }: Sql,
  { workspaceId, quota }: { workspaceId: string; quota: Quota },
): Promise<Usage> {
  const row = await db
    .selectFrom("workspace_usage")
    .selectAll()
    .where("workspace_id", "=", workspaceId)
    .where("quota", "=", quota)
    .executeTakeFirst();
  if (row === undefined) return { total: 0, used: null };
  const total = Number(row.total);
  return { total, used: row.counted === null ? null : Number(row.counted) + total - Number(row.counted_total) };
}

/** A finished count. */
export interface RecordedCount {
  workspaceId: string;
  quota: Quota;
  count: number;
  /** The total when the count began. */
  total: number;
  now: Instant;
}

export async function recordCount(
  { db }: Sql,
  { workspaceId, quota, count, total, now }: RecordedCount,
): Promise<void> {
  await db
    .updateTable("workspace_usage")
    .set({ counted: count, counted_total: total, counted_at: now })
    .where("workspace_id", "=", workspaceId)
    .where("quota", "=", quota)
    .execute();
}
