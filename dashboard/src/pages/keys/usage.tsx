import type { Key } from "@latchkey/sdk";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { loadCode } from "../../api/connection.ts";
import { counted } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { type RangeName, RangePicker, useRange } from "../../ui/fields/range.tsx";
import { Segments } from "../../ui/fields/segments.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Count } from "../../ui/text/number.tsx";
import { useAnalyticsView } from "../analytics/groups.ts";

// Charts are half of the page's size.
const UsageByCode = lazy(async () => ({ default: (await loadCode(() => import("./usage-chart.tsx"))).UsageByCode }));
const UsageByTag = lazy(async () => ({ default: (await loadCode(() => import("./usage-chart.tsx"))).UsageByTag }));
const CreditsOverTime = lazy(async () => ({
  default: (await loadCode(() => import("./usage-chart.tsx"))).CreditsOverTime,
}));

const views = { code: "By code", tag: "By tag", credits: "Credits" } as const;
type View = keyof typeof views;

/** The verifications of a key over time: by code, by tag, and the credits that they spent. */
export function KeyUsage({ of: { keyId, apiId } }: { of: Key }) {
  const [name, setName] = useState<RangeName>("7d");
  const [view, setView] = useState<View>("code");
  const range = useRange(name);
  const needs = `apis.${apiId}.read_analytics`;
  const isAllowed = useCan()(needs);
  const by = view === "tag" ? "tag" : "code";
  const { sum, groups, note, error } = useAnalyticsView({ key: keyId, by }, range, isAllowed);
  if (!isAllowed) return <p className="mb-4 text-quiet">Usage needs the permission {needs}.</p>;
  if (error) return <ErrorBox error={error} />;
  return (
    <div className="mb-5">
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <p>
          {sum && (
            <>
              <span className="text-lg font-semibold">
                <Count value={sum.total} />
              </span>{" "}
              verifications, <Count value={sum.valid} /> valid
              {sum.creditsSpent > 0 && `, ${counted(sum.creditsSpent, "credit")} spent`}
            </>
          )}
        </p>
        <div className="flex flex-wrap items-center gap-2">
          <Segments label="Usage by" options={views} value={view} onChange={setView} />
          <RangePicker value={name} onChange={setName} />
        </div>
      </div>
      <div className="min-h-48">
        <Suspense fallback={<div className="skeleton h-48" />}>
          {!sum || (view === "tag" && !groups) ? (
            <div className="skeleton h-48" />
          ) : view === "code" ? (
            <UsageByCode of={sum} />
          ) : view === "tag" ? (
            <UsageByTag of={sum} groups={groups ?? []} {...(note !== undefined && { note })} />
          ) : (
            <CreditsOverTime of={sum} />
          )}
        </Suspense>
      </div>
      <p className="mt-3 text-xs">
        <Link
          to="/analytics"
          search={{ key: keyId, api: apiId, range: name, ...(by === "tag" && { by }) }}
          className="link"
        >
          Open in the analytics
        </Link>
      </p>
    </div>
  );
}
