import type { Clock, Milliseconds, Timer } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import { Deliveries } from "../../../engine/src/replica/deliveries.ts";
import { REPORT_MAX, type ReportTaker } from "../../../engine/src/replica/report.ts";
import type { Rpc } from "../platform/rpc/server.ts";

/** Uses have the precision of a minute. */
const REPORT_INTERVAL: Milliseconds = 10_000;

export interface RootKeyUsesOptions {
  clock: Clock;
  home: ReportTaker;
  /** Names this process. */
  recorder: string;
  rpc: Pick<Rpc, "takeRootKeyUses" | "recordRootKeyUses">;
}

/** Reports home when root keys of callers were last used here. What home has not taken is reported with the next ones. */
export class RootKeyUses {
  readonly #options: RootKeyUsesOptions;
  readonly #deliveries: Deliveries;
  readonly #timer: Timer;
  #sequence = 0;

  constructor(options: RootKeyUsesOptions) {
    this.#options = options;
    // What home never takes is forgotten: the next use is another report.
    this.#deliveries = new Deliveries(options.home, () => {});
    this.#timer = every(options.clock, REPORT_INTERVAL, () => this.#report());
  }

  /** Reports the rest. */
  async stop(): Promise<void> {
    this.#timer.cancel();
    await this.#report();
  }

  async #report(): Promise<void> {
    const { recorder, rpc } = this.#options;
    const uses = rpc.takeRootKeyUses();
    for (let i = 0; i < uses.length; i += REPORT_MAX.cells) {
      const rootKeyUses = uses.slice(i, i + REPORT_MAX.cells);
      const report = { recorder, sequence: ++this.#sequence, verifications: [], uses: [], rootKeyUses };
      try {
        await this.#deliveries.deliver(report);
      } catch {
        return rpc.recordRootKeyUses(uses.slice(i));
      }
    }
  }
}
