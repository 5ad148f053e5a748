import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { type EventContent, eventsOf, insertEvents, type NewEvent } from "../events/events.ts";
import { insertAll, insertRows } from "../insert-rows.ts";
import { ROW_BYTES, type WrittenBytes } from "../quotas/workspace-bytes.ts";
import type { AuditEventRow } from "../schema.ts";
import type { Sql } from "../store.ts";

export interface AuditEntry {
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
  /** The events of the change. Empty if it has none. */
  events: readonly EventContent[];
}

/** Records a change in the audit log and its events, in the transaction of the change. Returns what that takes. */
export function recordChange(sql: Sql, entry: AuditEntry, random: Random): Promise<WrittenBytes> {
  return recordChanges(sql, [entry], random);
}

/** Records several changes in the same way, with one statement for each table. */
export async function recordChanges(sql: Sql, entries: readonly AuditEntry[], random: Random): Promise<WrittenBytes> {
  const rows = entries.map((entry) => auditEventRow(entry, newId(random, "evt")));
  await insertRows(sql, "audit_events", auditEventTypes, rows).execute();
  await insertTargets(sql, entries, rows);
  const events = entries.flatMap(({ events, workspaceId, occurredAt, actor }) =>
    eventsOf(events, { workspaceId, at: occurredAt, actor }, random),
  );
  await insertEvents(sql, events);
  let audit = 0;
  for (const { targets } of entries) audit += targets.length * ROW_BYTES.target;
  for (const { targets, meta } of rows) audit += ROW_BYTES.audit + Buffer.byteLength(targets) + Buffer.byteLength(meta);
  return { audit, events: bytesOfEvents(events) };
}

function bytesOfEvents(events: readonly NewEvent[]): number {
  return events.reduce((sum, { data }) => sum + ROW_BYTES.event + Buffer.byteLength(JSON.stringify(data)), 0);
}

/** Records the targets in the table by which the log is searched. */
async function insertTargets(
  sql: Sql,
  entries: readonly AuditEntry[],
  events: readonly AuditEventRow[],
): Promise<void> {
  const rows = events.flatMap(({ id, workspace_id, occurred_at }, i) =>
    [...new Set(entries[i]!.targets)].map((target) => ({ workspace_id, target, occurred_at, event_id: id })),
  );
  const types = { workspace_id: "text", target: "text", occurred_at: "bigint", event_id: "text" } as const;
  await insertAll(sql, "audit_targets", types, rows);
}

const auditEventTypes = {
  id: "text",
  workspace_id: "text",
  occurred_at: "bigint",
  actor: "text",
  action: "text",
  targets: "text",
  meta: "text",
} as const;

function auditEventRow(entry: AuditEntry, id: string): AuditEventRow {
  return {
    id,
    workspace_id: entry.workspaceId,
    occurred_at: entry.occurredAt,
    actor: entry.actor,
    action: entry.action,
    targets: JSON.stringify(entry.targets),
    meta: JSON.stringify(entry.meta),
  };
}
