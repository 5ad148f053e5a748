import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fold } from "./search.ts";

/** Of letters whose small form depends on what stands around them, or is longer than they are, and of all others. */
const text = fc.string({
  unit: fc.oneof(fc.constantFrom("Σ", "σ", "ς", "Α", "İ", "ẞ", "ß", "ǅ", "\u0307", "a", "A", " ", "-"), fc.string()),
  maxLength: 12,
});

describe("fold", () => {
  it("finds what stands in a text, wherever it stands", () => {
    fc.assert(
      fc.property(text, text, text, (before, part, after) => {
        assert(fold(before + part + after).includes(fold(part)));
      }),
    );
  });

  it("makes spellings equal that differ by capitals", () => {
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
