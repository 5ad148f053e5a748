import { sql as raw } from "kysely";
import type { Instant } from "../../clock/clock.ts";
import type { Place } from "../../rules/cursor.ts";
import { inputRows } from "../json.ts";
import type { AuditEventRow } from "../schema.ts";
import type { Sql } from "../store.ts";

export interface AuditEvent {
  id: string;
  workspaceId: string;
  occurredAt: Instant;
  /** A root key's id, `cli` or `system`. */
  actor: string;
  /** The operation's public name, or the command. */
  action: string;
  /** Ids of the changed objects. */
  targets: readonly string[];
  /** What changed. Never a secret. */
  meta: Readonly<Record<string, unknown>>;
}

/** Records a change, in the transaction of the change. */
export async function insertAuditEvent(sql: Sql, event: AuditEvent): Promise<void> {
  await sql.db.insertInto("audit_events").values(auditEventRow(event)).execute();
  await insertTargets(sql, [event]);
}

/** Records several changes in one statement. */
export async function insertAuditEvents(sql: Sql, events: readonly AuditEvent[]): Promise<void> {
  const { columns, types } = auditEventColumns;
  const input = inputRows(sql, types, events.map(auditEventRow));
  await sql.db
    .insertInto("audit_events")
    .columns(columns)
    .expression((query) => query.selectFrom(input).select(columns))
    .execute();
  await insertTargets(sql, events);
}

/** Records the targets in the table by which the log is searched. */
async function insertTargets(sql: Sql, events: readonly AuditEvent[]): Promise<void> {
  const columns = ["workspace_id", "target", "occurred_at", "event_id"] as const;
  const rows = events.flatMap(({ id, workspaceId, occurredAt, targets }) =>
    [...new Set(targets)].map((target) => ({
      workspace_id: workspaceId,
      target,
      occurred_at: occurredAt,
      event_id: id,
    })),
  );
  if (rows.length === 0) return;
  const types = { workspace_id: "text", target: "text", occurred_at: "bigint", event_id: "text" } as const;
  await sql.db
    .insertInto("audit_targets")
    .columns(columns)
    .expression((query) => query.selectFrom(inputRows(sql, types, rows)).select(columns))
    .execute();
}

const auditEventColumns = {
  columns: ["id", "workspace_id", "occurred_at", "actor", "action", "targets", "meta"],
  types: {
    id: "text",
    workspace_id: "text",
    occurred_at: "bigint",
    actor: "text",
    action: "text",
    targets: "text",
    meta: "text",
  },
} as const;

function auditEventRow(event: AuditEvent) {
  return {
    id: event.id,
    workspace_id: event.workspaceId,
    occurred_at: event.occurredAt,
    actor: event.actor,
    action: event.action,
    targets: JSON.stringify(event.targets),
    meta: JSON.stringify(event.meta),
  };
}

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
export class AuditReader {
  readonly #sql: Sql;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  /** Up to `limit` events, newest first, starting at a place. */
  page({ start, end, actor, action, target, from, limit }: AuditPageOptions): Promise<AuditEventRow[]> {
    const { db } = this.#sql;
    if (target === undefined) {
      let query = db.selectFrom("audit_events as e").selectAll("e").where("e.workspace_id", "=", this.#workspaceId);
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
      .where("t.workspace_id", "=", this.#workspaceId)
      .where("t.target", "=", target);
    if (actor !== undefined) query = query.where("e.actor", "=", actor);
    if (action !== undefined) query = query.where("e.action", "=", action);
    if (start !== undefined) query = query.where("t.occurred_at", ">=", start);
    if (end !== undefined) query = query.where("t.occurred_at", "<", end);
    if (from) query = query.where(raw<boolean>`(t.occurred_at, t.event_id) <= (${from.at}, ${from.id})`);
    return query.orderBy("t.occurred_at", "desc").orderBy("t.event_id", "desc").limit(limit).execute();
  }
}
