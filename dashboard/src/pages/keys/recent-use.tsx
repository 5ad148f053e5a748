import { queryOptions, useQuery } from "@tanstack/react-query";
import { inBatches } from "../../api/batches.ts";
import { call, type Data } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { Sparkline } from "../../ui/charts/sparkline.tsx";
import { useStill } from "../../ui/tables/use-still.ts";
import { Count } from "../../ui/text/number.tsx";

const HOUR = 3_600_000;
const HOURS = 36;
/** Ids of one call of `analytics.listUsage`. */
const IDS_MAX = 100;

type Usage = Data<"analytics.listUsage">;
/** The verifications of a key or an API. */
type Use = Pick<Usage["keys"][number], "total" | "series"> & Pick<Usage, "start">;

/** The verifications of a key or of an API in the last 36 hours: a bar per hour, and their number. */
export function RecentUse({ of }: { of: { apiId: string; keyId?: string } }) {
  const isAllowed = useCan()(`apis.${of.apiId}.read_analytics`);
  // Rows that pass by while one scrolls read nothing.
  if (!useStill()) return null;
  return isAllowed ? <Bars of={of.keyId ?? of.apiId} /> : <span title="The root key may not read it">–</span>;
}

function Bars({ of: id }: { of: string }) {
  const { data, error } = useQuery(recentUse(id));
  if (error) return <span title={error.message}>–</span>;
  if (!data) return null;
  const buckets = Array.from({ length: HOURS }, (_, hour) => {
    const time = data.start + hour * HOUR;
    return data.series.find((bucket) => bucket.time === time) ?? { total: 0, valid: 0 };
  });
  return (
    <span className="flex items-center justify-end gap-2">
      <Sparkline
        values={buckets.map(({ total }) => total)}
        refused={buckets.map(({ total, valid }) => total - valid)}
        label={`${exactNumber(data.total)} verifications in the last 36 hours`}
      />
      <span className="min-w-13 whitespace-nowrap text-right">
        <Count value={data.total} />
      </span>
    </span>
  );
}

function recentUse(id: string) {
  return queryOptions({ queryKey: ["analytics.listUsage", id], queryFn: () => readUse(id), staleTime: 60_000 });
}

/** Reads the use of a key or an API. Rows that are shown together are read by one call. */
const readUse = inBatches(IDS_MAX, async (ids: readonly string[]): Promise<ReadonlyMap<string, Use>> => {
  const end = Math.ceil(Date.now() / HOUR) * HOUR;
  const { data } = await call("analytics.listUsage", {
    keyIds: ids.filter((id) => !id.startsWith("api_")),
    apiIds: ids.filter((id) => id.startsWith("api_")),
    start: end - HOURS * HOUR,
    end,
    granularity: "hour",
  });
  const { start } = data;
  return new Map([
    ...data.keys.map(({ keyId, total, series }) => [keyId, { total, series, start }] as const),
    ...data.apis.map(({ apiId, total, series }) => [apiId, { total, series, start }] as const),
  ]);
});
