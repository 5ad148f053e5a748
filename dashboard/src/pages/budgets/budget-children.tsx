import type { Budget } from "@latchkey/sdk";
import { useNavigate } from "@tanstack/react-router";
import { useRows } from "../../api/rows.ts";
import type { Column } from "../../ui/tables/column.ts";
import { DataTable } from "../../ui/tables/data-table.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { BudgetLink, budgetColumns } from "./budget-columns.tsx";

const childColumns: readonly Column<Budget>[] = [
  {
    id: "name",
    header: "Name",
    sort: ({ name }) => name,
    width: "minmax(10rem, 2fr)",
    card: "title",
    cell: ({ budgetId, name }) => <BudgetLink budgetId={budgetId} name={name} />,
  },
  ...budgetColumns,
];

/** The budgets whose parent is a budget. */
export function BudgetChildren({ of: { budgetId } }: { of: Budget }) {
  const navigate = useNavigate();
  const list = useRows("budgets.listBudgets", { parentId: budgetId });
  const { rows, onMore, hasMore } = list;
  if (list.error || !rows) return <Loading of={list} lines={2} />;
  if (rows.length === 0) return <p className="text-quiet">There are none. Budgets below divide this one.</p>;
  return (
    <DataTable
      label="Budgets below"
      columns={childColumns}
      rows={rows}
      rowId={(row) => row.budgetId}
      rowLabel={({ name }) => name}
      onOpen={(row) => void navigate({ to: "/budgets/$budgetId", params: { budgetId: row.budgetId } })}
      onMore={onMore}
      hasMore={hasMore}
    />
  );
}
