/** gRPC of an edge beside that of its service: the same answers to gateways. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { EdgeInFront } from "./edge-in-front.ts";
import { GrpcClient, type GrpcReply } from "./grpc/client.ts";
import { CHECK, checkRequest, readCheckResponse } from "./grpc/envoy-check.ts";
import { type Descriptor, rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "./grpc/rate-limit-messages.ts";
import { callHeaders, END_HEADERS, frame, HEADERS, rawPeer } from "./grpc/raw-peer.ts";
import { stores, TestServer } from "./harness.ts";

const SEED = 20261127;
const HEALTH = "grpc.health.v1.Health/Check";
const [OK, UNAVAILABLE] = [0, 14];
const [SERVING, NOT_SERVING] = [Buffer.from([8, 1]), Buffer.from([8, 2])];
const serviceNamed = (name: string) => Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name)]);

/** An answer without what differs from one call, or from one key to its twin. */
function comparable({ status, message, body }: GrpcReply): unknown {
  if (status !== OK) return { status, message };
  const { actions, ...checked } = readCheckResponse(body);
  const text = JSON.stringify({ ...checked, actions: [...actions] });
  return JSON.parse(
    text
      .replaceAll(/\bkey_\w{16}/g, "key")
      .replaceAll(/\breq_\w+/g, "req")
      .replaceAll(/pk=:[^:]{12}:/g, "pk")
      .replaceAll(/;t=\d+/g, ";t=0")
      .replaceAll(/"retry-after":"\d+"/g, '"retry-after":"0"')
      .replaceAll(/"reset":\d+/g, '"reset":0'),
  );
}

for (const store of stores) {
  describe(`gRPC of an edge on ${store} (rule 195)`, () => {
    const home = new TestServer({ store, settings: { PORT: "0", GRPC_PORT: "0", TRUSTED_PROXIES: "127.0.0.1" } });
    let edge: EdgeInFront;
    let homes: GrpcClient;
    let edges: GrpcClient;
    let apiId: string;
    before(async () => {
      await home.open();
      await home.service.listen();
      edge = await EdgeInFront.open(home, { GRPC_PORT: "0" });
      const clientOf = (port: number | undefined) => new GrpcClient(`http://127.0.0.1:${port}`, home.rootKey);
      [homes, edges] = [clientOf(home.service.grpcAddress?.port), clientOf(edge.grpcPort)];
      apiId = await home.createApi();
    });
    after(async () => {
      await Promise.all([homes, edges].map((client) => client.close()));
      await edge.close();
      await home.close();
    });

    it("decides checks as the service does, whatever the key, the route and the caller are", async () => {
      const other = await home.ok("apis.createApi", { name: "other" });
      await home.ok("permissions.createPermission", { name: "read", slug: "documents.read" });
      await home.ok("plans.createPlan", { name: "Pro", ratelimits: [{ name: "plan", limit: 1, duration: 600_000 }] });
      const rootKeyOf = async (permissions: string[]) =>
        (await home.ok("rootKeys.createRootKey", { name: "proxy", permissions })).key as string;
      const weak = await rootKeyOf([`apis.${other.apiId}.verify_key`]);
      // Home alone knows root keys of other workspaces, and counts the requests of one with a limit.
      const away = await home.ok("workspaces.createWorkspace", { name: "away", requestsPerMinute: 100_000 });
      const awayApi = (await home.ok("apis.createApi", { name: "images" }, { as: away.key })).apiId;
      const random = seededRandom(SEED);
      const one = <T>(...choices: T[]): T => choices[random.below(choices.length)] as T;
      const seen = new Map<string, number>();
      let compared = 0;
      for (let n = 0; n < 50; n++) {
        const owner = one(home.rootKey, home.rootKey, home.rootKey, away.key as string);
        const own = owner === home.rootKey ? one(apiId, apiId, other.apiId) : awayApi;
        const members = {
          apiId: own,
          ...one({}, { meta: { n, text: "ä" } }),
          ...one({}, owner === home.rootKey ? { permissions: ["documents.read"] } : {}),
          ...one({}, {}, {}, { enabled: false }),
          ...one({}, { credits: { remaining: 2 } }),
          ...one<object>(
            {},
            { ratelimits: [{ name: "own", limit: 1, duration: 600_000, autoApply: true }] },
            owner === home.rootKey ? { plan: "Pro" } : {},
          ),
          ...one({}, {}, {}, { allowedIps: ["198.51.100.0/24"] }),
          ...one({}, {}, {}, {}, {}, { concurrency: [{ name: "jobs", limit: 2 }] }),
        };
        const twins: { key: string }[] = [];
        for (let i = 0; i < 2; i++) twins.push(await home.ok("keys.createKey", members, { as: owner }));
        for (let call = 0; call < 12; call++) {
          const as = one(
            owner,
            owner,
            owner,
            owner,
            owner,
            owner,
            owner,
            owner,
            weak,
            away.key as string,
            "unknown root key",
            null,
          );
          const header = one("authorization", "authorization", "authorization", "x-api-key");
          const extensions = {
            ...one(
              { api: own },
              { api: own },
              { api: own },
              { api: own },
              { api: own },
              { api: `${own},${other.apiId}` },
              { api: apiId },
              {},
            ),
            ...one({}, {}, {}, {}, { permission: one("documents.read", "documents.write", "documents.read AND") }),
            ...one({}, {}, {}, { cost: one("0", "1", "3", "-1") }),
            ...one({}, {}, {}, {}, {}, { limit: one("own", "absent", "burst:2:600s") }),
            ...(header === "x-api-key" && { header }),
            ...one({}, {}, { remove_key: "true" }),
            ...one({}, {}, { path: "*", tag: `n=${n}` }),
          };
          const presented = one<(key: string) => string>(
            (key) => key,
            (key) => key,
            (key) => key,
            (key) => key,
            () => "3kAqEg4u4qMxCGFAVMuGsb3cijGp",
            () => "",
          );
          const [source, isRaw] = [one("198.51.100.7", "192.0.2.9", "2001:db8::1"), one(false, true)];
          edge.outdate();
          const replies = await Promise.all(
            [homes, edges].map((client, i) => {
              const key = presented(twins[i]?.key ?? "");
              const value = header === "authorization" ? `Bearer ${key}` : key;
              const headers = { [header]: value, "x-latchkey-owner": "forged", "x-forwarded-for": "203.0.113.1" };
              return client.call(CHECK, checkRequest({ extensions, headers, source, isRaw, path: "/a?b=c" }), { as });
            }),
          );
          const [expected, found] = replies.map(comparable);
          assert.deepEqual(found, expected, JSON.stringify({ n, call, members, extensions, as, source }));
          const { status, body } = replies[0] as GrpcReply;
          const kind = status === OK ? readCheckResponse(body).metadata.code : `status ${status}`;
          seen.set(kind, (seen.get(kind) ?? 0) + 1);
          compared++;
        }
      }
      assert.equal(compared, 600);
      for (const kind of [
        "VALID",
        "NOT_FOUND",
        "DISABLED",
        "FORBIDDEN",
        "INSUFFICIENT_PERMISSIONS",
        "USAGE_EXCEEDED",
        "RATE_LIMITED",
        "HOLD_REQUIRED",
        "MISSING",
        "MISCONFIGURED",
        "status 16",
      ])
        assert.ok(seen.has(kind), `${kind} occurs: ${JSON.stringify([...seen])}`);
      const metrics = await edge.scrape();
      assert.match(metrics, /^latchkey_calls_total\{operation="envoy\.service\.auth\.v3\.Authorization\/Check"/m);
      assert.match(metrics, /^latchkey_edge_passed_on_total [1-9]/m);
      assert.match(metrics, /^latchkey_grpc_connections 1$/m);
    });

    it("counts descriptors as the service does, whatever the tree, the question and the caller are (rule 196)", async () => {
      const day = (requests_per_unit: number, more: object = {}) => ({
        rate_limit: { requests_per_unit, unit: "day", ...more },
      });
      const descriptors = [
        { key: "user", ...day(3, { name: "users" }), descriptors: [{ key: "path", ...day(2) }] },
        { key: "user", value: "vip*", ...day(5), share_threshold: true },
        { key: "free", rate_limit: { unlimited: true } },
        { key: "try", shadow_mode: true, ...day(1) },
        { key: "quota", quota_mode: true, ...day(2) },
        { key: "plan", ...day(1, { replaces: [{ name: "users" }] }) },
      ];
      const random = seededRandom(SEED);
      const one = <T>(...choices: T[]): T => choices[random.below(choices.length)] as T;
      const seen = new Map<string, number>();
      let compared = 0;
      for (let n = 0; n < 10; n++) {
        const twins = [`gate ${n} a`, `gate ${n} b`];
        const options = { atomic: one(true, false), metadata: one(true, false) };
        const ids: string[] = [];
        for (const namespace of twins) {
          await home.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
          await home.ok("ratelimits.setDescriptors", { namespace, descriptors, ...options });
          const override = { namespace, identifier: "team=a", limit: 2, duration: 86_400_000 };
          await home.ok("ratelimits.setOverride", override);
          const all = (await home.ok("ratelimits.listNamespaces", {})) as { id: string; name: string }[];
          ids.push(all.find(({ name }) => name === namespace)?.id as string);
        }
        const rootKeyOf = async (permissions: string[]) =>
          (await home.ok("rootKeys.createRootKey", { name: "proxy", permissions })).key as string;
        const single = await rootKeyOf(ids.map((id) => `ratelimits.${id}.limit`));
        const weak = await rootKeyOf(["apis.*.verify_key"]);
        const text = (namespace: string, body: string) =>
          body.replaceAll(namespace, "gate").replaceAll(/ns_\w{16}/g, "ns");
        for (let call = 0; call < 40; call++) {
          const as = one<string | null>(
            home.rootKey,
            home.rootKey,
            home.rootKey,
            single,
            single,
            weak,
            "unknown",
            null,
          );
          const asked = Array.from({ length: one(0, 1, 1, 1, 2, 3) }, (): Descriptor => {
            const user = one("a", "b", "vip 1", "vip 2");
            const entries = one<Descriptor["entries"]>(
              [["user", user]],
              [
                ["user", user],
                ["path", one("/", "/a")],
              ],
              [["free", "1"]],
              [["try", "1"]],
              [["quota", "1"]],
              [["plan", "pro"]],
              [["team", one("a", "b")]],
              [["", "x"]],
            );
            return {
              entries,
              ...one({}, {}, {}, { limit: [2, one(2, 4, 9)] as const }),
              ...one({}, {}, { hits: one(0, 2) }),
            };
          });
          const [domain, hits] = [one(0, 0, 0, 0, 1, 2), one(0, 0, 1, 3)];
          edge.outdate();
          const replies: GrpcReply[] = [];
          for (const [i, client] of [homes, edges].entries()) {
            const namespace = [twins[i], `never ${n}`, ""][domain] as string;
            replies.push(await client.call(SHOULD_RATE_LIMIT, rateLimitRequest(namespace, asked, hits), { as }));
          }
          const [expected, found] = replies.map(({ status, message, body }, i) =>
            text(
              twins[i] as string,
              JSON.stringify(status === OK ? readResponse(body) : { status, message: text(ids[i] as string, message) }),
            ),
          );
          assert.equal(found, expected, JSON.stringify({ n, call, asked, as, domain, hits, options }));
          const { status, body } = replies[0] as GrpcReply;
          const kind = status === OK ? `code ${readResponse(body).code}` : `status ${status}`;
          seen.set(kind, (seen.get(kind) ?? 0) + 1);
          compared++;
        }
      }
      assert.equal(compared, 400);
      for (const kind of ["code 1", "code 2", "status 3", "status 7", "status 16"])
        assert.ok((seen.get(kind) ?? 0) > 5, `${kind} occurs: ${JSON.stringify([...seen])}`);
      assert.deepEqual(await edges.call(SHOULD_RATE_LIMIT, Buffer.from([255])).then(({ status }) => status), 3);
    });

    it("says which descriptors only the service counts, and makes no namespace (rule 196)", async () => {
      const away = await home.ok("workspaces.createWorkspace", { name: "far", requestsPerMinute: 1_000 });
      const question = rateLimitRequest("gate 0 a", [{ entries: [["user", "far"]] }]);
      const refused = await edges.call(SHOULD_RATE_LIMIT, question, { as: away.key });
      assert.deepEqual([refused.status, /gRPC port of the service/.test(refused.message)], [9, true]);
      const named = async () => (await home.ok("ratelimits.listNamespaces", {})).length;
      const before = await named();
      const unknown = await edges.call(SHOULD_RATE_LIMIT, rateLimitRequest("never made", [{ entries: [["a", "b"]] }]));
      assert.deepEqual([unknown.status, await named()], [OK, before]);
    });

    it("counts in a namespace that was made, deleted and made again since (rule 196)", async () => {
      const question = rateLimitRequest("late", [{ entries: [["user", "a"]], limit: [1, 4] }]);
      const ask = async () => {
        edge.outdate();
        const { status, body } = await edges.call(SHOULD_RATE_LIMIT, question);
        const [found] = status === OK ? readResponse(body).statuses : [];
        return { status, code: found?.code, limit: found?.limit?.requestsPerUnit };
      };
      /** Asks until the edge knows of the change: within a second. */
      const askUntil = async (isLimited: boolean) => {
        for (let tries = 0; tries < 5; tries++) {
          const answer = await ask();
          if (answer.status === OK && (answer.limit !== undefined) === isLimited) return answer;
          await home.pass(250);
        }
        throw new Error("The edge has not noticed the change.");
      };
      const make = () =>
        home.ok("ratelimits.limit", { namespace: "late", identifier: "first", limit: 1, duration: 1_000, cost: 0 });
      const [free, first, over] = [
        { status: OK, code: 1, limit: undefined },
        { status: OK, code: 1, limit: 1 },
        { status: OK, code: 2, limit: 1 },
      ];
      assert.deepEqual(await ask(), free);
      await make();
      assert.deepEqual([await askUntil(true), await ask()], [first, over]);
      await home.ok("ratelimits.deleteNamespace", { namespace: "late" });
      assert.deepEqual(await askUntil(false), free);
      await make();
      assert.deepEqual([await askUntil(true), await ask()], [first, over]);
    });

    it("is healthy for what it answers", async () => {
      const names = ["", "envoy.service.auth.v3.Authorization", "envoy.service.ratelimit.v3.RateLimitService"];
      for (const name of names)
        assert.deepEqual((await edges.call(HEALTH, serviceNamed(name), { as: null })).body, SERVING);
      assert.equal((await edges.call(HEALTH, serviceNamed("other"), { as: null })).status, 5);
    });

    it("answers others while a peer opens more streams than it may", async () => {
      const { key } = await home.createKey(apiId);
      const { socket, closed } = await rawPeer(edge.grpcPort!);
      const head = callHeaders(CHECK);
      socket.write(
        Buffer.concat(Array.from({ length: 2_000 }, (_, i) => frame(HEADERS, END_HEADERS, 2 * i + 1, head))),
      );
      const question = checkRequest({ extensions: { api: apiId }, headers: { authorization: `Bearer ${key}` } });
      edge.outdate();
      const replies = await Promise.all(Array.from({ length: 50 }, () => edges.call(CHECK, question)));
      assert.ok(replies.every(({ status, body }) => status === OK && readCheckResponse(body).code === 0));
      await closed;
      const long = await edges.call(CHECK, Buffer.alloc(200_000));
      assert.equal(long.status, 8);
    });

    it("fails without the service, so that the gateway decides, and is not serving", async () => {
      const { key } = await home.createKey(apiId);
      const question = checkRequest({ extensions: { api: apiId }, headers: { authorization: `Bearer ${key}` } });
      edge.outdate();
      assert.equal((await edges.call(CHECK, question)).status, OK);
      edge.cutHome();
      edge.outdate();
      assert.equal((await edges.call(CHECK, question)).status, UNAVAILABLE);
      const descriptors = rateLimitRequest("gate 0 a", [{ entries: [["user", "a"]] }]);
      assert.equal((await edges.call(SHOULD_RATE_LIMIT, descriptors)).status, UNAVAILABLE);
      assert.deepEqual((await edges.call(HEALTH, Buffer.alloc(0), { as: null })).body, NOT_SERVING);
    });
  });
}
