import type { Clock, Instant } from "../clock/clock.ts";
import { GatheredReads } from "./gathered-reads.ts";

/** A balance as it is read without a lock. */
export interface ReadBalance {
  readonly remaining: number;
  /** What open holds have taken from it. */
  readonly held: number;
}

export interface BalanceReaderOptions {
  clock: Clock;
  /** Reads balances in one query; pools that are absent are unlimited. */
  read(options: { poolIds: readonly string[]; now: Instant }): Promise<readonly (ReadBalance & { poolId: string })[]>;
}

/** Reads balances without spending. */
export class BalanceReader {
  readonly #reads: GatheredReads<ReadBalance>;

  constructor({ clock, read }: BalanceReaderOptions) {
    this.#reads = new GatheredReads<ReadBalance>(async (poolIds) => {
      const rows = await read({ poolIds, now: clock.now() });
      return new Map(rows.map((row) => [row.poolId, row]));
    });
  }

  /** The balance of a pool; undefined when it is unlimited. Rejects when the store does. */
  read(poolId: string): Promise<ReadBalance | undefined> {
    return this.#reads.find(poolId);
  }
}
