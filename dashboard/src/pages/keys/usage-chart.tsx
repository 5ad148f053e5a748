import { useMemo } from "react";
import type { VerificationStats } from "../../api/stats.ts";
import { Chart } from "../../ui/charts/chart.tsx";
import { CodeRanking } from "../../ui/charts/code-ranking.tsx";
import { countsOf, Ranking } from "../../ui/charts/ranking.tsx";
import type { Series } from "../../ui/charts/series.ts";
import { VerificationChart } from "../../ui/charts/verification-chart.tsx";
import type { Group } from "../analytics/groups.ts";
import { seriesOf } from "../analytics/series.ts";

const HEIGHT = 160;
const RANKED_MAX = 8;

/** The verifications of a key by code, with its codes and tags. */
export function UsageByCode({ of: stats }: { of: VerificationStats }) {
  return (
    <>
      <VerificationChart of={stats} height={HEIGHT} />
      {stats.total > 0 && (
        <div className="mt-3 grid grid-cols-1 gap-x-8 gap-y-4 md:grid-cols-2">
          <CodeRanking of={stats} />
          <Tags of={stats} />
        </div>
      )}
    </>
  );
}

/** The verifications of a key by tag. */
export function UsageByTag({
  of: stats,
  groups,
  note,
}: {
  of: VerificationStats;
  groups: readonly Group[];
  note?: string;
}) {
  const series = useMemo(() => seriesOf(groups, true), [groups]);
  const times = useMemo(() => stats.series.map(({ time }) => time), [stats]);
  if (stats.tags.length === 0) return <Tags of={stats} />;
  return (
    <>
      <Chart label="Verifications by tag" times={times} series={series} kind="lines" height={HEIGHT} />
      <p className="mt-1 mb-3 text-xs text-quiet">{note}</p>
      <Tags of={stats} />
    </>
  );
}

/** The credits that verifications of a key spent. */
export function CreditsOverTime({ of: stats }: { of: VerificationStats }) {
  const times = useMemo(() => stats.series.map(({ time }) => time), [stats]);
  const series = useMemo(
    (): Series[] => [
      {
        label: "credits",
        color: "--color-code-usage",
        values: stats.series.map(({ creditsSpent }) => creditsSpent),
      },
    ],
    [stats],
  );
  return <Chart label="Credits spent" times={times} series={series} kind="bars" height={HEIGHT} />;
}

function Tags({ of: { tags } }: { of: VerificationStats }) {
  return (
    <Ranking
      label="Tags"
      empty="No verification had a tag. Send tags such as path=/v1/charges with keys.verifyKey."
      entries={tags.slice(0, RANKED_MAX).map(({ tag, ...counts }) => ({
        id: tag,
        label: <span className="font-mono text-xs">{tag}</span>,
        ...countsOf(counts),
      }))}
    />
  );
}
