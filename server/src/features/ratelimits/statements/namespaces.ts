import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { NamespaceReference, StoredDescriptors } from "../../../../../engine/src/directory/stored.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import type { DescriptorNode } from "../../../../../engine/src/rules/descriptor-node.ts";
import { compileDescriptors } from "../../../../../engine/src/rules/descriptor-tree.ts";
import { type CompiledOverrides, compileOverrides } from "../../../../../engine/src/rules/override-patterns.ts";
import { deletedRows } from "../../../platform/store/deleted-rows.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import { parsed } from "../../../platform/store/json.ts";
import { type PageOptions, searchPage } from "../../../platform/store/page.ts";
import type { RatelimitNamespaceRow, SqlBoolean } from "../../../platform/store/schema.ts";
import { fold } from "../../../platform/store/search.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { optionalFlag } from "../../../platform/vocabulary/columns.ts";

/** A namespace with its overrides and its descriptors, and the reference by which it was looked up. */
export interface StoredNamespace extends NamespaceReference {
  id: string;
  name: string;
  overrides: CompiledOverrides;
  descriptors: StoredDescriptors | null;
}

/**
 * Finds namespaces that are not deleted, with their overrides and descriptors compiled; the directory loads its records with this. If a
 * reference is the name of one namespace and the id of another, the one with the id comes last.
 */
export async function findNamespaces(
  connection: Sql,
  references: readonly NamespaceReference[],
): Promise<StoredNamespace[]> {
  const input = connection.dialect.values.rows({ workspace_id: "text", name_or_id: "text" }, references);
  const findBy = (column: "name" | "id") =>
    connection.db
      .selectFrom(input)
      .innerJoin("ratelimit_namespaces as namespaces", (join) =>
        join
          .onRef("namespaces.workspace_id", "=", "input.workspace_id")
          .onRef(`namespaces.${column}`, "=", "input.name_or_id")
          .on("namespaces.deleted_at", "is", null),
      )
      .leftJoin("ratelimit_descriptors as trees", "trees.namespace_id", "namespaces.id")
      .select(["input.workspace_id", "input.name_or_id", "namespaces.id", "namespaces.name"])
      .select(["trees.descriptors", "trees.atomic", "trees.metadata"])
      .select(({ selectFrom }) =>
        connection.dialect.json
          .array(
            selectFrom("ratelimit_overrides as overrides")
              .select(["overrides.id", "overrides.identifier", "overrides.limit", "overrides.duration"])
              .select(["overrides.mode", "overrides.shadow", "overrides.created_at as createdAt"])
              .whereRef("overrides.namespace_id", "=", "namespaces.id"),
          )
          .as("overrides"),
      );
  const rows = [...(await findBy("name").execute()), ...(await findBy("id").execute())];
  const found: StoredNamespace[] = [];
  for (const { overrides: written, descriptors, atomic, metadata, ...row } of rows) {
    const overrides = parsed(written).map(({ shadow, ...override }) => ({
      ...override,
      shadow: optionalFlag(shadow),
    }));
    found.push({
      ...row,
      overrides: await compileOverrides(overrides),
      descriptors: descriptors === null ? null : await compileTree(descriptors, atomic, metadata),
    });
  }
  return found;
}

async function compileTree(
  descriptors: string,
  atomic: SqlBoolean | null,
  metadata: SqlBoolean | null,
): Promise<StoredDescriptors> {
  const tree = await compileDescriptors(JSON.parse(descriptors) as DescriptorNode[]);
  return { tree, isAtomic: atomic === 1, hasMetadata: metadata === 1 };
}

/** The rate limit namespaces of one workspace that are not deleted. */
export class NamespaceReader extends WorkspaceRows {
  /** By id, else by name. */
  async find(nameOrId: string): Promise<RatelimitNamespaceRow | undefined> {
    return (
      (await this.#select().where("id", "=", nameOrId).executeTakeFirst()) ??
      (await this.#select().where("name", "=", nameOrId).executeTakeFirst())
    );
  }

  /** A page of namespaces, searched by name and id. */
  page(options: PageOptions): Promise<RatelimitNamespaceRow[]> {
    return searchPage(this.sql, this.#select(), options).execute();
  }

  #select() {
    return this.sql.db
      .selectFrom("ratelimit_namespaces")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null);
  }
}

export class NamespaceWriter extends NamespaceReader {
  static readonly writes = true;

  /**
   * Finds a namespace by id, else by name, and locks it until the transaction ends, so that overrides are counted and
   * added by one transaction at a time.
   */
  async findForUpdate(nameOrId: string): Promise<RatelimitNamespaceRow | undefined> {
    const found = await this.find(nameOrId);
    if (!found || !(await this.lockRow("ratelimit_namespaces", found.id, "no key update"))) return found;
    // Another transaction may have deleted it before the lock was granted.
    return this.find(found.id);
  }

  /** Creates missing namespaces and returns those that it created; safe under concurrency. */
  async ensure(names: readonly string[], random: Random, at: Instant): Promise<{ id: string; name: string }[]> {
    // Sorted, so that transactions with the same names cannot deadlock.
    const rows = [...new Set(names)].sort().map((name) => ({
      id: newId(random, "rlns"),
      workspace_id: this.workspaceId,
      name,
      name_folded: fold(name),
      created_at: at,
    }));
    const types = {
      id: "text",
      workspace_id: "text",
      name: "text",
      name_folded: "text",
      created_at: "bigint",
    } as const;
    return insertRows(this.sql, "ratelimit_namespaces", types, rows)
      .onConflict((conflict) => conflict.columns(["workspace_id", "name"]).where("deleted_at", "is", null).doNothing())
      .returning(["id", "name"])
      .execute();
  }

  /** Keeps the row for records that refer to it, frees the name, and deletes the overrides and the descriptors. */
  async markDeleted(namespaceId: string, at: Instant): Promise<void> {
    for (const table of ["ratelimit_overrides", "ratelimit_descriptors"] as const) {
      await this.sql.db
        .deleteFrom(table)
        .where("namespace_id", "=", namespaceId)
        .where("workspace_id", "=", this.workspaceId)
        .execute();
    }
    await this.sql.db
      .updateTable("ratelimit_namespaces")
      .set({ deleted_at: at })
      .where("id", "=", namespaceId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}

/** Deletes namespaces without overrides and descriptors. */
export const namespaceRetention = deletedRows("ratelimit_namespaces", {
  references: `select 1 from ratelimit_overrides where namespace_id = ratelimit_namespaces.id
    union all select 1 from ratelimit_descriptors where namespace_id = ratelimit_namespaces.id`,
});
