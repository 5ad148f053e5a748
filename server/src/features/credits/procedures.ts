import { type Instant, instantAt, type Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type {
  BalanceState,
  BatchAnswer,
  BatchNeeds,
  BatchQuestion,
  CommittedBatch,
  EarlierCalls,
  JoinedBalances,
  LedgerBatch,
  SettledBatch,
} from "../../../../engine/src/credits/batch.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import {
  claimScopes,
  findIdempotencyRecords,
  hasRoomForRecords,
  insertIdempotencyRecords,
} from "../../platform/store/idempotency.ts";
import type { BalanceRow } from "../../platform/store/schema.ts";
import type { Ask, PoolsOf, Sql } from "../../platform/store/store.ts";
import {
  findBalancesForUpdate,
  lockAvailableBalances,
  readBalances,
  refillDueBalances,
  subtractCredits,
  waitForTurn,
} from "./statements/balances.ts";
import { commonTime } from "./statements/common-time.ts";
import { type EndedHold, findExpiredHoldsOf, readEarlierHolds, writeHolds } from "./statements/holds.ts";
import { prepareBalances } from "./statements/plan-balances.ts";

/** What the ledger needs of a row: most are those of keys, of which it needs the least. */
function balanceState({
  pool_id: id,
  remaining,
  watched,
  refill_due_at,
  refill_amount,
  refill_rollover,
  held,
  next_expiry_at,
  period,
}: BalanceRow): BalanceState {
  const isPlain = watched === null && next_expiry_at === null && !held && !period && refill_rollover === null;
  if (isPlain) return { id, remaining };
  return {
    id,
    remaining,
    isWatched: watched === 1,
    // The record of a key does not say when its credits are refilled.
    refillAt: watched === null || refill_due_at === null ? null : instantAt(refill_due_at),
    held: held ?? 0,
    nextExpiryAt: next_expiry_at === null ? null : instantAt(next_expiry_at),
    ...(period && { period }),
    ...(refill_rollover !== null && { keepsUpTo: refill_rollover + (refill_amount ?? 0) }),
  };
}

/** Reads what a batch must know of earlier calls and holds, when its balances are locked. */
async function readEarlier(sql: Sql, { scopes, claims, holdIds }: BatchNeeds, now: Instant): Promise<EarlierCalls> {
  // After the balances are locked, and before anything is read: if two nodes make the same call, the second reads the record
  // of the first.
  const claimedElsewhere = claims.length === 0 ? [] : await claimScopes(sql, claims);
  return {
    step: "settle",
    recorded: await findIdempotencyRecords(sql, scopes, now),
    claimedElsewhere,
    hasCapacity: scopes.length === 0 || (await hasRoomForRecords(sql, scopes.length)),
    holds: holdIds && (await readEarlierHolds(sql, holdIds, now)),
  };
}

/** How long a batch waits that has its balances, for example for a migration: what waits longer fails its calls. */
const LATER_TIMEOUT: Milliseconds = 3_000;

/** What a batch leaves to do. */
export interface SpentBatch extends CommittedBatch {
  /** The holds that it let expire. */
  readonly expired: readonly EndedHold[];
}

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
        { balanceIds, lockTimeout, turnTimeout, now }: LedgerBatch,
        ask: Ask<BatchQuestion, BatchAnswer>,
      ): Promise<SpentBatch> {
        const balances: BalanceRow[] = [];
        let available = balanceIds;
        let first: { balanceId: string; laterTimeout: Milliseconds } | undefined;
        if (lockTimeout !== undefined) {
          let hasWaited = false;
          if (turnTimeout === undefined) {
            await sql.dialect.locks.limitWait(sql, lockTimeout);
            balances.push(...(await findBalancesForUpdate(sql, balanceIds, random, now)));
          } else {
            hasWaited = await waitForTurn(sql, turnTimeout, lockTimeout);
            // All nodes wait while this one has the turn, so the balance is locked with the others, by one statement.
            const [balanceId] = balanceIds;
            if (balanceId !== undefined) first = { balanceId, laterTimeout: LATER_TIMEOUT };
          }
          available = ((await ask({ step: "join", hasWaited })) as JoinedBalances).balanceIds;
        }
        const locked = await lockAvailableBalances(sql, available, { random, now, first });
        balances.push(...locked.balances);
        const version = sql.versionOf?.("holds");
        const holds = version === undefined ? undefined : { at: await commonTime(sql, now), version };
        const { contended } = locked;
        let answer = await ask({ step: "choose", balances: balances.map(balanceState), contended, holds });
        let earlier: EarlierCalls | undefined;
        if ("scopes" in answer) {
          earlier = await readEarlier(sql, answer, now);
          answer = await ask(earlier);
        }
        const { spends, records, holds: heldCredits, due } = answer as SettledBatch;
        if (spends.length > 0) await subtractCredits(sql, spends, { balances, random, now });
        const ended = heldCredits ? await writeHolds(sql, heldCredits, { balances, random, now }) : [];
        await insertIdempotencyRecords(sql, records, now);
        return {
          expired: ended.filter(({ state }) => state === "expired"),
          due: due ? await findExpiredHoldsOf(sql, due, now) : [],
          holdsVersion: sql.versionOf?.("holds"),
        };
      },

      /** Makes the balances and slots that the plans of a key give. */
      prepareBalances: (sql: Sql, key: Parameters<typeof prepareBalances>[1]): Promise<string[]> =>
        prepareBalances(sql, key, random),

      /** One step of the refill sweep; returns how many refills it wrote. */
      sweepRefills: (sql: Sql, { now, limit }: { now: Instant; limit: number }): Promise<number> =>
        refillDueBalances(sql, random, now, limit),
    },
  };
  const pools: PoolsOf<typeof procedures> = {
    spend: "ledger",
    readBalances: "ledger",
    prepareBalances: "metered",
    sweepRefills: "maintenance",
  };
  return { ...procedures, pools };
}
