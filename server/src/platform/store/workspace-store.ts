import type { EventContent } from "./events/events.ts";
import type { Sql } from "./store.ts";
import type { WorkspaceRows } from "./workspace-rows.ts";

/** A class of statements. It gets the workspace from the store, so its callers cannot choose another one. */
export type StatementsClass<Rows extends WorkspaceRows> = new (sql: Sql, workspaceId: string) => Rows;

/** A class of statements that only read. */
export type ReaderClass<Rows extends WorkspaceRows> = StatementsClass<Rows> & { readonly writes?: never };

/** Reads the data of one workspace. Data of other workspaces cannot be reached. */
export class StoreReader {
  readonly #sql: Sql;
  readonly #workspaceId: string;
  /** The statements that were asked for, by class. */
  protected readonly made = new Map<StatementsClass<WorkspaceRows>, WorkspaceRows>();

  constructor(sql: Sql, workspaceId: string) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  /** The statements of a class for this workspace: one object for each class. */
  of<Rows extends WorkspaceRows>(statements: ReaderClass<Rows>): Rows {
    return this.make(statements);
  }

  protected make<Rows extends WorkspaceRows>(statements: StatementsClass<Rows>): Rows {
    const existing = this.made.get(statements) as Rows | undefined;
    if (existing !== undefined) return existing;
    const made = new statements(this.#sql, this.#workspaceId);
    this.made.set(statements, made);
    return made;
  }
}

/** Reads and writes the data of one workspace, within one transaction. */
export class StoreWriter extends StoreReader {
  static readonly writes = true;

  override of<Rows extends WorkspaceRows>(statements: StatementsClass<Rows>): Rows {
    return this.make(statements);
  }

  /** The events of rows that statements created besides what they were asked for. */
  get events(): EventContent[] {
    return [...this.made.values()].flatMap(({ events }) => events);
  }

  /** The rows that a transaction added, with those that it restored. */
  withRestored(added: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
    const sums = new Map(added);
    for (const { restoredRows } of this.made.values()) {
      for (const [table, rows] of restoredRows) sums.set(table, (sums.get(table) ?? 0) + rows);
    }
    return sums;
  }

  /** The bytes by which metadata grew in this transaction. */
  get metadataBytes(): number {
    return [...this.made.values()].reduce((sum, rows) => sum + rows.metadataBytes, 0);
  }
}
