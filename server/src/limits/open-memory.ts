import type { Clock } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { FingerprintKey } from "../crypto/fingerprint.ts";
import { CounterJournal, counterFilesIn } from "./counter-journal.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable } from "./memory-table.ts";

export interface MemoryCountersOptions {
  clock: Clock;
  /** What time it is for the windows. */
  countingClock: Pick<Clock, "now">;
  /** Memory for counters, reserved at once and used as it fills. */
  bytes: number;
  /** Where counters survive a restart. */
  folder: string;
  /** Two random words: nobody outside can aim at a bucket. */
  freshKey: FingerprintKey;
  /** Told of counters that could not be read or written. */
  onFailure(error: unknown): void;
  /** Called once at the start if the table had no room for some of the counters on disk. */
  onDropped(counters: number): void;
}

export interface OpenMemoryCounters {
  counters: MemoryCounters;
  table: MemoryTable;
  /** Counters of the file for which the table had no room. */
  dropped: number;
  /** Writes everything down. */
  stop(): Promise<void>;
}

/** Slots whose end has passed are given back this many segments at a time: well under a millisecond. */
const SWEPT_SEGMENTS = 8;
const SWEEP_INTERVAL = 100;

/** The main thread's number among those that share a table. */
const MAIN_THREAD = 1;

/** Counters in memory that survive a restart, with what was there before. */
export async function openMemoryCounters(options: MemoryCountersOptions): Promise<OpenMemoryCounters> {
  const { clock, countingClock, bytes, folder, freshKey, onFailure, onDropped } = options;
  const survival = await CounterJournal.open({
    files: counterFilesIn(folder),
    clock,
    countingClock,
    freshKey,
    onFailure,
  });
  const table = new MemoryTable(reserveTable(bytes, false), MAIN_THREAD, survival.key);
  const { dropped } = await survival.restore(table);
  if (dropped > 0) onDropped(dropped);
  survival.start();
  const sweeping = every(clock, SWEEP_INTERVAL, async () => {
    if (table.isTight) table.sweep(SWEPT_SEGMENTS, countingClock.now());
  });
  const stop = () => {
    sweeping.cancel();
    return survival.stop();
  };
  return { counters: new MemoryCounters(table, countingClock), table, dropped, stop };
}
