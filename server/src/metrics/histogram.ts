/** Upper bounds of the latency buckets in milliseconds, from a fast verification to a very slow query. */
export const LATENCY_BOUNDS_MS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000];

const BUCKETS = LATENCY_BOUNDS_MS.length + 1;

/**
 * Latencies of several series in one typed array. Recording a value is two additions; buckets are cumulated on read.
 */
export class Histograms {
  /** The buckets of each series, not cumulated. The last bucket has no bound. */
  readonly #counts: Float64Array;
  readonly #sums: Float64Array;

  constructor(series: number) {
    this.#counts = new Float64Array(series * BUCKETS);
    this.#sums = new Float64Array(series);
  }

  /** All numbers, in arrays that change with the next latency. */
  get numbers(): readonly Float64Array[] {
    return [this.#counts, this.#sums];
  }

  /** Records a latency of a series. */
  observe(series: number, ms: number): void {
    let bucket = 0;
    while (bucket < BUCKETS - 1 && ms > LATENCY_BOUNDS_MS[bucket]!) bucket++;
    this.#counts[series * BUCKETS + bucket]! += 1;
    this.#sums[series]! += ms;
  }

  /** Cumulated counts by upper bound, the last being the total, and the sum in milliseconds. */
  read(series: number): { cumulated: number[]; sum: number } {
    let total = 0;
    const cumulated: number[] = [];
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      total += this.#counts[series * BUCKETS + bucket]!;
      cumulated.push(total);
    }
    return { cumulated, sum: this.#sums[series]! };
  }
}

/**
 * The latency in milliseconds that a share of the values does not exceed, interpolated in its bucket; undefined without
 * values.
 *
 * @param cumulated counts by upper bound, the last being the total.
 */
export function quantile(cumulated: readonly number[], share: number): number | undefined {
  const total = cumulated.at(-1)!;
  if (total === 0) return undefined;
  const rank = share * total;
  const bucket = cumulated.findIndex((count) => count >= rank);
  const upper = LATENCY_BOUNDS_MS[bucket];
  if (upper === undefined) return LATENCY_BOUNDS_MS.at(-1);
  const [lower, below] = bucket === 0 ? [0, 0] : [LATENCY_BOUNDS_MS[bucket - 1]!, cumulated[bucket - 1]!];
  return lower + ((upper - lower) * (rank - below)) / (cumulated[bucket]! - below);
}
