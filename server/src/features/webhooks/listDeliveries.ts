import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleWebhook } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { WebhookId } from "./record.ts";
import { type DeliveryOfEvent, DeliveryReader } from "./statements/deliveries.ts";
import { WebhookReader } from "./statements/webhooks.ts";

const LIST = "webhooks.listDeliveries";

const Status = z.enum(["pending", "delivered", "dead"]);

const DeliveryOutput = z
  .strictObject({
    eventId: z.string().optional().describe("Absent: the event is older than the retention of events."),
    type: z.string().optional().describe("The type of the event."),
    objectId: z.string().describe("The object of the event. Its events are delivered in their order."),
    status: Status.describe(
      "`pending`: it waits for its first or next attempt. `delivered`: the endpoint has it. `dead`: it was given up, and " +
        "can be delivered again.",
    ),
    attempts: z
      .int()
      .describe("Attempts that were made, since the last call of `webhooks.redeliver` if there was one."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    nextAttemptAt: z
      .int()
      .optional()
      .describe("When it is attempted. Absent if it is not pending, or waits for an earlier event of its object."),
    completedAt: z.int().optional().describe("When it was delivered or given up."),
    lastAttempt: z
      .strictObject({
        at: z.int().describe("When it ended, as Unix time in milliseconds."),
        duration: z.int().describe("In milliseconds."),
        status: z.int().optional().describe("The status of the answer. Absent: there was none."),
        error: z.string().optional().describe("What was wrong. Absent: nothing."),
      })
      .optional(),
    error: z.string().optional().describe("Why it was given up without an attempt."),
  })
  .meta({ id: "WebhookDelivery", description: "The delivery of one event to one webhook." });

export const listDeliveries = pagedQuery("webhooks.listDeliveries", {
  summary: "List the deliveries of a webhook",
  description:
    "Those of the newest events first. With `status` `dead` it is the list of dead letters, which `webhooks.redeliver` " +
    "sends again. Deliveries are stored for `LATCHKEY_RETENTION_EVENTS`.",
  permissions: ["webhooks.{webhookId}.read_webhook"],
  input: z.strictObject({
    webhookId: WebhookId,
    status: Status.optional().describe("Only deliveries in this state."),
    eventId: text(1, 255).optional().describe("Only the delivery of this event."),
    ...pageInput(LIST, 100),
  }),
  output: z.array(DeliveryOutput),
  problems: ["webhook_not_found"],
  examples: [
    {
      summary: "There are no dead letters",
      input: { webhookId: exampleWebhook.webhookId, status: "dead" },
      output: [],
    },
    {
      summary: "A webhook that does not exist",
      input: { webhookId: "wh_03yhWPSEYjF9lWCM" },
      problem: "webhook_not_found",
    },
  ],
}).handle(async ({ webhookId, status, eventId, limit, cursor }, { store, principal, fail }) => {
  principal.authorize(`webhooks.${webhookId}.read_webhook`);
  if (!(await store.of(WebhookReader).find(webhookId))) return fail("webhook_not_found");
  const from = placeOf(LIST, cursor)?.at;
  const rows = await store.of(DeliveryReader).page({ webhookId, status, eventId, from, limit: limit + 1 });
  const next = rows[limit];
  const items = rows.slice(0, limit).map(toDeliveryOutput);
  return pageUntil(LIST, items, next && { at: next.event_number, id: webhookId });
});

function toDeliveryOutput(delivery: DeliveryOfEvent): z.input<typeof DeliveryOutput> {
  const { event_id, event_type, next_attempt_at, completed_at, attempted_at, answer_status, error } = delivery;
  return {
    ...(event_id !== null && { eventId: event_id }),
    ...(event_type !== null && { type: event_type }),
    objectId: delivery.object_id,
    status: delivery.status,
    attempts: delivery.attempts,
    createdAt: delivery.created_at,
    ...(next_attempt_at !== null && { nextAttemptAt: next_attempt_at }),
    ...(completed_at !== null && { completedAt: completed_at }),
    ...(attempted_at !== null
      ? {
          lastAttempt: {
            at: attempted_at,
            duration: delivery.duration ?? 0,
            ...(answer_status !== null && { status: answer_status }),
            ...(error !== null && { error }),
          },
        }
      : error !== null && { error }),
  };
}
