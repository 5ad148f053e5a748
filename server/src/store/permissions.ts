import type { Instant } from "../clock/clock.ts";
import { newId, type Random } from "../random/random.ts";
import { always, inputList, inputRows } from "./json.ts";
import type { PermissionRow, RoleRow } from "./schema.ts";
import type { Sql } from "./store.ts";

/** Permissions and roles of one workspace. Slugs and names are compared without regard to case (contract B2.10). */
export class PermissionReader {
  protected readonly sql: Sql;
  protected readonly workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.sql = sql;
    this.workspaceId = workspaceId;
  }

  findBySlugs(slugs: readonly string[]): Promise<PermissionRow[]> {
    return this.sql.db
      .selectFrom("permissions")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("slug_folded", "in", inputList(this.sql, slugs.map(fold)))
      .orderBy("id")
      .execute();
  }

  findRolesByNames(names: readonly string[]): Promise<RoleRow[]> {
    return this.sql.db
      .selectFrom("roles")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("name_folded", "in", inputList(this.sql, names.map(fold)))
      .orderBy("id")
      .execute();
  }
}

export class PermissionWriter extends PermissionReader {
  /** Makes the permissions that do not exist yet and gives all of them. */
  async ensure(slugs: readonly string[], random: Random, at: Instant): Promise<PermissionRow[]> {
    if (slugs.length === 0) return [];
    const rows = [...new Map(slugs.map((slug) => [fold(slug), slug]))].map(([folded, slug]) => ({
      id: newId(random, "perm"),
      workspace_id: this.workspaceId,
      slug,
      slug_folded: folded,
      name: slug,
      created_at: at,
    }));
    const input = inputRows(
      this.sql,
      { id: "text", workspace_id: "text", slug: "text", slug_folded: "text", name: "text", created_at: "bigint" },
      rows,
    );
    const columns = ["id", "workspace_id", "slug", "slug_folded", "name", "created_at"] as const;
    await this.sql.db
      .insertInto("permissions")
      .columns(columns)
      .expression((query) => query.selectFrom(input).select(columns).where(always))
      .onConflict((conflict) => conflict.columns(["workspace_id", "slug_folded"]).doNothing())
      .execute();
    return this.findBySlugs(slugs);
  }
}

/** How slugs and role names are compared. */
export function fold(text: string): string {
  return text.toLowerCase();
}
