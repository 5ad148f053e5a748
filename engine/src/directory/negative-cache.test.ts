import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { Generations } from "./generations.ts";
import { NegativeCache } from "./negative-cache.ts";

const LIFE = 30_000;

function openCache(bytesMax = 24_000) {
  const clock = new SimulatedClock(0);
  const generations = new Generations();
  const cache = new NegativeCache({ clock, generations, bytesMax });
  const add = (name: string, generation: number, tags: readonly string[]) =>
    cache.add(
      name,
      generation,
      tags.map((tag) => generations.slot(tag)),
    );
  return { clock, generations, cache, add };
}

describe("NegativeCache", () => {
  it("holds the names that were added, and no others, for 30 seconds", () => {
    const { clock, generations, cache, add } = openCache();
    assert.equal(cache.has("a"), false);
    add("a", generations.newest(), ["a"]);
    assert.deepEqual([cache.has("a"), cache.has("b"), cache.has("")], [true, false, false]);
    clock.advance(LIFE - 1);
    assert.equal(cache.has("a"), true);
    clock.advance(1);
    assert.equal(cache.has("a"), false);
  });

  it("drops a name when one of its tags changes, also during the look-up", () => {
    const { generations, cache, add } = openCache();
    for (const changed of ["own", "workspace"]) {
      add("name", generations.newest(), ["own", "workspace"]);
      generations.bump(["another"]);
      assert.equal(cache.has("name"), true);
      generations.bump([changed]);
      assert.equal(cache.has("name"), false);
    }
    const asked = generations.newest();
    generations.bump(["own"]);
    add("name", asked, ["own"]);
    assert.equal(cache.has("name"), false);
  });

  it("replaces the entry of the same name, else an expired entry or the oldest", () => {
    const slots = 8;
    const { clock, generations, cache, add } = openCache(28 * slots);
    const addNext = (name: string) => {
      add(name, generations.newest(), [name]);
      clock.advance(1);
    };
    const names = Array.from({ length: slots }, (_, i) => `name ${i}`);
    for (const name of names) addNext(name);
    addNext(names[0]!);
    assert(names.every((name) => cache.has(name)));
    addNext("one more");
    // The first one was added again since.
    assert.deepEqual(
      names.filter((name) => !cache.has(name)),
      [names[1]],
    );
    assert.equal(cache.has("one more"), true);
  });

  it("rejects entries with too many tags", () => {
    const { cache, add } = openCache();
    assert.throws(() => add("a", 0, ["one", "two", "three"]), /3 tags/);
    assert.equal(cache.has("a"), false);
  });
});
