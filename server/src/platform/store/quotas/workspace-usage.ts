import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../../engine/src/random/random.ts";
import { eventsOf, insertEvents } from "../events/events.ts";
import { onlyRow } from "../only-row.ts";
import type { Sql } from "../store.ts";
import type { RowChanges } from "../written-tables.ts";
import { type Allowance, type Quota, type QuotaMaxima, quotaNames, quotas, settingOf } from "./quotas.ts";
import { addBytes, type BytesRetention, sumBytes, type WrittenBytes } from "./workspace-bytes.ts";

/** The most rows that a transaction counts itself: about a millisecond. */
const COUNTED_HERE_MAX = 5_000;

/** The most rows that one step of a longer count reads: about 5 ms. */
export const COUNT_STEP = 20_000;

/** A count is repeated after this time: nodes of an earlier release, and commands of an operator, add uncounted rows. */
const AGE_MAX: Milliseconds = 86_400_000;

/** The same for a quick count of what is nearly full, so that it is noticed soon when it no longer is. */
const NEAR_AGE_MAX: Milliseconds = 60_000;

/** Smallest number of additions after which a workspace near its quota is counted again. */
const ADDED_MIN = 100;

/** A quota on rows is nearly reached from this part on, and no longer below the other one. */
const NEAR = 0.8;
const NO_LONGER_NEAR = 0.7;

/** What a change may exceed by this part if it deletes or revokes something: a full workspace can be cleaned up. */
const RESERVE = 0.1;

/** What a workspace may have. */
export interface QuotaLimits {
  maxima: QuotaMaxima;
  bytesMax: number;
  retention: BytesRetention;
}

/** What a transaction did. */
export interface Taking {
  workspaceId: string;
  rows: RowChanges;
  bytes: WrittenBytes;
  /** Whether it deletes or revokes something. */
  isReduction: boolean;
  now: Instant;
}

/** What came of it. */
export interface Taken {
  /** The quota that it exceeds; it must be rolled back. */
  exceeded: Allowance | undefined;
  /** What should be counted again, outside of this transaction. */
  outdated: Quota[];
}

/**
 * Adds what a transaction wrote to the usage of its workspace, and says whether that exceeds a quota. Call it last: it locks
 * the usage until the transaction ends, so that transactions at the same time cannot exceed a quota together. A quota that is
 * nearly reached has an event.
 *
 * The usage is the last count and what was added since, so it is never too low; rows that are deleted, and bytes whose
 * retention is over, lower it at the next count. Short counts are made here when they decide. Until a longer first count has
 * ended, the quota is not enforced.
 */
export async function takeQuotas(
  sql: Sql,
  { workspaceId, rows, bytes, isReduction, now }: Taking,
  { maxima, bytesMax, retention }: QuotaLimits,
  random: Random,
): Promise<Taken> {
  const taken: Taken = { exceeded: undefined, outdated: [] };
  const near: { allowance: Allowance; used: number; max: number }[] = [];
  // Always in this order, so that transactions cannot wait for each other.
  for (const allowance of [...quotaNames, "bytes"] as const) {
    const added = allowance === "bytes" ? bytes.audit + bytes.events : (rows.get(quotas[allowance].table) ?? 0);
    if (added === 0) continue;
    if (allowance === "bytes") await addBytes(sql, workspaceId, bytes, now);
    const isQuick = allowance === "bytes";
    const max = isQuick ? bytesMax : maxima[allowance];
    const allowed = isQuick && isReduction ? max * (1 + RESERVE) : max;
    const state = await takeOne(sql, {
      workspaceId,
      allowance,
      added,
      max,
      allowed,
      isQuick,
      now,
      count: (limit) => countHere(sql, { workspaceId, allowance, retention, now }, limit),
    });
    if (state.isOutdated && allowance !== "bytes") taken.outdated.push(allowance);
    if (state.isExceeded) {
      taken.exceeded = allowance;
      return taken;
    }
    if (state.isNewlyNear) near.push({ allowance, used: state.used, max });
  }
  const events = near.map(({ allowance, used, max }) => {
    const data = { quota: allowance, used, max, setting: settingOf(allowance) };
    return { type: "quota.near" as const, objectId: workspaceId, data };
  });
  await insertEvents(sql, eventsOf(events, { workspaceId, at: now, actor: "system" }, random));
  return taken;
}

/** Counts up to `limit`, if that is quick; undefined if there is more. */
async function countHere(
  sql: Sql,
  {
    workspaceId,
    allowance,
    retention,
    now,
  }: { workspaceId: string; allowance: Allowance; retention: BytesRetention; now: Instant },
  limit: number,
): Promise<number | undefined> {
  if (allowance === "bytes") return sumBytes(sql, workspaceId, retention, now);
  const here = Math.min(limit, COUNTED_HERE_MAX);
  const { count } = await countRows(sql, { quota: allowance, workspaceId, after: FIRST, limit: here + 1 });
  return count > here && here < limit ? undefined : count;
}

interface TakeOne {
  workspaceId: string;
  allowance: Allowance;
  added: number;
  max: number;
  /** How much the workspace may have after this transaction. */
  allowed: number;
  /** Whether it can always be counted here. */
  isQuick: boolean;
  now: Instant;
  count(limit: number): Promise<number | undefined>;
}

async function takeOne(
  sql: Sql,
  { workspaceId, allowance, added, max, allowed, isQuick, now, count }: TakeOne,
): Promise<{ used: number; isExceeded: boolean; isOutdated: boolean; isNewlyNear: boolean }> {
  const row = await sql.db
    .insertInto("workspace_usage")
    .values({
      workspace_id: workspaceId,
      quota: allowance,
      total: added,
      counted: null,
      counted_total: 0,
      counted_at: 0,
      near_at: null,
    })
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
  const bound = (counted ?? 0) + since;
  const wasNear = row.near_at !== null;
  const done = { used: bound, isExceeded: false, isOutdated: false, isNewlyNear: false };
  if (counted !== null && bound <= (wasNear ? allowed : Math.min(allowed, max * NEAR))) {
    const isOld = now - Number(row.counted_at) > (isQuick && wasNear ? NEAR_AGE_MAX : AGE_MAX);
    const isOutdated = isOld || since >= Math.max(ADDED_MIN, (max - counted) / 2);
    if (!isOutdated || !isQuick) return { ...done, isOutdated };
  }
  if (added < 0) return done;
  const used = await count(Math.ceil(allowed));
  // What cannot be counted here is uncertain without a former count, and else what the former count says.
  if (used === undefined) {
    const isExceeded = counted !== null && bound > allowed;
    const isNewlyNear = counted !== null && !wasNear && !isExceeded;
    if (isNewlyNear) await setNear(sql, { workspaceId, allowance, at: now });
    return { ...done, isExceeded, isOutdated: true, isNewlyNear };
  }
  if (used > allowed) return { ...done, used, isExceeded: true, isOutdated: true };
  await recordCount(sql, { workspaceId, quota: allowance, count: used, total, max, now });
  const isNewlyNear = !wasNear && used > max * NEAR;
  if (isNewlyNear) await setNear(sql, { workspaceId, allowance, at: now });
  return { ...done, used, isNewlyNear };
}

async function setNear(
  { db }: Sql,
  { workspaceId, allowance, at }: { workspaceId: string; allowance: Allowance; at: Instant | null },
): Promise<void> {
  await db
    .updateTable("workspace_usage")
    .set({ near_at: at })
    .where("workspace_id", "=", workspaceId)
    .where("quota", "=", allowance)
    .execute();
}

/** The number of workspaces that nearly reached each quota. */
export async function countNear({ db }: Sql): Promise<Partial<Record<Allowance, number>>> {
  const rows = await db
    .selectFrom("workspace_usage")
    .select(({ fn }) => ["quota", fn.countAll<number | string>().as("count")])
    .where("near_at", "is not", null)
    .groupBy("quota")
    .execute();
  return Object.fromEntries(rows.map(({ quota, count }) => [quota, Number(count)]));
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
  return { count: Number(onlyRow(counted).count), last: null };
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
  quota: Allowance;
  max: number;
  count: number;
  /** The total when the count began. */
  total: number;
  now: Instant;
}

export async function recordCount(
  { db }: Sql,
  { workspaceId, quota, count, total, max, now }: RecordedCount,
): Promise<void> {
  await db
    .updateTable("workspace_usage")
    .set({
      counted: count,
      counted_total: total,
      counted_at: now,
      ...(count < max * NO_LONGER_NEAR && { near_at: null }),
    })
    .where("workspace_id", "=", workspaceId)
    .where("quota", "=", quota)
    .execute();
}
