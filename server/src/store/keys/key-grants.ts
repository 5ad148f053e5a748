import { inputList, inputRows } from "../json.ts";
import type { Sql } from "../store.ts";

/** The direct permissions and the roles of one workspace's keys. */
export class KeyGrantWriter {
  readonly #sql: Sql;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  /** Adds direct permissions to new keys in one statement. */
  async linkPermissions(links: readonly { key_id: string; permission_id: string }[]): Promise<void> {
    if (links.length === 0) return;
    const input = inputRows(this.#sql, { key_id: "text", permission_id: "text" }, links);
    await this.#sql.db
      .insertInto("keys_permissions")
      .columns(["key_id", "permission_id", "workspace_id"])
      .expression((query) =>
        query
          .selectFrom(input)
          .select(["key_id", "permission_id"])
          .select(({ val }) => val(this.#workspaceId).as("workspace_id")),
      )
      .execute();
  }

  /** Adds roles to new keys in one statement. */
  async linkRoles(links: readonly { key_id: string; role_id: string }[]): Promise<void> {
    if (links.length === 0) return;
    const input = inputRows(this.#sql, { key_id: "text", role_id: "text" }, links);
    await this.#sql.db
      .insertInto("keys_roles")
      .columns(["key_id", "role_id", "workspace_id"])
      .expression((query) =>
        query
          .selectFrom(input)
          .select(["key_id", "role_id"])
          .select(({ val }) => val(this.#workspaceId).as("workspace_id")),
      )
      .execute();
  }

  /** Replaces the key's direct permissions. */
  async setPermissions(keyId: string, permissionIds: readonly string[]): Promise<void> {
    await this.#sql.db
      .deleteFrom("keys_permissions")
      .where("key_id", "=", keyId)
      .where("permission_id", "not in", inputList(this.#sql, permissionIds))
      .execute();
    await this.addPermissions(keyId, permissionIds);
  }

  /** Adds direct permissions that the key does not have. */
  async addPermissions(keyId: string, permissionIds: readonly string[]): Promise<void> {
    if (permissionIds.length === 0) return;
    await this.#sql.db
      .insertInto("keys_permissions")
      .columns(["workspace_id", "key_id", "permission_id"])
      .expression((query) =>
        query
          .selectFrom("permissions")
          .select(({ val, ref }) => [
            val(this.#workspaceId).as("workspace_id"),
            val(keyId).as("key_id"),
            ref("permissions.id").as("permission_id"),
          ])
          .where("permissions.workspace_id", "=", this.#workspaceId)
          .where("permissions.id", "in", inputList(this.#sql, permissionIds)),
      )
      .onConflict((conflict) => conflict.columns(["key_id", "permission_id"]).doNothing())
      .execute();
  }

  /** Removes direct permissions from the key. */
  async removePermissions(keyId: string, permissionIds: readonly string[]): Promise<void> {
    await this.#sql.db
      .deleteFrom("keys_permissions")
      .where("key_id", "=", keyId)
      .where("permission_id", "in", inputList(this.#sql, permissionIds))
      .execute();
  }

  /** Replaces the key's roles. */
  async setRoles(keyId: string, roleIds: readonly string[]): Promise<void> {
    await this.#sql.db
      .deleteFrom("keys_roles")
      .where("key_id", "=", keyId)
      .where("role_id", "not in", inputList(this.#sql, roleIds))
      .execute();
    await this.addRoles(keyId, roleIds);
  }

  /** Adds roles that the key does not have. */
  async addRoles(keyId: string, roleIds: readonly string[]): Promise<void> {
    if (roleIds.length === 0) return;
    await this.#sql.db
      .insertInto("keys_roles")
      .columns(["workspace_id", "key_id", "role_id"])
      .expression((query) =>
        query
          .selectFrom("roles")
          .select(({ val, ref }) => [
            val(this.#workspaceId).as("workspace_id"),
            val(keyId).as("key_id"),
            ref("roles.id").as("role_id"),
          ])
          .where("roles.workspace_id", "=", this.#workspaceId)
          .where("roles.id", "in", inputList(this.#sql, roleIds)),
      )
      .onConflict((conflict) => conflict.columns(["key_id", "role_id"]).doNothing())
      .execute();
  }

  /** Removes roles from the key. */
  async removeRoles(keyId: string, roleIds: readonly string[]): Promise<void> {
    await this.#sql.db
      .deleteFrom("keys_roles")
      .where("key_id", "=", keyId)
      .where("role_id", "in", inputList(this.#sql, roleIds))
      .execute();
  }

  /** Copies direct permissions and roles from one key to another. */
  async copy(from: string, to: string): Promise<void> {
    await this.#sql.db
      .insertInto("keys_permissions")
      .columns(["workspace_id", "key_id", "permission_id"])
      .expression((query) =>
        query
          .selectFrom("keys_permissions")
          .select(({ val, ref }) => [
            ref("workspace_id").as("workspace_id"),
            val(to).as("key_id"),
            ref("permission_id").as("permission_id"),
          ])
          .where("key_id", "=", from)
          .where("workspace_id", "=", this.#workspaceId),
      )
      .execute();
    await this.#sql.db
      .insertInto("keys_roles")
      .columns(["workspace_id", "key_id", "role_id"])
      .expression((query) =>
        query
          .selectFrom("keys_roles")
          .select(({ val, ref }) => [
            ref("workspace_id").as("workspace_id"),
            val(to).as("key_id"),
            ref("role_id").as("role_id"),
          ])
          .where("key_id", "=", from)
          .where("workspace_id", "=", this.#workspaceId),
      )
      .execute();
  }
}
