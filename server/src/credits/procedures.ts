import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { Random } from "../random/random.ts";
import { lockBalances, readBalances, refillDueBalances, subtractCredits } from "../store/credits/balances.ts";
import {
  claimScopes,
  findIdempotencyRecords,
  hasRoomForRecords,
  type IdempotencyRecord,
  insertIdempotencyRecords,
} from "../store/idempotency.ts";
import type { Ask, Sql } from "../store/store.ts";

/** The parameters of a batch. */
export interface LedgerBatch {
  /** The pools whose balances to lock. */
  readonly poolIds: readonly string[];
  /** How long to wait for a lock; undefined: pools that another transaction has locked are skipped. */
  readonly lockTimeout: Milliseconds | undefined;
  readonly now: Instant;
}

/** The first question: which calls does the batch contain? Its balances are locked, except contended ones. */
export interface LockedBatch {
  readonly step: "choose";
  /** Locked balances by pool; pools that are absent are unlimited. */
  readonly balances: readonly { poolId: string; remaining: number }[];
  readonly contended: readonly string[];
}

/** The second question, only if calls have an Idempotency-Key: what do the calls spend? */
export interface EarlierCalls {
  readonly step: "settle";
  /** Records of earlier calls with the scopes of the batch. */
  readonly recorded: ReadonlyMap<string, { fingerprint: string; outcome: string }>;
  /** Scopes that another transaction has claimed and not yet recorded. */
  readonly claimedElsewhere: readonly string[];
  /** Whether the records of the batch fit into the table. */
  readonly hasCapacity: boolean;
}

/** The answer to the first question if calls have an Idempotency-Key: their scopes. */
export interface BatchScopes {
  readonly scopes: readonly string[];
}

/** The last answer: positive amounts to subtract, and outcomes to record. */
export interface SettledBatch {
  readonly spends: readonly { poolId: string; amount: number }[];
  readonly records: readonly IdempotencyRecord[];
}

/** Answers the questions of a batch during its transaction. */
export type BatchAnswers = (question: LockedBatch | EarlierCalls) => BatchScopes | Promise<SettledBatch>;

/** The procedures of credits. */
export function creditProcedures(random: Random) {
  return {
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
}
