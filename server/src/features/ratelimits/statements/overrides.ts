import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { onePage, type PageOptions } from "../../../platform/store/page.ts";
import type { RatelimitOverrideRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** The overrides of one workspace's namespaces. */
export class OverrideReader extends WorkspaceRows {
  all(namespaceId: string): Promise<RatelimitOverrideRow[]> {
    return this.#select(namespaceId).execute();
  }

  /** The override with exactly this identifier or pattern. */
  find(namespaceId: string, identifier: string): Promise<RatelimitOverrideRow | undefined> {
    return this.#select(namespaceId).where("identifier", "=", identifier).executeTakeFirst();
  }

  /** The number of overrides, and the number of those with more than one asterisk. */
  async count(namespaceId: string): Promise<{ all: number; multiple: number }> {
    const counted = this.sql.db
      .selectFrom("ratelimit_overrides")
      .select(({ fn }) => fn.countAll<number | string>().as("count"))
      .where("workspace_id", "=", this.workspaceId)
      .where("namespace_id", "=", namespaceId);
    const all = await counted.executeTakeFirstOrThrow();
    const multiple = await counted.where("identifier", "like", "%*%*%").executeTakeFirstOrThrow();
    return { all: Number(all.count), multiple: Number(multiple.count) };
  }

  /** A page of the overrides of a namespace. */
  page(namespaceId: string, options: Pick<PageOptions, "from" | "limit">): Promise<RatelimitOverrideRow[]> {
    return onePage(this.#select(namespaceId), options).execute();
  }

  #select(namespaceId: string) {
    return this.sql.db
      .selectFrom("ratelimit_overrides")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("namespace_id", "=", namespaceId);
  }
}

export class OverrideWriter extends OverrideReader {
  static readonly writes = true;

  /**
   * Inserts or updates the override of an identifier or pattern; returns its id, which an update does not change. The
   * namespace must be locked.
   */
  async put(
    namespaceId: string,
    override: Pick<RatelimitOverrideRow, "identifier" | "limit" | "duration" | "mode" | "shadow">,
    random: Random,
    at: Instant,
  ): Promise<string> {
    const { identifier, ...values } = override;
    // Not one statement, so that an update does not count as a new row.
    const updated = await this.sql.db
      .updateTable("ratelimit_overrides")
      .set({ ...values, updated_at: at })
      .where("namespace_id", "=", namespaceId)
      .where("identifier", "=", identifier)
      .returning("id")
      .executeTakeFirst();
    if (updated) return updated.id;
    const row = { workspace_id: this.workspaceId, namespace_id: namespaceId, ...override };
    const id = newId(random, "rlor");
    await this.sql.db
      .insertInto("ratelimit_overrides")
      .values({ ...row, id, created_at: at })
      .execute();
    return id;
  }

  async remove(overrideId: string): Promise<void> {
    await this.sql.db
      .deleteFrom("ratelimit_overrides")
      .where("id", "=", overrideId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}
