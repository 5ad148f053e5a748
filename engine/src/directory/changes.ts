import type { Milliseconds } from "../clock/clock.ts";

/** The most rows of one read, so that a reader that was disconnected does not block its event loop. */
export const CHANGES_PER_READ = 5_000;

/** The position of a reader. Opaque: only the database that returned it can interpret it. */
export type ChangesCursor = string;

export interface Changes {
  cursor: ChangesCursor;
  rows: { sequence: number; tags: string[] }[];
  /** There may be more rows: read again with the new cursor. */
  hasMore: boolean;
  /**
   * The old cursor belongs to another server or to another timeline of this server, so anything may have changed. The new
   * cursor starts at the end.
   */
  isLost: boolean;
}

/** Older changes are deleted, except the newest. A reader that was disconnected for longer must invalidate its whole cache. */
export const CHANGES_RETENTION: Milliseconds = 24 * 3_600_000;
