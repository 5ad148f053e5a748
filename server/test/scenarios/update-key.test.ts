import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

/** Everything that updateKey can change, as input of createKey. */
const everything = {
  name: "before",
  externalId: "update_before",
  meta: { plan: "free", nested: { kept: true } },
  expires: 4_000_000_000_000,
  credits: { remaining: 7, refill: { interval: "daily", amount: 10 } },
  ratelimits: [
    { name: "requests", limit: 10, duration: 1_000, autoApply: true },
    { name: "tokens", limit: 20, duration: 2_000, autoApply: false },
  ],
  roles: ["update_reader"],
  permissions: ["update.direct"],
};

async function fullKey(server: TestServer) {
  return server.createKey(await server.createApi(), everything);
}

describeOnStores("keys.updateKey", (server) => {
  it("has roles to assign", async () => {
    await server.createRole("update_reader", "update.read");
    await server.createRole("update_writer", "update.write");
  });

  /** The members of the key's record that change in an update with `change`. */
  async function effectOf(change: object): Promise<object> {
    const { keyId } = await fullKey(server);
    const before = await server.getKey(keyId);
    await server.pass(10);
    assert.deepEqual(await server.ok("keys.updateKey", { keyId, ...change }), {});
    const { updatedAt, ...after } = await server.getKey(keyId);
    assert.equal(updatedAt, server.clock.now());
    const members = new Set([...Object.keys(before), ...Object.keys(after)]);
    return Object.fromEntries(
      [...members]
        .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
        .map((name) => [name, after[name]]),
    );
  }

  it("changes nothing when only the key is named (rule 22)", async () => {
    const { keyId } = await fullKey(server);
    const before = await server.getKey(keyId);
    assert.deepEqual(await server.ok("keys.updateKey", { keyId }), {});
    const { updatedAt: _, ...after } = await server.getKey(keyId);
    assert.deepEqual(after, before);
  });

  it("removes what is null (rule 22)", async () => {
    for (const [change, effect] of [
      [{ name: null }, { name: undefined }],
      [{ externalId: null }, { identity: undefined }],
      [{ meta: null }, { meta: undefined }],
      [{ expires: null }, { expires: undefined }],
      [{ credits: null }, { credits: undefined }],
      [{ credits: { remaining: null } }, { credits: undefined }],
      [{ credits: { refill: null } }, { credits: { remaining: 7 } }],
      [{ ratelimits: null }, { ratelimits: undefined }],
    ] as const) {
      assert.deepEqual(await effectOf(change), effect);
    }
    // There is no refill without a balance.
    const { keyId } = await server.createKey(await server.createApi());
    await server.ok("keys.updateKey", { keyId, credits: { refill: null } });
    assert.equal((await server.getKey(keyId)).credits, undefined);
  });

  it("changes the given properties and no others (rules 22, 24)", async () => {
    const refill = { interval: "daily", amount: 10 };
    for (const [change, effect] of [
      [{ name: "after" }, { name: "after" }],
      [{ meta: { replaced: [1] } }, { meta: { replaced: [1] } }],
      [{ meta: {} }, { meta: undefined }],
      [{ expires: 0 }, { expires: 0 }],
      [{ expires: 4_100_000_000_000 }, { expires: 4_100_000_000_000 }],
      [{ enabled: false }, { enabled: false }],
      [{ credits: { remaining: 3 } }, { credits: { remaining: 3, refill } }],
      [{ credits: { remaining: 0 } }, { credits: { remaining: 0, refill } }],
      [{ credits: {} }, {}],
      [
        { credits: { refill: { interval: "monthly", amount: 5 } } },
        { credits: { remaining: 7, refill: { interval: "monthly", amount: 5, refillDay: 1 } } },
      ],
      [
        { credits: { remaining: 2, refill: { interval: "monthly", amount: 5, refillDay: 28 } } },
        { credits: { remaining: 2, refill: { interval: "monthly", amount: 5, refillDay: 28 } } },
      ],
      [{ credits: { remaining: 2, refill: null } }, { credits: { remaining: 2 } }],
      [{ ratelimits: [] }, { ratelimits: undefined }],
      [{ roles: [] }, { roles: undefined, permissions: ["update.direct"] }],
      [{ roles: ["UPDATE_writer"] }, { roles: ["update_writer"], permissions: ["update.direct", "update.write"] }],
      [{ permissions: [] }, { permissions: ["update.read"] }],
      [{ permissions: ["update.made", "update.made", "update.read"] }, { permissions: ["update.made", "update.read"] }],
    ] as const) {
      assert.deepEqual(await effectOf(change), effect, JSON.stringify(change));
    }
  });

  it("rejects null where there is nothing to remove", async () => {
    const { keyId } = await fullKey(server);
    const before = await server.rows();
    for (const field of ["enabled", "roles", "permissions", "keyId"]) {
      await server.rejected("keys.updateKey", { keyId, [field]: null }, "invalid_input");
    }
    await server.rejected("keys.updateKey", { keyId, name: "" }, "invalid_input");
    await server.rejected("keys.updateKey", { keyId, permissions: ["ab"] }, "invalid_input");
    assert.deepEqual(await server.rows(), before);
  });

  it("links to another identity and keeps the former one (rule 22)", async () => {
    const { keyId } = await fullKey(server);
    const former = (await server.getKey(keyId)).identity;
    await server.ok("keys.updateKey", { keyId, externalId: "update_after" });
    const { identity } = await server.getKey(keyId);
    assert.equal(identity.externalId, "update_after");
    assert.notEqual(identity.id, former.id);
    await server.ok("keys.updateKey", { keyId, externalId: null });
    await server.ok("keys.updateKey", { keyId, externalId: "update_before" });
    assert.deepEqual((await server.getKey(keyId)).identity, former);
  });

  it("replaces limits by name, and keeps their ids (rule 22)", async () => {
    const { keyId } = await fullKey(server);
    const [requests] = (await server.getKey(keyId)).ratelimits;
    const ratelimits = [
      { name: "requests", limit: 99, duration: 5_000, autoApply: false },
      { name: "uploads", limit: 1, duration: 1_000, autoApply: true },
    ];
    await server.ok("keys.updateKey", { keyId, ratelimits });
    const after = (await server.getKey(keyId)).ratelimits;
    assert.equal(after[0].id, requests.id);
    assert.deepEqual(after, [
      { ...ratelimits[0], id: requests.id },
      { ...ratelimits[1], id: after[1].id },
    ]);
    await server.rejected("keys.updateKey", { keyId, ratelimits: [...ratelimits, ratelimits[0]] }, "invalid_input");
    assert.deepEqual((await server.getKey(keyId)).ratelimits, after);
  });

  it("validates refills", async () => {
    const { keyId } = await fullKey(server);
    const { keyId: unlimited } = await server.createKey(await server.createApi());
    const before = await server.rows();
    const reject = async (id: string, credits: object) =>
      (await server.rejected("keys.updateKey", { keyId: id, credits }, "invalid_input")).detail;
    const refill = { interval: "daily", amount: 5 };
    assert.match(
      await reject(keyId, { refill: { ...refill, refillDay: 2 } }),
      /refillDay.*must not be provided when the refill interval is/,
    );
    assert.match(await reject(keyId, { remaining: null, refill }), /credits\.remaining/);
    assert.match(await reject(unlimited, { refill }), /credits\.remaining/);
    assert.deepEqual(await server.rows(), before);
    await server.ok("keys.updateKey", { keyId: unlimited, credits: { remaining: 1, refill } });
    assert.deepEqual((await server.getKey(unlimited)).credits, { remaining: 1, refill });
  });

  it("needs existing roles, and changes nothing without them", async () => {
    const { keyId } = await fullKey(server);
    const before = await server.rows();
    const body = {
      keyId,
      name: "never",
      externalId: "update_never",
      permissions: ["update.never"],
      roles: ["update_writer", "update_unknown"],
    };
    const error = await server.rejected("keys.updateKey", body, "role_not_found");
    assert.equal(error.detail, "Role 'update_unknown' was not found.");
    assert.deepEqual(await server.rows(), before);
  });

  it("looks the key up before it checks the permission (rules 5, 8)", async () => {
    const { keyId } = await fullKey(server);
    const { key: as } = await server.grant("apis.*.read_key", "apis.*.create_key");
    const error = await server.rejected("keys.updateKey", { keyId, name: "x" }, "insufficient_permissions", { as });
    assert.match(error.detail, /^Missing one of these permissions: .*update_key/);
    await server.rejected("keys.updateKey", { keyId: "key_never0existed000", name: "x" }, "key_not_found", { as });
  });

  it("applies to the next verification (rule 23)", async () => {
    const { keyId, key } = await server.createKey(await server.createApi());
    const after = async (change: object, more: object = {}) => {
      await server.ok("keys.updateKey", { keyId, ...change });
      return server.verify(key, more);
    };
    assert.equal((await server.verify(key)).code, "VALID");
    assert.equal((await after({ enabled: false })).code, "DISABLED");
    assert.equal((await after({ enabled: true })).code, "VALID");
    assert.equal(
      (await after({ credits: { remaining: 50 } }, { permissions: "seen.at.once OR x" })).code,
      "INSUFFICIENT_PERMISSIONS",
    );
    assert.equal((await after({ permissions: ["seen.*"] }, { permissions: "seen.at.once OR x" })).code, "VALID");
    assert.deepEqual((await after({ roles: ["update_reader"] })).permissions, ["seen.*", "update.read"]);
    assert.equal((await after({ name: "new" })).name, "new");
    assert.deepEqual((await after({ meta: { plan: "pro" } })).meta, { plan: "pro" });
    assert.equal((await after({ externalId: "update_seen" })).identity.externalId, "update_seen");
    assert.equal((await after({ externalId: null })).identity, undefined);
    assert.equal((await after({ expires: 100_000_000_000 })).code, "EXPIRED");
    assert.equal((await after({ expires: null })).code, "VALID");
  });

  it("ends as one of several concurrent changes", async () => {
    const { keyId } = await fullKey(server);
    const sets = ["a", "b", "c", "d"].map((name) => [`update.${name}1`, `update.${name}2`]);
    await Promise.all(sets.map((permissions) => server.ok("keys.updateKey", { keyId, permissions, roles: [] })));
    const { permissions } = await server.getKey(keyId);
    assert(
      sets.some((set) => JSON.stringify(set) === JSON.stringify(permissions)),
      JSON.stringify(permissions),
    );
  });
});
