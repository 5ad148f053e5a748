import { type RawBuilder, sql as raw } from "kysely";
import { digest } from "../../../../engine/src/crypto/digest.ts";
import { findTables } from "./catalog.ts";
import { migrate } from "./migrate.ts";
import { onlyRow } from "./only-row.ts";
import { openSqliteConnection } from "./sqlite/connection.ts";
import type { Sql } from "./store.ts";

/** Rows that one call reads. */
const ROWS_PER_PAGE = 2_000;
const SAMPLE_HALF = 10;

/** A table of the database with the columns of its primary key. */
export interface StoredTable {
  name: string;
  key: string[];
}

/** A foreign key of the database. Both lists of columns have the same length. */
export interface ForeignKey {
  table: string;
  columns: string[];
  parent: string;
  parentColumns: string[];
}

/** Where the reading of a table continues. */
export interface TableCursor extends StoredTable {
  /** The primary key of the last row that was read; null at the start. */
  after: (string | number)[] | null;
  /** The digest of the rows before. */
  digest: string;
}

/** Counts the rows that break a rule, as `count`: the query, or what gives that of a database. */
type RuleQuery = string | ((sql: Pick<Sql, "dialect">) => RawBuilder<unknown>);

/** Rules that no constraint of the schema checks. */
export type StoreRules = Readonly<Record<string, RuleQuery>>;

/** A rule, and how many rows break it. */
export interface BrokenRule {
  rule: string;
  rows: number;
}

async function rowsOf<T>({ db }: Sql, query: string): Promise<T[]> {
  return (await raw.raw<T>(query).execute(db)).rows;
}

/** All tables, also those of analytics, in the order of their names. */
export async function findStoredTables({ dialect, db }: Sql): Promise<StoredTable[]> {
  const rows = async (statement: string) => {
    const found = await raw.raw<Record<string, string | number | null>>(statement).execute(db);
    return found.rows.map((row) => Object.values(row));
  };
  const tables = await findTables({ dialect, rows });
  return tables.map(({ name, primaryKey }) => ({ name, key: [...primaryKey] }));
}

/**
 * What a new database of this version has and this one lacks: tables, columns, indexes, and on PostgreSQL triggers. Services
 * of PostgreSQL build the indexes in `builtLater` after the migrations, so these may be missing.
 */
export async function findMissingParts(sql: Sql, builtLater: readonly { name: string }[]): Promise<string[]> {
  const empty = openSqliteConnection(":memory:", "write");
  try {
    await migrate(empty.sql);
    const late = builtLater.map(({ name }) => name);
    const expected = sql.dialect.schema.completeParts(await partsOf(empty.sql), late);
    const found = new Set(await partsOf(sql));
    return expected.filter((part) => !found.has(part));
  } finally {
    empty.close();
  }
}

async function partsOf(sql: Sql): Promise<string[]> {
  const rows = await rowsOf<{ part: string }>(sql, sql.dialect.schema.parts);
  return rows.map(({ part }) => part);
}

/** The foreign keys of the schema. */
export async function findForeignKeys(sql: Sql): Promise<ForeignKey[]> {
  const rows = await rowsOf<{ id: string; table: string; column: string; parent: string; parentColumn: string }>(
    sql,
    sql.dialect.schema.foreignKeys,
  );
  return [...Map.groupBy(rows, ({ table, id }) => `${table} ${id}`).values()].map((pairs) => ({
    table: pairs[0]!.table,
    columns: pairs.map(({ column }) => column),
    parent: pairs[0]!.parent,
    parentColumns: pairs.map(({ parentColumn }) => parentColumn),
  }));
}

/** The number of rows whose foreign key leads nowhere. */
export async function countOrphans(sql: Sql, { table, columns, parent, parentColumns }: ForeignKey): Promise<number> {
  const joined = columns.map(
    (column, i) => raw`${raw.ref(`parent.${parentColumns[i]}`)} = ${raw.ref(`child.${column}`)}`,
  );
  const present = columns.map((column) => raw`${raw.ref(`child.${column}`)} is not null`);
  const counted = await raw<{ count: number }>`
    select count(*) as count from ${raw.table(table)} as child where ${raw.join(present, raw` and `)}
    and not exists (select 1 from ${raw.table(parent)} as parent where ${raw.join(joined, raw` and `)})`.execute(
    sql.db,
  );
  return onlyRow(counted).count;
}

/** Rules, each with the number of rows that break it. */
export async function findBrokenRules(sql: Sql, rules: StoreRules): Promise<BrokenRule[]> {
  const checked: BrokenRule[] = [];
  for (const [rule, query] of Object.entries(rules)) {
    const counting = (typeof query === "string" ? raw.raw(query) : query(sql)).$castTo<{ count: number }>();
    checked.push({ rule, rows: onlyRow(await counting.execute(sql.db)).count });
  }
  return checked;
}

/** Counters of numbered tables, and the highest number in use; a counter behind it would give a number twice. */
export async function findSequences(sql: Sql): Promise<{ table: string; last: number; highest: number }[]> {
  const { schema } = sql.dialect;
  const numbered = await rowsOf<{ table: string; column: string; sequence: string }>(sql, schema.sequences);
  const sequences: { table: string; last: number; highest: number }[] = [];
  for (const { table, column, sequence } of numbered) {
    const found = await raw<{ last: number; highest: number }>`
      select ${schema.lastDrawn(sequence)} as last, coalesce(max(${raw.ref(column)}), 0) as highest from ${raw.table(table)}`.execute(
      sql.db,
    );
    sequences.push({ table, ...onlyRow(found) });
  }
  return sequences;
}

/**
 * Reads one page of a table in the order of its primary key and adds it to the digest. `next` is null at the end. A table
 * with the same rows has the same digest on every server.
 */
export async function digestRows(
  sql: Sql,
  { name, key, after, digest: before }: TableCursor,
): Promise<{ rows: number; digest: string; next: TableCursor | null }> {
  const columns = raw.join(key.map((column) => raw.ref(column)));
  const from = after === null ? raw`` : raw`where (${columns}) > (${raw.join(after)})`;
  const order = key.length === 0 ? raw`` : raw`order by ${columns} limit ${ROWS_PER_PAGE}`;
  const { rows } = await raw<Record<string, string | number | null>>`
    select * from ${raw.table(name)} ${from} ${order}`.execute(sql.db);
  const sum =
    rows.length === 0 ? before : digest(before + JSON.stringify(rows.map((row) => Object.entries(row).sort())));
  const isLast = key.length === 0 || rows.length < ROWS_PER_PAGE;
  const last = rows.at(-1);
  const next = isLast ? null : { name, key, after: key.map((column) => last![column]!), digest: sum };
  return { rows: rows.length, digest: sum, next };
}

/** Some recoverable keys whose workspace has a data key: those with the lowest and the highest ids, which are random. */
export async function sampleVaultSecrets(sql: Sql): Promise<{ key_id: string; workspace_id: string }[]> {
  const half = (direction: "asc" | "desc") =>
    sql.db
      .selectFrom("vault_secrets")
      .innerJoin("vault_data_keys", "vault_data_keys.workspace_id", "vault_secrets.workspace_id")
      .select(["key_id", "vault_secrets.workspace_id"])
      .orderBy("key_id", direction)
      .limit(SAMPLE_HALF)
      .execute();
  const rows = [...(await half("asc")), ...(await half("desc"))];
  return [...new Map(rows.map((row) => [row.key_id, row])).values()];
}
