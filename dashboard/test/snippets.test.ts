import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { OperationName } from "../src/api/client.ts";
import { snippetsOf } from "../src/api/snippets.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

describe("snippets", () => {
  it("call every operation by its name in the Go client", () => {
    const client = read("clients/go/operations.go");
    const names = read("api/operations.txt").match(/\b[a-zA-Z]+\.[a-zA-Z]+(?= {2}\[)/g) as OperationName[];
    assert.ok(names.length > 50, String(names.length));
    for (const name of names) {
      const { Go } = snippetsOf(name, {}, "http://localhost:3000");
      const [, input] = /var input latchkey\.(\w+)/.exec(Go)!;
      const [, scope, method] = /client\.(\w+)\.(\w+)\(ctx, input\)/.exec(Go)!;
      assert.match(
        client,
        new RegExp(`^func \\(o ${scope}Operations\\) ${method}\\(ctx context.Context, input ${input},`, "m"),
        name,
      );
    }
  });

  it("have a text as a literal of Go", () => {
    const go = (name: string) => snippetsOf("apis.createApi", { name }, "http://localhost:3000").Go;
    assert.ok(go("payments").includes('[]byte(`{\n  "name": "payments"\n}`)'));
    assert.ok(go("a`b").includes('[]byte("{\\n  \\"name\\": \\"a`b\\"\\n}")'));
  });
});
