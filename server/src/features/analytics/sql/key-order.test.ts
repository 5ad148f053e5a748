import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compare } from "./compare.ts";
import { inKeyOrder } from "./key-order.ts";
import { mergeSorted } from "./subject-sums.ts";

const few = (...values: readonly string[]) => fc.constantFrom(...values);
const count = fc.record({
  time: fc.constantFrom(0, 60_000),
  workspaceId: few("ws_1", "ws_2", ""),
  subject: fc.oneof(
    fc.tuple(few("key_", "api_", "id_", "k"), fc.string({ maxLength: 7 })).map((parts) => parts.join("")),
    few("key_", "key_abcdefgh", "key_abcdefgi", "key_é", "key_i"),
  ),
  apiId: few("api_1"),
  identityId: few("", "id_1"),
  outcome: few("VALID", "EXPIRED"),
  count: fc.constant(1),
  amount: fc.constant(0),
  latencyUs: fc.nat(),
});
type Count = Parameters<typeof inKeyOrder>[0][number];
const keys = ({ workspaceId, subject, identityId, outcome, time }: Count) =>
  [workspaceId, subject, identityId, outcome, `${time}`.padStart(6)] as const;

describe("the order of counts in a segment or run", () => {
  it("is that of their primary key, and of several lists as one", () => {
    fc.assert(
      fc.property(fc.array(count, { maxLength: 60 }), fc.array(count, { maxLength: 60 }), (some, others) => {
        const byKeys = (a: Count, b: Count) => keys(a).reduce((order, key, i) => order || compare(key, keys(b)[i]!), 0);
        assert.deepEqual(inKeyOrder(some).map(keys), some.toSorted(byKeys).map(keys));
        const places = (counts: readonly Count[]) => counts.map((one) => keys(one).slice(0, 2));
        const all = [...some, ...others].toSorted(byKeys);
        assert.deepEqual(places(mergeSorted([inKeyOrder(some), [], inKeyOrder(others)])), places(all));
      }),
    );
  });
});
