import type { Clock, Milliseconds, Timer } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { DecisionRecorder, VerificationEvent } from "../verification/event.ts";
import { HomeUnavailable } from "./home.ts";
import {
  bytesOf,
  type CountCell,
  type CountReport,
  deliver,
  REPORT_MAX,
  type ReportTaker,
  USE_BYTES,
  verificationsOf,
} from "./report.ts";

const MINUTE: Milliseconds = 60_000;
const REPORT_INTERVAL: Milliseconds = 1_000;
/** Reports that wait for home besides the oldest. Further ones are lost: this is memory of somebody else's program. */
const WAITING_MAX = 30;

interface Cell {
  readonly minute: number;
  readonly event: VerificationEvent;
  readonly tags: string;
  count: number;
  latencyUs: number;
}

export interface ReplicaCountsOptions {
  clock: Clock;
  /** Names this process. */
  recorder: string;
  home: ReportTaker;
  /** Called with verifications that are not counted anywhere, and why. */
  onLoss(verifications: number, cause: unknown): void;
}

/** Counts in memory what a replica inside a program decides, and reports it every second. */
export class ReplicaCounts implements Pick<DecisionRecorder, "verification"> {
  readonly #options: ReplicaCountsOptions;
  readonly #timer: Timer;
  #cells = new Map<string, Cell>();
  #uses = new Map<string, number>();
  #waiting: CountReport[] = [];
  #bytes = 0;
  #sequence = 0;
  #sending: Promise<void> | undefined;
  /** Verifications that are not counted anywhere. */
  lost = 0;

  constructor(options: ReplicaCountsOptions) {
    this.#options = options;
    this.#timer = every(options.clock, REPORT_INTERVAL, () => this.flush());
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  verification(event: VerificationEvent): void {
    const { at, key, code, startedAt } = event;
    const minute = at - (at % MINUTE);
    const tags = event.tags === undefined || event.tags.length === 0 ? "" : textOf(event.tags);
    const name = `${minute} ${key?.keyId ?? ""} ${code} ${tags}`;
    let cell = this.#cells.get(name);
    if (cell === undefined) {
      cell = { minute, event, tags, count: 0, latencyUs: 0 };
      this.#cells.set(name, cell);
      // With the use of its key.
      this.#bytes += bytesOf(tags) + USE_BYTES;
    }
    cell.count++;
    cell.latencyUs += Math.round((this.#options.clock.monotonic() - startedAt) * 1_000);
    if (key !== null && code !== "NOT_FOUND") this.#uses.set(key.keyId, at);
    if (this.#cells.size >= REPORT_MAX.cells || this.#bytes >= REPORT_MAX.bytes) void this.flush();
  }

  /** Reports what there is. Resolves when home has judged it, or does not answer. */
  flush(): Promise<void> {
    this.#takeReport();
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** Reports the rest. */
  async close(): Promise<void> {
    this.#timer.cancel();
    await this.#sending;
    await this.flush();
  }

  #takeReport(): void {
    if (this.#cells.size === 0) return;
    const verifications = [...this.#cells.values()].map(
      ({ minute, event: { key, code }, tags, count, latencyUs }): CountCell => {
        return [
          minute,
          key?.apiId ?? null,
          key?.keyId ?? null,
          key?.identity?.id ?? null,
          tags,
          code,
          count,
          latencyUs,
        ];
      },
    );
    const uses = [...this.#uses].map(([keyId, at]) => ({ keyId, at }));
    this.#cells = new Map();
    this.#uses = new Map();
    this.#bytes = 0;
    this.#waiting.push({ recorder: this.#options.recorder, sequence: ++this.#sequence, verifications, uses });
    // The first one may be under way, and home may take it.
    for (const { verifications: cells } of this.#waiting.splice(1, this.#waiting.length - 1 - WAITING_MAX)) {
      this.#lose(verificationsOf(cells), new HomeUnavailable("The service has taken no counts for too long"));
    }
  }

  /** In their order, each until home has judged it: home ignores numbers below the last one. */
  async #send(): Promise<void> {
    for (let report = this.#waiting[0]; report !== undefined; report = this.#waiting[0]) {
      try {
        const loss = await deliver(this.#options.home, report);
        if (loss !== undefined) this.#lose(loss.verifications, loss.cause);
      } catch {
        return;
      }
      this.#waiting.shift();
    }
  }

  #lose(verifications: number, cause: Error): void {
    this.lost += verifications;
    this.#options.onLoss(verifications, cause);
  }
}

function textOf(tags: readonly string[]): string {
  return JSON.stringify([...new Set(tags)].sort());
}
