import type { Data } from "../../api/client.ts";
import { duration, exactNumber } from "../../api/format.ts";
import { resetText } from "../../api/limit-text.ts";
import { ModeWords } from "../../ui/charts/limit.tsx";
import { Meter } from "../../ui/charts/meter.tsx";

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
      {limits.map(({ name, limit, duration: length, mode, shadow, from, use, used, window }) => (
        <Meter
          key={`${from} ${name} ${use}`}
          label={`${name} used`}
          used={used}
          max={limit}
          note={
            <>
              {from !== "key" && `of the ${from} · `}
              {uses[use] && `${uses[use]} · `}
              {resetText({ mode, used, window })}
            </>
          }
        >
          {name}: {exactNumber(used)} of {exactNumber(limit)} in {duration(length)}
          <ModeWords of={{ mode, shadow }} />
        </Meter>
      ))}
    </>
  );
}
