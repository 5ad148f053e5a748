import type { Instant } from "../clock/clock.ts";
import { inputRows } from "./json.ts";
import type { Sql } from "./store.ts";

export interface AuditEvent {
  id: string;
  workspaceId: string;
  occurredAt: Instant;
  /** A root key's id, `cli` or `system`. */
  actor: string;
  /** The operation's public name, or the command. */
  action: string;
  /** Ids of what was acted upon. */
  targets: readonly string[];
  /** What changed. Never a secret. */
  meta: Readonly<Record<string, unknown>>;
}

/** Records who did what, in the transaction of what they did. */
export async function insertAuditEvent(sql: Sql, event: AuditEvent): Promise<void> {
  await sql.db.insertInto("audit_events").values(auditEventRow(event)).execute();
}

/** Records many at once, in one statement. */
export async function insertAuditEvents(sql: Sql, events: readonly AuditEvent[]): Promise<void> {
  const { columns, types } = auditEventColumns;
  const input = inputRows(sql, types, events.map(auditEventRow));
  await sql.db
    .insertInto("audit_events")
    .columns(columns)
    .expression((query) => query.selectFrom(input).select(columns))
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
