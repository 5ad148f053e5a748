import { sql as raw } from "kysely";
import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import {
  CHANGES_PER_READ,
  CHANGES_RETENTION,
  type ChangedTags,
  type Changes,
  type ChangesCursor,
  type ChangesReach,
  type RecentChanges,
} from "../../../../../engine/src/directory/changes.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import type { Connection } from "../dialect.ts";
import { onlyRow } from "../only-row.ts";
import { isRejection } from "./failures.ts";
import { readHorizon } from "./horizon.ts";

/**
 * The position of a reader. Sequence numbers become visible in commit order, not in the order in which they were drawn. So
 * every pass reads the rows above `final` again, until no transaction can commit a lower number.
 */
interface Position {
  /**
   * Every row up to this number has been read. Never above the newest row: after a crash, the server may draw a number
   * again unless it was committed.
   */
  final: number;
  /** The state of an unfinished pass over the rows above `final`: the new `final` at its end, and the last row read. */
  pass: { horizon: number; at: number } | null;
  /** The newest row that was read; null if there was none. */
  newest: { sequence: number; nonce: string } | null;
  /** The server and its timeline. */
  server: string;
}

/**
 * Reads `changes` during writes. What is final depends on our own writers only, and not on long transactions of other
 * applications in the cluster: decisions/012.
 *
 * @throws {StoreUnavailable} when the server is a standby or read-only.
 */
export async function readPostgresChanges(
  sql: Connection,
  cursor: ChangesCursor | undefined,
  limit = CHANGES_PER_READ,
): Promise<Changes> {
  const before = cursor === undefined ? undefined : (JSON.parse(cursor) as Position);
  const state = await readState(sql, before?.newest ?? null);
  const isLost = before !== undefined && !fits(before, state);
  if (before === undefined || isLost) {
    const horizon = await readHorizon(sql, "changes", state.drawn);
    const { rows } = await raw<{ sequence: number; nonce: string }>`
      select sequence, nonce from changes order by sequence desc limit 1`.execute(sql.db);
    const newest = rows[0] ?? null;
    const position = { final: Math.min(horizon, newest?.sequence ?? 0), pass: null, newest, server: state.server };
    return { cursor: JSON.stringify(position), rows: [], hasMore: false, isLost, ...reachOf(position) };
  }

  const pass = before.pass ?? { horizon: await readHorizon(sql, "changes", state.drawn), at: before.final };
  const { rows } = await raw<StoredChange>`
    select sequence, nonce, tags, workspace_id from changes
    where sequence > ${pass.at} order by sequence limit ${limit}`.execute(sql.db);
  const last = rows.at(-1);
  const hasMore = rows.length === limit;
  const { final, server } = { ...before, ...state };
  const newest =
    last && last.sequence > (before.newest?.sequence ?? 0)
      ? { sequence: last.sequence, nonce: last.nonce }
      : before.newest;
  const position: Position = hasMore
    ? { final, pass: { horizon: pass.horizon, at: last!.sequence }, newest, server }
    : { final: Math.max(final, Math.min(pass.horizon, newest?.sequence ?? 0)), pass: null, newest, server };
  return {
    cursor: JSON.stringify(position),
    rows: rows.map(changedTags),
    hasMore,
    isLost: false,
    ...reachOf(position),
  };
}

/** Rows older than this may have been deleted between others that were not. */
const RECENT: Milliseconds = CHANGES_RETENTION / 2;

/** The newest rows, the newest one first, and the server that has them. */
export async function readRecentPostgresChanges(sql: Connection, limit: number): Promise<RecentChanges> {
  const { server } = await readState(sql, null);
  const { rows } = await raw<StoredChange & { is_recent: boolean }>`
    select sequence, nonce, tags, workspace_id,
      created_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - ${RECENT}::bigint as is_recent
    from changes order by sequence desc limit ${limit}`.execute(sql.db);
  const old = rows.findIndex(({ is_recent }) => !is_recent);
  return { server, rows: (old === -1 ? rows : rows.slice(0, old)).map(changedTags) };
}

interface StoredChange {
  sequence: number;
  nonce: string;
  tags: string;
  workspace_id: string | null;
}

function changedTags({ sequence, tags, workspace_id, nonce }: StoredChange): ChangedTags {
  return { sequence, tags: JSON.parse(tags) as string[], workspaceId: workspace_id, nonce };
}

function reachOf({ server, final }: Position): ChangesReach {
  return { server, final };
}

interface State {
  /** The last number that was drawn. */
  drawn: number;
  server: string;
  /** Whether the newest row of the reader's position exists. */
  has_newest: boolean;
}

/** A separate statement, and the first: numbers drawn after it are above the horizon of this pass. */
async function readState(sql: Connection, newest: Position["newest"]): Promise<State> {
  const { sequence = 0, nonce = null } = newest ?? {};
  const found = await raw<State & { is_read_only: boolean }>`
    select current_setting('transaction_read_only') = 'on' as is_read_only,
      case when is_called then last_value else last_value - 1 end as drawn,
      ${nonce}::uuid is null or exists (
        select from changes where sequence = ${sequence} and nonce = ${nonce}::uuid) as has_newest,
      ${raw.raw((await mayReadTimeline(sql)) ? TIMELINE : ADDRESS)} as server
    from changes_sequence_seq`.execute(sql.db);
  const { is_read_only, ...state } = onlyRow(found);
  if (is_read_only) throw new StoreUnavailable("The PostgreSQL server is a standby or read-only");
  return state;
}

/** Changes with a restored copy of the cluster and with each promotion of a standby. */
const TIMELINE = `case when pg_is_in_recovery() then 'standby' else
  (select system_identifier from pg_control_system()) || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) end`;
/** Used without access to the timeline. It also changes with each start of the server. */
const ADDRESS = "concat_ws(' ', inet_server_addr(), inet_server_port(), pg_postmaster_start_time())";

/** Whether the role of a connection may read the timeline. Some managed servers forbid it. */
const timelineReaders = new WeakMap<Connection["db"], Promise<boolean>>();

function mayReadTimeline({ db }: Connection): Promise<boolean> {
  let may = timelineReaders.get(db);
  if (!may) {
    may = raw`select ${raw.raw(TIMELINE)}`.execute(db).then(
      () => true,
      (error) => {
        if (!isRejection(error)) throw error;
        return false;
      },
    );
    timelineReaders.set(db, may);
  }
  return may;
}

function fits({ newest, server, final }: Position, state: State): boolean {
  return state.has_newest && state.server === server && state.drawn >= Math.max(final, newest?.sequence ?? 0);
}
