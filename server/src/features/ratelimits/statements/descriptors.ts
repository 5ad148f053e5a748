import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { demandStep } from "../../../platform/store/migrate.ts";
import type { RatelimitDescriptorsRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** The trees of descriptors of one workspace's namespaces. */
export class DescriptorsReader extends WorkspaceRows {
  /** The tree of a namespace; undefined: it has none. */
  find(namespaceId: string): Promise<RatelimitDescriptorsRow | undefined> {
    return this.sql.db
      .selectFrom("ratelimit_descriptors")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("namespace_id", "=", namespaceId)
      .executeTakeFirst();
  }
}

export class DescriptorsWriter extends DescriptorsReader {
  static readonly writes = true;

  /** Whether trees can be stored: programs of earlier releases would not apply them. */
  accepts(): Promise<boolean> {
    return demandStep(this.sql, "052-ratelimit-descriptors");
  }

  /** Replaces the tree of a namespace, which must be locked; null: it has none. */
  async replace(
    namespaceId: string,
    tree: Pick<RatelimitDescriptorsRow, "descriptors" | "atomic" | "metadata"> | null,
    at: Instant,
  ): Promise<void> {
    const former = await this.find(namespaceId);
    if (tree === null) {
      await this.sql.db
        .deleteFrom("ratelimit_descriptors")
        .where("namespace_id", "=", namespaceId)
        .where("workspace_id", "=", this.workspaceId)
        .execute();
      return;
    }
    const growth = Buffer.byteLength(tree.descriptors) - (former ? Buffer.byteLength(former.descriptors) : 0);
    this.metadataBytes += Math.max(0, growth);
    await this.sql.db
      .insertInto("ratelimit_descriptors")
      .values({ namespace_id: namespaceId, workspace_id: this.workspaceId, ...tree, updated_at: at })
      .onConflict((conflict) => conflict.column("namespace_id").doUpdateSet({ ...tree, updated_at: at }))
      .execute();
  }
}
