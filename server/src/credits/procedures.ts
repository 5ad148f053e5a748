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

/** A batch on its way to the database. */
export interface LedgerBatch {
  /** The pools whose balances are to be locked. */
  readonly poolIds: readonly string[];
  /** How long to wait for a lock that another transaction has; undefined: such pools are left out. */
  readonly lockTimeout: Milliseconds | undefined;
  readonly now: Instant;
}

/** The balances of a batch are locked, but for those of these pools, whose locks other transactions have. */
export interface LockedPools {
  readonly step: "choose";
  readonly contended: readonly string[];
}

/** What the calls of a batch are decided on. */
export interface LockedBatch {
  readonly step: "settle";
  /** Balances that are locked, by pool; pools that are absent are unlimited. */
  readonly balances: readonly { poolId: string; remaining: number }[];
  /** Calls of the batch that were made before, by scope. */
  readonly recorded: ReadonlyMap<string, { fingerprint: string; outcome: string }>;
  /** Scopes that another transaction has claimed, whose outcome is still open. */
  readonly claimedElsewhere: readonly string[];
  /** Whether what is decided can be remembered. */
  readonly hasCapacity: boolean;
}

/** The calls that go with a batch, known once its balances are locked: scopes of those that may be repetitions. */
export interface BatchScopes {
  readonly scopes: readonly string[];
}

/** What a batch takes, nothing below one from any pool, and what of it is remembered. */
export interface SettledBatch {
  readonly spends: readonly { poolId: string; amount: number }[];
  readonly records: readonly IdempotencyRecord[];
}

/** Answers the two questions of a batch in the middle of its transaction: which calls go with it, then what is taken. */
export type BatchAnswers = (question: LockedPools | LockedBatch) => BatchScopes | Promise<SettledBatch>;

/** What credits need beside the database. */
export function creditProcedures(random: Random) {
  return {
    reading: {
      readBalances,
    },
    writing: {
      /** Locks balances, asks which calls go with them, asks what to take from them, takes it. */
      async spend(
        sql: Sql,
        { poolIds, lockTimeout, now }: LedgerBatch,
        ask: Ask<LockedPools | LockedBatch, BatchScopes | SettledBatch>,
      ): Promise<void> {
        const { balances, contended } = await lockBalances(sql, poolIds, { lockTimeout, random, now });
        const { scopes } = (await ask({ step: "choose", contended })) as BatchScopes;
        // After the balances: of two nodes that make the same call, the second sees the record of the first.
        const claimedElsewhere = await claimScopes(sql, scopes);
        const { spends, records } = (await ask({
          step: "settle",
          balances: balances.map((row) => ({ poolId: row.pool_id, remaining: row.remaining })),
          recorded: await findIdempotencyRecords(sql, scopes, now),
          claimedElsewhere,
          hasCapacity: scopes.length === 0 || (await hasRoomForRecords(sql, scopes.length)),
        })) as SettledBatch;
        if (spends.length > 0) await subtractCredits(sql, spends);
        await insertIdempotencyRecords(sql, records, now);
      },

      /** One step of the sweep; gives how many refills it wrote. */
      sweepRefills: (sql: Sql, { now, limit }: { now: Instant; limit: number }): Promise<number> =>
        refillDueBalances(sql, random, now, limit),
    },
  };
}
