import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { toWebhookOutput, WebhookOutput } from "./record.ts";
import { DeliveryReader } from "./statements/deliveries.ts";
import { WebhookReader } from "./statements/webhooks.ts";

const LIST = "webhooks.listWebhooks";

export const listWebhooks = pagedQuery("webhooks.listWebhooks", {
  summary: "List webhooks",
  description:
    "Ordered by creation time. Includes disabled webhooks, but not deleted ones. The root key must be allowed to read " +
    "every webhook on the page.",
  permissions: ["webhooks.{webhookId}.read_webhook"],
  input: z.strictObject(pageInput(LIST, 100)),
  output: z.array(WebhookOutput),
  problems: [],
  examples: [{ summary: "The first ten", input: { limit: 10 }, output: [exampleWebhook] }],
}).handle(async ({ limit, cursor }, { store, principal, now }) => {
  const rows = await store.of(WebhookReader).page({ from: placeOf(LIST, cursor), limit: limit + 1 });
  const summaries = await store.of(DeliveryReader).summaries(rows.map(({ id }) => id));
  const page = pageOf(LIST, rows, limit, (row) => toWebhookOutput(row, summaries.get(row.id)!, now));
  // The error names no id, so that it does not reveal a webhook that the caller may not read.
  const readable = page.items.every(({ webhookId }) => principal.may(`webhooks.${webhookId}.read_webhook`));
  if (!readable) principal.authorize("webhooks.*.read_webhook");
  return page;
});
