import type { Key } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState } from "react";
import { read } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Count } from "../../ui/number.tsx";
import { type RangeName, RangePicker, useRange } from "../../ui/range.tsx";

const Chart = lazy(async () => {
  const { Chart, seriesByCode } = await import("../../ui/chart.tsx");
  type Bucket = Parameters<typeof seriesByCode>[0][number] & { time: number };
  return {
    default: ({ buckets }: { buckets: readonly Bucket[] }) => {
      const times = useMemo(() => buckets.map(({ time }) => time), [buckets]);
      const series = useMemo(() => seriesByCode(buckets), [buckets]);
      return <Chart label="Verifications" times={times} series={series} kind="bars" height={160} />;
    },
  };
});

/** The verifications of a key over time, by code, and its most frequent tags. */
export function KeyUsage({ of: { keyId, apiId } }: { of: Key }) {
  const [name, setName] = useState<RangeName>("7d");
  const range = useRange(name);
  const needs = `apis.${apiId}.read_analytics`;
  const isAllowed = useCan()(needs);
  const { data, error } = useQuery({ ...read("analytics.getKeyStats", { keyId, ...range }), enabled: isAllowed });
  if (!isAllowed) return <p className="mb-4 text-quiet">Usage needs the permission {needs}.</p>;
  if (error) return <ErrorBox error={error} />;
  return (
    <div className="mb-5">
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <p>
          {data && (
            <>
              <span className="text-lg font-semibold">
                <Count value={data.total} />
              </span>{" "}
              verifications, <Count value={data.valid} /> valid
              {data.creditsSpent > 0 && `, ${counted(data.creditsSpent, "credit")} spent`}
            </>
          )}
        </p>
        <RangePicker value={name} onChange={setName} />
      </div>
      <div className="min-h-48">
        <Suspense fallback={<div className="skeleton h-48" />}>{data && <Chart buckets={data.series} />}</Suspense>
      </div>
      {data && data.tags.length > 0 && (
        <ul aria-label="Most frequent tags" className="mt-2 flex flex-wrap gap-1.5">
          {data.tags.slice(0, 8).map(({ tag, total }) => (
            <li key={tag} className="rounded-sm bg-field px-1.5 py-0.5 text-xs">
              <span className="font-mono">{tag}</span> <Count value={total} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
