import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { LISTED_MAX, ListedChoice } from "../../ui/fields/listed-choice.tsx";
import { treeOf } from "./budget-tree.ts";

const none: ReadonlySet<string> = new Set();

/** The choice of a budget by its id; empty for none. */
export function BudgetField({ value, onChange }: { value: string; onChange: (budgetId: string) => void }) {
  const isAllowed = useCan()("budgets.some.read_budget");
  const [search, setSearch] = useState("");
  const { data, error } = useQuery({
    ...read("budgets.listBudgets", { limit: LISTED_MAX, ...(search !== "" && { search }) }),
    enabled: isAllowed,
    placeholderData: (before) => before,
  });
  const options = treeOf(data ?? [], none).map(({ budgetId, name, level }) => ({
    value: budgetId,
    label: `${"\u00a0".repeat(level * 4)}${name}`,
  }));
  return (
    <ListedChoice
      label="Budget"
      description="The id of a budget. Empty: none."
      value={value}
      onChange={onChange}
      options={isAllowed && !error ? options : undefined}
      search={search}
      onSearch={setSearch}
    />
  );
}
