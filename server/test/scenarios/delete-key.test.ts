import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

describeOnStores("keys.deleteKey", (server) => {
  const rowsAbout = async (keyId: string) =>
    Object.entries(await server.rows()).flatMap(([table, rows]) =>
      !table.startsWith("audit_") && rows.some((row) => (row as string).includes(keyId)) ? [table] : [],
    );

  const full = {
    externalId: "delete_owner",
    permissions: ["delete.read"],
    roles: ["delete_role"],
    credits: { remaining: 3 },
    ratelimits: [{ name: "requests", limit: 1, duration: 1_000 }],
  };

  it("has a role to assign", () => server.createRole("delete_role", "delete.write"));

  for (const permanent of [false, true]) {
    it(`ends the key for every operation, ${permanent ? "and deletes its rows" : "and keeps its row"} (rule 25)`, async () => {
      const apiId = await server.createApi();
      const { keyId, key } = await server.createKey(apiId, full);
      const other = await server.createKey(apiId, full);
      assert.equal((await server.verify(key)).code, "VALID");
      assert.deepEqual(await server.ok("keys.deleteKey", { keyId, ...(permanent && { permanent }) }), {});

      assert.deepEqual(await server.verify(key), { valid: false, code: "NOT_FOUND" });
      for (const operation of ["keys.deleteKey", "keys.getKey", "keys.updateKey"]) {
        await server.rejected(operation, { keyId }, "key_not_found");
      }
      await server.rejected("keys.deleteKey", { keyId, permanent: true }, "key_not_found");
      await server.rejected("keys.whoami", { key }, "key_not_found");
      const listed = await server.ok("apis.listKeys", { apiId });
      assert.deepEqual(
        listed.map((shown: { keyId: string }) => shown.keyId),
        [other.keyId],
      );

      assert.deepEqual(
        await rowsAbout(keyId),
        permanent ? [] : ["keys", "ratelimits", "keys_permissions", "keys_roles"],
      );
      // Other keys are unchanged.
      const { permissions, roles, credits, ratelimits, identity } = await server.getKey(other.keyId);
      assert.deepEqual(
        [permissions, roles, credits],
        [["delete.read", "delete.write"], ["delete_role"], { remaining: 3 }],
      );
      assert.equal(ratelimits.length, 1);
      assert.equal(identity.externalId, "delete_owner");
      assert.equal((await server.verify(other.key)).code, "VALID");
    });
  }

  it("deletes the balance with the key", async () => {
    const { keyId } = await server.createKey(await server.createApi(), full);
    const balances = (await server.rows()).balances!.length;
    await server.ok("keys.deleteKey", { keyId, permanent: true });
    assert.equal((await server.rows()).balances!.length, balances - 1);
  });

  it("looks the key up before it checks the permission (rule 5)", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId);
    const { key: as } = await server.grant("apis.*.update_key");
    await server.rejected("keys.deleteKey", { keyId }, "insufficient_permissions", { as });
    await server.rejected("keys.deleteKey", { keyId: "key_never0existed000" }, "key_not_found", { as });
    assert.equal((await server.verify(key)).code, "VALID");
    const { key: deleter } = await server.grant(`apis.${apiId}.delete_key`);
    await server.ok("keys.deleteKey", { keyId }, { as: deleter });
  });
});
