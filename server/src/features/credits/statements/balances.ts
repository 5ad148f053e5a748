import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { HeldBalance } from "../../../../../engine/src/credits/batch.ts";
import type { Random } from "../../../../../engine/src/random/random.ts";
import {
  type BookedBalance,
  fall,
  hasBooks,
  nextThreshold,
  spentInPeriod,
  unspent,
} from "../../../../../engine/src/rules/books.ts";
import { lastDue, type Refill, refillOf, type StoredBalance } from "../../../../../engine/src/rules/refill.ts";
import { recordChanges } from "../../../platform/store/audit/audit.ts";
import { type EventContent, eventsOf, insertEvents } from "../../../platform/store/events/events.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import type { StoreRules } from "../../../platform/store/inspection.ts";
import { demandStep } from "../../../platform/store/migrate.ts";
import type { BalanceRow, BudgetRow, SqlBoolean } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { findBudgets } from "../../budgets/statements.ts";
import { currentBalance, currentBalances, findCreditsVersions } from "../../plans/statements/plans.ts";
import { commonTime, EXPIRY_DELAY_MAX } from "./common-time.ts";

/** The columns of `StoredBalance`. */
export const storedBalance = [
  "remaining",
  "refill_interval",
  "refill_amount",
  "refill_day",
  "refill_month",
  "refill_zone",
  "refill_rollover",
  "refill_due_at",
  "refill_mark",
  "plan_id",
  "plan_version",
] as const;

/** The part of a refill that decides which programs know it. */
type RefillSchedule = Pick<Refill, "interval"> & { timeZone?: string | undefined; rollover?: number | undefined };

/** A balance to write. */
type Balance = StoredBalance & {
  pool_id: string;
  watched?: SqlBoolean | null;
  plan_id?: string | null;
  plan_version?: number | null;
};

/** The credits of one workspace's pools and budgets. A pool without a row is unlimited. */
export class BalanceWriter extends WorkspaceRows {
  static readonly writes = true;

  /** Finds and locks the balance of a pool or budget and applies a due refill; undefined when the pool is unlimited. */
  async findForUpdate(poolId: string, random: Random, now: Instant): Promise<BalanceRow | undefined> {
    const query = this.sql.db
      .selectFrom("balances")
      .selectAll()
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.workspaceId);
    const rows = await this.sql.dialect.locks.locking(query, "update").execute();
    return (await applyDueRefills(this.sql, rows, random, now))[0];
  }

  /** Inserts or replaces the balance of a pool or budget. `low_at`: where it reaches its next threshold. */
  async put(balance: Balance, low_at: number | null = lowThreshold(balance)): Promise<void> {
    const { pool_id, ...columns } = balance;
    const values = { ...columns, low_at };
    await this.sql.db
      .insertInto("balances")
      .values({ pool_id, workspace_id: this.workspaceId, ...values })
      .onConflict((conflict) => conflict.column("pool_id").doUpdateSet(values))
      .execute();
  }

  /** Inserts the balances of new pools in one statement. */
  async insertAll(balances: readonly Balance[]): Promise<void> {
    if (balances.length === 0) return;
    const types = {
      pool_id: "text",
      remaining: "bigint",
      ...refillTypes,
      refill_due_at: "bigint",
      refill_mark: "bigint",
      low_at: "bigint",
    } as const;
    const rows = balances.map((balance) => ({ ...balance, low_at: lowThreshold(balance) }));
    await insertRows(this.sql, "balances", types, rows, { workspace_id: this.workspaceId }).execute();
  }

  /**
   * Whether these refills can be stored. Programs of earlier releases know daily and monthly refills by UTC, and misread
   * others.
   */
  async accepts(refills: readonly (RefillSchedule | null | undefined)[]): Promise<boolean> {
    const isKnownToAll = refills.every(
      (refill) =>
        !refill ||
        ((refill.interval === "daily" || refill.interval === "monthly") &&
          refill.timeZone === undefined &&
          refill.rollover === undefined),
    );
    return isKnownToAll || demandStep(this.sql, "034-refill-calendars");
  }

  /** The event of a balance that falls to `remaining`, if it reaches a threshold. */
  async lowEvents(balance: BalanceRow, remaining: number): Promise<EventContent[]> {
    const fall = { before: balance, after: { ...balance, remaining } };
    return (await findLowEvents(this.sql, [fall])).map(({ content }) => content);
  }

  /** Makes the pool unlimited. Its open holds do not have it any more. */
  async remove(poolId: string, now: Instant): Promise<void> {
    const query = this.sql.db
      .selectFrom("balances")
      .select("next_expiry_at")
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.workspaceId);
    const row = await this.sql.dialect.locks.locking(query, "update").executeTakeFirst();
    if (row) {
      // Holds that hold nothing, because their cost is 0, do not show in the row.
      const oldest = (await commonTime(this.sql, now)) - EXPIRY_DELAY_MAX;
      const from = Math.min(oldest, row.next_expiry_at ?? oldest);
      await leaveOpenHolds(this.sql, this.workspaceId, poolId, from);
    }
    await this.sql.db
      .deleteFrom("balances")
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}

/** Takes a locked balance, which is about to be removed, out of its open holds, none of which expires before `from`. */
async function leaveOpenHolds(sql: Sql, workspaceId: string, balanceId: string, from: number): Promise<void> {
  const holds = await sql.db
    .selectFrom("holds")
    .select(["id", "balances"])
    .where("workspace_id", "=", workspaceId)
    .where("expires_at", ">=", from)
    .where("state", "=", "open")
    .where(sql.dialect.contains(raw.ref("balances"), `"${balanceId}"`))
    .execute();
  const rows = holds.map(({ id, balances }) => ({
    id,
    balances: JSON.stringify(heldBalances(balances).filter((balance) => balance.id !== balanceId)),
  }));
  await sql.db
    .updateTable("holds")
    .from(sql.dialect.values.rows({ id: "text", balances: "text" }, rows))
    .set({ balances: raw<string>`input.balances` })
    .where(raw<boolean>`holds.id = input.id`)
    .execute();
}

/** The balances of a hold, of their column. */
export function heldBalances(column: string): HeldBalance[] {
  return JSON.parse(column);
}

/** The ids of the balances of a hold, of their column. */
export function heldBalanceIds(column: string): string[] {
  return heldBalances(column).map(({ id }) => id);
}

// Arbitrary numbers that nothing else on the server uses as locks.
const SWEEP_LOCK = 7_262_837_123_002;
const TURN_LOCK = 7_262_837_123_012;

/**
 * Finds balances, locks them until the transaction ends and writes their due refills. Pools that are absent from the
 * result are unlimited.
 */
export async function findBalancesForUpdate(
  sql: Sql,
  poolIds: readonly string[],
  random: Random,
  now: Instant,
): Promise<BalanceRow[]> {
  // Locked in the order of ids, so that two transactions cannot deadlock.
  const query = sql.db
    .selectFrom("balances")
    .selectAll()
    .where(sql.dialect.values.isOneOf("pool_id", poolIds))
    .orderBy("pool_id");
  const rows = await sql.dialect.locks.locking(query, "update").execute();
  return applyDueRefills(sql, rows, random, now);
}

/**
 * Waits for the turn of a batch of the ledger, which it has until the transaction ends. Returns whether another one had it, or
 * waited for it: turns are taken in the order of requests. `later`: how long later statements wait.
 */
export function waitForTurn(sql: Sql, timeout: Milliseconds, later: Milliseconds): Promise<boolean> {
  return sql.dialect.locks.lockNumberWithin(sql, TURN_LOCK, timeout, later);
}

/** A balance that a batch waits for before it locks others, and how long its later statements wait. */
interface FirstBalance {
  readonly balanceId: string;
  readonly laterTimeout: Milliseconds;
}

/**
 * Locks balances for a batch of the ledger and writes their due refills. Those that another transaction has locked are
 * skipped and returned as contended. Balances that are in neither list are unlimited.
 */
export async function lockAvailableBalances(
  sql: Sql,
  balanceIds: readonly string[],
  { random, now, first }: { random: Random; now: Instant; first?: FirstBalance | undefined },
): Promise<{ balances: BalanceRow[]; contended: string[] }> {
  if (balanceIds.length === 0 && !first) return { balances: [], contended: [] };
  const { locks, values } = sql.dialect;
  const rowsOf = (ids: readonly string[]) =>
    sql.db.selectFrom("balances").selectAll().where(values.isOneOf("pool_id", ids));
  const { rows, isPartial } = first
    ? await locks.lockFirst(sql, rowsOf([first.balanceId]), rowsOf(balanceIds), first.laterTimeout)
    : await locks.lockAvailable(rowsOf(balanceIds));
  // A missing row is an unlimited pool or a locked one. `rows` has the first balance, too.
  const wanted = balanceIds.length + (first ? 1 : 0);
  const contended = isPartial && rows.length < wanted ? await findContended(sql, balanceIds, rows) : [];
  return { balances: await applyDueRefills(sql, rows, random, now), contended };
}

/** The balances that exist but could not be locked. */
async function findContended(
  sql: Sql,
  balanceIds: readonly string[],
  locked: readonly BalanceRow[],
): Promise<string[]> {
  const isLocked = new Set(locked.map((row) => row.pool_id));
  const missing = balanceIds.filter((id) => !isLocked.has(id));
  const rows = await sql.db
    .selectFrom("balances")
    .select("pool_id")
    .where(sql.dialect.values.isOneOf("pool_id", missing))
    .execute();
  return rows.map((row) => row.pool_id);
}

/** Writes up to `limit` due refills of pools without calls, then changes of their plans; returns how many it wrote. */
export async function refillDueBalances(sql: Sql, random: Random, now: Instant, limit: number): Promise<number> {
  const { locks } = sql.dialect;
  // One node sweeps at a time. The others try again at their next sweep.
  if (!(await locks.tryLockNumber(sql, SWEEP_LOCK, "exclusive"))) return 0;
  const query = sql.db
    .selectFrom("balances")
    .selectAll()
    .where("refill_due_at", "<=", now)
    .orderBy("refill_due_at")
    .limit(limit);
  // A transaction that has locked a balance writes its refill.
  const { rows } = await locks.lockAvailable(query);
  await applyDueRefills(sql, rows, random, now);
  if (rows.length === limit) return limit;
  return rows.length + (await adoptVersions(sql, random, now, limit - rows.length));
}

/** Lets up to `limit` balances without calls have the credits that their plans have now; returns how many it wrote. */
async function adoptVersions(sql: Sql, random: Random, now: Instant, limit: number): Promise<number> {
  const query = sql.db
    .selectFrom("balances")
    .selectAll("balances")
    .where("plan_id", "is not", null)
    .where(({ eb, selectFrom }) =>
      eb(
        "plan_version",
        "<",
        selectFrom("plans").select("credits_version").whereRef("plans.id", "=", "balances.plan_id"),
      ),
    )
    .limit(limit);
  const { rows } = await sql.dialect.locks.lockAvailable(query);
  await applyDueRefills(sql, rows, random, now);
  return rows.length;
}

/** The columns of a refill, with their types. */
const refillTypes = {
  refill_interval: "text",
  refill_amount: "bigint",
  refill_day: "bigint",
  refill_month: "bigint",
  refill_zone: "text",
  refill_rollover: "bigint",
} as const;

/** What a refill changes. */
const refilledColumns = [
  "remaining",
  "refill_due_at",
  "refill_mark",
  "low_at",
  "granted",
  "spent",
  "lapsed",
  "period",
  "spent_before",
] as const satisfies (keyof BalanceRow)[];

/** Writes columns with numbers of balances. */
export async function setColumns<Column extends keyof BalanceRow>(
  sql: Sql,
  columns: readonly Column[],
  rows: readonly ({ pool_id: string } & Pick<BalanceRow, Column>)[],
): Promise<void> {
  await updateBalances(sql, Object.fromEntries(columns.map((column) => [column, "bigint" as const])), rows);
}

async function updateBalances(
  sql: Sql,
  types: Readonly<Record<string, "bigint" | "text">>,
  rows: readonly (Partial<BalanceRow> & { pool_id: string })[],
): Promise<void> {
  const columns = Object.keys(types);
  const input = sql.dialect.values.rows(
    { pool_id: "text", ...types },
    rows.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([column]) => column === "pool_id" || column in types)),
    ),
  );
  await sql.db
    .updateTable("balances")
    .from(input)
    .set(Object.fromEntries(columns.map((column) => [column, raw`${raw.ref(`input.${column}`)}`])))
    .where("balances.pool_id", "=", raw.ref<string>("input.pool_id"))
    .execute();
}

/** Writes due refills, each with an audit event that names the budget or the keys of the pool. Returns all balances after. */
async function applyDueRefills(
  sql: Sql,
  rows: readonly BalanceRow[],
  random: Random,
  now: Instant,
): Promise<BalanceRow[]> {
  const changed: { row: BalanceRow; after: BalanceRow }[] = [];
  const versions = await findCreditsVersions(
    sql,
    rows.flatMap(({ plan_id }) => plan_id ?? []),
  );
  const due: { row: BalanceRow; after: BalanceRow; at: Instant }[] = [];
  const current = rows.map((row) => {
    const isOfPlan = row.plan_id !== null;
    const after = currentBalance(row, versions, now, (before, refilled, at) => {
      if (isOfPlan) due.push({ row: before, after: refilled, at });
    });
    if (after === row) return after;
    changed.push({ row, after });
    // A clock that ran ahead may have refilled it already: then only the schedule changes.
    if (!isOfPlan && after.period !== row.period) due.push({ row, after, at: now });
    return after;
  });
  if (changed.length === 0) return current;
  const budgets = await findBudgets(
    sql,
    changed.flatMap(({ row }) => (hasBooks(row) ? [row.pool_id] : [])),
  );
  for (const { row, after } of changed) {
    const budget = budgets.get(row.pool_id);
    const isChanged = after.period !== row.period || after.plan_version !== row.plan_version;
    if (budget && hasBooks(after) && isChanged) after.low_at = nextThreshold(budget.thresholds, after);
  }
  // One statement for all balances: at midnight thousands may fall due together.
  await setColumns(
    sql,
    refilledColumns,
    changed.map(({ after }) => after),
  );
  const ofPlans = changed.filter(({ row, after }) => row.plan_version !== after.plan_version);
  if (ofPlans.length > 0) {
    const types = { ...refillTypes, plan_version: "bigint", watched: "bigint" } as const;
    await updateBalances(
      sql,
      types,
      ofPlans.map(({ after }) => after),
    );
  }
  if (due.length === 0) return current;
  const keys = await findKeysOfPools(
    sql,
    due.flatMap(({ row }) => (hasBooks(row) ? [] : [row.pool_id])),
  );
  const entries = due.map(({ row, after, at }) => {
    const { remaining } = after;
    const { remaining: before, workspace_id: workspaceId } = row;
    const plan = row.plan_id === null ? undefined : versions.get(row.plan_id);
    const meta = {
      dueAt: lastDue(refillOf(row)!, at),
      before,
      remaining,
      ...(plan && { plan: plan.name, version: row.plan_version }),
    };
    const entry = { workspaceId, occurredAt: now, actor: "system", meta };
    const budget = budgets.get(row.pool_id);
    if (budget) {
      const { id: budgetId, name } = budget;
      const data = { budgetId, name, remaining, before };
      const events = [{ type: "budget.refilled" as const, objectId: budgetId, data }];
      return { ...entry, action: "budgets.refill", targets: [budgetId], events };
    }
    const ofPool = keys.get(row.pool_id) ?? [];
    return {
      ...entry,
      action: "credits.refill",
      targets: ofPool.map(({ id }) => id).sort(),
      events: poolKeys(ofPool).map((about) => ({
        type: "credits.refilled" as const,
        objectId: about.keyId,
        data: { ...about, remaining, before },
      })),
    };
  });
  await recordChanges(sql, entries, random);
  return current;
}

/** The events of a budget that has reached thresholds. */
export function thresholdEvents(
  { id: budgetId, name, unit }: Pick<BudgetRow, "id" | "name" | "unit">,
  balance: BookedBalance,
  reached: readonly number[],
): EventContent[] {
  const about = { budgetId, name, ...(unit !== null && { unit }) };
  const { remaining } = balance;
  return reached.map((threshold) => ({
    type: "budget.threshold_reached",
    objectId: budgetId,
    data: { ...about, threshold, remaining, spent: spentInPeriod(balance) },
  }));
}

/** A balance before and after it fell. */
export interface Fall {
  before: BalanceRow;
  after: BalanceRow;
}

/**
 * Writes which threshold each budget reaches next, of those that fell to one. Returns the events of the reached ones. No
 * query if none was reached.
 */
export async function reachThresholds(
  sql: Sql,
  falls: readonly Fall[],
): Promise<{ workspaceId: string; content: EventContent }[]> {
  const low = falls.filter(({ before: { low_at }, after }) => low_at !== null && unspent(after) <= low_at);
  const budgets = await findBudgets(
    sql,
    low.flatMap(({ before }) => (hasBooks(before) ? [before.pool_id] : [])),
  );
  const events: { workspaceId: string; content: EventContent }[] = [];
  const next: { pool_id: string; low_at: number | null }[] = [];
  for (const { before, after } of low) {
    const budget = budgets.get(before.pool_id);
    if (!budget || !hasBooks(before) || !hasBooks(after)) continue;
    const { reached, low_at } = fall(budget.thresholds, before, after);
    next.push({ pool_id: before.pool_id, low_at });
    for (const content of thresholdEvents(budget, after, reached)) {
      events.push({ workspaceId: before.workspace_id, content });
    }
  }
  if (next.length > 0) await setColumns(sql, ["low_at"], next);
  return events;
}

/** The threshold for `credits.low` of a balance that was set or raised: a fifth of it, or of its refill. */
export function lowThreshold({ remaining, refill_amount }: Pick<BalanceRow, "remaining" | "refill_amount">): number {
  return Math.floor((refill_amount ?? remaining) / 5);
}

/** The threshold that a balance reaches when it falls to `remaining`; undefined if it reaches none. */
export function reachedThreshold(
  { remaining: before, refill_amount, low_at }: Pick<BalanceRow, "remaining" | "refill_amount" | "low_at">,
  remaining: number,
): number | undefined {
  if (remaining >= before) return undefined;
  if (remaining === 0) return 0;
  const threshold = refill_amount === null ? low_at : Math.floor(refill_amount / 5);
  return threshold !== null && before > threshold && remaining <= threshold ? threshold : undefined;
}

/** The events of the balances of keys that fall to a threshold. No query if none does. */
export async function findLowEvents(
  sql: Sql,
  falls: readonly Fall[],
): Promise<{ workspaceId: string; content: EventContent }[]> {
  const reached = falls.flatMap(({ before, after }) => {
    if (hasBooks(before)) return [];
    const threshold = reachedKeyThreshold(before, unspent(after));
    return threshold === undefined ? [] : [{ balance: before, remaining: after.remaining, threshold }];
  });
  if (reached.length === 0) return [];
  const keys = await findKeysOfPools(
    sql,
    reached.map(({ balance }) => balance.pool_id),
  );
  return reached.flatMap(({ balance, remaining, threshold }) =>
    poolKeys(keys.get(balance.pool_id) ?? []).map((about) => ({
      workspaceId: balance.workspace_id,
      content: { type: "credits.low", objectId: about.keyId, data: { ...about, remaining, threshold } },
    })),
  );
}

/** Keys that an event about a balance names at most. */
const KEYS_NAMED_MAX = 20;

interface PoolKey {
  id: string;
  pool_id: string;
  api_id: string;
  external_id: string | null;
  is_live: SqlBoolean;
}

/** The members of an event about a balance that name its keys; none if no key can spend it. */
function poolKeys(keys: readonly PoolKey[]) {
  const [newest, ...others] = keys.filter(({ is_live }) => is_live === 1);
  if (newest === undefined) return [];
  const { id: keyId, api_id: apiId, external_id: externalId } = newest;
  const keyIds = [newest, ...others].slice(0, KEYS_NAMED_MAX).map(({ id }) => id);
  return [{ keyId, apiId, ...(externalId !== null && { externalId }), keyIds }];
}

/** The keys of each pool that are not deleted, the newest first. */
async function findKeysOfPools(sql: Sql, poolIds: readonly string[]): Promise<Map<string, PoolKey[]>> {
  const rows = await sql.db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .leftJoin("identities", (join) =>
      join.onRef("identities.id", "=", "keys.identity_id").on("identities.deleted_at", "is", null),
    )
    .select(["keys.id", "keys.pool_id", "keys.api_id", "identities.external_id"])
    .select(raw<SqlBoolean>`case when apis.deleted_at is null then 1 else 0 end`.as("is_live"))
    .where(sql.dialect.values.isOneOf("keys.pool_id", poolIds))
    .where("keys.deleted_at", "is", null)
    .orderBy("keys.created_at", "desc")
    .orderBy("keys.id")
    .execute();
  return Map.groupBy(rows, (row) => row.pool_id);
}

/**
 * Subtracts spends from locked balances, which are given as they were before. Records the event of each that reaches a
 * threshold. The database rejects a balance below zero, unless it is watched.
 */
export async function subtractCredits(
  sql: Sql,
  spends: readonly { balanceId: string; amount: number }[],
  { balances, random, now }: { balances: readonly BalanceRow[]; random: Random; now: Instant },
): Promise<void> {
  const input = sql.dialect.values.rows(
    { pool_id: "text", amount: "bigint" },
    spends.map(({ balanceId, amount }) => ({ pool_id: balanceId, amount })),
  );
  const { numUpdatedRows } = await sql.db
    .updateTable("balances")
    .from(input)
    .set({
      remaining: raw<number>`balances.remaining - input.amount`,
      spent: raw<number>`balances.spent + input.amount`,
    })
    .where("balances.pool_id", "=", raw.ref<string>("input.pool_id"))
    .executeTakeFirstOrThrow();
  if (Number(numUpdatedRows) !== spends.length) {
    throw new Error(`${spends.length} balances had to be charged, but ${numUpdatedRows} were`);
  }
  const amounts = new Map(spends.map(({ balanceId, amount }) => [balanceId, amount]));
  const falls = balances.flatMap((before) => {
    const amount = amounts.get(before.pool_id);
    if (amount === undefined) return [];
    const remaining = before.remaining - amount;
    // Copies of rows with many columns are a large part of the CPU of a spend, and few spends reach a threshold.
    if (!reachesThreshold(before, remaining + (before.held ?? 0))) return [];
    return [{ before, after: { ...before, remaining, spent: before.spent === null ? null : before.spent + amount } }];
  });
  await recordFalls(sql, falls, { random, now });
}

/** Whether a balance reaches a threshold. `left`: what remains, with what its open holds have. */
export function reachesThreshold(before: BalanceRow, left: number): boolean {
  if (hasBooks(before)) return before.low_at !== null && left <= before.low_at;
  return reachedKeyThreshold(before, left) !== undefined;
}

/** The threshold for `credits.low` that the balance of a key reaches, with what its open holds have. */
function reachedKeyThreshold(before: BalanceRow, left: number): number | undefined {
  const { refill_amount, low_at } = before;
  return reachedThreshold({ remaining: unspent(before), refill_amount, low_at }, left);
}

/** Records the event of each balance that fell to a threshold, and which one it reaches next. */
export async function recordFalls(
  sql: Sql,
  falls: readonly Fall[],
  { random, now }: { random: Random; now: Instant },
): Promise<void> {
  const low = await findLowEvents(sql, falls);
  const thresholds = await reachThresholds(sql, falls);
  const events = [...low, ...thresholds].flatMap(({ workspaceId, content }) =>
    eventsOf([content], { workspaceId, at: now, actor: "system" }, random),
  );
  await insertEvents(sql, events);
}

/** Reads current balances without locks. Pools that are absent are unlimited. */
export async function readBalances(
  sql: Sql,
  { poolIds, now }: { poolIds: readonly string[]; now: Instant },
): Promise<{ poolId: string; remaining: number; held: number }[]> {
  const rows = await sql.db
    .selectFrom("balances")
    .selectAll()
    .where(sql.dialect.values.isOneOf("pool_id", poolIds))
    .execute();
  const current = await currentBalances(sql, rows, now);
  return current.map(({ pool_id: poolId, remaining, held }) => ({ poolId, remaining, held: held ?? 0 }));
}

/** What holds for all balances. */
export const balanceRules: StoreRules = {
  "balances are not negative, unless they are watched": `select count(*) as count from balances
    where remaining < 0 and coalesce(watched, 0) = 0`,
  "every balance belongs to a key, a derived key, a budget or an identity": `select count(*) as count from balances
    where not exists (select 1 from keys where keys.pool_id = coalesce(balances.slots_of, balances.pool_id))
    and not exists (select 1 from budgets where budgets.id = balances.pool_id)
    and not exists (select 1 from plan_budgets where plan_budgets.id = balances.pool_id)
    and not exists (select 1 from identities where identities.id = balances.slots_of)
    and not exists (select 1 from derived_keys where derived_keys.id = balances.pool_id)`,
};
