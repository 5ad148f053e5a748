import { useMemo } from "react";
import type { RatelimitStats, VerificationStats } from "../../api/stats.ts";
import { Chart } from "./chart.tsx";
import { type Series, seriesByCode } from "./series.ts";

interface CountsProps<Stats extends { series: readonly { time: number }[] }> {
  of: Pick<Stats, "series">;
  label?: string;
  height?: number;
  /** The statistics of the period before. */
  before?: { series: readonly { total: number }[] } | undefined;
  onRange?: ((start: number, end: number) => void) | undefined;
}

/** Verifications by code over time. */
export function VerificationChart({ label = "Verifications by code", ...props }: CountsProps<VerificationStats>) {
  return <Counts {...props} label={label} accepted="VALID" seriesOf={seriesByCode} />;
}

/** Decisions about rate limits over time, passed and denied. */
export function RatelimitChart({ label = "Rate limits", ...props }: CountsProps<RatelimitStats>) {
  return <Counts {...props} label={label} accepted="passed" seriesOf={seriesByOutcome} />;
}

function seriesByOutcome(buckets: RatelimitStats["series"]): Series[] {
  return [
    { label: "passed", color: "--color-code-valid", values: buckets.map(({ passed }) => passed) },
    { label: "denied", color: "--color-code-limited", values: buckets.map(({ denied }) => denied) },
  ];
}

/** Bars of what `seriesOf` counts in each bucket. */
function Counts<Stats extends { series: readonly { time: number }[] }>({
  of: { series: buckets },
  seriesOf,
  accepted,
  label,
  height,
  before,
  onRange,
}: CountsProps<Stats> & { label: string; accepted: string; seriesOf: (buckets: Stats["series"]) => Series[] }) {
  const times = useMemo(() => buckets.map(({ time }) => time), [buckets]);
  const series = useMemo(() => seriesOf(buckets), [buckets, seriesOf]);
  const sums = useMemo(() => before?.series.map(({ total }) => total), [before]);
  return (
    <Chart
      label={label}
      times={times}
      series={series}
      accepted={accepted}
      before={sums}
      kind="bars"
      {...(height !== undefined && { height })}
      {...(onRange && { onRange })}
    />
  );
}
