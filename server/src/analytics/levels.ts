import type { Milliseconds } from "../clock/clock.ts";

/** The lengths of buckets, by name. Each holds whole buckets of the one before. */
export const levels = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

export type Level = keyof typeof levels;

export const levelNames = Object.keys(levels) as readonly Level[];

/** How long the buckets of each level are kept. */
export type Retention = Readonly<Record<Level, Milliseconds>>;

/** Beginning of the oldest bucket that is kept. */
export function oldestKept(level: Level, retention: Retention, now: number): number {
  const oldest = now - retention[level];
  return oldest - (oldest % levels[level]);
}
