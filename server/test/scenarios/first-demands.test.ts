/** The first values that programs of earlier releases misread, stored by many calls at once. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

const AT_ONCE = 16;

describeOnStores("the first values that earlier releases misread", (server) => {
  const atOnce = async (name: string, bodyOf: (i: number) => object) => {
    const replies = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => server.call(name, bodyOf(i))));
    assert.deepEqual(
      replies.map(({ status }) => status),
      Array(AT_ONCE).fill(200),
    );
    return replies.map(({ body }) => body.data);
  };

  it("can be limits of concurrency", async () => {
    await atOnce("identities.createIdentity", (i) => ({
      externalId: `user_${i}`,
      concurrency: [{ name: "streams", limit: 1 }],
    }));
  });

  it("can be budgets", async () => {
    await atOnce("budgets.createBudget", (i) => ({ name: `Team ${i}`, remaining: 1 }));
  });

  it("can be plans", async () => {
    await atOnce("plans.createPlan", (i) => ({ name: `plan-${i}` }));
  });

  it("can be refills by the calendar", async () => {
    const apiId = await server.createApi();
    const credits = { remaining: 1, refill: { interval: "weekly", amount: 1 } };
    await atOnce("keys.createKey", () => ({ apiId, credits }));
  });

  it("can be holds", async () => {
    const { key } = await server.createKey(await server.createApi(), { credits: { remaining: AT_ONCE } });
    const verified = await atOnce("keys.verifyKey", () => ({ key, hold: { ttl: 60_000 } }));
    assert(verified.every(({ code, hold }) => code === "VALID" && hold !== undefined));
  });
});
