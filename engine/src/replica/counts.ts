import type { Clock, Milliseconds, Timer } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { DecisionRecorder, VerificationEvent } from "../verification/event.ts";

/** The count of one outcome of one key in one minute, as `replica.report` takes it. */
export type CountCell = readonly [
  minute: number,
  apiId: string | null,
  keyId: string | null,
  identityId: string | null,
  /** The tag set as a sorted JSON array; empty without tags. */
  tags: string,
  code: string,
  count: number,
  latencyUs: number,
];

/** A report. Home counts a number of a recorder once. */
export interface CountReport {
  readonly recorder: string;
  readonly sequence: number;
  readonly verifications: readonly CountCell[];
  readonly uses: readonly { readonly keyId: string; readonly at: number }[];
}

const MINUTE: Milliseconds = 60_000;
const REPORT_INTERVAL: Milliseconds = 1_000;
/** Cells and uses of one report. */
const CELLS_MAX = 2_000;
/** Reports that wait for home. Further ones are lost: this is memory of somebody else's program. */
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
  report(report: CountReport): Promise<unknown>;
}

/** Counts in memory what a replica inside a program decides, and reports it every second. */
export class ReplicaCounts implements Pick<DecisionRecorder, "verification"> {
  readonly #options: ReplicaCountsOptions;
  readonly #timer: Timer;
  #cells = new Map<string, Cell>();
  #uses = new Map<string, number>();
  #waiting: CountReport[] = [];
  #sequence = 0;
  #sending: Promise<void> | undefined;
  /** Verifications that were lost, because home took no reports. */
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
    }
    cell.count++;
    cell.latencyUs += Math.round((this.#options.clock.monotonic() - startedAt) * 1_000);
    if (key !== null && code !== "NOT_FOUND") this.#uses.set(key.keyId, at);
    if (this.#cells.size >= CELLS_MAX) void this.flush();
  }

  /** Reports what there is. Resolves when home has taken it, or has not. */
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
    this.#waiting.push({ recorder: this.#options.recorder, sequence: ++this.#sequence, verifications, uses });
    while (this.#waiting.length > WAITING_MAX) {
      for (const [, , , , , , count] of this.#waiting.shift()?.verifications ?? []) this.lost += count;
    }
  }

  /** In their order, each until home has taken it: home ignores numbers below the last one. */
  async #send(): Promise<void> {
    for (let report = this.#waiting[0]; report !== undefined; report = this.#waiting[0]) {
      try {
        await this.#options.report(report);
      } catch {
        return;
      }
      this.#waiting = this.#waiting.filter((one) => one !== report);
    }
  }
}

function textOf(tags: readonly string[]): string {
  return JSON.stringify([...new Set(tags)].sort());
}
