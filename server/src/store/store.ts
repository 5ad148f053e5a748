import type { Kysely } from "kysely";
import type { Milliseconds } from "../clock/clock.ts";
import type { Schema } from "./schema.ts";

export type Dialect = "sqlite" | "postgres";

/** An open connection or transaction, and which of the two languages it speaks. */
export interface Sql {
  readonly db: Kysely<Schema>;
  readonly dialect: Dialect;
}

/**
 * What runs beside the database, by name. A transaction is one message to the thread that owns the connection, not a
 * conversation with it, so whatever a caller wants done is a procedure: it gets the connection and one argument that
 * can be copied, and answers with something that can be copied.
 */
export interface Procedures {
  readonly reading: Readonly<Record<string, Procedure>>;
  readonly writing: Readonly<Record<string, Procedure>>;
  /** What SQL may call by name on embedded SQLite, in triggers above all. */
  readonly functions?: Readonly<Record<string, SqlFunction>>;
  /** Which lane of PostgreSQL's connections a procedure takes; `control` when it is not named. */
  readonly lanes?: Readonly<Record<string, LaneName>>;
  /** Whether the schema has `transaction_markers`, which decide a COMMIT on PostgreSQL whose answer was lost. */
  readonly hasMarkers?: boolean;
}

/**
 * Kinds of work that do not wait for each other's connections: `feed` reads `changes`, `lookup` reads what a
 * verification misses, `ledger` spends credits, `metered` writes for other metered calls, `maintenance` migrates and
 * deletes what is old, `control` does everything else.
 */
export type LaneName = "feed" | "lookup" | "ledger" | "metered" | "maintenance" | "control";

/** Its result is the value of the call. */
export type SqlFunction = (...values: never[]) => string | number | null;

// biome-ignore lint/suspicious/noExplicitAny: arguments are checked where a store is called, by name.
export type Procedure = (sql: Sql, argument: any, ask: Ask<any, any>) => Promise<unknown>;

/**
 * How a writing procedure turns to its caller in the middle of its transaction, which stays open meanwhile. Rejects
 * when the caller cannot answer, so that nothing is kept.
 */
export type Ask<Question, Answer> = (question: Question) => Promise<Answer>;

/** Returned by a writing procedure that wants none of its writes kept, and `value` answered all the same. */
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
type Answer<P> = P extends (...args: never[]) => infer R ? Settled<Awaited<R>> : never;
type Settled<R> = R extends Rollback<infer T> ? T : R;

/** Hears how long each procedure waited for its turn and how long it ran, in milliseconds. */
export type StoreObserver = (name: string, waitedMs: number, ranMs: number) => void;

/** A database that runs procedures: embedded SQLite or PostgreSQL. */
export interface Store<P extends Procedures = Procedures> {
  readonly dialect: Dialect;
  /** Runs a reading procedure. What it sees was committed before it began. */
  read<N extends keyof P["reading"] & string>(
    name: N,
    argument: Argument<P["reading"][N]>,
  ): Promise<Answer<P["reading"][N]>>;
  /**
   * Runs a writing procedure in one transaction; resolves after its commit is durable, rejects when nothing was kept.
   * `answer` is what the procedure's `ask` reaches.
   */
  transact<N extends keyof P["writing"] & string>(
    name: N,
    argument: Argument<P["writing"][N]>,
    answer?: Caller<P["writing"][N]>,
  ): Promise<Answer<P["writing"][N]>>;
  /**
   * Takes the database for this process, alone or together with others, until the claim is released. Undefined when
   * another process has it that would count apart from this one.
   */
  claim(options: ClaimOptions): Promise<Claim | undefined>;
  /** Why this database works no more until the process is started again; undefined while it does. */
  readonly failure?: string | undefined;
  /** Calls `wake` soon after another process committed a change, where the database can say so. */
  listen(wake: () => void): void;
  close(): Promise<void>;
}

export interface ClaimOptions {
  /** Whether this process counts together with others, in one Redis. Embedded SQLite has one process in any case. */
  shared: boolean;
  /** Names this process; no other one has the same name, nor has the next on this data folder. */
  holder: string;
  /** Names of earlier processes on this data folder. All of them have ended. */
  formerHolders: readonly string[];
  /** How long a process that counts alone goes on when it no longer knows that it has the database. */
  lease: Milliseconds;
  /** The database may still be counted on by a process that did not release it; it is taken over after this time. */
  onWait(length: Milliseconds): void;
  /** The connection that holds the claim is lost. */
  onLost(): void;
  /** The claim is held again, or for the first time after `onWait`. */
  onRegained(): void;
  /** Another process has the database. This one must not count and cannot get it back. */
  onTaken(): void;
}

/** Where the members of a group leave their mark, so that each can tell whether it counts in the same Redis. */
export interface GroupMark {
  read(): Promise<string | null>;
  write(mark: string): Promise<void>;
}

/** The right of a process to count limits on a database. */
export interface Claim {
  /** Begins to hold the claim; to be called once, after the migrations. */
  settle(): Promise<void>;
  /** Whether no process can be counting apart from this one. Asked at every call that has limits. */
  readonly mayCount: boolean;
  /** What is wrong with the claim, for readiness; undefined while all is well. */
  readonly trouble: string | undefined;
  /** Whether the mark of the group was found in this process's Redis, or left there by it. */
  readonly isMember: boolean;
  /** Makes sure that this Redis is the one in which the group counts; rejects as long as that is not known. */
  join(mark: GroupMark): Promise<void>;
  /** To be called when nothing is counted any more. */
  release(): Promise<void>;
}

/** The database cannot be reached, or did not answer in time. Nothing was changed. */
export class StoreUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoreUnavailable";
  }
}
