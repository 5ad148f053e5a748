import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compileOverrides, matchesPattern, type Override, Overrides } from "./override-patterns.ts";

/** The definition of a match, as a regular expression. */
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
  .map((list) => list.map((one, i): Override => override({ id: `rlor_${i}`, ...one })));

function override(some: Pick<Override, "id" | "identifier" | "createdAt">): Override {
  return { limit: 5, duration: 60_000, mode: null, shadow: null, ...some };
}

const compile = async (list: readonly Override[]) => new Overrides(await compileOverrides(list));

const set = (...identifiers: string[]) =>
  compile(identifiers.map((identifier, i) => override({ id: `rlor_${i}`, identifier, createdAt: i })));

describe("a pattern", () => {
  it("equals the definition", () => {
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
  it("are found as defined", async () => {
    await fc.assert(
      fc.asyncProperty(overrides, fc.array(identifier, { minLength: 1, maxLength: 20 }), async (list, identifiers) => {
        const compiled = await compile(list);
        for (const one of [...identifiers, ...list.map((override) => override.identifier)]) {
          assert.deepEqual(compiled.find(one), findPlainly(list, one));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("do not depend on their order in the input", async () => {
    await fc.assert(
      fc.asyncProperty(overrides, identifier, fc.infiniteStream(fc.nat()), async (list, one, chance) => {
        const shuffled = list
          .map((override) => ({ override, place: chance.next().value }))
          .toSorted((a, b) => a.place - b.place)
          .map(({ override }) => override);
        assert.equal((await compile(shuffled)).find(one)?.id, (await compile(list)).find(one)?.id);
      }),
    );
  });

  it("prefer the exact pattern, then the most literal characters, then the oldest", async () => {
    const compiled = await set("*", "user_*", "user_1*", "*_12", "user_12");
    assert.equal(compiled.find("user_12")?.identifier, "user_12");
    assert.equal(compiled.find("user_123")?.identifier, "user_1*");
    assert.equal(compiled.find("user_2")?.identifier, "user_*");
    assert.equal(compiled.find("other_12")?.identifier, "*_12");
    assert.equal(compiled.find("other")?.identifier, "*");
    assert.equal((await set("a*", "*a")).find("a")?.identifier, "a*");
    assert.equal((await set("*a", "a*")).find("a")?.identifier, "*a");
    // Four characters of two code units each count as four characters.
    assert.equal((await set("*😀😀", "abc*")).find("abc😀😀")?.identifier, "abc*");
  });

  it("are found by their own pattern", async () => {
    assert.equal((await set("a*", "a**")).find("a*")?.identifier, "a*");
  });

  it("return nothing for an empty list", async () => {
    assert.equal((await set()).find("a"), undefined);
    assert.equal((await set("b")).find("a"), undefined);
    assert.equal((await set("b*")).find("a"), undefined);
  });

  it("match long literals", async () => {
    const long = "x".repeat(300);
    const compiled = await set(`${long}a*`, `${long}b*`, `*${long}`);
    assert.equal(compiled.find(`${long}b1`)?.identifier, `${long}b*`);
    assert.equal(compiled.find(`a${long}`)?.identifier, `*${long}`);
    assert.equal(compiled.find(`${long}c`), undefined);
  });

  it("are compiled in slices that yield to the event loop", async () => {
    let turns = 0;
    let over = false;
    const countLoop = () => {
      turns++;
      if (!over) setImmediate(countLoop);
    };
    setImmediate(countLoop);
    await set(...Array.from({ length: 5_000 }, (_, i) => (i % 2 === 0 ? `user_${i}` : `org_${i}_*`)));
    over = true;
    assert(turns >= 15, `${turns} turns`);
  });

  it("can be copied between threads", async () => {
    const compiled = await compileOverrides(
      ["user_1", "user_*", "*_x", "a*b", "a*b*c"].map((identifier, i) =>
        override({ id: `rlor_${i}`, identifier, createdAt: i }),
      ),
    );
    const copied = new Overrides(structuredClone(compiled));
    for (const one of ["user_1", "user_2", "_x", "ab", "a.b.c", "z"]) {
      assert.deepEqual(copied.find(one), new Overrides(compiled).find(one));
    }
  });

  describe("cost little in the worst case", () => {
    const RUNS = 200;
    /** A generous bound for a busy machine; the figure is printed. */
    const MAX_US = 2_000;
    const a = (length: number) => "a".repeat(length);
    const sets: Record<string, { identifiers: string[]; looked: string }> = {
      "prefixes and suffixes of one text in all lengths": {
        identifiers: Array.from({ length: 10_000 }, (_, i) => `${a(i % 256)}*${a(Math.floor(i / 256))}b`),
        looked: a(512),
      },
      "pairs that all match": {
        identifiers: Array.from({ length: 10_000 }, (_, i) => `${a(1 + (i % 256))}*${a(1 + Math.floor(i / 256))}`),
        looked: a(512),
      },
      "prefixes that nearly match": {
        identifiers: Array.from({ length: 10_000 }, (_, i) => `${a(100 + (i % 400))}${i}*`),
        looked: a(512),
      },
      "patterns with eight asterisks that fail at the last segment": {
        identifiers: Array.from({ length: 100 }, (_, i) => `*${`${a(20 + (i % 30))}*`.repeat(6)}${a(40 + i)}b*`),
        looked: a(512),
      },
      "patterns with eight asterisks and single letters": {
        identifiers: Array.from({ length: 100 }, (_, i) => `a*${"ab*".repeat(6)}b${i}*c`),
        looked: `${"ab".repeat(255)}ac`,
      },
    };
    for (const [what, { identifiers, looked }] of Object.entries(sets)) {
      it(what, async (t) => {
        const compiled = await set(...new Set(identifiers));
        for (let i = 0; i < RUNS; i++) compiled.find(looked);
        const before = process.threadCpuUsage();
        for (let i = 0; i < RUNS; i++) compiled.find(looked);
        const { user, system } = process.threadCpuUsage(before);
        const each = (user + system) / RUNS;
        t.diagnostic(`${each.toFixed(0)} µs of CPU for each of ${RUNS} look-ups among ${compiled.size} overrides`);
        assert(each < MAX_US, `${each} µs`);
      });
    }
  });
});
