import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { planText } from "./plan-text.ts";

const LISTED_MAX = 100;

/** The choice of a plan by its name; empty for none. Where the plans cannot be listed, the name is entered. */
export function PlanField({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const isAllowed = useCan()("plans.some.read_plan");
  const [search, setSearch] = useState("");
  const { data, error } = useQuery({
    ...read("plans.listPlans", { limit: LISTED_MAX, ...(search !== "" && { search }) }),
    enabled: isAllowed,
    placeholderData: (before) => before,
  });
  if (!isAllowed || error) {
    return (
      <TextField
        label="Plan"
        description="The name of a plan. Empty: none."
        value={value}
        onChange={(text) => onChange(text.trim())}
        isMono
      />
    );
  }
  const plans = data ?? [];
  const chosen = plans.find(({ name }) => name === value);
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <div>
        <Select
          label="Plan"
          value={value}
          onChange={onChange}
          options={[
            { value: "", label: "None" },
            ...(chosen || value === "" ? [] : [{ value, label: value }]),
            ...plans.map(({ name }) => ({ value: name, label: name })),
          ]}
        />
        {chosen && <p className="mt-1 text-xs text-quiet">{planText(chosen)}</p>}
      </div>
      {(search !== "" || plans.length >= LISTED_MAX) && (
        <TextField label="Find a plan" placeholder="Name or id" value={search} onChange={setSearch} />
      )}
    </div>
  );
}
