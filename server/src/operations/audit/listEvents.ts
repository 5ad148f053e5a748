import { z } from "zod";
import { pagedQuery } from "../../rpc/operation.ts";
import { exampleAdministratorId, exampleApi } from "../examples.ts";
import { pageInput, pageOf, placeOf } from "../paging.ts";
import { EXPIRES_MAX, integer, text } from "../schema.ts";

const word = text(1, 255);

const AuditEventOutput = z
  .strictObject({
    id: z.string(),
    occurredAt: z.int().describe("Unix time in milliseconds."),
    actor: z.string().describe("The root key's id; `cli`: an operator; `system`: the service itself."),
    action: z.string().describe("The operation, such as `keys.createKey`."),
    targets: z.array(z.string()).describe("Ids of what was acted upon."),
    meta: z.record(z.string(), z.unknown()).describe("What changed. Never a secret."),
  })
  .meta({ id: "AuditEvent", description: "Who did what, and when." });

const LIST = "audit.listEvents";

export const listEvents = pagedQuery("audit.listEvents", {
  summary: "List what was done in the workspace",
  description:
    "The newest first: page by page further into the past, whatever happens meanwhile. Each change is recorded in the " +
    "same transaction in which it is made, and so is each time that key strings are revealed. What is done to " +
    "workspaces stands in the log of the default one.",
  permissions: ["audit.*.read_event"],
  input: z.strictObject({
    start: integer(0, EXPIRES_MAX).optional().describe("Only what happened from this Unix time in milliseconds on."),
    end: integer(0, EXPIRES_MAX).optional().describe("Only what happened before this Unix time in milliseconds."),
    actor: word.optional().describe("Only what this root key did, by its id, or `cli` or `system`."),
    action: word.optional().describe("Only this operation, such as `keys.deleteKey`."),
    target: word
      .optional()
      .describe("Only what was done to this: the id of a key, an API, a root key or anything else."),
    ...pageInput(LIST, 100),
  }),
  output: z.array(AuditEventOutput),
  problems: [],
  examples: [
    {
      summary: "Who created an API",
      input: { target: exampleApi.apiId, action: "apis.createApi" },
      output: [
        {
          id: "evt_qA3sLw9kBnVx6ZtC",
          occurredAt: 1_768_478_400_000,
          actor: exampleAdministratorId,
          action: "apis.createApi",
          targets: [exampleApi.apiId],
          meta: { name: exampleApi.name },
        },
      ],
    },
    {
      summary: "An hour in which nothing happened",
      input: { start: 1_767_225_600_000, end: 1_767_229_200_000, limit: 50 },
      output: [],
    },
    {
      summary: "No time at all",
      input: { start: 1_767_225_600_000, end: 1_767_225_600_000 },
      problem: "invalid_input",
      detail: "`start` must be before `end`.",
    },
  ],
}).handle(async ({ start, end, actor, action, target, limit, cursor }, { store, principal, fail }) => {
  principal.authorize("audit.*.read_event");
  if (start !== undefined && end !== undefined && start >= end) {
    return fail("invalid_input", "`start` must be before `end`.");
  }
  const rows = await store.audit.page({
    start,
    end,
    actor,
    action,
    target,
    from: placeOf(LIST, cursor),
    limit: limit + 1,
  });
  const events = rows.map((row) => ({ ...row, created_at: row.occurred_at }));
  return pageOf(LIST, events, limit, (event) => ({
    id: event.id,
    occurredAt: event.occurred_at,
    actor: event.actor,
    action: event.action,
    targets: JSON.parse(event.targets) as string[],
    meta: JSON.parse(event.meta) as Record<string, unknown>,
  }));
});
