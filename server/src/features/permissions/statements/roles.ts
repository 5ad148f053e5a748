import { sql } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import { parsed } from "../../../platform/store/json.ts";
import { type PageOptions, searchPage } from "../../../platform/store/page.ts";
import type { RoleRow } from "../../../platform/store/schema.ts";
import { fold } from "../../../platform/store/search.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { permissionColumns, type StoredPermission } from "./permissions.ts";

/** A role with its permissions, in the order of their slugs. */
export interface StoredRole extends Pick<RoleRow, "id" | "name" | "description"> {
  permissions: StoredPermission[];
}

/** The roles of one workspace. Names are compared without regard to case. */
export class RoleReader extends WorkspaceRows {
  /** By id, else by name. */
  async find(role: string): Promise<StoredRole | undefined> {
    const row =
      (await this.select().where("id", "=", role).executeTakeFirst()) ??
      (await this.select().where("name_folded", "=", fold(role)).executeTakeFirst());
    return row && asStoredRole(row);
  }

  /** A key's roles, in the order of names. */
  async listOfKey(keyId: string): Promise<StoredRole[]> {
    const rows = await this.select()
      .where(({ eb, selectFrom }) =>
        eb("id", "in", selectFrom("keys_roles").select("role_id").where("key_id", "=", keyId)),
      )
      .orderBy("name")
      .execute();
    return rows.map(asStoredRole);
  }

  /** A page of roles, searched by name, description and id. */
  async page(options: PageOptions): Promise<(StoredRole & Pick<RoleRow, "created_at">)[]> {
    const searched = ["name_folded", "description_folded"].map((column) => sql.ref<string | null>(column));
    const rows = await searchPage(this.sql, this.select().select("roles.created_at"), options, searched).execute();
    return rows.map((row) => ({ ...asStoredRole(row), created_at: row.created_at }));
  }

  protected select() {
    return this.sql.db
      .selectFrom("roles")
      .select(["roles.id", "roles.name", "roles.description"])
      .select(({ selectFrom }) =>
        this.sql.dialect.json
          .array(
            selectFrom("roles_permissions")
              .innerJoin("permissions", "permissions.id", "roles_permissions.permission_id")
              .select(permissionColumns)
              .whereRef("roles_permissions.role_id", "=", "roles.id")
              .orderBy("permissions.slug"),
          )
          .as("permissions"),
      )
      .where("roles.workspace_id", "=", this.workspaceId);
  }
}

function asStoredRole(row: StoredRole): StoredRole {
  return { ...row, permissions: parsed(row.permissions) };
}

export class RoleWriter extends RoleReader {
  static readonly writes = true;

  /** Inserts a role without permissions and returns its id; undefined if the name exists. */
  async insert(
    { name, description }: Pick<RoleRow, "name" | "description">,
    random: Random,
    at: Instant,
  ): Promise<string | undefined> {
    const inserted = await this.sql.db
      .insertInto("roles")
      .values({
        id: newId(random, "role"),
        workspace_id: this.workspaceId,
        name,
        name_folded: fold(name),
        description,
        description_folded: description && fold(description),
        created_at: at,
      })
      .onConflict((conflict) => conflict.columns(["workspace_id", "name_folded"]).doNothing())
      .returning("id")
      .executeTakeFirst();
    return inserted?.id;
  }

  /** Changes the given fields: `taken` if another role has the name, `missing` if the role was deleted. */
  async update(
    current: Pick<StoredRole, "id" | "name">,
    { name, description }: { name?: string | undefined; description?: string | null | undefined },
    random: Random,
    at: Instant,
  ): Promise<Omit<StoredRole, "permissions"> | "taken" | "missing"> {
    if (name !== undefined && fold(name) !== fold(current.name)) {
      // Reserves the name, for the same reason as with permissions.
      const reserved = await this.insert({ name, description: null }, random, at);
      if (reserved === undefined) return "taken";
      await this.delete(reserved);
    }
    const updated = await this.sql.db
      .updateTable("roles")
      .set({
        id: current.id,
        ...(name !== undefined && { name, name_folded: fold(name) }),
        ...(description !== undefined && { description, description_folded: description && fold(description) }),
      })
      .where("id", "=", current.id)
      .where("workspace_id", "=", this.workspaceId)
      .returning(["id", "name", "description"])
      .executeTakeFirst();
    return updated ?? "missing";
  }

  /** Creates missing roles without permissions; returns all of them, locked. */
  async ensure(
    names: readonly string[],
    random: Random,
    at: Instant,
  ): Promise<Pick<RoleRow, "id" | "name" | "name_folded">[]> {
    if (names.length === 0) return [];
    const nameByFolded = new Map(names.map((name) => [fold(name), name]));
    const rows = [...nameByFolded].sort().map(([folded, name]) => ({
      id: newId(random, "role"),
      workspace_id: this.workspaceId,
      name,
      name_folded: folded,
      created_at: at,
    }));
    const types = {
      id: "text",
      workspace_id: "text",
      name: "text",
      name_folded: "text",
      created_at: "bigint",
    } as const;
    // A role that exists may be deleted before it is locked. Then the next round creates it.
    for (;;) {
      await insertRows(this.sql, "roles", types, rows)
        .onConflict((conflict) => conflict.columns(["workspace_id", "name_folded"]).doNothing())
        .execute();
      const roles = await this.lockByNames([...nameByFolded.keys()]);
      if (roles.length === nameByFolded.size) return roles;
    }
  }

  /** Finds a role and locks it until the transaction ends. */
  async findForUpdate(roleId: string): Promise<StoredRole | undefined> {
    await this.lockRow("roles", roleId, "no key update");
    const row = await this.select().where("id", "=", roleId).executeTakeFirst();
    return row && asStoredRole(row);
  }

  /** The existing roles with these names, locked against deletion until the transaction ends. */
  lockByNames(names: readonly string[]): Promise<Pick<RoleRow, "id" | "name" | "name_folded">[]> {
    const query = this.sql.db
      .selectFrom("roles")
      .select(["id", "name", "name_folded"])
      .where("workspace_id", "=", this.workspaceId)
      .where("name_folded", "in", this.sql.dialect.values.list(names.map(fold)))
      .orderBy("name");
    return this.sql.dialect.locks.locking(query, "key share").execute();
  }

  /** Replaces the role's permissions. */
  async setPermissions(roleId: string, permissionIds: readonly string[]): Promise<void> {
    await this.sql.db
      .deleteFrom("roles_permissions")
      .where("role_id", "=", roleId)
      .where("workspace_id", "=", this.workspaceId)
      .where("permission_id", "not in", this.sql.dialect.values.list(permissionIds))
      .execute();
    if (permissionIds.length === 0) return;
    await this.sql.db
      .insertInto("roles_permissions")
      .columns(["workspace_id", "role_id", "permission_id"])
      .expression((query) =>
        query
          .selectFrom("permissions")
          .select(({ val, ref }) => [
            val(this.workspaceId).as("workspace_id"),
            val(roleId).as("role_id"),
            ref("permissions.id").as("permission_id"),
          ])
          .where("permissions.workspace_id", "=", this.workspaceId)
          .where("permissions.id", "in", this.sql.dialect.values.list(permissionIds)),
      )
      .onConflict((conflict) => conflict.columns(["role_id", "permission_id"]).doNothing())
      .execute();
  }

  /** Deletes the role and its assignments to keys; its permissions stay. Returns whether it existed. */
  async delete(roleId: string): Promise<boolean> {
    const deleted = await this.sql.db
      .deleteFrom("roles")
      .where("id", "=", roleId)
      .where("workspace_id", "=", this.workspaceId)
      .returning("id")
      .executeTakeFirst();
    return deleted !== undefined;
  }
}
