import type { MutationContext } from "../../platform/rpc/operation.ts";
import type { BalanceRow } from "../../platform/store/schema.ts";
import { type BalancesMode, PlanBalanceWriter, resetError, type Settled } from "../credits/statements/plan-balances.ts";

/** Why credits of a key are not reset. */
export const OWN_CREDITS =
  "The key has credits of its own, which no plan resets. Set them with `credits`, or leave `balances` out.";

/**
 * Gives a pool of keys the credits of its plan, or takes them away. Returns what was given, for the audit log; undefined:
 * nothing was.
 */
export async function settleCredits(
  poolId: string,
  balance: BalanceRow | undefined,
  { planId, mode }: { planId: string | null; mode?: BalancesMode | undefined },
  { store, now, fail }: Pick<MutationContext<never>, "store" | "now" | "fail">,
): Promise<Omit<Settled, "kind"> | undefined> {
  const settled = await store.of(PlanBalanceWriter).settle(poolId, balance, { planId, mode, now });
  if (settled.kind === "refused") return fail("invalid_input", resetError(settled));
  if (settled.kind !== "given") return undefined;
  const { kind: _, ...granted } = settled;
  return granted;
}
