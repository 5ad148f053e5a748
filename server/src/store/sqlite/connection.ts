import { DatabaseSync, type StatementSync } from "node:sqlite";
import { CompiledQuery, Kysely, SqliteDialect } from "kysely";
import type { Milliseconds } from "../../clock/clock.ts";
import { systemClock } from "../../clock/system.ts";
import type { Schema } from "../schema.ts";
import { type Procedures, Rollback, type Sql } from "../store.ts";

export interface SqliteConnection {
  readonly sql: Sql;
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Moves what was committed from the log into the file, once it is worth it; for when nobody waits for an answer. */
  checkpoint(): void;
  close(): void;
}

const STATEMENTS_MAX = 500;
/** Pages that wait in the log before a checkpoint moves them: so few that it is soon done. SQLite itself waits for 1,000. */
const CHECKPOINT_PAGES = 100;

/**
 * What a commit outlives: `full` the loss of power, because the log is synced each time; `normal` the end of the process,
 * and after a loss of power an earlier state, whole in itself, is back.
 */
export type Durability = "full" | "normal";

/** Values of `pragma synchronous`. */
const SYNCHRONOUS: Readonly<Record<Durability, number>> = { normal: 1, full: 2 };

/**
 * Lets others have the core between two statements, once a thread has worked for a while on end. A system that shares a
 * core among threads lets a busy one run until its next tick, 4 ms as a rule, for which every request would wait.
 */
export class CpuYield {
  static readonly #workMs: Milliseconds = 0.5;
  static readonly #restMs: Milliseconds = 0.05;
  static readonly #nothing = new Int32Array(new SharedArrayBuffer(4));
  #workedFrom = 0;

  /** Begins to work after having waited. */
  begin(): void {
    this.#workedFrom = systemClock.monotonic();
  }

  rest(): void {
    if (systemClock.monotonic() - this.#workedFrom < CpuYield.#workMs) return;
    Atomics.wait(CpuYield.#nothing, 0, 0, CpuYield.#restMs);
    this.begin();
  }
}

/**
 * Opens the file for one thread: for writing, which makes it when it is absent, or for reading only.
 *
 * The promise that an acknowledged write survives a power loss rests on `synchronous`, so a writing connection checks
 * what it got.
 */
export function openSqliteConnection(
  file: string,
  mode: "read" | "write",
  {
    durability = "full",
    turn,
    functions = {},
  }: { durability?: Durability; turn?: CpuYield; functions?: Procedures["functions"] } = {},
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

  const db = new Kysely<Schema>({
    dialect: new SqliteDialect({ database: asKyselyDatabase(database, turn) }),
  });
  const sql: Sql = { db, dialect: "sqlite" };
  const logState = database.prepare("pragma wal_checkpoint(noop)");
  const moveLog = database.prepare("pragma wal_checkpoint(passive)");

  return {
    sql,
    async transaction(work) {
      // Immediate: a lock taken late could only fail, after the work was done.
      database.exec("begin immediate");
      try {
        const result = await work(sql);
        database.exec(result instanceof Rollback ? "rollback" : "commit");
        return result;
      } catch (error) {
        if (database.isTransaction) database.exec("rollback");
        throw error;
      }
    },
    checkpoint() {
      try {
        const { log, checkpointed } = logState.get() as { log: number; checkpointed: number };
        if (log - checkpointed < CHECKPOINT_PAGES) return;
        turn?.rest();
        moveLog.get();
      } catch {
        // A full disk, for one. What was committed is as safe in the log, and the next commit leads here again.
      }
    },
    close: () => database.close(),
  };
}

function pragma(database: DatabaseSync, name: string): unknown {
  return Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
}

/** What Kysely's dialect expects of a SQLite library, on top of Node's own. Prepared statements are kept by text. */
function asKyselyDatabase(database: DatabaseSync, turn: CpuYield | undefined) {
  const statements = new Map<string, ReturnType<typeof asKyselyStatement>>();
  return {
    close: () => database.close(),
    prepare(text: string) {
      let statement = statements.get(text);
      if (!statement) {
        // Statements with a list in them come in many lengths; forgetting all is cheaper than choosing one.
        if (statements.size >= STATEMENTS_MAX) statements.clear();
        statement = asKyselyStatement(database.prepare(text), turn);
        statements.set(text, statement);
      }
      return statement;
    },
  };
}

function asKyselyStatement(statement: StatementSync, turn: CpuYield | undefined) {
  const run = <R>(method: (...parameters: never[]) => R, parameters: readonly unknown[]): R => {
    const result = method.apply(statement, parameters as never[]);
    turn?.rest();
    return result;
  };
  return {
    reader: statement.columns().length > 0,
    all: (parameters: readonly unknown[]) => run(statement.all, parameters),
    run: (parameters: readonly unknown[]) => run(statement.run, parameters),
    iterate: (parameters: readonly unknown[]) => run(statement.iterate, parameters),
  };
}

/** Runs one statement outside the query builder. */
export function raw(sql: Sql, text: string): Promise<unknown> {
  return sql.db.executeQuery(CompiledQuery.raw(text));
}
