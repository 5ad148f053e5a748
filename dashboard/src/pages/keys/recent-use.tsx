import { useQuery } from "@tanstack/react-query";
import { read } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { Count } from "../../ui/number.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { useStill } from "../../ui/use-still.ts";

const HOUR = 3_600_000;
const HOURS = 36;

interface Use {
  readonly total: number;
  readonly series: readonly { readonly total: number }[];
}

/** The verifications of a key or of an API in the last 36 hours: a bar per hour, and their number. */
export function RecentUse({ of }: { of: { keyId: string } | { apiId: string } }) {
  // Rows that pass by while one scrolls read nothing.
  if (!useStill()) return null;
  return "keyId" in of ? <OfKey keyId={of.keyId} /> : <OfApi apiId={of.apiId} />;
}

function OfKey({ keyId }: { keyId: string }) {
  return <Bars {...useQuery({ ...read("analytics.getKeyStats", { keyId, ...lastHours() }), staleTime: 60_000 })} />;
}

function OfApi({ apiId }: { apiId: string }) {
  return <Bars {...useQuery({ ...read("analytics.getApiStats", { apiId, ...lastHours() }), staleTime: 60_000 })} />;
}

function lastHours() {
  const end = Math.ceil(Date.now() / HOUR) * HOUR;
  return { start: end - HOURS * HOUR, end, granularity: "hour" } as const;
}

function Bars({ data, error }: { data: Use | undefined; error: Error | null }) {
  if (error) return <span title={error.message}>–</span>;
  if (!data) return null;
  return (
    <span className="flex items-center justify-end gap-2">
      <Sparkline
        values={data.series.map(({ total }) => total)}
        label={`${exactNumber(data.total)} verifications in the last 36 hours`}
      />
      <span className="min-w-10 whitespace-nowrap text-right">
        <Count value={data.total} />
      </span>
    </span>
  );
}
