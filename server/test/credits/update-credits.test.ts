import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

const CREDITS_MAX = 1e15;

describeOnStores("keys.updateCredits", (server) => {
  const refill = { interval: "daily", amount: 10 };

  /** A key, and a change of its credits that returns the answer. */
  async function keyWith(credits?: object) {
    const { keyId, key } = await server.createKey(await server.createApi(), credits && { credits });
    const change = (operation: string, value?: number | null) =>
      server.ok("keys.updateCredits", { keyId, operation, ...(value !== undefined && { value }) });
    return { keyId, key, change };
  }

  it("returns the resulting balance and the unchanged refill", async () => {
    const { change, keyId } = await keyWith({ remaining: 5, refill });
    assert.deepEqual(await change("set", 7), { remaining: 7, refill });
    assert.deepEqual(await change("increment", 3), { remaining: 10, refill });
    assert.deepEqual(await change("decrement", 4), { remaining: 6, refill });
    assert.deepEqual((await server.getKey(keyId)).credits, { remaining: 6, refill });
    assert.deepEqual(await change("set", 0), { remaining: 0, refill });
    const { change: changePlain } = await keyWith({ remaining: 5 });
    assert.deepEqual(await changePlain("increment", 0), { remaining: 5 });
  });

  it("stops at 0 when more is removed than there is (rule 26)", async () => {
    const { change } = await keyWith({ remaining: 5 });
    assert.deepEqual(await change("decrement", 6), { remaining: 0 });
    assert.deepEqual(await change("decrement", 1), { remaining: 0 });
  });

  it("makes usage unlimited and ends the refill with null or without a value (rule 26)", async () => {
    for (const value of [null, undefined]) {
      const { change, keyId, key } = await keyWith({ remaining: 0, refill });
      assert.deepEqual(await change("set", value), { remaining: null });
      assert.equal((await server.getKey(keyId)).credits, undefined);
      const { code, credits } = await server.verify(key, { credits: { cost: 1_000 } });
      assert.deepEqual([code, credits], ["VALID", undefined]);
      // The refill does not come back.
      assert.deepEqual(await change("set", 4), { remaining: 4 });
    }
  });

  it("gives an unlimited key a balance", async () => {
    const { change, key } = await keyWith();
    assert.equal((await server.verify(key)).credits, undefined);
    assert.deepEqual(await change("set", 2), { remaining: 2 });
    assert.equal((await server.verify(key)).credits, 1);
  });

  it("rejects an increment or decrement of an unlimited key, and one by null", async () => {
    const unlimited = await keyWith();
    const limited = await keyWith({ remaining: 5 });
    const before = await server.rows();
    for (const operation of ["increment", "decrement"]) {
      const body = { operation, value: 1 };
      await server.rejected("keys.updateCredits", { ...body, keyId: unlimited.keyId }, "invalid_input");
      await server.rejected("keys.updateCredits", { ...body, keyId: limited.keyId, value: null }, "invalid_input");
      await server.rejected("keys.updateCredits", { operation, keyId: limited.keyId }, "invalid_input");
    }
    assert.deepEqual(await server.rows(), before);
  });

  it("stays within its bounds", async () => {
    const { change, keyId } = await keyWith({ remaining: 5 });
    assert.deepEqual(await change("set", CREDITS_MAX), { remaining: CREDITS_MAX });
    for (const value of [1, CREDITS_MAX]) {
      const error = await server.rejected(
        "keys.updateCredits",
        { keyId, operation: "increment", value },
        "invalid_input",
      );
      assert.match(error.detail, /1000000000000000/);
    }
    for (const value of [-1, 1.5, CREDITS_MAX + 1, "1"]) {
      await server.rejected("keys.updateCredits", { keyId, operation: "set", value }, "invalid_input");
    }
    await server.rejected("keys.updateCredits", { keyId, operation: "multiply", value: 2 }, "invalid_input");
    assert.deepEqual((await server.getKey(keyId)).credits, { remaining: CREDITS_MAX });
  });

  it("applies to the next verification (rule 26)", async () => {
    const { change, key } = await keyWith({ remaining: 0 });
    assert.equal((await server.verify(key)).code, "USAGE_EXCEEDED");
    await change("set", 2);
    assert.deepEqual([(await server.verify(key)).credits, (await server.verify(key)).credits], [1, 0]);
    assert.equal((await server.verify(key)).code, "USAGE_EXCEEDED");
  });

  it("loses none of several concurrent changes, and none of the spends between them", async () => {
    const { change, keyId, key } = await keyWith({ remaining: 1_000 });
    const work: Promise<unknown>[] = [];
    for (let i = 0; i < 20; i++) {
      work.push(change("increment", 7), change("decrement", 3), server.verify(key), server.verify(key));
    }
    await Promise.all(work);
    assert.equal((await server.getKey(keyId)).credits.remaining, 1_000 + 20 * (7 - 3 - 2));
  });

  it("looks the key up before it checks the permission (rule 5)", async () => {
    const { keyId } = await keyWith({ remaining: 5 });
    const { key: as } = await server.grant("apis.*.read_key", "apis.*.create_key");
    const body = { keyId, operation: "set", value: 1 };
    const error = await server.rejected("keys.updateCredits", body, "insufficient_permissions", { as });
    assert.match(error.detail, /update_key/);
    const missing = { ...body, keyId: "key_never0existed000" };
    const { detail } = await server.rejected("keys.updateCredits", missing, "key_not_found", { as });
    assert.match(detail, /The specified key was not found|We could not find the requested key/);
    const { keyId: deleted } = await keyWith({ remaining: 5 });
    await server.ok("keys.deleteKey", { keyId: deleted });
    await server.rejected("keys.updateCredits", { ...body, keyId: deleted }, "key_not_found");
  });

  it("is an audit entry with the former and the new balance", async () => {
    const { keyId, change } = await keyWith({ remaining: 5 });
    await change("decrement", 2);
    const events = await server.change([], ({ db }) =>
      db.selectFrom("audit_events").selectAll().where("action", "=", "keys.updateCredits").execute(),
    );
    const event = events.find(({ targets }) => targets.includes(keyId))!;
    assert.deepEqual(JSON.parse(event.meta), { operation: "decrement", value: 2, before: 5, after: 3 });
  });
});
