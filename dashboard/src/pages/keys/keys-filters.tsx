import type { Key } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import type { KeysSearch } from "../../layout/searches.ts";
import { FilterChip, Filters, SearchField } from "../../ui/tables/filters.tsx";
import { useFindKey } from "./find-key.ts";

/** The search and the filters above the keys of an API. */
export function KeysFilters({
  apiId,
  search,
  set,
  rows,
  prefix,
}: {
  apiId: string;
  search: KeysSearch;
  /** Changes members of the address. */
  set: (change: KeysSearch, replace?: boolean) => void;
  /** The keys that are loaded, whose prefixes can be chosen. */
  rows: readonly Key[];
  /** The prefix of the API. */
  prefix: string | undefined;
}) {
  const can = useCan();
  const roles = useQuery({ ...read("permissions.listRoles", { limit: 100 }), enabled: can("permissions.*.read_role") });
  const budget = useQuery({
    ...read("budgets.getBudget", { budgetId: search.budget ?? "" }),
    enabled: search.budget !== undefined && can(`budgets.${search.budget}.read_budget`),
  });
  const prefixes = useMemo(() => prefixesOf(rows, prefix, search.prefix), [rows, prefix, search.prefix]);
  const findKey = useFindKey(apiId, set);
  const onSearch = useCallback((q: string) => set({ q }, true), [set]);
  return (
    <Filters>
      <SearchField
        label="Search keys"
        placeholder="Name, owner, id, start, or paste a key"
        value={search.q ?? ""}
        onChange={onSearch}
        onSecret={findKey}
      />
      <FilterChip
        label="State"
        value={search.state}
        onChange={(state) => set({ state })}
        options={[
          { value: "active", label: "Active" },
          { value: "disabled", label: "Disabled" },
          { value: "expired", label: "Expired" },
          { value: "deleted", label: "Deleted" },
        ]}
      />
      <FilterChip
        label="Expires"
        value={search.expires}
        onChange={(expires) => set({ expires })}
        options={[
          { value: "1d", label: "within a day" },
          { value: "14d", label: "within 14 days" },
          { value: "90d", label: "within 90 days" },
        ]}
      />
      {prefixes.length > 0 && (
        <FilterChip
          label="Prefix"
          value={search.prefix}
          onChange={(prefix) => set({ prefix })}
          options={prefixes.map((value) => ({ value, label: `${value}_` }))}
        />
      )}
      {(roles.data?.length || search.role) && (
        <FilterChip
          label="Role"
          value={search.role}
          onChange={(role) => set({ role })}
          options={[
            ...new Set([...(search.role ? [search.role] : []), ...(roles.data ?? []).map(({ name }) => name)]),
          ].map((name) => ({ value: name, label: name }))}
        />
      )}
      {search.owner && (
        <FilterChip
          label="Owner"
          value={search.owner}
          onChange={(owner) => set({ owner })}
          options={[{ value: search.owner, label: search.owner }]}
        />
      )}
      {search.budget && (
        <FilterChip
          label="Budget"
          value={search.budget}
          onChange={(budget) => set({ budget })}
          options={[{ value: search.budget, label: budget.data?.name ?? search.budget }]}
        />
      )}
      {search.plan && (
        <FilterChip
          label="Plan"
          value={search.plan}
          onChange={(plan) => set({ plan })}
          options={[{ value: search.plan, label: search.plan }]}
        />
      )}
      <FilterChip
        label="Order"
        value={search.order}
        onChange={(order) => set({ order })}
        options={[
          { value: "asc", label: "oldest first" },
          { value: "name", label: "name" },
          { value: "-name", label: "name, from Z to A" },
          { value: "expires", label: "expiry" },
          { value: "-expires", label: "latest expiry first" },
          { value: "-used", label: "last used first" },
          { value: "used", label: "longest unused first" },
        ]}
      />
    </Filters>
  );
}

/** The prefixes that occur in the loaded keys, the most frequent first. */
function prefixesOf(rows: readonly Key[], ...more: (string | undefined)[]): string[] {
  const found = rows.flatMap(({ start }) => /^(.+)_[^_]*$/.exec(start)?.[1] ?? []);
  return [...new Set([...more.filter((prefix) => prefix !== undefined), ...found])].slice(0, 12);
}
