import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compilePermissions, holds, intersection } from "./permissions.ts";

/** Slugs of few different characters, so that they often share prefixes. */
const slug = fc.string({ unit: fc.constantFrom("a", "b", ".", ":", "/", "*", "-"), minLength: 1, maxLength: 7 });

function holdsNaively(granted: readonly string[], asked: string): boolean {
  return granted.some(
    (slug) =>
      slug === asked ||
      slug === "*" ||
      ([".*", ":*", "/*"].some((ending) => slug.endsWith(ending)) &&
        asked.startsWith(slug.slice(0, -1)) &&
        asked.length >= slug.length),
  );
}

describe("holds", () => {
  const table: [granted: string[], asked: string, held: boolean][] = [
    [[], "documents.read", false],
    [["documents.read"], "documents.read", true],
    [["documents.read"], "documents.write", false],
    [["documents.read"], "Documents.read", false],
    [["documents.read"], "documents.read.own", false],
    [["documents.read.own"], "documents.read", false],

    [["documents.*"], "documents.read", true],
    [["documents.*"], "documents.read.own", true],
    [["documents.*"], "documents.read:own", true],
    [["documents.*"], "documents.*", true],
    [["documents.*"], "documents.*.own", true],
    [["documents.*"], "documents", false],
    [["documents.*"], "documents.", false],
    [["documents.*"], "documents:read", false],
    [["documents.*"], "documentsXread", false],
    [["documents.*"], "mydocuments.read", false],
    [["documents.*"], "my.documents.read", false],
    [["documents.*"], "*", false],
    [["team:*"], "team:a", true],
    [["files/*"], "files/a/b", true],
    [["a.b:*"], "a.b:c", true],
    [["a.b:*"], "a.c:c", false],
    [["a-*"], "a-b", false],
    [["a_*"], "a_b", false],

    [["*"], "anything.at:all", true],
    [["*"], "*", true],

    [["a*"], "ab", false],
    [["a*"], "a*", true],
    [["*a"], "ba", false],
    [["**"], "b", false],
    [["a.**"], "a.b", false],
    [["a.b*"], "a.bc", false],
    [["a.*.c"], "a.b.c", false],
    [["a.*.c"], "a.*.c", true],
    [["a.*.*"], "a.b.c", false],
    [["a.*.*"], "a.*.c", true],
    [["*.a"], "b.a", false],

    [["documents.read"], "documents.*", false],
    [["documents.read"], "*", false],
    [["x", "y.*", "documents.read"], "y.z", true],
  ];
  for (const [granted, asked, held] of table) {
    it(`${JSON.stringify(granted)} ${held ? "holds" : "does not hold"} ${asked}`, () => {
      assert.equal(holds(compilePermissions(granted), asked), held);
    });
  }

  it("equals a check of one grant at a time", () => {
    fc.assert(
      fc.property(fc.array(slug, { maxLength: 5 }), slug, (granted, asked) => {
        assert.equal(holds(compilePermissions(granted), asked), holdsNaively(granted, asked));
      }),
      { numRuns: 5_000 },
    );
  });

  it("is independent of later changes of the list", () => {
    const granted = ["a"];
    const permissions = compilePermissions(granted);
    granted.push("*");
    assert.ok(!holds(permissions, "b"));
  });
});

describe("intersection", () => {
  it("includes exactly what both include", () => {
    const slugs = fc.array(slug, { maxLength: 8 });
    fc.assert(
      fc.property(slugs, slugs, fc.array(slug, { minLength: 1, maxLength: 20 }), (a, b, asked) => {
        const [one, other] = [compilePermissions(a), compilePermissions(b)];
        const common = intersection(one, other);
        for (const each of [...asked, ...a, ...b]) {
          assert.equal(holds(common, each), holds(one, each) && holds(other, each), each);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
