import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type {
  BatchScopes,
  EarlierCalls,
  LedgerBatch,
  LockedBatch,
  SettledBatch,
} from "../../../../engine/src/credits/batch.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import {
  claimScopes,
  findIdempotencyRecords,
  hasRoomForRecords,
  insertIdempotencyRecords,
} from "../../platform/store/idempotency.ts";
import type { Ask, PoolsOf, Sql } from "../../platform/store/store.ts";
import { lockBalances, readBalances, refillDueBalances, subtractCredits } from "./statements.ts";

/** The procedures of credits. */
export function creditProcedures(random: Random) {
  const procedures = {
    reading: {
      readBalances,
    },
    writing: {
      /** Locks balances, asks for the calls of the batch and what they spend, and subtracts it. */
      async spend(
        sql: Sql,
        { poolIds, lockTimeout, now }: LedgerBatch,
        ask: Ask<LockedBatch | EarlierCalls, BatchScopes | SettledBatch>,
      ): Promise<void> {
        const { balances, contended } = await lockBalances(sql, poolIds, { lockTimeout, random, now });
        let answer = await ask({
          step: "choose",
          balances: balances.map((row) => ({ poolId: row.pool_id, remaining: row.remaining })),
          contended,
        });
        if ("scopes" in answer) {
          const { scopes } = answer;
          // After the balances are locked: if two nodes make the same call, the second reads the record of the first.
          const claimedElsewhere = await claimScopes(sql, scopes);
          answer = await ask({
            step: "settle",
            recorded: await findIdempotencyRecords(sql, scopes, now),
            claimedElsewhere,
            hasCapacity: await hasRoomForRecords(sql, scopes.length),
          });
        }
        const { spends, records } = answer as SettledBatch;
        if (spends.length > 0) await subtractCredits(sql, spends, { balances, random, now });
        await insertIdempotencyRecords(sql, records, now);
      },

      /** One step of the refill sweep; returns how many refills it wrote. */
      sweepRefills: (sql: Sql, { now, limit }: { now: Instant; limit: number }): Promise<number> =>
        refillDueBalances(sql, random, now, limit),
    },
  };
  const pools: PoolsOf<typeof procedures> = { spend: "ledger", readBalances: "ledger", sweepRefills: "maintenance" };
  return { ...procedures, pools };
}
