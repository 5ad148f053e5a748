import { type Limit, SHADOW_PROMISE, STRICT_PROMISE, windowText } from "../../api/limit-text.ts";
import { Hint } from "../overlays/hint.tsx";

/** A limit in words. Its modes say on hover and on focus what they do. */
export function LimitWords({ of: limit }: { of: Limit }) {
  return (
    <span className="tabular-nums">
      {windowText(limit)}
      <ModeWords of={limit} />
    </span>
  );
}

/** The modes of a limit after it: `, strict`, `, in shadow mode`. Each says on hover and on focus what it does. */
export function ModeWords({ of: { mode, shadow } }: { of: Pick<Limit, "mode" | "shadow"> }) {
  return (
    <>
      {mode === "strict" ? <Word text="strict" hint={STRICT_PROMISE} /> : mode && `, ${mode}`}
      {shadow && <Word text="in shadow mode" hint={SHADOW_PROMISE} />}
    </>
  );
}

function Word({ text, hint }: { text: string; hint: string }) {
  return (
    <>
      {", "}
      <Hint text={hint} className="underline decoration-dotted underline-offset-3">
        {text}
      </Hint>
    </>
  );
}
