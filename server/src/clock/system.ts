import { type Clock, instantAt } from "./clock.ts";

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => instantAt(Date.now()),
  monotonic: () => performance.now(),
  schedule(delay, task) {
    const timer = setTimeout(task, delay);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
