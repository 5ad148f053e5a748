import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { loadCode } from "../../api/connection.ts";
import { localTime } from "../../api/format.ts";
import { snippetsOf } from "../../api/snippets.ts";
import type { AnalyticsSearch } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { Chart } from "../../ui/charts/chart.tsx";
import { VerificationChart } from "../../ui/charts/verification-chart.tsx";
import { useRange } from "../../ui/fields/range.tsx";
import { Page } from "../../ui/page.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Skeleton } from "../../ui/text/skeleton.tsx";
import { AnalyticsFigures } from "./analytics-figures.tsx";
import { AnalyticsFilters, groupNames } from "./analytics-filters.tsx";
import { CodesAndTags } from "./codes-and-tags.tsx";
import { useAnalyticsView } from "./groups.ts";
import { RangeActions } from "./range-actions.tsx";
import { seriesOf } from "./series.ts";
import { callOf, rangeBefore, rangeOf } from "./shown.ts";

const GroupTable = lazy(async () => ({ default: (await loadCode(() => import("./group-table.tsx"))).GroupTable }));

const MINUTE = 60_000;

/** Verifications over time, by code, API, key, owner or tag. The address is the state of the chart. */
export function AnalyticsPage() {
  const search = useSearch({ from: "/shell/analytics" });
  const navigate = useNavigate({ from: "/analytics" });
  const named = useRange(search.range ?? "7d");
  const range = useMemo(() => rangeOf(search, named), [search, named]);
  const { by = "code" } = search;
  const { sum, groups, note, error, lacks } = useAnalyticsView(search, range);
  const isCompared = search.compare === true && by === "code";
  const past = useAnalyticsView(
    { ...search, by: "code" },
    useMemo(() => rangeBefore(range), [range]),
    isCompared,
  );
  const isOwnRange = search.start !== undefined && search.end !== undefined;

  const set = (change: Partial<Record<keyof AnalyticsSearch, unknown>>, replace = false) =>
    void navigate({
      search: (before) =>
        Object.fromEntries(
          Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined && value !== ""),
        ) as AnalyticsSearch,
      replace,
    });
  const zoom = (start: number, end: number) =>
    set({ start: Math.round(start), end: Math.max(Math.round(end), start + 2 * MINUTE), granularity: undefined });
  const ranked = useMemo(
    () => groups && [...groups].filter(({ stats }) => stats.total > 0).sort((a, b) => b.stats.total - a.stats.total),
    [groups],
  );
  const parts = useMemo(() => seriesOf(ranked ?? [], by === "tag"), [ranked, by]);
  const hasChart = by === "code" || parts.length > 0;
  const call = callOf(search, range);

  return (
    <Page
      title="Analytics"
      summary={
        isOwnRange ? `${localTime(range.start)} to ${localTime(range.end)}` : "Verifications, about one second old"
      }
      actions={<RangeActions search={search} range={range} isOwn={isOwnRange} set={set} />}
    >
      <AnalyticsFilters search={search} range={range} set={set} />
      {lacks !== undefined ? (
        <EmptyState title="The root key may not read these statistics">
          <p>It lacks the permission {lacks}. Choose an API that it may read, or sign in with another root key.</p>
        </EmptyState>
      ) : error ? (
        <ErrorBox error={error} />
      ) : !sum ? (
        <Skeleton lines={10} />
      ) : (
        <>
          <AnalyticsFigures of={sum} />
          {by === "code" ? (
            <VerificationChart of={sum} before={isCompared ? past.sum : undefined} height={280} onRange={zoom} />
          ) : !ranked ? (
            <Skeleton lines={8} />
          ) : (
            parts.length > 0 && (
              <Chart
                label={`Verifications by ${groupNames[by]}`}
                times={(ranked[0]?.stats.series ?? []).map(({ time }) => time)}
                series={parts}
                kind={by === "tag" ? "lines" : "bars"}
                height={280}
                onRange={zoom}
              />
            )
          )}
          <div className="mt-1 mb-5 flex flex-wrap items-center justify-between gap-2 text-xs text-quiet">
            <span>
              {note ??
                (hasChart &&
                  "Drag over the chart to choose a range. The address of this page is the state of the chart.")}
            </span>
            <span className="flex flex-wrap items-center gap-1">
              {by === "code" && (
                <Button kind="quiet" onPress={() => set({ compare: !isCompared || undefined })}>
                  {isCompared ? "Hide the period before" : "Compare with the period before"}
                </Button>
              )}
              <CopyButton kind="quiet" text={() => location.href}>
                Copy link
              </CopyButton>
              {call && (
                <CopyButton kind="quiet" text={() => snippetsOf(call.operation, call.input).curl}>
                  Copy as curl
                </CopyButton>
              )}
            </span>
          </div>
          {by === "code" ? (
            <CodesAndTags
              of={sum}
              onTag={(tag) => set({ tags: [...(search.tags?.split(" ") ?? []), tag].join(" ") })}
            />
          ) : (
            ranked &&
            ranked.length > 0 && (
              <Suspense fallback={<Skeleton lines={4} />}>
                <GroupTable
                  of={ranked}
                  name={sentence(groupNames[by])}
                  onNarrow={(narrow) => set({ ...narrow, by: undefined })}
                />
              </Suspense>
            )
          )}
          {ranked?.length === 0 && (!!groups?.length || note === undefined) && (
            <p className="text-quiet">None was used in this range.</p>
          )}
        </>
      )}
    </Page>
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
