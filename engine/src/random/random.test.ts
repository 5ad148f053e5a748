import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { neighbouringIds, newIds, newRequestId } from "./random.ts";
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

describe("neighbouringIds", () => {
  it("creates unique identifiers, some hundred of which have a common first half", () => {
    const next = neighbouringIds(seededRandom(1), "hold");
    const ids = Array.from({ length: 10_000 }, next);
    assert.equal(new Set(ids).size, 10_000);
    for (const id of ids) assert.match(id, /^hold_[0-9A-Za-z]{16}$/);
    const halves = new Set(ids.map((id) => id.slice(0, 13)));
    assert(halves.size > 10 && halves.size < 100, `${halves.size} first halves`);
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
