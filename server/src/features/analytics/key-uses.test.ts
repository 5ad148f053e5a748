import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { KeyUses, TRACKED_KEYS_MAX, USE_INTERVAL } from "./key-uses.ts";
import type { KeyUse } from "./recorder.ts";

const alphanumerics = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

describe("uses of keys", () => {
  it("are returned at most once per key and interval, with the time of the last use, and none is forgotten", () => {
    const ids = ["a", "key_a", "key_b", "key_z", "key_zz"];
    const step = fc.record({
      pass: fc.oneof(fc.nat(5_000), fc.nat(60_000), fc.integer({ min: -40_000, max: 0 })),
      used: fc.array(fc.constantFrom(...ids), { maxLength: 4 }),
      count: fc.integer({ min: 0, max: 3 }),
      fails: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(5), (steps, dueAtOnce) => {
        const uses = new KeyUses(dueAtOnce);
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
        const rest: KeyUse[] = [];
        // The end of an interval, and the turn of every part.
        for (let i = 0; i < 2; i++) {
          now += USE_INTERVAL;
          rest.push(...uses.take(10, now));
        }
        rest.push(...uses.take(10, now + USE_INTERVAL));
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

  it("of many keys are returned by the beginning of their ids, each part once per interval", () => {
    const uses = new KeyUses(10);
    const seconds: string[][] = [];
    let added = 0;
    for (let now = 0; now < 3 * USE_INTERVAL; now += 1_000) {
      const some = Array.from({ length: 100 }, () => ({
        keyId: `key_${alphanumerics[added % 62]}${added++}`,
        at: now,
      }));
      uses.add(some);
      seconds.push(uses.take(1_000_000, now).map(({ keyId }) => keyId[4]!));
    }
    const parts = seconds.slice(USE_INTERVAL / 1_000).map((second) => new Set(second));
    // 62 parts in 30 turns of a second; some parts are two characters.
    assert(
      parts.every((of) => of.size <= 6),
      JSON.stringify(parts.map(({ size }) => size)),
    );
    const taken = seconds.flat().length;
    assert(taken > added - 100 * (USE_INTERVAL / 1_000), `${taken} of ${added}`);
  });

  it("after a write are returned by a drain, also before they are due", () => {
    const uses = new KeyUses();
    uses.add([{ keyId: "key_a", at: 1 }]);
    uses.take(1, 2);
    uses.add([{ keyId: "key_a", at: 3 }]);
    assert.deepEqual(uses.drain(), [{ keyId: "key_a", at: 3 }]);
    assert.deepEqual(uses.drain(), []);
  });

  it("that are due are all returned by a drain", () => {
    const uses = new KeyUses(1);
    const some = ["key_a", "key_b", "key_c"].map((keyId) => ({ keyId, at: 1 }));
    uses.add(some);
    const [taken] = uses.take(1, 2 * USE_INTERVAL);
    assert.deepEqual(
      uses.drain(),
      some.filter(({ keyId }) => keyId !== taken?.keyId),
    );
    assert.deepEqual(uses.take(10, 9 * USE_INTERVAL), []);
  });

  it("of a limited number of keys are kept, and the others are returned", () => {
    const uses = new KeyUses(TRACKED_KEYS_MAX);
    const many = Array.from({ length: TRACKED_KEYS_MAX + 1 }, (_, i) => ({ keyId: `key_${i}`, at: 1 }));
    assert.deepEqual(uses.add(many), [{ keyId: `key_${TRACKED_KEYS_MAX}`, at: 1 }]);
    assert.deepEqual(uses.add([{ keyId: "key_0", at: 2 }]), []);
    assert.deepEqual(uses.take(1, 2), [{ keyId: "key_0", at: 2 }]);
    let taken = 1;
    for (let more = uses.take(50_000, 2); more.length > 0; more = uses.take(50_000, 2)) taken += more.length;
    assert.equal(taken, TRACKED_KEYS_MAX);
    const another = [{ keyId: "another", at: 3 }];
    assert.deepEqual(uses.add(another), another);
    uses.take(1, 2 + USE_INTERVAL);
    assert.deepEqual(uses.add(another), []);
    assert.deepEqual(uses.take(1, 2 + USE_INTERVAL), another);
  });
});

/** Whether the clock steps back, after which an interval may end early. */
function hasStepped(steps: readonly { pass: number }[]): boolean {
  return steps.some(({ pass }) => pass < 0);
}
