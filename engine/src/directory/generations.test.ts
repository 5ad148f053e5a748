import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Generations, newGenerationsBuffer } from "./generations.ts";

const unchanged = (generations: Generations, tag: string, generation: number) =>
  generations.areUnchanged([generations.slot(tag)], generation);

describe("Generations", () => {
  it("outdate records with a changed tag, and no others", () => {
    const generations = new Generations();
    const before = generations.newest();
    generations.bump(["key_1", "api_1"]);
    assert(!unchanged(generations, "key_1", before));
    assert(!unchanged(generations, "api_1", before));
    assert(unchanged(generations, "key_2", before));
    assert(unchanged(generations, "key_1", generations.newest()));
  });

  it("outdate everything on bumpAll", () => {
    const generations = new Generations();
    const before = generations.newest();
    generations.bumpAll();
    assert(!unchanged(generations, "unused tag", before));
    assert(unchanged(generations, "unused tag", generations.newest()));
  });

  it("are shared by all threads with the same buffer", () => {
    const buffer = newGenerationsBuffer();
    const [here, there] = [new Generations(buffer), new Generations(buffer)];
    const before = here.newest();
    there.bump(["key_1"]);
    assert(!unchanged(here, "key_1", before));
    assert.equal(here.newest(), there.newest());
  });

  it("stay correct when the numbers wrap", () => {
    const buffer = newGenerationsBuffer();
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

  it("outdate everything once when slots lag by 2^30 changes", () => {
    const buffer = newGenerationsBuffer();
    const generations = new Generations(buffer);
    const before = generations.newest();
    generations.bump(["old"]);
    // The state after 2^30 changes.
    new Int32Array(buffer)[0] = before + 2 ** 30;
    generations.bump(["key_1"]);
    assert(!unchanged(generations, "never changed", before));
    const later = generations.newest();
    assert(unchanged(generations, "never changed", later));
    // Each change raises one slot, so none looks newer than the newest generation after the wrap.
    for (let i = 0; i < 65_536; i++) generations.bump([]);
    new Int32Array(buffer)[0] = 2 ** 31 - 70_000;
    for (let i = 0; i < 140_000; i++) generations.bump([]);
    assert(generations.newest() < 0);
    assert(unchanged(generations, "never changed", generations.newest()));
    assert(unchanged(generations, "old", generations.newest()));
  });

  it("put names chosen to collide under a known hash into different slots", () => {
    // FNV-1a over 16 bits has no key, so colliding names are easy to find.
    const fnv = (tag: string) => {
      let mixed = 0x811c9dc5;
      for (let i = 0; i < tag.length; i++) mixed = Math.imul(mixed ^ tag.charCodeAt(i), 0x01000193);
      return (mixed ^ (mixed >>> 16)) & 0xffff;
    };
    const victim = "ws_1:login";
    const chosen: string[] = [];
    for (let i = 0; chosen.length < 20; i++) if (fnv(`ws_2:${i}`) === fnv(victim)) chosen.push(`ws_2:${i}`);
    const generations = new Generations();
    const before = generations.newest();
    generations.bump(chosen);
    assert(unchanged(generations, victim, before));
    const others = Array.from({ length: 8 }, () => new Generations().slot(victim));
    assert(new Set(others).size > 1, "all processes have the same slots");
  });

  it("outdate few other records by chance, however many are cached", () => {
    const ENTRIES = 200_000;
    const CHANGES = 1_000;
    const generations = new Generations(newGenerationsBuffer(ENTRIES));
    const before = generations.newest();
    for (let i = 0; i < CHANGES; i++) generations.bump([`changed ${i}`]);
    let outdated = 0;
    for (let i = 0; i < ENTRIES; i++) if (!unchanged(generations, `key_${i}`, before)) outdated++;
    assert(outdated < CHANGES, `${outdated} of ${ENTRIES} were outdated by ${CHANGES} changes of other records`);
  });

  it("never report a record as valid that changed after it was read", () => {
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
