import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fold } from "./search.ts";

/** Includes letters whose lower case depends on their position or is longer than they are. */
const text = fc.string({
  unit: fc.oneof(fc.constantFrom("Σ", "σ", "ς", "Α", "İ", "ẞ", "ß", "ǅ", "\u0307", "a", "A", " ", "-"), fc.string()),
  maxLength: 12,
});

describe("fold", () => {
  it("maps each part of a text to a part of the mapped text", () => {
    fc.assert(
      fc.property(text, text, text, (before, part, after) => {
        assert(fold(before + part + after).includes(fold(part)));
      }),
    );
  });

  it("returns the same text for texts that differ only in case", () => {
    for (const [one, other] of [
      ["Docs.READ", "docs.read"],
      ["ÄRZTE", "ärzte"],
      ["ΟΔΟΣ", "οδος"],
      ["ΟΔΟΣ", "οδοσ"],
      ["ПРИВЕТ", "привет"],
    ] as const) {
      assert.equal(fold(one), fold(other));
    }
    assert.notEqual(fold("Ä"), fold("A"));
  });
});
