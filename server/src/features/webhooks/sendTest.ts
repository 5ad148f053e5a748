import { z } from "zod";
import { newId } from "../../../../engine/src/random/random.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { WEBHOOK_DISABLED, WebhookId } from "./record.ts";
import { WebhookWriter } from "./statements/webhooks.ts";

export const sendTest = mutation("webhooks.sendTest", {
  summary: "Send a test event to a webhook",
  description:
    "Records an event of the type `webhook.test`, which this webhook gets whatever its filters are. " +
    "`webhooks.listDeliveries` with the `eventId` shows what came of it, usually within a second.",
  idempotent: true,
  permissions: ["webhooks.{webhookId}.update_webhook"],
  input: z.strictObject({ webhookId: WebhookId }),
  output: z.strictObject({ eventId: z.string() }),
  problems: ["webhook_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Send a test",
      input: { webhookId: exampleWebhook.webhookId },
      output: { eventId: "evt_Zq8TnVb3LwXy5RcK" },
    },
    {
      summary: "A webhook that does not exist",
      input: { webhookId: "wh_03yhWPSEYjF9lWCM" },
      problem: "webhook_not_found",
    },
  ],
}).handle(async ({ webhookId }, { store, principal, random, now, invalidate, audit, fail }) => {
  principal.authorize(`webhooks.${webhookId}.update_webhook`);
  const webhooks = store.of(WebhookWriter);
  const webhook = await webhooks.findForUpdate(webhookId);
  if (!webhook) return fail("webhook_not_found");
  if (webhook.enabled === 0) return fail("precondition_failed", WEBHOOK_DISABLED);
  const eventId = newId(random, "evt");
  await webhooks.recordTest(eventId, { webhookId, actor: principal.rootKeyId }, now);
  invalidate.nothing("Webhooks are not cached.");
  audit([webhookId], { eventId }, []);
  return { eventId };
});
