import { type Clock, instantAt, type Milliseconds } from "./clock.ts";

/** The clock of the machine. The origin of its monotonic time differs between threads. */
export const systemClock: Clock = {
  now: () => instantAt(Date.now()),
  monotonic: () => performance.now(),
  schedule(delay, task) {
    const timer = setTimeout(task, delay);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** The origin of the monotonic time of this thread, in milliseconds from an origin that all threads share. */
export function monotonicOrigin(): Milliseconds {
  return Number(process.hrtime.bigint()) / 1e6 - performance.now();
}

/** The clock of the machine with the monotonic time of the thread that has this origin. */
export function systemClockOf(origin: Milliseconds): Clock {
  const difference = monotonicOrigin() - origin;
  return { ...systemClock, monotonic: () => performance.now() + difference };
}
