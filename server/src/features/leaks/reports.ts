import type { Clock, Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { pause } from "../../../../engine/src/clock/pause.ts";
import { hashSecret, hashSecret512 } from "../../../../engine/src/crypto/hash.ts";
import { Overloaded } from "../../../../engine/src/errors/overloaded.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import { isWebAddress } from "../../platform/outbound/web-address.ts";
import type { LeakReport, LeakSource } from "./statements.ts";

/** Reports that wait. Beyond it, further ones are rejected. */
const WAITING_MAX = 10_000;
const REPORTS_PER_BATCH = 100;
/** Time between two attempts while the database is unavailable. */
const RETRY_INTERVAL: Milliseconds = 1_000;

export interface LeakReportsOptions {
  clock: Clock;
  /** Those of these hashes that keys have. */
  find(hashes: readonly string[]): Promise<readonly string[]>;
  /** Stores reports of keys that exist, and invalidates the cached keys. */
  record(reports: readonly LeakReport[], now: Instant): Promise<void>;
  /** Limits look-ups of unknown keys. */
  limiter: { take(source: string): unknown };
  isReachable(): boolean;
  /** Reports a bug. Its reports are lost. */
  onFailure(error: unknown): void;
}

/** The report of a key string. An address that cannot be shown as a link is left out: the report of the key counts. */
export function leakReport(key: string, source: LeakSource, url: string | null): LeakReport {
  return { hashes: [hashSecret(key), hashSecret512(key)], source, url: url !== null && isWebAddress(url) ? url : null };
}

/**
 * Takes reports of leaked keys.
 *
 * A report by anybody is accepted before its key is looked up, so that neither the answer nor its time depends on whether
 * the key exists. Accepted reports wait in memory; a stop handles them first. Each counts as an unknown look-up, also if
 * its key exists: what is left would tell it otherwise.
 */
export class LeakReports {
  readonly #options: LeakReportsOptions;
  #waiting: LeakReport[] = [];
  #running: Promise<void> | undefined;
  #isClosing = false;

  constructor(options: LeakReportsOptions) {
    this.#options = options;
  }

  /** Reports that were accepted and not handled yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Accepts a report, which is handled soon after.
   *
   * @param source the workspace of the caller, or the network address of a caller without a root key.
   * @throws {LookupsExhausted}
   * @throws {Overloaded} if too many reports wait.
   * @throws {StoreUnavailable} if the database is unreachable.
   */
  accept(report: LeakReport, source: string): void {
    if (!this.#options.isReachable()) throw new StoreUnavailable("Reports of leaked keys cannot be handled");
    if (this.#waiting.length >= WAITING_MAX || this.#isClosing) throw new Overloaded("Too many reports are waiting");
    this.#options.limiter.take(source);
    this.#waiting.push(report);
    this.#running ??= this.#run();
  }

  /** Handles reports at once. Rejects with `StoreUnavailable` if the database does; then some may be handled. */
  async handle(reports: readonly LeakReport[]): Promise<void> {
    const { clock, find, record } = this.#options;
    for (let i = 0; i < reports.length; i += REPORTS_PER_BATCH) {
      const batch = reports.slice(i, i + REPORTS_PER_BATCH);
      const existing = new Set(await find(batch.flatMap(({ hashes }) => hashes)));
      const known = batch.filter(({ hashes }) => hashes.some((hash) => existing.has(hash)));
      if (known.length > 0) await record(known, clock.now());
    }
  }

  /** Handles what was accepted; accepts nothing more. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, REPORTS_PER_BATCH);
      try {
        await this.handle(batch);
      } catch (error) {
        if (error instanceof StoreUnavailable) {
          if (this.#isClosing) break;
          await pause(this.#options.clock, RETRY_INTERVAL);
          continue;
        }
        this.#options.onFailure(error);
      }
      this.#waiting.splice(0, batch.length);
    }
    this.#running = undefined;
  }
}
