import { CalendarRange, X } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { loadCode } from "../../api/connection.ts";
import type { Range } from "../../api/workspace-stats.ts";
import type { AnalyticsSearch } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { RangePicker } from "../../ui/fields/range.tsx";
import type { ChangeAnalytics } from "./analytics-filters.tsx";

const RangeDialog = lazy(async () => ({ default: (await loadCode(() => import("./range-dialog.tsx"))).RangeDialog }));

/** Chooses the range of the chart: one with a name, or one of its own. */
export function RangeActions({
  search,
  range,
  isOwn,
  set,
}: {
  search: AnalyticsSearch;
  range: Range;
  /** Whether the range has no name. */
  isOwn: boolean;
  set: ChangeAnalytics;
}) {
  const [isChoosing, setIsChoosing] = useState(false);
  const named = { start: undefined, end: undefined, granularity: undefined };
  return (
    <>
      {isOwn && (
        <Button onPress={() => set(named)}>
          <X aria-hidden />
          Back to {search.range ?? "7d"}
        </Button>
      )}
      <Button onPress={() => setIsChoosing(true)}>
        <CalendarRange aria-hidden />
        From … to …
      </Button>
      <RangePicker value={isOwn ? undefined : (search.range ?? "7d")} onChange={(range) => set({ ...named, range })} />
      {isChoosing && (
        <Suspense>
          <RangeDialog
            range={range}
            onClose={() => setIsChoosing(false)}
            onChoose={(start, end) => {
              setIsChoosing(false);
              set({ start, end, granularity: undefined });
            }}
          />
        </Suspense>
      )}
    </>
  );
}
