import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { read } from "../../api/client.ts";
import { counted, localTime, milliseconds, shortNumber } from "../../api/format.ts";
import { useCan, useSession } from "../../api/session.ts";
import { share, sumRatelimits, sumVerifications } from "../../api/stats.ts";
import { SUBJECTS_MAX, useApiStats, useNamespaceStats } from "../../api/workspace-stats.ts";
import { LinkButton } from "../../ui/button.tsx";
import { Figure, Figures } from "../../ui/charts/figures.tsx";
import { countsOf, Ranking } from "../../ui/charts/ranking.tsx";
import { RatelimitChart, VerificationChart } from "../../ui/charts/verification-chart.tsx";
import { RangePicker, ranges, useRange } from "../../ui/fields/range.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Count } from "../../ui/text/number.tsx";
import { Skeleton } from "../../ui/text/skeleton.tsx";
import { BusiestKeys, BusiestOwners, RANKED_MAX } from "./busiest.tsx";
import { LiveDecisions } from "./decisions.tsx";
import { Findings } from "./findings.tsx";
import { Latency } from "./latency.tsx";

/** What happens in the workspace: counts over time, the busiest resources, and what needs attention. */
export function OverviewPage() {
  const { range: name = "24h" } = useSearch({ from: "/shell/" });
  const navigate = useNavigate({ from: "/" });
  const { workspace } = useSession();
  const range = useRange(name);
  const verifications = useApiStats(range);
  const ratelimits = useNamespaceStats(range);
  const recent = useRecent();
  const sum = sumVerifications(verifications.subjects.flatMap(({ stats }) => stats ?? []));
  const limits = sumRatelimits(ratelimits.subjects.flatMap(({ stats }) => stats ?? []));
  const zoom = (start: number, end: number) =>
    void navigate({ to: "/analytics", search: { start, end: Math.max(end, start + 60_000) } });
  const apiNames = new Map(verifications.subjects.map(({ subject: { apiId, name } }) => [apiId, name]));
  const isEmpty = !verifications.isPending && !verifications.lacks && verifications.subjects.length === 0;

  return (
    <Page
      title="Overview"
      summary={`${workspace.name}, ${ranges[name].long}`}
      actions={
        <RangePicker
          value={name}
          onChange={(range) => void navigate({ search: range === "24h" ? {} : { range }, replace: true })}
        />
      }
    >
      {isEmpty && ratelimits.subjects.length === 0 ? (
        <EmptyState
          title="Nothing to count yet"
          action={
            <LinkButton to="/apis" kind="primary">
              Create your first API
            </LinkButton>
          }
        >
          <p>Create an API, issue a key in it and verify the key. Each verification is counted here by its code.</p>
        </EmptyState>
      ) : (
        <>
          <Figures>
            <Figure name="Verifications" note={`${shortNumber(sum.creditsSpent)} credits spent`}>
              {verifications.lacks ? "–" : <Count value={sum.total} />}
            </Figure>
            <Figure name="Refused" note={`${share(sum.total - sum.valid, sum.total)} of the verifications`}>
              {verifications.lacks ? "–" : <Count value={sum.total - sum.valid} />}
            </Figure>
            <Figure name="Rate limit decisions" note={`cost ${shortNumber(limits.cost)}`}>
              {ratelimits.lacks ? "–" : <Count value={limits.total} />}
            </Figure>
            <Figure name="Denied" note={`${share(limits.denied, limits.total)} of the decisions`}>
              {ratelimits.lacks ? "–" : <Count value={limits.denied} />}
            </Figure>
            {recent && <Recent of={recent} />}
          </Figures>
          <div className="grid grid-cols-1 gap-x-8 gap-y-6 pb-5 md:grid-cols-2">
            <Part of={verifications} what="APIs">
              <VerificationChart of={sum} height={180} onRange={zoom} />
            </Part>
            <Part of={ratelimits} what="namespaces">
              <RatelimitChart of={limits} label="Rate limits by outcome" height={180} onRange={zoom} />
            </Part>
          </div>
          {recent && <Latency of={recent.minutes} />}
          <Section title="Needs attention">
            <Findings />
          </Section>
          <div className="grid grid-cols-1 gap-x-8 md:grid-cols-2">
            <Section
              title="Busiest keys"
              actions={
                <Link to="/analytics" search={{ range: name, by: "key" }} className="link text-xs">
                  Compare keys
                </Link>
              }
            >
              <BusiestKeys range={range} />
            </Section>
            <Section
              title="Busiest owners"
              actions={
                <Link to="/analytics" search={{ range: name, by: "owner" }} className="link text-xs">
                  Compare owners
                </Link>
              }
            >
              <BusiestOwners range={range} />
            </Section>
            <Section title="Busiest APIs">
              <Ranking
                label="Busiest APIs"
                empty="No API was used in this range."
                entries={verifications.subjects
                  .map(({ subject: { apiId, name: label }, stats }) => ({
                    id: apiId,
                    label: (
                      <Link to="/apis/$apiId" params={{ apiId }} className="hover:underline">
                        {label}
                      </Link>
                    ),
                    ...(stats ? countsOf(stats) : { value: 0 }),
                  }))
                  .filter(({ value }) => value > 0)
                  .sort((a, b) => b.value - a.value)
                  .slice(0, RANKED_MAX)}
              />
            </Section>
            <Section title="Busiest rate limit namespaces">
              <Ranking
                label="Busiest rate limit namespaces"
                empty="No rate limit was used in this range."
                entries={ratelimits.subjects
                  .map(({ subject: { id, name: label }, stats }) => ({
                    id,
                    label: (
                      <Link to="/ratelimits/$namespaceId" params={{ namespaceId: id }} className="hover:underline">
                        {label}
                      </Link>
                    ),
                    value: stats?.total ?? 0,
                    bad: stats?.denied ?? 0,
                    note: stats && `${share(stats.denied, stats.total)} denied`,
                  }))
                  .filter(({ value }) => value > 0)
                  .sort((a, b) => b.value - a.value)
                  .slice(0, RANKED_MAX)}
              />
            </Section>
          </div>
          <LiveDecisions apiNames={apiNames} />
        </>
      )}
    </Page>
  );
}

/** What the node that answers knows about its last minutes. Only the default workspace may know it. */
function useRecent() {
  const isAllowed = useCan()("system.*.read_status");
  const { data } = useQuery({
    ...read("system.getStatus", {}),
    enabled: isAllowed,
    staleTime: 30_000,
    refetchInterval: 60_000,
  });
  return data?.service?.recent;
}

function Recent({ of: recent }: { of: NonNullable<ReturnType<typeof useRecent>> }) {
  const { p50Ms, p99Ms, lookupsRefused, verifications, since } = recent;
  const title = `${counted(verifications, "verification")} on this node since ${localTime(since)}`;
  return (
    <>
      <Figure
        name="Verification time"
        note={
          <span title={title}>
            {p99Ms === undefined ? "none in the last 10 minutes" : `99 % in ${milliseconds(p99Ms)}`}
          </span>
        }
      >
        {p50Ms === undefined ? "–" : milliseconds(p50Ms)}
      </Figure>
      <Figure
        name="Look-ups refused"
        note={<span title={`of unknown keys, on this node since ${localTime(since)}`}>in the last 10 minutes</span>}
      >
        <Count value={lookupsRefused} />
      </Figure>
    </>
  );
}

function Part({
  of: { isPending, isCut, error, lacks, subjects },
  what,
  children,
}: {
  of: { isPending: boolean; isCut: boolean; error: Error | null; lacks?: string; subjects: readonly unknown[] };
  what: string;
  children: ReactNode;
}) {
  if (lacks !== undefined) return <p className="text-quiet">The root key lacks the permission {lacks}.</p>;
  if (error) return <ErrorBox error={error} />;
  if (isPending) return <Skeleton lines={7} />;
  if (subjects.length === 0) return <p className="text-quiet">There are no {what} yet.</p>;
  return (
    <div className="flex min-w-0 flex-col">
      {children}
      {isCut && <p className="text-xs text-quiet">Of the first {counted(SUBJECTS_MAX, what)}.</p>}
    </div>
  );
}
