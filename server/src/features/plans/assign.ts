import type { DirectoryPlanUse } from "../../../../engine/src/directory/stored.ts";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import type { PlanOwner } from "../../platform/store/schema.ts";
import { BUDGET_OF_KEY, CREDITS_OF_IDENTITY } from "./record.ts";
import { PlanWriter } from "./statements/plans.ts";

type Context = Pick<MutationContext<"plan_not_found">, "store" | "principal" | "fail">;

/**
 * Finds the plan that a key or an identity is to have, and keeps it from being deleted. The caller needs a permission on the
 * former and on the new plan: both say what others may use. Credits are for keys, and budgets for identities.
 *
 * @param next its name or id; null: none.
 */
export async function choosePlan(
  owner: PlanOwner,
  former: DirectoryPlanUse | null,
  next: string | null,
  context: Context,
): Promise<DirectoryPlanUse | null> {
  const plan = next === null ? null : ((await choosePlans(owner, [next], context)).get(next) ?? null);
  if (former !== null && former.id !== plan?.id) context.principal.authorize(`plans.${former.id}.assign_plan`);
  return plan;
}

/** Finds the plans that keys or identities are to have, by the names or ids that were given, and keeps them from being deleted. */
export async function choosePlans(
  owner: PlanOwner,
  plans: readonly string[],
  { store, principal, fail }: Context,
): Promise<ReadonlyMap<string, DirectoryPlanUse>> {
  const kept = await store.of(PlanWriter).keep(plans);
  if (plans.some((plan) => !kept.has(plan))) return fail("plan_not_found");
  for (const { id } of kept.values()) principal.authorize(`plans.${id}.assign_plan`);
  const unfit = [...kept.values()].some(({ credits, budget }) => (owner === "key" ? budget : credits) !== null);
  if (unfit) return fail("invalid_input", owner === "key" ? BUDGET_OF_KEY : CREDITS_OF_IDENTITY);
  return kept;
}
