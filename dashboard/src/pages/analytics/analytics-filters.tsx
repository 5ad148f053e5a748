import { useQuery } from "@tanstack/react-query";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import type { Range } from "../../api/workspace-stats.ts";
import { type AnalyticsGroup, type AnalyticsSearch, analyticsGroups } from "../../layout/searches.ts";
import { FilterChip, Filters, FilterText } from "../../ui/tables/filters.tsx";
import { fits, granularities } from "./shown.ts";

export const groupNames: Record<AnalyticsGroup, string> = {
  code: "code",
  api: "API",
  key: "key",
  owner: "owner",
  tag: "tag",
};

/** Changes the state of the page, which is its address. */
export type ChangeAnalytics = (change: Partial<Record<keyof AnalyticsSearch, unknown>>) => void;

/** What the chart counts, and how it is divided. */
export function AnalyticsFilters({
  search,
  range,
  set,
}: {
  search: AnalyticsSearch;
  range: Range;
  set: ChangeAnalytics;
}) {
  const { by = "code" } = search;
  const can = useCan();
  const apis = useQuery({ ...read("apis.listApis", { limit: 100 }), enabled: can("apis.*.read_api") });
  return (
    <Filters>
      <FilterChip
        label="By"
        value={by}
        isAlwaysOn
        onChange={(by) => set({ by: by === "code" ? undefined : by })}
        options={analyticsGroups.map((value) => ({ value, label: groupNames[value] }))}
      />
      <FilterChip
        label="Granularity"
        value={search.granularity}
        onChange={(granularity) => set({ granularity })}
        options={granularities
          .filter((granularity) => fits(range, granularity))
          .map((value) => ({ value, label: value }))}
      />
      {!!apis.data?.length && (
        <FilterChip
          label="API"
          value={search.api}
          onChange={(api) => set({ api, key: undefined })}
          options={apis.data.map(({ apiId, name }) => ({ value: apiId, label: name }))}
        />
      )}
      <FilterText label="Owner" value={search.owner} onChange={(owner) => set({ owner })} placeholder="acme" />
      <FilterText label="Key id" value={search.key} onChange={(key) => set({ key })} placeholder="key_…" />
      <FilterText label="Tags" value={search.tags} onChange={(tags) => set({ tags })} placeholder="path=/v1/charges" />
    </Filters>
  );
}
