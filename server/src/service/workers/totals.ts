import { CallMetrics } from "../../metrics/calls.ts";
import { type CountingParts, countsOf, type ThreadCounts } from "./counts.ts";

/** What knows the counts of the other threads. */
export interface OtherThreads {
  /** Asks the threads for their counts. */
  collect(): Promise<void>;
  addTo(own: ThreadCounts): ThreadCounts;
  /** The threads that serve. */
  readonly serving: number;
  /** The threads that have ended by themselves. */
  readonly ended: number;
}

/** The counts of all threads together. */
export class Totals {
  /** Calls of all threads, as of the last `update`. */
  readonly calls: CallMetrics;
  readonly #own: CountingParts;
  #others: OtherThreads | undefined;

  /** @param counted the operations and statuses of `own.calls`. */
  constructor(own: CountingParts, counted: { operations: readonly string[]; statuses: readonly number[] }) {
    this.#own = own;
    this.calls = new CallMetrics(counted.operations, counted.statuses);
  }

  set others(others: OtherThreads) {
    this.#others = others;
  }

  /** Brings the counts up to date. */
  async refresh(): Promise<void> {
    await this.#others?.collect();
    this.update();
  }

  /** Adds up what the threads have reported; their reports are at most a second old. */
  update(): void {
    this.calls.assign(this.counts.calls);
  }

  /** The threads that answer calls. */
  get serving(): number {
    return 1 + (this.#others?.serving ?? 0);
  }

  /** The threads that have ended by themselves. */
  get ended(): number {
    return this.#others?.ended ?? 0;
  }

  get counts(): ThreadCounts {
    const own = countsOf(this.#own);
    return this.#others?.addTo(own) ?? own;
  }
}
