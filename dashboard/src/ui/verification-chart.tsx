import { useMemo } from "react";
import type { RatelimitStats, VerificationStats } from "../api/stats.ts";
import { Chart, seriesByCode } from "./chart.tsx";

type OnRange = (start: number, end: number) => void;

/** Verifications by code over time. */
export function VerificationChart({
  of: { series: buckets },
  label = "Verifications by code",
  height,
  onRange,
}: {
  of: Pick<VerificationStats, "series">;
  label?: string;
  height?: number;
  onRange?: OnRange | undefined;
}) {
  const times = useMemo(() => buckets.map(({ time }) => time), [buckets]);
  const series = useMemo(() => seriesByCode(buckets), [buckets]);
  return (
    <Chart
      label={label}
      times={times}
      series={series}
      kind="bars"
      {...(height !== undefined && { height })}
      {...(onRange && { onRange })}
    />
  );
}

/** Decisions about rate limits over time, passed and denied. */
export function RatelimitChart({
  of: { series: buckets },
  label = "Rate limits",
  height,
  onRange,
}: {
  of: Pick<RatelimitStats, "series">;
  label?: string;
  height?: number;
  onRange?: OnRange | undefined;
}) {
  const times = useMemo(() => buckets.map(({ time }) => time), [buckets]);
  const series = useMemo(
    () => [
      { label: "passed", color: "--color-code-valid" as const, values: buckets.map(({ passed }) => passed) },
      { label: "denied", color: "--color-code-limited" as const, values: buckets.map(({ denied }) => denied) },
    ],
    [buckets],
  );
  return (
    <Chart
      label={label}
      times={times}
      series={series}
      kind="bars"
      {...(height !== undefined && { height })}
      {...(onRange && { onRange })}
    />
  );
}
