/**
 * Every field of every operation that updates something does what its answer and the audit log say: a call with this
 * field alone changes the value that the reading operation returns.
 */
import assert from "node:assert/strict";
import { before, it } from "node:test";
import { z } from "zod";
import { operations } from "../src/service/operations.ts";
import { describeOnStores, type TestServer, VAULT_KEY } from "./harness.ts";

type Values = Record<string, unknown>;

interface Updated {
  /** The member of the input that names the object. It is not updated. */
  reference: string;
  /** Creates an object and returns its name. */
  create(server: TestServer): Promise<string>;
  /** The object, by the names of the input. */
  read(server: TestServer, reference: string): Promise<Values>;
  /** A value for each field, different from that of a new object. */
  fields: Values;
}

const from = (operation: string, member: string) => async (server: TestServer, reference: string) =>
  server.ok(operation, { [member]: reference });

let created = 0;
/** A name that no other object of this file has. */
const unique = (name: string) => `${name}-${++created}`;

const createBudget = async (server: TestServer): Promise<string> =>
  (await server.ok("budgets.createBudget", { name: "team", remaining: 3 })).budgetId;

const createPlan = async (server: TestServer): Promise<string> => {
  const name = unique("plan");
  await server.ok("plans.createPlan", { name });
  return name;
};

const limit = { name: "calls", limit: 7, duration: 60_000 };

const updated: Record<string, Updated> = {
  "keys.updateKey": {
    reference: "keyId",
    create: async (server) => (await server.createKey(await server.createApi())).keyId,
    read: async (server, keyId) => {
      const { identity, ...key } = await server.getKey(keyId);
      return { ...key, externalId: identity?.externalId };
    },
    fields: {
      name: "another name",
      externalId: "someone",
      meta: { plan: "pro" },
      expires: 4_000_000_000_000,
      credits: { remaining: 5, refill: { interval: "monthly", amount: 9, refillDay: 3 } },
      ratelimits: [{ ...limit, autoApply: true }],
      concurrency: [{ name: "streams", limit: 2 }],
      allowedIps: ["198.51.100.0/24"],
      budgetId: "a budget",
      plan: "a plan",
      enabled: false,
      roles: ["writer"],
      permissions: ["documents.write"],
    },
  },
  "keys.updateCredits": {
    reference: "keyId",
    create: async (server) => (await server.createKey(await server.createApi(), { credits: { remaining: 3 } })).keyId,
    read: async (server, keyId) => ({ value: (await server.getKey(keyId)).credits.remaining }),
    // Its two other members say what to do with the value.
    fields: { value: 11 },
  },
  "identities.updateIdentity": {
    reference: "identity",
    create: async (server) =>
      (await server.ok("identities.createIdentity", { externalId: unique("owner") })).identityId,
    read: from("identities.getIdentity", "identity"),
    fields: {
      meta: { plan: "pro" },
      ratelimits: [{ ...limit, autoApply: true }],
      concurrency: [{ name: "streams", limit: 2 }],
      budgetId: "a budget",
      plan: "a plan",
    },
  },
  "budgets.updateBudget": {
    reference: "budgetId",
    create: createBudget,
    read: from("budgets.getBudget", "budgetId"),
    fields: {
      name: "another name",
      refill: { interval: "monthly", amount: 9, refillDay: 3 },
      onEmpty: "allow",
      thresholds: [50, 90],
      meta: { plan: "pro" },
    },
  },
  "plans.updatePlan": {
    reference: "plan",
    create: createPlan,
    read: from("plans.getPlan", "plan"),
    fields: {
      ratelimits: [{ ...limit, autoApply: true }],
      concurrency: [{ name: "streams", limit: 2 }],
      credits: { amount: 9, refill: { interval: "monthly", refillDay: 3 } },
      budget: { amount: 9, refill: { interval: "monthly", refillDay: 3 }, onEmpty: "allow", unit: "token" },
      permissions: ["documents.write"],
      roles: ["writer"],
      meta: { price: 9 },
    },
  },
  "budgets.updateCredits": {
    reference: "budgetId",
    create: createBudget,
    read: async (server, budgetId) => ({ value: (await server.ok("budgets.getBudget", { budgetId })).remaining }),
    fields: { value: 11 },
  },
  "apis.updateApi": {
    reference: "apiId",
    create: (server) => server.createApi(),
    read: from("apis.getApi", "apiId"),
    fields: {
      name: "another name",
      prefix: "live",
      byteLength: 24,
      deleteProtection: true,
      allowedIps: ["198.51.100.0/24"],
      leakAction: "disable",
      expiryNotices: [30, 7],
      upstream: { url: "https://old.example.com/verify", timeout: 1_000, onOutage: "not_found" },
      ownKeyAccess: true,
      resources: ["https://api.example.com", "urn:example:documents"],
      ownKeyDerivation: true,
      policy: { expiry: { default: 86_400_000, max: 864_000_000 }, limitsRequired: true, prefixFixed: false },
      portal: { actions: ["list", "usage"], page: { name: "Acme", color: "#246bce", language: "pt" } },
    },
  },
  "webhooks.updateWebhook": {
    reference: "webhookId",
    create: async (server) =>
      (await server.ok("webhooks.createWebhook", { endpoint: "https://one.example.com/hook" })).webhookId,
    read: from("webhooks.getWebhook", "webhookId"),
    fields: {
      endpoint: "https://two.example.com/hook",
      name: "another name",
      eventTypes: ["key.created"],
      apiIds: ["api"],
      enabled: false,
    },
  },
  "rootKeys.updateRootKey": {
    reference: "rootKeyId",
    create: async (server) => (await server.grant("apis.*.read_api")).rootKeyId,
    read: async (server, rootKeyId) => {
      const rootKeys = await server.ok("rootKeys.listRootKeys", {});
      return rootKeys.find((rootKey: Values) => rootKey.rootKeyId === rootKeyId);
    },
    fields: {
      name: "another name",
      permissions: ["apis.*.create_key"],
      enabled: false,
      expires: 4_000_000_000_000,
      leakAction: "disable",
    },
  },
  "workspaces.updateWorkspace": {
    reference: "workspaceId",
    create: async (server) => (await server.workspace(unique("tenant"))).workspaceId,
    read: async (server, workspaceId) => {
      const workspaces = await server.ok("workspaces.listWorkspaces", {});
      return workspaces.find((workspace: Values) => workspace.workspaceId === workspaceId);
    },
    fields: { name: "another name", enabled: false, requestsPerMinute: 60 },
  },
  "permissions.updateRole": {
    reference: "role",
    create: async (server) => (await server.ok("permissions.createRole", { name: unique("reader") })).roleId,
    read: from("permissions.getRole", "role"),
    fields: { name: "author", description: "Writes" },
  },
  "permissions.updatePermission": {
    reference: "permission",
    create: async (server) =>
      (await server.ok("permissions.createPermission", { name: "Erase", slug: unique("documents.erase") }))
        .permissionId,
    read: from("permissions.getPermission", "permission"),
    fields: { name: "another name", slug: "documents.shred", description: "Shreds" },
  },
};

/** What a call needs beside the field. */
const beside: Record<string, Values> = {
  "keys.updateCredits": { operation: "set" },
  "budgets.updateCredits": { operation: "set" },
};

/** Fields that say how another one is changed: their tests are in plan-credits.test.ts and plan-budgets.test.ts. */
const ways: Record<string, readonly string[]> = {
  "keys.updateKey": ["balances"],
  "identities.updateIdentity": ["balances"],
};

/** Whether `actual` has what was given: members that the service adds, such as ids and defaults, are ignored. */
function contains(actual: unknown, given: unknown): boolean {
  if (Array.isArray(given)) {
    return (
      Array.isArray(actual) && actual.length === given.length && given.every((item, i) => contains(actual[i], item))
    );
  }
  if (typeof given === "object" && given !== null) {
    return Object.entries(given).every(([name, value]) => contains((actual as Values | undefined)?.[name], value));
  }
  return actual === given;
}

describeOnStores(
  "an update",
  (server) => {
    // apis.updateKeys changes any number of keys, with the handlers of the operations that change one: matching-keys.test.ts.
    const updates = operations.filter(({ name }) => /\.update[A-Z]/.test(name) && name !== "apis.updateKeys");

    before(() => server.createRole("writer"));

    it("is listed here with all of its fields", () => {
      assert.deepEqual(Object.keys(updated).sort(), updates.map(({ name }) => name).sort());
      for (const { name, declaration } of updates) {
        const { reference, fields } = updated[name]!;
        const declared = Object.keys(
          (z.toJSONSchema(declaration.input, { io: "input" }) as Values).properties as Values,
        );
        const listed = [reference, ...Object.keys(fields), ...Object.keys(beside[name] ?? {}), ...(ways[name] ?? [])];
        assert.deepEqual(listed.sort(), declared.sort(), name);
      }
    });

    for (const [operation, { reference, create, read, fields }] of Object.entries(updated)) {
      for (const [field, sample] of Object.entries(fields)) {
        it(`${operation} changes ${field}, and only that`, async () => {
          const object = await create(server);
          const existing: Values = {};
          if (field === "apiIds") existing.apiIds = [await server.createApi()];
          if (field === "budgetId") existing.budgetId = await createBudget(server);
          if (sample === "a plan") existing.plan = await createPlan(server);
          const value = existing[field] ?? sample;
          const before = await read(server, object);
          assert(!contains(before[field], value), `${field} has this value already: ${JSON.stringify(before)}`);

          await server.ok(operation, { [reference]: object, [field]: value, ...beside[operation] });
          const after = await read(server, object);
          assert(contains(after[field], value), `${field} is ${JSON.stringify(after[field])}`);
          for (const other of Object.keys(fields)) {
            if (other !== field) assert.deepEqual(after[other], before[other], other);
          }
        });
      }
    }
  },
  { VAULT_KEY },
);
