import { z } from "zod";
import { newId } from "../../../../engine/src/random/random.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleWebhook, exampleWebhookInput, exampleWebhookSecret } from "../../platform/vocabulary/examples.ts";
import type { DatabaseServices } from "../database-services.ts";
import { checkSettings, listColumn, WEBHOOK_VAULT_MISSING, WebhookSecret, webhookInput } from "./record.ts";
import { newWebhookSecret } from "./signature.ts";
import { WebhookWriter } from "./statements/webhooks.ts";

export const createWebhook = mutation("webhooks.createWebhook", {
  summary: "Create a webhook",
  description:
    "Events of the workspace are sent to its URL as the Standard Webhooks specification says: each at least once, and " +
    "those of one object in their order. A delivery fails unless the endpoint answers with a status from 200 to 299 within " +
    "15 seconds; redirects are not followed. It is tried again for three days. A workspace can have 50 webhooks.",
  idempotent: true,
  issues: ({ webhookId }) => webhookId,
  permissions: ["webhooks.*.create_webhook", "events.*.read_event"],
  input: z.strictObject(webhookInput),
  output: z.strictObject({ webhookId: z.string(), secret: WebhookSecret }),
  problems: ["api_not_found", "webhook_limit_reached", "precondition_failed"],
  examples: [
    {
      summary: "Two types of events",
      input: exampleWebhookInput,
      output: { webhookId: exampleWebhook.webhookId, secret: exampleWebhookSecret },
    },
    {
      summary: "An address that is not public",
      input: { endpoint: "https://127.0.0.1/hooks" },
      problem: "invalid_input",
      detail: "`endpoint` must be a public address.",
    },
  ],
}).handle(async (input, context, services: DatabaseServices) => {
  const { store, vault, principal, random, secrets, now, invalidate, audit, fail } = context;
  principal.authorize("webhooks.*.create_webhook");
  // Its receiver reads every event.
  principal.authorize("events.*.read_event");
  if (!vault.isOpen) return fail("precondition_failed", WEBHOOK_VAULT_MISSING);
  await checkSettings(input, context, services);
  const { endpoint, name, eventTypes, apiIds } = input;
  const [webhookId, secret] = [newId(random, "wh"), newWebhookSecret(secrets)];
  const hasRoom = await store.of(WebhookWriter).insert({
    id: webhookId,
    name: name ?? null,
    url: endpoint,
    event_types: listColumn(eventTypes),
    api_ids: listColumn(apiIds),
    secret: await vault.sealWebhookSecret(webhookId, secret),
    created_at: now,
  });
  if (!hasRoom) return fail("webhook_limit_reached");
  invalidate.nothing("Webhooks are not cached.");
  const data = { webhookId, endpoint, name: name ?? undefined };
  audit([webhookId], input, [{ type: "webhook.created", objectId: webhookId, data }]);
  return { webhookId, secret };
});
