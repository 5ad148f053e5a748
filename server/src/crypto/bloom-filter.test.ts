import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { BloomFilter } from "./bloom-filter.ts";

describe("BloomFilter", () => {
  it("has whatever was added, in every filter of the same state", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 80 })), fc.integer({ min: 1, max: 10_000 }), (texts, bytes) => {
        const filter = BloomFilter.ofBytes(bytes);
        const sharing = new BloomFilter(filter.state);
        for (const text of texts) filter.add(text);
        assert(texts.every((text) => filter.mayHave(text) && sharing.mayHave(text)));
      }),
    );
  });

  it("takes few for members that are none, and none while it is empty", () => {
    const filter = BloomFilter.ofBytes(64_000);
    assert.equal(filter.state.buffer.byteLength, 32_768);
    const strangers = Array.from({ length: 20_000 }, (_, i) => `stranger ${i}`);
    const passing = () => strangers.filter((text) => filter.mayHave(text)).length;
    assert.equal(passing(), 0);
    // 16 bits for each.
    for (let i = 0; i < 16_384; i++) filter.add(`member ${i}`);
    assert(passing() > 0 && passing() < strangers.length / 200, `${passing()}`);
  });

  it("cannot be aimed at: another key, other texts", () => {
    const passing = () => {
      const filter = BloomFilter.ofBytes(64);
      for (let i = 0; i < 100; i++) filter.add(`member ${i}`);
      return Array.from({ length: 2_000 }, (_, i) => i).filter((i) => filter.mayHave(`stranger ${i}`));
    };
    assert.notDeepEqual(passing(), passing());
  });
});
