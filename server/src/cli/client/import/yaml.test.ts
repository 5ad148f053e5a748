import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseYaml } from "./yaml.ts";

describe("a YAML document", () => {
  it("is parsed", async () => {
    assert.deepEqual(await parseYaml("a:\n- b: ~\n  c: 'it''s'\n", "f"), { a: [{ b: null, c: "it's" }] });
    assert.equal(await parseYaml("# nothing\n", "f"), undefined);
  });

  it("is refused, with the line and without its text, when it is no YAML or would grow", async () => {
    for (const [text, message] of [
      ["a: 1\nb: [secret", /^f is not YAML: see line 2\.$/],
      ["a: &x [1]\nb: *x\n", /^f has a YAML alias at line 2\. /],
      ["a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", /^f has a YAML alias at line 2\. /],
      ["a: 1\nb: 2\na: 3\n", /^f has a name twice at line 3\.$/],
      ["a: 1\n---\nb: 2\n", /^f has several YAML documents\./],
      [`x:\n${"[".repeat(100_000)}`, /^f is nested too deeply at line 2\.$/],
      ["{a: ".repeat(100_000), /^f is nested too deeply at line 1\.$/],
      ["- ".repeat(100_000), /^f is nested too deeply at line 1\.$/],
      [
        Array.from({ length: 500 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"),
        /^f is nested too deeply at line \d+\.$/,
      ],
    ] as const) {
      await assert.rejects(parseYaml(text, "f"), { name: "CommandError", message });
    }
  });

  it("is parsed in time when a map has many keys", async () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => `k${i}: ${i}`);
    assert.equal(Object.keys((await parseYaml(keys.join("\n"), "f")) as object).length, 20_000);
  });
});
