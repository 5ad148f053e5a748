import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { Generations } from "./generations.ts";
import { NegativeCache } from "./negative-cache.ts";

const LIFE = 30_000;

function openAbsences(bytesMax = 24_000) {
  const clock = new SimulatedClock(0);
  const generations = new Generations();
  const absences = new NegativeCache({ clock, generations, bytesMax });
  const tell = (name: string, generation: number, tags: readonly string[]) =>
    absences.add(
      name,
      generation,
      tags.map((tag) => generations.slot(tag)),
    );
  return { clock, generations, absences, tell };
}

describe("NegativeCache", () => {
  it("know what they were told, and nothing else, for thirty seconds", () => {
    const { clock, generations, absences, tell } = openAbsences();
    assert.equal(absences.has("a"), false);
    tell("a", generations.newest(), ["a"]);
    assert.deepEqual([absences.has("a"), absences.has("b"), absences.has("")], [true, false, false]);
    clock.advance(LIFE - 1);
    assert.equal(absences.has("a"), true);
    clock.advance(1);
    assert.equal(absences.has("a"), false);
  });

  it("are outdated by a change to either tag, and by one that came while the question was under way", () => {
    const { generations, absences, tell } = openAbsences();
    for (const changed of ["own", "workspace"]) {
      tell("name", generations.newest(), ["own", "workspace"]);
      generations.bump(["another"]);
      assert.equal(absences.has("name"), true);
      generations.bump([changed]);
      assert.equal(absences.has("name"), false);
    }
    const asked = generations.newest();
    generations.bump(["own"]);
    tell("name", asked, ["own"]);
    assert.equal(absences.has("name"), false);
  });

  it("take the place of a name that is told again, and then of what is over or the oldest", () => {
    const places = 8;
    const { clock, generations, absences, tell } = openAbsences(28 * places);
    const add = (name: string) => {
      tell(name, generations.newest(), [name]);
      clock.advance(1);
    };
    const names = Array.from({ length: places }, (_, i) => `name ${i}`);
    for (const name of names) add(name);
    add(names[0]!);
    assert(names.every((name) => absences.has(name)));
    add("one more");
    // The first one was told again since.
    assert.deepEqual(
      names.filter((name) => !absences.has(name)),
      [names[1]],
    );
    assert.equal(absences.has("one more"), true);
  });

  it("refuse more tags than they can watch", () => {
    const { absences, tell } = openAbsences();
    assert.throws(() => tell("a", 0, ["one", "two", "three"]), /3 tags/);
    assert.equal(absences.has("a"), false);
  });
});
