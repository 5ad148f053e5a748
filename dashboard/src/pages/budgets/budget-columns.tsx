import type { Budget } from "@latchkey/sdk";
import { Link } from "@tanstack/react-router";
import type { Column } from "../../ui/tables/column.ts";
import { Count } from "../../ui/text/number.tsx";
import { BudgetBar, BudgetState } from "./budget-bar.tsx";
import { nextRefillText, sharesOf } from "./budget-use.ts";

/** The name of a budget in a table of budgets. */
export function BudgetLink({ budgetId, name }: Pick<Budget, "budgetId" | "name">) {
  return (
    <Link
      to="/budgets/$budgetId"
      params={{ budgetId }}
      tabIndex={-1}
      className="block min-w-0 truncate font-medium hover:underline"
    >
      <bdi>{name}</bdi>
    </Link>
  );
}

/** Columns of every table of budgets. */
export const budgetColumns: readonly Column<Budget>[] = [
  {
    id: "spent",
    header: "Spent of the period",
    width: "minmax(9rem, 2fr)",
    cell: (budget) => (
      <span className="flex items-center gap-2 max-sm:w-40">
        <BudgetBar of={budget} className="flex-1" />
        <span className="w-10 text-right text-xs text-quiet tabular-nums">
          {Math.floor(sharesOf(budget).spent * 100)} %
        </span>
      </span>
    ),
  },
  {
    id: "remaining",
    header: "Remaining",
    width: "6rem",
    align: "right",
    cell: ({ remaining }) => <Count value={remaining} />,
  },
  {
    id: "unit",
    header: "Unit",
    width: "6rem",
    from: "md",
    cell: ({ unit }) => (unit === undefined ? <span className="text-quiet">credits</span> : unit),
  },
  { id: "state", header: "State", width: "8rem", cell: (budget) => <BudgetState of={budget} /> },
  { id: "refill", header: "Next refill", width: "6.5rem", align: "right", from: "md", cell: nextRefillText },
];
