import type { CopiedTable, CopyDatabase } from "./database.ts";
import { type Move, type MoveState, readMove } from "./marks.ts";

/** One database of the source or of the target: PostgreSQL, or a file of SQLite. */
export abstract class MovePart {
  readonly database: CopyDatabase;
  readonly tables: readonly CopiedTable[];
  protected abstract readonly role: Move["role"];

  constructor(database: CopyDatabase, tables: readonly CopiedTable[]) {
    this.database = database;
    this.tables = tables;
  }

  /** What the database knows about the move; undefined before its start. */
  state(): Promise<MoveState | undefined> {
    return readMove(this.database, this.role);
  }
}
