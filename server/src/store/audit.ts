import type { Instant } from "../clock/clock.ts";
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
  await sql.db
    .insertInto("audit_events")
    .values({
      id: event.id,
      workspace_id: event.workspaceId,
      occurred_at: event.occurredAt,
      actor: event.actor,
      action: event.action,
      targets: JSON.stringify(event.targets),
      meta: JSON.stringify(event.meta),
    })
    .execute();
}
