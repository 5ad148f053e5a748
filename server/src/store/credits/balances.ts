import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../clock/clock.ts";
import { newId, type Random } from "../../random/random.ts";
import { lastDue, nextDue, type Refill } from "../../rules/refill.ts";
import { insertAuditEvents } from "../administration/audit.ts";
import { inputRows, isOneOf } from "../json.ts";
import type { BalanceRow } from "../schema.ts";
import type { Sql } from "../store.ts";

/** The credits of one workspace's pools. A pool without a row is unlimited. */
export class BalanceWriter {
  readonly #sql: Sql;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  /** Finds and locks the pool's balance and applies a due refill; undefined when the pool is unlimited. */
  async findForUpdate(poolId: string, random: Random, now: Instant): Promise<BalanceRow | undefined> {
    return (await findBalancesForUpdate(this.#sql, [poolId], random, now))[0];
  }

  /** Inserts or replaces the pool's balance. */
  async put(balance: Omit<BalanceRow, "workspace_id">): Promise<void> {
    const { pool_id, remaining, refill_interval, refill_amount, refill_day, refill_due_at } = balance;
    const values = { remaining, refill_interval, refill_amount, refill_day, refill_due_at };
    await this.#sql.db
      .insertInto("balances")
      .values({ pool_id, workspace_id: this.#workspaceId, ...values })
      .onConflict((conflict) => conflict.column("pool_id").doUpdateSet(values))
      .execute();
  }

  /** Inserts the balances of new pools in one statement. */
  async insertAll(balances: readonly Omit<BalanceRow, "workspace_id">[]): Promise<void> {
    if (balances.length === 0) return;
    const types = {
      pool_id: "text",
      remaining: "bigint",
      refill_interval: "text",
      refill_amount: "bigint",
      refill_day: "bigint",
      refill_due_at: "bigint",
    } as const;
    const columns = Object.keys(types) as (keyof typeof types)[];
    await this.#sql.db
      .insertInto("balances")
      .columns([...columns, "workspace_id"])
      .expression((query) =>
        query
          .selectFrom(inputRows(this.#sql, types, balances))
          .select(columns)
          .select(({ val }) => val(this.#workspaceId).as("workspace_id")),
      )
      .execute();
  }

  /** Makes the pool unlimited. */
  async remove(poolId: string): Promise<void> {
    await this.#sql.db
      .deleteFrom("balances")
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.#workspaceId)
      .execute();
  }
}

// An arbitrary number that nothing else on the server uses as a lock.
const SWEEP_LOCK = 7_262_837_123_002;

/** The refill of a balance; undefined when it has none. */
export function refillOf(
  balance: Pick<BalanceRow, "refill_interval" | "refill_amount" | "refill_day">,
): Refill | undefined {
  const { refill_interval: interval, refill_amount: amount, refill_day: refillDay } = balance;
  if (interval === null || amount === null) return undefined;
  return interval === "daily" ? { interval, amount } : { interval, amount, refillDay: refillDay ?? 1 };
}

/**
 * The current balance: a refill takes effect when it falls due, before it is written. Of several missed refills only the
 * last counts.
 *
 * A clock that ran ahead and was corrected leaves a due time too far in the future. The due time is corrected if it is
 * late by more than one period. With a smaller tolerance, a correction around midnight would apply one refill twice.
 */
export function withDueRefill<B extends Omit<BalanceRow, "pool_id" | "workspace_id">>(balance: B, now: Instant): B {
  const refill = refillOf(balance);
  const dueAt = balance.refill_due_at;
  if (!refill || dueAt === null) return balance;
  const next = nextDue(refill, now);
  if (now >= dueAt) return { ...balance, remaining: refill.amount, refill_due_at: next };
  return dueAt > nextDue(refill, next) ? { ...balance, refill_due_at: next } : balance;
}

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
    .where(isOneOf(sql, "pool_id", poolIds))
    .orderBy("pool_id");
  const rows = await (sql.dialect === "postgres" ? query.forUpdate() : query).execute();
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
  const query = sql.db
    .selectFrom("balances")
    .selectAll()
    .where(isOneOf(sql, "pool_id", poolIds));
  let rows: BalanceRow[];
  let contended: string[] = [];
  if (sql.dialect !== "postgres") {
    // SQLite has one writer, so no balance is locked by another transaction.
    rows = await query.execute();
  } else if (lockTimeout !== undefined) {
    await raw`select set_config('lock_timeout', ${String(lockTimeout)}, true)`.execute(sql.db);
    rows = await query.orderBy("pool_id").forUpdate().execute();
  } else {
    rows = await query.forUpdate().skipLocked().execute();
    // A missing row is an unlimited pool or a locked one.
    if (rows.length < poolIds.length) contended = await findContended(sql, poolIds, rows);
  }
  await writeDueRefills(sql, rows, random, now);
  return { balances: rows.map((row) => withDueRefill(row, now)), contended };
}

/** SQLSTATE of a lock timeout. */
export const LOCK_NOT_AVAILABLE = "55P03";

/** The pools whose balance exists but could not be locked. */
async function findContended(sql: Sql, poolIds: readonly string[], locked: readonly BalanceRow[]): Promise<string[]> {
  const isLocked = new Set(locked.map((row) => row.pool_id));
  const missing = poolIds.filter((poolId) => !isLocked.has(poolId));
  const rows = await sql.db
    .selectFrom("balances")
    .select("pool_id")
    .where(isOneOf(sql, "pool_id", missing))
    .execute();
  return rows.map((row) => row.pool_id);
}

/** Writes up to `limit` due refills of pools without calls; returns how many it wrote. */
export async function refillDueBalances(sql: Sql, random: Random, now: Instant, limit: number): Promise<number> {
  if (sql.dialect === "postgres") {
    // One node sweeps at a time. The others try again at their next sweep.
    const { rows } = await raw<{ locked: boolean }>`select pg_try_advisory_xact_lock(${SWEEP_LOCK}) as locked`.execute(
      sql.db,
    );
    if (!rows[0]!.locked) return 0;
  }
  const query = sql.db
    .selectFrom("balances")
    .selectAll()
    .where("refill_due_at", "<=", now)
    .orderBy("refill_due_at")
    .limit(limit);
  // A transaction that has locked a balance writes its refill.
  const rows = await (sql.dialect === "postgres" ? query.forUpdate().skipLocked() : query).execute();
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
  const input = inputRows(
    sql,
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
  const events = due.map(({ row, after }) => ({
    id: newId(random, "evt"),
    workspaceId: row.workspace_id,
    occurredAt: now,
    actor: "system",
    action: "credits.refill",
    targets: keys.get(row.pool_id) ?? [],
    meta: { dueAt: lastDue(refillOf(row)!, now), before: row.remaining, remaining: after.remaining },
  }));
  await insertAuditEvents(sql, events);
}

/** The keys of each pool that are not deleted. */
async function findKeysOfPools(sql: Sql, poolIds: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await sql.db
    .selectFrom("keys")
    .select(["id", "pool_id"])
    .where(isOneOf(sql, "pool_id", poolIds))
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
  return new Map(
    [...Map.groupBy(rows, (row) => row.pool_id)].map(([poolId, ofPool]) => [poolId, ofPool.map(({ id }) => id)]),
  );
}

/** Subtracts spends from locked balances. The database rejects a balance below zero. */
export async function subtractCredits(sql: Sql, spends: readonly { poolId: string; amount: number }[]): Promise<void> {
  const input = inputRows(
    sql,
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
}

/** Reads current balances without locks. Pools that are absent are unlimited. */
export async function readBalances(
  sql: Sql,
  { poolIds, now }: { poolIds: readonly string[]; now: Instant },
): Promise<{ poolId: string; remaining: number }[]> {
  const rows = await sql.db
    .selectFrom("balances")
    .selectAll()
    .where(isOneOf(sql, "pool_id", poolIds))
    .execute();
  return rows.map((row) => ({ poolId: row.pool_id, remaining: withDueRefill(row, now).remaining }));
}
