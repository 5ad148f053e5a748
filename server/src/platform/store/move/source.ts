import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import {
  type CopiedTable,
  type CopyDatabase,
  columnNames,
  type Demand,
  listed,
  quoted,
  type Row,
  type Value,
} from "./database.ts";
import { movesTable, NEVER } from "./marks.ts";
import { MovePart } from "./part.ts";

/** A row that was touched since the source records changes. */
export interface TouchedRow {
  readonly sequence: string;
  readonly table: string;
  readonly key: Row;
}

/**
 * One database of the source. Triggers record the key of every row that a transaction inserts, updates or deletes, in the
 * same transaction, whichever process it belongs to. The same triggers reject writes while the gate is closed.
 */
export class SourcePart extends MovePart {
  protected readonly role = "source";

  /** Starts to record changes. Repeating it does no harm. Nothing may be copied before. */
  async record(moveId: string, other: string): Promise<void> {
    const { database } = this;
    await database.run(`
      ${movesTable(database)};
      create table if not exists move_changes (
        sequence ${database.numbering},
        table_name text not null,
        row_key text not null
      );
      delete from moves where role = 'target' and ended_at is not null`);
    await database.rows(
      `insert into moves (id, move_id, role, other, started_at) values (1, ?, 'source', ?, ${database.now})
       on conflict (id) do nothing`,
      [moveId, other],
    );
    await database.recording.start(this.tables);
  }

  /** Stops recording, forgets the move, and accepts writes again. */
  forget(): Promise<void> {
    return this.database.recording.stop();
  }

  /** What its steps demand of programs. The rows of some need it wherever they are. */
  async demands(): Promise<Demand[]> {
    const rows = await this.database.rows("select name, needs from schema_steps where needs > 0");
    return (rows as [step: Value, needs: Value][]).map(([step, needs]) => ({ step, needs }));
  }

  async count(table: CopiedTable): Promise<number> {
    const [row] = await this.database.rows(`select count(*) from ${quoted(table.name)}`);
    return Number(row![0]);
  }

  /** Up to `limit` rows in the order of the primary key, after the row with this key; without one, the first. */
  page(table: CopiedTable, after: Row | null, limit: number): Promise<Row[]> {
    return readPage(this.database, table, after, limit);
  }

  /** Up to `limit` touched rows with higher numbers, in the order of their numbers. */
  async touched(after: string, limit: number): Promise<TouchedRow[]> {
    const rows = await this.database.rows(
      `select sequence, table_name, row_key from move_changes where sequence > ? order by sequence limit ${limit}`,
      [after],
    );
    return rows.map(([sequence, table, key]) => ({ sequence: sequence!, table: table!, key: JSON.parse(key!) as Row }));
  }

  async countTouched(): Promise<number> {
    const [row] = await this.database.rows("select count(*) from move_changes");
    return Number(row![0]);
  }

  /** Runs `work`, whose reads see one state of the database, and then deletes the touched rows that this state contains. */
  snapshot(work: () => Promise<void>): Promise<void> {
    return this.database.recording.snapshot(work);
  }

  /** Rejects writes for at most `length`. Every transaction that began to write before has ended when this resolves. */
  async close(length: Milliseconds): Promise<void> {
    const { database } = this;
    await database.recording.exclusively(() =>
      database.rows(
        `update moves set closed_until = ${database.now} + ${Math.ceil(length)} where id = 1 and ended_at is null`,
      ),
    );
  }

  /** Accepts writes again, unless the move has ended. */
  async open(): Promise<void> {
    await this.database.rows("update moves set closed_until = null where id = 1 and ended_at is null");
  }

  /**
   * Ends the move: the database never accepts writes again. False, with nothing changed, when the gate was open meanwhile or
   * a row was touched.
   */
  async end(): Promise<boolean> {
    const { database } = this;
    const { now } = database;
    return database.recording.exclusively(async () => {
      const ended = await database.rows(
        `update moves set closed_until = ${NEVER}, ended_at = coalesce(ended_at, ${now})
         where id = 1 and role = 'source' and closed_until > ${now} and not exists (select 1 from move_changes)
         returning 1`,
      );
      return ended.length === 1;
    });
  }
}

/** Up to `limit` rows in the order of the table's primary key. */
export function readPage(database: CopyDatabase, table: CopiedTable, after: Row | null, limit: number): Promise<Row[]> {
  const order = listed(table.order);
  const places = table.order.map((name) => {
    const column = table.columns.find((found) => found.name === name)!;
    return column.type === "bigint" ? "cast(? as bigint)" : "?";
  });
  return database.rows(
    `select ${listed(columnNames(table))} from ${quoted(table.name)}
     ${after === null ? "" : `where (${order}) > (${places.join(", ")})`} order by ${order} limit ${limit}`,
    after ?? [],
  );
}
