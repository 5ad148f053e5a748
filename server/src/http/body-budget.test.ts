import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { BodyBudget } from "./body-budget.ts";

const MIB = 1024 * 1024;

/** A budget of 100 MiB: 25 for short bodies, 75 for long ones, of which a workspace may have 37.5. */
function openBudget() {
  const budget = new BodyBudget(100 * MIB, 10 * MIB);
  const givenUp: string[] = [];
  return { budget, givenUp, hold: (name = "") => budget.hold(() => givenUp.push(name)) };
}

describe("BodyBudget", () => {
  it("gives up the body that has been incomplete for the longest", () => {
    const { budget, givenUp, hold } = openBudget();
    const bodies = ["first", "second", "third"].map(hold);
    for (const body of bodies) assert(body.takeShort(8 * MIB));
    bodies[0]!.complete();
    assert(hold("fourth").takeShort(8 * MIB));
    assert.deepEqual(givenUp, ["second"]);
    assert.equal(budget.bytes, 24 * MIB);
    // What was given up may still be told that its connection is gone.
    bodies[1]!.release();
    assert.equal(budget.bytes, 24 * MIB);
    assert.equal(budget.refused, 1);
  });

  it("refuses a body for which there is no room although all others have arrived", () => {
    const { budget, givenUp, hold } = openBudget();
    const arrived = [1, 2, 3].map(() => hold());
    for (const body of arrived) {
      assert(body.takeShort(8 * MIB));
      body.complete();
    }
    assert.equal(hold("new").takeShort(8 * MIB), false);
    assert.deepEqual(givenUp, []);
    arrived[0]!.release();
    assert(hold("new").takeShort(8 * MIB));
    assert.equal(budget.refused, 1);
  });

  it("gives a workspace its share of long bodies, and leaves the rest to others", () => {
    const { budget, hold } = openBudget();
    const bodies = Array.from({ length: 10 }, () => hold());
    assert.equal(bodies.filter((body) => body.takeLong(10 * MIB, "ws_1")).length, 3);
    for (let i = 0; i < 3; i++) assert(hold().takeLong(10 * MIB, "ws_2"));
    assert(hold().takeLong(10 * MIB, "ws_3"));
    assert.equal(hold().takeLong(10 * MIB, "ws_3"), false);
    for (const body of bodies) body.release();
    assert.equal(budget.bytes, 40 * MIB);
    assert(hold().takeLong(10 * MIB, "ws_1"));
  });

  it("has room for one body of the largest size, however little memory there is", () => {
    assert(new BodyBudget(1, 10 * MIB).hold(() => {}).takeLong(10 * MIB, "ws_1"));
  });

  it("holds what it counts and no more than it may", () => {
    const step = fc.record({
      body: fc.nat(9),
      what: fc.constantFrom("short", "long", "complete", "release"),
      bytes: fc.integer({ min: 1, max: 12 * MIB }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const budget = new BodyBudget(100 * MIB, 10 * MIB);
        const held = new Map<number, number>();
        const bodies = Array.from({ length: 10 }, (_, i) => budget.hold(() => held.delete(i)));
        for (const { body, what, bytes } of steps) {
          const one = bodies[body]!;
          if (what === "complete") one.complete();
          else if (what === "release") {
            one.release();
            held.delete(body);
          } else if (what === "short" ? one.takeShort(bytes) : one.takeLong(bytes, `ws_${body % 3}`)) {
            held.set(body, (held.get(body) ?? 0) + bytes);
          }
          assert.equal(
            budget.bytes,
            [...held.values()].reduce((sum, one) => sum + one, 0),
          );
          assert(budget.bytes <= 100 * MIB);
        }
      }),
    );
  });
});
