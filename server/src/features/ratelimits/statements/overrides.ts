import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { onePage, type PageOptions } from "../../../platform/store/page.ts";
import type { RatelimitOverrideRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { flag, optionalFlag } from "../../../platform/vocabulary/columns.ts";

/** A row, with `shadow` as calls have it. */
export interface StoredOverride extends Omit<RatelimitOverrideRow, "shadow"> {
  shadow: boolean | null;
}

/** The overrides of one workspace's namespaces. */
export class OverrideReader extends WorkspaceRows {
  async all(namespaceId: string): Promise<StoredOverride[]> {
    return (await this.#select(namespaceId).execute()).map(asStored);
  }

  /** The override with exactly this identifier or pattern. */
  async find(namespaceId: string, identifier: string): Promise<StoredOverride | undefined> {
    const row = await this.#select(namespaceId).where("identifier", "=", identifier).executeTakeFirst();
    return row && asStored(row);
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
  async page(namespaceId: string, options: Pick<PageOptions, "from" | "limit">): Promise<StoredOverride[]> {
    return (await onePage(this.#select(namespaceId), options).execute()).map(asStored);
  }

  #select(namespaceId: string) {
    return this.sql.db
      .selectFrom("ratelimit_overrides")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("namespace_id", "=", namespaceId);
  }
}

function asStored(row: RatelimitOverrideRow): StoredOverride {
  return { ...row, shadow: optionalFlag(row.shadow) };
}

export class OverrideWriter extends OverrideReader {
  static readonly writes = true;

  /**
   * Inserts or updates the override of an identifier or pattern; returns its id, which an update does not change. The
   * namespace must be locked.
   */
  async put(
    namespaceId: string,
    { shadow, ...override }: Pick<StoredOverride, "identifier" | "limit" | "duration" | "mode" | "shadow">,
    random: Random,
    at: Instant,
  ): Promise<string> {
    const { identifier, ...others } = override;
    const values = { ...others, shadow: shadow === null ? null : flag(shadow) };
    // Not one statement, so that an update does not count as a new row.
    const updated = await this.sql.db
      .updateTable("ratelimit_overrides")
      .set({ ...values, updated_at: at })
      .where("namespace_id", "=", namespaceId)
      .where("identifier", "=", identifier)
      .returning("id")
      .executeTakeFirst();
    if (updated) return updated.id;
    const row = { workspace_id: this.workspaceId, namespace_id: namespaceId, identifier, ...values };
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
