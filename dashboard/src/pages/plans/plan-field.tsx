import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { LISTED_MAX, ListedChoice } from "../../ui/fields/listed-choice.tsx";
import { planText } from "./plan-text.ts";

/** The choice of a plan by its name; empty for none. */
export function PlanField({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const isAllowed = useCan()("plans.some.read_plan");
  const [search, setSearch] = useState("");
  const { data: plans = [], error } = useQuery({
    ...read("plans.listPlans", { limit: LISTED_MAX, ...(search !== "" && { search }) }),
    enabled: isAllowed,
    placeholderData: (before) => before,
  });
  const chosen = plans.find(({ name }) => name === value);
  return (
    <ListedChoice
      label="Plan"
      description="The name of a plan. Empty: none."
      value={value}
      onChange={onChange}
      options={isAllowed && !error ? plans.map(({ name }) => ({ value: name, label: name })) : undefined}
      search={search}
      onSearch={setSearch}
    >
      {chosen && <p className="mt-1 text-xs text-quiet">{planText(chosen)}</p>}
    </ListedChoice>
  );
}
