import type { Clock, Milliseconds, Timer } from "./clock.ts";

/** Does a chore again and again, each time an interval after the last one ended. Its failures are its next turn's. */
export function every(clock: Clock, interval: Milliseconds, job: () => Promise<unknown>): Timer {
  let timer: Timer;
  let cancelled = false;
  const next = () => {
    if (!cancelled) timer = clock.schedule(interval, () => void job().then(next, next));
  };
  next();
  return {
    cancel() {
      cancelled = true;
      timer.cancel();
    },
  };
}
