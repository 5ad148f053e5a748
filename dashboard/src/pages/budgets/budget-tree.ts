import type { Budget } from "@latchkey/sdk";

/** A budget at its place in a tree. */
export interface TreeRow extends Budget {
  /** 0 for a root. */
  readonly level: number;
  readonly hasChildren: boolean;
}

/**
 * Each budget below its parent, in the order of the list, without those below a collapsed one. A budget whose parent is not in
 * the list is shown like a root.
 */
export function treeOf(budgets: readonly Budget[], collapsed: ReadonlySet<string>): TreeRow[] {
  const known = new Set(budgets.map(({ budgetId }) => budgetId));
  const children = new Map<string | undefined, Budget[]>();
  for (const budget of budgets) {
    const parentId = budget.parentId !== undefined && known.has(budget.parentId) ? budget.parentId : undefined;
    const siblings = children.get(parentId);
    if (siblings) siblings.push(budget);
    else children.set(parentId, [budget]);
  }
  const rowsBelow = (parentId: string | undefined, level: number): TreeRow[] =>
    (children.get(parentId) ?? []).flatMap((budget) => {
      const hasChildren = children.has(budget.budgetId);
      const below = collapsed.has(budget.budgetId) ? [] : rowsBelow(budget.budgetId, level + 1);
      return [{ ...budget, level, hasChildren }, ...below];
    });
  return rowsBelow(undefined, 0);
}
