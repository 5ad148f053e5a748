/**
 * What the loops over every operation need of each one. A new operation does not compile before it has a sample:
 * `sweep.test.ts` and `tenancy.test.ts` call each operation with the bodies that its sample gives.
 */
import { createHash } from "node:crypto";
import { hashSecret } from "../../engine/src/crypto/hash.ts";
import { formatKey, RANDOM_BYTES_MIN } from "../../engine/src/rules/key-string.ts";
import type { ProblemCode } from "../src/platform/rpc/problems.ts";
import { writeCursor } from "../src/platform/store/cursor.ts";
import type { OperationName, ReplicaOperationName } from "../src/service/operations.ts";
import { askedLease, describedEdge } from "./edge.ts";
import type { TestServer } from "./harness.ts";

type Body = Record<string, unknown>;

export interface Sample {
  /** A body that works for an administrator. Creates the resources that it names. */
  body(server: TestServer): Promise<Body>;
  /** The same body with names of resources that never existed. Null if the operation needs no existing resource. */
  absent(body: Body): Body | null;
  /** The outcome for a root key that has every permission except those of this operation; undefined: it needs none. */
  unpermitted: ProblemCode | "NOT_FOUND" | undefined;
  /**
   * Bodies that together name a resource at each place where the operation takes a name. If it takes none: a body that
   * works.
   */
  named(resources: Resources): object[];
}

/** One resource of each kind in a workspace: ids, and names that its owner gave. No name occurs in two workspaces. */
export interface Resources {
  apiId: string;
  keyId: string;
  key: string;
  identityId: string;
  externalId: string;
  permissionId: string;
  slug: string;
  roleId: string;
  role: string;
  namespaceId: string;
  namespace: string;
  overrideId: string;
  identifier: string;
  rootKeyId: string;
  webhookId: string;
  budgetId: string;
  plan: string;
  planId: string;
  workspaceId: string;
  migrationId: string;
  hash: string;
  importedKey: string;
  portalSessionId: string;
  holdId: string;
}

/** Creates one resource of each kind. `mark` is part of every name. */
export async function createResources(
  server: TestServer,
  as: string,
  workspaceId: string,
  mark: string,
): Promise<Resources> {
  const ok = (name: string, body: unknown) => server.ok(name, body, { as });
  const { apiId } = await ok("apis.createApi", { name: `${mark} payments` });
  const [externalId, slug, role] = [`${mark}_user`, `${mark}.documents.read`, `${mark} editor`];
  const limit = { name: "requests", limit: 100, duration: 60_000, autoApply: true };
  const { identityId } = await ok("identities.createIdentity", {
    externalId,
    meta: { secret: `${mark} meta` },
    ratelimits: [limit],
  });
  const { permissionId } = await ok("permissions.createPermission", { name: `${mark} read`, slug });
  const { roleId } = await ok("permissions.createRole", { name: role, permissions: [slug] });
  const { budgetId } = await ok("budgets.createBudget", { name: `${mark} budget`, remaining: 1_000_000 });
  const plan = `${mark}.gold`;
  const { planId } = await ok("plans.createPlan", {
    name: plan,
    ratelimits: [limit],
    meta: { secret: `${mark} meta` },
  });
  const { keyId, key } = await ok("keys.createKey", {
    apiId,
    externalId,
    plan,
    name: `${mark} key`,
    roles: [role],
    recoverable: true,
    meta: { secret: `${mark} meta` },
  });
  const [namespace, identifier] = [`${mark} emails`, `${mark}*`];
  await ok("ratelimits.limit", limitCall(namespace, identifier));
  const { overrideId } = await ok("ratelimits.setOverride", { namespace, identifier, limit: 5, duration: 1_000 });
  const listed = await ok("ratelimits.listNamespaces", { search: namespace });
  const { rootKeyId } = await ok("rootKeys.createRootKey", { name: `${mark} program`, permissions: ["*"] });
  const { webhookId } = await ok("webhooks.createWebhook", { endpoint: WEBHOOK_URL, name: `${mark} webhook` });
  const [migrationId, importedKey] = [`${mark} migration`, `sk_${mark}_imported_key_string`];
  const hash = sha256(importedKey);
  await ok("keys.migrateKeys", { migrationId, apiId, keys: [{ hash }] });
  const { sessionId: portalSessionId } = await ok("portal.createSession", { apiId, externalId, actions: ["list"] });
  const { hold } = await ok("keys.verifyKey", { key, hold: { ttl: 86_400_000 } });
  return {
    holdId: hold.holdId,
    portalSessionId,
    apiId,
    keyId,
    key,
    identityId,
    externalId,
    permissionId,
    slug,
    roleId,
    role,
    namespace,
    identifier,
    namespaceId: listed[0].id,
    overrideId,
    rootKeyId,
    webhookId,
    budgetId,
    plan,
    planId,
    workspaceId,
    migrationId,
    hash,
    importedKey,
  };
}

/** An address that is never called: the name has no addresses. */
const WEBHOOK_URL = "https://receiver.invalid/hooks";

const NEVER_API = "api_never0existed000";
const NEVER_KEY_ID = "key_never0existed000";
/** A key string in the right form that no key has. */
const NEVER_SECRET = formatKey(null, new Uint8Array(RANDOM_BYTES_MIN)).key;

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

let created = 0;
const unique = (name: string) => `${name}_${++created}`;

/** An hour of the past. */
const pastHour = { start: 1_768_474_800_000, end: 1_768_478_400_000 };

/** When simulated services start. */
const REPORTED_MINUTE = 1_768_478_400_000;

const edgeCall = (key: string, more: object = {}) => ({
  hash: hashSecret(key),
  isAnonymous: false,
  address: "203.0.113.7",
  ...more,
});

const limitCall = (namespace: string, identifier: string) => ({ namespace, identifier, limit: 100, duration: 60_000 });

/** A cursor of a list that points at one of its entries. */
const cursorAt = (list: OperationName, id: string) => writeCursor(list, { at: 0, id });

async function newKey(server: TestServer): Promise<{ keyId: string; key: string }> {
  return server.createKey(await server.createApi());
}

/** For an operation that needs no existing resource. */
const ofNothing = (body: () => Body, named: Sample["named"] = () => [body()]): Sample => ({
  body: async () => body(),
  absent: () => null,
  unpermitted: "insufficient_permissions",
  named,
});

/** A list of a workspace, with an entry at which its cursor can point, and what its search can find. */
const ofList = (list: OperationName, id: keyof Resources, ...searches: (keyof Resources)[]): Sample =>
  ofNothing(
    () => ({}),
    (resources) => [
      { cursor: cursorAt(list, resources[id]) },
      ...searches.map((search) => ({ search: resources[search] })),
    ],
  );

const listOfIdentities = ofList("identities.listIdentities", "identityId", "externalId", "identityId");

const ofApi = (unpermitted: ProblemCode, more: Body = {}): Sample => ({
  body: async (server) => ({ apiId: await server.createApi(), ...more }),
  absent: (body) => ({ ...body, apiId: NEVER_API }),
  unpermitted,
  named: ({ apiId }) => [{ apiId, ...more }],
});

const ofKey = (more: Body = {}): Sample => ({
  body: async (server) => ({ keyId: (await newKey(server)).keyId, ...more }),
  absent: (body) => ({ ...body, keyId: NEVER_KEY_ID }),
  unpermitted: "insufficient_permissions",
  named: ({ keyId }) => [{ keyId, ...more }],
});

const ofSecret = (unpermitted: Sample["unpermitted"], named: Sample["named"]): Sample => ({
  body: async (server) => ({ key: (await newKey(server)).key }),
  absent: (body) => ({ ...body, key: NEVER_SECRET }),
  unpermitted,
  named,
});

const ofIdentity = (more: Body = {}): Sample => ({
  body: async (server) => {
    const externalId = unique("sweep");
    await server.ok("identities.createIdentity", { externalId });
    return { identity: externalId, ...more };
  },
  absent: (body) => ({ ...body, identity: "never0existed" }),
  unpermitted: "insufficient_permissions",
  named: ({ identityId, externalId }) => [identityId, externalId].map((identity) => ({ identity, ...more })),
});

const ofBudget = (more: Body = {}): Sample => ({
  body: async (server) => {
    const { budgetId } = await server.ok("budgets.createBudget", { name: "sweep", remaining: 10 });
    return { budgetId, ...more };
  },
  absent: (body) => ({ ...body, budgetId: "bud_never0existed000" }),
  unpermitted: "insufficient_permissions",
  named: ({ budgetId }) => [{ budgetId, ...more }],
});

const ofPlan = (more: Body = {}): Sample => ({
  body: async (server) => {
    const name = unique("sweep");
    await server.ok("plans.createPlan", { name });
    return { plan: name, ...more };
  },
  absent: (body) => ({ ...body, plan: "never0existed" }),
  unpermitted: "insufficient_permissions",
  named: ({ plan, planId }) => [plan, planId].map((one) => ({ plan: one, ...more })),
});

const ofHold = (more: Body = {}): Sample => ({
  body: async (server) => {
    const { key } = await newKey(server);
    const { hold } = await server.ok("keys.verifyKey", { key, hold: { ttl: 60_000 } });
    return { holdId: hold.holdId, ...more };
  },
  absent: (body) => ({ ...body, holdId: "hold_never0existed000" }),
  unpermitted: "insufficient_permissions",
  named: ({ holdId }) => [{ holdId, ...more }],
});

const ofWebhook = (more: Body = {}): Sample => ({
  body: async (server) => {
    const { webhookId } = await server.ok("webhooks.createWebhook", { endpoint: WEBHOOK_URL });
    // So that the webhooks of the loops do not reach the maximum.
    const listed = await server.ok("webhooks.listWebhooks", {});
    if (listed.length > 20) await server.ok("webhooks.deleteWebhook", { webhookId: listed[0].webhookId });
    return { webhookId, ...more };
  },
  absent: (body) => ({ ...body, webhookId: "wh_never0existed000" }),
  unpermitted: "insufficient_permissions",
  named: ({ webhookId }) => [{ webhookId, ...more }],
});

/** A namespace with an override for "a". */
const ofNamespace = (more: Body = {}): Sample => ({
  body: async (server) => {
    const namespace = unique("sweep");
    await server.ok("ratelimits.limit", limitCall(namespace, "a"));
    await server.ok("ratelimits.setOverride", { namespace, identifier: "a", limit: 1, duration: 1_000 });
    return { namespace, ...more };
  },
  absent: (body) => ({ ...body, namespace: "never existed" }),
  unpermitted: "insufficient_permissions",
  named: ({ namespace, namespaceId }) => [namespace, namespaceId].map((name) => ({ namespace: name, ...more })),
});

const ofOverride = (unpermitted: ProblemCode, identifier: string, more: Body = {}): Sample => ({
  ...ofNamespace({ identifier, ...more }),
  unpermitted,
  named: (resources) =>
    [resources.namespace, resources.namespaceId].map((namespace) => ({
      namespace,
      identifier: resources.identifier,
      ...more,
    })),
});

/** A permission that no key has. */
const ofPermission: Sample = {
  body: async (server) => {
    const permission = unique("sweep");
    await server.ok("permissions.createPermission", { name: "Sweeping", slug: permission });
    return { permission };
  },
  absent: (body) => ({ ...body, permission: "never.existed" }),
  unpermitted: "insufficient_permissions",
  named: ({ permissionId, slug }) => [{ permission: permissionId }, { permission: slug }],
};

const ofRole: Sample = {
  body: async (server) => {
    const role = unique("sweep");
    await server.createRole(role, "sweep.read");
    return { role };
  },
  absent: (body) => ({ ...body, role: "never existed" }),
  unpermitted: "insufficient_permissions",
  named: ({ roleId, role }) => [{ role: roleId }, { role }],
};

/** A key, and permissions that exist. */
const ofKeyWithPermissions: Sample = {
  ...ofKey(),
  body: async (server) => {
    const { keyId } = await server.createKey(await server.createApi(), { permissions: ["sweep.read"] });
    return { keyId, permissions: [((await ofPermission.body(server)) as { permission: string }).permission] };
  },
  named: ({ keyId, slug }) => [{ keyId, permissions: [slug] }],
};

/** A key, and roles that exist. */
const ofKeyWithRoles: Sample = {
  ...ofKey(),
  body: async (server) => {
    const role = unique("sweep");
    await server.createRole(role);
    return { keyId: (await newKey(server)).keyId, roles: [role] };
  },
  named: ({ keyId, role }) => [{ keyId, roles: [role] }],
};

const ofRootKey = (more: Body = {}): Sample => ({
  body: async (server) => ({ rootKeyId: (await server.grant("apis.*.read_api")).rootKeyId, ...more }),
  absent: (body) => ({ ...body, rootKeyId: "rk_never0existed0000" }),
  unpermitted: "insufficient_permissions",
  named: ({ rootKeyId }) => [{ rootKeyId, ...more }],
});

const sweptLimit = { namespace: "sweep", identifier: "a", limit: 1_000_000, duration: 60_000 };

export const samples: { readonly [Name in OperationName | ReplicaOperationName]: Sample } = {
  "apis.countKeys": {
    ...ofApi("api_not_found", { search: "sweep", expiresBefore: 2_000_000_000_000 }),
    named: ({ apiId, externalId, role, budgetId, plan, planId }) => [
      { apiId, externalId, role },
      { apiId, budgetId },
      { apiId, plan },
      { apiId, plan: planId },
      { apiId, search: externalId },
    ],
  },
  "apis.createApi": ofNothing(() => ({ name: "payments" })),
  "apis.deleteApi": ofApi("insufficient_permissions"),
  "apis.deleteKeys": {
    ...ofApi("api_not_found"),
    named: ({ apiId, externalId, role, budgetId, plan }) => [
      { apiId, externalId },
      { apiId, role },
      { apiId, budgetId },
      { apiId, plan },
    ],
  },
  "apis.updateKeys": {
    ...ofApi("api_not_found", { enabled: false }),
    named: ({ apiId, externalId, role, budgetId, plan }) => [
      { apiId, setPlan: plan },
      { apiId, externalId, enabled: false },
      { apiId, budgetId, enabled: false },
      { apiId, addRoles: [role] },
    ],
  },
  "apis.getApi": ofApi("insufficient_permissions"),
  "apis.getLeakKit": ofApi("insufficient_permissions", { prefixes: ["pay"] }),
  "apis.listApis": ofNothing(
    () => ({ search: "pay" }),
    ({ apiId }) => [{}, { cursor: cursorAt("apis.listApis", apiId) }, { search: apiId }],
  ),
  "apis.listKeys": {
    ...ofApi("api_not_found"),
    named: ({ apiId, keyId, externalId, role, budgetId, plan }) => [
      { apiId, externalId },
      { apiId, budgetId },
      { apiId, plan },
      { apiId, role },
      { apiId, search: keyId },
      { apiId, search: externalId },
      { apiId, cursor: cursorAt("apis.listKeys", keyId) },
    ],
  },
  "apis.updateApi": ofApi("insufficient_permissions", { prefix: "pay", byteLength: 32, allowedIps: ["10.0.0.0/8"] }),

  "keys.addPermissions": ofKeyWithPermissions,
  "keys.addRoles": ofKeyWithRoles,
  "keys.createKey": {
    ...ofApi("api_not_found", { name: "production" }),
    named: ({ apiId, externalId, role, slug, budgetId, plan, planId }) => [
      { apiId, plan },
      { apiId, plan: planId },
      { apiId, externalId, permissions: [slug] },
      { apiId, roles: [role] },
      { apiId, budgetId },
    ],
  },
  "keys.deleteKey": { ...ofKey(), named: ({ keyId }) => [{ keyId }, { keyId, permanent: true }] },
  "keys.deriveKey": { ...ofKey({ ttl: 60_000 }), named: ({ keyId }) => [{ keyId, ttl: 60_000 }] },
  "keys.deriveOwnKey": {
    body: async (server) => {
      const { apiId } = await server.ok("apis.createApi", { name: "derivable", ownKeyDerivation: true });
      return { key: (await server.createKey(apiId)).key, ttl: 60_000 };
    },
    absent: (body) => ({ ...body, key: NEVER_SECRET }),
    unpermitted: "key_not_found",
    named: ({ key, importedKey }) => [
      { key, ttl: 60_000 },
      { key: importedKey, ttl: 60_000 },
    ],
  },
  "keys.explainVerification": ofSecret("NOT_FOUND", ({ key, keyId, importedKey, apiId, migrationId, slug }) => [
    { key, apiId, permissions: slug },
    { key: importedKey },
    { key, migrationId },
    { keyId },
  ]),
  "keys.getKey": { ...ofKey(), named: ({ keyId }) => [{ keyId }, { keyId, decrypt: true }] },
  "keys.getOwnKey": {
    ...ofSecret("key_not_found", ({ key, importedKey }) => [{ key }, { key: importedKey }]),
    body: async (server) => {
      const { apiId } = await server.ok("apis.createApi", { name: "readable", ownKeyAccess: true });
      return { key: (await server.createKey(apiId)).key };
    },
  },
  "keys.listDerivedKeys": ofKey(),
  "keys.migrateKeys": {
    ...ofApi("insufficient_permissions"),
    body: async (server) => ({
      migrationId: "sweep",
      apiId: await server.createApi(),
      keys: [{ hash: sha256(unique("sweep")), permissions: ["sweep.read"] }],
    }),
    named: ({ apiId, externalId, role, slug, migrationId, hash }) => [
      { migrationId, apiId, keys: [{ hash, externalId, roles: [role], permissions: [slug] }] },
    ],
  },
  "keys.removePermissions": ofKeyWithPermissions,
  "keys.removeRoles": ofKeyWithRoles,
  // A report names a key of any workspace: whose string is known outside is leaked.
  "keys.reportLeak": {
    ...ofNothing(() => ({
      key: NEVER_SECRET,
      location: "https://example.com/config.js",
    })),
    unpermitted: undefined,
  },
  "keys.rerollKey": ofKey({ expiration: 0 }),
  "keys.restoreKey": {
    ...ofKey(),
    body: async (server) => {
      const { keyId } = await newKey(server);
      await server.ok("keys.deleteKey", { keyId });
      return { keyId };
    },
  },
  "keys.setPermissions": ofKeyWithPermissions,
  "keys.setRoles": ofKeyWithRoles,
  "keys.updateCredits": ofKey({ operation: "set", value: 5 }),
  "keys.updateKey": {
    ...ofKey({ name: "staging" }),
    named: ({ keyId, externalId, role, slug }) => [
      { keyId, externalId, permissions: [slug] },
      { keyId, roles: [role] },
    ],
  },
  "keys.verifyKey": ofSecret("NOT_FOUND", ({ key, importedKey, apiId, migrationId, slug }) => [
    { key, apiId, permissions: slug },
    { key: importedKey },
    { key, migrationId },
  ]),
  "keys.whoami": ofSecret("key_not_found", ({ key, importedKey }) => [{ key }, { key: importedKey }]),

  "identities.createIdentity": ofNothing(
    () => ({ externalId: unique("sweep"), ratelimits: [{ name: "requests", limit: 5, duration: 1_000 }] }),
    ({ externalId, budgetId, plan }) => [
      { externalId },
      { externalId: unique("sweep"), budgetId },
      { externalId: unique("sweep"), plan },
    ],
  ),
  "identities.deleteIdentity": ofIdentity(),
  "identities.getIdentity": ofIdentity(),
  "identities.listIdentities": {
    ...listOfIdentities,
    named: (resources) => [
      ...listOfIdentities.named(resources),
      { budgetId: resources.budgetId },
      { plan: resources.plan },
    ],
    body: async (server) => ({ search: ((await ofIdentity().body(server)) as { identity: string }).identity }),
  },
  "identities.updateIdentity": ofIdentity({ meta: { plan: "pro" } }),

  "plans.createPlan": ofNothing(
    () => ({ name: unique("sweep"), ratelimits: [{ name: "requests", limit: 5, duration: 1_000 }] }),
    ({ role, slug }) => [{ name: unique("sweep"), roles: [role], permissions: [slug] }],
  ),
  "plans.deletePlan": ofPlan(),
  "plans.getPlan": ofPlan(),
  "plans.listPlans": ofNothing(
    () => ({}),
    ({ planId }) => [{}, { cursor: cursorAt("plans.listPlans", planId) }, { search: planId }],
  ),
  "plans.previewUpdate": ofPlan({ ratelimits: [] }),
  "plans.updatePlan": ofPlan({ ratelimits: [] }),

  "budgets.createBudget": ofNothing(
    () => ({ name: "sweep", remaining: 10, unit: "usd_micro", thresholds: [50] }),
    ({ budgetId }) => [{ name: "taken over", remaining: 10, parentId: budgetId }],
  ),
  "budgets.deleteBudget": ofBudget(),
  "budgets.getBudget": ofBudget(),
  "budgets.listBudgets": {
    ...ofList("budgets.listBudgets", "budgetId"),
    named: ({ budgetId }) => [
      {},
      { cursor: cursorAt("budgets.listBudgets", budgetId) },
      { search: budgetId },
      { parentId: budgetId },
    ],
  },
  "budgets.updateBudget": ofBudget({ name: "swept", onEmpty: "allow" }),
  "budgets.updateCredits": ofBudget({ operation: "increment", value: 5 }),

  "holds.extendHold": ofHold({ ttl: 60_000 }),
  "holds.getHold": ofHold(),
  "holds.listHolds": ofNothing(
    () => ({ state: "open", limit: 10 }),
    ({ keyId, holdId }) => [{ keyId }, { cursor: cursorAt("holds.listHolds", holdId) }],
  ),
  "holds.releaseHold": ofHold(),
  "holds.settleHold": ofHold({ credits: 1, tags: ["swept"] }),

  "permissions.createPermission": ofNothing(
    () => ({ name: "Sweeping", slug: unique("sweep"), description: "Clean" }),
    ({ slug }) => [{ name: "Read", slug }],
  ),
  "permissions.createRole": ofNothing(
    () => ({ name: unique("sweep"), permissions: ["sweep.read"] }),
    ({ role, slug }) => [{ name: role, permissions: [slug] }],
  ),
  "permissions.deletePermission": ofPermission,
  "permissions.deleteRole": ofRole,
  "permissions.getPermission": ofPermission,
  "permissions.getRole": ofRole,
  "permissions.listPermissions": ofList("permissions.listPermissions", "permissionId", "slug"),
  "permissions.listRoles": ofList("permissions.listRoles", "roleId", "role"),
  "permissions.setRolePermissions": {
    ...ofRole,
    body: async (server) => {
      const { roleId } = await server.ok("permissions.createRole", { name: unique("sweep") });
      return { role: roleId, permissions: ["sweep.read"] };
    },
    named: ({ roleId, role, slug }) => [
      { role: roleId, permissions: [slug] },
      { role, permissions: [slug] },
    ],
  },
  "permissions.updatePermission": {
    ...ofPermission,
    body: async (server) => ({ ...(await ofPermission.body(server)), name: "Swept", slug: unique("sweep") }),
    named: ({ permissionId, slug }) => [
      { permission: permissionId, name: "taken over" },
      { permission: slug, slug: "taken.over" },
    ],
  },
  "permissions.updateRole": {
    ...ofRole,
    body: async (server) => ({ ...(await ofRole.body(server)), name: unique("swept"), description: "Swept" }),
    named: ({ roleId, role }) => [
      { role: roleId, name: "taken over" },
      { role, description: "taken over" },
    ],
  },

  "portal.createSession": {
    ...ofApi("insufficient_permissions", { actions: ["list"] }),
    body: async (server) => ({
      apiId: await server.createApi(),
      externalId: unique("sweep"),
      actions: ["list", "create"],
      keys: { max: 3, prefixes: ["sweep"], expiresInMax: 60_000, roles: [] },
      page: {
        name: "Sweep",
        logoUrl: "https://sweep.example/a.svg",
        color: "#123456",
        returnUrl: "http://localhost/a",
      },
    }),
    absent: () => null,
    named: ({ apiId, identityId, externalId, role }) => [
      { apiId, externalId, actions: ["list"] },
      { apiId, identity: identityId, actions: ["list"], keys: { roles: [role] } },
      { apiId, identity: externalId, actions: ["list"] },
    ],
  },
  "portal.deletePortalSessions": {
    ...ofApi("insufficient_permissions"),
    named: ({ apiId, identityId, externalId, portalSessionId: sessionId }) => [
      { apiId },
      { apiId, sessionId },
      { apiId, identity: identityId },
      { apiId, identity: externalId },
    ],
  },
  "portal.listPortalSessions": {
    ...ofApi("insufficient_permissions"),
    named: ({ apiId, identityId, externalId, portalSessionId }) => [
      { apiId, identity: identityId },
      { apiId, identity: externalId, cursor: cursorAt("portal.listPortalSessions", portalSessionId) },
    ],
  },

  "ratelimits.limit": ofNothing(
    () => sweptLimit,
    ({ namespace, namespaceId, identifier }) => [limitCall(namespace, identifier), limitCall(namespaceId, identifier)],
  ),
  "ratelimits.multiLimit": ofNothing(
    () => [sweptLimit, { ...sweptLimit, cost: 2 }] as unknown as Body,
    ({ namespace, namespaceId, identifier }) => [
      [limitCall(namespace, identifier), limitCall(namespaceId, identifier)],
    ],
  ),
  "ratelimits.deleteNamespace": ofNamespace(),
  "ratelimits.deleteOverride": ofOverride("insufficient_permissions", "a"),
  "ratelimits.explainLimit": ofOverride("insufficient_permissions", "a", { limit: 5, duration: 1_000 }),
  "ratelimits.getDescriptors": ofNamespace(),
  "ratelimits.getOverride": ofOverride("override_not_found", "a"),
  "ratelimits.listNamespaces": ofList("ratelimits.listNamespaces", "namespaceId", "namespace"),
  "ratelimits.listOverrides": {
    ...ofNamespace(),
    named: ({ namespace, namespaceId, overrideId }) => [
      { namespace, cursor: cursorAt("ratelimits.listOverrides", overrideId) },
      { namespace: namespaceId },
    ],
  },
  "ratelimits.setDescriptors": ofNamespace({
    descriptors: [{ key: "user", rate_limit: { requests_per_unit: 5, unit: "minute" } }],
  }),
  "ratelimits.setOverride": ofOverride("insufficient_permissions", "b*", { limit: 5, duration: 1_000 }),

  "rootKeys.createRootKey": ofNothing(
    () => ({ name: "swept", permissions: ["apis.*.read_api"], expires: 4e12 }),
    ({ apiId }) => [{ name: "grasping", permissions: [`apis.${apiId}.read_key`] }],
  ),
  "rootKeys.deleteRootKey": ofRootKey(),
  "rootKeys.deleteSessions": ofRootKey(),
  "rootKeys.listSessions": ofNothing(
    () => ({ limit: 10 }),
    ({ rootKeyId }) => [{ rootKeyId }],
  ),
  "rootKeys.listRootKeys": ofList("rootKeys.listRootKeys", "rootKeyId", "rootKeyId"),
  "rootKeys.rerollRootKey": ofRootKey({ expiration: 60_000 }),
  "rootKeys.updateRootKey": ofRootKey({ name: "swept", permissions: ["apis.*.read_key"], enabled: false }),

  "workspaces.createWorkspace": ofNothing(() => ({ name: "swept", requestsPerMinute: 100 })),
  "workspaces.listWorkspaces": ofList("workspaces.listWorkspaces", "workspaceId", "workspaceId"),
  // Only the default workspace manages workspaces, and it manages all of them. Others are rejected for any name.
  "workspaces.updateWorkspace": {
    body: async (server) => ({ workspaceId: (await server.workspace("swept")).workspaceId, requestsPerMinute: 100 }),
    absent: () => null,
    unpermitted: "insufficient_permissions",
    named: ({ workspaceId }) => [{ workspaceId, enabled: false }],
  },

  "audit.listEvents": ofNothing(
    () => ({ action: "apis.createApi", limit: 1 }),
    ({ keyId, rootKeyId }) => [{ target: keyId }, { actor: rootKeyId }],
  ),

  "events.listEvents": ofNothing(
    () => ({ types: ["api.created"], limit: 1 }),
    ({ keyId, rootKeyId }) => [{ objectId: keyId }, { objectId: rootKeyId }],
  ),

  "webhooks.createWebhook": ofNothing(
    () => ({ endpoint: WEBHOOK_URL }),
    ({ apiId }) => [{ endpoint: WEBHOOK_URL, apiIds: [apiId] }],
  ),
  "webhooks.deleteWebhook": ofWebhook(),
  "webhooks.getWebhook": ofWebhook(),
  "webhooks.listDeliveries": ofWebhook(),
  "webhooks.listWebhooks": ofList("webhooks.listWebhooks", "webhookId"),
  "webhooks.redeliver": ofWebhook(),
  "webhooks.rotateSecret": ofWebhook(),
  "webhooks.sendTest": ofWebhook(),
  "webhooks.updateWebhook": ofWebhook({ enabled: false }),

  "analytics.getApiStats": ofApi("insufficient_permissions", pastHour),
  "analytics.getBudgetStats": ofBudget(pastHour),
  "analytics.getIdentityStats": ofIdentity(pastHour),
  "analytics.getKeyStats": ofKey(pastHour),
  "analytics.getRatelimitStats": ofNamespace(pastHour),
  "analytics.listDecisions": ofNothing(
    () => ({ refused: true, limit: 10 }),
    ({ apiId, keyId }) => [{ apiId }, { keyId }],
  ),
  "analytics.listTopIdentities": ofApi("insufficient_permissions", pastHour),
  "analytics.listTopKeys": ofApi("insufficient_permissions", pastHour),

  "analytics.listUsage": {
    body: async (server) => ({ keyIds: [(await newKey(server)).keyId], ...pastHour }),
    absent: () => null,
    unpermitted: "insufficient_permissions",
    named: ({ keyId, apiId }) => [{ keyIds: [keyId], apiIds: [apiId], ...pastHour }],
  },

  "system.getFindings": ofNothing(() => ({})),
  "system.getStatus": ofNothing(() => ({})),
  "system.listDecisions": ofNothing(
    () => ({ since: 0, limit: 10 }),
    ({ apiId, keyId }) => [{ apiId, keyId }],
  ),
  "replica.listChanges": ofNothing(() => ({ tagKey: "k".repeat(22), wait: 0, edge: describedEdge() })),
  "replica.resolveKeys": ofNothing(
    () => ({ keys: [hashSecret(NEVER_SECRET)], workspace: true }),
    ({ key }) => [{ keys: [hashSecret(key)] }],
  ),
  "replica.charge": {
    ...ofNothing(() => ({ calls: [edgeCall(NEVER_SECRET)] })),
    named: ({ key, apiId }) => [
      { calls: [edgeCall(key)] },
      { calls: [edgeCall(key, { apiId })] },
      { calls: [edgeCall(key, { keyspaces: [apiId] })] },
    ],
  },
  "replica.lease": ofNothing(
    () => ({ leases: [askedLease(NEVER_SECRET)] }),
    ({ key }) => [{ leases: [askedLease(key)] }],
  ),
  "replica.report": {
    ...ofNothing(() => ({ recorder: "rec_1", sequence: 1, verifications: [], uses: [] })),
    named: ({ apiId, keyId, identityId }) => [
      {
        recorder: "rec_1",
        sequence: 1,
        verifications: [[REPORTED_MINUTE, apiId, keyId, identityId, "", "VALID", 1, 100]],
        uses: [{ keyId, at: REPORTED_MINUTE }],
      },
    ],
  },
  "system.search": ofNothing(
    () => ({ query: "pay" }),
    (resources) => Object.values(resources).map((query) => ({ query })),
  ),
};
