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

/** How many lists of tags are remembered with their texts: about one for each route of a program. */
const LISTS_MAX = 16;

/** A list of tags. */
interface Tags {
  /** As it came: a copy, because it is the caller's. */
  readonly given: readonly string[];
  readonly text: string;
  /** Of a cell with it in a report, and of the use of a key. */
  readonly bytes: number;
}

interface Cell {
  readonly minute: number;
  readonly key: VerificationEvent["key"];
  readonly code: VerificationEvent["code"];
  readonly tags: Tags;
  count: number;
  latencyUs: number;
}

/** What is reported of one key. */
interface KeyCounts {
  /** That of its last verification: the next one mostly is of it too. */
  cell: Cell;
  /** All of them by name, once there are several. */
  cells: Map<string, Cell> | undefined;
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
  /** By id; that of unknown keys is empty. */
  #keys = new Map<string, KeyCounts>();
  #cells = 0;
  /** The lists of tags that came last. */
  readonly #lists: Tags[] = [];
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

  verification({ at, key, code, startedAt, tags = NO_TAGS }: VerificationEvent): void {
    const minute = at - (at % MINUTE);
    const keyId = key?.keyId ?? "";
    let counts = this.#keys.get(keyId);
    if (counts === undefined) {
      const cell = this.#addCell(minute, key, code, this.#tagsOf(tags));
      counts = { cell, cells: undefined, usedAt: undefined };
      this.#keys.set(keyId, counts);
    } else if (!isOf(counts.cell, minute, code, tags)) {
      counts.cells ??= new Map([[nameOf(counts.cell), counts.cell]]);
      const list = this.#tagsOf(tags);
      const name = nameOf({ minute, code, tags: list });
      let cell = counts.cells.get(name);
      if (cell === undefined) {
        cell = this.#addCell(minute, key, code, list);
        counts.cells.set(name, cell);
      }
      counts.cell = cell;
    }
    const { cell } = counts;
    cell.count++;
    cell.latencyUs += Math.round((this.#options.clock.monotonic() - startedAt) * 1_000);
    if (key !== null && code !== "NOT_FOUND") counts.usedAt = at;
    if (this.#cells >= REPORT_MAX.cells || this.#bytes >= REPORT_MAX.bytes) void this.flush();
  }

  #addCell(minute: number, key: Cell["key"], code: Cell["code"], tags: Tags): Cell {
    this.#cells++;
    this.#bytes += tags.bytes;
    return { minute, key, code, tags, count: 0, latencyUs: 0 };
  }

  #tagsOf(given: readonly string[]): Tags {
    const lists = this.#lists;
    const known = lists.find((list) => areSame(list.given, given));
    if (known !== undefined) return known;
    const text = given.length === 0 ? "" : textOf(given);
    const tags = { given: [...given], text, bytes: bytesOf(text) + USE_BYTES };
    if (lists.length === LISTS_MAX) lists.shift();
    lists.push(tags);
    return tags;
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
    if (this.#cells === 0) return;
    const verifications: CountCell[] = [];
    const uses: { keyId: string; at: Instant }[] = [];
    for (const [keyId, { cell, cells, usedAt: at }] of this.#keys) {
      for (const each of cells?.values() ?? [cell]) verifications.push(reported(each));
      if (at !== undefined) uses.push({ keyId, at });
    }
    this.#keys = new Map();
    this.#cells = 0;
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

function reported({ minute, key, code, tags, count, latencyUs }: Cell): CountCell {
  const { apiId = null, keyId = null, identity = null } = key ?? {};
  return [minute, apiId, keyId, identity?.id ?? null, tags.text, code, count, latencyUs];
}

/** Names a cell among those of its key. The same tags in another order are the same. */
function nameOf({ minute, code, tags }: Pick<Cell, "minute" | "code" | "tags">): string {
  return `${minute} ${code} ${tags.text}`;
}

function isOf(cell: Cell, minute: number, code: Cell["code"], tags: readonly string[]): boolean {
  return cell.minute === minute && cell.code === code && areSame(cell.tags.given, tags);
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false;
  return true;
}

function textOf(tags: readonly string[]): string {
  return JSON.stringify([...new Set(tags)].sort());
}
