import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import { lastDue, refillOf, withDueRefill } from "../../../../engine/src/rules/refill.ts";
import { recordChanges } from "../../platform/store/audit/audit.ts";
import { type EventContent, eventsOf, insertEvents } from "../../platform/store/events/events.ts";
import { insertRows } from "../../platform/store/insert-rows.ts";
import type { StoreRules } from "../../platform/store/inspection.ts";
import type { BalanceRow, SqlBoolean } from "../../platform/store/schema.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";

/** The credits of one workspace's pools. A pool without a row is unlimited. */
export class BalanceWriter extends WorkspaceRows {
  static readonly writes = true;

  /** Finds and locks the pool's balance and applies a due refill; undefined when the pool is unlimited. */
  async findForUpdate(poolId: string, random: Random, now: Instant): Promise<BalanceRow | undefined> {
    return (await findBalancesForUpdate(this.sql, [poolId], random, now))[0];
  }

  /** Inserts or replaces the pool's balance. `low_at`: its threshold for `credits.low`. */
  async put(
    balance: Omit<BalanceRow, "workspace_id" | "low_at">,
    low_at: number | null = lowThreshold(balance),
  ): Promise<void> {
    const { pool_id, remaining, refill_interval, refill_amount, refill_day, refill_due_at } = balance;
    const values = { remaining, refill_interval, refill_amount, refill_day, refill_due_at, low_at };
    await this.sql.db
      .insertInto("balances")
      .values({ pool_id, workspace_id: this.workspaceId, ...values })
      .onConflict((conflict) => conflict.column("pool_id").doUpdateSet(values))
      .execute();
  }

  /** Inserts the balances of new pools in one statement. */
  async insertAll(balances: readonly Omit<BalanceRow, "workspace_id" | "low_at">[]): Promise<void> {
    if (balances.length === 0) return;
    const types = {
      pool_id: "text",
      remaining: "bigint",
      refill_interval: "text",
      refill_amount: "bigint",
      refill_day: "bigint",
      refill_due_at: "bigint",
      low_at: "bigint",
    } as const;
    const rows = balances.map((balance) => ({ ...balance, low_at: lowThreshold(balance) }));
    await insertRows(this.sql, "balances", types, rows, { workspace_id: this.workspaceId }).execute();
  }

  /** The event of a balance that falls to `remaining`, if it reaches a threshold. */
  async lowEvents(balance: BalanceRow, remaining: number): Promise<EventContent[]> {
    return (await findLowEvents(this.sql, [{ balance, remaining }])).map(({ content }) => content);
  }

  /** Makes the pool unlimited. */
  async remove(poolId: string): Promise<void> {
    await this.sql.db
      .deleteFrom("balances")
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}

// An arbitrary number that nothing else on the server uses as a lock.
const SWEEP_LOCK = 7_262_837_123_002;

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
  await writeDueRefills(sql, rows, random, now);
  return rows.map((row) => withDueRefill(row, now));
}

/**
 * Locks balances for a batch of the ledger and writes their due refills. With a timeout it waits for each lock. Without
 * one, pools that another transaction has locked are skipped and returned as contended. Pools that are in neither list
 * are unlimited.
 *
 * @throws an error with code `LOCK_NOT_AVAILABLE` when the wait for a lock exceeds the timeout.
 */
export async function lockBalances(
  sql: Sql,
  poolIds: readonly string[],
  { lockTimeout, random, now }: { lockTimeout: Milliseconds | undefined; random: Random; now: Instant },
): Promise<{ balances: BalanceRow[]; contended: string[] }> {
  const query = sql.db.selectFrom("balances").selectAll().where(sql.dialect.values.isOneOf("pool_id", poolIds));
  const { locks } = sql.dialect;
  let rows: BalanceRow[];
  let contended: string[] = [];
  if (lockTimeout !== undefined) {
    await locks.limitWait(sql, lockTimeout);
    rows = await locks.locking(query.orderBy("pool_id"), "update").execute();
  } else {
    const available = await locks.lockAvailable(query);
    rows = available.rows;
    // A missing row is an unlimited pool or a locked one.
    if (available.isPartial && rows.length < poolIds.length) contended = await findContended(sql, poolIds, rows);
  }
  await writeDueRefills(sql, rows, random, now);
  return { balances: rows.map((row) => withDueRefill(row, now)), contended };
}

/** The pools whose balance exists but could not be locked. */
async function findContended(sql: Sql, poolIds: readonly string[], locked: readonly BalanceRow[]): Promise<string[]> {
  const isLocked = new Set(locked.map((row) => row.pool_id));
  const missing = poolIds.filter((poolId) => !isLocked.has(poolId));
  const rows = await sql.db
    .selectFrom("balances")
    .select("pool_id")
    .where(sql.dialect.values.isOneOf("pool_id", missing))
    .execute();
  return rows.map((row) => row.pool_id);
}

/** Writes up to `limit` due refills of pools without calls; returns how many it wrote. */
export async function refillDueBalances(sql: Sql, random: Random, now: Instant, limit: number): Promise<number> {
  const { locks } = sql.dialect;
  // One node sweeps at a time. The others try again at their next sweep.
  if (!(await locks.tryLockNumber(sql, SWEEP_LOCK))) return 0;
  const query = sql.db
    .selectFrom("balances")
    .selectAll()
    .where("refill_due_at", "<=", now)
    .orderBy("refill_due_at")
    .limit(limit);
  // A transaction that has locked a balance writes its refill.
  const { rows } = await locks.lockAvailable(query);
  await writeDueRefills(sql, rows, random, now);
  return rows.length;
}

/** Writes due refills, each with an audit event that names the keys of the pool. */
async function writeDueRefills(sql: Sql, rows: readonly BalanceRow[], random: Random, now: Instant): Promise<void> {
  const changed = rows.flatMap((row) => {
    const after = withDueRefill(row, now);
    return after === row ? [] : [{ row, after }];
  });
  if (changed.length === 0) return;
  // One statement for all balances: at midnight thousands may fall due together.
  const input = sql.dialect.values.rows(
    { pool_id: "text", remaining: "bigint", refill_due_at: "bigint" },
    changed.map(({ after: { pool_id, remaining, refill_due_at } }) => ({ pool_id, remaining, refill_due_at })),
  );
  await sql.db
    .updateTable("balances")
    .from(input)
    .set({ remaining: raw<number>`input.remaining`, refill_due_at: raw<number>`input.refill_due_at` })
    .whereRef("balances.pool_id", "=", "input.pool_id" as never)
    .execute();
  const due = changed.filter(({ row }) => row.refill_due_at! <= now);
  if (due.length === 0) return;
  const keys = await findKeysOfPools(
    sql,
    due.map(({ row }) => row.pool_id),
  );
  const entries = due.map(({ row, after }) => {
    const ofPool = keys.get(row.pool_id) ?? [];
    const { remaining } = after;
    return {
      workspaceId: row.workspace_id,
      occurredAt: now,
      actor: "system",
      action: "credits.refill",
      targets: ofPool.map(({ id }) => id).sort(),
      meta: { dueAt: lastDue(refillOf(row)!, now), before: row.remaining, remaining },
      events: poolKeys(ofPool).map((about) => ({
        type: "credits.refilled" as const,
        objectId: about.keyId,
        data: { ...about, remaining, before: row.remaining },
      })),
    };
  });
  await recordChanges(sql, entries, random);
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

/** The events of balances that fall to `remaining` and reach a threshold by that. No query if none does. */
export async function findLowEvents(
  sql: Sql,
  falls: readonly { balance: BalanceRow; remaining: number }[],
): Promise<{ workspaceId: string; content: EventContent }[]> {
  const reached = falls.flatMap(({ balance, remaining }) => {
    const threshold = reachedThreshold(balance, remaining);
    return threshold === undefined ? [] : [{ balance, remaining, threshold }];
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
 * threshold. The database rejects a balance below zero.
 */
export async function subtractCredits(
  sql: Sql,
  spends: readonly { poolId: string; amount: number }[],
  { balances, random, now }: { balances: readonly BalanceRow[]; random: Random; now: Instant },
): Promise<void> {
  const input = sql.dialect.values.rows(
    { pool_id: "text", amount: "bigint" },
    spends.map(({ poolId, amount }) => ({ pool_id: poolId, amount })),
  );
  const { numUpdatedRows } = await sql.db
    .updateTable("balances")
    .from(input)
    .set({ remaining: raw<number>`balances.remaining - input.amount` })
    .whereRef("balances.pool_id", "=", "input.pool_id" as never)
    .executeTakeFirstOrThrow();
  if (Number(numUpdatedRows) !== spends.length) {
    throw new Error(`${spends.length} balances had to be charged, but ${numUpdatedRows} were`);
  }
  const amounts = new Map(spends.map(({ poolId, amount }) => [poolId, amount]));
  const low = await findLowEvents(
    sql,
    balances.map((balance) => ({ balance, remaining: balance.remaining - (amounts.get(balance.pool_id) ?? 0) })),
  );
  const events = low.flatMap(({ workspaceId, content }) =>
    eventsOf([content], { workspaceId, at: now, actor: "system" }, random),
  );
  await insertEvents(sql, events);
}

/** Reads current balances without locks. Pools that are absent are unlimited. */
export async function readBalances(
  sql: Sql,
  { poolIds, now }: { poolIds: readonly string[]; now: Instant },
): Promise<{ poolId: string; remaining: number }[]> {
  const rows = await sql.db
    .selectFrom("balances")
    .selectAll()
    .where(sql.dialect.values.isOneOf("pool_id", poolIds))
    .execute();
  return rows.map((row) => ({ poolId: row.pool_id, remaining: withDueRefill(row, now).remaining }));
}

/** What holds for all balances. */
export const balanceRules: StoreRules = {
  "balances are not negative": "select count(*) as count from balances where remaining < 0",
  "every balance belongs to a key": `select count(*) as count from balances
    where not exists (select 1 from keys where keys.pool_id = balances.pool_id)`,
};
