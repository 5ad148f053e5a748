import type { Updateable } from "kysely";
import { inputList } from "./json.ts";
import type { Flag, RootKeyRow } from "./schema.ts";
import type { Sql } from "./store.ts";

/** A root key with the state of its workspace. */
export interface StoredRootKey extends RootKeyRow {
  workspace_enabled: Flag;
}

/** Root keys that are not deleted, in whichever workspace: what the directory fills itself from. */
export function findRootKeysByHashes(sql: Sql, hashes: readonly string[]): Promise<StoredRootKey[]> {
  return sql.db
    .selectFrom("root_keys")
    .innerJoin("workspaces", "workspaces.id", "root_keys.workspace_id")
    .selectAll("root_keys")
    .select("workspaces.enabled as workspace_enabled")
    .where("root_keys.hash", "in", inputList(sql, hashes))
    .where("root_keys.deleted_at", "is", null)
    .execute();
}

/** The root keys of one workspace that are not deleted. */
export class RootKeyReader {
  protected readonly sql: Sql;
  protected readonly workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.sql = sql;
    this.workspaceId = workspaceId;
  }

  find(rootKeyId: string): Promise<RootKeyRow | undefined> {
    return this.#select().where("id", "=", rootKeyId).executeTakeFirst();
  }

  list(): Promise<RootKeyRow[]> {
    return this.#select().orderBy("created_at").orderBy("id").execute();
  }

  #select() {
    return this.sql.db
      .selectFrom("root_keys")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null);
  }
}

export class RootKeyWriter extends RootKeyReader {
  async insert(rootKey: Omit<RootKeyRow, "workspace_id" | "updated_at" | "deleted_at">): Promise<void> {
    await this.sql.db
      .insertInto("root_keys")
      .values({ ...rootKey, workspace_id: this.workspaceId })
      .execute();
  }

  async update(rootKeyId: string, values: Updateable<RootKeyRow>): Promise<void> {
    await this.sql.db
      .updateTable("root_keys")
      .set(values)
      .where("id", "=", rootKeyId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}
