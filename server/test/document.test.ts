/** The OpenAPI document is valid, and its schemas accept the bodies that the service accepts. */
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import fc from "fast-check";
import { openApiDocument } from "../src/platform/rpc/document.ts";
import { type Example, type Operation, problemsOf } from "../src/platform/rpc/operation.ts";
import { problems } from "../src/platform/rpc/problems.ts";
import { namespaces, operations } from "../src/service/operations.ts";

const printed = openApiDocument({ operations, namespaces, version: "1", publicUrl: "" });
// biome-ignore lint/suspicious/noExplicitAny: the validator checks the shape better than a type would.
const document = JSON.parse(JSON.stringify(printed)) as any;

/** Bodies per operation. */
const RUNS = 60;

describe("the OpenAPI document", () => {
  it("is valid", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document));
    assert(valid, JSON.stringify(errors));
    assert.equal(validator.version, "3.1");
  });

  it("has every operation, in its namespace", () => {
    assert.deepEqual(
      Object.keys(document.paths),
      operations.map(({ name }) => `/v2/${name}`),
    );
    const spaces = new Set(operations.map(({ name }) => name.split(".")[0]));
    assert.deepEqual([...spaces].sort(), Object.keys(namespaces).sort());
    assert.deepEqual(
      document.tags.map(({ name }: { name: string }) => name),
      Object.keys(namespaces),
    );
  });

  it("starts with absolute addresses if there is a public URL", () => {
    const text = JSON.stringify(
      openApiDocument({ operations, namespaces, version: "1", publicUrl: "https://keys.example" }),
    );
    assert(text.includes('"url":"https://keys.example"'));
    assert(!/[("]\/errors\//.test(text));
  });

  for (const operation of operations) {
    describe(operation.name, () => describeOperation(operation));
  }
});

function describeOperation(operation: Operation): void {
  const { name, declaration } = operation;
  const described = document.paths[`/v2/${name}`].post;
  const content = described.requestBody.content["application/json"];
  let accepts: ValidateFunction;
  before(() => {
    accepts = compile(content.schema);
  });

  it("lists each status and each problem that may occur", () => {
    const codes = problemsOf(operation);
    for (const code of codes) {
      const { status, type } = problems[code];
      assert(resolve(described.responses[status]).description.includes(`/errors/${type})`), code);
    }
    const statuses = new Set(["200", ...codes.map((code) => String(problems[code].status))]);
    assert.deepEqual(Object.keys(described.responses).sort(), [...statuses].sort());
  });

  it("has examples that fit its schemas", () => {
    const rejected = Object.entries<{ value: unknown }>(content["x-refused-examples"] ?? {});
    assert.equal(rejected.length, declaration.examples.filter((example: Example) => "problem" in example).length);
    for (const [example, { value }] of Object.entries<{ value: unknown }>(content.examples)) {
      assert(accepts(value), `${example}: ${JSON.stringify(accepts.errors)}`);
    }
    for (const [status, response] of Object.entries(described.responses)) {
      const [media] = Object.values<{ schema: object; examples: Record<string, { value: unknown }> }>(
        resolve(response).content,
      );
      const fits = compile(media!.schema);
      const examples = Object.entries(media!.examples);
      assert(examples.length > 0, status);
      for (const [example, { value }] of examples) {
        assert(fits(value), `${status} ${example}: ${JSON.stringify(fits.errors)}`);
      }
    }
  });

  // An operation without fields has no body to vary.
  if (declaration.input.shape && Object.keys(declaration.input.shape).length === 0) return;
  it("accepts the bodies that the service accepts", () => {
    let [accepted, rejected] = [0, 0];
    const bodies = likeness(content.schema, declaration.examples);
    fc.assert(
      fc.property(bodies, (body) => {
        const result = declaration.input.safeParse(body);
        const documented = accepts(body);
        if (result.success) {
          accepted++;
          assert(documented, `rejected ${JSON.stringify(body)}: ${JSON.stringify(accepts.errors)}`);
        } else {
          rejected++;
          const speaks = result.error.issues.filter(
            (issue: Issue) => !isBeyondSchemas(issue) && !isInOpenObject(content.schema, issue.path),
          );
          // The document may describe a part of what schemas cannot express exactly.
          assert(!documented || speaks.length === 0, `${JSON.stringify(body)}: ${JSON.stringify(speaks)}`);
        }
      }),
      { numRuns: RUNS },
    );
    assert(accepted > 0 && rejected > 0, `${accepted} accepted and ${rejected} rejected bodies are too few`);
  });
}

type Issue = { code: string; path: readonly PropertyKey[]; format?: string; params?: { keyword?: string } };

/** Rules that JSON Schema cannot express: sizes in bytes, depths, unique names, and characters of a text. */
function isBeyondSchemas({ code, format, params }: Issue): boolean {
  return (
    (code === "custom" && !["not", "oneOf"].includes(params?.keyword ?? "")) ||
    (code === "invalid_format" && format === "text")
  );
}

/** Whether a place is inside of an object of which the document says no more than that it is one. */
function isInOpenObject(schema: Shape, path: readonly PropertyKey[]): boolean {
  let shape: Shape | undefined = schema;
  for (const segment of path) {
    if (shape === undefined) return false;
    shape = typeof segment === "number" ? shape.items : shape.properties?.[String(segment)];
    if (shape?.type === "object" && !shape.properties) return true;
  }
  return false;
}

function compile(schema: object): ValidateFunction {
  return new Ajv2020({ strict: false, validateFormats: false }).compile({ ...schema, components: document.components });
}

// biome-ignore lint/suspicious/noExplicitAny: see above.
function resolve(response: any): any {
  return response.$ref ? document.components.responses[response.$ref.split("/").at(-1)] : response;
}

interface Shape {
  type?: string | string[];
  anyOf?: Shape[];
  enum?: unknown[];
  properties?: Record<string, Shape>;
  items?: Shape;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  maxItems?: number;
}

/** Variations of the examples' bodies. */
function likeness(schema: Shape, examples: readonly Example[]): fc.Arbitrary<unknown> {
  const inputs = examples.map(({ input }) => input as object);
  return fc.oneof(
    { weight: 20, arbitrary: schema.items ? lists(schema, inputs.flat()) : objects(schema, inputs) },
    { weight: 1, arbitrary: fc.constantFrom(null, [], "text", 1, {}) },
  );
}

function lists({ items, maxItems = 3 }: Shape, entries: readonly object[]): fc.Arbitrary<unknown> {
  const entry = objects(items!, entries);
  return fc.oneof(
    { weight: 6, arbitrary: fc.array(entry, { maxLength: 3 }) },
    entry.map((value) => Array(maxItems + 1).fill(value)),
  );
}

/** Variations of these objects: up to three members change, to values at their bounds and beyond. */
function objects(schema: Shape, near: readonly object[]): fc.Arbitrary<unknown> {
  const members = Object.entries(schema.properties ?? {});
  const change = fc.oneof(
    ...members.map(([name, shape]) => values(shape).map((value) => ({ name, value }))),
    fc.constantFrom(...members.map(([name]) => ({ name, value: undefined }))),
    fc.constant({ name: "unheardOf", value: 1 }),
  );
  return fc.tuple(fc.constantFrom(...near), fc.array(change, { maxLength: 3 })).map(([one, changes]) => {
    const body = { ...one, ...Object.fromEntries(changes.map(({ name, value }) => [name, value])) };
    return JSON.parse(JSON.stringify(body));
  });
}

const foreign: fc.Arbitrary<unknown> = fc.constantFrom(null, true, 1.5, -1, "", "🔑", [], [[]], {}, { a: {} });

function values(shape: Shape): fc.Arbitrary<unknown> {
  const { anyOf, type, enum: listed, properties, items, maxItems = 3 } = shape;
  if (anyOf) return fc.oneof(...anyOf.map(values), fc.constantFrom("127.0.0.1", "::1", "2001:db8::1", "1.2.3", "::g"));
  if (listed) return fc.oneof(fc.constantFrom(...listed), foreign);
  const types = Array.isArray(type) ? type : [type];
  if (types.includes("string"))
    return fc.oneof({ weight: 4, arbitrary: texts(shape) }, { weight: 1, arbitrary: foreign });
  if (types.includes("integer")) {
    const { minimum = 0, maximum = 10 } = shape;
    const borders = [minimum, maximum].flatMap((border) => [border - 1, border, border + 1]);
    return fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...borders) }, { weight: 1, arbitrary: foreign });
  }
  if (types.includes("boolean")) return fc.oneof(fc.boolean(), foreign);
  if (types.includes("array") && items) {
    const many = values(items).map((value) => Array(maxItems + 1).fill(value));
    return fc.oneof({ weight: 6, arbitrary: fc.array(values(items), { maxLength: 3 }) }, many, foreign);
  }
  if (properties) {
    const record = fc.record(Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, values(of)])), {
      requiredKeys: [],
    });
    return fc.oneof({ weight: 6, arbitrary: record }, foreign);
  }
  return fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), foreign);
}

/** Texts with lengths at the bounds, in characters of one code unit and of two, and texts of any characters. */
function texts({ minLength = 0, maxLength = 10 }: Shape): fc.Arbitrary<string> {
  const lengths = [minLength - 1, minLength, maxLength, maxLength + 1].filter((length) => length >= 0);
  return fc.oneof(
    fc
      .constantFrom(...lengths)
      .chain((length) => fc.constantFrom("a", "🔑", "*").map((letter) => letter.repeat(length))),
    fc.string({ unit: "binary", maxLength: maxLength + 1 }),
    fc.constantFrom("documents.read", "a b", "ä", "nul\0", "half \ud83d", "line\nbreak\n"),
  );
}
