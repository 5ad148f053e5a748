import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Generations } from "./generations.ts";

const unchanged = (generations: Generations, tag: string, generation: number) =>
  generations.unchanged(Generations.slot(tag), generation);

describe("Generations", () => {
  it("outdate what carries a tag that changed, and nothing else", () => {
    const generations = new Generations();
    const before = generations.newest();
    generations.bump(["key_1", "api_1"]);
    assert(!unchanged(generations, "key_1", before));
    assert(!unchanged(generations, "api_1", before));
    assert(unchanged(generations, "key_2", before));
    assert(unchanged(generations, "key_1", generations.newest()));
  });

  it("outdate everything when asked to", () => {
    const generations = new Generations();
    const before = generations.newest();
    generations.bumpAll();
    assert(!unchanged(generations, "never heard of", before));
    assert(unchanged(generations, "never heard of", generations.newest()));
  });

  it("are shared by all threads that have the memory", () => {
    const buffer = new SharedArrayBuffer(4 * (65_536 + 1));
    const [here, there] = [new Generations(buffer), new Generations(buffer)];
    const before = here.newest();
    there.bump(["key_1"]);
    assert(!unchanged(here, "key_1", before));
    assert.equal(here.newest(), there.newest());
  });

  it("go on when the numbers wrap", () => {
    const buffer = new SharedArrayBuffer(4 * (65_536 + 1));
    new Int32Array(buffer).fill(2 ** 31 - 1);
    const generations = new Generations(buffer);
    const before = generations.newest();
    assert(unchanged(generations, "key_1", before));
    generations.bump(["key_1"]);
    assert(generations.newest() < 0);
    assert(!unchanged(generations, "key_1", before));
    assert(unchanged(generations, "key_2", before));
    assert(unchanged(generations, "key_1", generations.newest()));
  });

  it("never call something fresh that changed after it was read", () => {
    const tag = fc.integer({ min: 0, max: 20 }).map((n) => `tag_${n}`);
    fc.assert(
      fc.property(fc.array(fc.array(tag)), fc.nat(), tag, (changes, at, read) => {
        const generations = new Generations();
        let generation = generations.newest();
        const readAfter = changes.length === 0 ? 0 : at % changes.length;
        for (const [i, tags] of changes.entries()) {
          generations.bump(tags);
          if (i < readAfter) generation = generations.newest();
        }
        const changed = changes.slice(readAfter).flat().includes(read);
        if (changed) assert(!unchanged(generations, read, generation));
      }),
    );
  });
});
