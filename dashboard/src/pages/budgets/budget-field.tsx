import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { treeOf } from "./budget-tree.ts";

const LISTED_MAX = 100;
const none: ReadonlySet<string> = new Set();

/** The choice of a budget by its id; empty for none. Where the budgets cannot be listed, the id is entered. */
export function BudgetField({ value, onChange }: { value: string; onChange: (budgetId: string) => void }) {
  const isAllowed = useCan()("budgets.some.read_budget");
  const [search, setSearch] = useState("");
  const { data, error } = useQuery({
    ...read("budgets.listBudgets", { limit: LISTED_MAX, ...(search !== "" && { search }) }),
    enabled: isAllowed,
    placeholderData: (before) => before,
  });
  if (!isAllowed || error) {
    return (
      <TextField
        label="Budget"
        description="The id of a budget. Empty: none."
        value={value}
        onChange={(text) => onChange(text.trim())}
        isMono
      />
    );
  }
  const rows = treeOf(data ?? [], none);
  const isListed = value === "" || rows.some(({ budgetId }) => budgetId === value);
  const areMany = search !== "" || rows.length >= LISTED_MAX;
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <Select
        label="Budget"
        value={value}
        onChange={onChange}
        options={[
          { value: "", label: "None" },
          ...(isListed ? [] : [{ value, label: value }]),
          ...rows.map(({ budgetId, name, level }) => ({
            value: budgetId,
            label: `${"\u00a0".repeat(level * 4)}${name}`,
          })),
        ]}
      />
      {areMany && <TextField label="Find a budget" placeholder="Name or id" value={search} onChange={setSearch} />}
    </div>
  );
}
