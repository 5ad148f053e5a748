import type { Webhook } from "@latchkey/sdk";
import { exactNumber } from "../../api/format.ts";
import { StatusBadge } from "../../ui/text/status-badge.tsx";

/** The service counts no more dead letters of a webhook. */
const DEAD_COUNTED_MAX = 1_000;

/** The state of a webhook as a badge. */
export function WebhookState({ of: { enabled, disabled, failingSince } }: { of: Webhook }) {
  if (enabled && failingSince === undefined) return <StatusBadge tone="good">Active</StatusBadge>;
  if (enabled) return <StatusBadge tone="warn">Failing</StatusBadge>;
  if (disabled?.reason === "requested") return <StatusBadge tone="neutral">Disabled</StatusBadge>;
  return <StatusBadge tone="bad">{disabled?.reason === "gone" ? "Disabled: gone" : "Disabled: failed"}</StatusBadge>;
}

/** Why a webhook is disabled, in one sentence. */
export const disabledBecause: Readonly<Record<NonNullable<Webhook["disabled"]>["reason"], string>> = {
  requested: "A call disabled it.",
  failing: "The service gave a delivery up, and none had succeeded for two days.",
  gone: "The endpoint answered 410: it wants no more events.",
};

/** What a webhook is called: its name, or its address. */
export function webhookName({ name, endpoint }: Pick<Webhook, "name" | "endpoint">): string {
  return name ?? endpoint.replace(/^https?:\/\//, "");
}

/** A number of dead letters: `12`, `1,000 or more`. */
export function deadLetters(count: number): string {
  return count >= DEAD_COUNTED_MAX ? `${exactNumber(DEAD_COUNTED_MAX)} or more` : exactNumber(count);
}
