import { sql as raw } from "kysely";
import type { Place } from "../../../platform/store/cursor.ts";
import type { AuditEventRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** Which events of the log to read. */
export interface AuditPageOptions {
  /** Only events at or after this time, in epoch milliseconds. */
  start?: number | undefined;
  /** Only events before this time, in epoch milliseconds. */
  end?: number | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
  /** The first event of the page. */
  from?: Place | undefined;
  limit: number;
}

/** The audit log of one workspace. */
export class AuditReader extends WorkspaceRows {
  /** Up to `limit` events, newest first, starting at a place. */
  page({ start, end, actor, action, target, from, limit }: AuditPageOptions): Promise<AuditEventRow[]> {
    const { db } = this.sql;
    if (target === undefined) {
      let query = db.selectFrom("audit_events as e").selectAll("e").where("e.workspace_id", "=", this.workspaceId);
      if (actor !== undefined) query = query.where("e.actor", "=", actor);
      if (action !== undefined) query = query.where("e.action", "=", action);
      if (start !== undefined) query = query.where("e.occurred_at", ">=", start);
      if (end !== undefined) query = query.where("e.occurred_at", "<", end);
      if (from) query = query.where(raw<boolean>`(e.occurred_at, e.id) <= (${from.at}, ${from.id})`);
      return query.orderBy("e.occurred_at", "desc").orderBy("e.id", "desc").limit(limit).execute();
    }
    let query = db
      .selectFrom("audit_targets as t")
      // The time too: PostgreSQL then looks for the event in one partition.
      .innerJoin("audit_events as e", (join) =>
        join.onRef("e.id", "=", "t.event_id").onRef("e.occurred_at", "=", "t.occurred_at"),
      )
      .selectAll("e")
      .where("t.workspace_id", "=", this.workspaceId)
      .where("t.target", "=", target);
    if (actor !== undefined) query = query.where("e.actor", "=", actor);
    if (action !== undefined) query = query.where("e.action", "=", action);
    if (start !== undefined) query = query.where("t.occurred_at", ">=", start);
    if (end !== undefined) query = query.where("t.occurred_at", "<", end);
    if (from) query = query.where(raw<boolean>`(t.occurred_at, t.event_id) <= (${from.at}, ${from.id})`);
    return query.orderBy("t.occurred_at", "desc").orderBy("t.event_id", "desc").limit(limit).execute();
  }
}
