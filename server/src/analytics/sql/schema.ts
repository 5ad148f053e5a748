/** The tables of the rollups. Beside the ledger's on PostgreSQL, in a file of their own when embedded. */
export interface AnalyticsSchema {
  analytics_minutes: RollupRow;
  analytics_hours: RollupRow;
  analytics_days: RollupRow;
  analytics_recorders: RecorderRow;
}

export interface RollupRow {
  /** Beginning of the bucket. First in the primary key: what is written together lies together, and the old goes at once. */
  time: number;
  subject: string;
  /** Empty: all of the bucket; else the digest of `label`, or `~` for what has no part of its own. */
  part: string;
  outcome: string;
  /** Of a part: the tag set as JSON, or the identifier. */
  label: string;
  count: number;
  /** Credits spent, or what limits were charged. */
  amount: number;
  latency_us: number;
}

/** The last batch that was counted of each recorder. */
export interface RecorderRow {
  id: string;
  sequence: number;
  seen_at: number;
}
