import type { Generated } from "kysely";

/** The tables of rollups and of usage, by level. */
export const rollupTables = { minute: "analytics_minutes", hour: "analytics_hours", day: "analytics_days" } as const;
export const usageTables = { hour: "analytics_usage_hours", day: "analytics_usage_days" } as const;

/** The tables of the rollups: in the same database on PostgreSQL, in a separate file with SQLite. */
export interface AnalyticsSchema {
  analytics_minutes: RollupRow;
  analytics_hours: RollupRow;
  analytics_days: RollupRow;
  analytics_usage_hours: UsageRow;
  analytics_usage_days: UsageRow;
  analytics_recorders: RecorderRow;
  analytics_segments: SegmentTable;
  analytics_segment_rows: SegmentRow;
  analytics_runs: SegmentTable;
  analytics_run_blocks: RunBlock;
  analytics_decisions: DecisionLogRow;
  analytics_decision_counts: { workspace_id: string; rows: number };
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

/** The rows of one write that are not merged yet: a segment, or a run. */
export interface SegmentTable {
  id: Generated<number>;
  /** Start of the first minute, and of the last one. */
  first_minute: number;
  last_minute: number;
  /** Rows before the merge. */
  rows: number;
  /** Where the merge is: rows up to this workspace and subject are merged. Null before the merge. */
  merged_to: string | null;
}

/** The count of one outcome of one subject in one minute, as one write has it. */
export interface SegmentRow {
  segment: number;
  workspace_id: string;
  /** As in a rollup. */
  subject: string;
  /** Empty without one, and for subjects that are no keys. */
  identity_id: string;
  outcome: string;
  time: number;
  /** Empty for subjects that are no keys. */
  api_id: string;
  count: number;
  amount: number;
  latency_us: number;
}

/** Some sorted rows of a run. All rows of a subject are in one block. */
export interface RunBlock {
  run: number;
  workspace_id: string;
  /** The subject of the last row. */
  last_subject: string;
  /** The JSON text of `BlockColumns`. */
  data: string;
}

/** A decision of the log. Ids that it does not have are empty. */
export interface DecisionLogRow {
  workspace_id: string;
  at: number;
  id: string;
  code: string;
  key_id: string;
  api_id: string;
  identity_id: string;
  namespace_id: string;
  request_id: string;
  /** The JSON text of a `DecisionAnswer`. */
  answer: string;
}

/** The last batch of each recorder. */
export interface RecorderRow {
  id: string;
  sequence: number;
  seen_at: number;
}
