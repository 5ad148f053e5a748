import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { nearestNames } from "./spelling.ts";

const names = ["expires", "apiId", "externalId", "name", "ratelimits", "meta"];

describe("spelling", () => {
  it("finds the name in spite of missing, superfluous, wrong and swapped characters", () => {
    for (const [unknown, name] of [
      ["exipres", "expires"],
      ["expire", "expires"],
      ["expiires", "expires"],
      ["axternalid", "externalId"],
      ["ratelimit", "ratelimits"],
      ["nmae", "name"],
    ] as const) {
      assert.deepEqual(nearestNames(unknown, names), [name], unknown);
    }
  });

  it("finds a name in other capitals or with separators before any other", () => {
    for (const unknown of ["api_id", "APIID", "api-id", "ApiId"]) {
      assert.deepEqual(nearestNames(unknown, ["apiIds", "apiId", "apiId2"]), ["apiId"], unknown);
    }
  });

  it("finds all names that are equally near", () => {
    assert.deepEqual(nearestNames("keyz", ["keys", "keyx", "lock"]), ["keys", "keyx"]);
  });

  it("finds nothing for what is another word, or too short to tell", () => {
    for (const unknown of ["", "x", "ab", "color", "unknownField", "__proto__", "exp"]) {
      assert.deepEqual(nearestNames(unknown, names), [], unknown);
    }
  });

  it("compares no name with one that is too long", () => {
    const untouched = {
      [Symbol.iterator](): Iterator<string> {
        throw new Error("A name was compared");
      },
    };
    assert.deepEqual(nearestNames("a".repeat(65), untouched), []);
  });

  it("recognizes every name with one mistake, and none with four", () => {
    const name = fc.string({ minLength: 12, maxLength: 40, unit: fc.constantFrom(..."abcdefgh") });
    fc.assert(
      fc.property(name, fc.nat(), fc.constantFrom("remove", "insert", "replace", "swap"), (given, at, mistake) => {
        const i = at % (given.length - 1);
        const [before, here, next, after] = [given.slice(0, i), given[i]!, given[i + 1]!, given.slice(i + 2)];
        const wrong = {
          remove: before + next + after,
          insert: `${before}x${here}${next}${after}`,
          replace: `${before}x${next}${after}`,
          swap: before + next + here + after,
        }[mistake];
        assert.deepEqual(nearestNames(wrong, [given]), [given]);
        assert.deepEqual(nearestNames(`xxxx${wrong.slice(4)}`, [`yyyy${wrong.slice(4)}`]), []);
      }),
    );
  });
});
