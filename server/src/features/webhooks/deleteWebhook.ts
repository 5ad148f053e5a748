import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { WebhookId } from "./record.ts";
import { WebhookWriter } from "./statements/webhooks.ts";

export const deleteWebhook = mutation("webhooks.deleteWebhook", {
  summary: "Delete a webhook",
  description: "It gets no further requests, and its secret is erased.",
  permissions: ["webhooks.{webhookId}.delete_webhook"],
  input: z.strictObject({ webhookId: WebhookId }),
  output: Empty,
  problems: ["webhook_not_found"],
  examples: [
    { summary: "Delete a webhook", input: { webhookId: exampleWebhook.webhookId }, output: {} },
    {
      summary: "A webhook that does not exist",
      input: { webhookId: "wh_03yhWPSEYjF9lWCM" },
      problem: "webhook_not_found",
    },
  ],
}).handle(async ({ webhookId }, { store, principal, now, invalidate, audit, fail }) => {
  principal.authorize(`webhooks.${webhookId}.delete_webhook`);
  const webhooks = store.of(WebhookWriter);
  const webhook = await webhooks.findForUpdate(webhookId);
  if (!webhook) return fail("webhook_not_found");
  await webhooks.markDeleted(webhookId, now);
  invalidate.nothing("Webhooks are not cached.");
  const { url: endpoint, name } = webhook;
  const data = { webhookId, endpoint, name: name ?? undefined };
  audit([webhookId], { endpoint, name }, [{ type: "webhook.deleted", objectId: webhookId, data }]);
  return {};
});
