import type { Milliseconds } from "../clock/clock.ts";

/** The most rows of one read, so that a reader that was disconnected does not block its event loop. */
export const CHANGES_PER_READ = 5_000;

/** The position of a reader. Opaque: only the database that returned it can interpret it. */
export type ChangesCursor = string;

/** A row of `changes`. */
export interface ChangedTags {
  sequence: number;
  tags: string[];
  /** Whose records it concerns; null: it may concern those of any workspace. */
  workspaceId: string | null;
  /** Tells it from another row with its number; empty where numbers are given once. */
  nonce: string;
}

/** How far a reader has come. */
export interface ChangesReach {
  /** What gives the numbers. Another one, or another timeline of it, has another text. Empty: this process alone reads them. */
  server: string;
  /** Every row up to this number was read, or will never be. */
  final: number;
}

export interface Changes extends ChangesReach {
  cursor: ChangesCursor;
  rows: ChangedTags[];
  /** There may be more rows: read again with the new cursor. */
  hasMore: boolean;
  /**
   * The old cursor belongs to another server or to another timeline of this server, so anything may have changed. The new
   * cursor starts at the end.
   */
  isLost: boolean;
}

/** Rows that were committed before a reader started, the newest one first. */
export interface RecentChanges extends Pick<ChangesReach, "server"> {
  rows: ChangedTags[];
}

/** Older changes are deleted, except the newest. A reader that was disconnected for longer must invalidate its whole cache. */
export const CHANGES_RETENTION: Milliseconds = 24 * 3_600_000;
