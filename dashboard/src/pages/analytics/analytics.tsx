import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { X } from "lucide-react";
import { useMemo } from "react";
import { read } from "../../api/client.ts";
import { localTime, shortNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { share } from "../../api/stats.ts";
import type { Range } from "../../api/workspace-stats.ts";
import { type AnalyticsGroup, type AnalyticsSearch, analyticsGroups } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { Chart } from "../../ui/chart.tsx";
import { CodeRanking } from "../../ui/code-ranking.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Figure, Figures } from "../../ui/figures.tsx";
import { FilterChip, Filters, FilterText } from "../../ui/filters.tsx";
import { Count } from "../../ui/number.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { RangePicker, useRange } from "../../ui/range.tsx";
import { countsOf, Ranking } from "../../ui/ranking.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { VerificationChart } from "../../ui/verification-chart.tsx";
import { type Group, useAnalyticsView } from "./groups.ts";
import { seriesOf } from "./series.ts";

const groupNames: Record<AnalyticsGroup, string> = {
  code: "code",
  api: "API",
  key: "key",
  owner: "owner",
  tag: "tag",
};
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Buckets of one answer, so that a chart stays readable. */
const BUCKETS_MAX = 1_500;
const TAGS_SHOWN = 12;

/** Verifications over time, by code, API, key, owner or tag. The address is the state of the chart. */
export function AnalyticsPage() {
  const search = useSearch({ from: "/shell/analytics" });
  const navigate = useNavigate({ from: "/analytics" });
  const can = useCan();
  const named = useRange(search.range ?? "7d");
  const range = useMemo(() => rangeOf(search, named), [search, named]);
  const { by = "code" } = search;
  const { sum, groups, note, error, lacks } = useAnalyticsView(search, range);
  const apis = useQuery({ ...read("apis.listApis", { limit: 100 }), enabled: can("apis.*.read_api") });
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
      actions={
        <>
          {isOwnRange && (
            <Button onPress={() => set({ start: undefined, end: undefined, granularity: undefined })}>
              <X aria-hidden />
              Back to {search.range ?? "7d"}
            </Button>
          )}
          <RangePicker
            value={isOwnRange ? undefined : (search.range ?? "7d")}
            onChange={(range) => set({ range, start: undefined, end: undefined, granularity: undefined })}
          />
        </>
      }
    >
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
          options={(["minute", "hour", "day"] as const)
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
        <FilterText
          label="Tags"
          value={search.tags}
          onChange={(tags) => set({ tags })}
          placeholder="path=/v1/charges"
        />
      </Filters>
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
          <Figures>
            <Figure name="Verifications" note={`${shortNumber(sum.creditsSpent)} credits spent`}>
              <Count value={sum.total} />
            </Figure>
            <Figure name="Valid" note={share(sum.valid, sum.total)}>
              <Count value={sum.valid} />
            </Figure>
            <Figure name="Refused" note={share(sum.total - sum.valid, sum.total)}>
              <Count value={sum.total - sum.valid} />
            </Figure>
            <Figure name="Most frequent refusal" note={refusalNote(sum.outcomes)}>
              <span className="font-mono text-lg">{mostFrequentRefusal(sum.outcomes)?.[0] ?? "none"}</span>
            </Figure>
          </Figures>
          {by === "code" ? (
            <VerificationChart of={sum} height={280} onRange={zoom} />
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
            <span className="flex items-center gap-1">
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
            <div className="grid grid-cols-1 gap-x-8 md:grid-cols-2">
              <Section title="Codes">
                <CodeRanking of={sum} />
              </Section>
              <Section title="Tags">
                <Ranking
                  label="Tags"
                  empty="No verification had a tag. Send tags such as path=/v1/charges with keys.verifyKey."
                  entries={sum.tags.slice(0, TAGS_SHOWN).map(({ tag, ...counts }) => ({
                    id: tag,
                    label: (
                      <button
                        type="button"
                        className="font-mono text-xs hover:underline"
                        onClick={() => set({ tags: [...(search.tags?.split(" ") ?? []), tag].join(" ") })}
                      >
                        {tag}
                      </button>
                    ),
                    ...countsOf(counts),
                  }))}
                />
              </Section>
            </div>
          ) : (
            ranked &&
            ranked.length > 0 && (
              <DataTable
                label={sentence(groupNames[by])}
                columns={columnsOf(sentence(groupNames[by]))}
                rows={ranked}
                rowId={({ id }) => id}
                rowLabel={({ label }) => label}
                onOpen={({ narrow }) => set({ ...narrow, by: undefined })}
              />
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

function columnsOf(header: string): readonly Column<Group>[] {
  return [
    { id: "label", header, width: "minmax(10rem, 2fr)", card: "title", cell: ({ label }) => label },
    {
      id: "use",
      header: "Over time",
      width: "7rem",
      from: "md",
      card: "none",
      cell: ({ label, stats }) => (
        <Sparkline
          values={binned(stats.series.map(({ total }) => total))}
          label={`Verifications of ${label} over time`}
        />
      ),
    },
    {
      id: "total",
      header: "Verifications",
      width: "7rem",
      align: "right",
      cell: ({ stats }) => <Count value={stats.total} />,
    },
    {
      id: "valid",
      header: "Valid",
      width: "6rem",
      align: "right",
      from: "md",
      cell: ({ stats }) => <Count value={stats.valid} />,
    },
    {
      id: "refused",
      header: "Refused",
      width: "6rem",
      align: "right",
      cell: ({ stats }) => share(stats.total - stats.valid, stats.total),
    },
    {
      id: "credits",
      header: "Credits",
      width: "6rem",
      align: "right",
      from: "md",
      cell: ({ stats }) => <Count value={stats.creditsSpent} />,
    },
  ];
}

/** At most 36 sums, so that a bar is wide enough to be seen. */
function binned(values: readonly number[]): number[] {
  const size = Math.ceil(values.length / 36);
  const bins: number[] = [];
  for (const [index, value] of values.entries()) {
    const at = Math.floor(index / size);
    bins[at] = (bins[at] ?? 0) + value;
  }
  return bins;
}

function rangeOf({ start, end, granularity }: AnalyticsSearch, named: Range): Range {
  const range = start !== undefined && end !== undefined && start < end ? { start, end } : named;
  const length = range.end - range.start;
  const own = length <= 3 * HOUR ? "minute" : length <= 7 * DAY ? "hour" : "day";
  const wanted = granularity ?? own;
  return { start: range.start, end: range.end, granularity: fits(range, wanted) ? wanted : own };
}

function fits({ start, end }: { start: number; end: number }, granularity: Range["granularity"]): boolean {
  return (end - start) / { minute: MINUTE, hour: HOUR, day: DAY }[granularity] <= BUCKETS_MAX;
}

function mostFrequentRefusal(outcomes: Readonly<Record<string, number>>): [string, number] | undefined {
  return Object.entries(outcomes)
    .filter(([code]) => code !== "VALID")
    .sort(([, a], [, b]) => b - a)[0];
}

function refusalNote(outcomes: Readonly<Record<string, number>>): string {
  const found = mostFrequentRefusal(outcomes);
  return found ? `${shortNumber(found[1])} verifications` : "nothing was refused";
}

/** The call behind the chart, if it is one call. */
function callOf({ api, key, owner, tags }: AnalyticsSearch, range: Range) {
  const rest = { ...range, ...(tags && { tags: tags.split(" ") }) };
  if (key) return { operation: "analytics.getKeyStats", input: { keyId: key, ...rest } } as const;
  if (owner) return { operation: "analytics.getIdentityStats", input: { identity: owner, ...rest } } as const;
  if (api) return { operation: "analytics.getApiStats", input: { apiId: api, ...rest } } as const;
  return undefined;
}
