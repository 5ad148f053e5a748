import { type RawBuilder, sql as raw } from "kysely";
import type { ColumnType, Values } from "./dialect.ts";
import { insertOfOne } from "./insert-rows.ts";
import { onlyRow } from "./only-row.ts";
import type { Schema } from "./schema.ts";
import type { EachWrite, Sql, SqlValue } from "./store.ts";

/** Many rows to insert, or to find by some of their columns and to change. Each has its values in the order of the columns. */
export interface RowWrite {
  readonly table: string;
  readonly columns: readonly (readonly [name: string, type: ColumnType])[];
  /** How many of them are those by which a row is found. Undefined: the rows are new. */
  readonly found: number | undefined;
  readonly rows: readonly (readonly SqlValue[])[];
}

type Types<T extends keyof Schema> = Readonly<Partial<Record<keyof Schema[T] & string, ColumnType>>>;

/** Rows to insert. */
export function insertion<T extends keyof Schema & string>(
  table: T,
  types: Types<T>,
  rows: RowWrite["rows"],
): RowWrite {
  return { table, columns: columnsOf(types), found: undefined, rows };
}

/** Rows to find by some columns, and others to set. */
export function change<T extends keyof Schema & string>(
  table: T,
  { by, set }: { by: Types<T>; set: Types<T> },
  rows: RowWrite["rows"],
): RowWrite {
  const finding = columnsOf(by);
  return { table, columns: [...finding, ...columnsOf(set)], found: finding.length, rows };
}

function columnsOf(types: Readonly<Partial<Record<string, ColumnType>>>): RowWrite["columns"] {
  return Object.entries(types) as [string, ColumnType][];
}

/**
 * Writes rows of which no two writes change the same one: in one statement for all where a statement is a message. Returns how
 * many rows each of them wrote.
 */
export async function writeRows(sql: Sql, writes: readonly RowWrite[]): Promise<number[]> {
  const { each } = sql;
  if (each) return writes.map((write) => each(writeOfOne(write), write.rows));
  const counts = writes.map(() => 0);
  const parts = writes.flatMap((write, i) =>
    write.rows.length > 0 ? { i, part: partOf(write, sql.dialect.values) } : [],
  );
  if (!sql.dialect.hasWritingCtes) {
    for (const { i, part } of parts) counts[i] = Number((await part.execute(sql.db)).numAffectedRows ?? 0);
    return counts;
  }
  if (parts.length === 0) return counts;
  const tables = parts.map(({ i, part }) => raw`${raw.id(`w${i}`)} as (${part} returning 1)`);
  const found = parts.map(({ i }) => raw`(select count(*) from ${raw.id(`w${i}`)}) as ${raw.id(`w${i}`)}`);
  const written = onlyRow(
    await raw<Record<string, unknown>>`with ${raw.join(tables)} select ${raw.join(found)}`.execute(sql.db),
  );
  for (const { i } of parts) counts[i] = Number(written[`w${i}`]);
  return counts;
}

/** The write of one row, whose values are its parameters. */
function writeOfOne({ table, columns, found }: RowWrite): EachWrite {
  const names = columns.map(([name]) => name);
  if (found === undefined) return { table, inserts: true, statement: insertOfOne(table, names) };
  const equal = names.map((name, i) => `${name} = ?${i + 1}`);
  const [set, where] = [equal.slice(found).join(", "), equal.slice(0, found).join(" and ")];
  return { table, inserts: false, statement: `update ${table} set ${set} where ${where}` };
}

/** The statement for all rows, which are one parameter. A column can be one by which a row is found, and be set too. */
function partOf({ table, columns, found, rows }: RowWrite, values: Values): RawBuilder<unknown> {
  const types = Object.fromEntries(columns.map(([, type], i) => [`v${i}`, type]));
  const objects = rows.map((row) => Object.fromEntries(row.map((value, i) => [`v${i}`, value])));
  const input = values.rows(types, objects);
  const names = columns.map(([name]) => name);
  if (found === undefined) {
    const taken = raw.raw(names.map((_, i) => `v${i}`).join(", "));
    return raw`insert into ${raw.raw(table)} (${raw.raw(names.join(", "))}) select ${taken} from ${input}`;
  }
  const assigned = names.slice(found).map((name, i) => `${name} = input.v${found + i}`);
  const equal = names.slice(0, found).map((name, i) => `${table}.${name} = input.v${i}`);
  return raw`update ${raw.raw(table)} set ${raw.raw(assigned.join(", "))} from ${input} where ${raw.raw(equal.join(" and "))}`;
}
