/**
 * What another workspace owns does not exist: each operation is called with a name of something that is
 * another workspace's, and with one of nothing, in each place where it takes a name. Nothing of the other workspace is
 * seen or changed, and the two calls agree: in status and body, and in what the store had to do for them.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import type { KyselyPlugin, PluginTransformQueryArgs } from "kysely";
import { operations } from "../src/operations/index.ts";
import { alphanumeric } from "../src/random/random.ts";
import { seededRandom } from "../src/random/seeded.ts";
import { namesOf } from "../src/rpc/operation.ts";
import { writeCursor } from "../src/rules/cursor.ts";
import { formatKey } from "../src/rules/key-string.ts";
import type { Procedure } from "../src/store/store.ts";
import { type StoreKind, stores, TestServer } from "./harness.ts";

/** What a workspace has, by kind: ids, and the names that its owner gave. No name occurs in two workspaces. */
interface Things {
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
  workspaceId: string;
  migrationId: string;
  hash: string;
  importedKey: string;
}

type Kind = keyof Things;

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const counted = (namespace: string, identifier: string) => ({ namespace, identifier, limit: 100, duration: 60_000 });
/** An hour of the past. */
const hour = { start: 1_768_474_800_000, end: 1_768_478_400_000 };

/** A cursor that leads to a thing, whoever owns it. */
const cursorAt = (list: string, id: string) => writeCursor(list, { at: 0, id });

/**
 * Bodies of each operation, with every name in them that it takes. What is of no interest here is left out; an operation
 * that takes no names is called with what it needs.
 */
const bodies: Record<string, (things: Things) => object[]> = {
  "apis.createApi": () => [{ name: "payments" }],
  "apis.deleteApi": ({ apiId }) => [{ apiId }],
  "apis.getApi": ({ apiId }) => [{ apiId }],
  "apis.listApis": ({ apiId }) => [{}, { cursor: cursorAt("apis.listApis", apiId) }, { search: apiId }],
  "apis.listKeys": ({ apiId, keyId, externalId }) => [
    { apiId, externalId },
    { apiId, cursor: cursorAt("apis.listKeys", keyId) },
  ],
  "apis.updateApi": ({ apiId }) => [{ apiId, name: "taken over", prefix: "mine" }],

  "keys.addPermissions": ({ keyId, slug }) => [{ keyId, permissions: [slug] }],
  "keys.addRoles": ({ keyId, role }) => [{ keyId, roles: [role] }],
  "keys.createKey": ({ apiId, externalId, role, slug }) => [
    { apiId, externalId, permissions: [slug] },
    { apiId, roles: [role] },
  ],
  "keys.deleteKey": ({ keyId }) => [{ keyId }, { keyId, permanent: true }],
  "keys.getKey": ({ keyId }) => [{ keyId }, { keyId, decrypt: true }],
  "keys.migrateKeys": ({ apiId, externalId, role, slug, migrationId, hash }) => [
    { migrationId, apiId, keys: [{ hash, externalId, roles: [role], permissions: [slug] }] },
  ],
  "keys.removePermissions": ({ keyId, slug }) => [{ keyId, permissions: [slug] }],
  "keys.removeRoles": ({ keyId, role }) => [{ keyId, roles: [role] }],
  "keys.rerollKey": ({ keyId }) => [{ keyId, expiration: 0 }],
  "keys.setPermissions": ({ keyId, slug }) => [{ keyId, permissions: [slug] }],
  "keys.setRoles": ({ keyId, role }) => [{ keyId, roles: [role] }],
  "keys.updateCredits": ({ keyId }) => [{ keyId, operation: "set", value: 5 }],
  "keys.updateKey": ({ keyId, externalId, role, slug }) => [
    { keyId, externalId, permissions: [slug] },
    { keyId, roles: [role] },
  ],
  "keys.verifyKey": ({ key, importedKey, apiId, migrationId, slug }) => [
    { key, apiId, permissions: slug },
    { key: importedKey },
    { key, migrationId },
  ],
  "keys.whoami": ({ key, importedKey }) => [{ key }, { key: importedKey }],

  "identities.createIdentity": ({ externalId }) => [{ externalId }],
  "identities.deleteIdentity": ({ identityId, externalId }) => [{ identity: identityId }, { identity: externalId }],
  "identities.getIdentity": ({ identityId, externalId }) => [{ identity: identityId }, { identity: externalId }],
  "identities.listIdentities": ({ identityId, externalId }) => [
    { cursor: cursorAt("identities.listIdentities", identityId) },
    { search: externalId },
    { search: identityId },
  ],
  "identities.updateIdentity": ({ identityId, externalId }) =>
    [identityId, externalId].map((identity) => ({ identity, meta: { taken: "over" } })),

  "permissions.createPermission": ({ slug }) => [{ name: "Read", slug }],
  "permissions.createRole": ({ role, slug }) => [{ name: role, permissions: [slug] }],
  "permissions.deletePermission": ({ permissionId, slug }) => [{ permission: permissionId }, { permission: slug }],
  "permissions.deleteRole": ({ roleId, role }) => [{ role: roleId }, { role }],
  "permissions.getPermission": ({ permissionId, slug }) => [{ permission: permissionId }, { permission: slug }],
  "permissions.getRole": ({ roleId, role }) => [{ role: roleId }, { role }],
  "permissions.listPermissions": ({ permissionId, slug }) => [
    { cursor: cursorAt("permissions.listPermissions", permissionId) },
    { search: slug },
  ],
  "permissions.listRoles": ({ roleId, role }) => [
    { cursor: cursorAt("permissions.listRoles", roleId) },
    { search: role },
  ],
  "permissions.setRolePermissions": ({ roleId, role, slug }) => [
    { roleId, permissions: [slug] },
    { role, permissions: [slug] },
  ],
  "permissions.updatePermission": ({ permissionId, slug }) => [
    { permission: permissionId, name: "taken over" },
    { permission: slug, slug: "taken.over" },
  ],
  "permissions.updateRole": ({ roleId, role }) => [
    { role: roleId, name: "taken over" },
    { role, description: "taken over" },
  ],

  "ratelimits.limit": ({ namespace, namespaceId, identifier }) => [
    counted(namespace, identifier),
    counted(namespaceId, identifier),
  ],
  "ratelimits.multiLimit": ({ namespace, namespaceId, identifier }) => [
    [counted(namespace, identifier), counted(namespaceId, identifier)],
  ],
  "ratelimits.deleteNamespace": ({ namespace, namespaceId }) => [{ namespace }, { namespace: namespaceId }],
  "ratelimits.deleteOverride": ({ namespace, namespaceId, identifier }) => [
    { namespace, identifier },
    { namespace: namespaceId, identifier },
  ],
  "ratelimits.getOverride": ({ namespace, namespaceId, identifier }) => [
    { namespace, identifier },
    { namespace: namespaceId, identifier },
  ],
  "ratelimits.listNamespaces": ({ namespaceId, namespace }) => [
    { cursor: cursorAt("ratelimits.listNamespaces", namespaceId) },
    { search: namespace },
  ],
  "ratelimits.listOverrides": ({ namespace, namespaceId, overrideId }) => [
    { namespace, cursor: cursorAt("ratelimits.listOverrides", overrideId) },
    { namespace: namespaceId },
  ],
  "ratelimits.setOverride": ({ namespace, namespaceId, identifier }) =>
    [namespace, namespaceId].map((name) => ({ namespace: name, identifier, limit: 1, duration: 1_000 })),

  "rootKeys.createRootKey": ({ apiId }) => [{ name: "grasping", permissions: [`apis.${apiId}.read_key`] }],
  "rootKeys.deleteRootKey": ({ rootKeyId }) => [{ rootKeyId }],
  "rootKeys.listRootKeys": ({ rootKeyId }) => [
    { cursor: cursorAt("rootKeys.listRootKeys", rootKeyId) },
    { search: rootKeyId },
  ],
  "rootKeys.rerollRootKey": ({ rootKeyId }) => [{ rootKeyId, expiration: 0 }],
  "rootKeys.updateRootKey": ({ rootKeyId }) => [{ rootKeyId, enabled: false }],

  "workspaces.createWorkspace": () => [{ name: "another" }],
  "workspaces.listWorkspaces": ({ workspaceId }) => [
    { cursor: cursorAt("workspaces.listWorkspaces", workspaceId) },
    { search: workspaceId },
  ],
  "workspaces.updateWorkspace": ({ workspaceId }) => [{ workspaceId, enabled: false }],

  "audit.listEvents": ({ keyId, rootKeyId }) => [{ target: keyId }, { actor: rootKeyId }],

  "analytics.getApiStats": ({ apiId }) => [{ apiId, ...hour }],
  "analytics.getIdentityStats": ({ externalId, identityId }) => [
    { identity: externalId, ...hour },
    { identity: identityId, ...hour },
  ],
  "analytics.getKeyStats": ({ keyId }) => [{ keyId, ...hour }],
  "analytics.getRatelimitStats": ({ namespace, namespaceId }) => [
    { namespace, ...hour },
    { namespace: namespaceId, ...hour },
  ],
};

/** Fills a workspace with one of each. `mark` tells its names from another's. */
async function furnish(server: TestServer, as: string, workspaceId: string, mark: string): Promise<Things> {
  const ok = (name: string, body: unknown) => server.ok(name, body, { as });
  const { apiId } = await ok("apis.createApi", { name: `${mark} payments` });
  const [externalId, slug, role] = [`${mark}_user`, `${mark}.documents.read`, `${mark} editor`];
  const limit = { name: "requests", limit: 100, duration: 60_000, autoApply: true };
  const { identityId } = await ok("identities.createIdentity", {
    ...{ externalId, meta: { secret: `${mark} meta` }, ratelimits: [limit] },
  });
  const { permissionId } = await ok("permissions.createPermission", { name: `${mark} read`, slug });
  const { roleId } = await ok("permissions.createRole", { name: role, permissions: [slug] });
  const { keyId, key } = await ok("keys.createKey", {
    ...{ apiId, externalId, name: `${mark} key`, roles: [role], recoverable: true, meta: { secret: `${mark} meta` } },
  });
  const [namespace, identifier] = [`${mark} emails`, `${mark}*`];
  await ok("ratelimits.limit", counted(namespace, identifier));
  const { overrideId } = await ok("ratelimits.setOverride", { namespace, identifier, limit: 5, duration: 1_000 });
  const listed = await ok("ratelimits.listNamespaces", { search: namespace });
  const { rootKeyId } = await ok("rootKeys.createRootKey", { name: `${mark} program`, permissions: ["*"] });
  const [migrationId, importedKey] = [`${mark} migration`, `sk_${mark}_imported_key_string`];
  const hash = sha256(importedKey);
  await ok("keys.migrateKeys", { migrationId, apiId, keys: [{ hash }] });
  return {
    ...{ apiId, keyId, key, identityId, externalId, permissionId, slug, roleId, role, namespace, identifier },
    ...{ namespaceId: listed[0].id, overrideId, rootKeyId, workspaceId, migrationId, hash, importedKey },
  };
}

/** Names of nothing, each as like the one of something as can be: a neighbour of it in every list. */
function nothing(like: Things, seed: number): Things {
  const random = seededRandom(seed);
  const beside = (text: string) => `${text.slice(0, -2)}${alphanumeric(random, 2)}`;
  const names = Object.entries(like).map(([kind, name]) => [kind, beside(name)]);
  return {
    ...(Object.fromEntries(names) as Record<keyof Things, string>),
    key: formatKey(
      null,
      Uint8Array.from({ length: 16 }, () => random.below(256)),
    ).key,
    hash: sha256(String(seed)),
    // What was given as a pattern is one.
    identifier: `${beside(like.identifier)}*`,
  };
}

describe("two workspaces", () => {
  it("are told of every operation here", () => {
    assert.deepEqual(Object.keys(bodies).sort(), operations.map(({ name }) => name).sort());
  });
});

for (const store of stores) {
  describe(`two workspaces on ${store}`, () => tell(store));
}

function tell(store: StoreKind): void {
  /** What the database was asked since it was last forgotten: procedures, and on SQLite their statements. */
  let work: string[] = [];
  const watch = (name: string, procedure: Procedure): Procedure => {
    return (sql, argument, ask) => {
      const statement = ({ node }: PluginTransformQueryArgs) => {
        work.push(`${name}: ${node.kind}`);
        return node;
      };
      const plugin: KyselyPlugin = { transformQuery: statement, transformResult: async ({ result }) => result };
      return procedure({ ...sql, db: sql.db.withPlugin(plugin) }, argument, ask);
    };
  };
  const server = new TestServer({
    store,
    settings: { VAULT_KEY: randomBytes(32).toString("base64") },
    ...(store === "sqlite" && { watch }),
  });
  let theirs: Things;
  let seed = 0;

  before(async () => {
    await server.open();
    const { workspaceId, key } = await server.workspace("theirs");
    theirs = await furnish(server, key, workspaceId, "theirs");
    server.store.interception = (name, proceed) => {
      if (name !== "readChanges") work.push(name);
      return proceed();
    };
  });
  after(() => server.close());

  /**
   * The reply to a body, and the work that it made; without what differs from call to call, and without the names that
   * were given, which may be told back.
   */
  async function observe(
    name: string,
    bodyOf: (things: Things) => object,
    kinds: readonly Kind[],
    others: Things,
    { as, mine }: { as: string; mine: Things },
  ) {
    const given = Object.fromEntries(kinds.map((kind) => [kind, others[kind]]));
    work = [];
    const { status, body } = await server.call(name, bodyOf({ ...mine, ...given }), { as });
    const told = JSON.stringify(body.data ?? body.error);
    let text = told;
    for (const word of Object.values(given)) text = text.replaceAll(JSON.stringify(word).slice(1, -1), "<name>");
    text = text
      .replaceAll(/\b[a-z]+_[0-9A-Za-z]{16}\b/g, "<id>")
      .replaceAll(/"(key|start|plaintext)":"[^"]*"/g, '"$1":"…"');
    return { reply: { status, text, work: [...work] }, told, given: new Set<string>(Object.values(given)) };
  }

  async function ownWorkspace() {
    // Through the service, which knows of its own changes at once.
    const { workspaceId, key: as } = await server.ok("workspaces.createWorkspace", { name: "mine" });
    const mine = await furnish(server, as, workspaceId, "mine");
    // The first call of all reads the root key and the workspace.
    await server.verify("never", {}, { as });
    return { as, mine };
  }

  /** What the other workspace has, as rows. */
  async function theirRows() {
    const rows = await server.rows();
    const own = ([table, list]: [string, unknown[]]) =>
      [table, list.filter((row) => String(row).includes(theirs.workspaceId))] as const;
    return Object.fromEntries(Object.entries(rows).map(own));
  }

  for (const operation of operations) {
    it(`know nothing of each other in ${operation.name}`, async () => {
      const unchanged = await theirRows();
      const bodiesOf = bodies[operation.name]!;
      for (let i = 0; i < bodiesOf(theirs).length; i++) {
        const bodyOf = (things: Things) => bodiesOf(things)[i]!;
        const named = (Object.keys(theirs) as Kind[]).filter(
          (kind) => JSON.stringify(bodyOf({ ...theirs, [kind]: "…" })) !== JSON.stringify(bodyOf(theirs)),
        );
        // Every name for itself, the others being one's own; and all of them together, which will do for the second store.
        const single = store === "sqlite" && named.length > 1 ? named.map((kind) => [kind]) : [];
        for (const kinds of [...single, named]) {
          const first = await ownWorkspace();
          const foreign = await observe(operation.name, bodyOf, kinds, theirs, first);
          // A change is made in another workspace just like the first; a list has places, which its ids decide.
          const second = operation.kind === "query" ? first : await ownWorkspace();
          const missing = await observe(operation.name, bodyOf, kinds, nothing(theirs, ++seed), second);
          const at = `${operation.name} with ${kinds.join(", ")} of the other workspace`;
          assert.deepEqual(foreign.reply, missing.reply, at);
          for (const [kind, name] of Object.entries(theirs)) {
            const isTold = !foreign.given.has(name) && foreign.told.includes(name);
            assert(!isTold, `${at} told ${kind} ${name}: ${foreign.told}`);
          }
        }
        for (const alias of namesOf(operation).slice(1)) {
          await server.call(alias, bodyOf(theirs), { as: (await server.workspace("mine")).key });
        }
      }
      assert.deepEqual(await theirRows(), unchanged, `${operation.name} changed something of the other workspace`);
    });
  }
}
