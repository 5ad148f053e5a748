import type { Instant } from "../clock/clock.ts";
import type { Random } from "../random/random.ts";
import { holdBalances, readBalances, refillDueBalances, takeCredits } from "../store/balances.ts";
import type { Ask, Sql } from "../store/store.ts";

/** Balances that are held, by pool; pools that are absent are unlimited. */
export type Held = readonly { poolId: string; remaining: number }[];
/** What is taken from each, nothing below one. */
export type Spends = readonly { poolId: string; amount: number }[];

/** What credits need beside the database. */
export function creditProcedures(random: Random) {
  return {
    reading: {
      readBalances,
    },
    writing: {
      /** Holds balances, asks what to take from them, takes it. */
      async spend(
        sql: Sql,
        { poolIds, now }: { poolIds: readonly string[]; now: Instant },
        ask: Ask<Held, Spends>,
      ): Promise<void> {
        const balances = await holdBalances(sql, poolIds, random, now);
        const spends = await ask(balances.map((row) => ({ poolId: row.pool_id, remaining: row.remaining })));
        if (spends.length > 0) await takeCredits(sql, spends);
      },

      /** One step of the sweep; gives how many refills it wrote. */
      sweepRefills: (sql: Sql, { now, limit }: { now: Instant; limit: number }): Promise<number> =>
        refillDueBalances(sql, random, now, limit),
    },
  };
}
