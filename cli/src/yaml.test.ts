import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseYaml } from "./yaml.ts";

const imported = { aliasesMax: 0, isPublic: false, longNumbers: "text" } as const;
const declared = { aliasesMax: 2, isPublic: true, longNumbers: "error" } as const;

describe("a YAML document", () => {
  it("is parsed", async () => {
    assert.deepEqual(await parseYaml("a:\n- b: ~\n  c: 'it''s'\n", "f", imported), { a: [{ b: null, c: "it's" }] });
    assert.equal(await parseYaml("# nothing\n", "f", imported), undefined);
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
      await assert.rejects(parseYaml(text, "f", imported), { name: "CommandError", message });
    }
  });

  it("may have some aliases, and messages may say what is wrong, when it has no secrets", async () => {
    assert.deepEqual(await parseYaml("a: &x [1]\nb: *x\n", "f", declared), { a: [1], b: [1] });
    await assert.rejects(parseYaml("a: &a [x, x]\nb: &b [*a, *a]\n", "f", declared), {
      message: /^f cannot be read: /,
    });
    await assert.rejects(parseYaml("a: 1\nb: [x", "f", declared), {
      message: "f is not YAML.",
      details: ["Flow sequence in block collection must be sufficiently indented and end with a ] at line 2"],
    });
  });

  it("is parsed in time when a map has many keys", async () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => `k${i}: ${i}`);
    assert.equal(Object.keys((await parseYaml(keys.join("\n"), "f", imported)) as object).length, 20_000);
  });
});
