import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { KeyUses, TRACKED_KEYS_MAX, USE_INTERVAL } from "./key-uses.ts";

describe("uses of keys", () => {
  it("are returned at most once per key and interval, with the time of the last use, and none is forgotten", () => {
    const step = fc.record({
      pass: fc.oneof(fc.nat(5_000), fc.nat(60_000), fc.integer({ min: -40_000, max: 0 })),
      used: fc.array(fc.constantFrom("a", "b", "c", "d", "e"), { maxLength: 4 }),
      count: fc.integer({ min: 0, max: 3 }),
      fails: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const uses = new KeyUses();
        let now = 1_000_000;
        /** The last use that was not returned, and the return before it, by key. */
        const unwritten = new Map<string, number>();
        const writtenAt = new Map<string, number>();
        for (const { pass, used, count, fails } of steps) {
          now += pass;
          uses.add(used.map((keyId) => ({ keyId, at: now })));
          for (const keyId of used) unwritten.set(keyId, Math.max(now, unwritten.get(keyId) ?? 0));
          const taken = uses.take(count, now);
          assert.ok(taken.length <= count);
          for (const { keyId, at } of taken) {
            assert.equal(at, unwritten.get(keyId));
            const age = now - (writtenAt.get(keyId) ?? Number.NEGATIVE_INFINITY);
            assert.ok(age >= USE_INTERVAL || age < 0 || hasStepped(steps), `${keyId} again after ${age} ms`);
            unwritten.delete(keyId);
            writtenAt.set(keyId, now);
          }
          if (!fails) continue;
          // Keys are also used during the write.
          now++;
          uses.add(used.map((keyId) => ({ keyId, at: now })));
          uses.putBack(taken);
          for (const { keyId, at } of taken) {
            unwritten.set(keyId, at);
            writtenAt.delete(keyId);
          }
          for (const keyId of used) unwritten.set(keyId, Math.max(now, unwritten.get(keyId) ?? 0));
        }
        now += 2 * USE_INTERVAL;
        const rest = uses.take(10, now);
        assert.deepEqual(new Map(rest.map(({ keyId, at }) => [keyId, at])), unwritten);
      }),
      { numRuns: 500 },
    );
  });

  it("are due again when the clock was set back", () => {
    const uses = new KeyUses();
    const use = [{ keyId: "a", at: USE_INTERVAL }];
    uses.add(use);
    assert.deepEqual(uses.take(1, USE_INTERVAL), use);
    uses.add(use);
    assert.deepEqual(uses.take(1, USE_INTERVAL), []);
    assert.deepEqual(uses.take(1, 0), use);
  });

  it("of a limited number of keys wait", () => {
    const uses = new KeyUses();
    uses.add(Array.from({ length: TRACKED_KEYS_MAX + 1 }, (_, i) => ({ keyId: `key_${i}`, at: 1 })));
    uses.add([{ keyId: "key_0", at: 2 }]);
    assert.deepEqual(uses.take(1, 2), [{ keyId: "key_0", at: 2 }]);
    let taken = 1;
    for (let more = uses.take(50_000, 2); more.length > 0; more = uses.take(50_000, 2)) taken += more.length;
    assert.equal(taken, TRACKED_KEYS_MAX);
    uses.add([{ keyId: "another", at: 3 }]);
    assert.deepEqual(uses.take(1, 3), []);
    uses.take(1, 2 + USE_INTERVAL);
    uses.add([{ keyId: "another", at: 4 }]);
    assert.deepEqual(uses.take(1, 2 + USE_INTERVAL), [{ keyId: "another", at: 4 }]);
  });
});

/** Whether the clock steps back, after which an interval may end early. */
function hasStepped(steps: readonly { pass: number }[]): boolean {
  return steps.some(({ pass }) => pass < 0);
}
