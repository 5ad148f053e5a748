import { z } from "zod";

/** An event type: what it means, the version of the schema of its data, and that schema. */
interface EventTypeDeclaration {
  /** One sentence. */
  readonly summary: string;
  /** Raised by a change of the schema that a receiver could notice, except for added members. */
  readonly version: number;
  readonly data: z.ZodObject;
}

const actor = z.string().describe("Id of the root key, `cli` for an operator, or `system` for the service itself.");
const time = (what: string) => z.int().describe(`${what}, as Unix time in milliseconds.`);
const changed = z.array(z.string()).describe("Names of the members that changed.");

const key = {
  keyId: z.string(),
  apiId: z.string(),
  externalId: z.string().optional().describe("Your own identifier of the owner of the key, if it has one."),
};
const rootKey = { rootKeyId: z.string(), name: z.string().optional(), actor };
const budget = { budgetId: z.string(), name: z.string(), actor };
const plan = { planId: z.string(), name: z.string(), actor };
const identity = { identityId: z.string(), externalId: z.string(), actor };
const role = { roleId: z.string(), name: z.string(), actor };
const permission = { permissionId: z.string(), slug: z.string(), actor };
const api = { apiId: z.string(), name: z.string().optional(), actor };
const namespace = { namespaceId: z.string(), name: z.string(), actor };
const override = { overrideId: z.string(), namespaceId: z.string(), identifier: z.string(), actor };
const workspace = { workspaceId: z.string(), actor };
const webhook = { webhookId: z.string(), endpoint: z.string(), name: z.string().optional(), actor };
const credits = {
  ...key,
  keyIds: z.array(z.string()).describe("The keys that share the balance, the newest first, 20 at most."),
  remaining: z.int().describe("The balance."),
};
const hold = {
  holdId: z.string(),
  keyId: z.string(),
  apiId: z.string(),
  credits: z.int().describe("The credits that it held."),
};

/** Days without a verification after which a key counts as unused. */
export const UNUSED_DAYS = 90;

/** Every type of event. The list is closed: a database that has an event of another type was written by a newer version. */
export const eventTypes = {
  "key.created": {
    summary: "A key was created.",
    version: 1,
    data: z.strictObject({
      ...key,
      name: z.string().optional(),
      start: z.string().optional().describe("The beginning of the key string."),
      expires: z.int().optional(),
      rerolledFrom: z.string().optional().describe("The key that it replaces."),
      actor,
    }),
  },
  "key.updated": {
    summary: "Settings of a key changed.",
    version: 1,
    data: z.strictObject({ ...key, changed, actor }),
  },
  "key.disabled": { summary: "A key was disabled.", version: 1, data: z.strictObject({ ...key, actor }) },
  "key.enabled": { summary: "A key was enabled again.", version: 1, data: z.strictObject({ ...key, actor }) },
  "key.deleted": {
    summary: "A key was deleted.",
    version: 1,
    data: z.strictObject({
      ...key,
      permanent: z.boolean().describe("Whether the key was erased from the database."),
      actor,
    }),
  },
  "key.restored": {
    summary: "A deleted key was restored.",
    version: 1,
    data: z.strictObject({
      ...key,
      enabled: z.boolean().describe("Whether it is enabled. A key that was reported as leaked is restored disabled."),
      actor,
    }),
  },
  "key.rerolled": {
    summary: "A key was replaced by another one.",
    version: 1,
    data: z.strictObject({
      ...key,
      newKeyId: z.string(),
      expires: z.int().nullable().describe("When the old key expires, as Unix time in milliseconds. Null: never."),
      actor,
    }),
  },
  "key.derived": {
    summary:
      "A key was derived from a key of which no derived key is stored: its first one, or the first after a while.",
    version: 1,
    data: z.strictObject({
      ...key,
      derivedKeyId: z.string(),
      expires: z.int().describe("When the derived key ends at the latest, as Unix time in milliseconds."),
      actor,
    }),
  },
  "key.expiring": {
    summary: "A key expires soon.",
    version: 1,
    data: z.strictObject({
      ...key,
      expires: time("When it expires"),
      days: z.int().describe("The days before its expiry for which the event was due."),
    }),
  },
  "key.expired": {
    summary: "A key expired.",
    version: 1,
    data: z.strictObject({ ...key, expires: time("When it expired") }),
  },
  "key.first_used": {
    summary: "A key was verified for the first time.",
    version: 1,
    data: z.strictObject({ ...key, usedAt: time("When it was verified") }),
  },
  "key.unused": {
    summary: `A key was not verified for ${UNUSED_DAYS} days.`,
    version: 1,
    data: z.strictObject({
      ...key,
      lastUsedAt: z.int().nullable().describe("Its last verification, as Unix time in milliseconds. Null: none."),
      days: z.int(),
    }),
  },
  "keys.imported": {
    summary: "Keys were imported from another system. Such keys have no `key.created`.",
    version: 1,
    data: z.strictObject({
      apiId: z.string(),
      migrationId: z.string().describe("The name of the migration."),
      keyIds: z.array(z.string()).describe("500 at most. A longer import has several events."),
      actor,
    }),
  },
  "credits.low": {
    summary:
      "A balance fell to 20 % of its refill, or to 0. Without a refill: to 20 % of what it was last set or raised to.",
    version: 1,
    data: z.strictObject({
      ...credits,
      threshold: z.int().describe("The balance at or below which the event was due."),
    }),
  },
  "credits.refilled": {
    summary: "A balance was refilled.",
    version: 1,
    data: z.strictObject({ ...credits, before: z.int().describe("The balance before.") }),
  },
  "plan.created": { summary: "A plan was created.", version: 1, data: z.strictObject(plan) },
  "plan.updated": {
    summary: "What a plan gives changed, for all keys and identities that have it.",
    version: 1,
    data: z.strictObject({
      ...plan,
      changed,
      version: z.int().describe("That of the plan after the change. Each change adds 1."),
    }),
  },
  "plan.deleted": { summary: "A plan was deleted.", version: 1, data: z.strictObject(plan) },
  "budget.created": { summary: "A budget was created.", version: 1, data: z.strictObject(budget) },
  "budget.updated": {
    summary: "Settings or credits of a budget changed.",
    version: 1,
    data: z.strictObject({ ...budget, changed }),
  },
  "budget.deleted": { summary: "A budget was deleted.", version: 1, data: z.strictObject(budget) },
  "budget.refilled": {
    summary: "A budget was refilled.",
    version: 1,
    data: z.strictObject({
      budgetId: z.string(),
      name: z.string(),
      remaining: z.int().describe("Its credits."),
      before: z.int().describe("Its credits before."),
    }),
  },
  "budget.threshold_reached": {
    summary: "A part of a budget is spent. Once a period for each threshold, unless credits were added.",
    version: 1,
    data: z.strictObject({
      budgetId: z.string(),
      name: z.string(),
      unit: z.string().optional(),
      threshold: z.int().describe("The part, as a percentage of what the period had."),
      remaining: z.int().describe("Its credits."),
      spent: z.int().describe("What was spent in the period."),
    }),
  },
  "hold.expired": {
    summary: "Nobody settled or released a hold before its expiry.",
    version: 1,
    data: z.strictObject({
      ...hold,
      expiresAt: time("When it expired"),
      charged: z.int().describe("What was charged: `credits` or 0, as its `onExpiry` says."),
    }),
  },
  "hold.uncovered": {
    summary: "A hold was settled for more than it held, and the balances did not cover all of it.",
    version: 1,
    data: z.strictObject({
      ...hold,
      charged: z.int().describe("What every balance covered."),
      uncovered: z.int().describe("What the settlement asked for besides: the most that a balance did not cover."),
      budgets: z
        .array(z.strictObject({ budgetId: z.string(), uncovered: z.int() }))
        .describe("The budgets among these balances, and what each did not cover."),
    }),
  },
  "limit.exceeded": {
    summary: "The first call in a window was rejected by a limit, or would have been by one in shadow mode.",
    version: 1,
    data: z.strictObject({
      keyId: z.string().optional(),
      apiId: z.string().optional(),
      identityId: z
        .string()
        .optional()
        .describe("The identity to which the limit belongs, if it does not belong to the key."),
      externalId: z.string().optional(),
      namespaceId: z.string().optional().describe("The namespace of the identifier, for `ratelimits.limit`."),
      identifier: z.string().optional(),
      name: z.string().optional().describe("The name of the limit."),
      limit: z.int(),
      duration: z.int(),
      shadow: z.literal(true).optional().describe("Present if the limit is in shadow mode: it rejected nothing."),
      windowEnd: time("The end of the window"),
    }),
  },
  "root_key.created": {
    summary: "A root key was created.",
    version: 1,
    data: z.strictObject({ ...rootKey, rerolledFrom: z.string().optional() }),
  },
  "root_key.updated": {
    summary: "Settings of a root key changed.",
    version: 1,
    data: z.strictObject({ ...rootKey, changed }),
  },
  "root_key.disabled": { summary: "A root key was disabled.", version: 1, data: z.strictObject(rootKey) },
  "root_key.enabled": { summary: "A root key was enabled again.", version: 1, data: z.strictObject(rootKey) },
  "root_key.deleted": { summary: "A root key was deleted.", version: 1, data: z.strictObject(rootKey) },
  "root_key.leaked": {
    summary: "A root key was reported as leaked.",
    version: 1,
    data: z.strictObject({
      rootKeyId: z.string(),
      name: z.string(),
      source: z.string().describe("Which kind of report it was, such as `github`."),
      url: z.string().optional().describe("Where the root key was found, as the report says."),
      disabled: z.boolean().describe("Whether the report disabled the root key."),
    }),
  },
  "root_key.rerolled": {
    summary: "A root key was replaced by another one.",
    version: 1,
    data: z.strictObject({
      ...rootKey,
      newRootKeyId: z.string(),
      expires: time("When the old root key expires"),
    }),
  },
  "identity.created": { summary: "An identity was created.", version: 1, data: z.strictObject(identity) },
  "identity.updated": {
    summary: "An identity changed.",
    version: 1,
    data: z.strictObject({ ...identity, changed }),
  },
  "identity.deleted": { summary: "An identity was deleted.", version: 1, data: z.strictObject(identity) },
  "role.created": { summary: "A role was created.", version: 1, data: z.strictObject(role) },
  "role.updated": {
    summary: "A role or its permissions changed.",
    version: 1,
    data: z.strictObject({ ...role, changed }),
  },
  "role.deleted": { summary: "A role was deleted.", version: 1, data: z.strictObject(role) },
  "permission.created": { summary: "A permission was created.", version: 1, data: z.strictObject(permission) },
  "permission.updated": {
    summary: "A permission changed.",
    version: 1,
    data: z.strictObject({ ...permission, changed }),
  },
  "permission.deleted": { summary: "A permission was deleted.", version: 1, data: z.strictObject(permission) },
  "api.created": { summary: "An API was created.", version: 1, data: z.strictObject(api) },
  "api.updated": { summary: "Settings of an API changed.", version: 1, data: z.strictObject({ ...api, changed }) },
  "api.deleted": {
    summary: "An API was deleted. Its keys stop working; they have no events of their own.",
    version: 1,
    data: z.strictObject(api),
  },
  "namespace.created": {
    summary: "A rate limit namespace was created.",
    version: 1,
    data: z.strictObject(namespace),
  },
  "namespace.deleted": {
    summary: "A rate limit namespace was deleted.",
    version: 1,
    data: z.strictObject(namespace),
  },
  "descriptors.set": {
    summary: "The descriptors of a rate limit namespace were set.",
    version: 1,
    data: z.strictObject(namespace),
  },
  "override.set": { summary: "A rate limit override was set.", version: 1, data: z.strictObject(override) },
  "override.deleted": { summary: "A rate limit override was deleted.", version: 1, data: z.strictObject(override) },
  "workspace.created": { summary: "A workspace was created.", version: 1, data: z.strictObject(workspace) },
  "workspace.updated": {
    summary: "Settings of a workspace changed.",
    version: 1,
    data: z.strictObject({ ...workspace, changed }),
  },
  "quota.near": {
    summary: "A workspace has more than 80 % of what it may have of one kind.",
    version: 1,
    data: z.strictObject({
      quota: z.string().describe("`bytes`, or the kind of rows: `keys`, `apis` and so on."),
      used: z.int().describe("Bytes or rows."),
      max: z.int().describe("The largest number of them."),
      setting: z.string().describe("The setting of the service that has the maximum."),
    }),
  },
  "webhook.created": { summary: "A webhook was created.", version: 1, data: z.strictObject(webhook) },
  "webhook.updated": {
    summary: "Settings of a webhook changed.",
    version: 1,
    data: z.strictObject({ ...webhook, changed }),
  },
  "webhook.disabled": {
    summary: "A webhook was disabled: by a call, or by the service because its deliveries failed for too long.",
    version: 1,
    data: z.strictObject({
      ...webhook,
      reason: z
        .enum(["failing", "gone"])
        .optional()
        .describe("Why the service disabled it. `gone`: it answered 410. Absent: a call disabled it."),
    }),
  },
  "webhook.enabled": { summary: "A webhook was enabled again.", version: 1, data: z.strictObject(webhook) },
  "webhook.deleted": { summary: "A webhook was deleted.", version: 1, data: z.strictObject(webhook) },
  "webhook.test": {
    summary: "A test of a webhook. Only this webhook gets it.",
    version: 1,
    data: z.strictObject({ webhookId: z.string(), actor }),
  },
  "leak.reported": {
    summary: "A key was reported as leaked.",
    version: 1,
    data: z.strictObject({
      ...key,
      source: z.string().describe("Which kind of report it was, such as `github`."),
      url: z.string().optional().describe("Where the key was found, as the report says."),
      disabled: z.boolean().describe("Whether the report disabled the key."),
    }),
  },
  "auth.failures": {
    summary:
      "At least 20 requests in ten minutes had a root key or token that does not exist or may not be used. In the workspace " +
      "of a disabled or expired root key; otherwise in the default workspace.",
    version: 1,
    data: z.strictObject({
      failures: z.int().describe("Requests until the event was written, at the node that noticed the burst."),
      since: time("The beginning of the ten minutes"),
      addresses: z
        .array(z.strictObject({ address: z.string(), failures: z.int() }))
        .describe("The addresses with the most failures, 5 at most."),
    }),
  },
} as const satisfies Record<string, EventTypeDeclaration>;

export type EventType = keyof typeof eventTypes;

export const eventTypeNames = Object.keys(eventTypes) as readonly EventType[];

/** Types whose data has no actor. A list, because database threads of the bundle have no schemas. */
const withoutActor: ReadonlySet<EventType> = new Set<EventType>([
  "key.expiring",
  "key.expired",
  "key.first_used",
  "key.unused",
  "credits.low",
  "credits.refilled",
  "budget.refilled",
  "budget.threshold_reached",
  "hold.expired",
  "hold.uncovered",
  "limit.exceeded",
  "leak.reported",
  "auth.failures",
  "root_key.leaked",
  "quota.near",
]);

/** Whether the data of a type has an actor. */
export function hasActor(type: EventType): boolean {
  return !withoutActor.has(type);
}

export type EventData<Type extends EventType> = z.input<(typeof eventTypes)[Type]["data"]>;
