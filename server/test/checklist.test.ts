/**
 * docs/contract.md has the numbered rules of the API. Each rule has a test whose title ends in its number, as in
 * `… (rule 21)` or `… (rules 21, 22)`.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tests = [
  "engine/src/**/*.test.ts",
  "cli/src/**/*.test.ts",
  "server/src/**/*.test.ts",
  "server/test/**/*.test.ts",
];

/** The numbers of the rules in the contract. */
function rulesOf(contract: string): number[] {
  return [...contract.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
}

/** The numbers of rules at the ends of test titles. */
function* rulesCitedIn(source: string): Generator<number> {
  for (const [, numbers] of source.matchAll(
    /^\s*(?:it|describe|describeOnStores)\(\s*["'`].*\(rules? ([\d, ]+)\)["'`],/gm,
  )) {
    for (const number of numbers!.split(",")) yield Number(number);
  }
}

describe("the contract", () => {
  const rules = rulesOf(readFileSync(join(root, "docs/contract.md"), "utf8"));
  const cited = new Set(
    globSync(tests, { cwd: root }).flatMap((file) => [...rulesCitedIn(readFileSync(join(root, file), "utf8"))]),
  );

  it("numbers each rule once", () => {
    assert.deepEqual(
      rules.filter((rule, i) => rules.indexOf(rule) !== i),
      [],
    );
  });

  it("has at least the original 67 rules", () => assert.ok(rules.length >= 67));

  it("has a test for every rule", () => {
    assert.deepEqual(
      rules.filter((rule) => !cited.has(rule)),
      [],
    );
  });

  it("has every rule that a test cites", () => {
    assert.deepEqual(
      [...cited].filter((rule) => !rules.includes(rule)),
      [],
    );
  });
});
