import type { Kysely } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** The direct permissions and the roles of one workspace's keys. */
export class KeyGrantWriter extends WorkspaceRows {
  static readonly writes = true;

  readonly permissions: KeyLinks<"permission_id">;
  readonly roles: KeyLinks<"role_id">;

  constructor(sql: Sql, workspaceId: string) {
    super(sql, workspaceId);
    this.permissions = new KeyLinks(sql, workspaceId, "permissions", "permission_id");
    this.roles = new KeyLinks(sql, workspaceId, "roles", "role_id");
  }

  /** Copies direct permissions and roles from one key to another. */
  async copy(from: string, to: string): Promise<void> {
    await this.permissions.copy(from, to);
    await this.roles.copy(from, to);
  }
}

/** What `permissions`, `roles` and the tables that link keys to them have in common. */
type LinkTables = Record<string, Record<string, string>>;

/** Links of one workspace's keys to rows of one table. */
class KeyLinks<Column extends "permission_id" | "role_id"> {
  readonly #sql: Sql;
  readonly #db: Kysely<LinkTables>;
  readonly #workspaceId: string;
  /** The table with what keys are linked to. */
  readonly #targets: "permissions" | "roles";
  /** The table with the links. */
  readonly #links: "keys_permissions" | "keys_roles";
  readonly #column: string;

  constructor(sql: Sql, workspaceId: string, targets: "permissions" | "roles", column: Column) {
    this.#sql = sql;
    this.#db = sql.db as unknown as Kysely<LinkTables>;
    this.#workspaceId = workspaceId;
    this.#targets = targets;
    this.#links = `keys_${targets}`;
    this.#column = column;
  }

  /** Adds links to new keys in one statement. */
  async insertAll(links: readonly Readonly<Record<Column | "key_id", string>>[]): Promise<void> {
    if (links.length === 0) return;
    const types = { key_id: "text", [this.#column]: "text" } as Record<Column | "key_id", "text">;
    await this.#insert()
      .expression((query) =>
        query
          .selectFrom(this.#sql.dialect.values.rows(types, links))
          .select(({ val, ref }) => [
            val(this.#workspaceId).as("workspace_id"),
            ref("input.key_id").as("key_id"),
            ref(`input.${this.#column}`).as("target_id"),
          ]),
      )
      .execute();
  }

  /** Replaces the links of the key. */
  async set(keyId: string, ids: readonly string[]): Promise<void> {
    await this.#delete(keyId).where(this.#column, "not in", this.#sql.dialect.values.list(ids)).execute();
    await this.add(keyId, ids);
  }

  /** Adds links that the key does not have. */
  async add(keyId: string, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#insert()
      .expression((query) =>
        query
          .selectFrom(this.#targets)
          .select(({ val, ref }) => [
            ref("workspace_id").as("workspace_id"),
            val(keyId).as("key_id"),
            ref("id").as("target_id"),
          ])
          .where("workspace_id", "=", this.#workspaceId)
          .where("id", "in", this.#sql.dialect.values.list(ids)),
      )
      .onConflict((conflict) => conflict.columns(["key_id", this.#column]).doNothing())
      .execute();
  }

  /** Removes links from the key. */
  async remove(keyId: string, ids: readonly string[]): Promise<void> {
    await this.#delete(keyId).where(this.#column, "in", this.#sql.dialect.values.list(ids)).execute();
  }

  /** Copies the links from one key to another. */
  async copy(from: string, to: string): Promise<void> {
    await this.#insert()
      .expression((query) =>
        query
          .selectFrom(this.#links)
          .select(({ val, ref }) => [
            ref("workspace_id").as("workspace_id"),
            val(to).as("key_id"),
            ref(this.#column).as("target_id"),
          ])
          .where("key_id", "=", from)
          .where("workspace_id", "=", this.#workspaceId),
      )
      .execute();
  }

  #insert() {
    return this.#db.insertInto(this.#links).columns(["workspace_id", "key_id", this.#column]);
  }

  #delete(keyId: string) {
    return this.#db.deleteFrom(this.#links).where("key_id", "=", keyId);
  }
}
