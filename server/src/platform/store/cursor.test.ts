import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { readCursor, writeCursor } from "./cursor.ts";

const place = fc
  .tuple(
    fc.maxSafeNat().map((n) => n % 4_102_444_800_000),
    fc.string({ unit: fc.constantFrom(..."aZ09_"), minLength: 1, maxLength: 30 }),
    fc.option(
      fc.maxSafeNat().map((n) => instantAt(n % 4_102_444_800_000)),
      { nil: undefined },
    ),
  )
  .map(([at, id, begunAt]) => ({ at, id, ...(begunAt !== undefined && { begunAt }) }));

describe("a cursor", () => {
  it("returns its position, for its own list only", () => {
    fc.assert(
      fc.property(place, (given) => {
        const cursor = writeCursor("apis.listKeys", given);
        assert.match(cursor, /^[\w-]+\.[0-9a-z]+$/);
        assert.deepEqual(readCursor("apis.listKeys", cursor), given);
        assert.equal(readCursor("apis.listApis", cursor), undefined);
      }),
    );
  });

  it("does not parse from any other text, or after a change of one character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => assert.equal(readCursor("apis.listKeys", text), undefined)),
    );
    fc.assert(
      fc.property(place, fc.nat(), fc.constantFrom("a", "Z", ".", "="), (given, at, letter) => {
        const cursor = writeCursor("apis.listKeys", given);
        const i = at % cursor.length;
        const changed = cursor.slice(0, i) + letter + cursor.slice(i + 1);
        if (changed !== cursor) assert.equal(readCursor("apis.listKeys", changed), undefined);
      }),
    );
  });
});
