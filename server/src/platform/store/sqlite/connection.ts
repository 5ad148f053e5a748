import { DatabaseSync, type StatementSync } from "node:sqlite";
import { CompiledQuery, Kysely, SqliteDialect } from "kysely";
import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { systemClock } from "../../../../../engine/src/clock/system.ts";
import type { Schema } from "../schema.ts";
import { type Procedures, Rollback, type Sql, type SqlValue } from "../store.ts";
import { sqliteDialect } from "./dialect.ts";
import { SyncMark } from "./write-health.ts";

export interface SqliteConnection {
  readonly sql: Sql;
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Moves commits from the log into the file if there are enough of them. Call it after the reply was sent. */
  checkpoint(): void;
  close(): void;
}

const STATEMENTS_MAX = 500;
/**
 * Pages in the log that start a checkpoint: few, so that each one is short. SQLite's default is 1,000. Where a transaction
 * writes more, as an import does, as many as several of them: each checkpoint waits for the disk twice.
 */
const CHECKPOINT_PAGES = 100;
const CHECKPOINT_PAGES_MAX = 1_000;
const CHECKPOINT_TRANSACTIONS = 3;

/**
 * What a commit survives. `full`: a power loss, because each commit syncs the log. `normal`: the end of the process; after
 * a power loss the database may return to an earlier consistent state.
 */
export type Durability = "full" | "normal";

/** Values of `pragma synchronous`. */
const SYNCHRONOUS: Readonly<Record<Durability, number>> = { normal: 1, full: 2 };

/**
 * Yields the CPU between two statements after a thread has worked for some time. When threads share a core, the scheduler
 * lets a busy thread run until its next tick, typically 4 ms, and every request would wait for that.
 */
export class CpuYield {
  static readonly #workMs: Milliseconds = 0.5;
  /** The system makes 0.07 of it. */
  static readonly #restMs: Milliseconds = 0.001;
  static readonly #nothing = new Int32Array(new SharedArrayBuffer(4));
  #workedFrom = 0;

  /** Starts the measurement, after the thread was idle. */
  begin(): void {
    this.#workedFrom = systemClock.monotonic();
  }

  /** Sleeps briefly if the thread has worked long enough. */
  rest(): void {
    if (systemClock.monotonic() - this.#workedFrom < CpuYield.#workMs) return;
    Atomics.wait(CpuYield.#nothing, 0, 0, CpuYield.#restMs);
    this.begin();
  }
}

/**
 * Opens the file for one thread, for reading or for writing; writing creates a missing file.
 *
 * A writing connection checks the effective value of `synchronous`, because acknowledged writes must survive a power
 * loss.
 */
export function openSqliteConnection(
  file: string,
  mode: "read" | "write",
  {
    durability = "full",
    cpuYield,
    functions = {},
    syncs = new SyncMark(),
  }: { durability?: Durability; cpuYield?: CpuYield; functions?: Procedures["functions"]; syncs?: SyncMark } = {},
): SqliteConnection {
  const database = new DatabaseSync(file, { timeout: 5_000, enableForeignKeyConstraints: true });
  if (mode === "write") {
    database.exec(`pragma journal_mode = wal; pragma synchronous = ${durability};`);
    const synchronous = pragma(database, "synchronous");
    if (synchronous !== SYNCHRONOUS[durability]) {
      const needed = `${SYNCHRONOUS[durability]} (${durability.toUpperCase()})`;
      throw new Error(`SQLite runs with synchronous = ${synchronous}; writes need ${needed}`);
    }
  } else {
    database.exec("pragma query_only = on;");
  }
  database.exec("pragma temp_store = memory; pragma cache_size = -32768;");
  for (const [name, run] of Object.entries(functions)) database.function(name, run as never);

  const changes = new ChangeCounts();
  const prepared = asKyselyDatabase(database, changes, cpuYield);
  const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database: prepared }) });
  const each: Sql["each"] = ({ statement: text }, rows) => {
    const statement = prepared.prepare(text);
    return rows.reduce((changes, row) => changes + Number(statement.run(row).changes), 0);
  };
  const listing = new StatementCache((text) => {
    const statement = database.prepare(text);
    statement.setReturnArrays(true);
    return statement;
  });
  const lists: Sql["lists"] = (text, parameters) => {
    const rows = listing.get(text).all(...(parameters as SqlValue[])) as unknown as SqlValue[][];
    cpuYield?.rest();
    return rows;
  };
  // Changes with each commit of another connection, also of another process, but not with those of this one.
  const foreignCommits = database.prepare("pragma data_version");
  const versionOf: Sql["versionOf"] = (table) => `${changes.of(table).count} ${foreignCommits.get()?.data_version}`;
  const sql: Sql = { db, dialect: sqliteDialect, each, lists, versionOf };
  const logState = database.prepare("pragma wal_checkpoint(noop)");
  const moveLog = database.prepare("pragma wal_checkpoint(passive)");
  /** The pages in the log after the last transaction. */
  let logged = 0;

  return {
    sql,
    async transaction(work) {
      // Immediate: a lock that is acquired later could fail after the work is done.
      database.exec("begin immediate");
      try {
        const result = await work(sql);
        if (result instanceof Rollback) database.exec("rollback");
        else syncs.during(() => database.exec("commit"));
        return result;
      } catch (error) {
        if (database.isTransaction) database.exec("rollback");
        throw error;
      }
    },
    checkpoint() {
      try {
        const { log, checkpointed } = logState.get() as { log: number; checkpointed: number };
        const written = log > logged ? log - logged : log;
        logged = log;
        const several = Math.min(CHECKPOINT_TRANSACTIONS * written, CHECKPOINT_PAGES_MAX);
        if (log - checkpointed < Math.max(CHECKPOINT_PAGES, several)) return;
        cpuYield?.rest();
        syncs.during(() => moveLog.get());
      } catch {
        // For example a full disk. Commits are safe in the log, and the next commit tries again.
      }
    },
    close: () => database.close(),
  };
}

function pragma(database: DatabaseSync, name: string): unknown {
  return Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
}

/** Prepared statements by text. */
class StatementCache<Statement> {
  readonly #prepare: (text: string) => Statement;
  readonly #statements = new Map<string, Statement>();

  constructor(prepare: (text: string) => Statement) {
    this.#prepare = prepare;
  }

  get(text: string): Statement {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      // Clearing the cache is simpler than evicting one statement, and rare.
      if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear();
      statement = this.#prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  clear(): void {
    this.#statements.clear();
  }
}

/** How many statements have changed the rows of a table, or tried it. */
interface ChangeCount {
  count: number;
}

/** Finds the tables that a statement changes. */
const CHANGED_TABLES =
  /\b(?:update(?:\s+or\s+\w+)?|(?:insert(?:\s+or\s+\w+)?|replace)\s+into|delete\s+from)\s+"?(\w+)/gi;

/** Finds a statement that changes the columns of a table. */
const CHANGES_SCHEMA = /^\s*(?:alter|drop)\b/i;

/** The statements of a connection that change rows, by table. */
class ChangeCounts {
  readonly #counts = new Map<string, ChangeCount>();

  of(table: string): ChangeCount {
    let count = this.#counts.get(table);
    if (!count) {
      count = { count: 0 };
      this.#counts.set(table, count);
    }
    return count;
  }

  /** Those that a statement increases. */
  by(text: string): ChangeCount[] {
    return [...text.matchAll(CHANGED_TABLES)].map(([, table = ""]) => this.of(table));
  }
}

/** Adapts Node's SQLite to the interface of Kysely's dialect. */
function asKyselyDatabase(database: DatabaseSync, changes: ChangeCounts, cpuYield: CpuYield | undefined) {
  const prepare = (text: string) => asKyselyStatement(database.prepare(text), changes.by(text), cpuYield);
  const statements = new StatementCache(prepare);
  return {
    close: () => database.close(),
    prepare(text: string) {
      if (!CHANGES_SCHEMA.test(text)) return statements.get(text);
      // After it, `*` has other columns in those that are prepared.
      statements.clear();
      return prepare(text);
    },
  };
}

function asKyselyStatement(statement: StatementSync, changes: readonly ChangeCount[], cpuYield: CpuYield | undefined) {
  const run = <R>(method: (...parameters: never[]) => R, parameters: readonly unknown[]): R => {
    for (const change of changes) change.count++;
    const result = method.apply(statement, parameters as never[]);
    cpuYield?.rest();
    return result;
  };
  // The objects of node:sqlite are dictionaries, whose members and copies take several times as long.
  statement.setReturnArrays(true);
  const names = statement.columns().map(({ name }) => name);
  const rowOf = (values: readonly unknown[]) => {
    const row: Record<string, unknown> = {};
    let i = 0;
    for (const name of names) row[name] = values[i++];
    return row;
  };
  return {
    reader: names.length > 0,
    all: (parameters: readonly unknown[]) => (run(statement.all, parameters) as unknown as unknown[][]).map(rowOf),
    run: (parameters: readonly unknown[]) => run(statement.run, parameters),
    *iterate(parameters: readonly unknown[]) {
      for (const values of run(statement.iterate, parameters)) yield rowOf(values as unknown as unknown[]);
    },
  };
}

/** Runs one statement outside the query builder. */
export function raw(sql: Sql, text: string): Promise<unknown> {
  return sql.db.executeQuery(CompiledQuery.raw(text));
}
