import type { Instant } from "../clock/clock.ts";

/** Refills of one transaction: few enough that nobody waits long behind them. */
const SWEEP_STEP = 200;

/** Refills what has fallen due and nobody has touched, also after a long downtime. */
export async function sweepRefills(
  now: Instant,
  step: (options: { now: Instant; limit: number }) => Promise<number>,
): Promise<void> {
  for (let written = SWEEP_STEP; written === SWEEP_STEP; ) written = await step({ now, limit: SWEEP_STEP });
}
