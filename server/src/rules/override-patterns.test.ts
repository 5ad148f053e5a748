import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { matchesPattern, type Override, Overrides } from "./override-patterns.ts";

/** The meaning of a pattern in the plainest words there are. */
function matchesPlainly(pattern: string, text: string): boolean {
  const source = pattern
    .split("*")
    .map((literal) => literal.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"))
    .join("[^\\n]*");
  return new RegExp(`^${source}$`, "u").test(text);
}

function findPlainly(overrides: readonly Override[], identifier: string): Override | undefined {
  const exact = overrides.find((override) => override.identifier === identifier);
  const literals = ({ identifier: pattern }: Override) => [...pattern.replaceAll("*", "")].length;
  return (
    exact ??
    overrides
      .filter((override) => override.identifier.includes("*") && matchesPlainly(override.identifier, identifier))
      .toSorted(
        (a, b) => literals(b) - literals(a) || a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
      )[0]
  );
}

// Few letters, so that patterns match, overlap and repeat.
const letters = (...alphabet: string[]) =>
  fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 12 }).filter((text) => text !== "");
const pattern = letters("a", "b", "*", "*", "\n", "😀", "A");
const identifier = letters("a", "a", "b", "b", "\n", "😀", "*", "A");
const overrides = fc
  .uniqueArray(pattern, { maxLength: 30 })
  .chain((identifiers) =>
    fc.tuple(...identifiers.map((one) => fc.record({ identifier: fc.constant(one), createdAt: fc.nat(3) }))),
  )
  .map((list) => list.map((override, i) => ({ id: `rlor_${i}`, ...override })));

const set = (...identifiers: string[]) =>
  new Overrides(identifiers.map((one, i) => ({ id: `rlor_${i}`, identifier: one, createdAt: i })));

describe("a pattern", () => {
  it("matches as plainly defined", () => {
    fc.assert(
      fc.property(pattern, identifier, (one, text) => {
        assert.equal(matchesPattern(one, text), matchesPlainly(one, text));
      }),
      { numRuns: 5_000 },
    );
  });

  for (const [one, matching, other] of [
    ["*", ["", "a", "a/b c"], ["a\nb"]],
    ["user_*", ["user_", "user_1"], ["auser_1", "User_1", "user"]],
    ["*@example.com", ["@example.com", "a@example.com"], ["a@example.com.", "a@exampleXcom"]],
    ["*mid*", ["mid", "amida"], ["mi", "MID"]],
    ["a*b*c", ["abc", "axbxbxc"], ["ab", "acb"]],
    ["a**c", ["ac", "abc"], ["a"]],
    ["a\n*", ["a\nb"], ["a\nb\n", "ab"]],
    ["[a-z]*", ["[a-z]1"], ["a1"]],
  ] as const) {
    it(`${JSON.stringify(one)} matches ${JSON.stringify(matching)} and not ${JSON.stringify(other)}`, () => {
      for (const text of matching) assert(matchesPattern(one, text), text);
      for (const text of other) assert(!matchesPattern(one, text), text);
    });
  }
});

describe("overrides", () => {
  it("are found as plainly defined", () => {
    fc.assert(
      fc.property(overrides, fc.array(identifier, { minLength: 1, maxLength: 20 }), (list, identifiers) => {
        const compiled = new Overrides(list);
        for (const one of [...identifiers, ...list.map((override) => override.identifier)]) {
          assert.equal(compiled.find(one)?.id, findPlainly(list, one)?.id);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("do not depend on the order in which they are given", () => {
    fc.assert(
      fc.property(overrides, identifier, fc.infiniteStream(fc.nat()), (list, one, chance) => {
        const shuffled = list
          .map((override) => ({ override, place: chance.next().value }))
          .toSorted((a, b) => a.place - b.place)
          .map(({ override }) => override);
        assert.equal(new Overrides(shuffled).find(one)?.id, new Overrides(list).find(one)?.id);
      }),
    );
  });

  it("prefer the exact one, then the most literal characters, then the oldest", () => {
    const compiled = set("*", "user_*", "user_1*", "*_12", "user_12");
    assert.equal(compiled.find("user_12")?.identifier, "user_12");
    assert.equal(compiled.find("user_123")?.identifier, "user_1*");
    assert.equal(compiled.find("user_2")?.identifier, "user_*");
    assert.equal(compiled.find("other_12")?.identifier, "*_12");
    assert.equal(compiled.find("other")?.identifier, "*");
    assert.equal(set("a*", "*a").find("a")?.identifier, "a*");
    assert.equal(set("*a", "a*").find("a")?.identifier, "*a");
    // Four letters that are each two code units are four characters.
    assert.equal(set("*😀😀", "abc*").find("abc😀😀")?.identifier, "abc*");
  });

  it("are found by the pattern itself", () => {
    assert.equal(set("a*", "a**").find("a*")?.identifier, "a*");
  });

  it("find nothing where there are none", () => {
    assert.equal(set().find("a"), undefined);
    assert.equal(set("b").find("a"), undefined);
    assert.equal(set("b*").find("a"), undefined);
  });

  it("look for long literals too", () => {
    const long = "x".repeat(300);
    const compiled = set(`${long}a*`, `${long}b*`, `*${long}`);
    assert.equal(compiled.find(`${long}b1`)?.identifier, `${long}b*`);
    assert.equal(compiled.find(`a${long}`)?.identifier, `*${long}`);
    assert.equal(compiled.find(`${long}c`), undefined);
  });
});
