import type { Clock, Milliseconds, Timer } from "./clock.ts";

const SLICES = 5;

/**
 * A deadline for an answer from outside that a busy event loop does not use up: it counts in slices, between which
 * answers that have arrived are read, and a slice counts as its length however late its timer runs.
 */
export function patience(clock: Clock, length: Milliseconds): { over: Promise<void>; cancel(): void } {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  let timer: Timer;
  const wait = (slices: number) => {
    timer = clock.schedule(length / SLICES, () => (slices > 1 ? wait(slices - 1) : resolve()));
  };
  wait(SLICES);
  return { over, cancel: () => timer.cancel() };
}
