import type { Analytics } from "../analytics/analytics.ts";
import type { Clock, Milliseconds } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { Events } from "../log/events.ts";
import type { Lease } from "../store/lease.ts";
import { type RetentionTable, type RetentionTimes, retentionTables } from "../store/retention.ts";
import type { AppStore } from "./app-store.ts";

/** Interval between two passes, and between two attempts to take the lease. */
const INTERVAL: Milliseconds = 20_000;

/** Interval between two looks at a table, and at one in which old rows are found only by reading much of it. */
const LOOK_INTERVAL: Milliseconds = 60_000;
const RARE_INTERVAL: Milliseconds = 10 * 60_000;
const RARE: ReadonlySet<string> = new Set(["transaction_markers", "audit_events", "keys_of_apis"]);

/** The pause between two steps is this multiple of the duration of a step: retention takes a fifth of a connection. */
const PAUSE_PER_STEP = 4;
const PAUSE_MAX: Milliseconds = 1_000;

/** The name under which analytics are reported. */
const ANALYTICS = "analytics";

export interface RetentionOptions {
  store: Pick<AppStore, "read" | "transact" | "dialect">;
  analytics: Pick<Analytics, "prune">;
  clock: Clock;
  events: Pick<Events, "retained" | "retentionFailed">;
  times: RetentionTimes;
  /** The name of this process. */
  holder: string;
}

/**
 * Deletes rows beyond their retention, in small steps with pauses, on the node that has the lease.
 *
 * A node without the lease asks for it at each interval, and gets it when the former holder stopped, ended or froze. Each
 * step renews the lease in its own transaction, so the steps of a former holder change nothing.
 */
export class Retention {
  /** Rows that this process deleted, by table. */
  readonly deleted = new Map<string, number>();
  /** For how long the oldest row should be deleted already, by table; empty without the lease. */
  readonly lagMs = new Map<string, Milliseconds>();
  readonly #options: RetentionOptions;
  readonly #timer: { cancel(): void };
  readonly #lookedAt = new Map<string, Milliseconds>();
  #lease: Lease | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  #endPause = () => {};
  #hasIndex = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    for (const table of [...retentionTables, ANALYTICS]) this.deleted.set(table, 0);
    this.#timer = every(options.clock, INTERVAL, () => {
      this.#running = this.#pass();
      return this.#running;
    });
  }

  /** Whether this node has the lease, as far as it knows. */
  get hasLease(): boolean {
    return this.#lease !== undefined;
  }

  /** Ends after the step in progress, and gives the lease back. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer.cancel();
    this.#endPause();
    await this.#running.catch(() => {});
    if (this.#lease === undefined) return;
    // Without the database the lease expires.
    await this.#options.store.transact("releaseLease", this.#lease).catch(() => {});
  }

  async #pass(): Promise<void> {
    const { store, clock, events, holder } = this.#options;
    if (this.#lease !== undefined && store.dialect === "postgres") {
      await store.transact("renewLease", { lease: this.#lease, now: clock.now() }).catch((error: Error) => {
        this.#lose();
        if (error.name !== "LeaseLost") throw error;
      });
    }
    this.#lease ??= await store.transact("takeLease", { name: "retention", holder, now: clock.now() });
    if (this.#lease === undefined) return;
    const startedAt = clock.monotonic();
    const rows: Record<string, number> = {};
    for (const table of [...retentionTables, ANALYTICS] as const) {
      if (this.#isStopped || this.#lease === undefined) break;
      const lookedAt = this.#lookedAt.get(table);
      const interval = RARE.has(table) ? RARE_INTERVAL : LOOK_INTERVAL;
      if (lookedAt !== undefined && clock.monotonic() - lookedAt < interval) continue;
      this.#lookedAt.set(table, clock.monotonic());
      try {
        const deleted = table === ANALYTICS ? await this.#pruneAnalytics() : await this.#retain(table);
        if (deleted > 0) rows[table] = deleted;
      } catch (error) {
        // The embedded database returns errors of its thread by name.
        if ((error as Error).name === "LeaseLost") this.#lose();
        else events.retentionFailed(table, error);
      }
    }
    if (Object.keys(rows).length > 0) events.retained(rows, Math.round(clock.monotonic() - startedAt));
  }

  /** Deletes every row of a table that is too old; returns their number. */
  async #retain(table: RetentionTable): Promise<number> {
    const { store, clock, times } = this.#options;
    if (table === "keys" && !this.#hasIndex) {
      await store.read("indexDeletedKeys", null);
      this.#hasIndex = true;
    }
    let total = 0;
    for (;;) {
      const step = { table, times, now: clock.now() };
      const lag = await store.read("retentionLag", step);
      this.lagMs.set(table, lag ?? 0);
      if (lag === null || this.#isStopped) break;
      const startedAt = clock.monotonic();
      const deleted = await store.transact("retain", { ...step, lease: this.#lease! });
      this.#add(table, deleted);
      total += deleted;
      if (deleted === 0) break;
      await this.#pause(clock.monotonic() - startedAt);
    }
    return total;
  }

  /** Returns the number of steps that deleted something: a step counts no rows, because it drops whole partitions too. */
  async #pruneAnalytics(): Promise<number> {
    const { clock, analytics } = this.#options;
    for (let steps = 0; ; steps++) {
      const startedAt = clock.monotonic();
      if (this.#isStopped || !(await analytics.prune(this.#lease!))) return steps;
      this.#add(ANALYTICS, 1);
      await this.#pause(clock.monotonic() - startedAt);
    }
  }

  #add(table: string, count: number): void {
    this.deleted.set(table, (this.deleted.get(table) ?? 0) + count);
  }

  #lose(): void {
    this.#lease = undefined;
    this.#lookedAt.clear();
    this.lagMs.clear();
  }

  #pause(took: Milliseconds): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#options.clock.schedule(Math.min(PAUSE_MAX, took * PAUSE_PER_STEP), resolve);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
