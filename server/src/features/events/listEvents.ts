import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { type EventType, eventTypeNames } from "../../platform/store/events/types.ts";
import { exampleAdministratorId, exampleApi, exampleTime } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { text, time } from "../../platform/vocabulary/schema.ts";
import { EventReader } from "./statements/reader.ts";

const LIST = "events.listEvents";

const EventOutput = z
  .strictObject({
    id: z.string(),
    type: z.enum(eventTypeNames as [EventType, ...EventType[]]),
    version: z.int().describe("The version of the schema of `data`, among those of the type."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    data: z
      .record(z.string(), z.unknown())
      .describe("What the event is about, in the schema of its type: see the webhooks of this document."),
  })
  .meta({ id: "Event", description: "A change of state, or a moment that it led to." });

export const listEvents = pagedQuery("events.listEvents", {
  summary: "List events",
  description:
    "The oldest first, unless `order` is `desc`. Events are written in the transaction of the change that they report: " +
    "each committed change has its events, and no other has. To follow them without webhooks, call again with `after`, " +
    "the id of the last event that you have: no event is missed, and none comes twice. Events of one object are in the " +
    "order in which they happened. Events are stored for `LATCHKEY_RETENTION_EVENTS`.",
  permissions: ["events.*.read_event"],
  input: z.strictObject({
    order: z.enum(["asc", "desc"]).default("asc").describe("`asc`: the oldest first. `desc`: the newest first."),
    after: text(1, 255).optional().describe("Only events after this one: the id of an event."),
    types: z
      .array(z.enum(eventTypeNames as [EventType, ...EventType[]]))
      .min(1)
      .max(eventTypeNames.length)
      .optional()
      .describe("Only events of these types."),
    objectId: text(1, 255)
      .optional()
      .describe("Only events of this object: the id of a key, an API, a root key or any other resource."),
    start: time().optional().describe("Only events at or after this Unix time in milliseconds."),
    end: time().optional().describe("Only events before this Unix time in milliseconds."),
    ...pageInput(LIST, 100),
  }),
  output: z.array(EventOutput),
  problems: [],
  examples: [
    {
      summary: "The creation of an API",
      input: { objectId: exampleApi.apiId, types: ["api.created"] },
      output: [
        {
          id: "evt_h6TzR1cWm8Kq0VbY",
          type: "api.created",
          version: 1,
          createdAt: exampleTime,
          data: { apiId: exampleApi.apiId, name: exampleApi.name, actor: exampleAdministratorId },
        },
      ],
    },
    {
      summary: "An empty time range",
      input: { start: 1_767_225_600_000, end: 1_767_225_600_000 },
      problem: "invalid_input",
      detail: "`start` must be before `end`.",
    },
    {
      summary: "An event that does not exist",
      input: { after: "evt_0000000000000000" },
      problem: "invalid_input",
      detail:
        "There is no event evt_0000000000000000. It may be older than the retention of events: list without `after`.",
    },
  ],
}).handle(async ({ order, after: afterId, types, objectId, start, end, limit, cursor }, context) => {
  const { store, principal, fail } = context;
  principal.authorize("events.*.read_event");
  if (start !== undefined && end !== undefined && start >= end) {
    return fail("invalid_input", "`start` must be before `end`.");
  }
  const events = store.of(EventReader);
  const after = afterId === undefined ? undefined : await events.numberOf(afterId);
  if (afterId !== undefined && after === undefined) {
    return fail(
      "invalid_input",
      `There is no event ${afterId}. It may be older than the retention of events: list without \`after\`.`,
    );
  }
  const from = placeOf(LIST, cursor)?.id;
  const rows = await events.page({ order, types, objectId, start, end, after, from, limit: limit + 1 });
  return pageOf(LIST, rows, limit, ({ id, type, version, created_at, data }) => ({
    id,
    type: type as EventType,
    version,
    createdAt: created_at,
    data: JSON.parse(data) as Record<string, unknown>,
  }));
});
