import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { read } from "../../api/client.ts";
import { counted, DAY, exactNumber } from "../../api/format.ts";
import type { KeysFilter } from "./key-list.ts";

/** How many keys there are, how many match the filters, and how many expire soon. */
export function KeysSummary({
  apiId,
  filter,
  hasFilter,
  listed,
}: {
  apiId: string;
  filter: KeysFilter;
  hasFilter: boolean;
  /** The keys that are loaded; undefined until there are some. Counting waits for them: it examines every key. */
  listed: { count: number; isComplete: boolean } | undefined;
}) {
  const { order: _, orderBy: __, ...counting } = filter;
  const isReady = listed !== undefined;
  const { deleted = false } = filter;
  const all = useQuery({ ...read("apis.countKeys", { apiId, deleted }), staleTime: 30_000, enabled: isReady });
  const isPart = hasFilter && listed?.isComplete === false;
  const examined = useQuery({ ...read("apis.countKeys", counting), enabled: isPart });
  const matching = isPart ? examined.data : listed;
  const soon = useMemo(
    () => ({ apiId, state: "active" as const, expiresBefore: Math.ceil(Date.now() / DAY) * DAY + 14 * DAY }),
    [apiId],
  );
  const expiring = useQuery({ ...read("apis.countKeys", soon), staleTime: 30_000, enabled: isReady });
  const soonCount = expiring.data?.count ?? 0;
  if (!all.data) return <span className="invisible">–</span>;
  return (
    <>
      {hasFilter && matching && `${exactNumber(matching.count)}${matching.isComplete ? "" : "+"} of `}
      {counted(all.data.count, `${all.data.isComplete ? "" : "+ "}${deleted ? "deleted key" : "key"}`)}
      {soonCount > 0 && (
        <>
          {" · "}
          <Link to="/apis/$apiId" params={{ apiId }} search={{ expires: "14d" }} className="link">
            {exactNumber(soonCount)} {soonCount === 1 ? "expires" : "expire"} within 14 days
          </Link>
        </>
      )}
    </>
  );
}
