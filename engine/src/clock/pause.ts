import type { Clock, Milliseconds } from "./clock.ts";

/** Resolves after this time; at once if it is not positive, and when `signal` is aborted. */
export function pause(clock: Pick<Clock, "schedule">, length: Milliseconds, signal?: AbortSignal): Promise<void> {
  if (length <= 0 || signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = clock.schedule(length, end);
    signal?.addEventListener("abort", end);
  });
}
