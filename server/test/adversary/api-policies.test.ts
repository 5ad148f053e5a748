/** What callers try who want a key that the policy of its API does not allow. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

const ROUNDS = 8;
const DAY = 86_400_000;
const limit = { name: "requests", limit: 5, duration: 60_000 };

describeOnStores("a policy that many calls attack at once", (server) => {
  const unlimited = async (apiId: string) => {
    const found = (await server.ok("system.getFindings", {})).keysAgainstPolicy;
    return found.filter((one: { apiId: string }) => one.apiId === apiId);
  };
  const statuses = async (calls: [name: string, body: object][]) => {
    const replies = await Promise.all(calls.map(([name, body]) => server.call(name, body)));
    return replies.map(({ status }) => status).sort();
  };

  it("loses no last limit to changes that each leave another one (rule 139)", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "raced", policy: { limitsRequired: true } });
    await server.ok("plans.createPlan", { name: "raced", ratelimits: [limit] });
    for (let round = 0; round < ROUNDS; round++) {
      const both = { ratelimits: [limit], concurrency: [{ name: "jobs", limit: 1 }] };
      const { keyId } = await server.createKey(apiId, both);
      const parts = await statuses([
        ["keys.updateKey", { keyId, ratelimits: null }],
        ["keys.updateKey", { keyId, concurrency: null }],
      ]);
      assert.deepEqual(parts, [200, 400]);

      // Two keys of a chain: one has a limit besides the plan of both, and the other one only the plan.
      const { keyId: first } = await server.createKey(apiId, { ratelimits: [limit], plan: "raced" });
      const { keyId: second } = await server.ok("keys.rerollKey", { keyId: first, expiration: null });
      const chain = await statuses([
        ["keys.updateKey", { keyId: first, plan: null }],
        ["keys.updateKey", { keyId: second, ratelimits: null }],
        ["keys.updateKey", { keyId: first, ratelimits: null }],
      ]);
      assert.deepEqual(chain.slice(-1), [400]);

      const { keyId: planned } = await server.createKey(apiId, { plan: "raced" });
      await statuses([
        ["keys.updateKey", { keyId: planned, plan: null, ratelimits: [limit] }],
        ["keys.rerollKey", { keyId: planned, expiration: null }],
      ]);
      assert.deepEqual(await unlimited(apiId), []);
    }
  });

  it("is not walked around by a chain of changes or rerolls that each obey (rules 138 and 139)", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "walked", policy: { expiry: { max: 10 * DAY } } });
    const born = server.clock.now();
    const { keyId } = await server.createKey(apiId, { expires: born + DAY });
    for (let day = 1; day <= 10; day++) {
      await server.ok("keys.updateKey", { keyId, expires: born + day * DAY });
      server.clock.step(DAY / 2);
    }
    await server.rejected("keys.updateKey", { keyId, expires: server.clock.now() + 10 * DAY }, "invalid_input");
    await server.ok("keys.deleteKey", { keyId });
    await server.ok("keys.restoreKey", { keyId });
    await server.rejected("keys.updateKey", { keyId, expires: born + 10 * DAY + 1 }, "invalid_input");
    const { keyId: next } = await server.ok("keys.rerollKey", { keyId, expiration: 4_000_000_000 });
    const { expires } = await server.getKey(keyId);
    assert(expires <= born + 10 * DAY, "a reroll does not extend the old key");
    assert.equal((await server.getKey(next)).expires, born + 10 * DAY);
  });

  it("is judged in the workspace of the caller", async () => {
    const { key: as } = await server.workspace("stranger");
    await server.ok("plans.createPlan", { name: "theirs", ratelimits: [limit] });
    const { identityId } = await server.ok("identities.createIdentity", { externalId: "theirs", ratelimits: [limit] });
    const { apiId } = await server.ok("apis.createApi", { name: "mine", policy: { limitsRequired: true } }, { as });
    for (const externalId of ["theirs", identityId]) {
      const { status } = await server.call("keys.createKey", { apiId, externalId }, { as });
      assert.equal(status, 400);
    }
  });
});
