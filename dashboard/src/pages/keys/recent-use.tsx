import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { read } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { Count } from "../../ui/number.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";

const HOUR = 3_600_000;
const HOURS = 36;
/** A row that only passes by while one scrolls asks for nothing. */
const SETTLED_MS = 250;

/** The verifications of a key or of an API in the last 36 hours: a bar per hour, and their number. */
export function RecentUse({ of }: { of: { keyId: string } | { apiId: string } }) {
  const [isSettled, setSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLED_MS);
    return () => clearTimeout(timer);
  }, []);
  const end = Math.ceil(Date.now() / HOUR) * HOUR;
  const range = { start: end - HOURS * HOUR, end, granularity: "hour" } as const;
  const key = useQuery({
    ...read("analytics.getKeyStats", { keyId: "keyId" in of ? of.keyId : "", ...range }),
    enabled: isSettled && "keyId" in of,
    staleTime: 60_000,
  });
  const api = useQuery({
    ...read("analytics.getApiStats", { apiId: "apiId" in of ? of.apiId : "", ...range }),
    enabled: isSettled && "apiId" in of,
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
      <span className="w-10 text-right">
        <Count value={data.total} />
      </span>
    </span>
  );
}
