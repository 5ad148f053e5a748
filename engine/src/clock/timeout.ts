import type { Clock, Milliseconds, Timer } from "./clock.ts";

const SLICES = 5;

/**
 * Starts a timeout for an answer from another system. Time in which the event loop is blocked does not use it up: the
 * timeout consists of slices, the loop reads answers that have arrived between two slices, and a slice counts with its
 * nominal length even if its timer fires late.
 */
export function startTimeout(clock: Clock, length: Milliseconds): { expired: Promise<void>; cancel(): void } {
  const { promise: expired, resolve } = Promise.withResolvers<void>();
  let timer: Timer;
  const wait = (slices: number) => {
    timer = clock.schedule(length / SLICES, () => (slices > 1 ? wait(slices - 1) : resolve()));
  };
  wait(SLICES);
  return { expired, cancel: () => timer.cancel() };
}
