import type { Instant } from "../clock/clock.ts";
import { newId, type Random } from "../random/random.ts";
import { insertAuditEvent } from "../store/audit.ts";
import {
  type AppliedRefill,
  findKeysOfPools,
  holdBalances,
  readBalances,
  refillDueBalances,
  takeCredits,
} from "../store/balances.ts";
import type { Ask, Sql } from "../store/store.ts";

/** Balances that are held, by pool; pools that are absent are unlimited. */
export type Held = readonly { poolId: string; remaining: number }[];
/** What is taken from each, nothing below one. */
export type Spends = readonly { poolId: string; amount: number }[];

/** What credits need beside the database. */
export function creditProcedures(random: Random) {
  async function auditRefills(sql: Sql, refills: readonly AppliedRefill[], now: Instant): Promise<void> {
    if (refills.length === 0) return;
    const keys = await findKeysOfPools(
      sql,
      refills.map(({ poolId }) => poolId),
    );
    for (const { poolId, workspaceId, dueAt, before, remaining } of refills) {
      await insertAuditEvent(sql, {
        id: newId(random, "evt"),
        workspaceId,
        occurredAt: now,
        actor: "system",
        action: "credits.refill",
        targets: keys.get(poolId) ?? [],
        meta: { dueAt, before, remaining },
      });
    }
  }

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
        const { balances, refills } = await holdBalances(sql, poolIds, now);
        await auditRefills(sql, refills, now);
        const spends = await ask(balances);
        if (spends.length > 0) await takeCredits(sql, spends);
      },

      /** One step of the sweep; gives how many refills it wrote. */
      async sweepRefills(sql: Sql, { now, limit }: { now: Instant; limit: number }): Promise<number> {
        const refills = await refillDueBalances(sql, now, limit);
        await auditRefills(sql, refills, now);
        return refills.length;
      },
    },
  };
}
