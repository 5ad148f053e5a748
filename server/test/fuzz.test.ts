/**
 * Thousands of calls of every operation with bodies generated from the schemas of the document: most are valid and many
 * are not, and they name existing and missing resources. None may end in a 5xx, each reply must be one that the
 * operation declares (the harness checks it), and no body that its schema forbids may be accepted.
 *
 * A run follows from its seed: `FUZZ_SEED=7 FUZZ_CALLS=200000 npm test -- fuzz`.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import fc from "fast-check";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { openApiDocument } from "../src/platform/rpc/document.ts";
import { namesOf } from "../src/platform/rpc/operation.ts";
import { namespaces, operations as ofApi, replicaOperations } from "../src/service/operations.ts";
import { TestServer } from "./harness.ts";

const SEED = Number(process.env.FUZZ_SEED ?? 1);
const CALLS = Number(process.env.FUZZ_CALLS ?? 20_000);
const CALLS_AT_ONCE = 32;
/** The number of names of existing resources that are kept; the newest replace the oldest. */
const KNOWN_MAX = 40;

interface Shape {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Shape[];
  properties?: Record<string, Shape>;
  required?: string[];
  additionalProperties?: boolean | Shape;
  items?: Shape;
  prefixItems?: Shape[];
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
}

const operations = [...ofApi, ...replicaOperations];
const document = JSON.parse(
  JSON.stringify(
    openApiDocument({ operations, namespaces: { ...namespaces, replica: "Edges." }, version: "1", publicUrl: "" }),
  ),
) as { paths: Record<string, { post: { requestBody: { content: Record<string, { schema: Shape }> } } }> };
const ajv = new Ajv2020({ strict: false, validateFormats: false });

/** Stands for the name of an existing resource until the call is made. */
const placeholder = (property: string) => `\u{1F3F7}${property}`;
const PLACEHOLDER = /^\u{1F3F7}(.*)$/u;

/** By property: the properties of answers whose values it refers to. */
const referring: Record<string, string[]> = {
  apiId: ["apiId"],
  keyId: ["keyId"],
  key: ["key"],
  identity: ["externalId", "identityId"],
  externalId: ["externalId"],
  permission: ["slug", "permissionId"],
  permissions: ["slug"],
  role: ["name", "roleId"],
  roles: ["name"],
  roleId: ["roleId"],
  namespace: ["namespace", "namespaceId"],
  identifier: ["identifier"],
  rootKeyId: ["rootKeyId"],
  workspaceId: ["workspaceId"],
  migrationId: ["migrationId"],
  name: ["name"],
  slug: ["slug"],
  hash: ["hash"],
  cursor: ["cursor"],
};

const texts = (shape: Shape): fc.Arbitrary<string> => {
  const { minLength = 0, maxLength = minLength + 40 } = shape;
  const bounds = { minLength, maxLength: Math.min(maxLength, minLength + 40) };
  if (shape.pattern && !shape.pattern.includes("u0000")) {
    const fitting = fc.stringMatching(new RegExp(shape.pattern, "u"), { maxLength: Math.max(bounds.maxLength, 130) });
    return shape.format?.startsWith("ip")
      ? fc.constantFrom("10.0.0.1", "::1", "203.0.113.7", "2001:db8::1")
      : fc.oneof({ weight: 9, arbitrary: fitting }, fc.constant("a".repeat(Math.min(maxLength, 300))));
  }
  return fc.oneof(
    { weight: 6, arbitrary: fc.string({ ...bounds, unit: fc.constantFrom(..."abcXYZ019_-.:/* \t%") }) },
    { weight: 2, arbitrary: fc.string({ ...bounds, unit: "grapheme" }) },
    { weight: 1, arbitrary: fc.string({ ...bounds, unit: fc.constantFrom("\0", "\ud800", "\u202e", "'", '"', "😀") }) },
    { weight: 1, arbitrary: fc.constant("é".repeat(Math.min(maxLength, 600))) },
  );
};

const integers = ({ minimum = -10, maximum = 2 ** 53 - 1 }: Shape): fc.Arbitrary<number> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: minimum, max: Math.min(maximum, minimum + 100) }) },
    fc.maxSafeInteger().map((n) => Math.min(maximum, Math.max(minimum, n))),
    fc.constantFrom(minimum, maximum),
  );

/** JSON that matches the shape. */
function fitting(shape: Shape, property = ""): fc.Arbitrary<unknown> {
  if (shape.enum) return fc.constantFrom(...shape.enum);
  if (shape.anyOf) return fc.oneof(...shape.anyOf.map((one) => fitting(one, property)));
  if (Array.isArray(shape.type)) {
    return fc.oneof(...shape.type.map((type) => fitting({ ...shape, type }, property)));
  }
  switch (shape.type) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
      return integers(shape);
    case "string": {
      const names = referring[property];
      const invented = texts(shape);
      return names
        ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...names).map(placeholder) }, invented)
        : invented;
    }
    case "array": {
      if (shape.prefixItems) return fc.tuple(...shape.prefixItems.map((item) => fitting(item)));
      const { minItems = 0, maxItems = minItems + 4, items = {} } = shape;
      const bounds = { minLength: minItems, maxLength: Math.min(maxItems, minItems + 4) };
      return fc.array(fitting(items, property), bounds);
    }
    case "object": {
      const { properties = {}, required = [] } = shape;
      const members = Object.entries(properties).map(([name, child]) => [name, fitting(child, name)] as const);
      const known = fc.record(Object.fromEntries(members), { requiredKeys: required });
      if (members.length > 0) return known;
      return fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
    }
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

/** The same with a change at one place. */
const mutated = (body: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(
      body,
      fc.noBias(fc.nat()),
      fc.noBias(fc.nat(3)),
      fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom(...unusualValues)),
    )
    .map(([value, at, how, other]) => {
      const copy = structuredClone(value);
      const places = placesIn({ body: copy }, []);
      const { holder, name } = places[at % places.length]!;
      const held = holder as Record<string, unknown>;
      if (how === 0 && at % places.length > 0 && !Array.isArray(holder)) delete held[name];
      else if (how === 1 && typeof held[name] === "object" && held[name] !== null) {
        Object.assign(held[name], Array.isArray(held[name]) ? { length: held[name].length + 1 } : { unheardOf: other });
      } else held[name] = other;
      return places[0]!.holder.body;
    });

const unusualValues = [
  null,
  "",
  " ",
  "null",
  "[object Object]",
  "a".repeat(600),
  "\0",
  "\ud800",
  "__proto__",
  "../../x",
  "%00",
  -1,
  0,
  0.5,
  1e21,
  2 ** 53,
  -(2 ** 53),
  4_102_444_800_001,
  true,
  [],
  {},
  [[]],
  [null],
  { length: 1 },
];

function placesIn(holder: Record<string, unknown>, found: { holder: Record<string, unknown>; name: string }[]) {
  for (const [name, value] of Object.entries(holder)) {
    found.push({ holder, name });
    if (typeof value === "object" && value !== null) placesIn(value as Record<string, unknown>, found);
  }
  return found;
}

interface Call {
  name: string;
  fits: ValidateFunction;
  body: unknown;
  /** The body as text, if it differs from the output of JSON.stringify. */
  rewrite?: (text: string) => string;
  idempotencyKey?: string;
}

/** Ways to write a body, valid and invalid. */
const rewrites: ((text: string) => string)[] = [
  (text) => text.slice(0, -1),
  (text) => text.replace(/(\d)([,}\]])/, "$1.0$2"),
  (text) => text.replace(/(\d)([,}\]])/, "$1e0$2"),
  (text) => `${text.slice(0, -1)},"name":"twice","name":"twice"}`,
  (text) => `\ufeff${text}`,
  (text) => ` \n${text}\t`,
  (text) => text.replaceAll('"', "'"),
  (text) => text.replace(/(\d)([,}\]])/, "$1e400$2"),
  (text) => text.replace(/(\d)([,}\]])/, "$19007199254740993$2"),
  (text) => text.replace("{", '{"__proto__":{},'),
  (text) => text.replace(/("\w+":(?:\d+|"[^"\\]*"))/, "$1,$1"),
  (text) => text.replace(/("\w+":")/, "$1\\ud800"),
  (text) => text.replace(/"(\w)/, (_, letter) => `"\\u00${letter.charCodeAt(0).toString(16)}`),
];

const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 19, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

function plan(): Call[] {
  const random = seededRandom(SEED);
  const names = operations.flatMap((operation) => namesOf(operation).map((name) => [name, operation.name] as const));
  const perName = Math.ceil(CALLS / names.length);
  const calls = names.flatMap(([name, own], i) => {
    const { schema } = document.paths[`/v2/${own}`]!.post.requestBody.content["application/json"]!;
    const fits = ajv.compile(schema);
    const valid = fitting(schema);
    const bodies = fc.oneof({ weight: 3, arbitrary: valid }, { weight: 2, arbitrary: mutated(valid) });
    const more = fc.record({
      rewrite: rarely(fc.constantFrom(...rewrites)),
      idempotencyKey: rarely(fc.constantFrom("a", "b", "c")),
    });
    const drawn = fc.sample(fc.tuple(bodies, more), { numRuns: perName, seed: SEED + i });
    return drawn.map(
      ([body, { rewrite, idempotencyKey }]): Call => ({
        name,
        fits,
        body,
        ...(rewrite && { rewrite }),
        ...(idempotencyKey && { idempotencyKey }),
      }),
    );
  });
  // In any order, so that operations find and delete what others created.
  for (let i = calls.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [calls[i], calls[j]] = [calls[j]!, calls[i]!];
  }
  return calls;
}

describe("calls generated from the schemas", () => {
  const server = new TestServer();
  const random = seededRandom(SEED + 1);
  const known = new Map<string, string[]>();
  before(() => server.open());
  after(() => server.close());

  it(`are answered as declared, ${CALLS} of them with seed ${SEED}`, async () => {
    keepNames({ apiId: await server.createApi(), migrationId: "migration" });
    const counts = { accepted: 0, rejected: 0, forbidden: 0 };
    const calls = plan().values();
    const caller = async () => {
      for (const call of calls) await make(call, counts);
    };
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, caller));
    // A run without successes would prove nothing.
    assert(counts.accepted > CALLS / 10, JSON.stringify(counts));
    assert(counts.forbidden > CALLS / 10, JSON.stringify(counts));
  });

  async function make({ name, fits, body, rewrite, idempotencyKey }: Call, counts: Record<string, number>) {
    const filled = fill(body);
    const text = JSON.stringify(filled);
    const raw = text === undefined ? "" : rewrite ? rewrite(text) : text;
    const isAllowed = fits(read(raw));
    const asked = server.call(name, undefined, {
      raw,
      headers: { "idempotency-key": idempotencyKey },
      ...(random.below(10) === 0 && { from: "203.0.113.9" }),
    });
    // An edge with an unknown position waits for its turn.
    const reply = name === "replica.listChanges" ? await whileTimePasses(asked) : await asked;
    const description = `${name} ${raw.slice(0, 2_000)} → ${JSON.stringify(reply.body).slice(0, 1_000)}`;
    // An API can have an upstream verifier that nobody runs.
    const isAboutUpstream = reply.status === 503 && /upstream verifier/.test(reply.body.error.detail);
    assert(reply.status < 500 || isAboutUpstream, `${description} ${JSON.stringify(server.logged.at(-1))}`);
    if (!isAllowed) {
      assert.equal(reply.problem, "invalid_input", description);
      counts.forbidden!++;
    } else if (reply.status === 200) {
      counts.accepted!++;
      if (typeof filled === "object" && filled !== null) keepNames(filled);
      keepNames(reply.body.data);
    } else counts.rejected!++;
  }

  /** Lets time pass, but none while the database works: a node that reads for too long is not current. */
  async function whileTimePasses<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    void work.then(over, over);
    while (!isOver) {
      await setImmediate();
      await server.pass(1);
    }
    return work;
  }

  /** The value of a text, or a value that no schema allows if it is not JSON. */
  function read(raw: string): unknown {
    try {
      return JSON.parse(raw);
    } catch {
      return undefined;
    }
  }

  /** Keeps names of existing resources from answers and accepted bodies. */
  function keepNames(value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (typeof member !== "string") keepNames(member);
      // The run needs its own workspace and root key, so no call may delete or disable them.
      else if (member !== server.workspaceId && member !== server.service.issued!.rootKeyId) {
        const names = known.get(name) ?? [];
        known.set(name, names);
        if (!names.includes(member)) names.push(member);
        if (names.length > KNOWN_MAX) names.shift();
      }
    }
  }

  /** The body with names of existing resources instead of placeholders. */
  function fill(value: unknown): unknown {
    if (typeof value === "string") {
      const name = PLACEHOLDER.exec(value)?.[1];
      if (name === undefined) return value;
      const names = known.get(name) ?? [];
      return names.length === 0 ? `never_${random.below(1_000)}` : names[random.below(names.length)];
    }
    if (Array.isArray(value)) return value.map(fill);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fill(member)]));
  }
});
