import type { AuditEvent } from "@latchkey/sdk";

/** A member that an event changed. `before` undefined: no earlier event recorded it. */
export interface Change {
  readonly member: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/**
 * What an event changed. Events record values after the change, so that the value before is that of the newest earlier
 * event of the same resource.
 *
 * @param earlier events of the same resource, the newest first.
 */
export function changesOf({ action, meta }: AuditEvent, earlier: readonly AuditEvent[]): Change[] {
  // The session is a part of who made the change.
  const { former, before, session: _, ...members } = meta;
  const changes: Change[] = [];
  for (const [member, after] of Object.entries(members)) {
    if (member === "added" || member === "removed") {
      for (const entry of [after].flat()) {
        changes.push(member === "added" ? { member, after: entry } : { member, before: entry });
      }
    } else if (member === "changed" && Array.isArray(after)) {
      for (const name of after) changes.push({ member: String(name) });
    } else {
      const known = earlier.find((event) => member in event.meta && !event.action.includes(".delete"))?.meta[member];
      changes.push(action.includes(".delete") ? { member, before: after } : { member, before: known, after });
    }
  }
  if (former !== undefined) changes.unshift({ member: "former name", before: former });
  if (before !== undefined) changes.unshift({ member: "balance", before });
  return changes.filter(({ before, after }) => before === undefined || text(before) !== text(after));
}

/** A value in one line. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
