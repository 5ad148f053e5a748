import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { BodyBudget } from "./body-budget.ts";

const MIB = 1024 * 1024;

/** A budget of 100 MiB: 25 for short bodies, 75 for long ones, of which a workspace may use 37.5. */
function openBudget() {
  const budget = new BodyBudget(100 * MIB, 10 * MIB);
  const dropped: string[] = [];
  return { budget, dropped, reserve: (name = "") => budget.reserve(() => dropped.push(name)) };
}

describe("BodyBudget", () => {
  it("drops the body that has been incomplete for the longest", () => {
    const { budget, dropped, reserve } = openBudget();
    const bodies = ["first", "second", "third"].map(reserve);
    for (const body of bodies) assert(body.takeShort(8 * MIB));
    bodies[0]!.complete();
    assert(reserve("fourth").takeShort(8 * MIB));
    assert.deepEqual(dropped, ["second"]);
    assert.equal(budget.bytes, 24 * MIB);
    // The connection of a dropped body closes later.
    bodies[1]!.release();
    assert.equal(budget.bytes, 24 * MIB);
    assert.equal(budget.rejected, 1);
  });

  it("rejects a body when there is no memory and all other bodies have arrived", () => {
    const { budget, dropped, reserve } = openBudget();
    const arrived = [1, 2, 3].map(() => reserve());
    for (const body of arrived) {
      assert(body.takeShort(8 * MIB));
      body.complete();
    }
    assert.equal(reserve("new").takeShort(8 * MIB), false);
    assert.deepEqual(dropped, []);
    arrived[0]!.release();
    assert(reserve("new").takeShort(8 * MIB));
    assert.equal(budget.rejected, 1);
  });

  it("gives a workspace its share of the memory for long bodies, and the rest to others", () => {
    const { budget, reserve } = openBudget();
    const bodies = Array.from({ length: 10 }, () => reserve());
    assert.equal(bodies.filter((body) => body.takeLong(10 * MIB, "ws_1")).length, 3);
    for (let i = 0; i < 3; i++) assert(reserve().takeLong(10 * MIB, "ws_2"));
    assert(reserve().takeLong(10 * MIB, "ws_3"));
    assert.equal(reserve().takeLong(10 * MIB, "ws_3"), false);
    for (const body of bodies) body.release();
    assert.equal(budget.bytes, 40 * MIB);
    assert(reserve().takeLong(10 * MIB, "ws_1"));
  });

  it("has memory for one body of the largest size, also with the smallest budget", () => {
    assert(new BodyBudget(1, 10 * MIB).reserve(() => {}).takeLong(10 * MIB, "ws_1"));
  });

  it("counts the bytes in use, and never exceeds the budget", () => {
    const step = fc.record({
      body: fc.nat(9),
      what: fc.constantFrom("short", "long", "complete", "release"),
      bytes: fc.integer({ min: 1, max: 12 * MIB }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const budget = new BodyBudget(100 * MIB, 10 * MIB);
        const used = new Map<number, number>();
        const bodies = Array.from({ length: 10 }, (_, i) => budget.reserve(() => used.delete(i)));
        for (const { body, what, bytes } of steps) {
          const one = bodies[body]!;
          if (what === "complete") one.complete();
          else if (what === "release") {
            one.release();
            used.delete(body);
          } else if (what === "short" ? one.takeShort(bytes) : one.takeLong(bytes, `ws_${body % 3}`)) {
            used.set(body, (used.get(body) ?? 0) + bytes);
          }
          assert.equal(
            budget.bytes,
            [...used.values()].reduce((sum, one) => sum + one, 0),
          );
          assert(budget.bytes <= 100 * MIB);
        }
      }),
    );
  });
});
