import type { Clock, Instant } from "../clock/clock.ts";

export interface BalanceReaderOptions {
  clock: Clock;
  /** Reads balances in one query; pools that are absent are unlimited. */
  read(options: {
    poolIds: readonly string[];
    now: Instant;
  }): Promise<readonly { poolId: string; remaining: number }[]>;
}

/** Reads balances without spending. Reads of one event loop iteration share a query. */
export class BalanceReader {
  readonly #options: BalanceReaderOptions;
  #gathered: { pools: Set<string>; balances: Promise<Map<string, number>> } | undefined;

  constructor(options: BalanceReaderOptions) {
    this.#options = options;
  }

  /** The balance of a pool; undefined when it is unlimited. Rejects when the store does. */
  async read(poolId: string): Promise<number | undefined> {
    if (!this.#gathered) {
      const pools = new Set<string>();
      const balances = new Promise<Map<string, number>>((resolve, reject) => {
        setImmediate(() => {
          this.#gathered = undefined;
          const { read, clock } = this.#options;
          read({ poolIds: [...pools], now: clock.now() }).then(
            (rows) => resolve(new Map(rows.map((row) => [row.poolId, row.remaining]))),
            reject,
          );
        });
      });
      this.#gathered = { pools, balances };
    }
    this.#gathered.pools.add(poolId);
    return (await this.#gathered.balances).get(poolId);
  }
}
