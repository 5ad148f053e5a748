import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { AskedHome } from "./asked-home.ts";
import { HomeUnavailable, ReportFailed, rejectAnswer, UnusableAnswer } from "./home.ts";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Path = readonly (string | number)[];

const reset = 1_768_478_460_000;
const limit = { id: "rl_1", name: "requests", limit: 10, duration: 60_000, mode: "standard", auto_apply: 1 };
const key = {
  keyId: "key_1",
  apiId: "api_1",
  poolId: "pool_1",
  name: null,
  meta: '{"plan":"pro"}',
  enabled: true,
  workspaceEnabled: true,
  expiresAt: reset,
  allowedIps: '["192.0.2.0/24"]',
  apiAllowedIps: null,
  identity: { id: "id_1", externalId: "user_1", meta: '{"a":1}', ratelimits: [{ ...limit, shadow: 1 }] },
  ratelimits: [limit],
  roles: ["admin"],
  permissions: ["documents.read"],
  needs: ["limits"],
};
const rootKey = {
  rootKeyId: "root_1",
  grants: ["replicas.*.open"],
  enabled: true,
  expiresAt: null,
  workspaceEnabled: true,
  requestsPerMinute: 60,
};
const counted = { limit: 10, remaining: 9, reset, retryAfter: 0 };
const verified = {
  valid: true,
  code: "VALID",
  keyId: "key_1",
  apiId: "api_1",
  enabled: true,
  meta: {},
  permissions: ["documents.read"],
  roles: ["admin"],
  credits: 5,
  identity: { externalId: "user_1" },
  ratelimits: [{ ...counted, name: "requests", exceeded: false }],
};
const problem = { code: "overloaded", type: "a/b", status: 503, detail: "Later", headers: { "retry-after": "1" } };
const call = { hash: "a", isAnonymous: false, address: "192.0.2.1" };
const entries = [{ namespace: "emails", identifier: "a", limit: 10, duration: 60_000 }];
const described = { namespaceId: "rlns_1", message: "CAE=", address: "192.0.2.1" };
const asked = { key: { hash: "a", name: "requests", owner: "key" as const }, limit: 10, duration: 60_000, want: 1 };
const edge = { id: "edge_1", kind: "library" as const, version: "1", records: 0, reports: 0 };
const report = { recorder: "edge_1", sequence: 7, verifications: [], uses: [] };
const [limitName, multiLimit, descriptors] = [
  "ratelimits.limit",
  "ratelimits.multiLimit",
  "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
] as const;

interface Exchange {
  readonly operation: string;
  readonly ask: (home: AskedHome) => Promise<unknown>;
  readonly answer: Json;
}

/** Questions, with answers of a home that works. */
const exchanges: readonly Exchange[] = [
  {
    operation: "replica.listChanges",
    ask: (home) => home.listChanges({ tagKey: "t", wait: 0, edge }),
    answer: {
      position: "1:1",
      age: -3,
      isLost: false,
      tags: ["abcdefghijk"],
      hasMore: false,
      workspaceId: "ws_1",
      allowsAnonymous: true,
    },
  },
  {
    operation: "replica.resolveKeys",
    ask: (home) => home.resolveKeys({ keys: ["a", "b", "c", "d"] }),
    answer: {
      keys: [key, null, { isDeleted: true, keyId: "key_2", apiId: "api_1", identityId: null }, { isElsewhere: true }],
      rootKeys: [],
      namespaces: [],
    },
  },
  {
    operation: "replica.resolveKeys",
    ask: (home) => home.resolveKeys({ rootKeys: ["a", "b"], namespaces: ["n", "m"], workspace: true }),
    answer: {
      keys: [],
      rootKeys: [rootKey, { isElsewhere: true }],
      namespaces: [{ namespaceId: "rlns_1" }, null],
      workspace: { id: "ws_1", enabled: true, hasImportedKeys: true, hasSha512Keys: false, hasUpstreams: false },
    },
  },
  {
    operation: "replica.charge",
    ask: (home) => home.charge({ calls: [call, call] }),
    answer: { results: [{ data: verified }, { problem }], limits: [] },
  },
  {
    operation: "replica.charge",
    ask: (home) =>
      home.charge({
        limits: [
          { operation: limitName, entries },
          { operation: multiLimit, entries },
          { operation: descriptors, ...described },
          { operation: limitName, entries },
        ],
      }),
    answer: {
      results: [],
      limits: [
        { data: { success: true, ...counted }, headers: { ratelimit: '"default";r=9;t=60' } },
        { data: { passed: true, limits: [{ namespace: "emails", identifier: "a", passed: true, ...counted }] } },
        { data: { message: "CAE=" } },
        { isElsewhere: true },
      ],
    },
  },
  {
    operation: "replica.lease",
    ask: (home) => home.lease({ leases: [asked, asked] }),
    answer: { leases: [{ id: "abcdefghijklmnop", amount: 1, remaining: 8, reset, expiresIn: 5_000 }, null] },
  },
  {
    operation: "replica.report",
    ask: (home) => home.report(report),
    answer: { sequence: 7, leftOut: 1 },
  },
];

/** Members that may be missing, and those of decisions, which depend on the caller. */
const further = /^(?:shadow|leftOut|headers|ratelimit|retry-after|retryAfter)$/;
const ofDecisions = /^(?:keyId|apiId|enabled|meta|permissions|roles|credits|identity|ratelimits)$/;

/** The paths to all values in a value. */
function pathsIn(value: Json, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...inner.flatMap(([name, one]) => pathsIn(one, [...path, name]))];
}

/** The value with another one at a path; undefined: it is removed. */
function changed(value: Json, [name, ...rest]: Path, other: Json | undefined): Json | undefined {
  if (name === undefined) return other;
  const copy: Record<string, Json | undefined> = Array.isArray(value) ? Object.assign([], value) : { ...Object(value) };
  copy[name] = changed(copy[name] ?? null, rest, other);
  if (copy[name] === undefined) delete copy[name];
  return copy as Json;
}

/** Values that are none of the kind of this one. */
function othersOf(value: Json): Json[] {
  if (value === null) return [true, []];
  if (Array.isArray(value)) return ["<html>", {}, 0.5, true];
  switch (typeof value) {
    case "string":
      return [true, 0.5, [], {}];
    case "number":
      return ["<html>", true, 0.5, 1e300, [], {}];
    case "boolean":
      return ["<html>", 0, [], {}, null];
    default:
      return ["<html>", [], true, 0];
  }
}

/** Every way in which an answer can be damaged so that it is of another shape. */
function damages({ operation, answer }: Exchange): { what: string; damaged: Json | undefined }[] {
  const whole = [undefined, null, "<html>", [], {}, 200].map((other) => [[] as Path, other] as const);
  const parts = pathsIn(answer).flatMap((path) => {
    const value = path.reduce<Json>((inner, name) => Object(inner)[name], answer);
    const name = String(path.at(-1));
    const others: (Json | undefined)[] = path.length === 0 ? [] : othersOf(value);
    const isFurther = further.test(name) || (operation === "replica.charge" && ofDecisions.test(name));
    const isUnasked = Array.isArray(value) && value.length === 0 && /^(?:limits|namespaces)$/.test(name);
    // JSON, base64, and a header.
    if (typeof value === "string" && /^(?:meta|allowedIps|message|ratelimit)$/.test(name)) others.push("<\u0001>");
    if (typeof path.at(-1) === "string" && !isFurther && !isUnasked) others.push(undefined);
    // In the order of the question.
    if (Array.isArray(value) && path.length === 1 && name !== "tags") {
      others.push([...value, null]);
      if (value.length > 0) others.push(value.slice(1));
    }
    return others.map((other) => [path, other] as const);
  });
  return [...whole, ...parts].map(([path, other]) => ({
    what: `${path.join(".")} is ${JSON.stringify(other)}`,
    damaged: changed(answer, path, other),
  }));
}

class HomeWith extends AskedHome {
  readonly told: string[];
  readonly #answer: () => unknown;

  constructor(answer: () => unknown) {
    const told: string[] = [];
    super(({ operation }) => void told.push(operation));
    this.told = told;
    this.#answer = answer;
  }

  protected async ask(): Promise<unknown> {
    return this.#answer();
  }
}

describe("an answer to an edge (rule 229)", () => {
  it("is taken as it is, also with members of a later release", async () => {
    for (const { ask, answer } of exchanges) {
      assert.deepEqual(await ask(new HomeWith(() => answer)), answer);
      const later = { ...Object(answer), later: [{}] };
      assert.deepEqual(await ask(new HomeWith(() => later)), later);
    }
  });

  it("is an outage of home if it is not of its shape, whatever is damaged, and is told once", async () => {
    const all = exchanges.flatMap((exchange) => damages(exchange).map((damage) => ({ ...exchange, ...damage })));
    const outcomes = all.map(async ({ operation, ask, what, damaged }) => {
      const home = new HomeWith(() => damaged);
      const error = await ask(home).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      const expected = operation === "replica.report" ? ReportFailed : UnusableAnswer;
      assert(error instanceof HomeUnavailable && error instanceof expected, `${operation}: ${what}: ${error}`);
      assert(error.message.startsWith(`Home answered ${operation} with another answer: data`), error.message);
      assert.deepEqual(home.told, [operation]);
    });
    await Promise.all(outcomes);
    assert(all.length > 800, `${all.length} damages`);
  });

  it("never fails otherwise than by an outage, of any JSON in any place", async () => {
    const place = fc.constantFrom(...exchanges.flatMap((one) => pathsIn(one.answer).map((path) => ({ one, path }))));
    await fc.assert(
      fc.asyncProperty(place, fc.jsonValue(), async ({ one, path }, other) => {
        const home = new HomeWith(() => changed(one.answer, path, other as Json));
        const error = await one.ask(home).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        assert(error === undefined || error instanceof HomeUnavailable, String(error));
      }),
      { numRuns: 2_000 },
    );
  });

  it("is told of if its status is that of a success or of a redirection without data", async () => {
    for (const status of [200, 204, 302]) {
      for (const { operation, ask } of exchanges) {
        const home = new HomeWith(() => rejectAnswer({ operation, status, detail: "<html>" }));
        await assert.rejects(ask(home), HomeUnavailable);
        assert.deepEqual(home.told, [operation]);
      }
    }
  });
});
