import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { BloomFilter } from "./bloom-filter.ts";

describe("BloomFilter", () => {
  it("contains all added texts, in every filter of the same state", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 80 })), fc.integer({ min: 1, max: 10_000 }), (texts, bytes) => {
        const filter = BloomFilter.ofBytes(bytes);
        const sharing = new BloomFilter(filter.state);
        for (const text of texts) filter.add(text);
        assert(texts.every((text) => filter.mayHave(text) && sharing.mayHave(text)));
      }),
    );
  });

  it("has few false positives, and none while it is empty", () => {
    const filter = BloomFilter.ofBytes(64_000);
    assert.equal(filter.state.buffer.byteLength, 32_768);
    const others = Array.from({ length: 20_000 }, (_, i) => `other ${i}`);
    const falsePositives = () => others.filter((text) => filter.mayHave(text)).length;
    assert.equal(falsePositives(), 0);
    // 16 bits per member.
    for (let i = 0; i < 16_384; i++) filter.add(`member ${i}`);
    assert(falsePositives() > 0 && falsePositives() < others.length / 200, `${falsePositives()}`);
  });

  it("has different false positives under another key", () => {
    const falsePositives = () => {
      const filter = BloomFilter.ofBytes(64);
      for (let i = 0; i < 100; i++) filter.add(`member ${i}`);
      return Array.from({ length: 2_000 }, (_, i) => i).filter((i) => filter.mayHave(`other ${i}`));
    };
    assert.notDeepEqual(falsePositives(), falsePositives());
  });
});
