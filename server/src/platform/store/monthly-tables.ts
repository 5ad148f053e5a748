/** The tables that are stored in one partition per month, where the database has partitions: decisions/035. */
export const monthlyTableNames = [
  "audit_events",
  "audit_targets",
  "analytics_minutes",
  "analytics_hours",
  "analytics_days",
  "analytics_usage_hours",
  "analytics_usage_days",
] as const;

export type MonthlyTable = (typeof monthlyTableNames)[number];

/** What one step did. */
export type PartitionStep =
  /** A partition whose rows were all too old is gone; `rows` is the database's estimate of their number. */
  | { step: "dropped"; partition: string; rows: number }
  | { step: "made"; partition: string }
  /** The table accepts no row at or after the boundary at which it will be divided. */
  | { step: "bounded" }
  /** The next step needs `prepare`. */
  | { step: "unprepared" }
  /** The table is divided by month. */
  | { step: "divided" }
  /** The table stays as it is, and why. */
  | { step: "kept"; reason: string };

/** How a table is stored, for people. */
export interface PartitionState {
  table: MonthlyTable;
  isDivided: boolean;
  /** The partitions, in the order of their bounds. */
  partitions: string[];
  /** The end of the last month that has a partition, in epoch milliseconds; null if the table is not divided. */
  until: number | null;
  /** Rows in the default partition, whose clocks were wrong; at most 10,001. */
  strays: number;
  /** Why the table is not divided; null if it is, or will be. */
  reason: string | null;
}
