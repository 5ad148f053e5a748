/**
 * What gateways get: one table of requests, asked at `/auth/verify` over HTTP, and as `Check` of envoy.service.auth.v3 over gRPC.
 * Both make the same decisions.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import inject from "light-my-request";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { GrpcClient } from "../grpc/client.ts";
import {
  CHECK,
  type CheckedRequest,
  type CheckQuestion,
  checkRequest,
  readCheckResponse,
} from "../grpc/envoy-check.ts";
import { stores, TestServer } from "../harness.ts";

const MINUTE = 60_000;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;
const OVERWRITE = 2;

/** A request at a gateway. */
interface Asked {
  /** The parameters of the route, without `api`. */
  readonly route?: readonly (readonly [string, string])[];
  /** Default: the key as a bearer. */
  readonly headers?: (key: string) => Record<string, string>;
  /** The address of the end user. */
  readonly from?: string;
}

interface Case extends Asked {
  /** What the key has. */
  readonly key?: object;
  /** What the API has. */
  readonly api?: object;
  /** Happens after the key was made. */
  readonly change?: (server: TestServer, made: { keyId: string; key: string; apiId: string }) => Promise<unknown>;
  /** Requests before the one that is judged. */
  readonly before?: number;
  readonly expected: readonly [status: number, code: string];
}

const limited = (limit: number, more: object = {}) => ({
  ratelimits: [{ name: "requests", limit, duration: MINUTE, autoApply: true, ...more }],
});

const cases: Readonly<Record<string, Case>> = {
  "a valid key": { key: { externalId: "acme", meta: { plan: "pro" } }, expected: [200, "VALID"] },
  "a key with credits": { key: { credits: { remaining: 5 } }, expected: [200, "VALID"] },
  "a key with a cost": { key: { credits: { remaining: 5 } }, route: [["cost", "3"]], expected: [200, "VALID"] },
  "a key with limits": { key: limited(5), expected: [200, "VALID"] },
  "a key in a header of its own": {
    route: [["header", "X-Api-Key"]],
    headers: (key) => ({ "x-api-key": key }),
    expected: [200, "VALID"],
  },
  "no key": { headers: () => ({}), expected: [401, "MISSING"] },
  "an empty key": { headers: () => ({ authorization: "Bearer " }), expected: [401, "MALFORMED"] },
  "no key in a header of its own": { route: [["header", "X-Api-Key"]], expected: [401, "MISSING"] },
  "another scheme": { headers: (key) => ({ authorization: `Basic ${key}` }), expected: [401, "MALFORMED"] },
  "two keys": { headers: (key) => ({ authorization: `Bearer ${key},Bearer ${key}` }), expected: [401, "MALFORMED"] },
  "an unknown key": {
    headers: () => ({ authorization: "Bearer 3kAqEg4u4qMxCGFAVMuGsb3cijGp" }),
    expected: [401, "NOT_FOUND"],
  },
  "a disabled key": { key: { enabled: false }, expected: [401, "DISABLED"] },
  "an expired key": { key: { expires: 946_684_800_000 }, expected: [401, "EXPIRED"] },
  "a deleted key": {
    change: (server, { keyId }) => server.ok("keys.deleteKey", { keyId }),
    expected: [401, "NOT_FOUND"],
  },
  "a key of another API": { route: [["api", "api_0000000000000000"]], expected: [401, "NOT_FOUND"] },
  "a key of one of several APIs": {
    route: [
      ["api", "api_0000000000000000"],
      ["api", "own"],
    ],
    expected: [200, "VALID"],
  },
  "a key that lacks a permission": {
    key: { permissions: ["documents.read"] },
    route: [["permission", "documents.read AND documents.write"]],
    expected: [403, "INSUFFICIENT_PERMISSIONS"],
  },
  "a key with the permissions": {
    key: { permissions: ["documents.*"] },
    route: [["permission", "documents.read AND documents.write"]],
    expected: [200, "VALID"],
  },
  "an address that the key does not allow": {
    key: { allowedIps: ["192.0.2.0/24"] },
    from: "198.51.100.1",
    expected: [403, "FORBIDDEN"],
  },
  "an address that the key allows": {
    key: { allowedIps: ["192.0.2.0/24"] },
    from: "192.0.2.1",
    expected: [200, "VALID"],
  },
  "an address that the API does not allow": {
    api: { allowedIps: ["192.0.2.0/24"] },
    from: "198.51.100.1",
    expected: [403, "FORBIDDEN"],
  },
  "a key that needs a hold": {
    key: { concurrency: [{ name: "streams", limit: 1 }] },
    expected: [403, "HOLD_REQUIRED"],
  },
  "too few credits": { key: { credits: { remaining: 1 } }, before: 1, expected: [402, "USAGE_EXCEEDED"] },
  "too few credits for the cost": {
    key: { credits: { remaining: 5 } },
    route: [["cost", "6"]],
    expected: [402, "USAGE_EXCEEDED"],
  },
  "a cost of 0 without credits": {
    key: { credits: { remaining: 0 } },
    route: [["cost", "0"]],
    expected: [200, "VALID"],
  },
  "a used-up limit": { key: limited(1), before: 1, expected: [429, "RATE_LIMITED"] },
  "a used-up limit that the route names": {
    key: limited(1, { autoApply: false }),
    route: [["limit", "requests"]],
    before: 1,
    expected: [429, "RATE_LIMITED"],
  },
  "a used-up limit of the route": { route: [["limit", "burst:1:10s"]], before: 1, expected: [429, "RATE_LIMITED"] },
  "several limits": {
    key: limited(5, { autoApply: false }),
    route: [
      ["limit", "requests"],
      ["limit", "burst:1:10s"],
    ],
    expected: [200, "VALID"],
  },
  "an unknown parameter": { route: [["apis", "1"]], expected: [400, ""] },
  "a wrong cost": { route: [["cost", "-1"]], expected: [400, ""] },
  "a wrong permission query": { route: [["permission", "a AND"]], expected: [400, ""] },
  "an unknown limit": { route: [["limit", "unheard"]], expected: [400, ""] },
  "a wrong header": { route: [["header", "X\r\nY"]], expected: [400, ""] },
  "a long tag": { route: [["tag", "t".repeat(129)]], expected: [400, ""] },
};

/** What a gateway does with a request, in either protocol. */
interface Outcome {
  readonly status: number;
  readonly code: string;
  /** What the application gets. */
  readonly owner: Record<string, string>;
  /** What the end user gets. */
  readonly answer: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: compared as a whole.
  readonly error: any;
}

const ownerHeaders = ["key-id", "owner", "meta", "remaining"].map((name) => `x-latchkey-${name}`);
/** Each protocol asks about a key of its own, so the partitions of limits differ. */
const withoutPartitions = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace(/pk=:[^:]{12}:/g, "pk")]));

const answerHeaders = [
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "www-authenticate",
  "content-type",
  "cache-control",
];

function pick(headers: Record<string, unknown>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => [name, headers[name]]).filter(([, value]) => value !== undefined && value !== ""),
  );
}

for (const store of stores) {
  describe(`gateways on ${store}`, () => {
    const server = new TestServer({
      store,
      settings: { PORT: "0", GRPC_PORT: "0", TRUSTED_PROXIES: "127.0.0.1,203.0.113.9" },
    });
    let client: GrpcClient;
    before(async () => {
      await server.open();
      await server.service.listen();
      client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, server.rootKey);
    });
    after(async () => {
      await client.close();
      await server.close();
    });

    const check = async (question: CheckQuestion, as?: string | null): Promise<CheckedRequest> => {
      const reply = await client.call(CHECK, checkRequest(question), as === undefined ? {} : { as });
      assert.equal(reply.status, 0, reply.message);
      const checked = readCheckResponse(reply.body);
      // Explicit, because the default of Envoy would append to what the end user sent.
      assert.deepEqual([...checked.actions], checked.actions.size === 0 ? [] : [OVERWRITE]);
      return checked;
    };

    const overHttp = async (
      { route = [], headers = bearer, from = "198.51.100.7" }: Asked,
      { key, apiId }: { key: string; apiId: string },
    ): Promise<Outcome> => {
      const query = new URLSearchParams(routeOf(route, apiId));
      const answer = await inject(server.service.dispatch, {
        method: "GET",
        url: `/auth/verify?${query}`,
        headers: { ...headers(key), "x-forwarded-for": from, "x-latchkey-root-key": server.rootKey },
        remoteAddress: "127.0.0.1",
      });
      const { error } = JSON.parse(answer.payload) as { error?: object };
      return {
        status: answer.statusCode,
        code: String(answer.headers["x-latchkey-code"] ?? ""),
        owner: pick(answer.headers, ownerHeaders),
        answer: pick(answer.headers, answerHeaders),
        error,
      };
    };

    const overGrpc = async (
      { route = [], headers = bearer, from = "198.51.100.7" }: Asked,
      { key, apiId }: { key: string; apiId: string },
    ): Promise<Outcome> => {
      const lists = new Map<string, string[]>();
      for (const [name, value] of routeOf(route, apiId)) lists.set(name, [...(lists.get(name) ?? []), value]);
      const extensions = Object.fromEntries([...lists].map(([name, values]) => [name, values.join(",")]));
      const { code, ok, denied, metadata } = await check({ extensions, headers: headers(key), source: from });
      assert.equal(code === 0, denied === undefined);
      assert.equal(ok === undefined, denied !== undefined);
      if (ok) {
        // What a key does not have is removed, so that nothing of the end user stays.
        const removed = ownerHeaders.filter((name) => ok.headersToRemove.includes(name));
        assert.deepEqual(
          [...removed, ...ownerHeaders.filter((name) => name in ok.headers)].sort(),
          [...ownerHeaders].sort(),
        );
        assert.equal(metadata.code, "VALID");
        return {
          status: 200,
          code: ok.headers["x-latchkey-code"]!,
          owner: pick(ok.headers, ownerHeaders),
          // An answer of the application has these of its own.
          answer: {
            ...pick(ok.responseHeaders, answerHeaders),
            "content-type": "application/json",
            "cache-control": "no-store",
          },
          error: undefined,
        };
      }
      const { error } = JSON.parse(denied!.body) as { error: { code?: string } };
      assert.equal(metadata.code, error.code ?? "MISCONFIGURED");
      return {
        status: denied!.status,
        code: denied!.headers["x-latchkey-code"] ?? "",
        owner: {},
        answer: pick(denied!.headers, answerHeaders),
        error,
      };
    };

    const make = async ({ key = {}, api, change }: Case) => {
      const apiId = await server.createApi();
      if (api) await server.ok("apis.updateApi", { apiId, ...api });
      const made = { apiId, ...(await server.createKey(apiId, key)) };
      await change?.(server, made);
      return made;
    };

    for (const [name, one] of Object.entries(cases)) {
      it(`decide alike about ${name} (rule 124)`, async () => {
        const outcomes: Outcome[] = [];
        for (const ask of [overHttp, overGrpc]) {
          const made = await make(one);
          for (let i = 0; i < (one.before ?? 0); i++) assert.equal((await ask(one, made)).status, 200);
          const { owner, answer, ...outcome } = await ask(one, made);
          if (outcome.status === 200) assert.equal(owner["x-latchkey-key-id"], made.keyId);
          outcomes.push({
            ...outcome,
            owner: { ...owner, "x-latchkey-key-id": "" },
            answer: withoutPartitions(answer),
          });
        }
        const [http, grpc] = outcomes as [Outcome, Outcome];
        assert.deepEqual([http.status, http.code], one.expected);
        // The protocols name a wrong parameter in their own words.
        if (http.status === 400) {
          assert.deepEqual([grpc.status, grpc.code, grpc.error.type], [400, "", http.error.type]);
          const mistakeOf = ({ error }: Outcome) => /\. (\w+: .{10,30})/.exec(error.detail)?.[1];
          assert(mistakeOf(http));
          assert.equal(mistakeOf(grpc), mistakeOf(http));
          return;
        }
        assert.deepEqual(grpc, http);
      });
    }

    it("remove what an end user forged, and the key if the route says so (rule 133)", async () => {
      const { apiId, key } = await make({ expected: [200, "VALID"] });
      const forged = ["x-latchkey-owner", "x_latchkey_owner", "x.latchkey.meta", "x-latchkey-key-id", "latchkey-x"];
      const headers = { authorization: `Bearer ${key}`, ...Object.fromEntries(forged.map((name) => [name, "forged"])) };
      const plain = await check({ extensions: { api: apiId }, headers });
      assert.equal(plain.ok!.headers["x-latchkey-owner"], undefined);
      for (const name of forged) {
        const isSet = name in plain.ok!.headers;
        assert.equal(isSet, name === "x-latchkey-key-id");
        assert.equal(plain.ok!.headersToRemove.includes(name), !isSet, name);
      }
      assert(!plain.ok!.headersToRemove.includes("authorization"));
      const without = await check({ extensions: { api: apiId, remove_key: "true" }, headers });
      assert(without.ok!.headersToRemove.includes("authorization"));
      const wrong = await check({ extensions: { api: apiId, remove_key: "yes" }, headers });
      assert.equal(wrong.denied!.status, 400);
    });

    it("take a key from the query, and remove it there", async () => {
      const { apiId, key } = await make({ expected: [200, "VALID"] });
      const path = `/documents?page=2&api_key=${key}`;
      const extensions = { api: apiId, query: "api_key", remove_key: "true", path: "*" };
      const { ok } = await check({ extensions, path });
      assert.deepEqual(ok!.queryParametersToRemove, ["api_key"]);
      for (const [asked, code] of [
        ["/documents?page=2", "MISSING"],
        [`/documents?api_key=${key}&api_key=${key}`, "MALFORMED"],
        [`/documents?api_key=${key}x`, "NOT_FOUND"],
      ] as const) {
        const { denied, metadata } = await check({ extensions, path: asked });
        assert.deepEqual([denied!.status, metadata.code], [401, code], asked);
        assert.match(denied!.headers["www-authenticate"]!, /^ApiKey realm="api", query="api_key"/);
      }
      const both = await check({ extensions: { ...extensions, header: "X-Api-Key" }, path });
      assert.equal(both.denied!.status, 400);
    });

    it("tell Envoy what its own limits and logs can use", async () => {
      await server.ok("plans.createPlan", { name: "pro" });
      const meta = { tier: "pro", seats: 0, trial: false, none: null, tags: ["a", ""], deep: { a: 1.5 } };
      const { apiId, key, keyId } = await make({
        key: {
          externalId: "acme",
          plan: "pro",
          meta,
          credits: { remaining: 7 },
          ratelimits: [
            { name: "odd", limit: 5, duration: 90_000, autoApply: true },
            { name: "hourly", limit: 1_000, duration: 3_600_000, autoApply: true },
            { name: "requests", limit: 100, duration: MINUTE, autoApply: true },
          ],
        },
        expected: [200, "VALID"],
      });
      const { metadata } = await check({ extensions: { api: apiId }, headers: bearer(key) });
      const { limits, ...rest } = metadata;
      assert.deepEqual(rest, {
        code: "VALID",
        key_id: keyId,
        api_id: apiId,
        owner: "acme",
        plan: "pro",
        remaining: 6,
        meta,
        // The tightest one whose window has a unit of Envoy.
        limit: { requests_per_unit: 100, unit: "MINUTE" },
      });
      assert.deepEqual(
        new Map(limits.map(({ name, remaining }: { name: string; remaining: number }) => [name, remaining])),
        new Map([
          ["odd", 4],
          ["hourly", 999],
          ["requests", 99],
        ]),
      );
      const { metadata: denied } = await check({ extensions: { api: apiId, cost: "7" }, headers: bearer(key) });
      assert.deepEqual([denied.code, denied.key_id, denied.remaining], ["USAGE_EXCEEDED", keyId, 6]);
    });

    it("see the address of the last hop, or what trusted proxies say before it", async () => {
      const { apiId, key } = await make({ key: { allowedIps: ["192.0.2.0/24"] }, expected: [200, "VALID"] });
      const codeOf = async (source: string, forwarded?: string) => {
        const headers = { ...bearer(key), ...(forwarded && { "x-forwarded-for": forwarded }) };
        return (await check({ extensions: { api: apiId }, headers, source })).metadata.code;
      };
      assert.equal(await codeOf("192.0.2.1"), "VALID");
      assert.equal(await codeOf("198.51.100.1", "192.0.2.1"), "FORBIDDEN");
      assert.equal(await codeOf("203.0.113.9", "192.0.2.1"), "VALID");
      assert.equal(await codeOf("203.0.113.9", "192.0.2.1,198.51.100.1"), "FORBIDDEN");
      assert.equal(await codeOf(""), "FORBIDDEN");
    });

    it("take headers as bytes, and several of one name", async () => {
      const { apiId, key } = await make({ expected: [200, "VALID"] });
      const ask = (headers: [string, string][]) => check({ extensions: { api: apiId }, headers, isRaw: true });
      assert.equal((await ask([["authorization", `Bearer ${key}`]])).code, 0);
      const twice = await ask([
        ["authorization", `Bearer ${key}`],
        ["authorization", `Bearer ${key}`],
      ]);
      assert.equal(twice.metadata.code, "MALFORMED");
      const odd = await ask([["authorization", `Bearer ${key}\u00ff`]]);
      assert.equal(odd.metadata.code, "MALFORMED");
    });

    it("need a root key over gRPC, which sees the keys of its workspace", async () => {
      const { apiId, key } = await make({ expected: [200, "VALID"] });
      const message = checkRequest({ extensions: { api: apiId }, headers: bearer(key) });
      for (const as of [null, "lk_root_unknown"]) {
        assert.equal((await client.call(CHECK, message, { as })).status, UNAUTHENTICATED);
      }
      const stranger = await server.workspace(`gateway stranger of ${store}`);
      for (const as of [stranger.key, (await server.grant("apis.*.read_key")).key]) {
        const { metadata } = await check({ extensions: { api: apiId }, headers: bearer(key) }, as);
        assert.equal(metadata.code, "NOT_FOUND");
      }
    });

    it("are UNAVAILABLE where the service cannot decide, so that the gateway does (rule 124)", async () => {
      const { apiId, key } = await make({ expected: [200, "VALID"] });
      const question = { extensions: { api: apiId }, headers: bearer(key) };
      assert.equal((await check(question)).code, 0);
      const cold = await server.createKey(apiId);
      server.store.interception = () => {
        throw new StoreUnavailable("for this test");
      };
      const message = checkRequest({ ...question, headers: bearer(cold.key) });
      const reply = await client.call(CHECK, message);
      server.store.interception = undefined;
      assert.deepEqual([reply.status, reply.body.length], [UNAVAILABLE, 0]);
      assert.equal((await check({ ...question, headers: bearer(cold.key) })).code, 0);
    });

    it("reject messages that are none, and charge nothing for them", async () => {
      const { apiId, key } = await make({ key: { credits: { remaining: 5 } }, expected: [200, "VALID"] });
      const message = checkRequest({ extensions: { api: apiId }, headers: bearer(key) });
      for (let length = 1; length < message.length; length += 7) {
        const { status } = await client.call(CHECK, message.subarray(0, length));
        assert([0, 3].includes(status), `${length} bytes: ${status}`);
      }
      const giant = checkRequest({
        extensions: { api: apiId },
        headers: { ...bearer(key), more: "a".repeat(200_000) },
      });
      assert.equal((await client.call(CHECK, giant)).status, 8);
      const left = (await server.verify(key, { credits: { cost: 0 } })).credits;
      assert.equal(left, 5);
    });
  });
}

function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

/** The parameters of a route: its API first, unless it names others. `own` stands for the API of the key. */
function routeOf(route: readonly (readonly [string, string])[], apiId: string): [string, string][] {
  const named = route.map(([name, value]): [string, string] => [
    name,
    name === "api" && value === "own" ? apiId : value,
  ]);
  return named.some(([name]) => name === "api") ? named : [["api", apiId], ...named];
}
