import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf, flag } from "../../platform/vocabulary/columns.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import type { DatabaseServices } from "../database-services.ts";
import { checkSettings, filtersOf, listColumn, WebhookId, webhookInput } from "./record.ts";
import { DeliveryWriter } from "./statements/deliveries.ts";
import { WebhookWriter } from "./statements/webhooks.ts";

export const updateWebhook = mutation("webhooks.updateWebhook", {
  summary: "Update a webhook",
  description:
    "Omitted fields do not change. Null removes a value. A webhook that is disabled gets no requests: events that happen " +
    "meanwhile are not sent later, and deliveries that were waiting continue when it is enabled again, at once.",
  permissions: ["webhooks.{webhookId}.update_webhook", "events.*.read_event"],
  input: z.strictObject({
    webhookId: WebhookId,
    ...webhookInput,
    endpoint: webhookInput.endpoint.optional(),
    enabled: z.boolean().optional().describe("Whether it gets events."),
  }),
  output: Empty,
  problems: ["webhook_not_found", "api_not_found"],
  examples: [
    { summary: "Enable it again", input: { webhookId: exampleWebhook.webhookId, enabled: true }, output: {} },
    {
      summary: "All types of events, at another address",
      input: {
        webhookId: exampleWebhook.webhookId,
        endpoint: "https://billing.acme.example/latchkey/v2",
        eventTypes: null,
      },
      output: {},
    },
    {
      summary: "A webhook that does not exist",
      input: { webhookId: "wh_03yhWPSEYjF9lWCM", enabled: false },
      problem: "webhook_not_found",
    },
  ],
}).handle(async ({ webhookId, ...given }, context, services: DatabaseServices) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  principal.authorize(`webhooks.${webhookId}.update_webhook`);
  // Its receiver reads every event.
  principal.authorize("events.*.read_event");
  const webhooks = store.of(WebhookWriter);
  const webhook = await webhooks.findForUpdate(webhookId);
  if (!webhook) return fail("webhook_not_found");
  if (Object.keys(given).length === 0) return {};
  await checkSettings(given, context, services);

  const { endpoint, name, enabled } = given;
  const isSwitched = enabled !== undefined && enabled !== (webhook.enabled === 1);
  const columns = columnsOf(given, {
    endpoint: (url) => ({ url }),
    name: (label) => ({ name: label }),
    eventTypes: (types) => ({ event_types: listColumn(types) }),
    apiIds: (ids) => ({ api_ids: listColumn(ids) }),
    enabled: (isEnabled) => (isSwitched ? switchColumns(isEnabled, now) : {}),
  } satisfies ColumnsFor<typeof given>);
  await webhooks.update(webhookId, columns, now);
  if (isSwitched && enabled) await store.of(DeliveryWriter).attemptNow(webhookId, now, undefined);
  invalidate.nothing("Webhooks are not cached.");
  const former = { endpoint: webhook.url, name: webhook.name, ...filtersOf(webhook), enabled: webhook.enabled === 1 };
  const differing = changedValues(given, former);
  const data = {
    webhookId,
    endpoint: endpoint ?? webhook.url,
    name: (name === undefined ? webhook.name : name) ?? undefined,
  };
  audit([webhookId], { ...given, ...differing }, updateEvents("webhook", webhookId, data, differing.after));
  return {};
});

/** What enabling or disabling a webhook sets. */
function switchColumns(isEnabled: boolean, now: Instant) {
  return isEnabled
    ? { enabled: flag(true), disabled_at: null, disabled_reason: null, failing_since: null }
    : { enabled: flag(false), disabled_at: now, disabled_reason: "requested" as const };
}
