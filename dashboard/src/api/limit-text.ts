import { duration, exactNumber, relativeTime } from "./format.ts";

/** What a strict limit promises. */
export const STRICT_PROMISE =
  "Never more than the limit in any trailing window; a charge may count up to a sixteenth of the window longer.";

/** What the shadow mode does. */
export const SHADOW_PROMISE =
  "It is counted and reported, and never denies a call. What it would deny, it does not count.";

/** A limit. `mode`: absent if it is not strict; of an override, if it is that of the call. */
export interface Limit {
  readonly limit: number;
  readonly duration: number;
  readonly mode?: "standard" | "strict" | undefined;
  readonly shadow?: boolean | undefined;
}

/** A limit in words: `100 per minute`, `100 per minute, strict`, `100 per minute, in shadow mode`. */
export function limitText({ mode, shadow, ...window }: Limit): string {
  return [windowText(window), mode, shadow && "in shadow mode"].filter(Boolean).join(", ");
}

/** A limit in words, without its mode. */
export function windowText({ limit, duration: length }: Limit): string {
  return `${exactNumber(limit)} per ${duration(length).replace(/^1 /, "")}`;
}

/** When a counter falls: at the end of its window, or when the oldest charge of a strict limit stops counting. */
export function resetText({
  mode,
  used,
  window,
}: Pick<Limit, "mode"> & { readonly used: number; readonly window: { readonly endAt: number } }): string {
  if (mode !== "strict") return `resets ${relativeTime(window.endAt)}`;
  return used === 0 ? "no charge counts" : `oldest charge ends ${relativeTime(window.endAt)}`;
}
