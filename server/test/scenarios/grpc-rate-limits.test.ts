/** `ShouldRateLimit`: the rate limit service of Envoy. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { type CallSettings, GrpcClient, type GrpcReply } from "../grpc/client.ts";
import { type Descriptor, rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import { type StoreKind, stores, TestServer } from "../harness.ts";

const [OK, OVER_LIMIT] = [1, 2];
const [SECOND, MINUTE] = [1, 2];
const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;
const UINT32_MAX = 2 ** 32 - 1;

for (const store of stores) {
  describe(`ShouldRateLimit on ${store}`, () => {
    const server = new TestServer({ store: store as StoreKind, settings: { PORT: "0", GRPC_PORT: "0" } });
    let client: GrpcClient;
    let named = 0;
    before(async () => {
      await server.open();
      await server.service.listen();
      client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, server.rootKey);
    });
    after(async () => {
      await client.close();
      await server.close();
    });

    /** A new namespace. */
    async function domain(): Promise<string> {
      const namespace = `gateway ${++named}`;
      await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
      return namespace;
    }

    async function ask(namespace: string, descriptors: readonly Descriptor[], hits?: number, settings?: CallSettings) {
      const { status, message, body } = await client.call(
        SHOULD_RATE_LIMIT,
        rateLimitRequest(namespace, descriptors, hits),
        settings,
      );
      assert.equal(status, 0, message);
      return readResponse(body);
    }

    const fails = async (message: Buffer, status: number, settings?: CallSettings) => {
      const reply = await client.call(SHOULD_RATE_LIMIT, message, settings);
      assert.equal(reply.status, status, reply.message);
      assert.equal(reply.body.length, 0);
      return reply.message;
    };

    const descriptor = (value: string, requests: number, unit = MINUTE, hits?: number): Descriptor => ({
      entries: [["user", value]],
      limit: [requests, unit],
      ...(hits !== undefined && { hits }),
    });

    it("counts a descriptor against the limit that it brings (rule 119)", async () => {
      const namespace = await domain();
      const first = await ask(namespace, [descriptor("a", 2)]);
      assert.equal(first.code, OK);
      const [status] = first.statuses;
      assert.deepEqual([status!.code, status!.remaining], [OK, 1]);
      assert.deepEqual(status!.limit, { requestsPerUnit: 2, unit: MINUTE, name: "" });
      assert.equal(status!.reset, 60_000 - (server.clock.now() % 60_000));
      assert.equal((await ask(namespace, [descriptor("a", 2)])).code, OK);
      const over = await ask(namespace, [descriptor("a", 2)]);
      assert.deepEqual([over.code, over.statuses[0]!.code, over.statuses[0]!.remaining], [OVER_LIMIT, OVER_LIMIT, 0]);
      assert.equal((await ask(namespace, [descriptor("b", 2)])).code, OK);
    });

    it("counts against the override with exactly the identifier of the descriptor (rule 119)", async () => {
      const namespace = await domain();
      const set = (identifier: string, limit: number, duration = 60_000) =>
        server.ok("ratelimits.setOverride", { namespace, identifier, limit, duration });
      await set("path=/login&ip=10.0.0.1", 1);
      await set("path=*", 1);
      await set("plan=pro", 7, 90_000);
      await set("text=a%26b%3Dc%2A%25", 3);
      const entries = (...pairs: [string, string][]): Descriptor[] => [{ entries: pairs }];
      const login = entries(["path", "/login"], ["ip", "10.0.0.1"]);
      assert.deepEqual((await ask(namespace, login)).statuses[0]!.limit?.requestsPerUnit, 1);
      assert.equal((await ask(namespace, login)).code, OVER_LIMIT);
      // Neither patterns nor texts that only look alike apply.
      for (const none of [
        entries(["path", "/other"]),
        entries(["path", "/login&ip=10.0.0.1"]),
        entries(["path", "*"]),
        entries(["ip", "10.0.0.1"], ["path", "/login"]),
      ]) {
        assert.deepEqual(await ask(namespace, none), { code: OK, statuses: [{ code: OK, remaining: 0 }] });
      }
      const escaped = await ask(namespace, entries(["text", "a&b=c*%"]));
      assert.equal(escaped.statuses[0]!.remaining, 2);
      // A duration that is no unit has a name.
      const odd = await ask(namespace, entries(["plan", "pro"]));
      assert.deepEqual(odd.statuses[0]!.limit, { requestsPerUnit: 7, unit: 0, name: "7 per 90000 ms" });
    });

    it("shares its counters with calls of the API", async () => {
      const namespace = await domain();
      await ask(namespace, [descriptor("shared", 5)]);
      const input = { namespace, identifier: "user=shared", limit: 5, duration: 60_000, cost: 0 };
      assert.equal((await server.ok("ratelimits.limit", input)).remaining, 4);
    });

    it("counts every descriptor that has a limit, also when another one is over (rule 120)", async () => {
      const namespace = await domain();
      const both = [descriptor("first", 1), descriptor("second", 5), { entries: [["no", "limit"]] as const }];
      assert.deepEqual(
        (await ask(namespace, both)).statuses.map(({ code, remaining }) => [code, remaining]),
        [
          [OK, 0],
          [OK, 4],
          [OK, 0],
        ],
      );
      const over = await ask(namespace, both);
      assert.deepEqual(
        over.statuses.map(({ code, remaining }) => [code, remaining]),
        [
          [OVER_LIMIT, 0],
          [OK, 3],
          [OK, 0],
        ],
      );
      assert.equal(over.statuses[2]!.limit, undefined);
      assert.equal(over.code, OVER_LIMIT);
    });

    it("charges what is left when a cost is over, so that a smaller one does not pass after it (rule 120)", async () => {
      const namespace = await domain();
      assert.equal((await ask(namespace, [descriptor("a", 10)], 8)).statuses[0]!.remaining, 2);
      assert.equal((await ask(namespace, [descriptor("a", 10)], 5)).code, OVER_LIMIT);
      assert.equal((await ask(namespace, [descriptor("a", 10)], 1)).code, OVER_LIMIT);
    });

    it("admits the limit in each window of a caller that never stops (rule 120)", async () => {
      const namespace = await domain();
      // To the start of a second, of which the caller sends 15 times a tenth of the limit.
      await server.pass(1_000 - (server.clock.now() % 1_000));
      let admitted = 0;
      for (let call = 0; call < 150; call++) {
        if ((await ask(namespace, [descriptor("eager", 10, SECOND)])).code === OK) admitted++;
        await server.advance(call % 3 === 2 ? 66 : 67);
      }
      assert(admitted >= 95 && admitted <= 110, `${admitted} of 150 in ten seconds`);
    });

    it("takes the hits of the descriptor before those of the request, 0 only checks (rule 121)", async () => {
      const namespace = await domain();
      const left = async (hits?: number, own?: number) =>
        (await ask(namespace, [descriptor("a", 100, MINUTE, own)], hits)).statuses[0]!.remaining;
      assert.equal(await left(), 99);
      assert.equal(await left(0), 98);
      assert.equal(await left(3), 95);
      assert.equal(await left(3, 10), 85);
      assert.equal(await left(3, 0), 85);
      assert.equal(await left(undefined, 2 ** 60), 0);
    });

    it("clamps what does not fit into 32 bits", async () => {
      const namespace = await domain();
      await server.ok("ratelimits.setOverride", { namespace, identifier: "k=v", limit: 10 ** 12, duration: 60_000 });
      const { statuses } = await ask(namespace, [{ entries: [["k", "v"]] }]);
      assert.equal(statuses[0]!.remaining, UINT32_MAX);
      assert.equal(statuses[0]!.limit!.requestsPerUnit, UINT32_MAX);
    });

    it("knows all units", async () => {
      const namespace = await domain();
      const [hour, day] = [3_600_000, 86_400_000];
      for (const [unit, duration] of [1_000, 60_000, hour, day, 30 * day, 365 * day, 7 * day].entries()) {
        const { statuses } = await ask(namespace, [descriptor("a", 5, unit + 1)]);
        assert.equal(statuses[0]!.limit!.unit, unit + 1);
        assert.equal(statuses[0]!.reset, duration - (server.clock.now() % duration));
      }
    });

    it("limits nothing in a domain that is no namespace, and makes none (rule 119)", async () => {
      const answer = await ask("nowhere", [descriptor("a", 0)]);
      assert.deepEqual(answer, { code: OK, statuses: [{ code: OK, remaining: 0 }] });
      const { data } = (await server.call("ratelimits.listNamespaces", { search: "nowhere" })).body;
      assert.deepEqual(data, []);
      const other = await server.workspace(`other of ${store}`);
      const namespace = await domain();
      assert.deepEqual((await ask(namespace, [descriptor("a", 0)], 0, { as: other.key })).code, OK);
      assert.equal((await ask(namespace, [descriptor("a", 0)])).code, OVER_LIMIT);
    });

    it("keeps a long descriptor apart from others with the same beginning", async () => {
      const namespace = await domain();
      const long = (end: string) => [descriptor("x".repeat(5_000) + end, 1)];
      assert.equal((await ask(namespace, long("1"))).code, OK);
      assert.equal((await ask(namespace, long("2"))).code, OK);
      assert.equal((await ask(namespace, long("1"))).code, OVER_LIMIT);
    });

    it("rejects what is not a request (rule 122)", async () => {
      const namespace = await domain();
      const one = descriptor("a", 1);
      const invalid: [Buffer, RegExp][] = [
        [rateLimitRequest("", [one]), /domain is empty/],
        [rateLimitRequest("x".repeat(513), [one]), /512 characters/],
        [rateLimitRequest("a\0b", [one]), /U\+0000/],
        [rateLimitRequest(namespace, []), /no descriptor/],
        [
          rateLimitRequest(
            namespace,
            Array.from({ length: 101 }, () => one),
          ),
          /100 descriptors/,
        ],
        [rateLimitRequest(namespace, [{ entries: [] }]), /no entry/],
        [
          rateLimitRequest(namespace, [{ entries: Array.from({ length: 33 }, () => ["a", "b"] as const) }]),
          /32 entries/,
        ],
        [rateLimitRequest(namespace, [{ entries: [["", "b"]] }]), /no key/],
        [rateLimitRequest(namespace, [descriptor("a", 1, 8)]), /unit 8/],
        [rateLimitRequest(namespace, [descriptor("a", 1, 0)]), /unit 0/],
        [rateLimitRequest(namespace, [one]).subarray(0, -1), /format of protobuf/],
      ];
      for (const [message, detail] of invalid) assert.match(await fails(message, INVALID_ARGUMENT), detail);
      await fails(Buffer.alloc(65 * 1_024), RESOURCE_EXHAUSTED);
    });

    it("counts the characters of a domain as other calls do, and fails no look-up of others (rule 226)", async () => {
      const namespace = "\u{1f511}".repeat(512);
      await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
      assert.equal((await ask(namespace, [descriptor("a", 1)])).code, OK);
      const others = ["not", "looked", "up", "before"].map((one) =>
        server.call("ratelimits.limit", { namespace: `${one} ${store}`, identifier: "a", limit: 1, duration: 1_000 }),
      );
      await fails(rateLimitRequest("a\0b", [descriptor("a", 1)]), INVALID_ARGUMENT);
      for (const { status } of await Promise.all(others)) assert.equal(status, 200);
    });

    it("needs a root key that may count in the namespace (rule 122)", async () => {
      const namespace = await domain();
      const message = rateLimitRequest(namespace, [descriptor("a", 1)]);
      await fails(message, UNAUTHENTICATED, { as: null });
      await fails(message, UNAUTHENTICATED, { as: "unknown" });
      await fails(message, INVALID_ARGUMENT, { as: null, headers: { authorization: "Basic abc" } });
      const reader = await server.grant("ratelimits.*.read_override");
      await fails(message, PERMISSION_DENIED, { as: reader.key });
      await fails(rateLimitRequest("nowhere", [descriptor("a", 1)]), PERMISSION_DENIED, { as: reader.key });
      const [{ id }] = (await server.call("ratelimits.listNamespaces", { search: namespace })).body.data;
      const limiter = await server.grant(`ratelimits.${id}.limit`);
      assert.equal((await ask(namespace, [descriptor("a", 1)], 0, { as: limiter.key })).code, OK);
      await fails(rateLimitRequest(await domain(), [descriptor("a", 1)]), PERMISSION_DENIED, { as: limiter.key });
      // A revoked root key counts nothing more.
      await server.ok("rootKeys.deleteRootKey", { rootKeyId: limiter.rootKeyId });
      await fails(message, UNAUTHENTICATED, { as: limiter.key });
    });

    it("answers what is not decided with UNAVAILABLE, never with OVER_LIMIT (rule 123)", async () => {
      const namespace = await domain();
      await ask(namespace, [descriptor("a", 1)]);
      server.store.interception = async () => {
        throw new StoreUnavailable("no answer");
      };
      await fails(rateLimitRequest("not cached", [descriptor("a", 1)]), UNAVAILABLE);
      server.store.interception = undefined;
      assert.equal((await ask(namespace, [descriptor("b", 1)])).code, OK);
    });
  });
}

it("answers with UNAVAILABLE when there is no room for another counter (rule 123)", async () => {
  const server = await new TestServer({ settings: { PORT: "0", GRPC_PORT: "0", COUNTER_BYTES: "1m" } }).open();
  await server.service.listen();
  const client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, server.rootKey);
  await server.ok("ratelimits.limit", { namespace: "full", identifier: "first", limit: 1, duration: 1_000 });
  let reply: GrpcReply | undefined;
  for (let call = 0; call < 1_000 && (reply?.status ?? 0) === 0; call++) {
    const descriptors = Array.from({ length: 100 }, (_, i): Descriptor => {
      return { entries: [["id", `${call} ${i}`]], limit: [1, MINUTE] };
    });
    reply = await client.call(SHOULD_RATE_LIMIT, rateLimitRequest("full", descriptors));
    if (reply.status === 0) assert.equal(readResponse(reply.body).code, OK);
  }
  assert.equal(reply!.status, UNAVAILABLE, reply!.message);
  await client.close();
  await server.close();
});
