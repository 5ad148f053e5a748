import { DatabaseSync, type StatementSync } from "node:sqlite";
import { OperatorError } from "../../../log/operator-error.ts";
import { sqliteDialect } from "../sqlite/dialect.ts";
import { type CopiedTable, type CopyDatabase, columnNames, listed, quoted, type Row, type Value } from "./database.ts";
import { sqliteFilling } from "./sqlite-filling.ts";
import { SqliteRecording } from "./sqlite-recording.ts";

/** Longer than a transaction of the service, which writes to the same file. */
const BUSY_TIMEOUT = 10_000;
const SQLITE_FULL = 13;

/** Opens an embedded database, which a service may use at the same time. Foreign keys are not enforced. */
export function openSqliteCopy(file: string): CopyDatabase {
  return new SqliteCopy(file);
}

class SqliteCopy implements CopyDatabase {
  readonly dialect = sqliteDialect;
  readonly recording = new SqliteRecording(this);
  readonly filling = sqliteFilling;
  readonly now = "cast(unixepoch('now', 'subsec') * 1000 as integer)";
  readonly numbering = "integer primary key autoincrement";
  readonly tableOptions = " strict";
  readonly #file: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(file: string) {
    this.#file = file;
    this.#database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT, enableForeignKeyConstraints: false });
    this.#database.exec("pragma journal_mode = wal; pragma synchronous = full; pragma temp_store = memory;");
  }

  async rows(text: string, values: Row = []): Promise<Value[][]> {
    return this.#use(() => this.#all(this.#prepare(text), values));
  }

  async run(text: string): Promise<void> {
    this.#use(() => this.#database.exec(text));
  }

  async transaction<T>(kind: "write" | "snapshot", work: () => Promise<T>): Promise<T> {
    await this.run(kind === "write" ? "begin immediate" : "begin");
    try {
      // A deferred transaction sees the state of its first read.
      if (kind === "snapshot") await this.rows("select count(*) from sqlite_schema");
      const result = await work();
      await this.run("commit");
      return result;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("rollback");
      throw error;
    }
  }

  async insert(table: CopiedTable, rows: readonly Row[]): Promise<void> {
    const names = columnNames(table);
    const places = names.map(() => "?").join(", ");
    const statement = this.#prepare(`insert into ${quoted(table.name)} (${listed(names)}) values (${places})`);
    this.#use(() => {
      for (const row of rows) statement.run(...row);
    });
  }

  async find(table: CopiedTable, keys: readonly Row[]): Promise<Value[][]> {
    const columns = listed(columnNames(table));
    return this.#each(`select ${columns} from ${quoted(table.name)} where ${matches(table)}`, keys);
  }

  async remove(table: CopiedTable, keys: readonly Row[]): Promise<Value[][]> {
    const columns = listed(columnNames(table));
    return this.#each(`delete from ${quoted(table.name)} where ${matches(table)} returning ${columns}`, keys);
  }

  /** Files are locked by their paths. */
  async lock(): Promise<boolean> {
    return true;
  }

  async close(): Promise<void> {
    this.#database.close();
  }

  #each(text: string, keys: readonly Row[]): Value[][] {
    const statement = this.#prepare(text);
    return this.#use(() => keys.flatMap((key) => this.#all(statement, key)));
  }

  #all(statement: StatementSync, values: Row): Value[][] {
    const rows = statement.all(...values) as unknown as (string | bigint | null)[][];
    return rows.map((row) => row.map((value) => (value === null ? null : String(value))));
  }

  #prepare(text: string): StatementSync {
    return this.#use(() => {
      let statement = this.#statements.get(text);
      if (!statement) {
        statement = this.#database.prepare(text);
        statement.setReadBigInts(true);
        statement.setReturnArrays(true);
        this.#statements.set(text, statement);
      }
      return statement;
    });
  }

  #use<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      const { errcode, errstr } = error as { errcode?: number; errstr?: string };
      if (errcode === undefined) throw error;
      const remedy = (errcode & 0xff) === SQLITE_FULL ? ". Make room on the disk" : "";
      throw new OperatorError(`${this.#file}: SQLite reports: ${(error as Error).message || errstr}${remedy}.`, {
        cause: error,
      });
    }
  }
}

function matches({ key }: CopiedTable): string {
  return key.map((name) => `${quoted(name)} = ?`).join(" and ");
}
