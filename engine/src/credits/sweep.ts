import type { Instant } from "../clock/clock.ts";

/** Refills per transaction: few, so that other transactions do not wait long. */
const SWEEP_STEP = 200;

/** Writes all due refills of pools without calls, also after a long downtime. */
export async function sweepRefills(
  now: Instant,
  step: (options: { now: Instant; limit: number }) => Promise<number>,
): Promise<void> {
  for (let written = SWEEP_STEP; written === SWEEP_STEP; ) written = await step({ now, limit: SWEEP_STEP });
}
