/**
 * Every operation refuses correctly: a loop over the list. An operation without a sample fails here, so that none is
 * forgotten.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { operations } from "../src/operations/index.ts";
import type { ProblemCode } from "../src/rpc/problems.ts";
import { describeOnStores, type Reply, type TestServer } from "./harness.ts";
import { type MistakeKind, nonsense } from "./nonsense.ts";

type Body = Record<string, unknown>;

interface Sample {
  /** A body that works for an administrator, about things that were made for this one call. */
  body(server: TestServer): Promise<Body>;
  /** The same body about things that never existed. Null where the operation asks for nothing that exists. */
  absent(body: Body): Body | null;
  /** What a root key hears that has every permission but this operation's. */
  unpermitted: ProblemCode | "NOT_FOUND";
}

const NEVER_API = "api_never0existed000";
const NEVER_KEY_ID = "key_never0existed000";
/** Of a key's form, with the right checksum; its random bytes are all zero. */
const neverSecret = (secret: string) => `${secret.slice(0, -1)}${secret.endsWith("1") ? "2" : "1"}`;

const ofApi = (unpermitted: ProblemCode, more: Body = {}): Sample => ({
  body: async (server) => ({ apiId: await server.createApi(), ...more }),
  absent: (body) => ({ ...body, apiId: NEVER_API }),
  unpermitted,
});

const ofKey = (unpermitted: ProblemCode, more: Body = {}): Sample => ({
  body: async (server) => ({ keyId: (await newKey(server)).keyId, ...more }),
  absent: (body) => ({ ...body, keyId: NEVER_KEY_ID }),
  unpermitted,
});

const ofSecret = (unpermitted: Sample["unpermitted"]): Sample => ({
  body: async (server) => ({ key: (await newKey(server)).key }),
  absent: (body) => ({ ...body, key: neverSecret(body.key as string) }),
  unpermitted,
});

const ofIdentity = (more: Body = {}): Sample => ({
  body: async (server) => {
    const externalId = unique("sweep");
    await server.ok("identities.createIdentity", { externalId });
    return { identity: externalId, ...more };
  },
  absent: (body) => ({ ...body, identity: "never0existed" }),
  unpermitted: "insufficient_permissions",
});

const counted = { namespace: "sweep", identifier: "a", limit: 1_000_000, duration: 60_000 };

/** A namespace with an override for "a". */
const ofNamespace = (unpermitted: ProblemCode, more: Body = {}): Sample => ({
  body: async (server) => {
    const namespace = unique("sweep");
    await server.ok("ratelimits.limit", { ...counted, namespace });
    await server.ok("ratelimits.setOverride", { namespace, identifier: "a", limit: 1, duration: 1_000 });
    return { namespace, ...more };
  },
  absent: (body) => ({ ...body, namespace: "never existed" }),
  unpermitted,
});

/** A permission that no key has. */
const ofPermission: Sample = {
  body: async (server) => {
    const permission = unique("sweep");
    await server.ok("permissions.createPermission", { name: "Sweeping", slug: permission });
    return { permission };
  },
  absent: () => ({ permission: "never.existed" }),
  unpermitted: "insufficient_permissions",
};

const ofRole: Sample = {
  body: async (server) => {
    const role = unique("sweep");
    await server.createRole(role, "sweep.read");
    return { role };
  },
  absent: () => ({ role: "never existed" }),
  unpermitted: "insufficient_permissions",
};

/** A key, and permissions that exist. */
const ofKeyWithPermissions: Sample = {
  body: async (server) => {
    const { keyId } = await server.createKey(await server.createApi(), { permissions: ["sweep.read"] });
    return { keyId, permissions: [((await ofPermission.body(server)) as { permission: string }).permission] };
  },
  absent: (body) => ({ ...body, keyId: NEVER_KEY_ID }),
  unpermitted: "insufficient_permissions",
};

/** A key, and roles that exist. */
const ofKeyWithRoles: Sample = {
  ...ofKeyWithPermissions,
  body: async (server) => {
    const role = unique("sweep");
    await server.createRole(role);
    return { keyId: (await newKey(server)).keyId, roles: [role] };
  },
};

const ofNothing = (body: () => Body): Sample => ({
  body: async () => body(),
  absent: () => null,
  unpermitted: "insufficient_permissions",
});

const ofRootKey = (more: Body = {}): Sample => ({
  body: async (server) => ({ rootKeyId: (await server.grant("apis.*.read_api")).rootKeyId, ...more }),
  absent: (body) => ({ ...body, rootKeyId: "rk_never0existed0000" }),
  unpermitted: "insufficient_permissions",
});

/** An hour of the past. */
const past = { start: 1_768_474_800_000, end: 1_768_478_400_000 };

let made = 0;
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const unique = (name: string) => `${name}_${++made}`;

const samples: Record<string, Sample> = {
  "apis.createApi": {
    body: async () => ({ name: "payments" }),
    absent: () => null,
    unpermitted: "insufficient_permissions",
  },
  "apis.getApi": ofApi("insufficient_permissions"),
  "apis.deleteApi": ofApi("insufficient_permissions"),
  "apis.listApis": ofNothing(() => ({ search: "pay" })),
  "apis.listKeys": ofApi("api_not_found"),
  "apis.updateApi": ofApi("insufficient_permissions", { prefix: "pay", byteLength: 32, allowedIps: ["10.0.0.0/8"] }),
  "keys.createKey": ofApi("api_not_found", { name: "production" }),
  "keys.getKey": ofKey("insufficient_permissions"),
  "keys.updateKey": ofKey("insufficient_permissions", { name: "staging" }),
  "keys.deleteKey": ofKey("insufficient_permissions"),
  "keys.updateCredits": ofKey("insufficient_permissions", { operation: "set", value: 5 }),
  "keys.rerollKey": ofKey("insufficient_permissions", { expiration: 0 }),
  "keys.migrateKeys": {
    body: async (server) => ({
      migrationId: "sweep",
      apiId: await server.createApi(),
      keys: [{ hash: sha256(unique("sweep")), permissions: ["sweep.read"] }],
    }),
    absent: (body) => ({ ...body, apiId: NEVER_API }),
    unpermitted: "insufficient_permissions",
  },
  "keys.addPermissions": ofKeyWithPermissions,
  "keys.removePermissions": ofKeyWithPermissions,
  "keys.setPermissions": ofKeyWithPermissions,
  "keys.addRoles": ofKeyWithRoles,
  "keys.removeRoles": ofKeyWithRoles,
  "keys.setRoles": ofKeyWithRoles,
  "keys.whoami": ofSecret("key_not_found"),
  "keys.verifyKey": ofSecret("NOT_FOUND"),
  "identities.createIdentity": {
    body: async () => ({ externalId: unique("sweep"), ratelimits: [{ name: "requests", limit: 5, duration: 1_000 }] }),
    absent: () => null,
    unpermitted: "insufficient_permissions",
  },
  "identities.getIdentity": ofIdentity(),
  "identities.listIdentities": {
    body: async (server) => ({ search: ((await ofIdentity().body(server)) as { identity: string }).identity }),
    absent: () => null,
    unpermitted: "insufficient_permissions",
  },
  "identities.updateIdentity": ofIdentity({ meta: { plan: "pro" } }),
  "identities.deleteIdentity": ofIdentity(),
  "permissions.createPermission": ofNothing(() => ({ name: "Sweeping", slug: unique("sweep"), description: "Clean" })),
  "permissions.getPermission": ofPermission,
  "permissions.listPermissions": ofNothing(() => ({})),
  "permissions.deletePermission": ofPermission,
  "permissions.createRole": ofNothing(() => ({ name: unique("sweep"), permissions: ["sweep.read"] })),
  "permissions.getRole": ofRole,
  "permissions.listRoles": ofNothing(() => ({})),
  "permissions.deleteRole": ofRole,
  "permissions.setRolePermissions": {
    body: async (server) => {
      const { roleId } = await server.ok("permissions.createRole", { name: unique("sweep") });
      return { role: roleId, permissions: ["sweep.read"] };
    },
    absent: (body) => ({ ...body, role: "role_never0existed00" }),
    unpermitted: "insufficient_permissions",
  },
  "permissions.updatePermission": {
    ...ofPermission,
    body: async (server) => ({ ...(await ofPermission.body(server)), name: "Swept", slug: unique("sweep") }),
    absent: (body) => ({ ...body, permission: "never.existed" }),
  },
  "permissions.updateRole": {
    ...ofRole,
    body: async (server) => ({ ...(await ofRole.body(server)), name: unique("swept"), description: "Swept" }),
    absent: (body) => ({ ...body, role: "never existed" }),
  },
  "analytics.getKeyStats": ofKey("insufficient_permissions", past),
  "analytics.getApiStats": ofApi("insufficient_permissions", past),
  "analytics.getIdentityStats": ofIdentity(past),
  "analytics.getRatelimitStats": ofNamespace("insufficient_permissions", past),
  "ratelimits.limit": {
    body: async () => counted,
    absent: () => null,
    unpermitted: "insufficient_permissions",
  },
  "ratelimits.multiLimit": {
    body: async () => [counted, { ...counted, cost: 2 }] as unknown as Body,
    absent: () => null,
    unpermitted: "insufficient_permissions",
  },
  "ratelimits.setOverride": ofNamespace("insufficient_permissions", { identifier: "b*", limit: 5, duration: 1_000 }),
  "ratelimits.getOverride": ofNamespace("override_not_found", { identifier: "a" }),
  "ratelimits.listOverrides": ofNamespace("insufficient_permissions"),
  "ratelimits.deleteOverride": ofNamespace("insufficient_permissions", { identifier: "a" }),
  "ratelimits.deleteNamespace": ofNamespace("insufficient_permissions"),
  "ratelimits.listNamespaces": {
    body: async () => ({}),
    absent: () => null,
    unpermitted: "insufficient_permissions",
  },
  "rootKeys.createRootKey": ofNothing(() => ({ name: "swept", permissions: ["apis.*.read_api"], expires: 4e12 })),
  "rootKeys.listRootKeys": ofNothing(() => ({})),
  "rootKeys.updateRootKey": ofRootKey({ name: "swept", permissions: ["apis.*.read_key"], enabled: false }),
  "rootKeys.deleteRootKey": ofRootKey(),
  "rootKeys.rerollRootKey": ofRootKey({ expiration: 60_000 }),
  "workspaces.createWorkspace": ofNothing(() => ({ name: "swept", requestsPerMinute: 100 })),
  "workspaces.listWorkspaces": ofNothing(() => ({})),
  // Whoever may manage workspaces may manage all of them; others are refused whatever they name.
  "workspaces.updateWorkspace": {
    body: async (server) => ({ workspaceId: (await server.workspace("swept")).workspaceId, requestsPerMinute: 100 }),
    absent: () => null,
    unpermitted: "insufficient_permissions",
  },
  "audit.listEvents": ofNothing(() => ({ action: "apis.createApi", limit: 1 })),
};

/** Grants for the actions of all operations but those that `name` may ask for. */
function otherGrants(name: string): string[] {
  const action = (permission: string) => permission.split(".")[2]!;
  const own = new Set(operations.find((operation) => operation.name === name)!.declaration.permissions.map(action));
  const all = new Set(operations.flatMap(({ declaration }) => declaration.permissions));
  return [...all]
    .filter((permission) => !own.has(action(permission)))
    .map((permission) => permission.replace(/\{\w+\}/, "*"));
}

async function newKey(server: TestServer): Promise<{ keyId: string; key: string }> {
  return server.createKey(await server.createApi());
}

/** The outcome of a reply in one word. */
const outcome = ({ problem, body }: Reply): string | undefined =>
  problem ?? (body.data?.valid === false ? body.data.code : undefined);

/** A body without what differs from one request to the next. */
const lasting = ({ body }: Reply) => ({ ...body, meta: undefined });

describe("the sweep", () => {
  it("has a sample of every operation", () => {
    assert.deepEqual(Object.keys(samples).sort(), operations.map(({ name }) => name).sort());
  });
});

/** Kinds of mistakes whose report was checked. */
const seenMistakes = new Set<MistakeKind>();

after(() => {
  const kinds: MistakeKind[] = ["missing", "type", "null", "unknown", "enum", "pattern", "length", "fraction", "range"];
  assert.deepEqual([...seenMistakes].sort(), [...kinds, "items", "duplicate", "seconds"].sort());
});

describeOnStores("every operation", (server) => {
  for (const operation of operations) {
    const { name } = operation;
    const sample = samples[name]!;

    describe(name, () => {
      it("works for an administrator", async () => {
        await server.ok(name, await sample.body(server));
      });

      it("asks who is calling", async () => {
        const body = await sample.body(server);
        const before = await server.rows();
        for (const headers of [{ authorization: undefined }, { authorization: "" }, { authorization: "  " }]) {
          if (operation.kind === "metered" && operation.anonymousCaller)
            await server.ok(name, body, { as: null, headers });
          else await server.refused(name, body, "authentication_missing", { as: null, headers });
        }
        for (const authorization of ["Basic dXNlcjpwYXNz", server.rootKey, "Bearer", "Bearer ", "bearer"]) {
          const error = await server.refused(name, body, "authentication_malformed", { headers: { authorization } });
          assert.match(error.detail, /valid root key.*Bearer/);
          assert.deepEqual(error.errors, []);
        }
        const ordinary = (await newKey(server)).key;
        const withKey = await server.rows();
        for (const as of ["lk_root_neverissued", ordinary, `${server.rootKey}x`, "x".repeat(600)]) {
          const error = await server.refused(name, body, "authentication_failed", { as });
          assert.equal(error.detail, "The provided root key is invalid. We could not find the requested key.");
        }
        assert.deepEqual(await server.rows(), withKey);
        assert.equal(before.keys!.length + 1, withKey.keys!.length);
      });

      it("trims the root key, and takes the scheme in any case", async () => {
        for (const authorization of [
          `Bearer   ${server.rootKey}  `,
          `bearer ${server.rootKey}`,
          `BEARER ${server.rootKey}`,
        ]) {
          await server.ok(name, await sample.body(server), { headers: { authorization } });
        }
      });

      it("takes whole numbers in any notation", async () => {
        const body = await sample.body(server);
        const raw = (notation: (digits: string) => string) =>
          JSON.stringify(body).replace(/([:,[])(\d+)(?=[,}\]])/g, (_, before, digits) => before + notation(digits));
        for (const notation of [(digits: string) => `${digits}.0`, (digits: string) => `${digits}e0`]) {
          const reply = await server.call(name, undefined, { raw: raw(notation) });
          assert.notEqual(reply.problem, "invalid_input", JSON.stringify(reply.body));
        }
      });

      it("refuses what parsing would change silently", async () => {
        const body = await sample.body(server);
        const before = await server.rows();
        const text = JSON.stringify(body);
        const [name1, value1] = Object.entries(Array.isArray(body) ? body[0] : body)[0] ?? [];
        const bytes = (at: string, byte: number) => {
          const [head, tail] = [text.slice(0, text.indexOf(at)), text.slice(text.indexOf(at) + at.length)];
          return Buffer.concat([Buffer.from(head), Buffer.from([byte]), Buffer.from(tail)]);
        };
        if (name1 !== undefined) {
          const member = `"${name1}":${JSON.stringify(value1)}`;
          for (const raw of [
            text.replace(member, `${member},${member}`),
            text.replace(member, `${member},"__proto__":{}`),
            text.replace(member, `${member},"\\u005f_proto__":{}`),
          ]) {
            const error = await server.refused(name, undefined, "invalid_input", { raw });
            assert(error.errors![0]!.fix, raw);
          }
          for (const byte of [0xff, 0xfe, 0xc0, 0x80]) {
            const raw = bytes(name1, byte);
            const error = await server.refused(name, undefined, "invalid_input", { raw });
            assert.deepEqual(error.errors![0]!.message, "the bytes are not UTF-8");
          }
        }
        assert.deepEqual(await server.rows(), before);
        await server.ok(name, body);
      });

      it("refuses a compressed body, and one in another charset", async () => {
        const body = await sample.body(server);
        const before = await server.rows();
        const compressed = gzipSync(JSON.stringify(body));
        for (const encoding of ["gzip", "br", "deflate", "gzip, identity", "GZIP"]) {
          for (const raw of [compressed, JSON.stringify(body)]) {
            const options = { raw, headers: { "content-encoding": encoding } };
            await server.refused(name, undefined, "unsupported_content_encoding", options);
          }
        }
        for (const charset of ["utf-16", "latin1", '"iso-8859-1"', "us-ascii"]) {
          const headers = { "content-type": `application/json; charset=${charset}` };
          const error = await server.refused(name, body, "invalid_input", { headers });
          assert.match(error.errors![0]!.fix!, /UTF-8/);
        }
        assert.deepEqual(await server.rows(), before);
        for (const charset of ["utf-8", "UTF-8", '"utf-8"', "utf8"]) {
          const headers = { "content-type": `application/json;charset=${charset}`, "content-encoding": "identity" };
          await server.ok(name, await sample.body(server), { headers });
        }
      });

      it("authenticates before it looks at the body", async () => {
        const options = { raw: "{ broken", as: "lk_root_neverissued" };
        await server.refused(name, undefined, "authentication_failed", options);
        await server.refused(name, undefined, "invalid_input", { raw: "{ broken" });
      });

      it("refuses a root key that is disabled or has expired", async () => {
        const disabled = await server.grant("*");
        const expiring = await server.grant("*");
        await server.ok(name, await sample.body(server), { as: disabled.key });
        await server.ok(name, await sample.body(server), { as: expiring.key });
        const body = await sample.body(server);
        const expires_at = server.clock.now() + 1_500;
        await server.change([disabled.rootKeyId, expiring.rootKeyId], async ({ db }) => {
          await db.updateTable("root_keys").set({ enabled: 0 }).where("id", "=", disabled.rootKeyId).execute();
          await db.updateTable("root_keys").set({ expires_at }).where("id", "=", expiring.rootKeyId).execute();
        });
        await server.refused(name, body, "root_key_disabled", { as: disabled.key });
        await server.pass(expires_at - server.clock.now() - 1);
        await server.ok(name, await sample.body(server), { as: expiring.key });
        await server.pass(1);
        await server.refused(name, body, "root_key_expired", { as: expiring.key });
      });

      it("refuses a root key of a disabled workspace", async () => {
        const { workspaceId, key: as } = await server.workspace("suspended");
        const body = await sample.body(server);
        await server.call(name, body, { as });
        const act = { now: server.clock.now(), actor: "cli", workspaceId };
        await server.store.transact("setWorkspaceEnabled", { ...act, enabled: false });
        await server.pass(500);
        await server.refused(name, body, "workspace_disabled", { as });
      });

      it("refuses a root key with every permission but the right one", async () => {
        const { key: as } = await server.grant(...otherGrants(name));
        const body = await sample.body(server);
        const before = await server.rows();
        const reply = await server.call(name, body, { as });
        assert.equal(outcome(reply), sample.unpermitted);
        if (reply.problem === "insufficient_permissions")
          assert.match(reply.body.error.detail, /^Missing (permission: '|one of these permissions: ')/);
        assert.deepEqual(await server.rows(), before);
        // It would have worked.
        await server.ok(name, body);
      });

      it("does not know what another workspace owns (rule 4)", async () => {
        const { key: as } = await server.workspace("stranger");
        const body = await sample.body(server);
        const absent = sample.absent(body);
        if (!absent) return;
        const before = await server.rows();
        const foreign = await server.call(name, body, { as });
        const never = await server.call(name, absent, { as });
        assert(outcome(foreign)?.toLowerCase().endsWith("not_found"), JSON.stringify(foreign.body));
        assert.deepEqual(lasting(foreign), lasting(never));
        assert.equal(foreign.status, never.status);
        assert.deepEqual(await server.rows(), before);
        await server.ok(name, body);
      });

      it("refuses nonsense in every field, says where, and changes nothing (rule 12)", async () => {
        const body = await sample.body(server);
        const mistakes = nonsense(operation.declaration.input, body);
        const before = await server.rows();
        for (const { what, kind, location, message, raw } of mistakes) {
          const reply = await server.call(name, undefined, { raw });
          const at = `${what}: ${JSON.stringify(reply.body)}, not ${location}: ${message}`;
          assert.equal(reply.problem, "invalid_input", at);
          const { errors } = reply.body.error as { errors: { location: string; message: string; fix?: string }[] };
          const reported = errors.find((error) => error.location === location && message.test(error.message));
          assert(reported?.fix, at);
          seenMistakes.add(kind);
        }
        assert.deepEqual(await server.rows(), before);
        await server.ok(name, body);
      });

      it("refuses what is no JSON object, or does not say that it is (rule 3)", async () => {
        const body = await sample.body(server);
        const before = await server.rows();
        for (const raw of ["", " ", "{", '{"a":1,}', "null", "[]", '"text"', "1", "\ufeff{}", "{}{}"]) {
          const error = await server.refused(name, undefined, "invalid_input", { raw });
          assert(error.errors!.length > 0, raw);
        }
        for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", undefined]) {
          const error = await server.refused(name, body, "invalid_input", { headers: { "content-type": type } });
          assert(error.errors!.length > 0, type);
        }
        assert.deepEqual(await server.rows(), before);
        await server.ok(name, body, { headers: { "content-type": "application/json; charset=utf-8" } });
      });

      it("refuses a body that is too large", async () => {
        const bytes = operation.kind === "metered" ? 64 * 1024 : 10_485_760;
        const body = await sample.body(server);
        const padded = (length: number) => JSON.stringify(body).padEnd(length);
        await server.refused(name, undefined, "request_body_too_large", { raw: padded(bytes + 1) });
        await server.ok(name, undefined, { raw: padded(bytes) });
      });

      it("answers to POST only", async () => {
        for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
          const reply = await server.request(method, `/v2/${name}`);
          assert.equal(reply.problem, "method_not_allowed");
          assert.equal(reply.headers.allow, "POST");
        }
      });
    });
  }
});
