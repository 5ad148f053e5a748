import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { writeCursor } from "../../src/platform/store/cursor.ts";
import { describeOnStores } from "../harness.ts";

const MISSING = "The requested API does not exist or has been deleted.";

describeOnStores("apis", (server) => {
  it("get unique ids for any names (rule 13)", async () => {
    const names = [
      "payments",
      "payments",
      "a",
      '決済 ☂ "quoted"',
      "x".repeat(255),
      "6f1e2c1a-8d5b-4f0e-9a53-1f6f6a3b7c11",
      "💳".repeat(255),
    ];
    const ids = new Set<string>();
    for (const name of names) {
      const apiId = await server.createApi(name);
      assert.match(apiId, /^api_[0-9A-Za-z]{9,}$/);
      assert.deepEqual(await server.ok("apis.getApi", { apiId }), { id: apiId, apiId, name });
      ids.add(apiId);
    }
    assert.equal(ids.size, names.length);
    await server.rejected("apis.createApi", { name: "💳".repeat(256) }, "invalid_input");
  });

  it("can be created with the permission, and other permissions do not matter (rule 13)", async () => {
    const reader = await server.grant("apis.*.read_api", "apis.*.update_api");
    const error = await server.rejected("apis.createApi", { name: "payments" }, "insufficient_permissions", {
      as: reader.key,
    });
    assert.equal(error.detail, "Missing permission: 'apis.*.create_api'");
    // The clients' spelling of a grant.
    for (const grants of [["apis.*.create_api", "identities.*.read_identity"], ["api.*.create_api"], ["apis.*.*"]]) {
      await server.ok("apis.createApi", { name: "payments" }, { as: (await server.grant(...grants)).key });
    }
  });

  it("accept keys at once (rule 14)", async () => {
    const { key } = await server.createKey(await server.createApi());
    assert.equal((await server.verify(key)).code, "VALID");
  });

  it("are returned with their settings", async () => {
    const apiId = await server.createApi();
    const given = { prefix: "pay", byteLength: 32, deleteProtection: true, allowedIps: ["10.0.0.0/8"] };
    await server.ok("apis.updateApi", { apiId, ...given });
    assert.deepEqual(await server.ok("apis.getApi", { apiId }), {
      id: apiId,
      apiId,
      name: "payments",
      ...given,
    });
    const { key } = await server.createKey(apiId);
    assert.match(key, /^pay_/);
    // 32 bytes are 43 or 44 characters, and 6 characters of checksum follow.
    assert(key.length >= "pay_".length + 43 + 6);
    assert.match((await server.createKey(apiId, { prefix: "own", byteLength: 16 })).key, /^own_.{26,30}$/);
  });

  it("check the permission before they are looked up (rules 5, 7)", async () => {
    const apiId = await server.createApi();
    const own = await server.grant(`apis.${apiId}.read_api`, `apis.${apiId}.delete_api`);
    const never = "api_never0existed000";
    await server.ok("apis.getApi", { apiId }, { as: own.key });
    for (const operation of ["apis.getApi", "apis.deleteApi"]) {
      const action = operation === "apis.getApi" ? "read_api" : "delete_api";
      const error = await server.rejected(operation, { apiId: never }, "insufficient_permissions", { as: own.key });
      assert.equal(error.detail, `Missing one of these permissions: 'apis.*.${action}' or 'apis.${never}.${action}'`);
      const absent = await server.rejected(operation, { apiId: never }, "api_not_found");
      assert.equal(absent.detail, MISSING);
    }
    await server.ok("apis.deleteApi", { apiId }, { as: own.key });
  });

  it("are deleted once, with their keys, and no other API is (rule 15)", async () => {
    const [apiId, other] = [await server.createApi(), await server.createApi("other")];
    const [mine, theirs] = [await server.createKey(apiId), await server.createKey(other)];
    for (const { key } of [mine, theirs]) assert.equal((await server.verify(key)).code, "VALID");

    assert.deepEqual(await server.ok("apis.deleteApi", { apiId }), {});
    assert.deepEqual(await server.verify(mine.key), { valid: false, code: "NOT_FOUND" });
    for (let attempt = 0; attempt < 2; attempt++) {
      assert.equal((await server.rejected("apis.deleteApi", { apiId }, "api_not_found")).detail, MISSING);
    }
    await server.rejected("apis.getApi", { apiId }, "api_not_found");
    await server.rejected("apis.listKeys", { apiId }, "api_not_found");
    await server.rejected("keys.createKey", { apiId }, "api_not_found");
    await server.rejected("keys.getKey", { keyId: mine.keyId }, "key_not_found");
    await server.rejected("keys.updateKey", { keyId: mine.keyId, name: "x" }, "key_not_found");
    await server.rejected("keys.deleteKey", { keyId: mine.keyId }, "key_not_found");
    await server.rejected("keys.whoami", { key: mine.key }, "key_not_found");
    assert.equal((await server.verify(theirs.key)).code, "VALID");
    await server.getKey(theirs.keyId);
  });

  it("stay when they are protected (rule 15)", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    await server.ok("apis.updateApi", { apiId, deleteProtection: true });
    const error = await server.rejected("apis.deleteApi", { apiId }, "protected_resource");
    assert.equal(error.title, "Resource is protected");
    assert.match(error.detail, /delete protection/);
    assert.equal((await server.verify(key)).code, "VALID");
    await server.ok("apis.updateApi", { apiId, deleteProtection: false });
    await server.ok("apis.deleteApi", { apiId });
  });

  describe("apis.listKeys", () => {
    const list = async (body: object) => (await server.call("apis.listKeys", body)).body;

    it("pages through all keys without gaps or duplicates (rule 16)", async () => {
      const apiId = await server.createApi();
      assert.deepEqual((await list({ apiId })).data, []);
      assert.deepEqual((await list({ apiId })).pagination, { hasMore: false });
      const made = new Set<string>();
      for (let i = 0; i < 12; i++) made.add((await server.createKey(apiId, { name: `key ${i}` })).keyId);
      await server.createKey(await server.createApi("other"));

      const sorted = [...made].sort();
      for (const limit of [1, 4, 5, 12, 100]) {
        const pages: string[][] = [];
        for (let cursor: string | undefined; ; ) {
          const { data, pagination } = await list({ apiId, limit, ...(cursor && { cursor }) });
          pages.push(data.map(({ keyId }: { keyId: string }) => keyId));
          if (!pagination.hasMore) break;
          assert.equal(data.length, limit);
          cursor = pagination.cursor;
        }
        assert.deepEqual(pages.flat(), sorted);
        assert.equal(pages.length, Math.ceil(12 / limit));
      }
      assert.equal((await list({ apiId })).data.length, 12);
      for (const limit of [0, -1, 101]) await server.rejected("apis.listKeys", { apiId, limit }, "invalid_input");
    });

    it("continues after a page whose last key was deleted", async () => {
      const apiId = await server.createApi();
      for (let i = 0; i < 4; i++) await server.createKey(apiId);
      const ids = (await list({ apiId })).data.map(({ keyId }: { keyId: string }) => keyId);
      const { pagination } = await list({ apiId, limit: 2 });
      await server.ok("keys.deleteKey", { keyId: ids[2] });
      const rest = (await list({ apiId, limit: 2, cursor: pagination.cursor })).data;
      assert.deepEqual(
        rest.map(({ keyId }: { keyId: string }) => keyId),
        [ids[3]],
      );
    });

    it("rejects a cursor of another list, and finds nothing for unusual ids (rule 16)", async () => {
      const apiId = await server.createApi();
      await server.createKey(apiId);
      assert.equal((await list({ apiId, cursor: "" })).data.length, 1);
      const other = writeCursor("apis.listApis", { at: 1, id: "key_1" });
      for (const cursor of ["garbage", "key_1", "ключ", "'; drop table keys; --", "x".repeat(1_024), other]) {
        const error = await server.rejected("apis.listKeys", { apiId, cursor }, "invalid_input");
        assert.match(error.errors![0]!.fix!, /`pagination.cursor`/);
      }
      for (const odd of ["x", "no such api!", "%", "x".repeat(5_000), "apı"]) {
        assert.equal((await server.rejected("apis.listKeys", { apiId: odd }, "api_not_found")).detail, MISSING);
      }
      await server.rejected("apis.listKeys", { apiId: "" }, "invalid_input");
    });

    it("filters by the identity's external id (rule 16)", async () => {
      const apiId = await server.createApi();
      const mine = await server.createKey(apiId, { externalId: "list_alice", name: "a" });
      await server.createKey(apiId, { externalId: "list_bob" });
      await server.createKey(apiId);
      const { data, pagination } = await list({ apiId, externalId: "list_alice", revalidateKeysCache: true });
      assert.deepEqual(
        data.map(({ keyId }: { keyId: string }) => keyId),
        [mine.keyId],
      );
      assert.deepEqual(pagination, { hasMore: false });
      assert.deepEqual((await list({ apiId, externalId: "list_nobody" })).data, []);
      // The external id only, not the identity's own id.
      assert.deepEqual((await list({ apiId, externalId: data[0].identity.id })).data, []);
    });

    it("returns each key as getKey does, including disabled and expired ones, and never a secret (rule 16)", async () => {
      const apiId = await server.createApi();
      await server.createRole("list_role", "list.read");
      const made = [
        await server.createKey(apiId, {
          externalId: "list_full",
          meta: { plan: "pro" },
          credits: { remaining: 5 },
          ratelimits: [{ name: "requests", limit: 10, duration: 1_000 }],
          roles: ["list_role"],
          permissions: ["list.write"],
        }),
        await server.createKey(apiId, { enabled: false }),
        await server.createKey(apiId, { expires: 100_000_000_000 }),
      ];
      const { body } = await server.call("apis.listKeys", { apiId });
      assert.equal(body.data.length, 3);
      for (const shown of body.data) assert.deepEqual(shown, await server.getKey(shown.keyId));
      const everything = JSON.stringify(body);
      for (const { key } of made) assert(!everything.includes(key));
      assert(!/"hash|plaintext/.test(everything));
    });

    it("needs read_key and read_api, and masks the API without one of them (rules 5, 16)", async () => {
      const apiId = await server.createApi();
      const other = await server.createApi("other");
      const absent = await server.call("apis.listKeys", { apiId: "api_never0existed000" });
      for (const grants of [
        ["apis.*.read_key"],
        ["apis.*.read_api"],
        [`apis.${other}.read_key`, `apis.${other}.read_api`],
        [`apis.${apiId}.read_key`, `apis.${other}.read_api`],
        ["apis.*.create_key"],
      ]) {
        const { key: as } = await server.grant(...grants);
        const reply = await server.call("apis.listKeys", { apiId }, { as });
        assert.deepEqual(reply.body.error, absent.body.error);
      }
      const { key: as } = await server.grant(`apis.${apiId}.read_key`, "apis.*.read_api");
      await server.ok("apis.listKeys", { apiId }, { as });
    });
  });
});
