import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleAdministratorId, exampleApi, exampleTime } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { text, time } from "../../platform/vocabulary/schema.ts";
import { AuditReader } from "./statements/reader.ts";

const word = text(1, 255);

const AuditEventOutput = z
  .strictObject({
    id: z.string(),
    occurredAt: z.int().describe("Unix time in milliseconds."),
    actor: z.string().describe("Id of the root key, `cli` for an operator, or `system` for the service itself."),
    action: z.string().describe("The operation, such as `keys.createKey`."),
    targets: z.array(z.string()).describe("Ids of the affected resources."),
    meta: z
      .record(z.string(), z.unknown())
      .describe(
        "What changed. Never contains a secret. Of an update, `before` and `after` have the former and the new values of " +
          "the members that differ; a value of more than 1,000 characters of JSON is its `beginning` with its `length`. " +
          "Of `keys.updateCredits`, they are balances. Of `apis.updateKeys` and `apis.deleteKeys`, `change` is what each " +
          "key was to get, and `changes` what each of the `keys` that changed got, its beginning beyond 200 characters.",
      ),
  })
  .meta({ id: "AuditEvent", description: "One change in the workspace: actor, operation, resources and time." });

const LIST = "audit.listEvents";

export const listEvents = pagedQuery("audit.listEvents", {
  summary: "List audit events",
  description:
    "Newest first. New events do not shift later pages. Every change, and every decryption of key strings, is recorded " +
    "in the transaction that makes it. Changes to workspaces are in the audit log of the default workspace.",
  permissions: ["audit.*.read_event"],
  input: z.strictObject({
    start: time().optional().describe("Only events at or after this Unix time in milliseconds."),
    end: time().optional().describe("Only events before this Unix time in milliseconds."),
    actor: word.optional().describe("Only events of this actor: the id of a root key, `cli` or `system`."),
    action: word.optional().describe("Only events of this operation, such as `keys.deleteKey`."),
    target: word
      .optional()
      .describe("Only events that affected this resource: the id of a key, an API, a root key or any other resource."),
    ...pageInput(LIST, 100),
  }),
  output: z.array(AuditEventOutput),
  problems: [],
  examples: [
    {
      summary: "The creation of an API",
      input: { target: exampleApi.apiId, action: "apis.createApi" },
      output: [
        {
          id: "evt_qA3sLw9kBnVx6ZtC",
          occurredAt: exampleTime,
          actor: exampleAdministratorId,
          action: "apis.createApi",
          targets: [exampleApi.apiId],
          meta: { name: exampleApi.name },
        },
      ],
    },
    {
      summary: "An hour without events",
      input: { start: 1_767_225_600_000, end: 1_767_229_200_000, limit: 50 },
      output: [],
    },
    {
      summary: "An empty time range",
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
  const rows = await store.of(AuditReader).page({
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
