import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { newIds, newRequestId, newTimedId } from "./random.ts";
import { seededRandom } from "./seeded.ts";

describe("newIds", () => {
  it("creates unique identifiers with a common first half, which differs from call to call", () => {
    const random = seededRandom(1);
    const [some, others] = [newIds(random, "key", 5_000), newIds(random, "key", 5_000)];
    assert.equal(new Set([...some, ...others]).size, 10_000);
    for (const id of some) assert.match(id, /^key_[0-9A-Za-z]{16}$/);
    for (const ids of [some, others]) assert.equal(new Set(ids.map((id) => id.slice(0, 12))).size, 1);
    assert.notEqual(some[0]!.slice(0, 12), others[0]!.slice(0, 12));
  });

  it("returns an empty list for a count of 0", () => {
    assert.deepEqual(newIds(seededRandom(1), "pool", 0), []);
  });
});

describe("newTimedId", () => {
  it("creates unique identifiers in the order of their times", () => {
    const random = seededRandom(1);
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 62 ** 7 - 1 }), { minLength: 2 }), (times) => {
        const ids = times.map((at) => newTimedId(random, "hold", at));
        for (const id of ids) assert.match(id, /^hold_[0-9A-Za-z]{16}$/);
        const inTurn = ids.map((id) => id.slice(0, 12));
        const byTime = times.toSorted((a, b) => a - b).map((at) => newTimedId(random, "hold", at).slice(0, 12));
        assert.deepEqual(inTurn.sort(), byTime);
      }),
    );
    const ids = Array.from({ length: 10_000 }, () => newTimedId(random, "hold", 1_768_478_400_000));
    assert.equal(new Set(ids).size, 10_000);
  });
});

describe("newRequestId", () => {
  it("creates unique identifiers, with each character equally often at each place", () => {
    const random = seededRandom(1);
    const ids = Array.from({ length: 62_000 }, () => newRequestId(random));
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^req_[0-9A-Za-z]{9}$/);
    for (let at = 4; at < 13; at++) {
      const counts = Object.values(Object.groupBy(ids, (id) => id[at]!)).map((of) => of!.length);
      assert.equal(counts.length, 62);
      // 1,000 are expected, with a standard deviation of 32.
      for (const times of counts) assert.ok(times > 800 && times < 1_200, `${times} at ${at}`);
    }
  });
});
