/**
 * Runs every example of the documentation against the service. Examples contain placeholders: identifiers, key strings,
 * times. Before an example, the first examples of the operations that create something run in order. Comparing their
 * documented answers with the real ones gives the values of the placeholders.
 */
import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { operations } from "../src/operations/index.ts";
import type { Example } from "../src/rpc/operation.ts";
import { problems } from "../src/rpc/problems.ts";
import { hasValidChecksum } from "../src/rules/key-string.ts";
import { openTestServer, TestServer } from "./harness.ts";

/** The operations that create the resources of the examples, in this order. */
const story = [
  "apis.createApi",
  "keys.createKey",
  "permissions.createPermission",
  "permissions.createRole",
  "identities.createIdentity",
  "ratelimits.limit",
  "ratelimits.setOverride",
  "rootKeys.createRootKey",
];

/** The same for operations that only the default workspace can call. */
const storyOfWorkspaces = ["workspaces.createWorkspace"];

/** The real values, by their placeholder in the documentation. */
type Learned = Map<string, string>;

const ID = /^[a-z]+_[0-9A-Za-z]{16}$/;

function examplesOf(name: string): readonly Example[] {
  return operations.find((operation) => operation.name === name)!.declaration.examples;
}

describe("examples", () => {
  const shared = new TestServer();
  before(() => shared.open());
  after(() => shared.close());
  // Each example has a workspace of its own, in which its resources do not exist yet.
  let [server, as] = [shared, ""];

  async function perform(name: string, example: Example, learned: Learned): Promise<void> {
    const reply = await server.call(name, substitute(example.input, learned), { as });
    const at = `${name}, "${example.summary}"`;
    if ("problem" in example) {
      assert.equal(reply.problem, example.problem, `${at}: ${JSON.stringify(reply.body)}`);
      assert.equal(reply.body.error.detail, example.detail ?? problems[example.problem].detail, at);
      return;
    }
    assert.equal(reply.status, 200, `${at}: ${JSON.stringify(reply.body)}`);
    compare(example.output, reply.body.data, learned, at);
    if ("pagination" in reply.body) assert.deepEqual(reply.body.pagination, { hasMore: false }, at);
  }

  /** Creates a workspace and runs the operations that come before this one. */
  async function begin(t: TestContext, name: string): Promise<Learned> {
    const learned: Learned = new Map();
    const steps = name.startsWith("workspaces.") ? storyOfWorkspaces : story;
    if (steps === storyOfWorkspaces) {
      server = await openTestServer();
      t.after(() => server.close());
      as = server.rootKey;
    } else {
      server = shared;
      as = (await server.workspace("examples")).key;
    }
    const told = steps.includes(name) ? steps.slice(0, steps.indexOf(name)) : steps;
    for (const step of told) await perform(step, examplesOf(step)[0]!, learned);
    if (name.startsWith("analytics.")) {
      await perform("keys.verifyKey", examplesOf("keys.verifyKey")[0]!, learned);
      await server.pass(1_000);
    }
    return learned;
  }

  for (const { name, declaration } of operations) {
    describe(name, () => {
      const examples: readonly Example[] = declaration.examples;
      it("begins with a success", () => assert("output" in (examples[0] ?? {})));
      it("names each example once", () => {
        const summaries = examples.map(({ summary }) => summary);
        assert.deepEqual(summaries, [...new Set(summaries)]);
      });
      for (const example of examples) {
        it(example.summary, async (t) => perform(name, example, await begin(t as TestContext, name)));
      }
    });
  }
});

/** Replaces the placeholders by the learned values. */
function substitute(value: unknown, learned: Learned): unknown {
  if (typeof value === "string") return learned.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => substitute(item, learned));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, substitute(member, learned)]));
}

/** Compares an answer with its documentation, and learns the values of placeholders. */
function compare(documented: unknown, actual: unknown, learned: Learned, at: string): void {
  if (Array.isArray(documented) && Array.isArray(actual)) {
    assert.equal(actual.length, documented.length, at);
    for (const [i, item] of documented.entries()) compare(item, actual[i], learned, `${at}[${i}]`);
  } else if (isObject(documented) && isObject(actual)) {
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(documented).sort(), at);
    for (const name of Object.keys(documented)) compare(documented[name], actual[name], learned, `${at}.${name}`);
  } else if (typeof documented === "string" && typeof actual === "string") {
    compareTexts(documented, actual, learned, at);
  } else if (/(At|\.reset)$/.test(at)) {
    assert(Number.isInteger(documented) && Number.isInteger(actual), at);
  } else {
    assert.deepEqual(actual, documented, at);
  }
}

function compareTexts(documented: string, actual: string, learned: Learned, at: string): void {
  const known = learned.get(documented);
  if (known !== undefined) {
    assert.equal(actual, known, at);
  } else if (ID.test(documented)) {
    assert.match(actual, ID, at);
    assert.equal(prefixOf(actual), prefixOf(documented), at);
    learned.set(documented, actual);
  } else if (hasValidChecksum(documented)) {
    assert(hasValidChecksum(actual), `${at} is not a key string: ${actual}`);
    assert.equal(prefixOf(actual), prefixOf(documented), at);
    learned.set(documented, actual);
  } else {
    // The start of a key string stands for as many characters of the real one.
    const [, key = actual] = [...learned].find(([placeholder]) => placeholder.startsWith(documented)) ?? [];
    assert.equal(actual, key === actual ? documented : key.slice(0, documented.length), at);
  }
}

function prefixOf(text: string): string {
  return text.slice(0, text.lastIndexOf("_") + 1);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
