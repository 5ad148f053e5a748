import assert from "node:assert/strict";
import { it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { describeOnStores } from "../harness.ts";

const MINUTE = 60_000;
const SEED = Number(process.env.SEED ?? 21);

describeOnStores("ratelimits.explainLimit", (server) => {
  const setOverride = (namespace: string, identifier: string, limit: number, duration = MINUTE) =>
    server.ok("ratelimits.setOverride", { namespace, identifier, limit, duration });

  it("says which override applies, which others match, and what the counter is (rule 82)", async () => {
    await server.pass(MINUTE - (server.clock.now() % MINUTE));
    const start = server.clock.now();
    const call = { namespace: "explained", identifier: "user_42", limit: 10, duration: MINUTE };
    await server.rejected("ratelimits.explainLimit", call, "namespace_not_found");
    await server.ok("ratelimits.limit", { ...call, cost: 4 });
    const { namespaceId, ...plain } = await server.ok("ratelimits.explainLimit", call);
    assert.deepEqual(plain, {
      success: true,
      detail: "No override matches, so the limit of the call applies: 4 of 10 are used, and the call costs 1.",
      limit: 10,
      duration: MINUTE,
      cost: 1,
      used: 4,
      remaining: 6,
      retryAfter: 0,
      window: { startAt: start, endAt: start + MINUTE },
      others: [],
    });
    for (const [pattern, limit] of [
      ["*", 1],
      ["user_*", 2],
      ["other_*", 3],
      ["*_4*", 4],
      ["user_42", 3],
    ] as const)
      await setOverride("explained", pattern, limit);
    const held = await server.ok("ratelimits.explainLimit", { ...call, namespace: namespaceId, cost: 0 });
    assert.equal(held.override.identifier, "user_42");
    assert.deepEqual(
      held.others.map(({ identifier }: { identifier: string }) => identifier),
      ["user_*", "*_4*", "*"],
    );
    // The limit fell below what was used.
    assert.deepEqual([held.success, held.limit, held.used, held.remaining], [false, 3, 4, 0]);
    assert.equal(held.detail, "The override 'user_42' applies: 4 of 3 are used, and the call costs 0.");
  });

  it("needs both permissions for the namespace", async () => {
    const call = { namespace: "explained", identifier: "a", limit: 10, duration: MINUTE };
    for (const grant of ["ratelimits.*.limit", "ratelimits.*.read_override"]) {
      const { key: as } = await server.grant(grant);
      await server.rejected("ratelimits.explainLimit", call, "insufficient_permissions", { as });
    }
    const { key: as } = await server.grant("ratelimits.*.limit", "ratelimits.*.read_override");
    await server.ok("ratelimits.explainLimit", call, { as });
  });

  it(`reports what a call is answered, and changes nothing (SEED=${SEED})`, async () => {
    const random = seededRandom(SEED);
    const outcomes = new Set<string>();
    await server.ok("ratelimits.limit", { namespace: "random", identifier: "a", limit: 1, duration: 1_000 });
    for (let i = 0; i < 100; i++) {
      if (random.below(3) === 0) await server.pass(1 + random.below(3_000));
      if (random.below(10) === 0)
        await setOverride("random", ["a*", "*b", "ab"][random.below(3)]!, random.below(9), 2_000);
      const call = {
        namespace: "random",
        identifier: ["a", "b", "ab", "c"][random.below(4)],
        limit: 1 + random.below(9),
        duration: 1_000 * (1 + random.below(6)),
        cost: random.below(5),
      };
      const explained = await server.ok("ratelimits.explainLimit", call);
      assert.deepEqual(await server.ok("ratelimits.explainLimit", call), explained);
      const answer = await server.ok("ratelimits.limit", call);
      const context = JSON.stringify({ i, call, explained, answer });
      assert.deepEqual(
        [
          explained.success,
          explained.limit,
          explained.window.endAt,
          explained.retryAfter,
          explained.override?.overrideId,
        ],
        [answer.success, answer.limit, answer.reset, answer.retryAfter, answer.overrideId],
        context,
      );
      assert.equal(explained.remaining - (answer.success ? call.cost : 0), answer.remaining, context);
      outcomes.add(`${answer.success} ${answer.overrideId === undefined}`);
    }
    assert.equal(outcomes.size, 4);
  });
});
