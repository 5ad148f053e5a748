import { spread, writeSpread } from "./statistics.ts";
import type { Load } from "./wrk.ts";

export interface Interference {
  /** Name of the load that runs at the same time: "the flood". */
  load: string;
  /** Factor by which the 99th percentile may grow. */
  target: number;
  pairs: number;
  /** Measures the callers without the load. */
  baseline(): Promise<Load>;
  /** Measures the same callers during the load. */
  loaded(): Promise<Load>;
}

/**
 * Prints how a load changes the latency of other callers. Measures pairs of windows, without and with the load; the
 * order alternates from pair to pair.
 */
export async function measureInterference({ load, target, pairs, baseline, loaded }: Interference): Promise<void> {
  const windows: { without: Load; with: Load }[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const first = pair % 2 === 0 ? await baseline() : undefined;
    const second = await loaded();
    windows.push({ without: first ?? (await baseline()), with: second });
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
  row(`without ${load}`, (window, figure) => window.without[figure], 3);
  row(`with ${load}`, (window, figure) => window.with[figure], 3);
  row("ratio", (window, figure) => window.with[figure] / window.without[figure], 2);
  const ratio = spread(windows.map((window) => window.with.p99Ms / window.without.p99Ms)).median;
  console.log(`\np99 ratio ${ratio.toFixed(2)} (median of the pairs); target: below ${target}.`);
}
