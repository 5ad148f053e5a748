/**
 * What another workspace owns does not exist (contract A4): each operation is called with a name of something that is
 * another workspace's, and with one of nothing, in each place where it takes a name. Nothing of the other workspace is
 * seen or changed, and the two calls agree: in status and body, and in what the store had to do for them.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { operations } from "../src/operations/index.ts";
import { newId } from "../src/random/random.ts";
import { seededRandom } from "../src/random/seeded.ts";
import { namesOf } from "../src/rpc/operation.ts";
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

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const counted = (namespace: string, identifier: string) => ({ namespace, identifier, limit: 100, duration: 60_000 });

/**
 * Bodies of each operation, with every name in them that it takes. What is of no interest here is left out; an operation
 * that takes no names is called with what it needs.
 */
const bodies: Record<string, (things: Things) => object[]> = {
  "apis.createApi": () => [{ name: "payments" }],
  "apis.deleteApi": ({ apiId }) => [{ apiId }],
  "apis.getApi": ({ apiId }) => [{ apiId }],
  "apis.listApis": ({ apiId }) => [{}, { cursor: apiId }, { search: apiId }],
  "apis.listKeys": ({ apiId, keyId, externalId }) => [
    { apiId, externalId },
    { apiId, cursor: keyId },
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
    { cursor: identityId },
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
  "permissions.listPermissions": ({ permissionId, slug }) => [{ cursor: permissionId }, { search: slug }],
  "permissions.listRoles": ({ roleId, role }) => [{ cursor: roleId }, { search: role }],
  "permissions.setRolePermissions": ({ roleId, slug }) => [{ roleId, permissions: [slug] }],

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
  "ratelimits.listNamespaces": ({ namespaceId, namespace }) => [{ cursor: namespaceId }, { search: namespace }],
  "ratelimits.listOverrides": ({ namespace, namespaceId, overrideId }) => [
    { namespace, cursor: overrideId },
    { namespace: namespaceId },
  ],
  "ratelimits.setOverride": ({ namespace, namespaceId, identifier }) =>
    [namespace, namespaceId].map((name) => ({ namespace: name, identifier, limit: 1, duration: 1_000 })),

  "rootKeys.createRootKey": ({ apiId }) => [{ name: "grasping", permissions: [`apis.${apiId}.read_key`] }],
  "rootKeys.deleteRootKey": ({ rootKeyId }) => [{ rootKeyId }],
  "rootKeys.listRootKeys": ({ rootKeyId }) => [{ cursor: rootKeyId }, { search: rootKeyId }],
  "rootKeys.rerollRootKey": ({ rootKeyId }) => [{ rootKeyId, expiration: 0 }],
  "rootKeys.updateRootKey": ({ rootKeyId }) => [{ rootKeyId, enabled: false }],

  "workspaces.createWorkspace": () => [{ name: "another" }],
  "workspaces.listWorkspaces": ({ workspaceId }) => [{ cursor: workspaceId }, { search: workspaceId }],
  "workspaces.updateWorkspace": ({ workspaceId }) => [{ workspaceId, enabled: false }],

  "audit.listEvents": ({ keyId, rootKeyId }) => [{ target: keyId }, { actor: rootKeyId }],
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

/** Names of nothing, each as like one of something as can be. */
function nothing(seed: number): Things {
  const random = seededRandom(seed);
  const id = (prefix: Parameters<typeof newId>[1]) => newId(random, prefix);
  const word = () => `x${random.below(2 ** 32)}`;
  return {
    ...{ apiId: id("api"), keyId: id("key"), identityId: id("id"), permissionId: id("perm"), roleId: id("role") },
    ...{ namespaceId: id("rlns"), overrideId: id("rlor"), rootKeyId: id("rk"), workspaceId: id("ws") },
    key: formatKey(
      null,
      Uint8Array.from({ length: 16 }, () => random.below(256)),
    ).key,
    ...{
      externalId: word(),
      slug: `${word()}.documents.read`,
      role: `${word()} editor`,
      namespace: `${word()} emails`,
    },
    ...{ identifier: `${word()}*`, migrationId: `${word()} migration`, hash: sha256(word()) },
    importedKey: `sk_${word()}_imported_key_string`,
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
      const statement = ({ node }: { node: { kind: string } }) => {
        work.push(`${name}: ${node.kind}`);
        return node as never;
      };
      const plugin = { transformQuery: statement, transformResult: async ({ result }: { result: never }) => result };
      return procedure({ ...sql, db: sql.db.withPlugin(plugin) }, argument, ask);
    };
  };
  const server = new TestServer({ store, ...(store === "sqlite" && { watch }) });
  let as: string;
  let mine: Things;
  let theirs: Things;
  let seed = 0;

  before(async () => {
    await server.open();
    const workspace = await server.workspace("mine");
    as = workspace.key;
    mine = await furnish(server, as, workspace.workspaceId, "mine");
    theirs = await furnish(server, server.rootKey, server.workspaceId, "theirs");
    server.store.interception = (name, proceed) => {
      if (name !== "readChanges") work.push(name);
      return proceed();
    };
  });
  after(() => server.close());

  /** The reply to a body, and the work that it made, without what differs from call to call and without `given`. */
  async function observe(name: string, body: object, given: readonly string[]) {
    work = [];
    const { status, body: reply } = await server.call(name, body, { as });
    // A name is longer or shorter than another, and told back.
    let text = JSON.stringify(reply.data ?? reply.error);
    for (const word of given) text = text.replaceAll(JSON.stringify(word).slice(1, -1), "<name>");
    text = text.replaceAll(/\b[a-z]+_[0-9A-Za-z]{16}\b/g, "<id>");
    const { key } = (reply.data ?? {}) as { key?: string };
    return { status, text: key === undefined ? text : text.replace(key, "<key>"), work };
  }

  /** What the other workspace has, as rows; what it has counted and what was looked up does not belong to it. */
  async function theirRows() {
    const rows = await server.rows();
    const own = ([table, list]: [string, unknown[]]) =>
      [table, list.filter((row) => String(row).includes(server.workspaceId))] as const;
    return Object.fromEntries(Object.entries(rows).map(own));
  }

  for (const operation of operations) {
    it(`know nothing of each other in ${operation.name}`, async () => {
      const unchanged = await theirRows();
      const cases = bodies[operation.name]!(mine).map(
        (_, i) => (things: Things) => bodies[operation.name]!(things)[i]!,
      );
      for (const bodyOf of cases) {
        // Every name for itself, the others being one's own, and all of them together.
        const named = (Object.keys(mine) as (keyof Things)[]).filter((kind) => {
          return JSON.stringify(bodyOf({ ...mine, [kind]: "…" })) !== JSON.stringify(bodyOf(mine));
        });
        const swaps = named.length > 1 ? [...named.map((kind) => [kind]), named] : [named];
        for (const kinds of swaps) {
          const swapped = (others: Things) => {
            const things = { ...mine, ...Object.fromEntries(kinds.map((kind) => [kind, others[kind]])) };
            return [bodyOf(things), kinds.map((kind) => others[kind])] as const;
          };
          // Whatever the first call of all would do once, such as reading a workspace.
          await observe(operation.name, ...swapped(nothing(++seed)));
          const foreign = await observe(operation.name, ...swapped(theirs));
          const missing = await observe(operation.name, ...swapped(nothing(++seed)));
          const at = `${operation.name} with ${kinds.join(", ")} of the other workspace`;
          assert.deepEqual(foreign, missing, at);
          for (const [kind, thing] of Object.entries(theirs)) {
            // The id of the one default workspace is part of no answer either.
            assert(!foreign.text.includes(thing), `${at} told ${kind} ${thing}: ${foreign.text}`);
          }
          assert(!foreign.text.includes("theirs"), `${at} told ${foreign.text}`);
        }
      }
      assert.deepEqual(await theirRows(), unchanged, `${operation.name} changed something of the other workspace`);
      for (const alias of namesOf(operation).slice(1)) {
        const [bodyOf] = cases;
        await server.call(alias, bodyOf!(theirs), { as });
      }
      assert.deepEqual(await theirRows(), unchanged);
    });
  }
}
