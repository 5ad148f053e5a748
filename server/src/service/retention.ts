import type { Analytics } from "../analytics/analytics.ts";
import type { Clock, Milliseconds } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { Events } from "../log/events.ts";
import { type MonthlyTable, monthlyTableNames } from "../store/postgres/partitions.ts";
import { type RetentionTable, type RetentionTimes, retentionTables } from "../store/retention.ts";
import type { AppStore } from "./app-store.ts";
import { HeldLease } from "./held-lease.ts";

/** Interval between two passes, and between two attempts to take the lease. */
const INTERVAL: Milliseconds = 20_000;

/** Interval between two looks at a table, and at one in which old rows are found only by reading much of it. */
const LOOK_INTERVAL: Milliseconds = 60_000;
const RARE_INTERVAL: Milliseconds = 10 * 60_000;
const RARE: ReadonlySet<string> = new Set(["transaction_markers", "audit_events", "keys_of_apis", "identities"]);

/** Tables whose old rows are found by an index that a migration does not build on a large table. */
const INDEXED: ReadonlySet<string> = new Set([
  "purged_keys",
  "keys",
  "identities",
  "ratelimit_namespaces",
  "root_keys",
  "webhooks",
]);

/** The pause between two steps is this multiple of the duration of a step: retention takes a fifth of a connection. */
const PAUSE_PER_STEP = 4;
const PAUSE_MAX: Milliseconds = 1_000;

/** The name under which analytics are reported. */
const ANALYTICS = "analytics";
/** The name under which the partitions of PostgreSQL are looked after. */
const LAYOUT = "layout";

export interface RetentionOptions {
  store: Pick<AppStore, "read" | "transact" | "dialect">;
  analytics: Pick<Analytics, "prune">;
  clock: Clock;
  events: Pick<
    Events,
    "retained" | "retentionFailed" | "tableDivided" | "tableKept" | "partitionDropped" | "layoutFailed"
  >;
  times: RetentionTimes;
  /** How long rows of the tables stay that PostgreSQL divides by month. */
  monthly: Readonly<Record<MonthlyTable, Milliseconds>>;
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
  /** Partitions that this process dropped, by table. */
  readonly dropped = new Map<string, number>();
  /** For how long the oldest row should be deleted already, by table; empty without the lease. */
  readonly lagMs = new Map<string, Milliseconds>();
  readonly #options: RetentionOptions;
  readonly #timer: { cancel(): void };
  readonly #lookedAt = new Map<string, Milliseconds>();
  readonly #held: HeldLease;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  #endPause = () => {};
  #hasIndexes = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    const { store, clock, holder } = options;
    this.#held = new HeldLease({ store, clock, holder, name: "retention" });
    for (const table of [...retentionTables, ANALYTICS]) this.deleted.set(table, 0);
    for (const table of monthlyTableNames) this.dropped.set(table, 0);
    this.#timer = every(options.clock, INTERVAL, () => {
      this.#running = this.#pass();
      return this.#running;
    });
  }

  /** Whether this node has the lease, as far as it knows. */
  get hasLease(): boolean {
    return this.#held.lease !== undefined;
  }

  /** Ends after the step in progress, and gives the lease back. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer.cancel();
    this.#endPause();
    await this.#running.catch(() => {});
    await this.#held.release();
  }

  async #pass(): Promise<void> {
    const { clock, events } = this.#options;
    if ((await this.#held.take(() => this.#lose())) === undefined) return;
    const startedAt = clock.monotonic();
    const rows: Record<string, number> = {};
    for (const table of [LAYOUT, ...retentionTables, ANALYTICS] as const) {
      if (this.#isStopped || !this.hasLease) break;
      const lookedAt = this.#lookedAt.get(table);
      const interval = RARE.has(table) ? RARE_INTERVAL : LOOK_INTERVAL;
      if (lookedAt !== undefined && clock.monotonic() - lookedAt < interval) continue;
      this.#lookedAt.set(table, clock.monotonic());
      try {
        if (table === LAYOUT) await this.#layOut();
        else {
          const deleted = table === ANALYTICS ? await this.#pruneAnalytics() : await this.#retain(table);
          if (deleted > 0) rows[table] = deleted;
        }
      } catch (error) {
        // The embedded database returns errors of its thread by name.
        if ((error as Error).name === "LeaseLost") this.#lose();
        else events.retentionFailed(table, error);
      }
    }
    if (Object.keys(rows).length > 0) events.retained(rows, Math.round(clock.monotonic() - startedAt));
  }

  /** Drops partitions that are too old, makes those of the next months, and divides tables that are not divided yet. */
  async #layOut(): Promise<void> {
    const { store, clock, events } = this.#options;
    if (store.dialect !== "postgres") return;
    for (const table of monthlyTableNames) {
      try {
        while (!this.#isStopped && (await this.#changeLayout(table)));
        // Nodes of the previous release would reach the boundary of a table that was not divided in the end.
        if (this.#isStopped)
          await store.transact("undoDivision", { table, now: clock.now(), lease: this.#held.lease! });
      } catch (error) {
        if ((error as Error).name === "LeaseLost") throw error;
        events.layoutFailed(table, error);
      }
    }
  }

  /** Does one step; whether there may be another. */
  async #changeLayout(table: MonthlyTable): Promise<boolean> {
    const { store, clock, events, monthly } = this.#options;
    const startedAt = clock.monotonic();
    const change = { table, keep: monthly[table], now: clock.now(), lease: this.#held.lease! };
    const done = await store.transact("changeLayout", change);
    if (done?.step === "kept") events.tableKept(table, done.reason);
    if (done === null || done.step === "kept") return false;
    if (done.step === "unprepared") await store.read("preparePartitions", table);
    if (done.step === "divided") events.tableDivided(table);
    if (done.step === "dropped") {
      this.dropped.set(table, this.dropped.get(table)! + 1);
      events.partitionDropped(done.partition, done.rows);
    }
    await this.#pause(clock.monotonic() - startedAt);
    return true;
  }

  /** Deletes every row of a table that is too old; returns their number. */
  async #retain(table: RetentionTable): Promise<number> {
    const { store, clock, times } = this.#options;
    if (INDEXED.has(table) && !this.#hasIndexes) {
      await store.read("indexDeletedRows", null);
      this.#hasIndexes = true;
    }
    let total = 0;
    for (;;) {
      const step = { table, times, now: clock.now() };
      const lag = await store.read("retentionLag", step);
      this.lagMs.set(table, lag ?? 0);
      if (lag === null || this.#isStopped) break;
      const startedAt = clock.monotonic();
      const deleted = await store.transact("retain", { ...step, lease: this.#held.lease! });
      this.#add(table, deleted);
      total += deleted;
      if (deleted === 0) break;
      await this.#pause(clock.monotonic() - startedAt);
    }
    return total;
  }

  /** Deletes all counts that are too old; returns the number of rows. */
  async #pruneAnalytics(): Promise<number> {
    const { clock, analytics } = this.#options;
    let total = 0;
    while (!this.#isStopped) {
      const startedAt = clock.monotonic();
      const { rows, more } = await analytics.prune(this.#held.lease!);
      this.#add(ANALYTICS, rows);
      total += rows;
      if (!more) break;
      await this.#pause(clock.monotonic() - startedAt);
    }
    return total;
  }

  #add(table: string, count: number): void {
    this.deleted.set(table, (this.deleted.get(table) ?? 0) + count);
  }

  #lose(): void {
    this.#held.lose();
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
