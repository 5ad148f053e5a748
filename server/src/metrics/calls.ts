import { Histograms } from "./histogram.ts";
import type { Metrics, Sample } from "./metrics.ts";

/** Calls by operation and HTTP status, and their latencies. Recording a call is three additions in typed arrays. */
export class CallMetrics {
  readonly #names: readonly string[];
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #statuses: readonly number[];
  readonly #counts: Float64Array;
  readonly #latencies: Histograms;

  constructor(names: readonly string[], statuses: readonly number[]) {
    this.#names = names;
    this.#indexes = new Map(names.map((name, index) => [name, index]));
    this.#statuses = statuses;
    this.#counts = new Float64Array(names.length * statuses.length);
    this.#latencies = new Histograms(names.length);
  }

  /** Records a call of an operation. */
  record(name: string, status: number, ms: number): void {
    const index = this.#indexes.get(name)!;
    this.#counts[index * this.#statuses.length + this.#statuses.indexOf(status)]! += 1;
    this.#latencies.observe(index, ms);
  }

  /** All numbers, to be added to those of other threads. */
  get numbers(): readonly Float64Array[] {
    return [this.#counts, ...this.#latencies.numbers];
  }

  /** Replaces all numbers. */
  assign(numbers: readonly Float64Array[]): void {
    for (const [i, own] of this.numbers.entries()) own.set(numbers[i]!);
  }

  /** The calls of an operation so far by upper bound of their latency, cumulated; the last one is their number. */
  latencies(name: string): readonly number[] {
    return this.#latencies.read(this.#indexes.get(name)!).cumulated;
  }

  register(metrics: Metrics): void {
    const series = () => this.#names.map((operation) => ({ operation }));
    metrics.counter("latchkey_calls_total", "Calls by operation and HTTP status.", ["operation", "status"], () =>
      this.#samples(),
    );
    metrics.histogram("latchkey_call_duration_seconds", "Time to answer a call.", series, this.#latencies);
  }

  *#samples(): Iterable<Sample> {
    for (const [i, operation] of this.#names.entries()) {
      for (const [k, status] of this.#statuses.entries()) {
        const count = this.#counts[i * this.#statuses.length + k]!;
        if (count > 0) yield [{ operation, status: String(status) }, count];
      }
    }
  }
}

const PROCEDURES_MAX = 64;

/** Queue and run times of the store's procedures, by name. */
export class StoreMetrics {
  /** Index of each name, in order of first use. */
  readonly #indexes = new Map<string, number>();
  readonly #waitTimes = new Histograms(PROCEDURES_MAX);
  readonly #runTimes = new Histograms(PROCEDURES_MAX);

  record(name: string, waitedMs: number, ranMs: number): void {
    let index = this.#indexes.get(name);
    if (index === undefined) {
      index = this.#indexes.size;
      if (index === PROCEDURES_MAX) throw new Error(`More than ${PROCEDURES_MAX} procedures: raise PROCEDURES_MAX`);
      this.#indexes.set(name, index);
    }
    this.#waitTimes.observe(index, waitedMs);
    this.#runTimes.observe(index, ranMs);
  }

  register(metrics: Metrics): void {
    const series = () => [...this.#indexes.keys()].map((procedure) => ({ procedure }));
    metrics.histogram(
      "latchkey_store_wait_seconds",
      "Time that a procedure waited in the queue of the store.",
      series,
      this.#waitTimes,
    );
    metrics.histogram("latchkey_store_run_seconds", "Run time of a procedure.", series, this.#runTimes);
  }
}
