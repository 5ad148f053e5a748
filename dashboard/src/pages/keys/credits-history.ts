import type { AuditEvent, Credits } from "@latchkey/sdk";
import { exactNumber } from "../../api/format.ts";

/** One line of the history of a balance. */
export interface CreditsEntry {
  readonly id: string;
  /** Unix time in milliseconds. */
  readonly at: number;
  /** Whether the entry is a sum of the day (UTC) that starts at that time. */
  readonly isDay?: boolean;
  readonly what: string;
  /** What the balance changed by. */
  readonly by?: number | undefined;
  /** The balance after it, as far as it was recorded. */
  readonly balance?: number | null | undefined;
}

/**
 * Grants, refills and spends of a key, the newest first. Grants and refills are from the audit log, spends are sums per day.
 *
 * @param start the first time that is shown.
 */
export function creditsHistory(
  events: readonly Pick<AuditEvent, "id" | "action" | "occurredAt" | "meta">[],
  days: readonly { readonly time: number; readonly creditsSpent: number }[],
  start: number,
): CreditsEntry[] {
  const changed = events.flatMap((event) => changeOf(event) ?? []).filter(({ at }) => at >= start);
  const spent = days
    .filter(({ creditsSpent }) => creditsSpent > 0)
    .map(({ time, creditsSpent }) => ({
      id: `spent ${time}`,
      at: time,
      isDay: true,
      what: "Spent",
      by: -creditsSpent,
    }));
  return [...changed, ...spent].sort((a, b) => b.at - a.at);
}

function changeOf({
  id,
  action,
  occurredAt: at,
  meta,
}: Pick<AuditEvent, "id" | "action" | "occurredAt" | "meta">): CreditsEntry | undefined {
  if (action === "credits.refill") {
    const { dueAt, before, remaining } = meta as { dueAt: number; before: number; remaining: number };
    return { id, at: dueAt, what: "Refill", by: remaining - before, balance: remaining };
  }
  if (action === "keys.updateCredits") {
    const [before, after, value] = [meta.before, meta.after, meta.value] as (number | null | undefined)[];
    const what =
      meta.operation === "set"
        ? value == null
          ? "Set to unlimited"
          : `Set to ${exactNumber(value)}`
        : sentence(String(meta.operation));
    const by = typeof before === "number" && typeof after === "number" ? after - before : undefined;
    return { id, at, what, by, balance: after };
  }
  if (action === "keys.createKey" && "credits" in meta) {
    return { id, at, what: "Created with", balance: (meta.credits as { remaining?: number }).remaining };
  }
  if (action === "keys.updateKey" && "credits" in values(meta.after)) {
    const [before, after] = [values(meta.before).credits, values(meta.after).credits] as (Credits | null)[];
    if (after === null) return { id, at, what: "Set to unlimited", balance: null };
    const isRuleOnly = before?.remaining === after?.remaining;
    const what = isRuleOnly ? "Changed the refill" : "Set with the key";
    const by = isRuleOnly || !before ? undefined : after!.remaining - before.remaining;
    return { id, at, what, by, balance: after!.remaining };
  }
  return undefined;
}

function values(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
