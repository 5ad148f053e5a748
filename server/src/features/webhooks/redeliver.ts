import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { WEBHOOK_DISABLED, WebhookId } from "./record.ts";
import { DeliveryWriter, REDELIVERIES_MAX } from "./statements/deliveries.ts";
import { WebhookWriter } from "./statements/webhooks.ts";

export const redeliver = mutation("webhooks.redeliver", {
  summary: "Deliver events to a webhook again",
  description:
    "Of one event, whatever its state, or of the dead letters of the webhook: the oldest first, up to " +
    `${REDELIVERIES_MAX} in one call. They are tried for three days again. Events of one object are sent in their order; ` +
    "the endpoint may have later ones already, and recognizes repeated ones by `webhook-id`.",
  permissions: ["webhooks.{webhookId}.update_webhook"],
  input: z.strictObject({
    webhookId: WebhookId,
    eventId: text(1, 255).optional().describe("The event. Omitted: all dead letters."),
  }),
  output: z.strictObject({
    count: z.int().describe("Deliveries that were started."),
    hasMore: z.boolean().describe("Whether there may be further dead letters: call again."),
  }),
  problems: ["webhook_not_found", "delivery_not_found", "precondition_failed"],
  examples: [
    {
      summary: "All dead letters, of which there are none",
      input: { webhookId: exampleWebhook.webhookId },
      output: { count: 0, hasMore: false },
    },
    {
      summary: "An event that this webhook did not get",
      input: { webhookId: exampleWebhook.webhookId, eventId: "evt_h6TzR1cWm8Kq0VbZ" },
      problem: "delivery_not_found",
    },
  ],
}).handle(async ({ webhookId, eventId }, { store, principal, now, invalidate, audit, fail }) => {
  principal.authorize(`webhooks.${webhookId}.update_webhook`);
  const webhook = await store.of(WebhookWriter).findForUpdate(webhookId);
  if (!webhook) return fail("webhook_not_found");
  if (webhook.enabled === 0) return fail("precondition_failed", WEBHOOK_DISABLED);
  const deliveries = store.of(DeliveryWriter);
  const number = eventId === undefined ? undefined : await deliveries.numberOf(webhookId, eventId);
  if (eventId !== undefined && number === undefined) return fail("delivery_not_found");
  const count = await deliveries.redeliver(webhookId, number, now);
  if (count > 0) {
    invalidate.nothing("Webhooks are not cached.");
    audit([webhookId], { eventId, count }, []);
  }
  return { count, hasMore: eventId === undefined && count === REDELIVERIES_MAX };
});
