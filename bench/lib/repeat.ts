import { systemClock } from "../../engine/src/clock/system.ts";

/** How many times per second `work` completes with `open` runs at the same time. The warm-up, in seconds too, does not count. */
export async function repeat(
  { open, seconds, warmUp }: { open: number; seconds: number; warmUp: number },
  work: () => Promise<unknown>,
): Promise<number> {
  let done = 0;
  const run = async (length: number) => {
    const end = systemClock.monotonic() + length * 1_000;
    const worker = async () => {
      while (systemClock.monotonic() < end) {
        await work();
        done++;
      }
    };
    await Promise.all(Array.from({ length: open }, worker));
  };
  await run(warmUp);
  done = 0;
  const begin = systemClock.monotonic();
  await run(seconds);
  return (done * 1_000) / (systemClock.monotonic() - begin);
}
