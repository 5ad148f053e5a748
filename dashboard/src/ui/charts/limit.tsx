import { type Limit, STRICT_PROMISE, windowText } from "../../api/limit-text.ts";
import { Hint } from "../overlays/hint.tsx";

/** A limit in words. A strict one says on hover and on focus what that promises. */
export function LimitWords({ of: limit }: { of: Limit }) {
  return (
    <span className="tabular-nums">
      {windowText(limit)}
      <ModeWord of={limit} />
    </span>
  );
}

/** The mode of a limit after it: `, strict`. */
export function ModeWord({ of: { mode } }: { of: Pick<Limit, "mode"> }) {
  if (mode !== "strict") return mode && `, ${mode}`;
  return (
    <>
      {", "}
      <Hint text={STRICT_PROMISE} className="underline decoration-dotted underline-offset-3">
        strict
      </Hint>
    </>
  );
}
