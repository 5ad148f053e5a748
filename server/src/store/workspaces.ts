import type { Updateable } from "kysely";
import { inputList } from "./json.ts";
import type { WorkspaceRow } from "./schema.ts";
import type { Sql } from "./store.ts";

/** All workspaces: for the administrator of the service, not for the owner of one. */
export class WorkspaceReader {
  protected readonly sql: Sql;

  constructor(sql: Sql) {
    this.sql = sql;
  }

  find(workspaceId: string): Promise<WorkspaceRow | undefined> {
    return this.sql.db.selectFrom("workspaces").selectAll().where("id", "=", workspaceId).executeTakeFirst();
  }

  findAll(workspaceIds: readonly string[]): Promise<WorkspaceRow[]> {
    return this.sql.db
      .selectFrom("workspaces")
      .selectAll()
      .where("id", "in", inputList(this.sql, workspaceIds))
      .execute();
  }

  findDefault(): Promise<WorkspaceRow | undefined> {
    return this.sql.db.selectFrom("workspaces").selectAll().where("is_default", "=", 1).executeTakeFirst();
  }

  list(): Promise<WorkspaceRow[]> {
    return this.sql.db.selectFrom("workspaces").selectAll().orderBy("created_at").orderBy("id").execute();
  }
}

export class WorkspaceWriter extends WorkspaceReader {
  async insert(workspace: WorkspaceRow): Promise<void> {
    await this.sql.db.insertInto("workspaces").values(workspace).execute();
  }

  async update(workspaceId: string, values: Updateable<WorkspaceRow>): Promise<void> {
    await this.sql.db.updateTable("workspaces").set(values).where("id", "=", workspaceId).execute();
  }
}
