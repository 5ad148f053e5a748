import { type CopiedTable, type CopyDatabase, literal, quoted, type Recording } from "./database.ts";
import { WRITES_STOPPED } from "./marks.ts";

const operations = ["insert", "update", "delete"] as const;

/** Records what is written to an embedded database, which has one writer at a time. */
export class SqliteRecording implements Recording {
  readonly #database: CopyDatabase;

  constructor(database: CopyDatabase) {
    this.#database = database;
  }

  async start(tables: readonly CopiedTable[]): Promise<void> {
    const triggers = tables.map((table) => triggersOf(table, this.#database.now)).join("\n");
    await this.#database.transaction("write", () => this.#database.run(triggers));
  }

  async stop(): Promise<void> {
    const triggers = await this.#database.rows(
      "select name from sqlite_schema where type = 'trigger' and (name like 'move\\_gate\\_%' escape '\\' or name like 'move\\_record\\_%' escape '\\')",
    );
    const drops = triggers.map(([name]) => `drop trigger ${quoted(name!)};`).join("\n");
    await this.#database.transaction("write", () =>
      this.#database.run(`${drops} drop table if exists move_changes; delete from moves where role = 'source';`),
    );
  }

  async snapshot(work: () => Promise<void>): Promise<void> {
    const database = this.#database;
    let last: string | null = null;
    await database.transaction("snapshot", async () => {
      [[last = null] = []] = await database.rows("select max(sequence) from move_changes");
      await work();
    });
    // In pieces, because the service waits for the lock meanwhile.
    while (last !== null) {
      const { length } = await database.rows(
        `delete from move_changes where sequence in
         (select sequence from move_changes where sequence <= ? order by sequence limit 5000) returning 1`,
        [last],
      );
      if (length === 0) break;
    }
  }

  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#database.transaction("write", work);
  }
}

function triggersOf({ name, key }: CopiedTable, now: string): string {
  const keyOf = (row: string) =>
    `json_array(${key.map((column) => `cast(${row}.${quoted(column)} as text)`).join(", ")})`;
  const recorded = {
    insert: `select ${literal(name)}, ${keyOf("new")}`,
    update: `select ${literal(name)}, ${keyOf("old")} union select ${literal(name)}, ${keyOf("new")}`,
    delete: `select ${literal(name)}, ${keyOf("old")}`,
  };
  return operations
    .map(
      (operation) => `
      create trigger if not exists ${quoted(`move_gate_${name}_${operation}`)} before ${operation} on ${quoted(name)}
        when (select closed_until from moves where id = 1) > ${now}
        begin select raise(abort, ${literal(WRITES_STOPPED)}); end;
      create trigger if not exists ${quoted(`move_record_${name}_${operation}`)} after ${operation} on ${quoted(name)}
        begin insert into move_changes (table_name, row_key) ${recorded[operation]}; end;`,
    )
    .join("\n");
}
