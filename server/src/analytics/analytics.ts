import type { Clock, Milliseconds, Timer } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { Batch } from "./batch.ts";
import { KeyUses, USES_PER_WRITE } from "./key-uses.ts";
import { Outbox } from "./outbox.ts";
import { type KeyUse, Recorder } from "./recorder.ts";
import type { Rollups, StatsQuery } from "./rollups.ts";
import { Spool } from "./spool.ts";

export interface AnalyticsOptions {
  clock: Clock;
  rollups: Rollups;
  /** Differs from one process to the next. */
  recorderId: string;
  /** Where batches wait that the store does not have yet. */
  folder: string;
  /** Bytes of batches that wait in memory, and on disk. */
  bytesMax: { memory: number; disk: number };
  /** Writes down when keys were last used. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<unknown>;
  onReachability(reachable: boolean, cause?: unknown): void;
  onLoss(events: number, cause: unknown): void;
  onSpoolUnreadable(cause: unknown): void;
}

/** How often counts are taken out of the recorder: what a killed process forgets at most. */
const SEAL_INTERVAL: Milliseconds = 1_000;

const PRUNE_INTERVAL: Milliseconds = 60_000;

/**
 * The store rests this many times as long as its last write took, up to a maximum: batches that are written together
 * share their rows, so under load counting takes a fiftieth of a core and the counts are a few seconds behind.
 */
const RESTS_PER_WRITE = 49;
const REST_MAX: Milliseconds = 5_000;

/** What happened, counted and on its way to the store. */
export class Analytics {
  readonly recorder: Recorder;
  readonly outbox: Outbox;
  readonly spool: Spool;
  readonly #options: AnalyticsOptions;
  readonly #uses = new KeyUses();
  #sequence = 0;
  /** Monotonic time before which nothing is sent. */
  #restsUntil = 0;
  #noting: Promise<void> | undefined;
  #pending: KeyUse[] = [];
  #periodicJobs: Timer[] = [];

  constructor(options: AnalyticsOptions) {
    const { clock, rollups, folder, recorderId, bytesMax } = options;
    this.#options = options;
    // After the event in whose middle this is told, and after whatever else is ready to be answered.
    this.recorder = new Recorder(clock, () => void clock.schedule(0, () => this.#seal()));
    this.spool = new Spool(folder, recorderId, bytesMax.disk);
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
    const { clock, rollups } = this.#options;
    await this.outbox.open().catch(this.#options.onSpoolUnreadable);
    this.#periodicJobs = [
      every(clock, SEAL_INTERVAL, async () => this.#turn()),
      every(clock, PRUNE_INTERVAL, async () => {
        while (await rollups.prune(clock.now()));
      }),
    ];
  }

  stats(question: StatsQuery): Promise<string> {
    return this.#options.rollups.stats(question);
  }

  /** Counts what is there to be counted; what the store does not take stays on disk. */
  async stop(): Promise<void> {
    for (const job of this.#periodicJobs) job.cancel();
    this.outbox.leaveRest();
    this.#turn();
    await this.outbox.settled();
    // What came while the last batches were being sent, or while the store rested.
    if (this.outbox.waiting > 0 && this.outbox.reachable) await this.outbox.send();
    await this.outbox.settled();
    await this.#options.rollups.close();
  }

  #turn(): void {
    this.#seal();
    for (const use of this.#uses.due([], this.#options.clock.now())) this.#pending.push(use);
    this.#noting ??= this.#record().finally(() => {
      this.#noting = undefined;
    });
    void this.#send();
  }

  async #send(): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    if (startedAt < this.#restsUntil) return;
    // Not again before it is known how long this takes.
    this.#restsUntil = Number.POSITIVE_INFINITY;
    await this.outbox.send();
    const took = clock.monotonic() - startedAt;
    this.#restsUntil = startedAt + took + Math.min(REST_MAX, RESTS_PER_WRITE * took);
  }

  #seal(): void {
    const sealed = this.recorder.drain();
    if (sealed === undefined) return;
    const { verifications, ratelimits, uses, events } = sealed;
    const batch: Batch = {
      recorder: this.#options.recorderId,
      sequence: ++this.#sequence,
      verifications,
      ratelimits,
    };
    this.outbox.put(JSON.stringify(batch), events);
    for (const use of this.#uses.due(uses, this.#options.clock.now())) this.#pending.push(use);
  }

  async #record(): Promise<void> {
    while (this.#pending.length > 0) {
      const uses = this.#pending.splice(0, USES_PER_WRITE);
      try {
        await this.#options.recordKeyUses(uses);
      } catch {
        // The database is away, which is told elsewhere; the keys' next uses will be noted.
        this.#uses.forget(uses);
      }
    }
  }
}
