import { signWebhook } from "./signature.ts";
import type { DueDelivery } from "./statements/delivering.ts";

/** The body of a webhook: the event as `events.listEvents` returns it, with the time in the form of Standard Webhooks. */
export function webhookBody({ event_id, type, version, created_at, data }: DueDelivery): string {
  const head = { id: event_id, type, version, timestamp: new Date(created_at).toISOString() };
  // The data are JSON already.
  return `${JSON.stringify(head).slice(0, -1)},"data":${data}}`;
}

/**
 * The headers of a webhook (Standard Webhooks 1.0.0).
 *
 * @param secrets the current secret, and the former one while it is being rotated: the message has a signature by each.
 * @param at epoch milliseconds.
 */
export function webhookHeaders(id: string, body: string, secrets: readonly string[], at: number) {
  const timestamp = Math.floor(at / 1_000);
  return {
    "content-type": "application/json",
    "user-agent": "Latchkey-Webhooks",
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": secrets.map((secret) => signWebhook(secret, { id, timestamp, body })).join(" "),
  };
}
