import type { Clock, Instant, Milliseconds, Timer } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { DecisionRecorder, VerificationEvent } from "../verification/event.ts";
import { Deliveries } from "./deliveries.ts";
import { HomeUnavailable } from "./home.ts";
import {
  bytesOf,
  type CountCell,
  type CountReport,
  REPORT_MAX,
  type ReportTaker,
  USE_BYTES,
  verificationsOf,
} from "./report.ts";

const MINUTE: Milliseconds = 60_000;
const REPORT_INTERVAL: Milliseconds = 1_000;
/** Reports that wait for home besides the oldest. Further ones are lost: this is memory of somebody else's program. */
const WAITING_MAX = 30;
const NO_TAGS: readonly string[] = [];

interface Cell {
  readonly minute: number;
  readonly event: Pick<VerificationEvent, "key" | "code">;
  /** As they came: a copy, because they are the caller's. */
  readonly given: readonly string[];
  readonly tags: string;
  count: number;
  latencyUs: number;
}

/** What is reported of one key. */
interface KeyCounts {
  /** That of its last verification: the next one mostly is of it too. */
  cell: Cell;
  /** When it was last used; undefined: it was not. */
  usedAt: Instant | undefined;
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
  /** By id; that of unknown keys is empty. */
  #keys = new Map<string, KeyCounts>();
  #waiting: CountReport[] = [];
  #bytes = 0;
  #sequence = 0;
  #sending: Promise<void> | undefined;
  readonly #deliveries: Deliveries;
  /** Verifications that are not counted anywhere. */
  lost = 0;

  constructor(options: ReplicaCountsOptions) {
    this.#options = options;
    this.#deliveries = new Deliveries(options.home, (verifications, cause) => this.#lose(verifications, cause));
    this.#timer = every(options.clock, REPORT_INTERVAL, () => this.flush());
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  verification(event: VerificationEvent): void {
    const { at, key, code, startedAt, tags = NO_TAGS } = event;
    const minute = at - (at % MINUTE);
    const keyId = key?.keyId ?? "";
    let counts = this.#keys.get(keyId);
    if (counts === undefined) {
      counts = { cell: this.#cellOf(event, minute, tags), usedAt: undefined };
      this.#keys.set(keyId, counts);
    } else if (!isOf(counts.cell, minute, code, tags)) {
      counts.cell = this.#cellOf(event, minute, tags);
    }
    const { cell } = counts;
    cell.count++;
    cell.latencyUs += Math.round((this.#options.clock.monotonic() - startedAt) * 1_000);
    if (key !== null && code !== "NOT_FOUND") counts.usedAt = at;
    if (this.#cells.size >= REPORT_MAX.cells || this.#bytes >= REPORT_MAX.bytes) void this.flush();
  }

  #cellOf({ key, code }: VerificationEvent, minute: number, given: readonly string[]): Cell {
    const tags = given.length === 0 ? "" : textOf(given);
    const name = `${minute} ${key?.keyId ?? ""} ${code} ${tags}`;
    let cell = this.#cells.get(name);
    if (cell === undefined) {
      cell = { minute, event: { key, code }, given: [...given], tags, count: 0, latencyUs: 0 };
      this.#cells.set(name, cell);
      // With the use of its key.
      this.#bytes += bytesOf(tags) + USE_BYTES;
    }
    return cell;
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
    const uses = [...this.#keys].flatMap(([keyId, { usedAt: at }]) => (at === undefined ? [] : [{ keyId, at }]));
    this.#cells = new Map();
    this.#keys = new Map();
    this.#bytes = 0;
    this.#waiting.push({ recorder: this.#options.recorder, sequence: ++this.#sequence, verifications, uses });
    // The first one may be under way, and home may take it; so may those that are divided before it.
    const sent = 1 + this.#waiting.findIndex((report) => !this.#deliveries.isDivided(report));
    for (const { verifications: cells } of this.#waiting.splice(sent, this.#waiting.length - 1 - WAITING_MAX)) {
      this.#lose(verificationsOf(cells), new HomeUnavailable("The service has taken no counts for too long"));
    }
  }

  /**
   * In their order, each until home has judged it: home ignores numbers below the last one. Those that are divided do not keep
   * others waiting.
   */
  async #send(): Promise<void> {
    let divided = 0;
    for (let report = this.#waiting[0]; report !== undefined; report = this.#waiting[divided]) {
      try {
        await this.#deliveries.deliver(report);
        this.#waiting.splice(this.#waiting.indexOf(report), 1);
      } catch {
        if (!this.#deliveries.isDivided(report)) return;
        divided++;
      }
    }
  }

  #lose(verifications: number, cause: Error): void {
    this.lost += verifications;
    this.#options.onLoss(verifications, cause);
  }
}

function isOf(
  { minute, event, given }: Cell,
  atMinute: number,
  code: VerificationEvent["code"],
  tags: readonly string[],
): boolean {
  if (minute !== atMinute || event.code !== code || given.length !== tags.length) return false;
  for (let i = 0; i < tags.length; i++) if (given[i] !== tags[i]) return false;
  return true;
}

function textOf(tags: readonly string[]): string {
  return JSON.stringify([...new Set(tags)].sort());
}
