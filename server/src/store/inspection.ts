import { sql as raw } from "kysely";
import { digest } from "../crypto/digest.ts";
import { findTables } from "./catalog.ts";
import { migrate } from "./migrate.ts";
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

/** Rules that no constraint of the schema checks, each with the query that counts the rows that break it. */
export type StoreRules = Readonly<Record<string, string>>;

/** A rule, and how many rows break it. */
export interface BrokenRule {
  rule: string;
  rows: number;
}

const text = (sql: Sql, postgres: string, sqlite: string) => raw.raw(sql.dialect === "postgres" ? postgres : sqlite);

async function rowsOf<T>(sql: Sql, postgres: string, sqlite: string): Promise<T[]> {
  const { rows } = await raw<T>`${text(sql, postgres, sqlite)}`.execute(sql.db);
  return rows;
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
    const [expected, found] = [await partsOf(empty.sql), new Set(await partsOf(sql))];
    const built = new Set(builtLater.map(({ name }) => `index ${name}`));
    const isOptional = (part: string) => sql.dialect === "postgres" && built.has(part);
    const missing = expected.filter((part) => !found.has(part) && !isOptional(part));
    if (sql.dialect === "postgres") {
      const triggers = ["trigger announce_changes", "trigger announce_events"];
      missing.push(...triggers.filter((trigger) => !found.has(trigger)));
    }
    return missing;
  } finally {
    empty.close();
  }
}

async function partsOf(sql: Sql): Promise<string[]> {
  const rows = await rowsOf<{ part: string }>(
    sql,
    `select 'column ' || table_name || '.' || column_name as part
     from information_schema.columns where table_schema = current_schema()
     union all
     select 'index ' || c.relname from pg_class c join pg_index i on i.indexrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and i.indisvalid
     union all
     select 'trigger ' || t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where c.relnamespace = current_schema()::regnamespace and t.tgenabled <> 'D'`,
    `select 'column ' || m.name || '.' || p.name as part
     from sqlite_schema m join pragma_table_info(m.name) p where m.type = 'table' and m.name not like 'sqlite_%'
     union all
     select 'index ' || name from sqlite_schema where type = 'index' and name not like 'sqlite_%'`,
  );
  return rows.map(({ part }) => part);
}

/** The foreign keys of the schema. */
export async function findForeignKeys(sql: Sql): Promise<ForeignKey[]> {
  const rows = await rowsOf<{ id: string; table: string; column: string; parent: string; parentColumn: string }>(
    sql,
    `select k.conname as id, k.conrelid::regclass::text as table, a.attname as column, k.confrelid::regclass::text as parent,
       b.attname as "parentColumn"
     from pg_constraint k
     cross join unnest(k.conkey, k.confkey) as pair(child, parent)
     join pg_attribute a on a.attrelid = k.conrelid and a.attnum = pair.child
     join pg_attribute b on b.attrelid = k.confrelid and b.attnum = pair.parent
     where k.contype = 'f' and k.connamespace = current_schema()::regnamespace and k.conparentid = 0
     order by 2, 1`,
    `select m.name || ' ' || f.id as id, m.name as "table", f."from" as "column", f."table" as parent, f."to" as "parentColumn"
     from sqlite_schema m join pragma_foreign_key_list(m.name) f where m.type = 'table' order by 2, 1, f.seq`,
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
  const { rows } = await raw<{ count: number }>`
    select count(*) as count from ${raw.table(table)} as child where ${raw.join(present, raw` and `)}
    and not exists (select 1 from ${raw.table(parent)} as parent where ${raw.join(joined, raw` and `)})`.execute(
    sql.db,
  );
  return rows[0]!.count;
}

/** Rules, each with the number of rows that break it. */
export async function findBrokenRules({ db }: Sql, rules: StoreRules): Promise<BrokenRule[]> {
  const checked: BrokenRule[] = [];
  for (const [rule, query] of Object.entries(rules)) {
    const { rows } = await raw.raw<{ count: number }>(query).execute(db);
    checked.push({ rule, rows: rows[0]!.count });
  }
  return checked;
}

/** Counters of numbered tables, and the highest number in use; a counter behind it would give a number twice. */
export async function findSequences(sql: Sql): Promise<{ table: string; last: number; highest: number }[]> {
  const numbered = await rowsOf<{ table: string; column: string; sequence: string }>(
    sql,
    `select table_name as table, column_name as column,
       pg_get_serial_sequence(quote_ident(table_name), column_name) as sequence
     from information_schema.columns where table_schema = current_schema() and is_identity = 'YES' order by 1`,
    `select name as "table", 'rowid' as "column", name as sequence from sqlite_sequence order by name`,
  );
  const sequences: { table: string; last: number; highest: number }[] = [];
  for (const { table, column, sequence } of numbered) {
    const last =
      sql.dialect === "postgres"
        ? raw`(select case when is_called then last_value else last_value - 1 end from ${raw.raw(sequence)})`
        : raw`(select seq from sqlite_sequence where name = ${sequence})`;
    const { rows } = await raw<{ last: number; highest: number }>`
      select ${last} as last, coalesce(max(${raw.ref(column)}), 0) as highest from ${raw.table(table)}`.execute(sql.db);
    sequences.push({ table, ...rows[0]! });
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
