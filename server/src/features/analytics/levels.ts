import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";

/** The levels of rollups and their bucket lengths. Each bucket consists of whole buckets of the previous level. */
export const levels = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

export type Level = keyof typeof levels;

export const levelNames = Object.keys(levels) as readonly Level[];

/** Retention time of the buckets of each level. */
export type Retention = Readonly<Record<Level, Milliseconds>>;

/** Start of the oldest bucket within the retention time. */
export function oldestKept(level: Level, retention: Retention, now: number): number {
  const oldest = now - retention[level];
  return oldest - (oldest % levels[level]);
}
