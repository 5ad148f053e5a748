import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { duration } from "../../platform/vocabulary/schema.ts";
import { WebhookId, WebhookSecret } from "./record.ts";
import { newWebhookSecret } from "./signature.ts";
import { WebhookWriter } from "./statements/webhooks.ts";

const DAY = 86_400_000;

export const rotateSecret = mutation("webhooks.rotateSecret", {
  summary: "Rotate the secret of a webhook",
  description:
    "Creates a new secret. For `expiration` milliseconds each message has two signatures, one by each secret, so that the " +
    "endpoint can change to the new one at any moment. A secret from an earlier rotation ends at once.",
  idempotent: true,
  issues: ({ webhookId }) => webhookId,
  permissions: ["webhooks.{webhookId}.update_webhook"],
  input: z.strictObject({
    webhookId: WebhookId,
    expiration: duration(0, 7 * DAY)
      .default(DAY)
      .describe("How long the former secret signs messages too, in milliseconds. 0: it ends at once."),
  }),
  output: z.strictObject({ webhookId: z.string(), secret: WebhookSecret }),
  problems: ["webhook_not_found"],
  examples: [
    {
      summary: "The former secret stays valid for one hour",
      input: { webhookId: exampleWebhook.webhookId, expiration: 3_600_000 },
      output: {
        webhookId: exampleWebhook.webhookId,
        secret: "whsec_2sYBzJtq6SmDkQ4Nw1Hf8vRxUaL0cPiEoG7rTb9Z3jM=",
      },
    },
    {
      summary: "A webhook that does not exist",
      input: { webhookId: "wh_03yhWPSEYjF9lWCM" },
      problem: "webhook_not_found",
    },
  ],
}).handle(async ({ webhookId, expiration }, context) => {
  const { store, vault, principal, secrets, now, invalidate, audit, fail } = context;
  principal.authorize(`webhooks.${webhookId}.update_webhook`);
  const webhooks = store.of(WebhookWriter);
  const webhook = await webhooks.findForUpdate(webhookId);
  if (!webhook) return fail("webhook_not_found");
  const secret = newWebhookSecret(secrets);
  const stays = expiration > 0;
  await webhooks.replaceSecret(
    webhookId,
    {
      secret: await vault.sealWebhookSecret(webhookId, secret),
      previous_secret: stays ? webhook.secret : null,
      previous_until: stays ? now + expiration : null,
    },
    now,
  );
  invalidate.nothing("Webhooks are not cached.");
  const { url: endpoint, name } = webhook;
  const data = { webhookId, endpoint, name: name ?? undefined, changed: ["secret"] };
  audit([webhookId], { expiration }, [{ type: "webhook.updated", objectId: webhookId, data }]);
  return { webhookId, secret };
});
