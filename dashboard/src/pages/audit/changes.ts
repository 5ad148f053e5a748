import type { AuditEvent } from "@latchkey/sdk";
import { duration, exactNumber, localTime } from "../../api/format.ts";

/** A member that an event changed. Both values undefined: the event has the name of the member only. */
export interface Change {
  readonly member: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** What an event changed. An update has former and new values, a creation new ones, a deletion former ones. */
export function changesOf({ action, meta }: Pick<AuditEvent, "action" | "meta">): Change[] {
  // The session is a part of who made the change, and `former` is in `before` too.
  const { before, after, session: _, former: __, changed, ...members } = meta;
  if (isObject(before) && isObject(after)) {
    return Object.entries(after).map(([member, value]) => ({ member, before: before[member], after: value }));
  }
  const changes: Change[] = [];
  // A refill names the balance after it `remaining`.
  if (before !== undefined) changes.push({ member: "balance", before, after: after ?? members.remaining });
  if (Array.isArray(changed)) changes.push(...changed.map((name) => ({ member: String(name) })));
  for (const [member, value] of Object.entries(members)) {
    if (member === "added") changes.push(...[value].flat().map((after) => ({ member, after })));
    else if (member === "removed") changes.push(...[value].flat().map((before) => ({ member, before })));
    else changes.push(action.includes(".delete") ? { member, before: value } : { member, after: value });
  }
  return changes;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The value of a member in one line: times and lengths of time in words, of a long text its beginning only. */
export function text(member: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") {
    if (/(At|^expires|^windowEnd)$/.test(member)) return localTime(value);
    return member === "duration" ? duration(value) : exactNumber(value);
  }
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.join(", ");
  if (isObject(value) && typeof value.beginning === "string" && typeof value.length === "number") {
    return `${value.beginning}… (${value.length} characters)`;
  }
  return JSON.stringify(value);
}
