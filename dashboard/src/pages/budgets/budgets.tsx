import { useNavigate, useSearch } from "@tanstack/react-router";
import { ChevronDown, ChevronRight, Plus } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { loadCode } from "../../api/connection.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { SearchedListing, useSearchChange } from "../../ui/tables/searched-listing.tsx";
import { CodeSnippet } from "../../ui/text/code-snippet.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { BudgetLink, budgetColumns } from "./budget-columns.tsx";
import { type TreeRow, treeOf } from "./budget-tree.ts";

const CreateBudget = lazy(async () => ({
  default: (await loadCode(() => import("./create-budget.tsx"))).CreateBudget,
}));

/** Budgets that are read before anything is scrolled: a child can be long after its parent in the list. */
const READ_AT_ONCE = 1_000;

/** The budgets of the workspace as a tree. */
export function BudgetsPage() {
  const { q = "" } = useSearch({ from: "/shell/budgets" });
  const navigate = useNavigate({ from: "/budgets" });
  const [isCreating, setCreating] = useState(false);
  const needs = "budgets.some.read_budget";
  const list = useRows("budgets.listBudgets", q === "" ? {} : { search: q }, useCan()(needs));
  const { rows, onMore } = list;
  useEffect(() => {
    if (rows && rows.length < READ_AT_ONCE) onMore?.();
  }, [rows, onMore]);
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const columns = useMemo(() => columnsOf(collapsed, setCollapsed), [collapsed]);
  const tree = useMemo(() => rows && treeOf(rows, collapsed), [rows, collapsed]);
  const onSearch = useSearchChange(navigate);
  const create = (
    <Button kind="primary" needs="budgets.*.create_budget" onPress={() => setCreating(true)}>
      <Plus aria-hidden />
      Create budget
    </Button>
  );
  return (
    <Page
      title="Budgets"
      summary="A budget is a balance that many keys spend from. A call is charged to a budget and all above it, or to none."
      actions={create}
    >
      <SearchedListing
        one="budget"
        many="budgets"
        placeholder="Name or id"
        search={q}
        onSearch={onSearch}
        of={{ ...list, rows: tree }}
        needs={needs}
        columns={columns}
        rowId={({ budgetId }) => budgetId}
        rowLabel={({ name }) => name}
        onOpen={({ budgetId }) => void navigate({ to: "/budgets/$budgetId", params: { budgetId } })}
        empty={
          <EmptyState title="No budgets yet" action={create}>
            <p>
              Give the keys of a team, a customer or a whole company one balance: a key with its budgetId spends from
              it, and so do all keys of an identity with it. Budgets below others divide them.
            </p>
            <CodeSnippet
              operation="budgets.createBudget"
              input={{
                name: "Research",
                remaining: 500_000_000,
                refill: { interval: "monthly", amount: 500_000_000 },
                thresholds: [80, 100],
                unit: "usd_micro",
              }}
            />
          </EmptyState>
        }
      />
      {isCreating && (
        <Suspense>
          <CreateBudget
            onClose={() => setCreating(false)}
            onCreated={(budgetId) => void navigate({ to: "/budgets/$budgetId", params: { budgetId } })}
          />
        </Suspense>
      )}
    </Page>
  );
}

/** Those of a tree, whose first one shows its levels. */
function columnsOf(
  collapsed: ReadonlySet<string>,
  onCollapsed: (collapsed: ReadonlySet<string>) => void,
): readonly Column<TreeRow>[] {
  const toggle = (budgetId: string) => {
    const next = new Set(collapsed);
    if (!next.delete(budgetId)) next.add(budgetId);
    onCollapsed(next);
  };
  return [
    {
      id: "name",
      header: "Name",
      width: "minmax(10rem, 2fr)",
      card: "title",
      cell: ({ budgetId, name, level, hasChildren }) => {
        const isOpen = !collapsed.has(budgetId);
        const Icon = isOpen ? ChevronDown : ChevronRight;
        return (
          <span className="flex items-center gap-1" style={{ paddingInlineStart: `${level * 1.25}rem` }}>
            {hasChildren ? (
              <button
                type="button"
                aria-label={`Budgets below ${name}`}
                aria-expanded={isOpen}
                className="rounded-sm p-0.5 text-quiet hover:bg-hover"
                onClick={() => toggle(budgetId)}
              >
                <Icon aria-hidden className="size-4" />
              </button>
            ) : (
              <span className="w-5 shrink-0" />
            )}
            <BudgetLink budgetId={budgetId} name={name} />
          </span>
        );
      },
    },
    ...budgetColumns,
  ];
}
