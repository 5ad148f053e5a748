/**
 * The published TypeScript client of the reference against this service: only the base URL differs. The client checks
 * every answer by its own schemas and throws if one does not fit, so a call that resolves is checked. Its operations,
 * and the error class of each status, are read from its sources.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Unkey } from "@unkey/api";
import * as errors from "@unkey/api/models/errors";
import { StoreUnavailable } from "../../engine/src/errors/store-unavailable.ts";
import { namesOf } from "../src/platform/rpc/operation.ts";
import { operations } from "../src/service/operations.ts";
import { TestServer } from "./harness.ts";

/** A prepared call by either client. Everything that it needs exists. */
type Call = (unkey: Unkey) => Promise<unknown>;
type Prepare = () => Promise<Call>;

const server = new TestServer({ settings: { PORT: "0" } });
let serverURL: string;
/** A client with this root key, without retries. */
const clientOf = (rootKey: string) => new Unkey({ rootKey, serverURL, retryConfig: { strategy: "none" } });
let made = 0;
const unique = (name: string) => `${name}_${++made}`;
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const limits = [{ name: "requests", limit: 100, duration: 60_000, autoApply: true }];
const counted = { identifier: "user 1", limit: 10, duration: 60_000, cost: 2 };

/** All properties that a key can have. */
async function fullKey() {
  const role = unique("editor");
  await server.ok("permissions.createRole", { name: role, description: "edits", permissions: ["documents.write"] });
  const externalId = unique("user");
  await server.ok("identities.createIdentity", { externalId, meta: { a: 1 }, ratelimits: limits });
  return {
    apiId: await server.createApi(),
    prefix: "prod",
    name: "production",
    byteLength: 24,
    externalId,
    meta: { plan: "pro", nested: { list: [1, null, "a"] } },
    roles: [role],
    permissions: ["documents.read", "documents.*"],
    expires: 4_000_000_000_000,
    credits: { remaining: 100, refill: { interval: "monthly" as const, amount: 100, refillDay: 15 } },
    ratelimits: limits,
    enabled: true,
    recoverable: true,
  };
}

const newKey = async (): Promise<{ keyId: string; key: string; apiId: string }> => {
  const full = await fullKey();
  return { ...(await server.ok("keys.createKey", full)), apiId: full.apiId };
};
const newIdentity = async () => {
  const externalId = unique("user");
  await server.ok("identities.createIdentity", { externalId, meta: { plan: "pro" }, ratelimits: limits });
  return externalId;
};
const newPermission = async () => {
  const slug = unique("documents");
  await server.ok("permissions.createPermission", { name: "Documents", slug, description: "All of them" });
  return slug;
};
const newRole = async (): Promise<{ role: string; roleId: string }> => {
  const role = unique("reader");
  const permissions = ["documents.read"];
  const { roleId } = await server.ok("permissions.createRole", { name: role, description: "reads", permissions });
  return { role, roleId };
};
const newNamespace = async () => {
  const namespace = unique("namespace");
  await server.ok("ratelimit.limit", { ...counted, namespace });
  await server.ok("ratelimit.setOverride", { namespace, identifier: "user*", limit: 5, duration: 1_000 });
  return namespace;
};
const roles = async () => [(await newRole()).role];

/** The first page of a list and all following pages. */
async function allPages(list: Promise<AsyncIterable<unknown>>): Promise<unknown[]> {
  const pages: unknown[] = [];
  for await (const page of await list) pages.push(page);
  return pages;
}

/** A call of every operation that the client and this service have, with as many properties as possible. */
const calls: Record<string, Prepare> = {
  "apis.createApi": async () => (unkey) => unkey.apis.createApi({ name: "payments" }),
  "apis.getApi": async () => {
    const apiId = await server.createApi();
    return (unkey) => unkey.apis.getApi({ apiId });
  },
  "apis.deleteApi": async () => {
    const apiId = await server.createApi();
    return (unkey) => unkey.apis.deleteApi({ apiId });
  },
  "apis.listKeys": async () => {
    const { apiId, ...full } = await fullKey();
    for (let key = 0; key < 3; key++) await server.createKey(apiId, full);
    await server.createKey(apiId);
    return (unkey) => allPages(unkey.apis.listKeys({ apiId, limit: 2, decrypt: true, revalidateKeysCache: true }));
  },

  "keys.createKey": async () => {
    const full = await fullKey();
    return (unkey) => unkey.keys.createKey(full);
  },
  "keys.getKey": async () => {
    const { keyId } = await newKey();
    return (unkey) => unkey.keys.getKey({ keyId, decrypt: true });
  },
  "keys.whoami": async () => {
    const { key } = await newKey();
    return (unkey) => unkey.keys.whoami({ key });
  },
  "keys.updateKey": async () => {
    const { keyId } = await newKey();
    const { apiId: _, prefix: __, byteLength: ___, recoverable: ____, ...change } = await fullKey();
    return (unkey) => unkey.keys.updateKey({ ...change, keyId, meta: null, credits: null });
  },
  "keys.deleteKey": async () => {
    const { keyId } = await newKey();
    return (unkey) => unkey.keys.deleteKey({ keyId, permanent: true });
  },
  "keys.verifyKey": async () => {
    const { key } = await newKey();
    const request = {
      key,
      tags: ["path=/v1/documents", "länge"],
      permissions: "documents.read AND (documents.write OR admin)",
      credits: { cost: 3 },
      ratelimits: [
        { name: "requests", cost: 2 },
        { name: "burst", limit: 10, duration: 1_000 },
      ],
    };
    return (unkey) => unkey.keys.verifyKey(request);
  },
  "keys.updateCredits": async () => {
    const { keyId } = await newKey();
    return (unkey) => unkey.keys.updateCredits({ keyId, operation: "increment", value: 5 });
  },
  "keys.rerollKey": async () => {
    const { keyId } = await newKey();
    return (unkey) => unkey.keys.rerollKey({ keyId, expiration: 86_400_000 });
  },
  "keys.migrateKeys": async () => {
    const { apiId, prefix: _, byteLength: __, recoverable: ___, ...full } = await fullKey();
    const hash = sha256(unique("key"));
    const keys = [{ ...full, hash }, { hash: sha256(unique("key")) }, { hash }];
    return (unkey) => unkey.keys.migrateKeys({ migrationId: "from elsewhere", apiId, keys });
  },
  "keys.addPermissions": async () => {
    const { keyId } = await newKey();
    const permissions = [await newPermission(), unique("new")];
    return (unkey) => unkey.keys.addPermissions({ keyId, permissions });
  },
  "keys.removePermissions": async () => {
    const { keyId } = await newKey();
    return (unkey) => unkey.keys.removePermissions({ keyId, permissions: ["documents.read"] });
  },
  "keys.setPermissions": async () => {
    const { keyId } = await newKey();
    const permissions = [await newPermission(), unique("new")];
    return (unkey) => unkey.keys.setPermissions({ keyId, permissions });
  },
  "keys.addRoles": async () => {
    const [{ keyId }, names] = [await newKey(), await roles()];
    return (unkey) => unkey.keys.addRoles({ keyId, roles: names });
  },
  "keys.removeRoles": async () => {
    const [{ keyId }, names] = [await newKey(), await roles()];
    return (unkey) => unkey.keys.removeRoles({ keyId, roles: names });
  },
  "keys.setRoles": async () => {
    const [{ keyId }, names] = [await newKey(), await roles()];
    return (unkey) => unkey.keys.setRoles({ keyId, roles: names });
  },

  "identities.createIdentity": async () => (unkey) =>
    unkey.identities.createIdentity({ externalId: unique("user"), meta: { plan: "pro" }, ratelimits: limits }),
  "identities.getIdentity": async () => {
    const identity = await newIdentity();
    return (unkey) => unkey.identities.getIdentity({ identity });
  },
  "identities.listIdentities": async () => {
    for (let identity = 0; identity < 3; identity++) await newIdentity();
    return (unkey) => allPages(unkey.identities.listIdentities({ limit: 100, search: "user" }));
  },
  "identities.updateIdentity": async () => {
    const identity = await newIdentity();
    return (unkey) => unkey.identities.updateIdentity({ identity, meta: {}, ratelimits: limits });
  },
  "identities.deleteIdentity": async () => {
    const identity = await newIdentity();
    return (unkey) => unkey.identities.deleteIdentity({ identity });
  },

  "permissions.createPermission": async () => (unkey) =>
    unkey.permissions.createPermission({ name: "Read", slug: unique("read"), description: "Reads" }),
  "permissions.getPermission": async () => {
    const permission = await newPermission();
    return (unkey) => unkey.permissions.getPermission({ permission });
  },
  "permissions.listPermissions": async () => {
    for (let permission = 0; permission < 3; permission++) await newPermission();
    return (unkey) => allPages(unkey.permissions.listPermissions({ limit: 2, search: "documents" }));
  },
  "permissions.deletePermission": async () => {
    const permission = await newPermission();
    return (unkey) => unkey.permissions.deletePermission({ permission });
  },
  "permissions.createRole": async () => (unkey) =>
    unkey.permissions.createRole({ name: unique("role"), description: "A role", permissions: ["a.b"] }),
  "permissions.getRole": async () => {
    const { roleId } = await newRole();
    return (unkey) => unkey.permissions.getRole({ role: roleId });
  },
  "permissions.listRoles": async () => {
    for (let role = 0; role < 3; role++) await newRole();
    return (unkey) => allPages(unkey.permissions.listRoles({ limit: 2, search: "reader" }));
  },
  "permissions.deleteRole": async () => {
    const { role } = await newRole();
    return (unkey) => unkey.permissions.deleteRole({ role });
  },
  "permissions.setRolePermissions": async () => {
    const { roleId } = await newRole();
    const permissions = [await newPermission(), unique("new")];
    return (unkey) => unkey.permissions.setRolePermissions({ roleId, permissions });
  },

  "ratelimit.limit": async () => {
    const namespace = unique("namespace");
    return (unkey) => unkey.ratelimit.limit({ ...counted, namespace });
  },
  "ratelimit.multiLimit": async () => {
    const [known, fresh] = [await newNamespace(), unique("namespace")];
    return (unkey) => unkey.ratelimit.multiLimit([known, fresh, fresh].map((namespace) => ({ ...counted, namespace })));
  },
  "ratelimit.setOverride": async () => {
    const namespace = await newNamespace();
    return (unkey) => unkey.ratelimit.setOverride({ namespace, identifier: "vip", limit: 0, duration: 1_000 });
  },
  "ratelimit.getOverride": async () => {
    const namespace = await newNamespace();
    return (unkey) => unkey.ratelimit.getOverride({ namespace, identifier: "user 1" });
  },
  "ratelimit.listOverrides": async () => {
    const namespace = await newNamespace();
    for (const identifier of ["a", "b"]) {
      await server.ok("ratelimit.setOverride", { namespace, identifier, limit: 5, duration: 1_000 });
    }
    return (unkey) => allPages(unkey.ratelimit.listOverrides({ namespace, limit: 1 }));
  },
  "ratelimit.deleteOverride": async () => {
    const namespace = await newNamespace();
    return (unkey) => unkey.ratelimit.deleteOverride({ namespace, identifier: "user*" });
  },
};

/** The problems of single operations, by name and status. Problems that all operations share are not repeated here. */
const rejections: Record<string, Partial<Record<number, Prepare>>> = {
  "apis.getApi": absent((unkey) => unkey.apis.getApi({ apiId: "api_never0existed" })),
  "apis.deleteApi": {
    ...absent((unkey) => unkey.apis.deleteApi({ apiId: "api_never0existed" })),
    412: async () => {
      const apiId = await server.createApi();
      await server.ok("apis.updateApi", { apiId, deleteProtection: true });
      return (unkey) => unkey.apis.deleteApi({ apiId });
    },
  },
  "apis.listKeys": absent((unkey) => unkey.apis.listKeys({ apiId: "api_never0existed" })),
  "keys.createKey": {
    ...absent((unkey) => unkey.keys.createKey({ apiId: "api_never0existed" })),
    400: async () => {
      const apiId = await server.createApi();
      return (unkey) => unkey.keys.createKey({ apiId, prefix: "with blanks" });
    },
  },
  "keys.getKey": absent((unkey) => unkey.keys.getKey({ keyId: "key_never" })),
  "keys.whoami": absent((unkey) => unkey.keys.whoami({ key: "never" })),
  "keys.updateKey": absent((unkey) => unkey.keys.updateKey({ keyId: "key_never" })),
  "keys.deleteKey": absent((unkey) => unkey.keys.deleteKey({ keyId: "key_never" })),
  "keys.verifyKey": {
    400: async () => {
      const { key } = await newKey();
      return (unkey) => unkey.keys.verifyKey({ key, permissions: "documents.read AND" });
    },
    412: async () => {
      const { key } = await newKey();
      return (unkey) => unkey.keys.verifyKey({ key, ratelimits: [{ name: "nowhere" }] });
    },
  },
  "keys.updateCredits": {
    ...absent((unkey) => unkey.keys.updateCredits({ keyId: "key_never", operation: "set", value: 1 })),
    400: async () => {
      const { keyId } = await newKey();
      return (unkey) => unkey.keys.updateCredits({ keyId, operation: "increment" });
    },
  },
  "keys.rerollKey": absent((unkey) => unkey.keys.rerollKey({ keyId: "key_never", expiration: 0 })),
  "keys.migrateKeys": absent((unkey) =>
    unkey.keys.migrateKeys({ migrationId: "some", apiId: "api_never", keys: [{ hash: sha256("a") }] }),
  ),
  "keys.addPermissions": absent((unkey) => unkey.keys.addPermissions({ keyId: "key_never", permissions: ["a.b"] })),
  "keys.removePermissions": absent((unkey) =>
    unkey.keys.removePermissions({ keyId: "key_never", permissions: ["a.b"] }),
  ),
  "keys.setPermissions": absent((unkey) => unkey.keys.setPermissions({ keyId: "key_never", permissions: [] })),
  "keys.addRoles": absent((unkey) => unkey.keys.addRoles({ keyId: "key_never", roles: ["reader"] })),
  "keys.removeRoles": absent((unkey) => unkey.keys.removeRoles({ keyId: "key_never", roles: ["reader"] })),
  "keys.setRoles": absent((unkey) => unkey.keys.setRoles({ keyId: "key_never", roles: [] })),
  "identities.createIdentity": {
    409: async () => {
      const externalId = await newIdentity();
      return (unkey) => unkey.identities.createIdentity({ externalId });
    },
  },
  "identities.getIdentity": absent((unkey) => unkey.identities.getIdentity({ identity: "never" })),
  "identities.updateIdentity": absent((unkey) => unkey.identities.updateIdentity({ identity: "never" })),
  "identities.deleteIdentity": absent((unkey) => unkey.identities.deleteIdentity({ identity: "never" })),
  "permissions.createPermission": {
    409: async () => {
      const slug = await newPermission();
      return (unkey) => unkey.permissions.createPermission({ name: "again", slug });
    },
  },
  "permissions.createRole": {
    409: async () => {
      const { role: name } = await newRole();
      return (unkey) => unkey.permissions.createRole({ name });
    },
  },
  "permissions.getPermission": absent((unkey) => unkey.permissions.getPermission({ permission: "never" })),
  "permissions.deletePermission": absent((unkey) => unkey.permissions.deletePermission({ permission: "never" })),
  "permissions.getRole": absent((unkey) => unkey.permissions.getRole({ role: "never" })),
  "permissions.deleteRole": absent((unkey) => unkey.permissions.deleteRole({ role: "never" })),
  "permissions.setRolePermissions": absent((unkey) =>
    unkey.permissions.setRolePermissions({ roleId: "role_never", permissions: [] }),
  ),
  "ratelimit.setOverride": absent((unkey) =>
    unkey.ratelimit.setOverride({ namespace: "never", identifier: "a", limit: 1, duration: 1_000 }),
  ),
  "ratelimit.getOverride": absent((unkey) => unkey.ratelimit.getOverride({ namespace: "never", identifier: "a" })),
  "ratelimit.listOverrides": absent((unkey) => unkey.ratelimit.listOverrides({ namespace: "never" })),
  "ratelimit.deleteOverride": absent((unkey) =>
    unkey.ratelimit.deleteOverride({ namespace: "never", identifier: "a" }),
  ),
};

/** Errors that the client declares and this service never returns, by operation: status and reason. */
const neverAnswered: Record<string, Record<number, string>> = {
  "keys.verifyKey": { 404: "a missing key is an answer with status 200" },
  "ratelimit.limit": {
    404: "the first use creates a namespace",
    410: "the next use creates a deleted namespace again",
  },
  "ratelimit.multiLimit": {
    404: "the first use creates a namespace",
    410: "the next use creates a deleted namespace again",
  },
  "permissions.listRoles": { 404: "an empty list has status 200" },
};

/** Operations of the client that this service does not have, by the prefix of their names. */
const notHere: Record<string, string> = {
  "analytics.": "this service has one operation per statistic, not SQL",
  "apps.": "hosting of applications",
  "deploy.": "hosting of applications",
  "deployments.": "hosting of applications",
  "domains.": "hosting of applications",
  "environments.": "hosting of applications",
  "gateway.": "hosting of applications",
  "github.": "hosting of applications",
  "internal.": "hosting of applications",
  "portal.": "pages for end users that the reference hosts",
  "projects.": "hosting of applications",
};

/** Operations of the client that have the same name here and are others. */
const different: Record<string, string> = {
  "portal.createSession": "the reference configures its portals in its dashboard, and a session here has what it needs",
};

function absent(call: Call): Partial<Record<number, Prepare>> {
  return { 404: async () => call };
}

/** Every operation that the client declares: its name, and the error class of each status. */
const declared = readDeclarations();

function readDeclarations(): Map<string, Map<number, string>> {
  const folder = new URL("funcs/", import.meta.resolve("@unkey/api"));
  const found = new Map<string, Map<number, string>>();
  for (const file of readdirSync(fileURLToPath(folder)).filter((name) => name.endsWith(".js"))) {
    const text = readFileSync(new URL(file, folder), "utf8");
    const name = /pathToFunc\("\/v2\/([\w.]+)"\)/.exec(text)?.[1];
    assert(name, `${file} does not name an operation.`);
    const classes = new Map<number, string>();
    for (const [, statuses, className] of text.matchAll(
      /M\.jsonErr\((\[[^\]]*\]|\d+), errors\.(\w+)\$inboundSchema/g,
    )) {
      for (const status of statuses!.match(/\d+/g)!) classes.set(Number(status), className!);
    }
    found.set(name, classes);
  }
  return found;
}

/**
 * Asserts that a call fails with this status, as the class that the client declares for it, else as its generic class.
 */
async function assertRejected(name: string, status: number, call: Promise<unknown>): Promise<void> {
  const className = declared.get(name)!.get(status) ?? "APIError";
  const error = await call.then(
    () => assert.fail(`${name} succeeded instead of failing with ${status}`),
    (thrown: { name: string; statusCode: number }) => thrown,
  );
  const at = `${name}, ${status}: ${error}`;
  assert.equal(error.name, className, at);
  assert(error instanceof (errors as unknown as Record<string, new () => unknown>)[className]!, at);
  assert.equal(error.statusCode, status, at);
  if (className === "APIError") return;
  const typed = error as errors.BadRequestErrorResponse;
  assert.match(typed.meta.requestId, /^req_/, at);
  assert.equal(typed.error.status, status, at);
  assert(typed.error.title && typed.error.detail && typed.error.type, at);
  if (status === 400) assert(Array.isArray(typed.error.errors), at);
}

describe("the TypeScript client of the reference", () => {
  before(async () => {
    await server.open();
    const { port } = await server.service.listen();
    serverURL = `http://127.0.0.1:${port}`;
  });
  after(() => server.close());

  it("has only operations that this test calls or lists as missing here", () => {
    const ours = new Set(operations.flatMap(namesOf));
    const others = [...declared.keys()].filter((name) => !(name in calls));
    for (const name of others) {
      assert(
        Object.keys(notHere).some((prefix) => name.startsWith(prefix)),
        `Call ${name}, or give the reason in notHere.`,
      );
      assert(!ours.has(name) || name in different, `${name} exists here: call it.`);
    }
    for (const name of Object.keys(calls)) assert(declared.has(name) && ours.has(name), name);
  });

  it("declares only errors that this test provokes or lists as impossible here", () => {
    const common = [400, 401, 403, 429, 500];
    for (const name of Object.keys(calls)) {
      for (const status of declared.get(name)!.keys()) {
        const isKnown = common.includes(status) || rejections[name]?.[status] || neverAnswered[name]?.[status];
        assert(isKnown, `${name} declares ${status}: provoke it, or give the reason in neverAnswered.`);
      }
    }
  });

  for (const [name, prepare] of Object.entries(calls)) {
    describe(name, () => {
      it("succeeds", async () => {
        const call = await prepare();
        // A page of a list, or an envelope.
        const answer = await call(clientOf(server.rootKey));
        if (Array.isArray(answer)) assert(answer.length > 0);
        else assert.match((answer as { meta: { requestId: string } }).meta.requestId, /^req_/);
      });

      it("maps the problems that all operations share", async () => {
        const [disabled, limited] = [await disabledRootKey(), await limitedRootKey()];
        const call = await prepare();
        await assertRejected(name, 400, call(clientOf(" ")));
        await assertRejected(name, 401, call(clientOf("lk_root_neverissued")));
        await assertRejected(name, 403, call(clientOf(disabled)));
        await assertRejected(name, 429, call(clientOf(limited)));
      });

      it("maps failures of the service", async () => {
        for (const [status, failure] of [
          [500, new Error("a bug")],
          [503, new StoreUnavailable("the database is away")],
        ] as const) {
          const call = await prepare();
          server.store.interception = async (asked, proceed) => {
            if (asked === "rootKeysByHashes" || asked === "readChanges") return proceed();
            throw failure;
          };
          try {
            await assertRejected(name, status, call(clientOf(server.rootKey)));
          } finally {
            server.store.interception = undefined;
          }
        }
      });

      for (const [status, prepareRejection] of Object.entries(rejections[name] ?? {})) {
        it(`maps a failure with ${status}`, async () => {
          const call = await prepareRejection!();
          await assertRejected(name, Number(status), call(clientOf(server.rootKey)));
        });
      }
    });
  }

  it("maps a missing permission", async () => {
    const { key } = await server.grant("identities.*.read_identity");
    await assertRejected("apis.createApi", 403, clientOf(key).apis.createApi({ name: "payments" }));
  });

  it("parses every code of a verification, also in an answer without other properties", async () => {
    const unkey = clientOf(server.rootKey);
    const apiId = await server.createApi();
    const codeOf = async (key: string, more: object = {}) => (await unkey.keys.verifyKey({ key, ...more })).data.code;
    const keyWith = async (more: object) => (await server.createKey(apiId, more)).key;
    assert.equal(await codeOf("never"), "NOT_FOUND");
    assert.equal(await codeOf(await keyWith({ enabled: false })), "DISABLED");
    assert.equal(await codeOf(await keyWith({ expires: 0 })), "EXPIRED");
    assert.equal(await codeOf(await keyWith({}), { permissions: "admin" }), "INSUFFICIENT_PERMISSIONS");
    assert.equal(await codeOf(await keyWith({ credits: { remaining: 0 } })), "USAGE_EXCEEDED");
    const limited = await keyWith({ ratelimits: [{ name: "one", limit: 1, duration: 60_000, autoApply: true }] });
    assert.deepEqual([await codeOf(limited), await codeOf(limited)], ["VALID", "RATE_LIMITED"]);
    await server.ok("apis.updateApi", { apiId, allowedIps: ["203.0.113.0/24"] });
    assert.equal(await codeOf(await keyWith({})), "FORBIDDEN");
  });

  it("parses a key without a start, and unlimited credits", async () => {
    const unkey = clientOf(server.rootKey);
    const apiId = await server.createApi();
    const { migrated } = await server.ok("keys.migrateKeys", {
      migrationId: "plain",
      apiId,
      keys: [{ hash: sha256(unique("plain")) }],
    });
    const { data } = await unkey.keys.getKey({ keyId: migrated[0].keyId });
    assert.deepEqual([data.start, data.enabled], ["", true]);
    const credits = await unkey.keys.updateCredits({ keyId: data.keyId, operation: "set", value: null });
    assert.equal(credits.data.remaining, null);
  });

  async function disabledRootKey(): Promise<string> {
    const { rootKeyId, key } = await server.ok("rootKeys.createRootKey", { name: "disabled", permissions: ["*"] });
    await server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: false });
    return key;
  }

  async function limitedRootKey(): Promise<string> {
    return (await server.ok("workspaces.createWorkspace", { name: "limited", requestsPerMinute: 0 })).key;
  }
});
