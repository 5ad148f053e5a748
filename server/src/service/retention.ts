import type { Milliseconds } from "../../../engine/src/clock/clock.ts";
import type { Analytics } from "../features/analytics/analytics.ts";
import type { Events } from "../log/events.ts";
import type { HeldLeaseOptions } from "../platform/store/held-lease.ts";
import type { Lease } from "../platform/store/lease.ts";
import { LeasedWork } from "../platform/store/leased-work.ts";
import { type MonthlyTable, monthlyTableNames } from "../platform/store/monthly-tables.ts";
import type { RetentionPlace, RetentionTimes } from "../platform/store/retention.ts";
import type { AppStore } from "./app-store.ts";
import { type RetentionTable, retentionTables, retentionTasks } from "./retention-tasks.ts";

/** Interval between two passes, and between two attempts to take the lease. */
const INTERVAL: Milliseconds = 20_000;

/** Interval between two looks at a table, and at one in which old rows are found only by reading much of it. */
const LOOK_INTERVAL: Milliseconds = 60_000;
const COSTLY_INTERVAL: Milliseconds = 10 * 60_000;

/** How long a task continues where it ended, before it begins at the start: a row that it left may be too old by then. */
const WALK_LENGTH: Milliseconds = 60 * 60_000;

/** A clock that jumps ahead by more than this may be wrong, and has this much time to be set right. */
const JUMP_MAX: Milliseconds = 7 * 24 * 60 * 60_000;
const DOUBT: Milliseconds = 60 * 60_000;

/** The pause between two steps is this multiple of the duration of a step: retention takes a fifth of a connection. */
const PAUSE_PER_STEP = 4;

/** The name under which analytics are reported. */
const ANALYTICS = "analytics";
/** The name under which the partitions of PostgreSQL are looked after. */
const LAYOUT = "layout";

/** What one look is about. */
type Part = RetentionTable | typeof ANALYTICS | typeof LAYOUT;

export interface RetentionOptions extends Pick<HeldLeaseOptions, "clock" | "holder" | "formerHolders"> {
  store: Pick<AppStore, "read" | "transact" | "isEmbedded" | "monthlyTables">;
  analytics: Pick<Analytics, "prune">;
  events: Pick<
    Events,
    | "retained"
    | "retentionFailed"
    | "retentionPostponed"
    | "tableDivided"
    | "tableKept"
    | "partitionDropped"
    | "layoutFailed"
  >;
  times: RetentionTimes;
  /** How long rows of the tables stay that PostgreSQL divides by month. */
  monthly: Readonly<Record<MonthlyTable, Milliseconds>>;
}

/** Deletes rows beyond their retention, in small steps, on one node at a time. */
export class Retention {
  /** Rows that this process deleted, by table. */
  readonly deleted = new Map<string, number>();
  /** Partitions that this process dropped, by table. */
  readonly dropped = new Map<string, number>();
  /** For how long the oldest row is overdue for deletion, by table; empty without the lease. */
  readonly lagMs = new Map<string, Milliseconds>();
  readonly #options: RetentionOptions;
  readonly #lookedAt = new Map<string, Milliseconds>();
  /** Where the last step of each task ended, and when it began at the start. */
  readonly #walks = new Map<RetentionTable, { after: RetentionPlace | undefined; startedAt: Milliseconds }>();
  readonly #work: LeasedWork;
  #hasIndexes = false;
  /** What the wall clock is ahead of the monotonic one, as far as it is believed. */
  #offset: Milliseconds;
  /** Since when the wall clock has been ahead of that by more than `JUMP_MAX`. */
  #jumpedAt: Milliseconds | undefined;

  constructor(options: RetentionOptions) {
    this.#options = options;
    const { store, clock, events, holder, formerHolders } = options;
    this.#offset = clock.now() - clock.monotonic();
    for (const table of [...retentionTables, ANALYTICS]) this.deleted.set(table, 0);
    for (const table of monthlyTableNames) this.dropped.set(table, 0);
    this.#work = new LeasedWork({
      store,
      clock,
      holder,
      formerHolders,
      name: "retention",
      interval: INTERVAL,
      pausePerStep: PAUSE_PER_STEP,
      pass: () => this.#pass(),
      onLost: () => {
        this.#lookedAt.clear();
        this.#walks.clear();
        this.lagMs.clear();
      },
      onFailed: (error) => events.retentionFailed("leases", error),
    });
  }

  /** Whether this node has the lease, as far as it knows. */
  get hasLease(): boolean {
    return this.#work.lease !== undefined;
  }

  /** Gives the lease back. */
  stop(): Promise<void> {
    return this.#work.stop();
  }

  async #pass(): Promise<void> {
    if (this.#isClockDoubtful()) return;
    const { clock, events } = this.#options;
    const startedAt = clock.monotonic();
    const before = new Map(this.deleted);
    try {
      for (const table of [LAYOUT, ...retentionTables, ANALYTICS] as const) {
        if (!this.#work.isStopped && this.#isDue(table)) await this.#look(table);
      }
    } finally {
      const rows = [...this.deleted].map(([table, count]) => [table, count - before.get(table)!] as const);
      const deleted = Object.fromEntries(rows.filter(([, count]) => count > 0));
      if (Object.keys(deleted).length > 0) events.retained(deleted, Math.round(clock.monotonic() - startedAt));
    }
  }

  /**
   * Whether the clock jumped ahead a short time ago, so that everything may seem too old. PostgreSQL needs no doubt: a row is too
   * old by its clock as well.
   */
  #isClockDoubtful(): boolean {
    const { clock, events, store } = this.#options;
    const now = clock.monotonic();
    const offset = clock.now() - now;
    const jumped = offset - this.#offset;
    if (!store.isEmbedded || jumped <= JUMP_MAX || (this.#jumpedAt !== undefined && now - this.#jumpedAt >= DOUBT)) {
      this.#offset = offset;
      this.#jumpedAt = undefined;
      return false;
    }
    if (this.#jumpedAt === undefined) events.retentionPostponed(jumped, DOUBT);
    this.#jumpedAt ??= now;
    return true;
  }

  /** Whether it is time to look at a table; if so, the time of the next look begins. */
  #isDue(table: Part): boolean {
    const now = this.#options.clock.monotonic();
    const lookedAt = this.#lookedAt.get(table) ?? Number.NEGATIVE_INFINITY;
    if (now - lookedAt < intervalOf(table)) return false;
    this.#lookedAt.set(table, now);
    return true;
  }

  async #look(table: Part): Promise<void> {
    try {
      if (table === LAYOUT) await this.#layOut();
      else if (table === ANALYTICS) await this.#pruneAnalytics();
      else await this.#retain(table);
    } catch (error) {
      if ((error as Error).name === "LeaseLost") throw error;
      this.#options.events.retentionFailed(table, error);
    }
  }

  /** Drops partitions that are too old, makes those of the next months, and divides tables that are not divided yet. */
  async #layOut(): Promise<void> {
    const { store, clock, events } = this.#options;
    for (const table of store.monthlyTables) {
      try {
        await this.#work.steps((lease) => this.#changeLayout(table, lease));
        // Nodes of the previous release would reach the boundary of a table that was not divided in the end.
        if (this.#work.isStopped)
          await store.transact("undoDivision", { table, now: clock.now(), lease: this.#work.lease! });
      } catch (error) {
        if ((error as Error).name === "LeaseLost") throw error;
        events.layoutFailed(table, error);
      }
    }
  }

  /** Does one step; whether there may be another. */
  async #changeLayout(table: MonthlyTable, lease: Lease): Promise<boolean> {
    const { store, clock, events, monthly } = this.#options;
    const done = await store.transact("changeLayout", { table, keep: monthly[table], now: clock.now(), lease });
    if (done?.step === "kept") events.tableKept(table, done.reason);
    if (done === null || done.step === "kept") return false;
    if (done.step === "unprepared") await store.read("preparePartitions", table);
    if (done.step === "divided") events.tableDivided(table);
    if (done.step === "dropped") {
      this.dropped.set(table, this.dropped.get(table)! + 1);
      events.partitionDropped(done.partition, done.rows);
    }
    return true;
  }

  /** Deletes every row of a table that is too old. */
  #retain(table: RetentionTable): Promise<void> {
    const { store, clock, times } = this.#options;
    const startedAt = clock.monotonic();
    let walk = this.#walks.get(table);
    if (!walk || startedAt - walk.startedAt >= WALK_LENGTH) {
      walk = { after: undefined, startedAt };
      this.#walks.set(table, walk);
    }
    return this.#work.steps(async (lease) => {
      if (retentionTasks[table].index && !this.#hasIndexes) {
        await store.read("buildLateIndexes", null);
        this.#hasIndexes = true;
      }
      const step = { table, times, now: clock.now(), after: walk.after };
      const lag = await store.read("retentionLag", step);
      this.lagMs.set(table, lag ?? 0);
      if (lag === null) return false;
      const { deleted, end } = await store.transact("retain", { ...step, lease });
      this.#add(table, deleted);
      if (end) walk.after = end;
      return deleted > 0 || end !== null;
    });
  }

  /** Deletes all counts that are too old. */
  #pruneAnalytics(): Promise<void> {
    return this.#work.steps(async (lease) => {
      const { rows, more } = await this.#options.analytics.prune(lease);
      this.#add(ANALYTICS, rows);
      return more;
    });
  }

  #add(table: string, count: number): void {
    this.deleted.set(table, this.deleted.get(table)! + count);
  }
}

function intervalOf(part: Part): Milliseconds {
  if (part === ANALYTICS || part === LAYOUT) return LOOK_INTERVAL;
  return retentionTasks[part].isCostly ? COSTLY_INTERVAL : LOOK_INTERVAL;
}
