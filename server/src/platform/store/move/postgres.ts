import type pg from "pg";
import { OperatorError } from "../../../log/operator-error.ts";
import type { FoundColumn } from "../catalog.ts";
import { POSTGRES_NOW } from "../postgres/clock.ts";
import { postgresDialect } from "../postgres/dialect.ts";
import { SafeClient } from "../postgres/session.ts";
import { type CopiedTable, type CopyDatabase, columnNames, listed, quoted, type Row, type Value } from "./database.ts";
import { PostgresFilling } from "./postgres-filling.ts";
import { PostgresRecording } from "./postgres-recording.ts";

const CONNECT_TIMEOUT = 10_000;
/** An arbitrary number that nothing else on the server uses as a lock: one process moves a database. */
const MOVE_LOCK = "7262837123022";

/**
 * Opens a connection to PostgreSQL. Its statements have no timeout: building an index takes as long as it takes.
 *
 * @throws {OperatorError}
 */
export async function openPostgresCopy(url: string): Promise<CopyDatabase> {
  const client = new SafeClient({
    connectionString: url,
    application_name: "latchkey-migrate-store",
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    keepAlive: true,
    // Every value in the text form that PostgreSQL sends.
    types: { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig,
  });
  const database = new PostgresCopy(client);
  await database.connect();
  return database;
}

class PostgresCopy implements CopyDatabase {
  readonly dialect = postgresDialect;
  readonly recording = new PostgresRecording(this);
  readonly filling = new PostgresFilling(this);
  readonly now = POSTGRES_NOW;
  readonly numbering = "bigint generated always as identity primary key";
  readonly tableOptions = "";
  readonly #client: pg.Client;

  constructor(client: pg.Client) {
    this.#client = client;
  }

  async connect(): Promise<void> {
    try {
      await this.#client.connect();
      await this.#client.query(
        "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set lock_timeout = 0; " +
          "set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3",
      );
    } catch (error) {
      throw failure(error);
    }
  }

  async rows(text: string, values: Row = []): Promise<Value[][]> {
    let place = 0;
    const numbered = values.length === 0 ? text : text.replaceAll("?", () => `$${++place}`);
    try {
      const { rows } = await this.#client.query<Value[]>({ text: numbered, values: [...values], rowMode: "array" });
      return rows;
    } catch (error) {
      throw failure(error);
    }
  }

  async run(text: string): Promise<void> {
    try {
      await this.#client.query(text);
    } catch (error) {
      throw failure(error);
    }
  }

  async transaction<T>(kind: "write" | "snapshot", work: () => Promise<T>): Promise<T> {
    await this.run(kind === "write" ? "begin" : "begin isolation level repeatable read");
    try {
      const result = await work();
      await this.run("commit");
      return result;
    } catch (error) {
      await this.#client.query("rollback").catch(() => {});
      throw error;
    }
  }

  async insert(table: CopiedTable, rows: readonly Row[]): Promise<void> {
    const names = columnNames(table);
    await this.rows(
      `insert into ${quoted(table.name)} (${listed(names)}) overriding system value
       select ${listed(names)} from ${asTable(table.columns)}`,
      [asJson(names, rows)],
    );
  }

  find(table: CopiedTable, keys: readonly Row[]): Promise<Value[][]> {
    return this.#byKey(table, keys, (columns, given, matches) => {
      return `select ${columns} from ${quoted(table.name)} t join ${given} on ${matches}`;
    });
  }

  remove(table: CopiedTable, keys: readonly Row[]): Promise<Value[][]> {
    return this.#byKey(table, keys, (columns, given, matches) => {
      return `delete from ${quoted(table.name)} t using ${given} where ${matches} returning ${columns}`;
    });
  }

  async lock(): Promise<boolean> {
    const [row] = await this.rows(`select pg_try_advisory_lock(${MOVE_LOCK})`);
    return row![0] === "t";
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
  }

  #byKey(
    table: CopiedTable,
    keys: readonly Row[],
    statement: (columns: string, given: string, matches: string) => string,
  ): Promise<Value[][]> {
    const keyColumns = table.key.map((name) => table.columns.find((column) => column.name === name)!);
    const columns = columnNames(table)
      .map((name) => `t.${quoted(name)}`)
      .join(", ");
    const matches = table.key.map((name) => `t.${quoted(name)} = given.${quoted(name)}`).join(" and ");
    return this.rows(statement(columns, asTable(keyColumns), matches), [asJson(table.key, keys)]);
  }
}

/** Rows from the only value of the statement. */
function asTable(columns: readonly FoundColumn[]): string {
  // As the columns of all tables, which are compared with them.
  const types = { text: 'text collate "C"', bigint: "bigint" };
  const described = columns.map(({ name, type }) => `${quoted(name)} ${types[type]}`).join(", ");
  return `json_to_recordset(?::json) as given(${described})`;
}

function asJson(names: readonly string[], rows: readonly Row[]): string {
  return JSON.stringify(rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]]))));
}

function failure(error: unknown): OperatorError {
  const { code, message } = error as pg.DatabaseError;
  return new OperatorError(`PostgreSQL reports: ${message}${code === undefined ? "" : ` (${code})`}.`, {
    cause: error,
  });
}
