import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { ChangedHold, HoldAction, HoldState } from "../../../../engine/src/credits/hold.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { HoldRow } from "../../platform/store/schema.ts";
import { isBudgetId } from "../budgets/statements.ts";
import { uncoveredBudgets } from "../credits/statements/holds.ts";
import type { Services } from "../services.ts";
import { correctLimits, type SettledLimits } from "./limits.ts";
import { type Closed, type HoldOwner, type HoldSubject, ownerOfHold } from "./record.ts";

/** When a hold changes, and what is known about it. */
interface Change {
  readonly now: Instant;
  /** Null: a caller that needs no permission. */
  readonly principal: Principal | null;
  /** Tags of the credits that it charges. */
  readonly tags?: readonly string[] | undefined;
  /** What the work did cost of the limits that the hold has charged. The others stay as they are. */
  readonly ratelimits?: SettledLimits | undefined;
}

/** What a hold had charged before it ended, and what it has charged since. */
type End = Pick<ChangedHold, "charged" | "former">;

/**
 * Changes a hold in the ledger, counts its end, and corrects its limits.
 *
 * @throws {Problem} if the hold does not exist any more, or has ended in another way, or the caller may not change it any more.
 */
export async function changeHold(
  hold: HoldSubject,
  action: HoldAction,
  change: Change,
  services: Pick<Services, "clock" | "ledger" | "limiter" | "openHolds" | "holdSubjects" | "recorder">,
): Promise<ChangedHold> {
  const { workspaceId, holdId, balances, apiId } = hold;
  const { now, principal, tags, ratelimits = [] } = change;
  const isCurrent = (at: Instant) => principal === null || principal.isCurrent(at);
  const changed = await services.ledger.change({ workspaceId, holdId, balances, action, isCurrent });
  if (changed.outcome === "outdated") {
    const renewed = principal && (await principal.renew(services.clock.now()));
    renewed?.authorize(`apis.${apiId}.verify_key`);
    return changeHold(hold, action, { ...change, principal: renewed }, services);
  }
  if (changed.outcome === "gone" || changed.state !== "open") services.holdSubjects.remove(holdId);
  switch (changed.outcome) {
    case "gone":
      throw new Problem("hold_not_found");
    case "conflict":
      throw new Problem("hold_closed", closedDetail(changed.state, action));
    case "changed":
      if (!changed.isRepeated && changed.state !== "open") {
        countEnd(hold, changed, { now, tags }, services);
        if (hold.limits !== null) await correctLimits(hold.limits, ratelimits, services.limiter);
      }
      return changed;
  }
}

/** Counts a hold that has ended, and the credits that this charged. */
export function countEnd(
  { workspaceId, keyId, apiId, identityId, balances }: HoldOwner,
  { charged, former }: End,
  { now, tags }: Pick<Change, "now" | "tags">,
  { openHolds, recorder }: Pick<Services, "openHolds" | "recorder">,
): void {
  if (former.state === "open") openHolds.remove({ workspaceId, keyId });
  const credits = charged - former.charged;
  if (credits === 0) return;
  const identity = identityId === null ? null : { id: identityId };
  const budgets = balances.filter(isBudgetId).map((budgetId) => ({ budgetId }));
  recorder?.credits({ at: now, workspaceId, key: { keyId, apiId, identity, budgets }, tags, credits });
}

/** Counts a hold that has expired. */
export function countExpiry(
  hold: Pick<HoldRow, "workspace_id" | "key_id" | "api_id" | "subject" | "balances" | "charged">,
  now: Instant,
  services: Pick<Services, "openHolds" | "recorder">,
): void {
  const end = { charged: hold.charged ?? 0, former: { state: "open", charged: 0 } } as const;
  countEnd(ownerOfHold(hold), end, { now }, services);
}

/** What became of a hold, as an answer. */
export function closedOutput(holdId: string, { state, charged, uncovered, lacks }: ChangedHold): Closed {
  return { holdId, state, charged, uncovered, budgets: uncoveredBudgets(lacks) };
}

function closedDetail(state: HoldState, { kind }: HoldAction): string {
  if (kind === "extend") return `The hold is ${state} and cannot be extended. Make a new one.`;
  if (kind === "release") return `The hold is ${state} and cannot be released.`;
  return state === "settled"
    ? "The hold is settled with other amounts. The first settlement counts."
    : `The hold is ${state} and cannot be settled.`;
}
