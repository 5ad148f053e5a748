import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { collect, growthOfOld } from "../../../server/test/garbage.ts";
import { TurnoverMap } from "./turnover-map.ts";

describe("a map whose entries come and go", () => {
  it("has the entries of a Map, in the same order", () => {
    const key = fc.integer({ min: 0, max: 12 });
    const step = fc.oneof(
      fc.record({ do: fc.constant("set" as const), key, value: fc.nat() }),
      fc.record({ do: fc.constant("delete" as const), key }),
      fc.record({ do: fc.constant("clear" as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const map = new TurnoverMap<number, number>();
        const model = new Map<number, number>();
        for (const one of steps) {
          if (one.do === "set") {
            map.set(one.key, one.value);
            model.set(one.key, one.value);
          } else if (one.do === "delete") {
            map.delete(one.key);
            model.delete(one.key);
          } else {
            map.clear();
            model.clear();
          }
          assert.equal(map.size, model.size);
          assert.deepEqual([...map.keys()], [...model.keys()]);
          assert.deepEqual([...map.values()], [...model.values()]);
          assert.deepEqual(map.get(3), model.get(3));
        }
      }),
    );
  });

  it("leaves nothing to a full collection of garbage", () => {
    for (const most of [1, 60, 1_000]) {
      const map = new TurnoverMap<number, number[]>();
      // Old, as that of a service is.
      for (let i = 0; i < 3; i++) collect();
      const count = 50_000;
      let added = 0;
      const kept = growthOfOld(() => {
        for (let i = 0; i < count; i++) {
          map.set(added, new Array(50).fill(i));
          map.delete(added - most);
          if (added++ % 10_000 === 0) collect({ type: "minor" });
        }
      });
      assert(kept < 2_000_000, `${kept} bytes of ${count * 400}, with ${most} at the same time`);
    }
  });
});
