import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openTestServer, type TestServer } from "../harness.ts";

const CREDITS = 1_000;
const ROUNDS = 12;
const INNOCENT = 6;

/** Suspends the batches of one node between their statements, once each. */
function holdBatches(server: TestServer): { begun: Promise<void>; release(): void } {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  server.store.interception = async (name, proceed) => {
    if (name !== "spend") return proceed();
    begun.resolve();
    await gate.promise;
    return proceed();
  };
  return {
    begun: begun.promise,
    release() {
      server.store.interception = undefined;
      gate.resolve();
    },
  };
}

describe("one Idempotency-Key that is used for two keys on two nodes", () => {
  it("is rejected on one of them, and the other calls of the same batches are charged", async () => {
    const one = await openTestServer({ store: "postgres" });
    const other = await openTestServer({ beside: one });
    try {
      const apiId = await one.createApi();
      const create = () => one.createKey(apiId, { credits: { remaining: CREDITS } });
      const [first, second] = [await create(), await create()];
      const innocent = await Promise.all(Array.from({ length: INNOCENT }, create));
      await other.pass(1_000);
      const answers: Record<string, number> = {};
      let chargedConflicts = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const headers = { headers: { "idempotency-key": `round-${round}` } };
        const held = [holdBatches(one), holdBatches(other)];
        const charged = [
          ...innocent.slice(0, INNOCENT / 2).map(({ key }) => one.call("keys.verifyKey", { key })),
          ...innocent.slice(INNOCENT / 2).map(({ key }) => other.call("keys.verifyKey", { key })),
        ];
        const conflicting = [
          one.call("keys.verifyKey", { key: first.key }, headers),
          other.call("keys.verifyKey", { key: second.key }, headers),
        ];
        await Promise.all(held.map(({ begun }) => begun));
        for (const { release } of held) release();
        for (const reply of await Promise.all(charged)) assert.equal(reply.body.data?.code, "VALID");
        for (const { problem = "charged" } of await Promise.all(conflicting)) {
          answers[problem] = (answers[problem] ?? 0) + 1;
          if (problem === "charged") chargedConflicts++;
        }
      }
      // The second call found the first one running, or recorded with another body.
      assert.equal(chargedConflicts, ROUNDS, JSON.stringify(answers));
      const { idempotency_in_progress: running = 0, idempotency_mismatch: mismatched = 0 } = answers;
      assert.equal(running + mismatched, ROUNDS, JSON.stringify(answers));
      const left = await Promise.all([first, second].map(({ keyId }) => one.getKey(keyId)));
      const spent = left.reduce((sum, { credits }) => sum + CREDITS - credits.remaining, 0);
      assert.equal(spent, ROUNDS);
      for (const { keyId } of innocent) assert.equal((await one.getKey(keyId)).credits.remaining, CREDITS - ROUNDS);
    } finally {
      await other.close();
      await one.close();
    }
  });
});
