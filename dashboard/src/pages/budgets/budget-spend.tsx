import type { Budget } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../../api/client.ts";
import { share } from "../../api/stats.ts";
import { type RangeName, RangePicker, useRange } from "../../ui/fields/range.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Count } from "../../ui/text/number.tsx";
import { CreditsOverTime } from "../keys/usage-chart.tsx";

/** What was spent from a budget when, and how many of the calls were refused. */
export function BudgetSpend({ of: { budgetId, unit = "credits" } }: { of: Budget }) {
  const [name, setName] = useState<RangeName>("30d");
  const stats = useQuery(read("analytics.getBudgetStats", { budgetId, ...useRange(name) }));
  const { data } = stats;
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <p>
          {data && (
            <>
              <span className="text-lg font-semibold">
                <Count value={data.creditsSpent} />
              </span>{" "}
              {unit} spent in <Count value={data.total} /> verifications, {share(data.total - data.valid, data.total)}{" "}
              refused
            </>
          )}
        </p>
        <RangePicker value={name} onChange={setName} />
      </div>
      <div className="min-h-48">
        {data && !stats.error ? <CreditsOverTime of={data} /> : <Loading of={stats} lines={4} />}
      </div>
    </>
  );
}
