import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import type { LimitMode } from "../../../../../engine/src/rules/strict-window.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import { demandStep } from "../../../platform/store/migrate.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { flag } from "../../../platform/vocabulary/columns.ts";

/** The key or the identity that limits belong to. */
export type RatelimitOwner = { key_id: string } | { identity_id: string };

export interface RatelimitSettings {
  name: string;
  limit: number;
  duration: number;
  mode: LimitMode;
  autoApply: boolean;
  shadow: boolean;
}

/** What is inserted of each limit, besides its owner. */
const inputTypes = {
  id: "text",
  name: "text",
  limit: "bigint",
  duration: "bigint",
  mode: "text",
  auto_apply: "bigint",
  shadow: "bigint",
  created_at: "bigint",
} as const;

/** The stored limits of one workspace's keys and identities. */
export class RatelimitWriter extends WorkspaceRows {
  static readonly writes = true;

  /** Whether these limits can be stored: programs of earlier releases enforce a limit in shadow mode. */
  async accepts(limits: readonly { readonly shadow?: boolean | undefined }[] | null | undefined): Promise<boolean> {
    return !limits?.some(({ shadow }) => shadow) || demandStep(this.sql, "053-shadow-limits");
  }

  /** Inserts the limits of new keys in one statement. */
  async insertAll(
    limits: readonly (RatelimitSettings & { keyId: string })[],
    random: Random,
    at: Instant,
  ): Promise<void> {
    if (limits.length === 0) return;
    const types = { key_id: "text", ...inputTypes } as const;
    const rows = limits.map(({ keyId, name, limit, duration, mode, autoApply, shadow }) => ({
      id: newId(random, "rl"),
      key_id: keyId,
      name,
      limit,
      duration,
      mode,
      auto_apply: flag(autoApply),
      shadow: flag(shadow),
      created_at: at,
    }));
    await insertRows(this.sql, "ratelimits", types, rows, { workspace_id: this.workspaceId }).execute();
  }

  /** Replaces the owner's limits. A limit whose name existed keeps its id. */
  async replace(
    owner: RatelimitOwner,
    limits: readonly RatelimitSettings[],
    random: Random,
    at: Instant,
  ): Promise<void> {
    const [column, ownerId] = Object.entries(owner)[0] as ["key_id" | "identity_id", string];
    await this.sql.db
      .deleteFrom("ratelimits")
      .where(column, "=", ownerId)
      .where("name", "not in", this.sql.dialect.values.list(limits.map((limit) => limit.name)))
      .execute();
    if (limits.length === 0) return;
    const rows = limits.map((limit) => ({
      id: newId(random, "rl"),
      workspace_id: this.workspaceId,
      [column]: ownerId,
      name: limit.name,
      limit: limit.limit,
      duration: limit.duration,
      mode: limit.mode,
      auto_apply: flag(limit.autoApply),
      shadow: flag(limit.shadow),
      created_at: at,
    }));
    const types = { workspace_id: "text", [column]: "text", ...inputTypes } as typeof inputTypes & {
      workspace_id: "text";
    };
    await insertRows(this.sql, "ratelimits", types, rows)
      .onConflict((conflict) =>
        conflict
          .columns([column, "name"])
          .where(column, "is not", null)
          .doUpdateSet((update) => ({
            limit: update.ref("excluded.limit"),
            duration: update.ref("excluded.duration"),
            mode: update.ref("excluded.mode"),
            auto_apply: update.ref("excluded.auto_apply"),
            shadow: update.ref("excluded.shadow"),
            updated_at: at,
          })),
      )
      .execute();
  }
}
