import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import type { Events } from "../log/events.ts";

/** How often a waiting start logs a line. */
const REPORT_INTERVAL: Milliseconds = 5_000;

/** Waits at the start for services that do not answer, and logs a line every few seconds. */
export class Waiting {
  readonly #clock: Clock;
  readonly #events: Pick<Events, "startWaits">;
  readonly #signal: AbortSignal | undefined;
  #reportedAt: Milliseconds | undefined;

  /** Without a signal, `wait` rejects at once. */
  constructor(clock: Clock, events: Pick<Events, "startWaits">, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#events = events;
    this.#signal = signal;
  }

  /** Resolves after `length`. Rejects with the cause when there is no signal, or it is aborted. */
  async wait(what: string, cause: unknown, length: Milliseconds): Promise<void> {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) throw cause;
    const now = this.#clock.monotonic();
    if (this.#reportedAt === undefined || now - this.#reportedAt >= REPORT_INTERVAL) {
      this.#reportedAt = now;
      this.#events.startWaits(what, cause);
    }
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        timer.cancel();
        reject(cause);
      };
      const timer = this.#clock.schedule(length, () => {
        signal.removeEventListener("abort", abort);
        resolve();
      });
      signal.addEventListener("abort", abort, { once: true });
    });
  }
}
