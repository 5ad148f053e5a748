import { spread, writeSpread } from "./statistics.ts";
import type { Load } from "./wrk.ts";

export interface Interference {
  /** What the callers share the service with: "the flood". */
  what: string;
  /** By what factor the 99th percentile may grow. */
  aim: number;
  pairs: number;
  /** A window of the callers by themselves. */
  without(): Promise<Load>;
  /** A window of the same callers beside the other thing. */
  beside(): Promise<Load>;
}

/**
 * Tells what callers notice of something that the service has to do at the same time: windows without it and beside it in
 * pairs, of which the one comes first in one pair and second in the next.
 */
export async function compareBeside({ what, aim, pairs, without, beside }: Interference): Promise<void> {
  const windows: { alone: Load; shared: Load }[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const first = pair % 2 === 0 ? await without() : undefined;
    const shared = await beside();
    windows.push({ alone: first ?? (await without()), shared });
  }

  const row = (
    name: string,
    of: (window: (typeof windows)[number], figure: "medianMs" | "p99Ms") => number,
    digits: number,
  ) =>
    console.log(
      `  ${name.padEnd(20)}${(["medianMs", "p99Ms"] as const)
        .map((figure) => writeSpread(spread(windows.map((window) => of(window, figure))), digits).padStart(26))
        .join("")}`,
    );
  console.log(`  ${"median (min–max)".padEnd(20)}${"p50, ms".padStart(26)}${"p99, ms".padStart(26)}`);
  row(`without ${what}`, ({ alone }, figure) => alone[figure], 3);
  row(`beside ${what}`, ({ shared }, figure) => shared[figure], 3);
  row("ratio", ({ alone, shared }, figure) => shared[figure] / alone[figure], 2);
  const ratio = spread(windows.map(({ alone, shared }) => shared.p99Ms / alone.p99Ms)).median;
  console.log(`\np99 ratio ${ratio.toFixed(2)} (median of the pairs); the aim is under ${aim}.`);
}
