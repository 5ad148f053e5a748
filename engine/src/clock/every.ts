import type { Clock, Milliseconds, Timer } from "./clock.ts";

/**
 * Runs a periodic job. The first run starts after `interval`, each further run `interval` after the previous one ended,
 * so runs never overlap. Errors are ignored; the next run retries. `cancel` does not wait for a run in progress.
 */
export function every(clock: Clock, interval: Milliseconds, job: () => Promise<unknown>): Timer {
  let timer: Timer;
  let cancelled = false;
  const scheduleNext = () => {
    if (!cancelled) timer = clock.schedule(interval, () => void job().then(scheduleNext, scheduleNext));
  };
  scheduleNext();
  return {
    cancel() {
      cancelled = true;
      timer.cancel();
    },
  };
}
