import type {
  AliasableExpression,
  AliasedRawBuilder,
  CompiledQuery,
  Expression,
  Kysely,
  RawBuilder,
  SelectQueryBuilder,
} from "kysely";
import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { Changes, ChangesCursor, RecentChanges } from "../../../../engine/src/directory/changes.ts";
import type { MonthlyTable, PartitionState, PartitionStep } from "./monthly-tables.ts";
import type { Schema } from "./schema.ts";

/** An open connection or transaction. */
export interface Connection {
  readonly db: Kysely<Schema>;
}

/** The databases by name, as migrations distinguish them. */
export type DialectName = "sqlite" | "postgres";

/** Locks of rows that a query reads, until the transaction ends. */
export type RowLock = "update" | "no key update" | "share" | "key share";

/** The types of columns in parameters. */
export type ColumnType = "text" | "bigint";

type Subquery<O> = Expression<O> & AliasableExpression<O>;

/**
 * What the databases do in different ways, as operations that each of them implements: `sqlite/dialect.ts` and
 * `postgres/dialect.ts`. A statement asks for an operation and never for the database, so another database cannot get
 * the SQL of one of these two unnoticed.
 */
export interface Dialect {
  /** Only migrations read it, which are never edited. */
  readonly name: DialectName;
  /** Whether the database is a file of this process, so that no other node uses it. */
  readonly isEmbedded: boolean;
  readonly locks: Locks;
  readonly json: Json;
  readonly time: Time;
  readonly values: Values;
  readonly schema: SchemaOperations;
  readonly partitions: Partitions;

  /** Whether a text contains another one, character by character: there are no wildcards. */
  contains(text: Expression<string | null>, part: string): RawBuilder<boolean>;
  /** The condition that is never true, as the result of a comparison. */
  readonly never: RawBuilder<boolean>;
  /** Whether a statement can write in a `with` clause. Otherwise it takes two statements. */
  readonly hasWritingCtes: boolean;
  /** Whether an upsert that returns a row of `table` inserted it; undefined if the database does not say. */
  wasInserted(table: string): RawBuilder<boolean> | undefined;
  /** Reads what was committed to `changes` since the cursor; without one, only the current position. */
  readChanges(connection: Connection, cursor: ChangesCursor | undefined): Promise<Changes>;
  /** Some of the newest rows of `changes`, for a reader whose positions outlive its process. */
  readRecentChanges(connection: Connection, limit: number): Promise<RecentChanges>;
  /**
   * The number up to which every event is committed or rolled back; undefined if events are committed in the order of their
   * numbers.
   */
  readEventHorizon(connection: Connection): Promise<number | undefined>;
}

/** Locks that last until the transaction ends. A database with one writer needs none and grants each at once. */
export interface Locks {
  /** The query, which locks the rows that it returns; with `of`, only those of this table. */
  locking<DB, TB extends keyof DB, O>(
    query: SelectQueryBuilder<DB, TB, O>,
    lock: RowLock,
    of?: TB & string,
  ): SelectQueryBuilder<DB, TB, O>;
  /** The end of a query in SQL that locks the rows that it returns. */
  clause(lock: RowLock, of?: string): RawBuilder<unknown>;
  /** The end of a query in SQL that locks rows for an update and leaves out those that others have locked. */
  readonly skipping: RawBuilder<unknown>;
  /**
   * Runs a query only for the locks. Returns whether other transactions could change rows before they were locked: then
   * what was read before must be read again.
   */
  lockRows<DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>, lock: RowLock): Promise<boolean>;
  /** Locks rows for an update. `isPartial`: rows that another transaction has locked may be missing. */
  lockAvailable<DB, TB extends keyof DB, O>(
    query: SelectQueryBuilder<DB, TB, O>,
  ): Promise<{ rows: O[]; isPartial: boolean }>;
  /**
   * Waits for the rows of `first` and locks them, and then locks those of `query` as `lockAvailable` does, in one statement.
   * Later statements of the transaction wait for up to `timeout`.
   */
  lockFirst<DB, TB extends keyof DB, O>(
    connection: Connection,
    first: SelectQueryBuilder<DB, TB, O>,
    query: SelectQueryBuilder<DB, TB, O>,
    timeout: Milliseconds,
  ): Promise<{ rows: O[]; isPartial: boolean }>;
  /** Bounds how long the statements of this transaction wait for a lock. */
  limitWait(connection: Connection, timeout: Milliseconds): Promise<void>;
  /** Waits until no other transaction uses the table, and keeps them from it until this one ends. */
  lockTable(connection: Connection, table: string): Promise<void>;
  /** Waits for the lock with a number that nothing else on the server uses as a lock. */
  lockNumber(connection: Connection, number: number): Promise<void>;
  /**
   * The same, for up to `timeout`; later statements wait for up to `later`. Returns whether another transaction had it, or
   * waited for it.
   */
  lockNumberWithin(
    connection: Connection,
    number: number,
    timeout: Milliseconds,
    later: Milliseconds,
  ): Promise<boolean>;
  /** Takes the lock with a number; false if another transaction has it, or waits for it. */
  tryLockNumber(connection: Connection, number: number, mode: "shared" | "exclusive"): Promise<boolean>;
  /**
   * Waits for the lock on a text of a class, which is a number that nothing else uses as a class. Requests are granted in
   * order.
   */
  lockText(connection: Connection, lockClass: number, text: string, mode: "shared" | "exclusive"): Promise<void>;
  /** Takes the lock on a text; false if another transaction has it. */
  tryLockText(connection: Connection, text: string): Promise<boolean>;
  /** Takes the locks on texts. Returns those that another transaction has. */
  tryLockTexts(connection: Connection, texts: readonly string[]): Promise<string[]>;
}

/** JSON in columns of type text. */
export interface Json {
  /** A subquery's rows as one JSON column; read it with `parsed`. */
  array<O>(subquery: Subquery<O>): RawBuilder<O[]>;
  /** A subquery's only row, or null, as one JSON column; read it with `parsed`. */
  object<O>(subquery: Subquery<O>): RawBuilder<O | null>;
  /** The first element of a JSON array of texts. */
  first(array: Expression<unknown>): RawBuilder<string>;
  /** A member of a JSON object, as text. */
  member(object: Expression<unknown>, name: string): RawBuilder<string>;
  /** A table expression with the elements of a JSON array, in the column `value`: texts, and the JSON of objects. */
  elements<A extends string>(array: Expression<unknown>, alias: A): AliasedRawBuilder<{ value: string }, A>;
  /** Whether a JSON array of different texts contains all of these. */
  containsAll(array: Expression<unknown>, texts: readonly string[]): RawBuilder<boolean>;
}

/** The current time, in milliseconds since the epoch. */
export interface Time {
  /** By the clock of the database. */
  readonly clock: RawBuilder<number>;
  /** As text in ISO 8601, by the clock of the database. */
  readonly isoClock: RawBuilder<string>;
  /** By one clock for all nodes; `now` if there is only one node. */
  common(now: Instant): RawBuilder<number>;
  /** For deleting old rows: never later than the common time, so that a node whose clock is ahead deletes nothing early. */
  pruning(now: Instant): RawBuilder<number>;
}

/** A query that is made once, and run with values of any number: the query builder would take longer than the query. */
export interface CompletedQuery<Value> {
  readonly text: string;
  parameters(values: readonly Value[]): readonly unknown[];
}

/** Values of any number as few parameters, so that a statement has one text and stays prepared. */
export interface Values {
  /** Whether a column has one of these values. The plan is index look-ups whatever the statistics of the table say. */
  isOneOf(column: string, values: readonly string[]): RawBuilder<boolean>;
  /** Whether a column has one of these values. */
  isOneOfNumbers(column: string, values: readonly number[]): RawBuilder<boolean>;
  /** A query that ends with a column, completed as `isOneOf` would. */
  completedByOneOf(query: string): CompletedQuery<string>;
  /** A query that ends with `where` or `and`, completed by: these two columns have the texts of one of these pairs. */
  completedByPairs(query: string, columns: readonly [string, string]): CompletedQuery<readonly [string, string]>;
  /** A list of values, for `where column in …`. */
  list(values: readonly string[]): RawBuilder<string>;
  /** A table expression named `input` with the columns of `types`. */
  rows<C extends string>(
    types: Readonly<Record<C, ColumnType>>,
    rows: readonly Readonly<Record<C, string | number | null>>[],
  ): AliasedRawBuilder<Record<C, never>, "input">;
  /**
   * An insert of rows without the query builder: `head` comes before the values and `tail` after them. `types` are those of
   * the columns, and rows are lists of values in their order.
   */
  insertion(
    head: string,
    types: readonly ColumnType[],
    rows: readonly (readonly (string | number)[])[],
    tail: string,
  ): CompiledQuery;
  /**
   * A table expression named `u` with the rows of `table` for one value of `column` after another, each found by an index.
   * The rows have the value `equal` in another column. Of each value it reads at most `limit` rows where it can.
   */
  lookUps(
    table: string,
    column: string,
    values: readonly number[],
    other: { column: string; equal: string },
    limit: number,
  ): RawBuilder<unknown>;
}

/** What the database says about its schema, and how it is changed. */
export interface SchemaOperations {
  /** The types of columns in SQL. */
  readonly types: Readonly<Record<"text" | "integer", string>>;
  hasTable(connection: Connection, table: string): Promise<boolean>;
  /** Whether a program below this schema version uses the database. */
  hasOlderPrograms(connection: Connection, version: number): Promise<boolean>;
  /** Selects each column of each table: its table, name, type, and place in the primary key or 0; by table and name. */
  readonly columns: string;
  /** Selects the columns, indexes and triggers, in the form `index keys_ended`. */
  readonly parts: string;
  /** What a complete schema has if an embedded database has `parts`. Indexes in `late` are built beside the service. */
  completeParts(parts: readonly string[], late: readonly string[]): string[];
  /** Selects each pair of columns of each foreign key, in order. */
  readonly foreignKeys: string;
  /** Selects each numbered table with its column and its counter. */
  readonly sequences: string;
  /** The last number that a counter has drawn. */
  lastDrawn(sequence: string): RawBuilder<number>;
  /**
   * Makes an empty table that only this connection has, if it has none yet. It is empty again when the transaction ends, or
   * with the next call.
   */
  emptyTemporaryTable(
    connection: Connection,
    table: string,
    types: Readonly<Record<string, ColumnType>>,
  ): Promise<void>;
  /**
   * Builds an index that migrations leave out because its table may be large, beside reads and writes. `definition` is what
   * follows its name. A build that was interrupted starts again. Not in a transaction.
   */
  buildLateIndex(connection: Connection, index: string, definition: RawBuilder<unknown>): Promise<void>;
}

/** The division of tables by month. A database without it has nothing to do. */
export interface Partitions {
  /** Changes the layout of a table by one step; null if there is nothing to do. */
  step(connection: Connection, table: MonthlyTable, before: Instant): Promise<PartitionStep | null>;
  /** Does what takes long before a table can be divided. Not in a transaction. */
  prepare(connection: Connection, table: MonthlyTable): Promise<void>;
  /** Removes the boundary of a table that was to be divided and is not. */
  removeBound(connection: Connection, table: MonthlyTable): Promise<void>;
  /** How the tables that exist are stored. */
  states(connection: Connection): Promise<PartitionState[]>;
}
