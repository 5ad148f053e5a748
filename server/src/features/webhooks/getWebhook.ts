import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { toWebhookOutput, WebhookId, WebhookOutput } from "./record.ts";
import { DeliveryReader } from "./statements/deliveries.ts";
import { WebhookReader } from "./statements/webhooks.ts";

export const getWebhook = query("webhooks.getWebhook", {
  summary: "Get a webhook",
  description: "Its settings and its state, without its secret.",
  permissions: ["webhooks.{webhookId}.read_webhook"],
  input: z.strictObject({ webhookId: WebhookId }),
  output: WebhookOutput,
  problems: ["webhook_not_found"],
  examples: [
    { summary: "Get a webhook", input: { webhookId: exampleWebhook.webhookId }, output: exampleWebhook },
    {
      summary: "A webhook that does not exist",
      input: { webhookId: "wh_03yhWPSEYjF9lWCM" },
      problem: "webhook_not_found",
    },
  ],
}).handle(async ({ webhookId }, { store, principal, now, fail }) => {
  principal.authorize(`webhooks.${webhookId}.read_webhook`);
  const webhook = await store.of(WebhookReader).find(webhookId);
  if (!webhook) return fail("webhook_not_found");
  const summaries = await store.of(DeliveryReader).summaries([webhookId]);
  return toWebhookOutput(webhook, summaries.get(webhookId)!, now);
});
