import type { Instant } from "../clock/clock.ts";
import type { Random } from "../random/random.ts";
import { holdBalances, readBalances, refillDueBalances, takeCredits } from "../store/balances.ts";
import {
  findIdempotencyRecords,
  hasRoomForRecords,
  type IdempotencyRecord,
  insertIdempotencyRecords,
} from "../store/idempotency.ts";
import type { Ask, Sql } from "../store/store.ts";

/** What a batch of the ledger meets. */
export interface Held {
  /** Balances that are held, by pool; pools that are absent are unlimited. */
  readonly balances: readonly { poolId: string; remaining: number }[];
  /** Calls of the batch that were made before, by scope. */
  readonly recorded: ReadonlyMap<string, { fingerprint: string; outcome: string }>;
  /** Whether what is decided can be remembered. */
  readonly hasRoom: boolean;
}

/** What a batch takes, nothing below one from any pool, and what of it is remembered. */
export interface Taken {
  readonly spends: readonly { poolId: string; amount: number }[];
  readonly records: readonly IdempotencyRecord[];
}

/** A batch on its way to the database. */
export interface LedgerBatch {
  readonly poolIds: readonly string[];
  /** Scopes of the calls that may be repetitions. */
  readonly scopes: readonly string[];
  readonly now: Instant;
}

/** What credits need beside the database. */
export function creditProcedures(random: Random) {
  return {
    reading: {
      readBalances,
    },
    writing: {
      /** Holds balances, asks what to take from them, takes it. */
      async spend(sql: Sql, { poolIds, scopes, now }: LedgerBatch, ask: Ask<Held, Taken>): Promise<void> {
        const balances = await holdBalances(sql, poolIds, random, now);
        // After the balances, so that of two nodes that make the same call the second sees what the first did.
        const { spends, records } = await ask({
          balances: balances.map((row) => ({ poolId: row.pool_id, remaining: row.remaining })),
          recorded: await findIdempotencyRecords(sql, scopes, now),
          hasRoom: scopes.length === 0 || (await hasRoomForRecords(sql, scopes.length)),
        });
        if (spends.length > 0) await takeCredits(sql, spends);
        await insertIdempotencyRecords(sql, records, now);
      },

      /** One step of the sweep; gives how many refills it wrote. */
      sweepRefills: (sql: Sql, { now, limit }: { now: Instant; limit: number }): Promise<number> =>
        refillDueBalances(sql, random, now, limit),
    },
  };
}
