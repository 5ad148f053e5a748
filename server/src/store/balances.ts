import { sql as raw } from "kysely";
import type { Instant } from "../clock/clock.ts";
import { lastDue, nextDue, type Refill } from "../rules/refill.ts";
import { inputList, inputRows } from "./json.ts";
import type { BalanceRow } from "./schema.ts";
import type { Sql } from "./store.ts";

/** The credits of one workspace's pools. A pool without a row is unlimited. */
export class BalanceWriter {
  readonly #sql: Sql;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  /** Makes this the pool's balance, whatever it was. */
  async put(balance: Omit<BalanceRow, "workspace_id">): Promise<void> {
    const { pool_id, ...values } = balance;
    await this.#sql.db
      .insertInto("balances")
      .values({ pool_id, workspace_id: this.#workspaceId, ...values })
      .onConflict((conflict) => conflict.column("pool_id").doUpdateSet(values))
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

/** The refill of a balance; undefined when it has none. */
export function refillOf(
  balance: Pick<BalanceRow, "refill_interval" | "refill_amount" | "refill_day">,
): Refill | undefined {
  const { refill_interval: interval, refill_amount: amount, refill_day: refillDay } = balance;
  if (interval === null || amount === null) return undefined;
  return interval === "daily" ? { interval, amount } : { interval, amount, refillDay: refillDay ?? 1 };
}

/**
 * A balance as it stands now: a refill that has fallen due is in effect from its instant on, whether or not it has been
 * written yet (contract A2.16). Several that were missed count as the last.
 */
export function settled<B extends Omit<BalanceRow, "pool_id" | "workspace_id">>(balance: B, now: Instant): B {
  const refill = refillOf(balance);
  if (!refill || balance.refill_due_at === null || now < balance.refill_due_at) return balance;
  return { ...balance, remaining: refill.amount, refill_due_at: nextDue(refill, now) };
}

/** A refill that was written. */
export interface AppliedRefill {
  poolId: string;
  workspaceId: string;
  /** The instant at which it fell due. */
  dueAt: Instant;
  before: number;
  remaining: number;
}

export interface HeldBalances {
  /** In the order of their ids. Pools that are absent are unlimited. */
  balances: { poolId: string; remaining: number }[];
  refills: AppliedRefill[];
}

/** Reads balances and keeps everybody else from changing them until the transaction ends; writes refills that are due. */
export async function holdBalances(sql: Sql, poolIds: readonly string[], now: Instant): Promise<HeldBalances> {
  // Locked in the order of their ids, so that two holders never wait for each other.
  const query = sql.db
    .selectFrom("balances")
    .selectAll()
    .where("pool_id", "in", inputList(sql, poolIds))
    .orderBy("pool_id");
  const rows = await (sql.dialect === "postgres" ? query.forUpdate() : query).execute();
  const refills = await writeDueRefills(sql, rows, now);
  return {
    balances: rows.map((row) => ({ poolId: row.pool_id, remaining: settled(row, now).remaining })),
    refills,
  };
}

/** Writes refills that have fallen due, for pools that nobody touches: at most so many, those that others hold later. */
export async function refillDueBalances(sql: Sql, now: Instant, limit: number): Promise<AppliedRefill[]> {
  const query = sql.db
    .selectFrom("balances")
    .selectAll()
    .where("refill_due_at", "<=", now)
    .orderBy("refill_due_at")
    .limit(limit);
  const rows = await (sql.dialect === "postgres" ? query.forUpdate().skipLocked() : query).execute();
  return writeDueRefills(sql, rows, now);
}

async function writeDueRefills(sql: Sql, rows: readonly BalanceRow[], now: Instant): Promise<AppliedRefill[]> {
  const due = rows.filter((row) => row.refill_due_at !== null && row.refill_due_at <= now);
  for (const row of due) {
    const { remaining, refill_due_at } = settled(row, now);
    await sql.db.updateTable("balances").set({ remaining, refill_due_at }).where("pool_id", "=", row.pool_id).execute();
  }
  return due.map((row) => ({
    poolId: row.pool_id,
    workspaceId: row.workspace_id,
    dueAt: lastDue(refillOf(row)!, now),
    before: row.remaining,
    remaining: settled(row, now).remaining,
  }));
}

/** Takes what was decided from balances that are held. The database itself refuses one that would go below zero. */
export async function takeCredits(sql: Sql, spends: readonly { poolId: string; amount: number }[]): Promise<void> {
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
    throw new Error(`${spends.length} balances were to be charged and ${numUpdatedRows} were`);
  }
}

/** Balances as they stand now, by pool. Pools that are absent are unlimited. */
export async function readBalances(
  sql: Sql,
  { poolIds, now }: { poolIds: readonly string[]; now: Instant },
): Promise<{ poolId: string; remaining: number }[]> {
  const rows = await sql.db
    .selectFrom("balances")
    .selectAll()
    .where("pool_id", "in", inputList(sql, poolIds))
    .execute();
  return rows.map((row) => ({ poolId: row.pool_id, remaining: settled(row, now).remaining }));
}

/** The keys that draw on pools, for the audit log. */
export async function findKeysOfPools(sql: Sql, poolIds: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await sql.db
    .selectFrom("keys")
    .select(["id", "pool_id"])
    .where("pool_id", "in", inputList(sql, poolIds))
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
  const keys = new Map<string, string[]>();
  for (const { id, pool_id } of rows) keys.set(pool_id, [...(keys.get(pool_id) ?? []), id]);
  return keys;
}
