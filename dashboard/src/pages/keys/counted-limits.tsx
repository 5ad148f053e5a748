import type { Data } from "../../api/client.ts";
import { duration, exactNumber, relativeTime } from "../../api/format.ts";

type Limits = NonNullable<Data<"keys.explainVerification">["ratelimits"]>;

const uses = {
  charged: "",
  checked: "checked, not charged",
  replaced: "replaced by the limit of the call",
  unused: "not charged unless it is named",
};

/** The counters of limits, as `keys.explainVerification` reads them. */
export function CountedLimits({ of: limits }: { of: Limits }) {
  return (
    <>
      {limits.map(({ name, limit, duration: length, from, use, used, window }) => (
        <div key={`${from} ${name} ${use}`}>
          <div className="flex flex-wrap justify-between gap-x-3 text-xs tabular-nums">
            <span>
              {name}: {exactNumber(used)} of {exactNumber(limit)} in {duration(length)}
            </span>
            <span className="text-quiet">
              {from !== "key" && `of the ${from} · `}
              {uses[use] && `${uses[use]} · `}
              resets {relativeTime(window.endAt)}
            </span>
          </div>
          <meter
            aria-label={`${name} used`}
            min={0}
            max={Math.max(1, limit)}
            high={limit * 0.9}
            value={used}
            className="h-2 w-full"
          />
        </div>
      ))}
    </>
  );
}
