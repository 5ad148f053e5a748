/**
 * The contract's checklist, B8: each numbered item is told by a test whose title ends in its number, as in
 * `(B8.3.21, A2.15)` or, shorter, `(21)`.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tests = ["server/src/**/*.test.ts", "server/test/**/*.test.ts"];

/** The last item of each section, in order: B8.1 has 1 to 12, B8.2 13 to 17, and so on. */
const lastItems = [12, 17, 34, 49, 55, 61, 72, 74];

/** What Part A has decided otherwise as a whole (A8). */
const fallen = [1, 2, 45, 47, 70, 73, 74];

/** What tests say of themselves in parentheses at the end of their titles. */
function* referencesIn(source: string): Generator<string> {
  for (const [, references] of source.matchAll(
    /^\s*(?:it|describe|describeOnStores)\(\s*["'`].*\(([^()]+)\)["'`],/gm,
  )) {
    for (const reference of references!.split(",")) yield reference.trim();
  }
}

function sectionOf(item: number): number {
  return lastItems.findIndex((last) => item <= last) + 1;
}

describe("the checklist", () => {
  const told = new Set<number>();
  const misplaced: string[] = [];
  for (const file of globSync(tests, { cwd: root })) {
    for (const reference of referencesIn(readFileSync(join(root, file), "utf8"))) {
      const [, section, item] = /^(?:B8\.(\d+)\.)?(\d+)$/.exec(reference) ?? [];
      if (item === undefined) continue;
      told.add(Number(item));
      if (section !== undefined && sectionOf(Number(item)) !== Number(section)) misplaced.push(`${file}: ${reference}`);
    }
  }

  it("has a test of every item that stands", () => {
    const items = Array.from({ length: lastItems.at(-1)! }, (_, i) => i + 1);
    const missing = items.filter((item) => !told.has(item) && !fallen.includes(item));
    assert.deepEqual(
      missing.map((item) => `B8.${sectionOf(item)}.${item}`),
      [],
    );
  });

  it("is referred to by numbers that exist", () => {
    assert.deepEqual(misplaced, []);
  });
});
