import type { Instant } from "../../clock/clock.ts";
import { newId, type Random } from "../../random/random.ts";
import { always, inputList, inputRows, jsonArray, parsed } from "../json.ts";
import type { PermissionRow, RoleRow } from "../schema.ts";
import { contains, fold, folded, isFrom, type PageOptions } from "../search.ts";
import type { Sql } from "../store.ts";

/** What there is to say of a permission. */
export type StoredPermission = Pick<PermissionRow, "id" | "slug" | "name" | "description">;

/** A role with its permissions, in the order of their slugs. */
export interface StoredRole extends Pick<RoleRow, "id" | "name" | "description"> {
  permissions: StoredPermission[];
}

type Created = Pick<PermissionRow, "created_at">;

const shown = ["permissions.id", "permissions.slug", "permissions.name", "permissions.description"] as const;

/** Permissions and roles of one workspace. Slugs and names are compared without regard to case. */
export class PermissionReader {
  protected readonly sql: Sql;
  protected readonly workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.sql = sql;
    this.workspaceId = workspaceId;
  }

  /** By id, else by slug. */
  async find(permission: string): Promise<StoredPermission | undefined> {
    return (
      (await this.#select().where("id", "=", permission).executeTakeFirst()) ??
      (await this.#select().where("slug_folded", "=", fold(permission)).executeTakeFirst())
    );
  }

  /** What a key was given directly, in the order of the slugs. */
  ofKey(keyId: string): Promise<StoredPermission[]> {
    return this.#select()
      .where(({ eb, selectFrom }) =>
        eb("id", "in", selectFrom("keys_permissions").select("permission_id").where("key_id", "=", keyId)),
      )
      .orderBy("slug")
      .execute();
  }

  /** Up to `limit` permissions in the order of their creation, from a place on. */
  page({ search, from, limit }: PageOptions): Promise<(StoredPermission & Created)[]> {
    let query = this.#select().select("created_at").orderBy("created_at").orderBy("id").limit(limit);
    if (from !== undefined) query = query.where(isFrom(from));
    if (search !== "") {
      const part = fold(search);
      query = query.where(({ or, ref }) =>
        or([
          contains(this.sql, ref("slug_folded"), part),
          contains(this.sql, ref("name_folded"), part),
          contains(this.sql, ref("description_folded"), part),
          contains(this.sql, folded(ref("id")), part),
        ]),
      );
    }
    return query.execute();
  }

  /** By id, else by name. */
  async findRole(role: string): Promise<StoredRole | undefined> {
    const row =
      (await this.selectRoles().where("id", "=", role).executeTakeFirst()) ??
      (await this.selectRoles().where("name_folded", "=", fold(role)).executeTakeFirst());
    return row && asStoredRole(row);
  }

  /** A key's roles in the order of their names. */
  async rolesOfKey(keyId: string): Promise<StoredRole[]> {
    const rows = await this.selectRoles()
      .where(({ eb, selectFrom }) =>
        eb("id", "in", selectFrom("keys_roles").select("role_id").where("key_id", "=", keyId)),
      )
      .orderBy("name")
      .execute();
    return rows.map(asStoredRole);
  }

  /** Up to `limit` roles in the order of their creation, from a place on. */
  async rolePage({ search, from, limit }: PageOptions): Promise<(StoredRole & Created)[]> {
    let query = this.selectRoles().select("roles.created_at").orderBy("created_at").orderBy("id").limit(limit);
    if (from !== undefined) query = query.where(isFrom(from));
    if (search !== "") {
      const part = fold(search);
      query = query.where(({ or, ref }) =>
        or([
          contains(this.sql, ref("name_folded"), part),
          contains(this.sql, ref("description_folded"), part),
          contains(this.sql, folded(ref("id")), part),
        ]),
      );
    }
    return (await query.execute()).map((row) => ({ ...asStoredRole(row), created_at: row.created_at }));
  }

  #select() {
    return this.sql.db.selectFrom("permissions").select(shown).where("workspace_id", "=", this.workspaceId);
  }

  protected selectRoles() {
    return this.sql.db
      .selectFrom("roles")
      .select(["roles.id", "roles.name", "roles.description"])
      .select(({ selectFrom }) =>
        jsonArray(
          this.sql,
          selectFrom("roles_permissions")
            .innerJoin("permissions", "permissions.id", "roles_permissions.permission_id")
            .select(shown)
            .whereRef("roles_permissions.role_id", "=", "roles.id")
            .orderBy("permissions.slug"),
        ).as("permissions"),
      )
      .where("roles.workspace_id", "=", this.workspaceId);
  }
}

function asStoredRole(row: StoredRole): StoredRole {
  return { ...row, permissions: parsed(row.permissions) };
}

export class PermissionWriter extends PermissionReader {
  /** Makes a permission and gives its id, or undefined where the slug is taken. */
  async insert(
    { slug, name, description }: Pick<PermissionRow, "slug" | "name" | "description">,
    random: Random,
    at: Instant,
  ): Promise<string | undefined> {
    const inserted = await this.sql.db
      .insertInto("permissions")
      .values({
        id: newId(random, "perm"),
        workspace_id: this.workspaceId,
        slug,
        slug_folded: fold(slug),
        name,
        name_folded: fold(name),
        description,
        description_folded: description && fold(description),
        created_at: at,
      })
      .onConflict((conflict) => conflict.columns(["workspace_id", "slug_folded"]).doNothing())
      .returning("id")
      .executeTakeFirst();
    return inserted?.id;
  }

  /** Makes the permissions that do not exist yet and gives all of them, held, with the slugs of those that it made. */
  async ensure(
    slugs: readonly string[],
    random: Random,
    at: Instant,
  ): Promise<{ permissions: StoredPermission[]; made: string[] }> {
    if (slugs.length === 0) return { permissions: [], made: [] };
    // Of several spellings the first counts.
    const slugByFolded = new Map(slugs.toReversed().map((slug) => [fold(slug), slug]));
    // In one order everywhere: transactions that want the same two slugs must not wait for each other.
    const rows = [...slugByFolded].sort().map(([folded, slug]) => ({
      id: newId(random, "perm"),
      workspace_id: this.workspaceId,
      slug,
      slug_folded: folded,
      name: slug,
      name_folded: folded,
      created_at: at,
    }));
    const input = inputRows(
      this.sql,
      {
        id: "text",
        workspace_id: "text",
        slug: "text",
        slug_folded: "text",
        name: "text",
        name_folded: "text",
        created_at: "bigint",
      },
      rows,
    );
    const columns = ["id", "workspace_id", "slug", "slug_folded", "name", "name_folded", "created_at"] as const;
    const made: string[] = [];
    // One of those that were there may be deleted before it is held. Then it has to be made after all.
    for (;;) {
      const inserted = await this.sql.db
        .insertInto("permissions")
        .columns(columns)
        .expression((query) => query.selectFrom(input).select(columns).where(always))
        .onConflict((conflict) => conflict.columns(["workspace_id", "slug_folded"]).doNothing())
        .returning("slug")
        .execute();
      made.push(...inserted.map(({ slug }) => slug));
      const permissions = await this.lockBySlugs([...slugByFolded.keys()]);
      if (permissions.length === slugByFolded.size) return { permissions, made };
    }
  }

  /** Those of these slugs that exist, kept from being deleted until the transaction ends, so that they can be given. */
  lockBySlugs(slugs: readonly string[]): Promise<(StoredPermission & Pick<PermissionRow, "slug_folded">)[]> {
    const query = this.sql.db
      .selectFrom("permissions")
      .select([...shown, "slug_folded"])
      .where("workspace_id", "=", this.workspaceId)
      .where("slug_folded", "in", inputList(this.sql, slugs.map(fold)))
      .orderBy("slug");
    return (this.sql.dialect === "postgres" ? query.forKeyShare() : query).execute();
  }

  /** Changes what is given of a permission: `taken` when another one has the slug, `missing` when it was deleted. */
  async update(
    current: StoredPermission,
    {
      slug,
      name,
      description,
    }: { slug?: string | undefined; name?: string | undefined; description?: string | null | undefined },
    random: Random,
    at: Instant,
  ): Promise<StoredPermission | "taken" | "missing"> {
    if (slug !== undefined && fold(slug) !== fold(current.slug)) {
      // Reserves the slug: an update that met a row of another transaction would fail as a whole.
      const reserved = await this.insert({ slug, name: slug, description: null }, random, at);
      if (reserved === undefined) return "taken";
      await this.delete(reserved);
    }
    const updated = await this.sql.db
      .updateTable("permissions")
      .set({
        // So that there is something to set.
        id: current.id,
        ...(slug !== undefined && { slug, slug_folded: fold(slug) }),
        ...(name !== undefined && { name, name_folded: fold(name) }),
        ...(description !== undefined && { description, description_folded: description && fold(description) }),
      })
      .where("id", "=", current.id)
      .where("workspace_id", "=", this.workspaceId)
      .returning(["id", "slug", "name", "description"])
      .executeTakeFirst();
    return updated ?? "missing";
  }

  /** Removes the permission from everything that has it; tells whether it was there. */
  async delete(permissionId: string): Promise<boolean> {
    const deleted = await this.sql.db
      .deleteFrom("permissions")
      .where("id", "=", permissionId)
      .where("workspace_id", "=", this.workspaceId)
      .returning("id")
      .executeTakeFirst();
    return deleted !== undefined;
  }

  /** Makes a role without permissions and gives its id, or undefined where the name is taken. */
  async insertRole(
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

  /** Changes what is given of a role: `taken` when another one has the name, `missing` when it was deleted. */
  async updateRole(
    current: Pick<StoredRole, "id" | "name">,
    { name, description }: { name?: string | undefined; description?: string | null | undefined },
    random: Random,
    at: Instant,
  ): Promise<Omit<StoredRole, "permissions"> | "taken" | "missing"> {
    if (name !== undefined && fold(name) !== fold(current.name)) {
      // As with permissions: reserves the name.
      const reserved = await this.insertRole({ name, description: null }, random, at);
      if (reserved === undefined) return "taken";
      await this.deleteRole(reserved);
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

  /** Makes the roles that do not exist yet, without permissions, and gives all of them, held. */
  async ensureRoles(
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
    const input = inputRows(
      this.sql,
      { id: "text", workspace_id: "text", name: "text", name_folded: "text", created_at: "bigint" },
      rows,
    );
    const columns = ["id", "workspace_id", "name", "name_folded", "created_at"] as const;
    // As with permissions: one of those that were there may be deleted before it is held.
    for (;;) {
      await this.sql.db
        .insertInto("roles")
        .columns(columns)
        .expression((query) => query.selectFrom(input).select(columns).where(always))
        .onConflict((conflict) => conflict.columns(["workspace_id", "name_folded"]).doNothing())
        .execute();
      const roles = await this.lockRolesByNames([...nameByFolded.keys()]);
      if (roles.length === nameByFolded.size) return roles;
    }
  }

  /**
   * The role with this id, held until the transaction ends: two changes of one role wait for each other from here to
   * their commits. On SQLite every writer waits anyway.
   */
  async lockRole(roleId: string): Promise<StoredRole | undefined> {
    if (this.sql.dialect === "postgres") {
      await this.sql.db
        .selectFrom("roles")
        .select("id")
        .where("id", "=", roleId)
        .where("workspace_id", "=", this.workspaceId)
        .forNoKeyUpdate()
        .execute();
    }
    const row = await this.selectRoles().where("id", "=", roleId).executeTakeFirst();
    return row && asStoredRole(row);
  }

  /** Those of these names that exist, kept from being deleted until the transaction ends, so that they can be given. */
  lockRolesByNames(names: readonly string[]): Promise<Pick<RoleRow, "id" | "name" | "name_folded">[]> {
    const query = this.sql.db
      .selectFrom("roles")
      .select(["id", "name", "name_folded"])
      .where("workspace_id", "=", this.workspaceId)
      .where("name_folded", "in", inputList(this.sql, names.map(fold)))
      .orderBy("name");
    return (this.sql.dialect === "postgres" ? query.forKeyShare() : query).execute();
  }

  /** Makes these the role's permissions and no others. */
  async setRolePermissions(roleId: string, permissionIds: readonly string[]): Promise<void> {
    await this.sql.db
      .deleteFrom("roles_permissions")
      .where("role_id", "=", roleId)
      .where("workspace_id", "=", this.workspaceId)
      .where("permission_id", "not in", inputList(this.sql, permissionIds))
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
          .where("permissions.id", "in", inputList(this.sql, permissionIds)),
      )
      .onConflict((conflict) => conflict.columns(["role_id", "permission_id"]).doNothing())
      .execute();
  }

  /** Removes the role from every key that has it; its permissions stay. Tells whether it was there. */
  async deleteRole(roleId: string): Promise<boolean> {
    const deleted = await this.sql.db
      .deleteFrom("roles")
      .where("id", "=", roleId)
      .where("workspace_id", "=", this.workspaceId)
      .returning("id")
      .executeTakeFirst();
    return deleted !== undefined;
  }
}
