import type { Clock } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { FingerprintKey } from "../crypto/fingerprint.ts";
import { counterFilesIn } from "./counter-files.ts";
import { CounterJournal } from "./counter-journal.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable } from "./memory-table.ts";

export interface MemoryCountersOptions {
  clock: Clock;
  /** The clock of the windows. */
  countingClock: Pick<Clock, "now">;
  /** Memory for counters. It is reserved at the start, and used when it fills. */
  bytes: number;
  /** Whether several threads count in the same table. */
  isShared: boolean;
  /** The folder of the counter journal. */
  folder: string;
  /** A random key for the fingerprints, so that clients cannot construct collisions. */
  freshKey: FingerprintKey;
  /** A random name for what this process counts. */
  epoch: string;
  /** Called when counters could not be read or written. */
  onFailure(error: unknown): void;
  /** Called once at the start if some counters on disk do not fit into the table. */
  onDropped(counters: number): void;
}

export interface OpenMemoryCounters {
  counters: MemoryCounters;
  table: MemoryTable;
  /** The memory of the table. */
  buffer: ArrayBuffer | SharedArrayBuffer;
  /** The number of counters on disk that did not fit into the table. */
  dropped: number;
  /** Resolves when the journal has everything that was counted before. */
  flush(): Promise<void>;
  /** Writes all counters to disk. */
  stop(): Promise<void>;
}

/** Segments per sweep of expired slots: well under a millisecond. */
const SEGMENTS_PER_SWEEP = 8;
const SWEEP_INTERVAL = 100;

/** The lock owner id of the main thread. */
export const MAIN_THREAD = 1;

/** Opens counters in memory, and restores those of the previous process. */
export async function openMemoryCounters(options: MemoryCountersOptions): Promise<OpenMemoryCounters> {
  const { clock, countingClock, bytes, isShared, folder, freshKey, epoch, onFailure, onDropped } = options;
  const journal = await CounterJournal.open({
    files: counterFilesIn(folder),
    clock,
    countingClock,
    freshKey,
    onFailure,
  });
  const buffer = reserveTable(bytes, isShared);
  const table = new MemoryTable(buffer, MAIN_THREAD, journal.key);
  const { dropped } = await journal.restore(table);
  if (dropped > 0) onDropped(dropped);
  journal.start();
  const sweeping = every(clock, SWEEP_INTERVAL, async () => {
    if (table.isHalfFull) table.sweep(SEGMENTS_PER_SWEEP, countingClock.now());
  });
  const stop = () => {
    sweeping.cancel();
    return journal.stop();
  };
  const counters = new MemoryCounters(table, countingClock, epoch);
  return { counters, table, buffer, dropped, flush: () => journal.flush(), stop };
}
