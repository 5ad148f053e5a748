import { useMemo } from "react";
import type { Data } from "../../api/client.ts";
import { localTime, milliseconds } from "../../api/format.ts";
import { Chart } from "../../ui/charts/chart.tsx";
import type { Series } from "../../ui/charts/series.ts";

type Minutes = NonNullable<Data<"system.getStatus">["service"]>["recent"]["minutes"];

/** How long verifications took on the node that answers, minute by minute. A minute without any is a gap. */
export function Latency({ of: minutes }: { of: Minutes }) {
  const times = useMemo(() => minutes.map(({ since }) => since), [minutes]);
  const series = useMemo(
    (): Series[] => [
      { label: "half of them", color: "--color-code-valid", values: minutes.map(({ p50Ms }) => p50Ms ?? null) },
      { label: "99 % of them", color: "--color-code-forbidden", values: minutes.map(({ p99Ms }) => p99Ms ?? null) },
    ],
    [minutes],
  );
  if (!minutes.some(({ verifications }) => verifications > 0)) return null;
  return (
    <div className="pb-5">
      <Chart
        label="Verification time, at most, in ms"
        times={times}
        series={series}
        kind="lines"
        height={120}
        format={milliseconds}
      />
      <p className="text-xs text-quiet">
        Of the node that answers, since {localTime(minutes[0]!.since)}: it remembers an hour, and starts anew with it.
      </p>
    </div>
  );
}
