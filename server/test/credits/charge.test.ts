import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

const HOUR = 3_600_000;

describeOnStores("the limits and the credits of one verification", (server) => {
  let repetitions = 0;
  /** Without an Idempotency-Key and with a new one. */
  const ways = [
    ["without an Idempotency-Key", () => ({})],
    ["with an Idempotency-Key", () => ({ headers: { "idempotency-key": `charge-${++repetitions}` } })],
  ] as const;

  /**
   * Creates a key with this balance and limit; returns a call that verifies it and returns the code, the credits and
   * the rest of the limit.
   */
  async function keyWith(remaining: number, limit: number, way: () => object) {
    const ratelimits = [{ name: "requests", limit, duration: HOUR, autoApply: true }];
    const { key } = await server.createKey(await server.createApi(), { credits: { remaining }, ratelimits });
    return async (cost: number) => {
      const { code, credits, ratelimits } = await server.verify(key, { credits: { cost } }, way());
      return [code, credits, ratelimits[0].remaining];
    };
  }

  for (const [name, way] of ways) {
    it(`are charged together ${name}`, async () => {
      const verify = await keyWith(10, 5, way);
      assert.deepEqual(await verify(3), ["VALID", 7, 4]);
      assert.deepEqual(await verify(0), ["VALID", 7, 3]);
      assert.deepEqual(await verify(7), ["VALID", 0, 2]);
    });

    it(`are not charged when credits are insufficient ${name}`, async () => {
      const verify = await keyWith(5, 2, way);
      for (let i = 0; i < 4; i++) assert.deepEqual(await verify(15), ["USAGE_EXCEEDED", 5, 2]);
      assert.deepEqual(await verify(5), ["VALID", 0, 1]);
    });

    it(`are not charged when a limit denies, which is checked before the credits ${name}`, async () => {
      const verify = await keyWith(5, 1, way);
      assert.deepEqual(await verify(1), ["VALID", 4, 0]);
      for (const cost of [0, 1, 5, 1_000]) assert.deepEqual(await verify(cost), ["RATE_LIMITED", 4, 0]);
    });
  }

  it("are charged exactly for the calls that get both, at any concurrency", async () => {
    for (const [remaining, limit] of [
      [20, 30],
      [30, 20],
    ] as const) {
      const ratelimits = [{ name: "requests", limit, duration: HOUR, autoApply: true }];
      const { keyId, key } = await server.createKey(await server.createApi(), { credits: { remaining }, ratelimits });
      const answers = await Promise.all(Array.from({ length: 60 }, () => server.verify(key)));
      assert.equal(answers.filter(({ code }) => code === "VALID").length, 20);
      assert.deepEqual((await server.getKey(keyId)).credits, { remaining: remaining - 20 });
      await server.ok("keys.updateCredits", { keyId, operation: "set", value: 1_000 });
      const more = await Promise.all(Array.from({ length: 60 }, () => server.verify(key)));
      assert.equal(more.filter(({ code }) => code === "VALID").length, limit - 20);
    }
  });
});
