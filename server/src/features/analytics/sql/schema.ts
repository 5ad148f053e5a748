/** The tables of the rollups: in the same database on PostgreSQL, in a separate file with SQLite. */
export interface AnalyticsSchema {
  analytics_minutes: RollupRow;
  analytics_hours: RollupRow;
  analytics_days: RollupRow;
  analytics_usage_hours: UsageRow;
  analytics_usage_days: UsageRow;
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

/** The verifications of one key with one outcome in one bucket of its workspace. */
export interface UsageRow {
  /** Start of the bucket. First in the primary key, so that writes and deletions affect adjacent rows. */
  time: number;
  workspace_id: string;
  key_id: string;
  /** Empty for a key without an identity. */
  identity_id: string;
  outcome: string;
  api_id: string;
  count: number;
  credits_spent: number;
}

/** The last batch of each recorder. */
export interface RecorderRow {
  id: string;
  sequence: number;
  seen_at: number;
}
