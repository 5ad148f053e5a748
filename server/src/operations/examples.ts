/**
 * What the examples speak of: one API and one key in it, one permission and one role, one identity, one rate limit
 * namespace and one override in it, made as the first examples of the operations say that make them. All examples agree,
 * so that a reader can follow a key from one operation to the next.
 */
export const exampleApi = { apiId: "api_9ODorjezbjxUEanq", name: "Documents" };

/** The key string of the example, which no service knows. */
export const exampleSecret = "prod_9gCpgu7HGPWDQ6HnGpSo1X4TcK1b";

const limit = { name: "requests", limit: 100, duration: 60_000, autoApply: true };

/** The limit of the example as it is shown. */
export const exampleRatelimit = { id: "rl_hgKM88uJBdK2gvXp", ...limit };

/** The body with which the key is created. */
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

/** What a verification says of the key when nothing was charged. */
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

/** The key as it is shown. */
export const exampleKey = {
  ...exampleVerification,
  start: "prod_9gCp",
  createdAt: 1_768_478_400_000,
  credits: exampleKeyInput.credits,
  ratelimits: [exampleRatelimit],
};

/** The permissions that the key was given directly, as they are shown. */
export const exampleKeyPermissions = [
  { id: "perm_Zr3oWc6bVhZf1nQe", name: "documents.read", slug: "documents.read" },
  { id: "perm_w8TgYb2KsLd7uXAm", name: "documents.write", slug: "documents.write" },
];

/** A permission that no key has. */
export const examplePermission = {
  id: "perm_5pQvNf9rJtBx0cHs",
  name: "Delete documents",
  slug: "documents.delete",
  description: "For good, without the trash.",
};

/** The body with which a role is created. */
export const exampleRoleInput = {
  name: "editor",
  description: "Whoever works on documents.",
  permissions: exampleKeyPermissions.map(({ slug }) => slug),
};

/** The role as it is shown. */
export const exampleRole = { id: "role_c4DmXk1yTzRw6eGj", ...exampleRoleInput, permissions: exampleKeyPermissions };

/** An identity that has limits of its own. */
export const exampleIdentityInput = {
  externalId: "globex",
  meta: { plan: "enterprise" },
  ratelimits: [{ name: "requests", limit: 5_000, duration: 60_000, autoApply: true }],
};

/** The identity as it is shown. */
export const exampleIdentity = {
  id: "id_dWc4SqUFMM9X1wFj",
  ...exampleIdentityInput,
  ratelimits: exampleIdentityInput.ratelimits.map((one) => ({ id: "rl_Q2ZbKfCEvX1cTzFq", ...one })),
};

/** The namespace that the first example of `ratelimits.limit` makes. */
export const exampleNamespace = { id: "rlns_7dRkHfyEGyq3iNQc", name: "emails", createdAt: 1_768_478_400_000 };

/** What that example counts. */
export const exampleCount = { namespace: exampleNamespace.name, identifier: "user_1", limit: 10, duration: 60_000 };

/** An override of the namespace as it is set. */
export const exampleOverrideInput = {
  namespace: exampleNamespace.name,
  identifier: "customer_*",
  limit: 100,
  duration: 60_000,
};

/** The override as it is shown. */
export const exampleOverride = { overrideId: "rlor_5mXwTHtVE2s8uCkB", ...exampleOverrideInput };

/** The body with which a root key is created. */
export const exampleRootKeyInput = { name: "sign-up", permissions: ["apis.*.create_key"] };

/** The root key itself, which no service knows. */
export const exampleRootKeySecret = "lk_root_49eq8TNRgxtHyMB8R9Q9QboivVgYLbVBE3CKJU8";

/** The root key as it is shown. */
export const exampleRootKey = {
  rootKeyId: "rk_Xc7LpWm3aTgE9dRy",
  ...exampleRootKeyInput,
  start: "lk_root_49eq",
  enabled: true,
  source: "issued" as const,
  createdAt: 1_768_478_400_000,
};

/** The root key that does what the examples do. */
export const exampleAdministratorId = "rk_Mf2GhYt7JkPs4WvA";

/** The body with which a workspace is created. */
export const exampleWorkspaceInput = { name: "Initech", requestsPerMinute: 10_000 };

/** The workspace as it is shown. */
export const exampleWorkspace = {
  workspaceId: "ws_s6KdFh1bQvYo4NzJ",
  ...exampleWorkspaceInput,
  enabled: true,
  default: false,
  createdAt: 1_768_478_400_000,
};

/** The two minutes that the examples of analytics ask about: one verification has happened in the first. */
export const exampleRange = { start: 1_768_478_400_000, end: 1_768_478_520_000 };

const verifiedOnce = { total: 1, valid: 1, outcomes: { VALID: 1 }, creditsSpent: 1 };

/** What they are told. */
export const exampleStats = {
  ...verifiedOnce,
  series: [
    { time: exampleRange.start, ...verifiedOnce },
    { time: exampleRange.start + 60_000, total: 0, valid: 0, outcomes: {}, creditsSpent: 0 },
  ],
  tags: [{ tag: "path=/documents", total: 1, valid: 1 }],
};
