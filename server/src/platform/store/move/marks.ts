import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import { OperatorError } from "../../../log/operator-error.ts";
import type { Sql } from "../store.ts";
import type { CopyDatabase } from "./database.ts";

/** What a database knows about a move that it takes part in. */
export interface Move {
  id: string;
  role: "source" | "target";
  /** The other database, without its password. */
  other: string;
  startedAt: number;
  /** When it ended: the source accepts no writes any more, the target can be served. Null while it lasts. */
  endedAt: number | null;
}

export async function findMove(sql: Sql): Promise<Move | undefined> {
  const row = await sql.db.selectFrom("moves").selectAll().where("id", "=", 1).executeTakeFirst();
  if (!row) return undefined;
  return { id: row.move_id, role: row.role, other: row.other, startedAt: row.started_at, endedAt: row.ended_at };
}

/**
 * Rejects a start on a database that was moved elsewhere or is an unfinished copy.
 *
 * @throws {OperatorError}
 */
export async function requireServable(sql: Sql): Promise<void> {
  const move = await findMove(sql);
  if (move?.role === "source" && move.endedAt !== null) {
    throw new OperatorError(
      `This database was moved to ${move.other} at ${new Date(move.endedAt).toISOString()}. Start with ` +
        `${settingsFor(move.other, "that database")}. To return to this one as it was then, without what was written since, ` +
        "stop every node of the other and run `latchkey migrate-store --undo` with these settings.",
    );
  }
  if (move?.role === "target" && move.endedAt === null) {
    throw new OperatorError(
      `This database is an unfinished copy of ${move.other}. Run \`latchkey migrate-store\` there again, which continues.`,
    );
  }
}

/** @throws {StoreUnavailable} when the database was moved elsewhere: what it contains is no longer current. */
export async function requireCurrent(sql: Sql): Promise<void> {
  const move = await findMove(sql);
  if (move?.role !== "source" || move.endedAt === null) return;
  const settings = settingsFor(move.other, "it");
  throw new StoreUnavailable(`This database was moved to ${move.other}: restart with ${settings}`);
}

/**
 * The settings of a service on the other database of a move. For an embedded one, its folder: with its file as
 * LATCHKEY_DATABASE_URL, a service would not find the analytics, counters and vault key beside it.
 */
export function settingsFor(other: string, address: string): string {
  const [, folder] = /^sqlite:(.*)\/[^/]*$/s.exec(other) ?? [];
  return folder === undefined
    ? `LATCHKEY_DATABASE_URL set to ${address}`
    : `LATCHKEY_DATA_DIR=${folder} and without LATCHKEY_DATABASE_URL`;
}

/** The longest integer that both databases and JavaScript represent exactly: never. */
export const NEVER = String(Number.MAX_SAFE_INTEGER);

/** Marks errors of writes that a move rejects. */
export const WRITES_STOPPED = "writes wait for `latchkey migrate-store`, which moves this database";
/** PostgreSQL's code of these errors. */
export const WRITES_STOPPED_CODE = "LKMOV";

/** The id of a move whose target exists and is not chosen yet. */
const PREPARED = "";

/** Marks a database that has only its schema as an unfinished copy. Any move may use it. */
export async function insertPreparedCopy(sql: Sql, source: string, now: number): Promise<void> {
  const row = { id: 1, move_id: PREPARED, role: "target", other: source, started_at: now } as const;
  await sql.db.insertInto("moves").values(row).execute();
}

/** The state of a move in one of its databases. */
export interface MoveState {
  readonly moveId: string;
  readonly other: string;
  readonly ended: boolean;
}

/** The move in which a database has this role. Creates the table of the mark where it is missing. */
export async function readMove(database: CopyDatabase, role: Move["role"]): Promise<MoveState | undefined> {
  await database.run(movesTable(database));
  const [row] = await database.rows(
    "select move_id, other, ended_at from moves where id = 1 and role = ? and move_id <> ?",
    [role, PREPARED],
  );
  return row && { moveId: row[0]!, other: row[1]!, ended: row[2] !== null };
}

/** Removes the mark of a database that was only prepared. */
export async function deletePreparedCopy(database: CopyDatabase): Promise<void> {
  await database.rows("delete from moves where id = 1 and move_id = ?", [PREPARED]);
}

/** Creates the same table as in the schema, for files that have another schema. */
export function movesTable({ dialect, tableOptions }: CopyDatabase): string {
  const { integer } = dialect.schema.types;
  return `create table if not exists moves (
    id ${integer} not null primary key check (id = 1),
    move_id text not null,
    role text not null,
    other text not null,
    started_at ${integer} not null,
    closed_until ${integer},
    ended_at ${integer}
  )${tableOptions}`;
}
