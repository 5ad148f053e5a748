declare const instant: unique symbol;

/** A moment: whole milliseconds since the Unix epoch. Not interchangeable with a length of time. */
export type Instant = number & { readonly [instant]: true };

/** A length of time in whole milliseconds. */
export type Milliseconds = number;

export function instantAt(epochMs: number): Instant {
  return epochMs as Instant;
}

export function after(start: Instant, length: Milliseconds): Instant {
  return (start + length) as Instant;
}

/** Handle of something scheduled; `cancel` is harmless after it ran. */
export interface Timer {
  cancel(): void;
}

/**
 * The only source of time in the program.
 *
 * Everything that asks "when" takes a `Clock`, so a test can be the one who answers, and an hour of
 * the product's behaviour can be examined in a millisecond.
 */
export interface Clock {
  /** What time it is. May step backwards: machines are corrected. */
  now(): Instant;
  /** Elapsed milliseconds since an arbitrary origin, with fractions. Never steps backwards. */
  monotonic(): Milliseconds;
  /** Runs `task` once after `delay`. A waiting timer does not keep the process alive. */
  schedule(delay: Milliseconds, task: () => void): Timer;
}
