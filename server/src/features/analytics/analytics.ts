import type { Clock, Milliseconds, Timer } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import { pause } from "../../../../engine/src/clock/pause.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { Lease } from "../../platform/store/lease.ts";
import { type BatchParts, batchText, haveBudgets, type KeyColumns, keyCounts } from "./batch.ts";
import { KeyUseFiles } from "./key-use-files.ts";
import { KeyUses } from "./key-uses.ts";
import { Outbox } from "./outbox.ts";
import { type DrainedCounts, type KeyUse, Recorder } from "./recorder.ts";
import type {
  CountsQuery,
  DecisionQuery,
  FoundDecision,
  Pruned,
  Rollups,
  StatsQuery,
  SubjectCounts,
  Top,
  TopQuery,
} from "./rollups.ts";
import { Spool } from "./spool.ts";

export interface AnalyticsOptions {
  clock: Clock;
  rollups: Rollups;
  /** Differs from one process to the next. */
  recorderId: string;
  /** Rows of the log of decisions in a minute of one workspace. */
  loggedPerMinute: number;
  /** The folder of the spool. */
  folder: string;
  /** Maximum bytes of waiting batches in memory and on disk. */
  bytesMax: { memory: number; disk: number };
  /** Stores when keys were last used. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<unknown>;
  onReachability(reachable: boolean, cause?: unknown): void;
  onLoss(events: number, cause: unknown): void;
  onSpoolUnreadable(cause: unknown): void;
  onFailedMerge(cause: unknown): void;
}

/** Interval between drains of the recorder, and the maximum loss of a killed process. */
const DRAIN_INTERVAL: Milliseconds = 1_000;

/**
 * After a write, the next one waits for this multiple of its duration, up to a maximum. Batches that are written together
 * share their rows, so under load the writes use 2 % of a core and the counts are a few seconds behind.
 */
const PAUSE_PER_WRITE = 49;
const PAUSE_MAX: Milliseconds = 5_000;

/** After a step of a merge, the next one waits for this multiple of its duration: merges take a third of the thread. */
const PAUSE_PER_MERGE = 2;

/** Interval at which a merge is also looked for without writes. */
const MERGE_INTERVAL: Milliseconds = 60_000;

/** Counts that are serialised in one turn of the event loop: some tenths of a millisecond, for which calls wait. */
export const CELLS_PER_TURN = 500;
const TURN_PAUSE: Milliseconds = 1;

/** Keys whose last use is written by one transaction. A long transaction would delay the others. */
const USES_PER_WRITE = 500;

/** The same pause between two writes of last uses: with many keys in use, these take a fifth of the writing thread. */
const PAUSE_PER_USES = 4;

/** Interval between the starts of two writes of all last uses on disk. */
const USE_FILES_INTERVAL: Milliseconds = 120_000;

/** Counts events and delivers the counts to the store: recorder, outbox, spool. */
export class Analytics {
  readonly recorder: Recorder;
  readonly outbox: Outbox;
  readonly spool: Spool;
  readonly #options: AnalyticsOptions;
  readonly #uses = new KeyUses();
  /** The uses for which `#uses` has no room. */
  readonly #useFiles: KeyUseFiles;
  /** Monotonic time of the next write of the uses on disk. */
  #useFilesDueAt = 0;
  #sequence = 0;
  /** Monotonic time of the next write at the earliest. */
  #pausedUntil = 0;
  #recordingUses: Promise<void> | undefined;
  #merging: Promise<void> | undefined;
  #delivering: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  #periodicJobs: Timer[] = [];

  constructor(options: AnalyticsOptions) {
    const { clock, rollups, folder, recorderId, bytesMax, loggedPerMinute } = options;
    this.#options = options;
    // Scheduled, because the recorder calls this during an event, and waiting calls are answered first.
    this.recorder = new Recorder(clock, () => void clock.schedule(0, () => this.#drain()), loggedPerMinute);
    this.spool = new Spool(folder, recorderId, bytesMax.disk);
    this.#useFiles = new KeyUseFiles(folder);
    this.outbox = new Outbox({
      spool: this.spool,
      write: (batches) => rollups.write(batches),
      bytesMax: bytesMax.memory,
      onReachability: options.onReachability,
      onLoss: options.onLoss,
      onUnreadable: options.onSpoolUnreadable,
    });
  }

  async start(): Promise<void> {
    await this.outbox.open().catch(this.#options.onSpoolUnreadable);
    await this.#useFiles.open().catch(this.#options.onSpoolUnreadable);
    const { clock } = this.#options;
    this.#periodicJobs = [
      every(clock, DRAIN_INTERVAL, async () => this.#flush()),
      every(clock, MERGE_INTERVAL, async () => this.#merge()),
    ];
  }

  stats(query: StatsQuery): Promise<string> {
    return this.#options.rollups.stats(query);
  }

  counts(query: CountsQuery): Promise<SubjectCounts[]> {
    return this.#options.rollups.counts(query);
  }

  top(query: TopQuery): Promise<Top> {
    return this.#options.rollups.top(query);
  }

  /** A page of the log of decisions. */
  decisions(query: DecisionQuery): Promise<FoundDecision[]> {
    return this.#options.rollups.decisions(query);
  }

  /** Adds what another thread counted. */
  adopt(counts: DrainedCounts): void {
    this.recorder.recorded += counts.events;
    this.#startDelivery(counts);
  }

  /** Adds what another process counted and numbered. Resolves after the commit. */
  async addBatches(batches: readonly string[]): Promise<void> {
    await this.#options.rollups.write(batches);
  }

  /** Adds last uses of keys that another process counted. They are written with the others. */
  addUses(uses: readonly KeyUse[]): void {
    this.#useFiles.add(this.#uses.add(uses));
  }

  /** The keys that an earlier process used last, at most `count`, the latest first: those whose uses the database does not have. */
  newestUses(count: number): Promise<string[]> {
    return this.#useFiles.newest(count);
  }

  /** Deletes some of the expired buckets, while this node has the lease. */
  prune(lease: Lease): Promise<Pruned> {
    return this.#options.rollups.prune(this.#options.clock.now(), lease);
  }

  /** Delivers all counts. Batches that the store does not accept stay on disk. */
  async stop(): Promise<void> {
    for (const job of this.#periodicJobs) job.cancel();
    this.outbox.keepUnreadFiles();
    this.#stopping.abort();
    this.recorder.log.endMinute();
    this.#drain();
    await this.#delivering;
    // Last uses are written meanwhile. They are not waited for: a database that hangs never answers.
    this.#flush();
    await this.outbox.settled();
    // Batches that were added during the last write or pause.
    if (this.outbox.waiting > 0 && this.outbox.reachable) await this.outbox.send();
    await this.outbox.settled();
    this.#useFiles.add(this.#uses.drain());
    await this.#useFiles.flush();
    await this.#merging;
    await this.#options.rollups.close();
  }

  #flush(): void {
    this.#drain();
    this.#recordingUses ??= this.#recordUses().finally(() => {
      this.#recordingUses = undefined;
    });
    void this.#send();
  }

  async #send(): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    if (startedAt < this.#pausedUntil) return;
    // No second write before the duration of this one is measured.
    this.#pausedUntil = Number.POSITIVE_INFINITY;
    const { delivered } = this.outbox.counts;
    await this.outbox.send();
    if (this.outbox.counts.delivered > delivered) this.#merge();
    const took = clock.monotonic() - startedAt;
    this.#pausedUntil = startedAt + took + Math.min(PAUSE_MAX, PAUSE_PER_WRITE * took);
  }

  /** Starts a merge, if none is in progress. */
  #merge(): void {
    if (this.#stopping.signal.aborted) return;
    this.#merging ??= this.#mergeAll().finally(() => {
      this.#merging = undefined;
    });
  }

  async #mergeAll(): Promise<void> {
    const { clock, rollups } = this.#options;
    for (;;) {
      const startedAt = clock.monotonic();
      const hasMore = await rollups.merge(clock.now()).catch((error) => {
        // A store that is unreachable is reported by the writes.
        if (!(error instanceof StoreUnavailable)) this.#options.onFailedMerge(error);
        return false;
      });
      if (!hasMore || this.#stopping.signal.aborted) return;
      await pause(clock, PAUSE_PER_MERGE * (clock.monotonic() - startedAt), this.#stopping.signal);
    }
  }

  #drain(): void {
    const counts = this.recorder.drain();
    if (counts !== undefined) this.#startDelivery(counts);
  }

  #startDelivery(counts: DrainedCounts): void {
    const delivery = this.#deliver(counts);
    // Its value is not that of the former one: values of values would be kept for ever.
    this.#delivering = this.#delivering.then(() => delivery);
  }

  /** Puts a batch into the outbox: few counts at once, many after some turns of the event loop. */
  async #deliver({ keys, verifications, ratelimits, uses, decisions, events }: DrainedCounts): Promise<void> {
    const parts = { keys: [], verifications: [], ratelimits: [], decisions: [] } as Record<keyof BatchParts, string[]>;
    let hasBudgets = false;
    let room = CELLS_PER_TURN;
    const endTurn = async () => {
      await pause(this.#options.clock, TURN_PAUSE, this.#stopping.signal);
      room = CELLS_PER_TURN;
    };
    for (const columns of keys) {
      for (let i = 0; i < columns.keyIds.length; i += CELLS_PER_TURN) {
        if (room <= 0) await endTurn();
        const some = keyCounts(columns, i, i + CELLS_PER_TURN);
        parts.keys.push(`[${JSON.stringify(some)}]`);
        hasBudgets ||= haveBudgets(some);
        this.#addUses(columns, i, i + CELLS_PER_TURN);
        room -= some[4].length;
      }
    }
    const most = Math.max(verifications.length, ratelimits.length, uses.length, decisions.length);
    for (let i = 0; i < most; i += CELLS_PER_TURN) {
      if (room <= 0) await endTurn();
      const end = i + CELLS_PER_TURN;
      parts.verifications.push(JSON.stringify(verifications.slice(i, end)));
      parts.ratelimits.push(JSON.stringify(ratelimits.slice(i, end)));
      parts.decisions.push(JSON.stringify(decisions.slice(i, end)));
      this.#useFiles.add(this.#uses.add(uses.slice(i, end)));
      room -= Math.min(CELLS_PER_TURN, most - i);
    }
    // Numbered in the order in which the store gets the batches.
    const batch = { recorder: this.#options.recorderId, sequence: ++this.#sequence, hasBudgets };
    this.outbox.put(batchText(batch, parts), events);
  }

  #addUses({ keyIds, usedAt }: KeyColumns, from: number, until: number): void {
    for (const [i, keyId] of keyIds.slice(from, until).entries()) {
      const at = usedAt[from + i] ?? 0;
      if (at > 0 && !this.#uses.addOne(keyId, at)) this.#useFiles.addOne(keyId, at);
    }
  }

  /** Writes the last uses that are due: those in memory, and at intervals those on disk. */
  async #recordUses(): Promise<void> {
    const { clock } = this.#options;
    if (!(await this.#recordTracked()) || clock.monotonic() < this.#useFilesDueAt) return;
    if (this.#stopping.signal.aborted) return;
    this.#useFilesDueAt = clock.monotonic() + USE_FILES_INTERVAL;
    for (const part of this.#useFiles.parts) {
      try {
        if (!(await this.#recordPart(part))) return;
      } catch (error) {
        // The disk: the part stays on it, and the next write tries again.
        this.#options.onSpoolUnreadable(error);
      }
    }
  }

  /** Writes the last uses of a part on disk. Returns whether all are written. */
  async #recordPart(part: string): Promise<boolean> {
    for (const uses of await this.#useFiles.take(part)) {
      uses.sort((a, b) => (a.keyId < b.keyId ? -1 : 1));
      for (let i = 0; i < uses.length; i += USES_PER_WRITE) {
        const isWritten = await this.#recordSome(uses.slice(i, i + USES_PER_WRITE));
        // Those in memory do not wait for the files. A stop leaves the rest for the next process.
        if (!isWritten || !(await this.#recordTracked()) || this.#stopping.signal.aborted) return false;
      }
    }
    await this.#useFiles.done(part);
    return true;
  }

  /** Writes the last uses in memory. Returns whether all are written. */
  async #recordTracked(): Promise<boolean> {
    for (;;) {
      const uses = this.#uses.take(USES_PER_WRITE, this.#options.clock.now());
      if (uses.length === 0) return true;
      if (await this.#recordSome(uses)) continue;
      this.#uses.putBack(uses);
      return false;
    }
  }

  /** Writes some last uses, and pauses. Returns whether they are written. */
  async #recordSome(uses: readonly KeyUse[]): Promise<boolean> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    try {
      await this.#options.recordKeyUses(uses);
    } catch {
      // The database is unreachable, which is reported elsewhere.
      return false;
    }
    const length = Math.min(PAUSE_MAX, PAUSE_PER_USES * (clock.monotonic() - startedAt));
    await pause(clock, length, this.#stopping.signal);
    return true;
  }
}
