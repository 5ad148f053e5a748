import type { Updateable } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { eraseOutcomesOfSelected } from "../../platform/store/idempotency.ts";
import { demandStep } from "../../platform/store/migrate.ts";
import { type PageOptions, searchPage } from "../../platform/store/page.ts";
import type { ApiRow } from "../../platform/store/schema.ts";
import { fold } from "../../platform/store/search.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";

/** The APIs of one workspace that are not deleted. */
export class ApiReader extends WorkspaceRows {
  /** Whether the API exists, deleted or not; for data that outlives it. */
  async exists(apiId: string): Promise<boolean> {
    const row = await this.sql.db
      .selectFrom("apis")
      .select("id")
      .where("id", "=", apiId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Those of these APIs that exist, deleted or not. */
  async existing(apiIds: readonly string[]): Promise<Set<string>> {
    const rows = await this.sql.db
      .selectFrom("apis")
      .select("id")
      .where("workspace_id", "=", this.workspaceId)
      .where(this.sql.dialect.values.isOneOf("id", apiIds))
      .execute();
    return new Set(rows.map(({ id }) => id));
  }

  find(apiId: string): Promise<ApiRow | undefined> {
    return this.#select().where("id", "=", apiId).executeTakeFirst();
  }

  /** The number of other APIs with an upstream verifier. */
  async countOtherUpstreams(apiId: string): Promise<number> {
    const { count } = await this.sql.db
      .selectFrom("apis")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null)
      .where("upstream", "is not", null)
      .where("id", "!=", apiId)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** A page of APIs, searched by name and id. */
  page(options: PageOptions): Promise<ApiRow[]> {
    return searchPage(this.sql, this.#select(), options).execute();
  }

  #select() {
    return this.sql.db
      .selectFrom("apis")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null);
  }
}

export class ApiWriter extends ApiReader {
  static readonly writes = true;

  /** Whether policies can be stored: programs of earlier releases create keys that do not obey them. */
  accepts(policy: object | null | undefined): boolean | Promise<boolean> {
    return policy == null || demandStep(this.sql, "051-api-policies");
  }

  async insert(api: {
    id: string;
    name: string;
    ownKeyAccess: boolean;
    ownKeyDerivation: boolean;
    policy?: string | null;
    createdAt: Instant;
  }): Promise<void> {
    await this.sql.db
      .insertInto("apis")
      .values({
        id: api.id,
        workspace_id: this.workspaceId,
        name: api.name,
        name_folded: fold(api.name),
        delete_protection: 0,
        own_key_access: api.ownKeyAccess ? 1 : 0,
        own_key_derivation: api.ownKeyDerivation ? 1 : 0,
        policy: api.policy ?? null,
        created_at: api.createdAt,
      })
      .execute();
  }

  async update(
    apiId: string,
    values: Pick<
      Updateable<ApiRow>,
      | "name"
      | "prefix"
      | "byte_length"
      | "delete_protection"
      | "allowed_ips"
      | "leak_action"
      | "expiry_notices"
      | "upstream"
      | "own_key_access"
      | "resources"
      | "own_key_derivation"
      | "policy"
      | "portal"
    >,
    at: Instant,
  ): Promise<void> {
    await this.sql.db
      .updateTable("apis")
      .set({ ...values, ...(values.name !== undefined && { name_folded: fold(values.name) }), updated_at: at })
      .where("id", "=", apiId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }

  /** The rows of its keys stay but no query finds them. Stored outcomes that may contain key strings are erased. */
  async markDeleted(apiId: string, at: Instant): Promise<void> {
    await this.sql.db
      .updateTable("apis")
      .set({ deleted_at: at })
      .where("id", "=", apiId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
    const keyIds = this.sql.db.selectFrom("keys").select("id").where("api_id", "=", apiId);
    await eraseOutcomesOfSelected(this.sql, keyIds);
  }
}
