import { keepProcessAlive } from "../../engine/src/clock/keep-alive.ts";
import { systemClock } from "../../engine/src/clock/system.ts";

/** Waits. Unlike a timer of the clock, it keeps the process alive. */
export async function pause(length: number): Promise<void> {
  const release = keepProcessAlive();
  await new Promise<void>((resolve) => systemClock.schedule(length, resolve));
  release();
}
