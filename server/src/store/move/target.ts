import { OperatorError } from "../../log/operator-error.ts";
import { type CopiedTable, type CopyDatabase, literal, nowIn, pick, quoted, type Row } from "./database.ts";
import { deletePreparedCopy, type FormerHolder, type MoveState, readMove } from "./marks.ts";

/** The same lock as that of the migrations, so that no service prepares the database at the same moment. */
const MIGRATION_LOCK = "7262837123001";

/** How far a table is copied. */
export interface TableProgress {
  /** The primary key of the last row that was copied; null before the first. */
  readonly last: Row | null;
  readonly rows: number;
  readonly done: boolean;
}

/**
 * One database of the target: PostgreSQL, or a file of SQLite. During the copy it has neither foreign keys nor secondary
 * indexes nor triggers, because rows arrive in states of different moments. Each transaction that adds rows stores how far the copy is,
 * so a copy that was killed continues after its last commit.
 */
export class TargetPart {
  readonly database: CopyDatabase;
  readonly tables: readonly CopiedTable[];

  constructor(database: CopyDatabase, tables: readonly CopiedTable[]) {
    this.database = database;
    this.tables = tables;
  }

  state(): Promise<MoveState | undefined> {
    return readMove(this.database, "target");
  }

  /** The first table that has rows; undefined if every table is empty. */
  async usedTable(): Promise<string | undefined> {
    for (const { name } of this.tables) {
      const rows = await this.database.rows(`select 1 from ${quoted(name)} limit 1`);
      if (rows.length > 0) return name;
    }
    return undefined;
  }

  /** Marks the database as an unfinished copy, if it is empty and no service has prepared it. */
  async begin(moveId: string, other: string): Promise<void> {
    const { database } = this;
    await database.transaction("write", async () => {
      if (database.dialect.name === "postgres") await database.run(`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
      const used = await this.usedTable();
      if (used !== undefined) throw new OperatorError(`The target is not empty: its table ${used} has rows.`);
      await database.run(`
        create table move_tables (name text not null primary key, last text, rows bigint not null, done bigint not null);
        create table move_definitions (name text not null primary key, kind text not null, statement text not null)`);
      for (const { name } of this.tables) {
        await database.rows("insert into move_tables (name, rows, done) values (?, 0, 0)", [name]);
      }
      for (const [name, kind, create, drop] of await database.rows(DEFINITIONS[database.dialect.name])) {
        await database.rows("insert into move_definitions (name, kind, statement) values (?, ?, ?)", [
          name!,
          kind!,
          create!,
        ]);
        await database.run(drop!);
      }
      await deletePreparedCopy(database);
      await database.rows(
        `insert into moves (id, move_id, role, other, started_at) values (1, ?, 'target', ?, ${nowIn(database.dialect.name)})`,
        [moveId, other],
      );
    });
  }

  async progress(table: CopiedTable): Promise<TableProgress> {
    const [row] = await this.database.rows("select last, rows, done from move_tables where name = ?", [table.name]);
    // A version that adds a table can be installed between two runs.
    if (!row) return { last: null, rows: 0, done: false };
    return { last: row[0] === null ? null : (JSON.parse(row[0]!) as Row), rows: Number(row[1]), done: row[2] === "1" };
  }

  /** Adds the next rows of a table, in the order of its primary key. */
  async append(table: CopiedTable, rows: readonly Row[], progress: TableProgress): Promise<void> {
    await this.database.transaction("write", async () => {
      if (rows.length > 0) await this.database.insert(table, rows);
      await this.database.rows(
        `insert into move_tables (name, last, rows, done) values (?, ?, ?, ?)
         on conflict (name) do update set last = excluded.last, rows = excluded.rows, done = excluded.done`,
        [table.name, progress.last && JSON.stringify(progress.last), String(progress.rows), progress.done ? "1" : "0"],
      );
    });
  }

  /** Deletes rows by their keys; returns those that existed. */
  remove(table: CopiedTable, keys: readonly Row[]): Promise<Row[]> {
    return this.database.transaction("write", () => this.database.remove(table, keys));
  }

  /** Replaces rows by their present state. Returns the rows before and after, as the database has them. */
  replace(table: CopiedTable, keys: readonly Row[], rows: readonly Row[]): Promise<{ before: Row[]; after: Row[] }> {
    return this.database.transaction("write", async () => {
      const before = await this.database.remove(table, keys);
      if (rows.length > 0) await this.database.insert(table, rows);
      const present = rows.map((row) => pick(table, row, table.key));
      return { before, after: present.length === 0 ? [] : await this.database.find(table, present) };
    });
  }

  /** Creates the indexes, each in a transaction of its own. */
  async createIndexes(onIndex: (name: string) => void): Promise<void> {
    const { database } = this;
    for (const [name, statement] of await this.#definitions("index")) {
      onIndex(name);
      await database.transaction("write", async () => {
        await database.run(statement);
        await database.rows("delete from move_definitions where name = ?", [name]);
      });
    }
    // Without statistics, PostgreSQL would read whole tables for the next steps and the first calls.
    if (database.dialect.name === "postgres") await database.run("analyze");
  }

  /**
   * Ends the copy: the database can be served. Foreign keys hold for new rows from then on. The copied rows fulfil them,
   * because they are those of the source; `validate` makes PostgreSQL check that.
   */
  async end(former: FormerHolder | undefined): Promise<void> {
    const { database } = this;
    await database.transaction("write", async () => {
      for (const kind of ["constraint", "trigger"] as const) {
        for (const [, statement] of await this.#definitions(kind)) await database.run(statement);
      }
      if (database.dialect.name === "postgres") {
        await this.#setSequences();
        if (former) {
          await database.rows(
            `insert into claim (id, holder, shared, lease_ms) values (1, ?, 0, ${Math.ceil(former.lease)})
             on conflict (id) do nothing`,
            [former.name],
          );
        }
      }
      await database.run(`
        drop table move_tables; drop table move_definitions;
        update moves set ended_at = ${nowIn(database.dialect.name)} where id = 1`);
    });
  }

  /** Lets PostgreSQL check the foreign keys of the copied rows. A service may already run. */
  async validate(): Promise<void> {
    if (this.database.dialect.name !== "postgres") return;
    const constraints = await this.database.rows(
      `select conrelid::regclass::text, conname from pg_constraint
       where contype = 'f' and not convalidated and connamespace = current_schema()::regnamespace`,
    );
    for (const [table, name] of constraints) {
      await this.database.run(`alter table ${table} validate constraint ${quoted(name!)}`);
    }
  }

  async #definitions(kind: "index" | "constraint" | "trigger"): Promise<[name: string, statement: string][]> {
    const rows = await this.database.rows("select name, statement from move_definitions where kind = ? order by name", [
      kind,
    ]);
    return rows as [string, string][];
  }

  /** Numbers that the database draws continue after the copied ones. SQLite does that by itself. */
  async #setSequences(): Promise<void> {
    const names = this.tables.map(({ name }) => literal(name)).join(", ");
    const columns = await this.database.rows(
      `select table_name, column_name, pg_get_serial_sequence(quote_ident(table_name), column_name)
       from information_schema.columns
       where table_schema = current_schema() and is_identity = 'YES' and table_name in (${names})`,
    );
    for (const [table, column, sequence] of columns) {
      await this.database.run(
        `select setval(${literal(sequence!)}, max(${quoted(column!)})) from ${quoted(table!)} having count(*) > 0`,
      );
    }
  }
}

/** What is removed for the copy: a unique name, the kind, the statement that creates it, and the one that removes it. */
const DEFINITIONS = {
  sqlite: `
    select name, 'index', sql, 'drop index "' || name || '"' from sqlite_schema
    where type = 'index' and sql is not null and tbl_name not like 'move\\_%' escape '\\'
    union all
    select 'trigger ' || name, 'trigger', sql, 'drop trigger "' || name || '"' from sqlite_schema
    where type = 'trigger' and name not like 'move\\_%' escape '\\'`,
  // Indexes of partitioned tables stay: each partition has its own.
  postgres: `
    select i.relname, 'index', pg_get_indexdef(i.oid), format('drop index %I', i.relname)
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
    where t.relnamespace = current_schema()::regnamespace and t.relkind = 'r' and not t.relispartition
      and not x.indisprimary and not exists (select 1 from pg_constraint c where c.conindid = i.oid and c.contype <> 'f')
    union all
    select format('%s.%s', t.relname, c.conname), 'constraint',
      format('alter table %I add constraint %I %s not valid', t.relname, c.conname,
        regexp_replace(pg_get_constraintdef(c.oid), ' NOT VALID$', '')),
      format('alter table %I drop constraint %I', t.relname, c.conname)
    from pg_constraint c join pg_class t on t.oid = c.conrelid
    where c.contype = 'f' and c.connamespace = current_schema()::regnamespace and c.conparentid = 0
      and t.relkind = 'r' and not t.relispartition
    union all
    select format('trigger %s.%s', t.relname, g.tgname), 'trigger', pg_get_triggerdef(g.oid),
      format('drop trigger %I on %I', g.tgname, t.relname)
    from pg_trigger g join pg_class t on t.oid = g.tgrelid
    where t.relnamespace = current_schema()::regnamespace and not t.relispartition and not g.tgisinternal
      and g.tgname not like 'move\\_%'`,
} as const;
