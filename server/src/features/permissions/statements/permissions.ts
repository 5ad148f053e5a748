import { sql } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import { type PageOptions, searchPage } from "../../../platform/store/page.ts";
import type { PermissionRow } from "../../../platform/store/schema.ts";
import { fold } from "../../../platform/store/search.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** A permission as operations return it. */
export type StoredPermission = Pick<PermissionRow, "id" | "slug" | "name" | "description">;

/** The columns of a `StoredPermission`. */
export const permissionColumns = [
  "permissions.id",
  "permissions.slug",
  "permissions.name",
  "permissions.description",
] as const;

/** The permissions of one workspace. Slugs are compared without regard to case. */
export class PermissionReader extends WorkspaceRows {
  /** By id, else by slug. */
  async find(permission: string): Promise<StoredPermission | undefined> {
    return (
      (await this.#select().where("id", "=", permission).executeTakeFirst()) ??
      (await this.#select().where("slug_folded", "=", fold(permission)).executeTakeFirst())
    );
  }

  /** A key's direct permissions, in the order of slugs. */
  listOfKey(keyId: string): Promise<StoredPermission[]> {
    return this.#select()
      .where(({ eb, selectFrom }) =>
        eb("id", "in", selectFrom("keys_permissions").select("permission_id").where("key_id", "=", keyId)),
      )
      .orderBy("slug")
      .execute();
  }

  /** A page of permissions, searched by slug, name, description and id. */
  page(options: PageOptions): Promise<(StoredPermission & Pick<PermissionRow, "created_at">)[]> {
    const searched = ["slug_folded", "name_folded", "description_folded"].map((column) =>
      sql.ref<string | null>(column),
    );
    return searchPage(this.sql, this.#select().select("created_at"), options, searched).execute();
  }

  #select() {
    return this.sql.db.selectFrom("permissions").select(permissionColumns).where("workspace_id", "=", this.workspaceId);
  }
}

export class PermissionWriter extends PermissionReader {
  static readonly writes = true;

  /** Inserts a permission and returns its id; undefined if the slug exists. */
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

  /** Creates missing permissions; returns all of them, locked, and the slugs of those created. */
  async ensure(
    slugs: readonly string[],
    random: Random,
    at: Instant,
  ): Promise<{ permissions: StoredPermission[]; created: string[] }> {
    if (slugs.length === 0) return { permissions: [], created: [] };
    // Of slugs that differ only in case, the first is used.
    const slugByFolded = new Map(slugs.toReversed().map((slug) => [fold(slug), slug]));
    // Sorted, so that transactions with the same slugs cannot deadlock.
    const rows = [...slugByFolded].sort().map(([folded, slug]) => ({
      id: newId(random, "perm"),
      workspace_id: this.workspaceId,
      slug,
      slug_folded: folded,
      name: slug,
      name_folded: folded,
      created_at: at,
    }));
    const types = {
      id: "text",
      workspace_id: "text",
      slug: "text",
      slug_folded: "text",
      name: "text",
      name_folded: "text",
      created_at: "bigint",
    } as const;
    const created: string[] = [];
    // A permission that exists may be deleted before it is locked. Then the next round creates it.
    for (;;) {
      const inserted = await insertRows(this.sql, "permissions", types, rows)
        .onConflict((conflict) => conflict.columns(["workspace_id", "slug_folded"]).doNothing())
        .returning("slug")
        .execute();
      created.push(...inserted.map(({ slug }) => slug));
      const permissions = await this.lockBySlugs([...slugByFolded.keys()]);
      if (permissions.length === slugByFolded.size) return { permissions, created };
    }
  }

  /** The existing permissions with these slugs, locked against deletion until the transaction ends. */
  lockBySlugs(slugs: readonly string[]): Promise<(StoredPermission & Pick<PermissionRow, "slug_folded">)[]> {
    const query = this.sql.db
      .selectFrom("permissions")
      .select([...permissionColumns, "slug_folded"])
      .where("workspace_id", "=", this.workspaceId)
      .where("slug_folded", "in", this.sql.dialect.values.list(slugs.map(fold)))
      .orderBy("slug");
    return this.sql.dialect.locks.locking(query, "key share").execute();
  }

  /** Changes the given fields: `taken` if another permission has the slug, `missing` if the permission was deleted. */
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
      // Reserves the slug. An update that conflicts with a row of another transaction would abort this transaction.
      const reserved = await this.insert({ slug, name: slug, description: null }, random, at);
      if (reserved === undefined) return "taken";
      await this.delete(reserved);
    }
    const updated = await this.sql.db
      .updateTable("permissions")
      .set({
        // An update needs at least one column.
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

  /** Deletes the permission and its assignments to keys and roles; returns whether it existed. */
  async delete(permissionId: string): Promise<boolean> {
    const deleted = await this.sql.db
      .deleteFrom("permissions")
      .where("id", "=", permissionId)
      .where("workspace_id", "=", this.workspaceId)
      .returning("id")
      .executeTakeFirst();
    return deleted !== undefined;
  }
}
