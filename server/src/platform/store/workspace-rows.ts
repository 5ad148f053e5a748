import type { EventContent } from "./events/events.ts";
import type { TablesWith } from "./schema.ts";
import type { Sql } from "./store.ts";

/**
 * Statements on some tables, within one workspace. The store makes them: `store.of(KeyReader)`. A class that writes has the
 * static member `writes`, so that queries cannot ask for it.
 */
export abstract class WorkspaceRows {
  /** The events of rows that were created besides what the handler asked for. They precede the events of the handler. */
  readonly events: EventContent[] = [];
  /** The rows that are no longer deleted, by table. They count as added. */
  readonly restoredRows = new Map<string, number>();
  /** The bytes by which metadata grew in this transaction. */
  metadataBytes = 0;
  protected readonly sql: Sql;
  protected readonly workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.sql = sql;
    this.workspaceId = workspaceId;
  }

  /**
   * Locks a row until the transaction ends. While the lock is `no key update`, other transactions can insert rows that
   * refer to it. Returns whether another transaction could change the row before it was locked.
   */
  protected async lockRow(
    table: TablesWith<{ id: string; workspace_id: string }>,
    id: string,
    lock: "update" | "no key update" = "update",
  ): Promise<boolean> {
    const row = this.sql.db
      .selectFrom(table)
      .select("id")
      .where("id", "=", id)
      .where("workspace_id", "=", this.workspaceId);
    return this.sql.dialect.locks.lockRows(row, lock);
  }

  /** The bytes of the metadata of a row; 0 if it has none. */
  protected async metadataLength(
    table: TablesWith<{ id: string; workspace_id: string; meta: string | null }>,
    id: string,
  ): Promise<number> {
    const row = await this.sql.db
      .selectFrom(table)
      .select(({ fn }) => fn<number | null>("octet_length", ["meta"]).as("length"))
      .where("id", "=", id)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
    return Number(row?.length ?? 0);
  }
}
