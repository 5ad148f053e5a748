import { z } from "zod";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import { type EventType, eventTypeNames } from "../../platform/store/events/types.ts";
import type { WebhookRow } from "../../platform/store/schema.ts";
import { jsonColumn } from "../../platform/vocabulary/columns.ts";
import { ApiId, asSecret, Name, text } from "../../platform/vocabulary/schema.ts";
import { ApiWriter } from "../apis/statements.ts";
import type { DatabaseServices } from "../database-services.ts";
import { DEAD_COUNTED_MAX, type DeliverySummary } from "./statements/deliveries.ts";

const URL_LENGTH_MAX = 2_000;
const API_IDS_MAX = 100;

export const WebhookId = text(3, 255, {
  regex: /^[a-zA-Z0-9_]+$/,
  says: "may hold letters, digits and underscores",
}).describe("Identifier of a webhook, as createWebhook gave it.");

const EventTypes = z
  .array(z.enum(eventTypeNames as [EventType, ...EventType[]]))
  .min(1)
  .max(eventTypeNames.length);

const ApiIds = z.array(ApiId).min(1).max(API_IDS_MAX);

/** The settings of a webhook, as a caller sends them. */
export const webhookInput = {
  endpoint: text(1, URL_LENGTH_MAX).describe(
    "The URL to which events are sent. It must begin with `https://`, and its host must have public addresses only, unless " +
      "the operator allows others.",
  ),
  name: Name.nullable().optional().describe("A label for you."),
  eventTypes: EventTypes.nullable().optional().describe("The types of events that it gets. Null or omitted: all."),
  apiIds: ApiIds.nullable()
    .optional()
    .describe(
      "The APIs of whose keys it gets events, and of which it gets their own events. Events without an `apiId`, such as " +
        "those of root keys, are left out. Null or omitted: all events.",
    ),
};

/** A webhook as the API operations return it. */
export const WebhookOutput = z
  .strictObject({
    webhookId: z.string(),
    name: z.string().optional(),
    endpoint: z.string().describe("The URL to which events are sent."),
    eventTypes: z.array(z.string()).optional().describe("The types of events that it gets. Absent: all."),
    apiIds: z.array(z.string()).optional().describe("The APIs of which it gets events. Absent: all events."),
    enabled: z.boolean(),
    disabled: z
      .strictObject({
        at: z.int().describe("Unix time in milliseconds."),
        reason: z
          .enum(["requested", "failing", "gone"])
          .describe(
            "`requested`: a call disabled it. `failing`: the service gave a delivery up, and none had succeeded for two " +
              "days. `gone`: the endpoint answered 410.",
          ),
      })
      .optional()
      .describe("Since when and why it is disabled. Absent: it is enabled."),
    failingSince: z
      .int()
      .optional()
      .describe("The first failed attempt since the last successful one. Absent: the last attempt succeeded."),
    pending: z.int().describe("Deliveries that wait for their first or next attempt."),
    behindSince: z
      .int()
      .optional()
      .describe(
        "Since when further events wait without a delivery, because too many deliveries wait. They get one as these end. " +
          "Absent: every event has its delivery.",
      ),
    dead: z
      .int()
      .describe(
        `Deliveries that were given up, and can be delivered again. At most ${DEAD_COUNTED_MAX.toLocaleString("en")} are counted.`,
      ),
    lastDeliveredAt: z
      .int()
      .optional()
      .describe("When the newest event that it has was delivered, as Unix time in milliseconds. Absent: it has none."),
    previousSecretExpires: z
      .int()
      .optional()
      .describe("Until when messages are signed with the former secret too. Absent: they are not."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
  })
  .meta({ id: "Webhook", description: "An endpoint to which events of the workspace are sent." });

export const WebhookSecret = asSecret(z.string()).describe(
  "The secret that signs messages: `whsec_` and Base64. Only this response contains it.",
);

export const WEBHOOK_VAULT_MISSING =
  "Secrets of webhooks are stored encrypted, and this service has no vault: its operator must set LATCHKEY_VAULT_KEY.";

export const WEBHOOK_DISABLED =
  "The webhook is disabled. First enable it with `webhooks.updateWebhook`: its waiting deliveries then continue too.";

export function toWebhookOutput(
  webhook: WebhookRow,
  { dead, delivered_at }: DeliverySummary,
  now: number,
): z.input<typeof WebhookOutput> {
  const { name, previous_until, disabled_at, disabled_reason, failing_since, updated_at } = webhook;
  const { eventTypes, apiIds } = filtersOf(webhook);
  const isRotating = previous_until !== null && now < previous_until;
  return {
    webhookId: webhook.id,
    ...(name !== null && { name }),
    endpoint: webhook.url,
    ...(eventTypes !== null && { eventTypes }),
    ...(apiIds !== null && { apiIds }),
    enabled: webhook.enabled === 1,
    ...(disabled_at !== null && disabled_reason !== null && { disabled: { at: disabled_at, reason: disabled_reason } }),
    ...(failing_since !== null && { failingSince: failing_since }),
    pending: webhook.pending,
    ...(webhook.behind_since !== null && { behindSince: webhook.behind_since }),
    dead,
    ...(delivered_at !== null && { lastDeliveredAt: delivered_at }),
    ...(isRotating && { previousSecretExpires: previous_until }),
    createdAt: webhook.created_at,
    ...(updated_at !== null && { updatedAt: updated_at }),
  };
}

export function filtersOf({ event_types, api_ids }: WebhookRow) {
  return {
    eventTypes: event_types === null ? null : (JSON.parse(event_types) as string[]),
    apiIds: api_ids === null ? null : (JSON.parse(api_ids) as string[]),
  };
}

interface Settings {
  endpoint?: string | undefined;
  apiIds?: readonly string[] | null | undefined;
}

/** Fails unless the URL can be called and every API exists. */
export async function checkSettings(
  { endpoint, apiIds }: Settings,
  { store, fail }: Pick<MutationContext<"api_not_found">, "store" | "fail">,
  { webhooks }: Pick<DatabaseServices, "webhooks">,
): Promise<void> {
  const fault = endpoint === undefined ? undefined : webhooks.findUrlFault(endpoint);
  if (fault !== undefined) fail("invalid_input", `\`endpoint\` ${fault}.`);
  for (const apiId of apiIds ?? []) if (!(await store.of(ApiWriter).find(apiId))) fail("api_not_found");
}

/** A list as its column stores it, without duplicates. */
export function listColumn(list: readonly string[] | null | undefined): string | null {
  return jsonColumn(list && [...new Set(list)]);
}
