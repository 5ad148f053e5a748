import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { declaredCommand } from "../../../cli/src/declared.ts";
import type { Schema } from "../../src/api/schema.ts";
import { bodyOf, bodyOfJson, fieldsOf, textsOf } from "../../src/reader/call-fields.ts";
import { examplesOf } from "../../src/reader/examples.ts";
import type { OpenApi } from "./reference.ts";

const document: OpenApi = JSON.parse(readFileSync(new URL("../../../api/openapi.json", import.meta.url), "utf8"));

describe("the form of an operation", () => {
  it("gives the body of each example back", () => {
    let count = 0;
    for (const { post } of Object.values(document.paths)) {
      const { schema, examples } = post.requestBody.content["application/json"];
      const fields = fieldsOf(schema as Schema);
      if (!fields) continue;
      for (const { value } of Object.values(examples)) {
        count++;
        assert.deepEqual(bodyOf(fields, textsOf(fields, value)), { body: value }, post.operationId);
      }
    }
    assert.ok(count > 100, String(count));
  });

  it("leaves out empty fields, and says which ones cannot be sent", () => {
    const fields = fieldsOf({
      type: "object",
      required: ["name"],
      properties: {
        limit: { type: "integer" },
        name: { type: "string" },
        meta: { type: "object" },
        on: { type: "boolean" },
      },
    })!;
    assert.deepEqual(
      fields.map(({ name, kind }) => [name, kind]),
      [
        ["name", "text"],
        ["limit", "integer"],
        ["meta", "json"],
        ["on", "choice"],
      ],
    );
    assert.deepEqual(bodyOf(fields, { name: "a", limit: " ", meta: "", on: "" }), { body: { name: "a" } });
    assert.deepEqual(bodyOf(fields, { name: "5", limit: "5", meta: '{"a":1}', on: "false" }), {
      body: { name: "5", limit: 5, meta: { a: 1 }, on: false },
    });
    assert.deepEqual(bodyOf(fields, { name: "a", limit: "many", meta: "{" }), {
      problems: { limit: "Enter a number.", meta: "This is no JSON." },
    });
    assert.equal(fieldsOf({ type: "array", items: {} }), undefined);
  });

  it("takes a body as JSON only in the kind that the operation has, and every such body has examples", () => {
    for (const text of ["null", "5", '"a"', "true", "[]"]) {
      assert.deepEqual(bodyOfJson(text, false), { problem: "The body of this operation is an object." }, text);
    }
    assert.deepEqual(bodyOfJson("{}", true), { problem: "The body of this operation is a list." });
    assert.deepEqual(bodyOfJson("{", true), { problem: "This is no JSON." });
    assert.deepEqual(bodyOfJson("[null]", true), { body: [null] });

    const odd = [null, 5, "x", true, [], [null], {}, [{ a: null }]];
    for (const { post } of Object.values(document.paths)) {
      const { schema } = post.requestBody.content["application/json"];
      const members = Object.keys(schema.properties ?? schema.items?.properties ?? {});
      const objects = [{}, ...members.flatMap((member) => odd.map((value) => ({ [member]: value })))];
      const bodies = fieldsOf(schema as Schema)
        ? objects
        : [[], ...odd.map((one) => [one]), ...objects.map((one) => [one])];
      for (const body of bodies) {
        const { CLI } = examplesOf(declaredCommand(post.operationId), body, "http://localhost");
        assert.ok(CLI.startsWith("latchkey "), `${post.operationId}: ${JSON.stringify(body)}`);
      }
    }
  });
});
