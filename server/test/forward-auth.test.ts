/** `/auth/verify`: what a proxy gets for each state of a key, and for requests that try to mislead it. */
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { sha256 } from "../../engine/src/crypto/digest.ts";
import { StoreUnavailable } from "../../engine/src/errors/store-unavailable.ts";
import { describeOnStores, TestServer } from "./harness.ts";
import { type Parameter, parseStringList } from "./structured-fields.ts";

interface Asked {
  status: number;
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows its answer.
  body: any;
}

interface Question {
  /** An array sends the header several times. */
  headers?: Record<string, string | string[]>;
  method?: string;
  body?: string;
  path?: string;
}

/** Asks `/auth/verify` over a real connection, as a proxy does. */
async function ask(server: TestServer, query: string, question: Question = {}): Promise<Asked> {
  const listening = createServer(server.service.dispatch);
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  try {
    return await new Promise((resolve, reject) => {
      const { headers = {}, method = "GET", body, path = "/auth/verify" } = question;
      const { port } = listening.address() as AddressInfo;
      const sent = request({ port, host: "127.0.0.1", path: `${path}?${query}`, method, headers, agent: false });
      sent.once("error", reject).once("response", async (response) => {
        let text = "";
        for await (const chunk of response.setEncoding("utf8")) text += chunk;
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          body: text === "" ? null : JSON.parse(text),
        });
      });
      sent.end(body);
    });
  } finally {
    listening.closeAllConnections();
    await new Promise((resolve) => listening.close(resolve));
  }
}

/** The partition of what counts for an id, as it is in a header. */
const partitionOf = (id: string) => textOf(sha256(id).subarray(0, 9));

function textOf(bytes: Parameter | undefined): string {
  return `:${Buffer.from(bytes as Uint8Array).toString("base64")}:`;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

function assertRefused({ status, headers, body }: Asked, expected: number, code: string): void {
  assert.deepEqual([status, headers["x-latchkey-code"], body.error.code], [expected, code, code]);
  assert.equal(body.error.status, expected);
  for (const name of ["key-id", "owner", "meta", "remaining"]) assert.equal(headers[`x-latchkey-${name}`], undefined);
}

describeOnStores("/auth/verify", (server) => {
  it("refuses a key whose calls need a hold, because no proxy says when a request has ended (rule 98)", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { concurrency: [{ name: "streams", limit: 1 }] });
    const asked = await ask(server, `api=${apiId}`, { headers: bearer(key) });
    assertRefused(asked, 403, "HOLD_REQUIRED");
    assert.match(asked.body.error.detail, /limits how many calls run at once/);
  });

  it("passes a valid key with what the application needs", async () => {
    const apiId = await server.createApi();
    const meta = { plan: "pro", note: "naïve ☂" };
    const { keyId, key } = await server.createKey(apiId, {
      externalId: "user_1",
      meta,
      credits: { remaining: 10 },
      ratelimits: [{ name: "requests", limit: 5, duration: 60_000, autoApply: true }],
    });
    for (const [method, remaining] of [
      ["GET", 9],
      ["POST", 8],
    ] as const) {
      const { status, headers, body } = await ask(server, `api=${apiId}`, { headers: bearer(key), method });
      assert.equal(status, 200);
      assert.equal(headers["x-latchkey-key-id"], keyId);
      assert.equal(headers["x-latchkey-owner"], "user_1");
      assert.deepEqual(JSON.parse(decodeURIComponent(headers["x-latchkey-meta"] as string)), meta);
      assert.equal(headers["x-latchkey-remaining"], String(remaining));
      const pk = partitionOf(keyId);
      assert.equal(headers["ratelimit-policy"], `"requests";q=5;w=60;pk=${pk}`);
      const [state] = parseStringList(headers.ratelimit as string);
      assert.deepEqual([state!.value, state!.parameters.get("r")], ["requests", remaining - 5]);
      assert.deepEqual([...state!.parameters.keys()], ["r", "t", "pk"]);
      assert.equal(headers["cache-control"], "no-store");
      assert.deepEqual(body, { meta: { requestId: headers["x-request-id"] }, data: { valid: true } });
    }
    const { status, body } = await ask(server, `api=${apiId}&cost=0`, { headers: bearer(key), method: "HEAD" });
    assert.deepEqual([status, body], [200, null]);
  });

  it("leaves empty what a key does not have", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { meta: { long: "m".repeat(2_100) } });
    const { status, headers } = await ask(server, `api=${apiId}&header=X-Api-Key`, { headers: { "x-api-key": key } });
    assert.equal(status, 200);
    for (const name of ["owner", "meta", "remaining"]) assert.equal(headers[`x-latchkey-${name}`], "", name);
    for (const name of ["ratelimit", "retry-after"]) assert.equal(headers[name], undefined, name);
  });

  it("answers 401 for missing, unknown, expired and disabled keys", async () => {
    const apiId = await server.createApi();
    const { key: other } = await server.createKey(await server.createApi("other"));
    const { key: disabled } = await server.createKey(apiId, { enabled: false });
    const { key: expired } = await server.createKey(apiId, { expires: server.clock.now() + 1_000 });
    await server.advance(1_000);
    const at = (query: string, headers: Question["headers"]) =>
      ask(server, `api=${apiId}${query}`, { headers: headers! });
    for (const [key, code] of [
      ["never_made", "NOT_FOUND"],
      ["k".repeat(512), "NOT_FOUND"],
      [other, "NOT_FOUND"],
      [disabled, "DISABLED"],
      [expired, "EXPIRED"],
    ] as const) {
      const asBearer = await at("", bearer(key));
      assertRefused(asBearer, 401, code);
      assert.equal(asBearer.headers["www-authenticate"], 'Bearer realm="api", error="invalid_token"');
      const alone = await at("&header=X-Api-Key", { "x-api-key": key });
      assertRefused(alone, 401, code);
      assert.equal(alone.headers["www-authenticate"], 'ApiKey realm="api", header="X-Api-Key", error="invalid_token"');
      assert.doesNotMatch(JSON.stringify([asBearer, alone]), new RegExp(key));
    }
    for (const headers of [{}, { authorization: "" }, { "x-api-key": disabled }]) {
      const missing = await at("", headers as Record<string, string>);
      assertRefused(missing, 401, "MISSING");
      assert.equal(missing.headers["www-authenticate"], 'Bearer realm="api"');
    }
  });

  it("answers 403 for permissions and addresses", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { permissions: ["documents.read"] });
    const at = (permission: string) =>
      ask(server, new URLSearchParams({ api: apiId, permission }).toString(), { headers: bearer(key) });
    assert.equal((await at("documents.read AND documents.read")).status, 200);
    assertRefused(await at("documents.read AND documents.write"), 403, "INSUFFICIENT_PERMISSIONS");
    await server.ok("apis.updateApi", { apiId, allowedIps: ["203.0.113.0/24"] });
    assertRefused(await at("documents.read"), 403, "FORBIDDEN");
  });

  it("answers 402 for credits, by their cost", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { credits: { remaining: 5 } });
    const at = (query: string) => ask(server, `api=${apiId}${query}`, { headers: bearer(key) });
    assert.equal((await at("&cost=3")).headers["x-latchkey-remaining"], "2");
    assertRefused(await at("&cost=3"), 402, "USAGE_EXCEEDED");
    assert.equal((await at("&cost=0")).headers["x-latchkey-remaining"], "2");
  });

  it("answers 429 for limits, with the time to wait", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, {
      ratelimits: [
        { name: 'a "quoted", ☂ one', limit: 1, duration: 60_000, autoApply: true },
        { name: "exports", limit: 1, duration: 3_600_000, autoApply: false },
      ],
    });
    const headers = bearer(key);
    assert.equal((await ask(server, `api=${apiId}`, { headers })).status, 200);
    const denied = await ask(server, `api=${apiId}`, { headers });
    assertRefused(denied, 429, "RATE_LIMITED");
    const name = '"a%20%22quoted%22%2C%20%E2%98%82%20one"';
    assert.equal(denied.headers["ratelimit-policy"], `${name};q=1;w=60;pk=${partitionOf(keyId)}`);
    const [state] = parseStringList(denied.headers.ratelimit as string);
    assert.deepEqual([state!.parameters.get("r"), String(denied.headers.ratelimit).startsWith(name)], [0, true]);
    const wait = Number(denied.headers["retry-after"]);
    const reset = state!.parameters.get("t") as number;
    assert(reset > 0 && reset <= wait, `The reset ${reset} is later than Retry-After: ${wait}`);
    assert(wait > 0 && wait <= 120, String(wait));
    await server.advance(wait * 1_000);
    assert.equal((await ask(server, `api=${apiId}`, { headers })).status, 200);
    // The other limit is checked too, and is used up.
    assert.equal((await ask(server, `api=${apiId}&limit=exports`, { headers })).status, 429);
    await server.advance(60_000);
    const both = await ask(server, `api=${apiId}&limit=exports`, { headers });
    assert.equal(both.status, 200);
    assertRefused(await ask(server, `api=${apiId}&limit=exports`, { headers }), 429, "RATE_LIMITED");
  });

  it("tells limits of a key from those of its identity by their partitions (rule 132)", async () => {
    const apiId = await server.createApi();
    const one = { name: "requests", duration: 3_600_000 };
    const { identityId } = await server.ok("identities.createIdentity", {
      externalId: "acme",
      ratelimits: [{ ...one, limit: 2 }],
    });
    const body = { externalId: "acme", ratelimits: [{ ...one, limit: 9, autoApply: true }] };
    const keys = [await server.createKey(apiId, body), await server.createKey(apiId, body)];
    const seen = [];
    for (const { key } of keys) {
      const { headers } = await ask(server, `api=${apiId}`, { headers: bearer(key) });
      const states = parseStringList(headers.ratelimit as string);
      assert.deepEqual(
        parseStringList(headers["ratelimit-policy"] as string).map(({ parameters }) => parameters.get("pk")),
        states.map(({ parameters }) => parameters.get("pk")),
      );
      seen.push(states.map(({ parameters }) => [parameters.get("r"), textOf(parameters.get("pk"))]));
    }
    const shared = partitionOf(identityId);
    assert.deepEqual(seen, [
      [
        [1, shared],
        [8, partitionOf(keys[0]!.keyId)],
      ],
      [
        [0, shared],
        [8, partitionOf(keys[1]!.keyId)],
      ],
    ]);
  });

  it("calls its parameters by their own names, whatever is wrong in them", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    for (const [query, detail] of [
      // A variable that the configuration of the proxy does not set.
      ["api=", /query\. api: is missing: /],
      ["api=x", /query\. api: must be at least 3 characters long$/],
      [`api=${apiId}&limit=a%00:1:10s`, /query\. limit: /],
    ] as const) {
      const { status, body } = await ask(server, query, { headers: bearer(key) });
      assert.equal(status, 400, query);
      assert.match(body.error.detail, detail);
      assert.doesNotMatch(body.error.detail, /keyspaces|ratelimits/);
    }
  });

  it("limits by the parameter only with the root key of the proxy", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId);
    const query = `api=${apiId}&limit=burst:1:10s`;
    const anonymous = await ask(server, query, { headers: bearer(key) });
    assert.equal(anonymous.status, 400);
    assert.match(anonymous.body.error.detail, /^The proxy needs a root key, in the header X-Latchkey-Root-Key, /);
    const headers = { ...bearer(key), "x-latchkey-root-key": server.rootKey };
    const policy = `"burst";q=1;w=10;pk=${partitionOf(keyId)}`;
    assert.equal((await ask(server, query, { headers })).headers["ratelimit-policy"], policy);
    assertRefused(await ask(server, query, { headers }), 429, "RATE_LIMITED");
  });

  it("answers 400 for a wrong configuration of the proxy, with what to mend", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { credits: { remaining: 5 } });
    for (const [query, detail] of [
      ["", /api: is missing/],
      ["api=", /api: /],
      [`api=${apiId}&apis=1`, /apis: is unknown: use api, header/],
      [`api=${apiId}&__proto__=1`, /__proto__: is unknown/],
      [`api=${apiId}&cost=1&cost=0`, /cost: is there twice/],
      [`api=${apiId}&cost=-1`, /cost: is not a whole number/],
      [`api=${apiId}&cost=999999999999999`, /cost: /],
      [`api=${apiId}&header=X%0d%0aY`, /header: is not the name/],
      [`api=${apiId}&permission=a%20AND`, /permission query/],
      [`api=${apiId}&limit=unheard`, /limit: .*unheard/],
      [`api=${apiId}&limit=`, /limit: /],
      [`api=${apiId}&limit=a&limit=a`, /limit: /],
      [`api=${apiId}&tag=${"t".repeat(129)}`, /tag: /],
      [`api=${apiId}&${"tag=t&".repeat(11)}cost=1`, /tag: /],
      [`api=${apiId}&tag=${"t".repeat(8_200)}`, /too long/],
    ] as const) {
      const { status, body, headers } = await ask(server, query, { headers: bearer(key) });
      assert.equal(status, 400, query.slice(0, 100));
      assert.match(body.error.detail, detail);
      assert.equal(headers["x-latchkey-key-id"], undefined);
    }
    for (const rootKey of ["wrong", "", [server.rootKey, server.rootKey]]) {
      const headers = { ...bearer(key), "x-latchkey-root-key": rootKey };
      const { status, body } = await ask(server, `api=${apiId}`, { headers });
      assert.equal(status, 400);
      assert.match(body.error.detail, /X-Latchkey-Root-Key/);
    }
    assert.equal((await server.verify(key, { credits: { cost: 0 } })).credits, 5);
  });

  it("finds no keys of another workspace than the root key's", async () => {
    const stranger = await server.workspace(`stranger of ${server.options.store}`);
    const apiId = await server.createApi();
    const { apiId: strangeApi } = await server.ok("apis.createApi", { name: "own" }, { as: stranger.key });
    const { key } = await server.ok("keys.createKey", { apiId: strangeApi }, { as: stranger.key });
    const headers = { ...bearer(key), "x-latchkey-root-key": stranger.key };
    assert.equal((await ask(server, `api=${strangeApi}`, { headers })).status, 200);
    assertRefused(await ask(server, `api=${apiId}`, { headers }), 401, "NOT_FOUND");
    const weak = (await server.grant("apis.*.read_key")).key;
    const own = (await server.createKey(apiId)).key;
    const asked = { headers: { ...bearer(own), "x-latchkey-root-key": weak } };
    assertRefused(await ask(server, `api=${apiId}`, asked), 401, "NOT_FOUND");
  });

  it("encodes owners and metadata, so that they cannot add headers", async () => {
    const apiId = await server.createApi();
    const meta = { a: "b\r\nX-Latchkey-Owner: root\r\n\r\n", "ключ,;=\u0000": ["%0d%0a", '"'] };
    const externalId = "user.x-y_1";
    const { key } = await server.createKey(apiId, { externalId, meta });
    const { status, headers } = await ask(server, `api=${apiId}`, { headers: bearer(key) });
    assert.equal(status, 200);
    for (const name of ["x-latchkey-owner", "x-latchkey-meta"]) {
      assert.match(headers[name] as string, /^[A-Za-z0-9\-_.!~*'()%]+$/);
    }
    assert.equal(decodeURIComponent(headers["x-latchkey-owner"] as string), externalId);
    assert.deepEqual(JSON.parse(decodeURIComponent(headers["x-latchkey-meta"] as string)), meta);
  });

  it("rejects ambiguous keys", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    for (const [query, headers] of [
      ["", { authorization: [`Bearer ${key}`, `Bearer ${key}`] }],
      ["", { authorization: [`Bearer ${key}`, "Basic eDp5"] }],
      ["", { authorization: `Basic ${key}` }],
      ["", { authorization: key }],
      ["", { authorization: "Bearer " }],
      ["", { authorization: `Bearer ${key}, Bearer ${key}` }],
      ["", { authorization: `Bearer ${"k".repeat(513)}` }],
      ["&header=X-Api-Key", { "x-api-key": [key, key] }],
      ["&header=X-Api-Key", { "x-api-key": ["", key] }],
      ["&header=X-Api-Key", { "x-api-key": `${key}, ${key}` }],
      ["&header=X-Api-Key", { "x-api-key": `${key}\u00e9` }],
    ] as const) {
      const reply = await ask(server, `api=${apiId}${query}`, {
        headers: headers as unknown as Record<string, string>,
      });
      assert.equal(reply.status, 401, JSON.stringify(headers));
      assert.match(reply.headers["www-authenticate"] as string, /realm="api"/);
      assert.doesNotMatch(JSON.stringify(reply), new RegExp(key));
    }
    const spelled = await ask(server, `api=${apiId}`, { headers: { AUTHORIZATION: `bearer  ${key}` } });
    assert.equal(spelled.status, 200);
  });

  it("reads no body", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    for (const type of ["application/json", "not a type", ""]) {
      const headers = { ...bearer(key), ...(type && { "content-type": type }), "content-length": "6000000" };
      // The answer arrives although the body never does.
      const listening = createServer(server.service.dispatch);
      await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
      const { port } = listening.address() as AddressInfo;
      const sent = request({
        port,
        host: "127.0.0.1",
        path: `/auth/verify?api=${apiId}`,
        method: "POST",
        headers,
        agent: false,
      });
      sent.flushHeaders();
      const status = await new Promise((resolve, reject) => {
        sent.once("response", (response) => resolve(response.statusCode)).once("error", reject);
      });
      sent.on("error", () => {}).destroy();
      listening.closeAllConnections();
      await new Promise((resolve) => listening.close(resolve));
      assert.equal(status, 200);
    }
  });

  it("takes the parameters from a header below its address, where the query is the end user's", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { credits: { remaining: 5 } });
    const path = "/auth/verify/documents/7";
    const headers = { ...bearer(key), "x-latchkey-auth": `api=${apiId}&cost=2&path=*` };
    const { status, headers: answered } = await ask(server, "cost=0&permission=(", { path, headers, method: "DELETE" });
    assert.deepEqual([status, answered["x-latchkey-remaining"]], [200, "3"]);
    for (const parameters of [undefined, [`api=${apiId}`, `api=${apiId}&cost=0`]]) {
      const given = { ...bearer(key), ...(parameters && { "x-latchkey-auth": parameters }) };
      assert.equal((await ask(server, `api=${apiId}`, { path, headers: given })).status, 400);
    }
    // The end user's header is not read where the proxy's query is.
    const own = { ...bearer(key), "x-latchkey-auth": `api=${apiId}&cost=0` };
    assert.equal((await ask(server, `api=${apiId}`, { headers: own })).headers["x-latchkey-remaining"], "2");
  });

  it("counts in the analytics, with the path and the method of the request", async () => {
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId);
    const described = { "x-forwarded-method": "PUT", "x-forwarded-uri": "/documents/7?token=secret" };
    const original = { "x-original-method": "PUT", "x-original-uri": `/documents/${key}` };
    for (const [query, headers] of [
      ["&path=*&tag=region%3Deu", described],
      ["&path=*", original],
      ["&path=/documents/{id}", original],
      ["", described],
    ] as const) {
      const { status } = await ask(server, `api=${apiId}${query}`, { headers: { ...bearer(key), ...headers } });
      assert.equal(status, 200);
    }
    await server.pass(10_000);
    const start = server.clock.now() - 3_600_000;
    const { outcomes, tags } = await server.ok("analytics.getKeyStats", { keyId, start, end: server.clock.now() + 1 });
    assert.equal(outcomes.VALID, 4);
    const counted = tags.map(({ tag }: { tag: string }) => tag).sort();
    assert.deepEqual(counted, ["method=PUT", "path=/documents/7", "path=/documents/{id}", "region=eu"]);
  });

  it("neither logs nor stores the key", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    await ask(server, `api=${apiId}&path=*`, { headers: { ...bearer(key), "x-original-uri": `/${key}` } });
    assert(!JSON.stringify([server.logged, await server.rows()]).includes(key));
  });

  it("answers 503 when it cannot decide", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    server.store.interception = () => {
      throw new StoreUnavailable("gone");
    };
    try {
      const reply = await ask(server, `api=${apiId}`, { headers: bearer(key) });
      assertRefused(reply, 503, "UNDECIDED");
      assert.match(reply.headers["retry-after"]!, /^[1-9]\d*$/);
    } finally {
      server.store.interception = undefined;
    }
  });
});

describe("/auth/verify with LATCHKEY_VERIFY_AUTH=required, behind a trusted proxy", () => {
  const server = new TestServer({ settings: { VERIFY_AUTH: "required", TRUSTED_PROXIES: "127.0.0.1" } });
  before(() => server.open());
  after(() => server.close());

  it("verifies only with the root key of the proxy", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    const without = await ask(server, `api=${apiId}`, { headers: bearer(key) });
    assert.equal(without.status, 400);
    assert.match(without.body.error.detail, /X-Latchkey-Root-Key/);
    const headers = { ...bearer(key), "x-latchkey-root-key": server.rootKey };
    assert.equal((await ask(server, `api=${apiId}`, { headers })).status, 200);
  });

  it("checks the address that the proxy forwards", async () => {
    const apiId = await server.createApi();
    await server.ok("apis.updateApi", { apiId, allowedIps: ["203.0.113.0/24"] });
    const { key } = await server.createKey(apiId);
    const from = (address: string) => ({
      headers: { ...bearer(key), "x-latchkey-root-key": server.rootKey, "x-forwarded-for": address },
    });
    assert.equal((await ask(server, `api=${apiId}`, from("198.51.100.1, 203.0.113.9"))).status, 200);
    assertRefused(await ask(server, `api=${apiId}`, from("203.0.113.9, 198.51.100.1")), 403, "FORBIDDEN");
  });

  it("answers 503 when the limit of its workspace is reached", async () => {
    const { key: as, workspaceId } = await server.workspace("busy");
    const { apiId } = await server.ok("apis.createApi", { name: "busy" }, { as });
    const { key } = await server.ok("keys.createKey", { apiId }, { as });
    await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 0 });
    const headers = { ...bearer(key), "x-latchkey-root-key": as };
    const reply = await ask(server, `api=${apiId}`, { headers });
    assertRefused(reply, 503, "UNDECIDED");
    assert.equal(reply.headers["retry-after"], "60");
  });
});
