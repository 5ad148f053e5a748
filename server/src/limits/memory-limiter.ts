import type { Clock } from "../clock/clock.ts";
import type { FingerprintKey } from "./fingerprint.ts";
import { Limiter, type UndecidedPolicy } from "./limiter.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable } from "./memory-table.ts";
import { counterFilesIn, Survival } from "./survival.ts";

export interface MemoryLimiterOptions {
  clock: Clock;
  /** Memory for counters, reserved at once and used as it fills. */
  bytes: number;
  policy: UndecidedPolicy;
  /** Where counters survive a restart. */
  folder: string;
  /** Two random words: nobody outside can aim at a bucket. */
  freshKey: FingerprintKey;
  /** Told of counters that could not be read or written. */
  onFailure(error: unknown): void;
}

export interface MemoryLimiter {
  limiter: Limiter;
  counters: MemoryCounters;
  table: MemoryTable;
  /** Writes everything down. */
  stop(): Promise<void>;
}

/** The main thread's number among those that share a table. */
const MAIN_THREAD = 1;

/** Counters in memory that survive a restart, with what was there before. */
export async function openMemoryLimiter(options: MemoryLimiterOptions): Promise<MemoryLimiter> {
  const { clock, bytes, policy, folder, freshKey, onFailure } = options;
  const survival = await Survival.open({ files: counterFilesIn(folder), clock, freshKey, onFailure });
  const table = new MemoryTable(reserveTable(bytes, false), MAIN_THREAD, survival.key);
  await survival.restore(table);
  survival.start();
  const counters = new MemoryCounters(table, clock);
  return { limiter: new Limiter(counters, policy), counters, table, stop: () => survival.stop() };
}
