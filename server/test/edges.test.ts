/** `latchkey edge` beside its service, as real processes: the same answers, the same limits, and nothing that outlives a revocation. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { statSync } from "node:fs";
import { createServer, request as requestHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { systemClock } from "../../engine/src/clock/system.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { eventually, launchEdge, makeFolder, ROOT_KEY, type Server, start, startEdge } from "./process.ts";

const SEED = 20261126;
/** Milliseconds after which a revoked key is dead everywhere. */
const REVOCATION_MAX = 1_000;

interface Started {
  folder: string;
  home: Server;
  edge: Server;
  edgeKey: { rootKeyId: string; key: string };
  apiId: string;
}

async function open(t: Pick<TestContext, "after">, ...args: string[]): Promise<Started> {
  const folder = makeFolder(t);
  const home = await start({ directory: folder });
  const permissions = ["replicas.*.open", "ratelimits.*.limit"];
  const edgeKey = await home.ok("rootKeys.createRootKey", { name: "edge", permissions });
  const edge = await startEdge(home, edgeKey.key, { directory: folder, args });
  const { apiId } = await home.ok("apis.createApi", { name: "images" });
  return { folder, home, edge, edgeKey, apiId };
}

interface Comparable {
  status: number;
  data?: { code: string; budgets?: object[] };
}

/** An answer without what differs from one call, or from one key to its twin. */
function comparable({ status, body }: { status: number; body: { data?: object; error?: object } }): Comparable {
  const text = JSON.stringify({ status, data: body.data, error: body.error });
  return JSON.parse(
    text
      .replaceAll(/\bkey_\w{16}/g, "key")
      .replaceAll(/"(keyId|id|budgetId|holdId|parentKeyId)":"[^"]*"/g, '"$1":""')
      .replaceAll(/"(reset|retryAfter|expires|expiresAt)":\d+/g, '"$1":0'),
  );
}

const WITHOUT_EDGES = "home has no operations of edges: upgrade the service first, or correct --upstream";

/** A server that answers edges as a service of an earlier release does. `asked` is how often. */
async function earlierRelease(atPort: number) {
  let asked = 0;
  const server = createServer((_, response) => {
    asked++;
    response.writeHead(404, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { detail: "There is nothing at this address." } }));
  });
  await once(server.listen(atPort, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get asked() {
      return asked;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("an edge and its service (rule 176)", () => {
  let started: Started;
  const undo: (() => void | Promise<void>)[] = [];
  before(async () => {
    started = await open({ after: (task) => void undo.push(task as () => void) });
  });
  after(async () => {
    for (const task of undo) await task();
  });

  it("answer calls alike, whatever the key has", async () => {
    const { home, edge, apiId } = started;
    const other = await home.ok("apis.createApi", { name: "other" });
    await home.ok("apis.updateApi", { apiId: other.apiId, allowedIps: ["192.0.2.0/24"] });
    await home.ok("permissions.createPermission", { name: "read", slug: "documents.read" });
    await home.ok("permissions.createPermission", { name: "write", slug: "documents.write" });
    await home.ok("permissions.createRole", { name: "editor" });
    await home.ok("permissions.setRolePermissions", { role: "editor", permissions: ["documents.write"] });
    await home.ok("identities.createIdentity", {
      externalId: "acme",
      meta: { tier: 2 },
      ratelimits: [{ name: "all", limit: 30, duration: 600_000, autoApply: true }],
    });
    await home.ok("plans.createPlan", { name: "Pro", ratelimits: [{ name: "plan", limit: 9, duration: 600_000 }] });
    const budget = await home.ok("budgets.createBudget", { name: "team", remaining: 40 });
    const weak = await home.ok("rootKeys.createRootKey", {
      name: "weak",
      permissions: [`apis.${other.apiId}.verify_key`],
    });
    const random = seededRandom(SEED);
    const one = <T>(...choices: T[]): T => choices[random.below(choices.length)] as T;
    const now = Date.now();
    let compared = 0;
    const codes = new Map<string, number>();
    for (let n = 0; n < 60; n++) {
      const members = {
        apiId: one(apiId, apiId, other.apiId),
        ...one({}, { name: `key ${n}` }, { meta: { n, text: "ä" } }),
        ...one({}, { permissions: ["documents.read"] }, { roles: ["editor"] }),
        ...one({}, {}, {}, { enabled: false }, { expires: now + 3_600_000 }),
        ...one({}, { externalId: "acme" }),
        ...one({}, {}, { credits: { remaining: 2 } }, { budgetId: budget.budgetId }),
        ...one(
          {},
          {},
          { ratelimits: [{ name: "own", limit: 4, duration: 600_000, autoApply: true }] },
          { plan: "Pro" },
        ),
        ...one({}, {}, {}, { allowedIps: ["198.51.100.0/24"] }),
        ...one({}, {}, {}, {}, { concurrency: [{ name: "jobs", limit: 2 }] }),
      };
      const twins = await Promise.all([home.ok("keys.createKey", members), home.ok("keys.createKey", members)]);
      const isDeleted = random.below(12) === 0;
      if (isDeleted) for (const { keyId } of twins) await home.ok("keys.deleteKey", { keyId });
      const derives = random.below(10) === 0 && members.enabled === undefined && !isDeleted;
      const keys = derives
        ? await Promise.all(
            twins.map(({ keyId }) =>
              home.ok("keys.deriveKey", { keyId, expires: now + 600_000 }).catch(() => ({ key: "none" })),
            ),
          )
        : twins;
      for (let call = 0; call < 10; call++) {
        const as = one(undefined, undefined, undefined, weak.key, null);
        const asked = {
          ...one({}, { apiId }, { keyspaces: [apiId, other.apiId] }),
          ...one(
            {},
            { permissions: one("documents.read", "documents.write AND documents.read", "documents.read AND") },
          ),
          ...one({}, {}, { clientIp: one("198.51.100.7", "192.0.2.9", "2001:db8::1") }),
          ...one({}, {}, { credits: { cost: one(0, 1, 3) } }),
          ...one({}, {}, {}, {}, {}, {}, { ratelimits: [{ name: one("own", "absent") }] }),
          ...one({}, {}, {}, {}, { ratelimits: [{ name: "ad-hoc", limit: 2, duration: 600_000 }] }),
          ...one({}, {}, {}, {}, {}, { hold: { ttl: 60_000 } }),
          ...one({}, { tags: [`path=/${n}`] }),
        };
        const expected = comparable(await home.call("keys.verifyKey", { key: keys[0].key, ...asked }, as));
        const found = comparable(await edge.call("keys.verifyKey", { key: keys[1].key, ...asked }, as));
        // Both twins spend from it.
        for (const { data } of [expected, found])
          for (const shared of data?.budgets ?? []) Object.assign(shared, { remaining: 0, held: 0 });
        // An identity's limit is shared by the twins too.
        if (members.externalId === undefined && !(members as { budgetId?: string }).budgetId)
          assert.deepEqual(found, expected, `key ${n}: ${JSON.stringify({ members, asked, as })}`);
        else assert.deepEqual(Object.keys(found), Object.keys(expected));
        codes.set(expected.data?.code ?? "problem", (codes.get(expected.data?.code ?? "problem") ?? 0) + 1);
        compared++;
      }
    }
    assert.equal(compared, 600);
    for (const code of [
      "VALID",
      "NOT_FOUND",
      "DISABLED",
      "INSUFFICIENT_PERMISSIONS",
      "FORBIDDEN",
      "RATE_LIMITED",
      "USAGE_EXCEEDED",
      "problem",
    ])
      assert.ok(codes.has(code), `${code} occurs: ${JSON.stringify([...codes])}`);
  });

  it("let together pass what a limit and the credits allow (rule 178)", async () => {
    const { home, edge, apiId } = started;
    const limited = await home.ok("keys.createKey", {
      apiId,
      ratelimits: [{ name: "r", limit: 25, duration: 3_600_000, autoApply: true }],
    });
    const paying = await home.ok("keys.createKey", { apiId, credits: { remaining: 25 } });
    for (const { key } of [limited, paying]) {
      const answers = await Promise.all(
        Array.from({ length: 80 }, (_, i) => (i % 2 === 0 ? home : edge).ok("keys.verifyKey", { key })),
      );
      assert.equal(answers.filter(({ valid }) => valid).length, 25);
    }
  });

  it("answer limits of namespaces alike, and let together pass what they allow (rules 178, 182 and 183)", async () => {
    const { home, edge } = started;
    const duration = 3_600_000;
    const names = ["mails", "logins"];
    for (const namespace of names)
      await home.ok("ratelimits.limit", { namespace, identifier: "x", limit: 1, duration, cost: 0 });
    await home.ok("ratelimits.setOverride", { namespace: "mails", identifier: "vip*", limit: 7, duration });
    await home.ok("ratelimits.setOverride", {
      namespace: "logins",
      identifier: "*shadow",
      limit: 1,
      duration,
      shadow: true,
    });
    const namespaces = await home.ok("ratelimits.listNamespaces", {});
    const { id } = namespaces.find(({ name }: { name: string }) => name === "mails");
    const grants = [[`ratelimits.${id}.limit`], ["ratelimits.*.create_namespace"], ["apis.*.verify_key"]];
    const callers: (string | null)[] = [ROOT_KEY, ROOT_KEY, null, "no root key"];
    for (const permissions of grants)
      callers.push((await home.ok("rootKeys.createRootKey", { name: "caller", permissions })).key);
    const random = seededRandom(SEED);
    const one = <T>(...choices: T[]): T => choices[random.below(choices.length)] as T;
    const entry = () => ({
      namespace: one("mails", "mails", "logins", id, "unknown"),
      identifier: one("u1", "u2", "vip 1", "a shadow"),
      limit: one(3, 20, 1_000),
      duration: one(duration, 60_000 * 60 * 24),
      ...one({}, {}, { cost: 0 }, { cost: 2 }, { cost: 5_000 }),
      ...one({}, {}, { mode: "strict" as const }),
      ...one({}, {}, {}, { shadow: true }),
    });
    /** The same call on counters of its own. */
    const twin = (of: string, { namespace, identifier, ...rest }: ReturnType<typeof entry>) => ({
      ...rest,
      namespace: namespace === "unknown" ? `new ${of} ${compared}` : namespace,
      identifier: identifier.startsWith("vip") ? `${identifier} ${of}` : `${of} ${identifier}`,
    });
    const ask = async (server: Server, operation: string, body: unknown, as: string | null) => {
      const response = await fetch(`${server.address}/v2/ratelimits.${operation}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(as !== null && { authorization: `Bearer ${as}` }) },
        body: JSON.stringify(body),
      });
      const answer = comparable({ status: response.status, body: (await response.json()) as { data?: object } });
      const policy = response.headers.get("ratelimit-policy");
      return { ...answer, policy: policy?.replace(/rlns_\w+/, "rlns"), hasState: response.headers.has("ratelimit") };
    };
    let compared = 0;
    const seen = new Map<string, number>();
    for (; compared < 400; compared++) {
      const isMany = random.below(4) === 0;
      const entries = Array.from({ length: isMany ? 1 + random.below(4) : 1 }, entry);
      const caller = one(...callers);
      const [expected, found] = await Promise.all(
        [home, edge].map((server, i) => {
          const bodies = entries.map((some) => twin(i === 0 ? "h" : "e", some));
          return ask(server, isMany ? "multiLimit" : "limit", isMany ? bodies : bodies[0], caller);
        }),
      );
      const neutral = (answer: object | undefined) =>
        JSON.parse(
          JSON.stringify(answer).replaceAll(/"identifier":"[^"]*"|new [he] \d+|rlns_\w+/g, (text) =>
            text.startsWith('"') ? '"identifier":""' : "name",
          ),
        );
      assert.deepEqual(neutral(found), neutral(expected), `${compared}: ${JSON.stringify(entries)}`);
      const kind = `${expected?.status} ${(expected?.data as { success?: boolean } | undefined)?.success}`;
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
    }
    for (const kind of ["200 true", "200 false", "401 undefined", "403 undefined"])
      assert.ok((seen.get(kind) ?? 0) > 10, JSON.stringify([...seen]));
    const limit = { namespace: "mails", identifier: "both", limit: 25, duration };
    const answers = await Promise.all(
      Array.from({ length: 80 }, (_, i) => (i % 2 === 0 ? home : edge).ok("ratelimits.limit", limit)),
    );
    assert.equal(answers.filter(({ success }) => success).length, 25);
    const metrics = await (await fetch(`${home.address}/metrics`)).text();
    assert.match(metrics, /^latchkey_calls_total\{.*replica\.charge/m);
  });

  it("pass on what is not decided here, as it arrived", async () => {
    const { edge, apiId } = started;
    const headers = { "content-type": "application/json", "idempotency-key": "one" };
    const create = async () => {
      const response = await fetch(`${edge.address}/v2/keys.createKey`, {
        method: "POST",
        headers: { ...headers, authorization: `Bearer ${ROOT_KEY}` },
        body: JSON.stringify({ apiId, name: "created through the edge" }),
      });
      return ((await response.json()) as { data: { keyId: string } }).data.keyId;
    };
    assert.equal(await create(), await create());
    const limit = { namespace: "emails", identifier: "a", limit: 2, duration: 3_600_000 };
    const passed = [];
    for (let i = 0; i < 4; i++) passed.push((await edge.ok("ratelimits.limit", limit)).success);
    assert.deepEqual(passed, [true, true, false, false]);
    const document = await fetch(`${edge.address}/openapi.json`);
    assert.equal(document.status, 200);
    assert.match(document.headers.get("content-type") ?? "", /json/);
    assert.equal((await fetch(`${edge.address}/nothing/here`)).status, 404);
    assert.equal((await edge.call("keys.getKey", { keyId: "key_none" }, null)).status, 401);
    const long = await edge.call("keys.createKey", { apiId, meta: { text: "x".repeat(9_000) } });
    assert.equal(long.status, 200);
  });

  it("verify for proxies alike", async () => {
    const { home, edge, apiId } = started;
    const { key } = await home.ok("keys.createKey", { apiId });
    const ask = async (server: Server, presented: string) => {
      const response = await fetch(`${server.address}/auth/verify?api=${apiId}`, {
        headers: { authorization: `Bearer ${presented}`, "x-latchkey-root-key": ROOT_KEY },
      });
      return [response.status, response.headers.get("x-latchkey-key-id"), response.headers.get("x-latchkey-code")];
    };
    for (const presented of [key, "unknown"]) assert.deepEqual(await ask(edge, presented), await ask(home, presented));
  });

  it("count each verification once (rule 180)", async () => {
    const { home, edge, apiId } = started;
    const { keyId, key } = await home.ok("keys.createKey", { apiId });
    const start = Date.now() - 60_000;
    for (let i = 0; i < 40; i++) await edge.ok("keys.verifyKey", { key, tags: ["from=edge"] });
    for (let i = 0; i < 5; i++) await home.ok("keys.verifyKey", { key });
    let total = 0;
    await eventually("the counts of the edge", async () => {
      const stats = await home.ok("analytics.getKeyStats", { keyId, start, end: Date.now() + 60_000 });
      total = totalOf(stats);
      return total >= 45;
    });
    assert.equal(total, 45);
  });
});

describe("an edge", () => {
  it("accepts no key more than a second after its revocation, also when home is killed (rule 177)", async (t) => {
    const { home, edge, apiId } = await open(t);
    const keys = await Promise.all(Array.from({ length: 20 }, () => home.ok("keys.createKey", { apiId })));
    for (const { key } of keys) assert.equal((await edge.ok("keys.verifyKey", { key }, null)).valid, true);
    for (const [i, { keyId, key }] of keys.entries()) {
      if (i === 15) await home.kill("SIGKILL");
      else if (i < 15) await home.ok("keys.deleteKey", { keyId });
      const revokedAt = systemClock.monotonic();
      await eventually(`the end of key ${i}`, async () => {
        const askedAt = systemClock.monotonic();
        const { status, body } = await edge.call("keys.verifyKey", { key }, null);
        const isValid = status === 200 && body.data.valid;
        if (askedAt - revokedAt > REVOCATION_MAX)
          assert.equal(isValid, false, `${askedAt - revokedAt} ms after its revocation`);
        return !isValid;
      });
    }
    assert.equal((await edge.call("keys.verifyKey", { key: keys[19].key }, null)).status, 503);
    // A key whose record was outdated when home ended is refused at once; the edge is ready until the others are a second old.
    await eventually("the end of readiness", async () => {
      return (await fetch(`${edge.address}/health/ready`)).status === 503;
    });
  });

  it("goes on for as long as it is told while home is away, and keeps its counts (rules 179 and 180)", async (t) => {
    const { folder, home, edge, apiId } = await open(t, "--stale", "5m");
    const { keyId, key } = await home.ok("keys.createKey", { apiId });
    for (let i = 0; i < 10; i++) await edge.ok("keys.verifyKey", { key }, null);
    const { port } = new URL(home.address);
    await home.kill("SIGKILL");
    await edge.logged("home does not answer: cached keys are verified as long as --stale allows");
    for (let i = 0; i < 10; i++) assert.equal((await edge.ok("keys.verifyKey", { key }, null)).valid, true);
    const ready = await fetch(`${edge.address}/health/ready`);
    assert.equal(ready.status, 200);
    assert.deepEqual(await ready.json(), { status: "degraded", checks: { home: "does not answer" } });
    const again = await start({ directory: folder, args: ["--port", port] });
    await edge.logged("home answers again");
    await again.ok("keys.deleteKey", { keyId });
    await eventually("the revocation", async () => !(await edge.ok("keys.verifyKey", { key }, null)).valid);
    const { key: other, keyId: otherId } = await again.ok("keys.createKey", { apiId });
    assert.equal((await edge.ok("keys.verifyKey", { key: other }, null)).valid, true);
    const range = { start: Date.now() - 600_000, end: Date.now() + 60_000 };
    await eventually("the counts", async () => {
      const of = async (id: string) => totalOf(await again.ok("analytics.getKeyStats", { keyId: id, ...range }));
      return (await of(otherId)) === 1;
    });
  });

  it("counts on after its root key opens fewer APIs, and says what is lost (rules 173 and 180)", async (t) => {
    const { folder, home, edge, edgeKey, apiId } = await open(t, "--stale", "5m");
    const { apiId: other } = await home.ok("apis.createApi", { name: "other" });
    const [kept, lost] = [
      await home.ok("keys.createKey", { apiId }),
      await home.ok("keys.createKey", { apiId: other }),
    ];
    const verify = (key: string) => edge.ok("keys.verifyKey", { key }, null);
    for (const { key } of [kept, lost]) await verify(key);
    const range = { start: Date.now() - 600_000, end: Date.now() + 600_000 };
    const of = async (at: Server, keyId: string) => totalOf(await at.ok("analytics.getKeyStats", { keyId, ...range }));
    await eventually("the first counts", async () => (await of(home, lost.keyId)) === 1);
    // Their records are read again: changes of before had not arrived.
    for (const { key } of [kept, lost]) await verify(key);
    const { port } = new URL(home.address);
    await home.kill("SIGKILL");
    await edge.logged("home does not answer: cached keys are verified as long as --stale allows");
    for (let i = 0; i < 3; i++) for (const { key } of [kept, lost]) await verify(key);
    const elsewhere = await start({ directory: folder });
    await elsewhere.ok("rootKeys.updateRootKey", {
      rootKeyId: edgeKey.rootKeyId,
      permissions: [`replicas.${apiId}.open`],
    });
    await elsewhere.kill("SIGKILL");
    const again = await start({ directory: folder, args: ["--port", port] });
    await eventually("the counts", async () => (await of(again, kept.keyId)) === 5);
    await edge.logged("home does not count verifications of this edge");
    await verify(kept.key);
    await eventually("later counts", async () => (await of(again, kept.keyId)) === 6);
    const metrics = await (await fetch(`${edge.address}/metrics`)).text();
    const notCounted = Number(/^latchkey_edge_lost_total (\d+)$/m.exec(metrics)?.[1]);
    assert.ok(notCounted >= 3);
    assert.equal((await of(again, lost.keyId)) + notCounted, 5);
  });

  it("reports at its end which root keys were used (rule 181)", async (t) => {
    const folder = makeFolder(t);
    const home = await start({ directory: folder, settings: { LOG_LEVEL: "debug" } });
    const { key: rootKey } = await home.ok("rootKeys.createRootKey", {
      name: "edge",
      permissions: ["replicas.*.open"],
    });
    // So that it reports nothing else.
    const edge = await startEdge(home, rootKey, { directory: folder, settings: { ANALYTICS: "off" } });
    await edge.ok("keys.verifyKey", { key: "unknown" });
    edge.signal("SIGTERM");
    await edge.ended;
    const reported = home.stdout.split("\n").filter((line) => line.includes('"/v2/replica.report"'));
    assert.equal(reported.length, 1);
    assert.match(reported[0] ?? "", /"status":200/);
  });

  it("decides nothing once its root key is deleted (rule 179)", async (t) => {
    const { home, edge, edgeKey, apiId } = await open(t);
    const { key } = await home.ok("keys.createKey", { apiId });
    assert.equal((await edge.ok("keys.verifyKey", { key }, null)).valid, true);
    await home.ok("rootKeys.deleteRootKey", { rootKeyId: edgeKey.rootKeyId });
    await edge.logged("home refuses the root key of this edge: it decides nothing until home accepts it");
    assert.equal((await edge.call("keys.verifyKey", { key }, null)).status, 503);
  });

  it("waits for a service that has edges, and says what to do", async (t) => {
    const folder = makeFolder(t);
    const earlier = await earlierRelease(0);
    const { port } = earlier;
    const edge = launchEdge({ address: `http://127.0.0.1:${port}` }, ROOT_KEY, { directory: folder });
    const line = await edge.logged(WITHOUT_EDGES);
    assert.match(JSON.stringify(line), /Home answered replica\.listChanges with 404: There is nothing at this address/);
    await earlier.close();
    const home = await start({ directory: folder, args: ["--port", String(port)] });
    await edge.logged("the edge is listening");
    // The same in the place of a service that had edges, once.
    await home.kill("SIGKILL");
    await edge.logged("home does not answer: cached keys are verified as long as --stale allows");
    const again = await earlierRelease(port);
    await eventually("the second line", () => edge.stdout.split(WITHOUT_EDGES).length === 3);
    const { asked } = again;
    await eventually("further questions", () => again.asked >= asked + 2);
    assert.equal(edge.stdout.split(WITHOUT_EDGES).length, 3);
    await again.close();
    await start({ directory: folder, args: ["--port", String(port)] });
    await edge.logged("home answers again");
  });

  it("answers on a Unix socket that its user and group may use", async (t) => {
    const folder = makeFolder(t);
    const home = await start({ directory: folder });
    const { key: edgeKey } = await home.ok("rootKeys.createRootKey", {
      name: "edge",
      permissions: ["replicas.*.open"],
    });
    const path = join(folder, "edge.sock");
    await startEdge(home, edgeKey, { directory: folder, args: ["--socket", path] });
    assert.equal(statSync(path).mode & 0o777, 0o660);
    const { apiId } = await home.ok("apis.createApi", { name: "images" });
    const { key } = await home.ok("keys.createKey", { apiId, allowedIps: ["127.0.0.1"] });
    const answer = await new Promise<string>((resolve, reject) => {
      const asked = requestHttp(
        {
          socketPath: path,
          path: "/v2/keys.verifyKey",
          method: "POST",
          headers: { "content-type": "application/json" },
        },
        async (response) => {
          let text = "";
          for await (const chunk of response) text += chunk;
          resolve(text);
        },
      );
      asked.on("error", reject);
      asked.end(JSON.stringify({ key }));
    });
    assert.equal(JSON.parse(answer).data.code, "VALID");
    const second = launchEdge(home, edgeKey, {
      directory: folder,
      args: ["--socket", path],
      settings: { DATA_DIR: join(folder, "second") },
    });
    assert.equal((await second.ended).code, 1);
    assert.match(second.stderr, /another edge listens there/);
    // It is the edge that ends, not the service.
    assert.doesNotMatch(second.stdout, /home does not answer/);
  });

  it("says in one line what ends its start", async (t) => {
    const folder = makeFolder(t);
    const home = await start({ directory: folder });
    const idle = await home.ok("rootKeys.createRootKey", { name: "idle", permissions: ["apis.*.verify_key"] });
    const { key } = await home.ok("rootKeys.createRootKey", { name: "edge", permissions: ["replicas.*.open"] });
    const socket = join(folder, "absent/edge.sock");
    const { port } = new URL(home.address);
    const starts: [rootKey: string, args: string[], message: RegExp][] = [
      [
        ROOT_KEY.replace(/.$/, "-"),
        [],
        /^latchkey: http:\/\/\S+ refuses the root key of this edge \(.* 401: .*replicas\.\*\.open\n$/,
      ],
      [idle.key, [], /^latchkey: http:\/\/\S+ refuses the root key of this edge \(.* 403: .*replicas\.\*\.open\n$/],
      [
        key,
        ["--socket", socket],
        /^latchkey: --socket \S+: the folder \S+absent does not exist\. Make it, or choose another path\n$/,
      ],
      [
        key,
        ["--port", port],
        /^latchkey: LATCHKEY_PORT=\d+: another process listens on 127\.0\.0\.1:\d+\. .*\(EADDRINUSE\)\n$/,
      ],
    ];
    for (const [i, [rootKey, args, message]] of starts.entries()) {
      const settings = { DATA_DIR: join(folder, `edge-${i}`) };
      const edge = launchEdge(home, rootKey, { directory: folder, args, settings });
      assert.equal((await edge.ended).code, 1);
      assert.match(edge.stderr, message);
    }
  });
});

/** A series of an edge. */
async function seriesOf(edge: Server, name: string): Promise<number> {
  const text = await (await fetch(`${edge.address}/metrics`)).text();
  return Number(new RegExp(`^${name.replace(/[{}"]/g, "\\$&")} (\\d+)`, "m").exec(text)?.[1] ?? Number.NaN);
}

describe("an edge with busy limits", () => {
  /** Windows that do not end during a test, but at midnight. */
  const DAY = 86_400_000;
  const limited = (home: Server, apiId: string, limit: number, duration: number) =>
    home.ok("keys.createKey", { apiId, ratelimits: [{ name: "r", limit, duration, autoApply: true }] });
  /** Calls in groups, as callers do that wait for answers. Returns the answers. */
  async function calls(server: Server, key: string, count: number) {
    const answers: { valid: boolean; ratelimits: { reset: number; remaining: number }[] }[] = [];
    while (answers.length < count) {
      const some = Array.from({ length: 10 }, () => server.ok("keys.verifyKey", { key }, null));
      answers.push(...(await Promise.all(some)));
    }
    return answers;
  }
  /** Calls until the limit is leased. Returns the number of calls. */
  async function lease(edge: Server, key: string): Promise<number> {
    let made = 0;
    await eventually("a lease", async () => {
      made += (await calls(edge, key, 20)).length;
      return (await seriesOf(edge, "latchkey_edge_leases")) > 0;
    });
    return made;
  }

  it("charges them here, and gives back what is left when it stops (rules 190, 192 and 193)", async (t) => {
    const { home, edge, apiId } = await open(t);
    const { key } = await limited(home, apiId, 100_000, DAY);
    let made = await lease(edge, key);
    const before = await seriesOf(edge, "latchkey_edge_leased_charges_total");
    for (const { valid, ratelimits } of await calls(edge, key, 1_000)) {
      assert.equal(valid, true);
      made++;
      assert.ok(ratelimits[0]!.remaining < 100_000 && ratelimits[0]!.reset > Date.now());
    }
    assert.ok((await seriesOf(edge, "latchkey_edge_leased_charges_total")) - before > 900);
    assert.ok((await seriesOf(edge, 'latchkey_edge_lease_questions_total{result="answered"}')) < 40);
    await eventually("the status", async () => {
      const { edges } = await home.ok("system.getStatus", {});
      await calls(edge, key, 10);
      made += 10;
      return edges?.list[0].leases > 0;
    });
    await edge.kill("SIGTERM");
    const [own] = (await home.ok("keys.verifyKey", { key })).ratelimits;
    assert.equal(own.remaining, 100_000 - made - 1);
  });

  it("and direct callers get no more than the limit in windows that roll (rule 190)", async (t) => {
    const { home, edge, apiId } = await open(t);
    const [limit, duration] = [300, 2_000];
    const { key } = await limited(home, apiId, limit, duration);
    const valid = new Map<number, number>();
    let denied = 0;
    await eventually("five windows", async () => {
      const both = await Promise.all([calls(edge, key, 60), calls(home, key, 20)]);
      for (const answer of both.flat()) {
        const { reset } = answer.ratelimits[0]!;
        if (answer.valid) valid.set(reset, (valid.get(reset) ?? 0) + 1);
        else denied++;
      }
      return valid.size >= 5;
    });
    for (const [reset, count] of valid) assert.ok(count <= limit, `${count} in the window until ${reset}`);
    assert.ok((await seriesOf(edge, "latchkey_edge_leased_charges_total")) > 20);
    assert.ok(denied > 0, "the limit was reached");
  });

  it("goes on from leases while the service is away (rule 193)", async (t) => {
    const { home, edge, apiId } = await open(t, "--stale", "5m");
    const { key } = await limited(home, apiId, 1_000_000, DAY);
    await lease(edge, key);
    await calls(edge, key, 1_000);
    await home.kill("SIGKILL");
    for (const answer of await calls(edge, key, 50)) assert.equal(answer.valid, true);
    await eventually("the end of the leases", async () => {
      const { status } = await edge.call("keys.verifyKey", { key }, null);
      return status === 503;
    });
    assert.equal((await edge.call("keys.verifyKey", { key }, null)).status, 503);
  });

  it("says in explanations what it would decide by (rule 197)", async (t) => {
    const { home, edge, apiId } = await open(t, "--name", "near");
    const { key, keyId } = await limited(home, apiId, 100_000, DAY);
    const explain = async (input: object = { key }) => (await edge.ok("keys.explainVerification", input)) as Explained;
    const first = await explain();
    const [listed] = (await home.ok("system.getStatus", {})).edges.list;
    assert.deepEqual(first.edge, { id: listed.id, name: "near", leases: [] });
    let made = await lease(edge, key);
    // What is counted is spent, or held here. What has ended is on its way back for a moment. The change that made the key may
    // arrive after the record and outdate it, so calls go on.
    let explained = first;
    await eventually("the sum of the leases", async () => {
      made += (await calls(edge, key, 10)).length;
      explained = await explain();
      const held = (explained.edge?.leases ?? []).reduce((sum, { remaining }) => sum + remaining, 0);
      return held > 0 && explained.ratelimits[0]?.used === made + held;
    });
    const { edge: near, ...ofHome } = explained;
    const now = Date.now();
    assert.ok(near?.record && near.record.currentAt > now - REVOCATION_MAX - 500 && near.record.currentAt <= now);
    for (const { name, from, expiresAt } of near.leases) {
      assert.deepEqual([name, from], ["r", "key"]);
      assert.ok(expiresAt > now - 500 && expiresAt <= now + 10_000);
    }
    // Everything else is the service's.
    const direct = await home.ok("keys.explainVerification", { key });
    assert.deepEqual(Object.keys(direct), Object.keys(ofHome));
    assert.equal("edge" in direct, false);
    assert.deepEqual((await explain({ keyId })).edge, { id: listed.id, name: "near", leases: [] });
    await home.ok("keys.deleteKey", { keyId });
    await eventually("the end of its record", async () => (await explain()).edge?.record === undefined);
    assert.deepEqual((await explain()).edge, { id: listed.id, name: "near", leases: [] });
  });

  it("tells nobody of a key, or of itself, who may not know (rule 197)", async (t) => {
    const { home, edge, apiId } = await open(t);
    const { key, keyId } = await limited(home, apiId, 100_000, DAY);
    await lease(edge, key);
    const rootKeyWith = async (...permissions: string[]) =>
      (await home.ok("rootKeys.createRootKey", { name: "other", permissions })).key as string;
    const explain = (as: string | null, input: object = { key }) => edge.call("keys.explainVerification", input, as);
    await eventually("the record", async () => {
      await calls(edge, key, 1);
      return (await explain(ROOT_KEY)).body.data.edge.record !== undefined;
    });
    const stranger = (await home.ok("workspaces.createWorkspace", { name: "stranger" })).key as string;
    const foreign = await explain(stranger);
    assert.deepEqual([foreign.body.data.code, foreign.body.data.edge], ["NOT_FOUND", undefined]);
    const blind = await explain(await rootKeyWith("apis.*.verify_key", "apis.api_other.read_key"));
    assert.equal(blind.body.data?.edge?.record, undefined);
    assert.equal(JSON.stringify(blind.body).includes(keyId), false);
    for (const as of [null, "no root key"]) assert.equal((await explain(as)).status, 401);
    // What home refuses, and what cannot be read, is answered as by home.
    for (const input of [{}, { key, keyId }, [], { key: 5 }, { key: { length: 1 } }, { key: "x".repeat(70_000) }]) {
      const [here, there] = [await explain(ROOT_KEY, input), await home.call("keys.explainVerification", input)];
      assert.deepEqual([here.status, here.body.error], [there.status, there.body.error]);
      assert.notEqual(here.status, 200);
    }
    const padded = await fetch(`${edge.address}/v2/keys.explainVerification`, {
      method: "POST",
      headers: { authorization: `Bearer ${ROOT_KEY}`, "content-type": "application/json" },
      body: `${JSON.stringify({ key })}${" ".repeat(100_000)}`,
    });
    const { data } = (await padded.json()) as { data: Explained };
    assert.deepEqual([data.key?.keyId, data.edge], [keyId, undefined]);
  });

  it("is told not to (rule 194)", async (t) => {
    const { home, edge, apiId } = await open(t, "--no-leases");
    const { key } = await limited(home, apiId, 1_000, DAY);
    await calls(edge, key, 200);
    assert.equal((await home.ok("keys.verifyKey", { key })).ratelimits[0].remaining, 1_000 - 201);
    assert.ok(Number.isNaN(await seriesOf(edge, "latchkey_edge_leases")));
  });
});

/** Members of an explanation. */
interface Explained {
  key?: { keyId: string };
  ratelimits: { used: number }[];
  edge?: {
    record?: { currentAt: number };
    leases: { name: string; from: string; remaining: number; expiresAt: number }[];
  };
}

function totalOf(stats: { series?: { total: number }[]; total?: number }): number {
  return (stats.series ?? []).reduce((sum, { total }) => sum + total, 0);
}
