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
    const filter = BloomFilter.ofBytes(1_000_000);
    const { byteLength } = filter.state.buffer;
    assert(byteLength > 999_900 && byteLength <= 1_000_000, `${byteLength}`);
    const others = Array.from({ length: 40_000 }, (_, i) => `other ${i}`);
    const falsePositives = () => others.filter((text) => filter.mayHave(text)).length;
    assert.equal(falsePositives(), 0);
    let members = 0;
    const addTo = (count: number) => {
      while (members < count) filter.add(`member ${members++}`);
    };
    // The first layers are full, and the last is about to be used.
    addTo(107_000);
    assert(falsePositives() < others.length / 1_000, `${falsePositives()}`);
    // 16 bits of the buffer per member.
    addTo(500_000);
    assert(falsePositives() > 0 && falsePositives() < others.length / 250, `${falsePositives()}`);
  });

  it("uses its memory as texts are added, and none for texts that it has", () => {
    const filter = BloomFilter.ofBytes(1_000_000);
    const words = new Int32Array(filter.state.buffer);
    const used = () => 4 * (words.findLastIndex((word) => word !== 0) + 1);
    filter.add("member 0");
    assert(used() <= 70_000);
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 20_000; i++) filter.add(`member ${i}`);
    }
    assert(used() <= 70_000, `${used()}`);
    for (let i = 0; i < 60_000; i++) filter.add(`member ${i}`);
    assert(used() > 70_000 && used() <= 350_000, `${used()}`);
  });

  it("has a text that another thread adds to a new layer before it is told of it", () => {
    const filter = BloomFilter.ofBytes(1_000_000);
    const reader = new BloomFilter(filter.state);
    for (let i = 0; i < 130_000; i++) {
      filter.add(`member ${i}`);
      if (!reader.mayHave(`member ${i}`)) assert.fail(`${i}`);
    }
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
