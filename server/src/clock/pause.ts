import type { Clock, Milliseconds } from "./clock.ts";

/** Resolves after this time; at once if it is not positive. */
export function pause(clock: Pick<Clock, "schedule">, length: Milliseconds): Promise<void> {
  return length <= 0 ? Promise.resolve() : new Promise((resolve) => void clock.schedule(length, resolve));
}
