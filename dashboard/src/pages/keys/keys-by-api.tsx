import type { Key } from "@latchkey/sdk";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { read } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { limitText } from "../../api/limit-text.ts";
import { useCan } from "../../api/session.ts";
import { SUBJECTS_MAX } from "../../api/workspace-stats.ts";
import type { KeysSearch } from "../../layout/searches.ts";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Skeleton } from "../../ui/text/skeleton.tsx";
import { Time } from "../../ui/text/time.tsx";
import { KeyState, keyName } from "./key-state.tsx";
import { RecentUse } from "./recent-use.tsx";

/** Keys of one API that are shown; all of them are one click away. */
const KEYS_SHOWN = 10;

/** What keys have in common: their owner, their budget, or the name of their plan. */
type Selection = { readonly externalId: string } | { readonly budgetId: string } | { readonly plan: string };

/** Such keys in each API, with their state, limits and use. `empty`: shown if there are none. */
export function KeysByApi({ of: selection, empty }: { of: Selection; empty: ReactNode }) {
  const can = useCan();
  const needs = ["apis.*.read_api", "apis.some.read_key"].find((permission) => !can(permission));
  const { data: apis, error } = useQuery({
    ...read("apis.listApis", { limit: SUBJECTS_MAX + 1 }),
    enabled: needs === undefined,
  });
  const shown = (apis ?? []).filter(({ apiId }) => can(`apis.${apiId}.read_key`)).slice(0, SUBJECTS_MAX);
  const counts = useQueries({ queries: shown.map(({ apiId }) => read("apis.countKeys", { apiId, ...selection })) });
  if (needs) return <p className="text-quiet">The keys need the permission {needs.replace(".some.", ".*.")}.</p>;
  if (error) return <ErrorBox error={error} />;
  if (!apis || counts.some(({ isPending }) => isPending)) return <Skeleton lines={2} />;
  const owned = shown.flatMap(({ apiId, name }, index) => {
    const count = counts[index]?.data;
    return count && (count.count > 0 || !count.isComplete) ? [{ apiId, name, ...count }] : [];
  });
  return (
    <>
      {owned.length === 0 ? empty : owned.map((api) => <KeysOfApi key={api.apiId} {...api} selection={selection} />)}
      {apis.length > SUBJECTS_MAX && (
        <p className="mt-2 text-xs text-quiet">In the first {counted(SUBJECTS_MAX, "API")}.</p>
      )}
    </>
  );
}

function KeysOfApi({
  apiId,
  name,
  count,
  isComplete,
  selection,
}: {
  apiId: string;
  name: string;
  count: number;
  isComplete: boolean;
  selection: Selection;
}) {
  const { data: keys, error } = useQuery(
    read("apis.listKeys", { apiId, ...selection, order: "desc", limit: KEYS_SHOWN }),
  );
  return (
    <div className="mb-4">
      <Link
        to="/apis/$apiId"
        params={{ apiId }}
        search={searchOf(selection)}
        className="flex items-center justify-between gap-4 border-b border-line px-2 py-1.5 hover:bg-hover"
      >
        <span className="min-w-0 truncate font-medium">{name}</span>
        <span className="text-quiet tabular-nums">
          {isComplete ? counted(count, "key") : `at least ${counted(count, "key")}`}
        </span>
      </Link>
      {error ? (
        <ErrorBox error={error} />
      ) : (
        <ul aria-label={`Keys in ${name}`}>
          {keys?.map((key) => (
            <KeyLine key={key.keyId} of={key} />
          ))}
        </ul>
      )}
      {count > KEYS_SHOWN && (
        <p className="px-2 pt-1.5 text-xs text-quiet">The newest {exactNumber(KEYS_SHOWN)} of them.</p>
      )}
    </div>
  );
}

/** The filter of the keys of an API that selects them. */
function searchOf(selection: Selection): KeysSearch {
  if ("budgetId" in selection) return { budget: selection.budgetId };
  return "plan" in selection ? { plan: selection.plan } : { owner: selection.externalId };
}

function KeyLine({ of: key }: { of: Key }) {
  const { apiId, keyId, credits, ratelimits = [], lastUsedAt } = key;
  const bounds = [
    ...(credits ? [`${counted(credits.remaining, "credit")} remain`] : []),
    ...ratelimits.map((limit) => `${limit.name}: ${limitText(limit)}`),
  ];
  return (
    <li className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 gap-y-0.5 border-b border-line px-2 py-1.5 md:grid-cols-[minmax(0,2fr)_9rem_minmax(0,2fr)_11rem_7rem]">
      <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} className="truncate hover:underline">
        <bdi>{keyName(key)}</bdi>
      </Link>
      <span>
        <KeyState of={key} />
      </span>
      <span className="truncate text-xs text-quiet max-md:col-span-2" title={bounds.join("\n")}>
        {bounds.length === 0 ? "No limits of its own" : bounds.join(" · ")}
      </span>
      <span className="max-md:hidden">
        <RecentUse of={{ apiId, keyId }} />
      </span>
      <span className="text-xs text-quiet max-md:col-span-2 md:text-right">
        {lastUsedAt === undefined ? (
          "never used"
        ) : (
          <>
            used <Time at={lastUsedAt} relative />
          </>
        )}
      </span>
    </li>
  );
}
