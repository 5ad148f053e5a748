import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";

/**
 * The resources of the examples: one API with one key, one permission, one role, one identity, and one rate limit
 * namespace with one override. The first example of each `create` operation creates its resource. All examples use the
 * same resources, so that a reader can follow a key from one operation to the next.
 */

/** When the examples happen: 2026-01-15, 12:00 UTC. Every time in an example is within a year of it. */
export const exampleTime = 1_768_478_400_000;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const YEAR = 366 * 24 * HOUR;

/** How far the times of examples move so that they happen at the beginning of the hour before `now`. */
export function exampleShift(now: Instant): Milliseconds {
  return Math.floor(now / HOUR - 1) * HOUR - exampleTime;
}

/** The same example with all its times moved. */
export function shiftExample<Value>(value: Value, shift: Milliseconds): Value {
  return JSON.parse(JSON.stringify(value), (_, member) =>
    typeof member === "number" && Math.abs(member - exampleTime) <= YEAR ? member + shift : member,
  );
}

export const exampleApi = { apiId: "api_9ODorjezbjxUEanq", name: "Documents" };

/** The key string of the example. It exists in no service. */
export const exampleSecret = "prod_9gCpgu7HGPWDQ6HnGpSo1X4TcK1b";

const limit = { name: "requests", limit: 100, duration: 60_000, autoApply: true };

/** The limit of the key, as operations return it. */
export const exampleRatelimit = { id: "rl_hgKM88uJBdK2gvXp", ...limit };

/** The request body that creates the key. */
export const exampleKeyInput = {
  apiId: exampleApi.apiId,
  prefix: "prod",
  name: "Acme, production",
  externalId: "acme",
  meta: { plan: "pro" },
  permissions: ["documents.read", "documents.write"],
  expires: 1_798_761_600_000,
  credits: { remaining: 10_000, refill: { interval: "monthly" as const, amount: 10_000, refillDay: 1 } },
  ratelimits: [limit],
};

/** What a verification returns about the key if nothing was charged. */
export const exampleVerification = {
  keyId: "key_BYTWBFRTA0A16sy3",
  apiId: exampleApi.apiId,
  enabled: true,
  name: exampleKeyInput.name,
  meta: exampleKeyInput.meta,
  expires: exampleKeyInput.expires,
  permissions: exampleKeyInput.permissions,
  credits: exampleKeyInput.credits.remaining,
  identity: { id: "id_gxcvp2AMQ15lMQTw", externalId: exampleKeyInput.externalId, meta: {}, ratelimits: [] },
};

/** The key, as operations return it. */
export const exampleKey = {
  ...exampleVerification,
  start: "prod_9gCp",
  createdAt: exampleTime,
  credits: exampleKeyInput.credits,
  ratelimits: [exampleRatelimit],
};

/** The string of a derived key. */
export const exampleDerivedSecret = "prod_MQLXGcb3PfueTL1HeupnCw1ERqQC";

/** A key that was derived from it, as operations return it. */
export const exampleDerivedKey = {
  keyId: "dkey_Nq4wXc8ZtRb2LmYs",
  parentKeyId: exampleVerification.keyId,
  level: 1,
  start: "prod_MQLX",
  createdAt: exampleTime,
  expires: exampleTime + 3_600_000,
  permissions: ["documents.read"],
  ratelimits: [{ name: "agent", limit: 10, duration: 60_000 }],
  credits: { max: 500, remaining: 500 },
  meta: { agent: "research" },
};

/** The direct permissions of the key, as operations return them. */
export const exampleKeyPermissions = [
  { id: "perm_Zr3oWc6bVhZf1nQe", name: "documents.read", slug: "documents.read" },
  { id: "perm_w8TgYb2KsLd7uXAm", name: "documents.write", slug: "documents.write" },
] satisfies [object, object];

/** A permission that no key has. */
export const examplePermission = {
  id: "perm_5pQvNf9rJtBx0cHs",
  name: "Delete documents",
  slug: "documents.delete",
  description: "Deletes documents permanently.",
};

/** The request body that creates the role. */
export const exampleRoleInput = {
  name: "editor",
  description: "Reads and writes documents.",
  permissions: exampleKeyPermissions.map(({ slug }) => slug),
};

/** The role, as operations return it. */
export const exampleRole = { id: "role_c4DmXk1yTzRw6eGj", ...exampleRoleInput, permissions: exampleKeyPermissions };

/** The request body that creates the identity. */
export const exampleIdentityInput = {
  externalId: "globex",
  meta: { plan: "enterprise" },
  ratelimits: [{ name: "requests", limit: 5_000, duration: 60_000, autoApply: true }] satisfies [object],
};

/** The identity, as operations return it. */
export const exampleIdentity = {
  id: "id_dWc4SqUFMM9X1wFj",
  ...exampleIdentityInput,
  ratelimits: [{ id: "rl_Q2ZbKfCEvX1cTzFq", ...exampleIdentityInput.ratelimits[0] }] satisfies [object],
};

/** The request body that creates the plan. */
export const examplePlanInput = {
  name: "gold",
  ratelimits: [{ name: "requests", limit: 600, duration: 60_000, autoApply: true }] satisfies [object],
  permissions: ["documents.export"],
};

/** The plan, as operations return it. */
export const examplePlan = {
  planId: "plan_Hn3vQw8sLk2XyTbR",
  ...examplePlanInput,
  ratelimits: [{ id: "rl_Vt6mPz1cKd9GwQxN", ...examplePlanInput.ratelimits[0] }] satisfies [object],
  roles: [],
  version: 1,
  createdAt: exampleTime,
};

/** The request body that creates the budget. */
export const exampleBudgetInput = {
  name: "Research",
  remaining: 500_000_000,
  refill: { interval: "monthly" as const, amount: 500_000_000, refillDay: 1, timeZone: "Europe/Berlin" },
  thresholds: [50, 80, 100],
  unit: "usd_micro",
};

/** The budget, as operations return it. */
export const exampleBudget = {
  budgetId: "bud_Yb7wKc3NqTz5RfJh",
  ...exampleBudgetInput,
  onEmpty: "deny" as const,
  held: 0,
  spent: 0,
  totals: { granted: exampleBudgetInput.remaining, spent: 0, lapsed: 0 },
  createdAt: exampleTime,
};

/** The request body of the verification that makes the hold. */
export const exampleHoldInput = { ttl: 120_000 };

/** What that verification answers of it. */
export const exampleVerifiedHold = { holdId: "hold_4kTnQ8sVwXb2YzLc", expiresAt: exampleTime + exampleHoldInput.ttl };

/** The hold, as operations return it. */
export const exampleHold = {
  holdId: exampleVerifiedHold.holdId,
  keyId: exampleVerification.keyId,
  apiId: exampleVerification.apiId,
  state: "open" as const,
  credits: 1_200,
  onExpiry: "release" as const,
  createdAt: exampleTime,
  expiresAt: exampleVerifiedHold.expiresAt,
};

/** The namespace that the first example of `ratelimits.limit` creates. */
export const exampleNamespace = { id: "rlns_7dRkHfyEGyq3iNQc", name: "emails", createdAt: exampleTime };

/** The request body of that example. */
export const exampleCount = { namespace: exampleNamespace.name, identifier: "user_1", limit: 10, duration: 60_000 };

/** The request body that sets the override. */
export const exampleOverrideInput = {
  namespace: exampleNamespace.name,
  identifier: "customer_*",
  limit: 100,
  duration: 60_000,
};

/** The override, as operations return it. */
export const exampleOverride = { overrideId: "rlor_5mXwTHtVE2s8uCkB", ...exampleOverrideInput };

/** The descriptors of that namespace. */
export const exampleDescriptors = [
  {
    key: "remote_address",
    rate_limit: { requests_per_unit: 100, unit: "minute" },
    descriptors: [{ key: "path", value: "/login*", rate_limit: { requests_per_unit: 5, unit: "minute" } }],
  },
];

/** The request body that creates the root key. */
export const exampleRootKeyInput = { name: "sign-up", permissions: ["apis.*.create_key"] };

/** The root key itself. It exists in no service. */
export const exampleRootKeySecret = "lk_root_49eq8TNRgxtHyMB8R9Q9QboivVgYLbVBE3CKJU8";

/** The root key, as operations return it. */
export const exampleRootKey = {
  rootKeyId: "rk_Xc7LpWm3aTgE9dRy",
  ...exampleRootKeyInput,
  start: "lk_root_49eq",
  enabled: true,
  source: "issued" as const,
  createdAt: exampleTime,
  createdBy: "rk_Gh2vNq8sBt5uWz1k",
};

/** The request body that creates the webhook. */
export const exampleWebhookInput = {
  endpoint: "https://billing.acme.example/latchkey",
  name: "Billing",
  eventTypes: ["key.deleted" as const, "credits.low" as const],
};

/** The secret of the webhook. It exists in no service. */
export const exampleWebhookSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDfeFmWbXLK0E=";

/** The webhook, as operations return it. */
export const exampleWebhook = {
  webhookId: "wh_t7LpYq2RxNcD4vGe",
  ...exampleWebhookInput,
  enabled: true,
  pending: 0,
  dead: 0,
  createdAt: exampleTime,
};

/** The id of the root key that makes the calls of the examples. */
export const exampleAdministratorId = "rk_Mf2GhYt7JkPs4WvA";

/** The request body that creates the workspace. */
export const exampleWorkspaceInput = { name: "Initech", requestsPerMinute: 10_000 };

/** The workspace, as operations return it. */
export const exampleWorkspace = {
  workspaceId: "ws_s6KdFh1bQvYo4NzJ",
  ...exampleWorkspaceInput,
  enabled: true,
  default: false,
  createdAt: exampleTime,
};

/** The range of the analytics examples: two minutes, with one verification in the first. */
export const exampleRange = { start: exampleTime, end: exampleTime + 2 * MINUTE };

/** The end of the window in which the limits of the examples are charged. */
export const exampleReset = exampleTime + MINUTE;

export const exampleCounts = { total: 1, valid: 1, outcomes: { VALID: 1 }, creditsSpent: 1 };

const noCounts = { total: 0, valid: 0, outcomes: {}, creditsSpent: 0 };

/** The statistics of that range. */
export const exampleStats = {
  ...exampleCounts,
  series: [
    { time: exampleRange.start, ...exampleCounts },
    { time: exampleRange.start + MINUTE, ...noCounts },
  ],
  tags: [{ tag: "path=/documents", total: 1, valid: 1 }],
};

/** The statistics of the range of something that was not verified in it. */
export const exampleEmptyStats = {
  ...noCounts,
  series: exampleStats.series.map(({ time }) => ({ time, ...noCounts })),
  tags: [],
};

/** The session of the portal, as `portal.createSession` returns it. */
export const examplePortalSession = {
  sessionId: "ps_N3vKw8RtYp1ZqXe6",
  token: "lk_portal_LPPYr8zFBYPcMcHCMG62Yf7BUMTRgp6d36mzrco",
  url: "/portal#lk_portal_LPPYr8zFBYPcMcHCMG62Yf7BUMTRgp6d36mzrco",
  expiresAt: exampleTime + 15 * MINUTE,
};
