import { useQuery } from "@tanstack/react-query";
import { read } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { Count } from "../../ui/number.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { useStill } from "../../ui/use-still.ts";

const HOUR = 3_600_000;
const HOURS = 36;

/** The verifications of a key or of an API in the last 36 hours: a bar per hour, and their number. */
export function RecentUse({ of }: { of: { keyId: string } | { apiId: string } }) {
  const isStill = useStill();
  const end = Math.ceil(Date.now() / HOUR) * HOUR;
  const range = { start: end - HOURS * HOUR, end, granularity: "hour" } as const;
  const key = useQuery({
    ...read("analytics.getKeyStats", { keyId: "keyId" in of ? of.keyId : "", ...range }),
    enabled: isStill && "keyId" in of,
    staleTime: 60_000,
  });
  const api = useQuery({
    ...read("analytics.getApiStats", { apiId: "apiId" in of ? of.apiId : "", ...range }),
    enabled: isStill && "apiId" in of,
    staleTime: 60_000,
  });
  const { data, error } = "keyId" in of ? key : api;
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
