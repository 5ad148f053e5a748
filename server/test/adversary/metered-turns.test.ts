/** Calls of one workspace that each need the database, many at once, beside a call of another workspace. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { stores, TestServer } from "../harness.ts";
import { postForm } from "../oauth-caller.ts";
import { sharedRedis } from "../services/redis.ts";

const CALLS = 200;
/** How many of them may be answered before the other workspace's call that comes after them. */
const BEFORE_MAX = 20;
const HOUR = 3_600_000;

for (const store of stores) {
  describe(`calls of a workspace that each need the database on ${store}`, () => {
    const settings: Record<string, string> = {};
    const server = new TestServer({ store, settings });
    before(async () => {
      settings.REDIS_URL = await sharedRedis();
      await server.open();
    });
    after(() => server.close());

    /** A workspace with keys that are cached. */
    async function tenant(name: string, count: number, more: object = {}, isVerified = true) {
      const { key: as } = await server.workspace(name);
      const { apiId } = await server.ok("apis.createApi", { name }, { as });
      const keys: string[] = [];
      for (let i = 0; i < count; i++) keys.push((await server.ok("keys.createKey", { apiId, ...more }, { as })).key);
      if (isVerified) for (const key of keys) await server.verify(key, { credits: { cost: 0 } }, { as });
      return { as, keys };
    }

    /** How many calls of the many are answered before that of the other. */
    async function answeredBefore(many: readonly (() => Promise<unknown>)[], other: () => Promise<unknown>) {
      let answered = 0;
      const all = many.map((call) =>
        call().then(() => {
          answered++;
        }),
      );
      await other();
      const before = answered;
      await Promise.all(all);
      return before;
    }

    it("with Idempotency-Keys let another workspace's through (rule 218)", async () => {
      const ratelimits = [{ name: "calls", limit: 1_000, duration: HOUR, autoApply: true }];
      const [hostile, innocent] = [
        await tenant("repeating", 1, { ratelimits }),
        await tenant("repeated", 1, { ratelimits }),
      ];
      const call = ({ as, keys }: typeof hostile, id: string) =>
        server.ok("keys.verifyKey", { key: keys[0] }, { as, headers: { "idempotency-key": id } });
      const many = Array.from({ length: CALLS }, (_, i) => () => call(hostile, `order-${i}`));
      const before = await answeredBefore(many, () => call(innocent, "order-0"));
      assert(before <= BEFORE_MAX, `${before} of ${CALLS}`);
    });

    it("that are introspections let another workspace's through (rule 218)", async () => {
      const [hostile, innocent] = [await tenant("asking", CALLS), await tenant("asked", 1)];
      const call = (as: string, token: string) =>
        postForm(server, "/oauth/introspect", { token }, { authorization: `Bearer ${as}` }).then(({ body }) =>
          assert.equal(body.active, true),
        );
      const many = hostile.keys.map((key) => () => call(hostile.as, key));
      const before = await answeredBefore(many, () => call(innocent.as, innocent.keys[0]!));
      assert(before <= BEFORE_MAX, `${before} of ${CALLS}`);
    });

    it("that make the balances of a plan let another workspace's through (rule 218)", async () => {
      const planned = async (name: string, count: number) => {
        const { key: as } = await server.workspace(name);
        const { apiId } = await server.ok("apis.createApi", { name }, { as });
        await server.ok("plans.createPlan", { name: "planned" }, { as });
        const keys: string[] = [];
        for (let i = 0; i < count; i++) {
          keys.push((await server.ok("keys.createKey", { apiId, plan: "planned" }, { as })).key);
        }
        for (const key of keys) await server.verify(key, {}, { as });
        await server.ok(
          "plans.updatePlan",
          { plan: "planned", credits: { amount: 10, refill: { interval: "daily" } } },
          { as },
        );
        for (const key of keys) await server.verify(key, { permissions: "missing" }, { as });
        return { as, keys };
      };
      const [hostile, innocent] = [await planned("granting", CALLS), await planned("granted", 1)];
      const call = async (as: string, key: string) => {
        const { code, credits } = await server.verify(key, {}, { as });
        assert.deepEqual([code, credits?.remaining ?? credits], ["VALID", 9]);
      };
      const many = hostile.keys.map((key) => () => call(hostile.as, key));
      const before = await answeredBefore(many, () => call(innocent.as, innocent.keys[0]!));
      assert(before <= BEFORE_MAX, `${before} of ${CALLS}`);
    });
  });
}
