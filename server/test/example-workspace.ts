import assert from "node:assert/strict";
import { hasDerivedChecksum, hasValidChecksum } from "../../engine/src/rules/key-string.ts";
import { isPortalToken } from "../../engine/src/rules/session-token.ts";
import type { Example } from "../src/platform/rpc/operation.ts";
import { problems } from "../src/platform/rpc/problems.ts";
import { operations } from "../src/service/operations.ts";
import { TestServer } from "./harness.ts";

/** The operations that create the resources of the examples, in this order. */
const creatingOperations = [
  "apis.createApi",
  "keys.createKey",
  "permissions.createPermission",
  "permissions.createRole",
  "identities.createIdentity",
  "plans.createPlan",
  "budgets.createBudget",
  "ratelimits.limit",
  "ratelimits.setOverride",
  "ratelimits.setDescriptors",
  "rootKeys.createRootKey",
  "webhooks.createWebhook",
];

/** The same for operations that only the default workspace can call. */
const workspaceOperations = ["workspaces.createWorkspace"];

/** The real values, by their placeholder in the documentation. */
type Learned = Map<string, string>;

const ID = /^[a-z]+_[0-9A-Za-z]{16}$/;

export function examplesOf(name: string): readonly Example[] {
  return operations.find((operation) => operation.name === name)!.declaration.examples;
}

/** A workspace with the resources that the examples of an operation need. */
export class ExampleWorkspace {
  readonly server: TestServer;
  /** The root key of the workspace's administrator. */
  readonly as: string;
  readonly #learned: Learned = new Map();

  private constructor(server: TestServer, as: string) {
    this.server = server;
    this.as = as;
  }

  /** Creates a workspace of its own, and runs the first examples of the operations that come before this one. */
  static async before(
    name: string,
    shared: TestServer,
    t: { after(undo: () => Promise<void>): void },
  ): Promise<ExampleWorkspace> {
    const isAboutWorkspaces = name.startsWith("workspaces.");
    let workspace: ExampleWorkspace;
    if (isAboutWorkspaces) {
      // Like the shared one, so that it can be called in the same ways.
      const server = await new TestServer(shared.options).open();
      t.after(() => server.close());
      workspace = new ExampleWorkspace(server, server.rootKey);
    } else {
      workspace = new ExampleWorkspace(shared, (await shared.workspace("examples")).key);
    }
    const steps = isAboutWorkspaces ? workspaceOperations : creatingOperations;
    for (const step of steps.includes(name) ? steps.slice(0, steps.indexOf(name)) : steps) {
      await workspace.perform(step, examplesOf(step)[0]!);
    }
    if (name.startsWith("analytics.")) {
      await workspace.perform("keys.verifyKey", examplesOf("keys.verifyKey")[0]!);
      await workspace.server.pass(1_000);
    }
    if (name.startsWith("holds.")) {
      const holding = examplesOf("keys.verifyKey").find(({ input }) => "hold" in (input as object));
      await workspace.perform("keys.verifyKey", holding!);
    }
    if (name === "keys.restoreKey") await workspace.perform("keys.deleteKey", examplesOf("keys.deleteKey")[0]!);
    if (name === "keys.listDerivedKeys") await workspace.perform("keys.deriveKey", examplesOf("keys.deriveKey")[0]!);
    const setting = { "keys.getOwnKey": "ownKeyAccess", "keys.deriveOwnKey": "ownKeyDerivation" }[name];
    if (setting !== undefined) {
      const allowing = examplesOf("apis.updateApi").find(({ input }) => setting in (input as object));
      await workspace.perform("apis.updateApi", allowing!);
    }
    return workspace;
  }

  /** Makes the call of an example. Its answer must be as documented. */
  async perform(name: string, example: Example): Promise<void> {
    const reply = await this.server.call(name, this.substitute(example.input), { as: this.as });
    const at = `${name}, "${example.summary}"`;
    if ("problem" in example) {
      assert.equal(reply.problem, example.problem, `${at}: ${JSON.stringify(reply.body)}`);
      assert.equal(reply.body.error.detail, example.detail ?? problems[example.problem].detail, at);
      return;
    }
    assert.equal(reply.status, 200, `${at}: ${JSON.stringify(reply.body)}`);
    this.compare(example.output, reply.body.data, at);
    if ("pagination" in reply.body) assert.deepEqual(reply.body.pagination, { hasMore: false }, at);
  }

  /** Replaces the placeholders by the learned values. */
  substitute(value: unknown): unknown {
    return substitute(value, this.#learned);
  }

  /** Compares an answer with its documentation, and learns the values of placeholders. */
  compare(documented: unknown, actual: unknown, at: string): void {
    compare(documented, actual, this.#learned, at);
  }
}

function substitute(value: unknown, learned: Learned): unknown {
  if (typeof value === "string") return learned.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => substitute(item, learned));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, substitute(member, learned)]));
}

function compare(documented: unknown, actual: unknown, learned: Learned, at: string): void {
  if (Array.isArray(documented) && Array.isArray(actual)) {
    assert.equal(actual.length, documented.length, at);
    for (const [i, item] of documented.entries()) compare(item, actual[i], learned, `${at}[${i}]`);
  } else if (isObject(documented) && isObject(actual)) {
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(documented).sort(), at);
    for (const name of Object.keys(documented)) compare(documented[name], actual[name], learned, `${at}.${name}`);
  } else if (typeof documented === "string" && typeof actual === "string") {
    compareTexts(documented, actual, learned, at);
  } else if (/(At|\.reset)$|^keys\..*[dD]eriv.*\.expires$/.test(at)) {
    assert(Number.isInteger(documented) && Number.isInteger(actual), at);
  } else {
    assert.deepEqual(actual, documented, at);
  }
}

function compareTexts(written: string, actual: string, learned: Learned, at: string): void {
  // An address can contain a secret that stands before it.
  const secret = [...learned.keys()].find((one) => one.startsWith("lk_portal_") && written.endsWith(`#${one}`));
  const documented = secret === undefined ? written : written.replace(secret, learned.get(secret)!);
  const known = learned.get(documented);
  if (known !== undefined) {
    assert.equal(actual, known, at);
  } else if (ID.test(documented)) {
    assert.match(actual, ID, at);
    assert.equal(prefixOf(actual), prefixOf(documented), at);
    learned.set(documented, actual);
  } else if (documented.startsWith("whsec_")) {
    assert.match(actual, /^whsec_[0-9A-Za-z+/]{43}=$/, at);
    learned.set(documented, actual);
  } else if (isPortalToken(documented)) {
    // The documented one is signed with the key of another database.
    assert(isPortalToken(actual), `${at} is not the token of a session: ${actual}`);
    learned.set(documented, actual);
  } else if (hasValidChecksum(documented) || hasDerivedChecksum(documented)) {
    const isOfKind = hasValidChecksum(documented) ? hasValidChecksum : hasDerivedChecksum;
    assert(isOfKind(actual), `${at} is not such a key string: ${actual}`);
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
