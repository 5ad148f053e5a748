import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOnStores } from "../harness.ts";

describeOnStores("apis.updateApi", (server) => {
  const get = (apiId: string) => server.ok("apis.getApi", { apiId });
  const update = (apiId: string, changes: object) => server.ok("apis.updateApi", { apiId, ...changes });

  it("changes the given properties, clears those that are null, and keeps the others", async () => {
    const apiId = await server.createApi("first");
    const all = { prefix: "pay", byteLength: 32, deleteProtection: true, allowedIps: ["10.0.0.0/8", "::1"] };
    assert.deepEqual(await update(apiId, { name: "second", ...all }), {});
    const shown = { id: apiId, apiId, name: "second", ...all };
    assert.deepEqual(await get(apiId), shown);

    await update(apiId, {});
    assert.deepEqual(await get(apiId), shown);
    for (const [change, left] of [
      [{ prefix: null }, { ...shown, prefix: undefined }],
      [{ byteLength: null }, { ...shown, prefix: undefined, byteLength: undefined }],
      [
        { deleteProtection: false, allowedIps: null },
        { id: apiId, apiId, name: "second" },
      ],
    ] as const) {
      await update(apiId, change);
      assert.deepEqual(await get(apiId), JSON.parse(JSON.stringify(left)));
    }
    for (const change of [{ name: null }, { deleteProtection: null }, { allowedIps: [] }, { name: "" }]) {
      await server.rejected("apis.updateApi", { apiId, ...change }, "invalid_input");
    }
  });

  it("applies defaults to keys without values of their own (rule 18)", async () => {
    const apiId = await server.createApi();
    const length = async (given: object) => (await server.createKey(apiId, given)).key.length;
    const plain = await length({});
    await update(apiId, { prefix: "pay", byteLength: 64 });
    const { key, keyId } = await server.createKey(apiId);
    assert.match(key, /^pay_/);
    assert(key.length > plain + 60);
    const { key: rerolled } = await server.ok("keys.rerollKey", { keyId, expiration: 0 });
    assert.match(rerolled, /^pay_/);
    assert(rerolled.length > plain + 60);
    assert.match((await server.createKey(apiId, { prefix: "own", byteLength: 16 })).key, /^own_.{26,30}$/);
    await update(apiId, { prefix: null, byteLength: null });
    assert(!(await server.createKey(apiId)).key.includes("_"));
  });

  it("protects from deletion until the protection is removed (rule 15)", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    await update(apiId, { deleteProtection: true });
    const error = await server.rejected("apis.deleteApi", { apiId }, "protected_resource");
    assert.match(error.detail, /delete protection/);
    assert.equal((await server.verify(key)).code, "VALID");
    await update(apiId, { deleteProtection: false });
    await server.ok("apis.deleteApi", { apiId });
    await server.rejected("apis.updateApi", { apiId, name: "gone" }, "api_not_found");
  });

  it("restricts keys to listed addresses, from the next verification on (rule 47)", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    const codeFrom = async (from: string) => (await server.verify(key, {}, { from })).code;
    assert.equal(await codeFrom("192.0.2.1"), "VALID");
    await update(apiId, { allowedIps: ["10.0.0.0/8", "2001:db8::/32", "203.0.113.7"] });
    for (const [from, code] of [
      ["192.0.2.1", "FORBIDDEN"],
      ["10.255.0.1", "VALID"],
      ["::ffff:10.255.0.1", "VALID"],
      ["2001:db8:1::1", "VALID"],
      ["2001:db9::1", "FORBIDDEN"],
      ["203.0.113.7", "VALID"],
      ["203.0.113.8", "FORBIDDEN"],
    ] as const) {
      assert.equal(await codeFrom(from), code, from);
    }
    await update(apiId, { allowedIps: null });
    assert.equal(await codeFrom("192.0.2.1"), "VALID");
  });

  it("accepts addresses and CIDRs of both families and nothing else", async () => {
    const apiId = await server.createApi();
    const good = ["0.0.0.0/0", "::/0", "10.0.0.1", "10.0.0.0/32", "::1", "2001:db8::/128", "::ffff:10.0.0.0/104"];
    await update(apiId, { allowedIps: good });
    assert.deepEqual((await get(apiId)).allowedIps, good);
    const { key } = await server.createKey(apiId);
    assert.equal((await server.verify(key, {}, { from: "192.0.2.1" })).code, "VALID");
    for (const wrong of [
      "10.0.0.0/33",
      "::/129",
      "10.0.0/8",
      "example.com",
      "10.0.0.0/8/8",
      "fe80::1%eth0",
      "1.2.3.4/",
    ]) {
      await server.rejected("apis.updateApi", { apiId, allowedIps: ["10.0.0.0/8", wrong] }, "invalid_input");
    }
    const many = (count: number) => Array.from({ length: count }, (_, i) => `10.0.0.${i}`);
    await update(apiId, { allowedIps: many(100) });
    await server.rejected("apis.updateApi", { apiId, allowedIps: many(101) }, "invalid_input");
  });

  it("checks the permission before it looks the API up (rules 5, 7)", async () => {
    const apiId = await server.createApi();
    const { key: as } = await server.grant(`apis.${apiId}.update_api`);
    await server.ok("apis.updateApi", { apiId, name: "mine" }, { as });
    const never = { apiId: "api_never0existed000", name: "x" };
    const error = await server.rejected("apis.updateApi", never, "insufficient_permissions", { as });
    assert.match(error.detail, /^Missing one of these permissions: 'apis\.\*\.update_api' or /);
    await server.rejected("apis.updateApi", never, "api_not_found");
    const { key: reader } = await server.grant("apis.*.read_api", "apis.*.create_api", "apis.*.delete_api");
    await server.rejected("apis.updateApi", { apiId, name: "x" }, "insufficient_permissions", { as: reader });
    assert.equal((await get(apiId)).name, "mine");
  });

  describe("apis.listApis", () => {
    it("pages through the APIs of the workspace that are not deleted", async () => {
      const { key: as } = await server.workspace("listing");
      const { key: stranger } = await server.workspace("stranger");
      assert.deepEqual((await server.call("apis.listApis", {}, { as })).body.data, []);
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) ids.push((await server.ok("apis.createApi", { name: `api ${i}` }, { as })).apiId);
      await server.ok("apis.createApi", { name: "api of another workspace" }, { as: stranger });
      await server.ok("apis.deleteApi", { apiId: ids.pop() }, { as });
      ids.sort();

      for (const limit of [1, 2, 3, 6, 100]) {
        const pages: string[][] = [];
        for (let cursor: string | undefined; ; ) {
          const { body } = await server.call("apis.listApis", { limit, ...(cursor && { cursor }) }, { as });
          pages.push(body.data.map(({ apiId }: { apiId: string }) => apiId));
          if (!body.pagination.hasMore) break;
          cursor = body.pagination.cursor;
        }
        assert.deepEqual(pages.flat(), ids);
        assert.equal(pages.length, Math.ceil(6 / limit));
      }
      for (const cursor of ["garbage", "ключ", ids[0]]) {
        await server.rejected("apis.listApis", { cursor }, "invalid_input", { as: stranger });
      }
      const [shown] = await server.ok("apis.listApis", { limit: 1 }, { as });
      assert.deepEqual(shown, await server.ok("apis.getApi", { apiId: ids[0] }, { as }));
    });

    it("searches literally, without regard to case", async () => {
      const { key: as } = await server.workspace("searching");
      const names = ["Payments", "100%", "under_score", "back\\slash", "ΟΔΟΣ", "Ärger"];
      for (const name of names) await server.ok("apis.createApi", { name }, { as });
      const found = async (search: string) =>
        (await server.ok("apis.listApis", { search }, { as })).map(({ name }: { name: string }) => name).sort();
      assert.deepEqual(await found(" PAY "), ["Payments"]);
      assert.deepEqual(await found("%"), ["100%"]);
      assert.deepEqual(await found("r_s"), ["under_score"]);
      assert.deepEqual(await found("\\"), ["back\\slash"]);
      assert.deepEqual(await found("οδος"), ["ΟΔΟΣ"]);
      assert.deepEqual(await found("äRG"), ["Ärger"]);
      assert.deepEqual(await found("  "), [...names].sort());
      assert.deepEqual(await found("no match"), []);
      const [api] = await server.ok("apis.listApis", { search: "payments" }, { as });
      await server.ok("apis.updateApi", { apiId: api.apiId, name: "Billing" }, { as });
      assert.deepEqual(await found("pay"), []);
      assert.deepEqual(await found("bill"), ["Billing"]);
      assert.deepEqual(await found(api.apiId.toUpperCase()), ["Billing"]);
    });

    it("needs read_api for all (rule 8)", async () => {
      const apiId = await server.createApi();
      const { key: as } = await server.grant(`apis.${apiId}.read_api`, "apis.*.read_key");
      const error = await server.rejected("apis.listApis", {}, "insufficient_permissions", { as });
      assert.equal(error.detail, "Missing permission: 'apis.*.read_api'");
    });
  });
});
