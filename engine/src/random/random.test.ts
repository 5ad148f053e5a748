import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { neighbouringIds, newIds, requestIds } from "./random.ts";
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

describe("requestIds", () => {
  it("creates unique identifiers of requests", () => {
    const next = requestIds(seededRandom(1));
    const ids = Array.from({ length: 1_000 }, next);
    assert.equal(new Set(ids).size, 1_000);
    for (const id of ids) assert.match(id, /^req_[0-9A-Za-z]{9}$/);
  });
});
