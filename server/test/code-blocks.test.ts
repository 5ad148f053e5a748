import assert from "node:assert/strict";
import { it } from "node:test";
import { codeBlocks } from "./code-blocks.ts";

it("returns the code of a Markdown text with its language, line and heading", () => {
  const text = [
    "```sh",
    "npm start",
    "```",
    "# Guide",
    "## First `step` ##",
    "1. In a list:",
    "   ```ts app.ts title",
    "   if (a) {",
    "     b();",
    "",
    " c();",
    "   }",
    "   ```",
    "~~~~",
    "# no heading",
    "```",
    "~~~",
    "~~~~",
    "Code ```in a line``` is none.",
  ].join("\n");
  assert.deepEqual(codeBlocks(text), [
    { language: "sh", name: "", code: "npm start\n", line: 2, heading: "" },
    { language: "ts", name: "app.ts", code: "if (a) {\n  b();\n\nc();\n}\n", line: 8, heading: "First `step`" },
    { language: "", name: "", code: "# no heading\n```\n~~~\n", line: 15, heading: "First `step`" },
  ]);
});

it("rejects a block without an end", () => {
  assert.throws(() => codeBlocks("text\n```ts\ncode\n``\n"), /block of code at line 3 has no end/);
});
