import type { Milliseconds } from "../../clock/clock.ts";
import { OperatorError } from "../../log/operator-error.ts";
import {
  type CopiedTable,
  type CopyDatabase,
  columnNames,
  listed,
  literal,
  nowIn,
  quoted,
  type Row,
} from "./database.ts";
import { MOVES_TABLE, type MoveState, NEVER, readMove, WRITES_STOPPED, WRITES_STOPPED_CODE } from "./marks.ts";

/** An arbitrary number that nothing else on the server uses as a lock. Writers share it; what stops writes takes it. */
const GATE_LOCK = "7262837123021";
/** How long the source waits for open transactions, while new writes wait behind it. */
const LOCK_TIMEOUT: Milliseconds = 2_000;

const operations = ["insert", "update", "delete"] as const;

/** A row that was touched since the source records changes. */
export interface TouchedRow {
  readonly sequence: string;
  readonly table: string;
  readonly key: Row;
}

/**
 * One database of the source: PostgreSQL, or a file of SQLite. Triggers record the key of every row that a transaction
 * inserts, updates or deletes, in the same transaction, whichever process it belongs to. The same triggers reject writes
 * while the gate is closed.
 */
export class SourcePart {
  readonly database: CopyDatabase;
  readonly tables: readonly CopiedTable[];

  constructor(database: CopyDatabase, tables: readonly CopiedTable[]) {
    this.database = database;
    this.tables = tables;
  }

  state(): Promise<MoveState | undefined> {
    return readMove(this.database, "source");
  }

  /** Starts to record changes. Repeating it does no harm. Nothing may be copied before. */
  async record(moveId: string, other: string): Promise<void> {
    const { database } = this;
    await database.run(`
      ${MOVES_TABLE(database.dialect.name)};
      create table if not exists move_changes (
        sequence ${database.dialect.name === "sqlite" ? "integer primary key autoincrement" : "bigint generated always as identity primary key"},
        table_name text not null,
        row_key text not null
      );
      delete from moves where role = 'target' and ended_at is not null`);
    await database.rows(
      `insert into moves (id, move_id, role, other, started_at) values (1, ?, 'source', ?, ${nowIn(database.dialect.name)})
       on conflict (id) do nothing`,
      [moveId, other],
    );
    if (database.dialect.name === "sqlite") {
      await database.transaction("write", () => database.run(this.tables.map(sqliteTriggers).join("\n")));
    } else {
      await database.run(gateFunction);
      for (const table of this.tables) {
        await withLockRetries(() =>
          database.transaction("write", () =>
            database.run(`set local lock_timeout = ${LOCK_TIMEOUT}; ${postgresTriggers(table)}`),
          ),
        );
      }
    }
  }

  /** Stops recording, forgets the move, and accepts writes again. */
  async forget(): Promise<void> {
    const { database } = this;
    if (database.dialect.name === "sqlite") {
      const triggers = await database.rows(
        "select name from sqlite_schema where type = 'trigger' and (name like 'move\\_gate\\_%' escape '\\' or name like 'move\\_record\\_%' escape '\\')",
      );
      const drops = triggers.map(([name]) => `drop trigger ${quoted(name!)};`).join("\n");
      await database.transaction("write", () =>
        database.run(`${drops} drop table if exists move_changes; delete from moves where role = 'source';`),
      );
      return;
    }
    const functions = await database.rows(
      "select proname from pg_proc where pronamespace = current_schema()::regnamespace and proname like 'move\\_record\\_%'",
    );
    const names = ["move_gate", ...functions.map(([name]) => name!)];
    await withLockRetries(() =>
      database.transaction("write", () =>
        database.run(
          `set local lock_timeout = ${LOCK_TIMEOUT};
           ${names.map((name) => `drop function if exists ${quoted(name)} cascade;`).join("\n")}
           drop table if exists move_changes; delete from moves where role = 'source';`,
        ),
      ),
    );
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

  /**
   * Runs `work`, whose reads see one state of the database, and then deletes the touched rows that this state contains.
   * Numbers in PostgreSQL become visible out of order, so only the transaction that saw them can delete them.
   */
  async snapshot(work: () => Promise<void>): Promise<void> {
    const { database } = this;
    if (database.dialect.name === "postgres") {
      await database.transaction("snapshot", async () => {
        await work();
        await database.rows("delete from move_changes");
      });
      return;
    }
    let last: string | null = null;
    await database.transaction("snapshot", async () => {
      [[last = null] = []] = await database.rows("select max(sequence) from move_changes");
      await work();
    });
    // In pieces, because the service waits for the lock meanwhile.
    while (last !== null) {
      const { length } = await database.rows(
        `delete from move_changes where sequence in
         (select sequence from move_changes where sequence <= ? order by sequence limit 5000) returning 1`,
        [last],
      );
      if (length === 0) break;
    }
  }

  /** Rejects writes for at most `length`. Every transaction that began to write before has ended when this resolves. */
  async close(length: Milliseconds): Promise<void> {
    const { database } = this;
    const close = () =>
      this.#exclusively(async () => {
        await database.rows(
          `update moves set closed_until = ${nowIn(database.dialect.name)} + ${Math.ceil(length)} where id = 1 and ended_at is null`,
        );
      });
    await withLockRetries(close);
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
    return withLockRetries(() =>
      this.#exclusively(async () => {
        const now = nowIn(database.dialect.name);
        const ended = await database.rows(
          `update moves set closed_until = ${NEVER}, ended_at = coalesce(ended_at, ${now})
           where id = 1 and role = 'source' and closed_until > ${now} and not exists (select 1 from move_changes)
           returning 1`,
        );
        return ended.length === 1;
      }),
    );
  }

  /** Runs `work` in a transaction while no other transaction writes. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const { database } = this;
    return database.transaction("write", async () => {
      if (database.dialect.name === "postgres") {
        await database.run(`set local lock_timeout = ${LOCK_TIMEOUT}; select pg_advisory_xact_lock(${GATE_LOCK})`);
      }
      return work();
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

/** Retries a step that waited too long for a lock: writes go on in between. */
async function withLockRetries<T>(step: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await step();
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as { code?: string };
      if (code !== "55P03" && code !== "40P01") throw error;
      if (attempt === LOCK_ATTEMPTS) {
        throw new OperatorError(
          "PostgreSQL has transactions that write for longer than two seconds (see pg_stat_activity): end them, and run " +
            "this command again.",
          { cause: error },
        );
      }
    }
  }
}

const LOCK_ATTEMPTS = 10;

function sqliteTriggers({ name, key }: CopiedTable): string {
  const keyOf = (row: string) =>
    `json_array(${key.map((column) => `cast(${row}.${quoted(column)} as text)`).join(", ")})`;
  const recorded = {
    insert: `select ${literal(name)}, ${keyOf("new")}`,
    update: `select ${literal(name)}, ${keyOf("old")} union select ${literal(name)}, ${keyOf("new")}`,
    delete: `select ${literal(name)}, ${keyOf("old")}`,
  };
  return operations
    .map(
      (operation) => `
      create trigger if not exists ${quoted(`move_gate_${name}_${operation}`)} before ${operation} on ${quoted(name)}
        when (select closed_until from moves where id = 1) > ${nowIn("sqlite")}
        begin select raise(abort, ${literal(WRITES_STOPPED)}); end;
      create trigger if not exists ${quoted(`move_record_${name}_${operation}`)} after ${operation} on ${quoted(name)}
        begin insert into move_changes (table_name, row_key) ${recorded[operation]}; end;`,
    )
    .join("\n");
}

/** Each statement that writes shares the lock first, and then reads the gate, in a state that is newer than the lock. */
const gateFunction = `
  create or replace function move_gate() returns trigger language plpgsql as $$
  declare
    until bigint;
  begin
    perform pg_advisory_xact_lock_shared(${GATE_LOCK});
    execute format('select closed_until from %I.moves where id = 1', tg_table_schema) into until;
    if until > ${nowIn("postgres")} then
      raise exception using errcode = ${literal(WRITES_STOPPED_CODE)}, message = ${literal(WRITES_STOPPED)};
    end if;
    return null;
  end $$`;

function postgresTriggers({ name, key }: CopiedTable): string {
  const keyOf = (row: string) =>
    `json_build_array(${key.map((column) => `${row}.${quoted(column)}::text`).join(", ")})::text`;
  const insert = (row: string) =>
    `execute format('insert into %I.move_changes (table_name, row_key) values ($1, $2)', tg_table_schema)
       using ${literal(name)}, ${keyOf(row)};`;
  return `
    create or replace function ${quoted(`move_record_${name}`)}() returns trigger language plpgsql as $$
    begin
      if tg_op <> 'INSERT' then ${insert("old")} end if;
      if tg_op = 'INSERT' then ${insert("new")} end if;
      if tg_op = 'UPDATE' then
        if ${keyOf("old")} <> ${keyOf("new")} then ${insert("new")} end if;
      end if;
      return null;
    end $$;
    create or replace trigger ${quoted(`move_gate`)} before insert or update or delete on ${quoted(name)}
      for each statement execute function move_gate();
    create or replace trigger ${quoted(`move_record`)} after insert or update or delete on ${quoted(name)}
      for each row execute function ${quoted(`move_record_${name}`)}();`;
}
