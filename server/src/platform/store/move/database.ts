import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { FoundColumn } from "../catalog.ts";
import type { Dialect } from "../dialect.ts";

/** A column's value in a form that both databases have: integers in decimal digits, text as it is. */
export type Value = string | null;
export type Row = readonly Value[];

/** A table as it is copied: the same names on both sides. */
export interface CopiedTable {
  readonly name: string;
  /** What is copied, in the order of names. */
  readonly columns: readonly FoundColumn[];
  /** The primary key of the source, by which rows are read in order. */
  readonly order: readonly string[];
  /** Identifies a row on both sides: the columns of both primary keys, which differ where one side has partitions. */
  readonly key: readonly string[];
}

/**
 * One connection to a database that is copied from or to, with one statement at a time. Statements have `?` for each value.
 *
 * @throws {OperatorError} from every method when the database rejects the statement or does not answer.
 */
export interface CopyDatabase {
  readonly dialect: Dialect;
  readonly recording: Recording;
  readonly filling: Filling;
  /** Milliseconds since the epoch by the clock of the database, in SQL. */
  readonly now: string;
  /** The definition of a primary key whose numbers the database draws. */
  readonly numbering: string;
  /** What follows the columns of a new table. */
  readonly tableOptions: string;
  /** Runs a statement and returns its rows. */
  rows(text: string, values?: Row): Promise<Value[][]>;
  /** Runs several statements without values. */
  run(text: string): Promise<void>;
  /** Runs `work` in one transaction: one that writes, or one in which all reads see the state of the first. */
  transaction<T>(kind: "write" | "snapshot", work: () => Promise<T>): Promise<T>;
  /** Inserts rows, whose values are in the order of the table's columns. */
  insert(table: CopiedTable, rows: readonly Row[]): Promise<void>;
  /** The rows with these keys, whose values are in the order of the table's key. Rows that are missing are left out. */
  find(table: CopiedTable, keys: readonly Row[]): Promise<Value[][]>;
  /** Deletes the rows with these keys, and returns them. */
  remove(table: CopiedTable, keys: readonly Row[]): Promise<Value[][]>;
  /** Whether no other connection has this lock of PostgreSQL, which this one holds until it closes. */
  lock(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * How a source records what is written to it. Triggers store the key of every row that a transaction touches, and reject
 * writes while the gate is closed.
 */
export interface Recording {
  /** Starts to record changes of these tables. Repeating it does no harm. */
  start(tables: readonly CopiedTable[]): Promise<void>;
  /** Stops recording, forgets the move, and accepts writes again. */
  stop(): Promise<void>;
  /** Runs `work`, whose reads see one state of the database, and then deletes the touched rows that this state contains. */
  snapshot(work: () => Promise<void>): Promise<void>;
  /** Runs `work` in a transaction while no other transaction writes. It may run again. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
}

/** Names the process that may still serve from the source, so that another one on the target waits until it has ended. */
export interface FormerHolder {
  readonly name: string;
  /** How long it may count limits after the move. */
  readonly lease: Milliseconds;
}

/** What a step of the schema demands of programs: decisions/030. */
export interface Demand {
  readonly step: Value;
  /** A schema version. */
  readonly needs: Value;
}

/** What a target needs before and after a copy. */
export interface Filling {
  /** Selects what is removed for the copy: a unique name, the kind, the statement that creates it, and the one that removes it. */
  readonly definitions: string;
  /** Keeps services from preparing the database until the transaction ends. */
  lockSchema(): Promise<void>;
  /** Brings the statistics up to date. */
  analyze(): Promise<void>;
  /** Sets the numbers that the database draws next, and lets the former holder of the claim keep it for its lease. */
  finish(tables: readonly CopiedTable[], former: FormerHolder | undefined): Promise<void>;
  /** Checks the foreign keys of the copied rows. */
  validate(): Promise<void>;
}

/** A name in SQL. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Names in SQL, with commas between them. */
export function listed(names: readonly string[]): string {
  return names.map(quoted).join(", ");
}

/** A text in SQL. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function columnNames(table: CopiedTable): string[] {
  return table.columns.map(({ name }) => name);
}

/** The values of some columns of a row. */
export function pick(table: CopiedTable, row: Row, names: readonly string[]): Row {
  return names.map((name) => row[table.columns.findIndex((column) => column.name === name)]!);
}
