import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { Connection, Dialect } from "./dialect.ts";
import type { MonthlyTable } from "./monthly-tables.ts";

/** An open connection or transaction, and what its database does in its own way. */
export interface Sql extends Connection {
  readonly dialect: Dialect;
  /**
   * Runs a statement once for each row of its parameters, and returns how many rows it changed. Only where a statement is the
   * call of a function: then this takes half of the time of reading all rows from one parameter.
   */
  readonly each?: ((write: EachWrite, rows: readonly (readonly SqlValue[])[]) => number) | undefined;
  /**
   * Another text than before if rows of the table may have changed since. Only where it takes no query of the table: of the
   * embedded database, whose connection counts the statements that change it, and knows of commits of other connections.
   */
  readonly versionOf?: ((table: string) => string) | undefined;
  /** Runs a query, and returns its rows as lists. Call `listsOf`, which does it on both databases. */
  readonly lists?: ((query: string, parameters: readonly unknown[]) => SqlValue[][]) | undefined;
}

export type SqlValue = string | number | null;

/** A statement that writes one row of a table. */
export interface EachWrite {
  readonly statement: string;
  readonly table: string;
  /** Whether the row is a new one. */
  readonly inserts: boolean;
}

/**
 * Functions that run on the thread of the database, by name. A transaction is one message to that thread and not one per
 * statement. A procedure gets the connection and one argument; argument and result must be clonable.
 */
export interface Procedures {
  readonly reading: Readonly<Record<string, Procedure>>;
  readonly writing: Readonly<Record<string, Procedure>>;
  /** Functions that SQL can call by name on embedded SQLite, for example in triggers. */
  readonly functions?: Readonly<Record<string, SqlFunction>>;
  /** The pool of PostgreSQL connections for a procedure; `control` by default. */
  readonly pools?: Readonly<Record<string, PoolName>>;
  /** Whether a writing procedure may run a statement for longer than others on PostgreSQL; none by default. */
  readonly mayTakeLong?: (name: string, argument: never) => boolean;
  /** Whether the schema has `transaction_markers`, which determine the outcome of a COMMIT on PostgreSQL without a reply. */
  readonly hasMarkers?: boolean;
}

/**
 * Kinds of work with separate connections, so that none waits for another: `feed` reads `changes`, `lookup` reads cache
 * misses of verifications, `ledger` spends credits, `metered` writes for other metered calls, `maintenance` migrates and
 * prunes, `layout` builds indexes and checks whole tables, `control` does everything else.
 */
export type PoolName = "feed" | "lookup" | "ledger" | "metered" | "maintenance" | "layout" | "control";

type Named<Functions> = keyof { [Name in keyof Functions as string extends Name ? never : Name]: unknown };

/** The pools of procedures, by names that exist: a misspelt one would silently use the pool `control`. */
export type PoolsOf<Of extends Pick<Procedures, "reading" | "writing">> = {
  readonly [Name in Named<Of["reading"]> | Named<Of["writing"]>]?: PoolName;
};

/** A function that SQL can call. */
export type SqlFunction = (...values: never[]) => string | number | null;

// biome-ignore lint/suspicious/noExplicitAny: the types of `Store` check arguments by procedure name.
export type Procedure = (sql: Sql, argument: any, ask: Ask<any, any>) => Promise<unknown>;

/**
 * How a writing procedure asks its caller a question while its transaction stays open. Rejects when the caller fails to
 * answer, so that the transaction is rolled back.
 */
export type Ask<Question, Answer> = (question: Question) => Promise<Answer>;

/** Returned by a writing procedure to roll its transaction back and still return `value`. */
export class Rollback<T> {
  readonly value: T;
  constructor(value: T) {
    this.value = value;
  }
}

type Argument<P> = P extends (sql: Sql, argument: infer A, ...rest: never[]) => unknown ? A : never;
type Caller<P> = P extends (sql: Sql, argument: never, ask: Ask<infer Question, infer Answer>) => unknown
  ? (question: Question) => Answer | Promise<Answer>
  : undefined;
type Answer<P> = P extends (...args: never[]) => infer R ? Unwrapped<Awaited<R>> : never;
type Unwrapped<R> = R extends Rollback<infer T> ? T : R;

/** Called after each procedure with its time in the queue and its run time, in milliseconds. */
export type StoreObserver = (name: string, waitedMs: number, ranMs: number) => void;

/** A database that runs procedures: embedded SQLite or PostgreSQL. */
export interface Store<P extends Procedures = Procedures> {
  /** Whether the database is a file of this process, so that no other node uses it. */
  readonly isEmbedded: boolean;
  /** The tables that the database divides by month. */
  readonly monthlyTables: readonly MonthlyTable[];
  /** Runs a reading procedure, which sees only committed data. */
  read<N extends keyof P["reading"] & string>(
    name: N,
    argument: Argument<P["reading"][N]>,
  ): Promise<Answer<P["reading"][N]>>;
  /**
   * Runs a writing procedure in one transaction. Resolves after a durable commit; rejects when the transaction was rolled
   * back. `answer` answers the procedure's `ask`.
   */
  transact<N extends keyof P["writing"] & string>(
    name: N,
    argument: Argument<P["writing"][N]>,
    answer?: Caller<P["writing"][N]>,
  ): Promise<Answer<P["writing"][N]>>;
  /**
   * Claims the database for this process, or for a group of processes, until the claim is released. Undefined when
   * another process has claimed it and counts limits separately.
   */
  claim(options: ClaimOptions): Promise<Claim | undefined>;
  /** The transactions that were asked for and have not ended. */
  readonly writesInFlight: number;
  /** Why the database stopped working until the process restarts; undefined while it works. */
  readonly failure?: string | undefined;
  /** What writes say about the disk; undefined if the database is another program's. */
  readonly writes?: WriteHealth | undefined;
  /** Calls `wake` soon after another process committed a change, if the database supports notifications. */
  listen(wake: () => void): void;
  close(): Promise<void>;
}

/**
 * What is wrong with a disk. `full`: it has no room; `read-only`: the file system takes no writes; `failing`: it reports
 * errors; `slow`: a sync takes seconds.
 */
export type StorageTrouble = "full" | "read-only" | "failing" | "slow";

/** How the disk of an embedded database takes writes. */
export interface WriteHealth {
  /** Writes that the file system refused, since the start. */
  readonly refused: number;
  /** Syncs that took a second or longer, since the start. */
  readonly slowSyncs: number;
  /** The trouble of the last 30 seconds; after a refused write at least until `recover`. */
  readonly trouble: StorageTrouble | undefined;
  /** Whether a write was refused since the last call of `recover`. */
  readonly isRefusing: boolean;
  /** Looks at the sync that is under way. Call it several times a second. */
  observe(): void;
  /** A write that tries the disk has succeeded. Others may have changed nothing. */
  recover(): void;
}

export interface ClaimOptions {
  /** Whether this process shares its counters with others in one Redis. Embedded SQLite always has one process. */
  shared: boolean;
  /** The unique name of this process. The next process on the same data folder has another name. */
  holder: string;
  /** Names of earlier processes on this data folder. All of them have ended. */
  formerHolders: readonly string[];
  /** How long a process that counts alone continues after it can no longer verify its claim. */
  lease: Milliseconds;
  /** Another process did not release the database and may still be counting. It is taken over after this time. */
  onWait(length: Milliseconds): void;
  /** The connection that holds the claim is lost. */
  onLost(): void;
  /** The claim is held again, or for the first time after `onWait`. */
  onRegained(): void;
  /** Another process has claimed the database. This process must not count and cannot regain the claim. */
  onTaken(): void;
}

/** A mark in Redis by which members of a group check that they use the same Redis. */
export interface GroupMark {
  read(): Promise<string | null>;
  write(mark: string): Promise<void>;
}

/** The right of a process to count limits on a database. */
export interface Claim {
  /** Starts to hold the claim. Call it once, after the migrations. */
  settle(): Promise<void>;
  /** Whether no other process can be counting separately. Checked at every call with limits. */
  readonly mayCount: boolean;
  /** What is wrong with the claim, for readiness; undefined if nothing is. */
  readonly trouble: string | undefined;
  /** Whether this process found the mark of the group in its Redis, or wrote it there. */
  readonly isMember: boolean;
  /** Checks that the group counts in this Redis; rejects while that is uncertain. */
  join(mark: GroupMark): Promise<void>;
  /** Call it after the last limit was counted. */
  release(): Promise<void>;
}
