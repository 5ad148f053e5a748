/** The tables of the rollups: in the same database on PostgreSQL, in a separate file with SQLite. */
export interface AnalyticsSchema {
  analytics_minutes: RollupRow;
  analytics_hours: RollupRow;
  analytics_days: RollupRow;
  analytics_recorders: RecorderRow;
}

export interface RollupRow {
  /** Start of the bucket. First in the primary key, so that writes and deletions affect adjacent rows. */
  time: number;
  subject: string;
  /** Empty for the whole bucket; else the digest of `label`, or `~` for the overflow. */
  part: string;
  outcome: string;
  /** The tag set of the part as JSON, or its identifier. */
  label: string;
  count: number;
  /** Credits spent, or the cost charged to limits. */
  amount: number;
  latency_us: number;
}

/** The last batch of each recorder. */
export interface RecorderRow {
  id: string;
  sequence: number;
  seen_at: number;
}
