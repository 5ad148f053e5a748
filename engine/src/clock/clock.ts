declare const instant: unique symbol;

/** A point in time, in whole milliseconds since the Unix epoch. A plain number, such as a duration, is not accepted. */
export type Instant = number & { readonly [instant]: true };

/** A duration in milliseconds. */
export type Milliseconds = number;

export function instantAt(epochMs: number): Instant {
  return epochMs as Instant;
}

export function after(start: Instant, length: Milliseconds): Instant {
  return (start + length) as Instant;
}

/** Handle of a scheduled task. `cancel` has no effect after the task has run. */
export interface Timer {
  cancel(): void;
}

/**
 * The only source of time in the program.
 *
 * The service takes a `Clock` as an argument, so that a test can control the time and run an hour of behaviour in a
 * millisecond. Only the command line uses `systemClock` directly.
 */
export interface Clock {
  /** The wall-clock time. May step backwards when the clock of the machine is set. */
  now(): Instant;
  /** Elapsed milliseconds since an arbitrary origin, with fractions. Never steps backwards. */
  monotonic(): Milliseconds;
  /** Runs `task` once after `delay`. A pending timer does not keep the process alive. */
  schedule(delay: Milliseconds, task: () => void): Timer;
}
