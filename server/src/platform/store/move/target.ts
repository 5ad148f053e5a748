import { OperatorError } from "../../../log/operator-error.ts";
import { type CopiedTable, type Demand, type FormerHolder, pick, quoted, type Row } from "./database.ts";
import { deletePreparedCopy } from "./marks.ts";
import { MovePart } from "./part.ts";

/** How far a table is copied. */
export interface TableProgress {
  /** The primary key of the last row that was copied; null before the first. */
  readonly last: Row | null;
  readonly rows: number;
  readonly done: boolean;
}

/**
 * One database of the target. During the copy it has neither foreign keys nor secondary indexes nor triggers, because rows
 * arrive in states of different moments. Each transaction that adds rows stores how far the copy is, so a copy that was
 * killed continues after its last commit.
 */
export class TargetPart extends MovePart {
  protected readonly role = "target";

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
      await database.filling.lockSchema();
      const used = await this.usedTable();
      if (used !== undefined) throw new OperatorError(`The target is not empty: its table ${used} has rows.`);
      await database.run(`
        create table move_tables (name text not null primary key, last text, rows bigint not null, done bigint not null);
        create table move_definitions (name text not null primary key, kind text not null, statement text not null)`);
      for (const { name } of this.tables) {
        await database.rows("insert into move_tables (name, rows, done) values (?, 0, 0)", [name]);
      }
      for (const [name, kind, create, drop] of await database.rows(database.filling.definitions)) {
        await database.rows("insert into move_definitions (name, kind, statement) values (?, ?, ?)", [
          name!,
          kind!,
          create!,
        ]);
        await database.run(drop!);
      }
      await deletePreparedCopy(database);
      await database.rows(
        `insert into moves (id, move_id, role, other, started_at) values (1, ?, 'target', ?, ${database.now})`,
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
    await database.filling.analyze();
  }

  /**
   * Ends the copy: the database can be served. Foreign keys hold for new rows from then on. The copied rows fulfil them,
   * because they are those of the source; `validate` makes PostgreSQL check that.
   *
   * @param demands the demands of the source on programs, which its rows need here too.
   */
  async end(former: FormerHolder | undefined, demands: readonly Demand[] = []): Promise<void> {
    const { database } = this;
    await database.transaction("write", async () => {
      for (const kind of ["constraint", "trigger"] as const) {
        for (const [, statement] of await this.#definitions(kind)) await database.run(statement);
      }
      await database.filling.finish(this.tables, former);
      for (const { step, needs } of demands) {
        await database.rows("update schema_steps set needs = cast(? as bigint) where name = ?", [needs, step]);
        await database.rows(
          `insert into kysely_migration (name, timestamp) select name, executed_at from schema_steps where name = ?
           on conflict (name) do nothing`,
          [step],
        );
      }
      await database.run(`
        drop table move_tables; drop table move_definitions;
        update moves set ended_at = ${database.now} where id = 1`);
    });
  }

  /** Lets PostgreSQL check the foreign keys of the copied rows. A service may already run. */
  validate(): Promise<void> {
    return this.database.filling.validate();
  }

  async #definitions(kind: "index" | "constraint" | "trigger"): Promise<[name: string, statement: string][]> {
    const rows = await this.database.rows("select name, statement from move_definitions where kind = ? order by name", [
      kind,
    ]);
    return rows as [string, string][];
  }
}
