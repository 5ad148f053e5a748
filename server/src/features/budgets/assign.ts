import type { MutationContext } from "../../platform/rpc/operation.ts";
import { BudgetWriter } from "./statements.ts";

/** The budgets of a key or an identity before and after a change; null: none. */
export interface Assignment {
  former: string | null;
  next: string | null;
}

/**
 * Checks that budgets may be changed as given, and keeps the new ones from being deleted. The caller needs a permission on
 * each former and each new one: otherwise whoever may update keys could take one out of the cap that holds for it.
 */
export async function assignBudgets(
  assignments: readonly Assignment[],
  { store, principal, fail }: Pick<MutationContext<"budget_not_found">, "store" | "principal" | "fail">,
): Promise<void> {
  const changed = assignments.filter(({ former, next }) => former !== next);
  const ids = new Set(changed.flatMap(({ former, next }) => [former, next]).filter((id) => id !== null));
  for (const id of ids) principal.authorize(`budgets.${id}.assign_budget`);
  const next = changed.flatMap((assignment) => assignment.next ?? []);
  if (next.length > 0 && !(await store.of(BudgetWriter).keep(next))) return fail("budget_not_found");
}
