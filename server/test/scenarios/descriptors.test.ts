/** Trees of descriptors: the limits of a namespace as users of envoyproxy/ratelimit know them. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescriptorNode } from "../../../engine/src/rules/descriptor-node.ts";
import { GrpcClient } from "../grpc/client.ts";
import { type Descriptor, rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import { type StoreKind, stores, TestServer } from "../harness.ts";

const [OK, OVER_LIMIT] = [1, 2];
const UINT32_MAX = 2 ** 32 - 1;
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

type Limit = NonNullable<DescriptorNode["rate_limit"]>;
const perMinute = (requests_per_unit: number, more: Partial<Limit> = {}): { rate_limit: Limit } => ({
  rate_limit: { requests_per_unit, unit: "minute", ...more },
});
const entries = (...pairs: [string, string][]): Descriptor => ({ entries: pairs });

for (const store of stores) {
  describe(`the descriptors of a namespace on ${store}`, () => {
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

    const set = (namespace: string, descriptors: DescriptorNode[], more: object = {}) =>
      server.ok("ratelimits.setDescriptors", { namespace, descriptors, ...more });

    /** A new namespace with this tree. */
    async function domain(descriptors: DescriptorNode[], more: object = {}): Promise<string> {
      const namespace = `descriptors ${++named}`;
      await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
      await set(namespace, descriptors, more);
      return namespace;
    }

    async function ask(namespace: string, descriptors: Descriptor[], hits?: number) {
      const { status, message, body } = await client.call(
        SHOULD_RATE_LIMIT,
        rateLimitRequest(namespace, descriptors, hits),
      );
      assert.equal(status, 0, message);
      return readResponse(body);
    }

    const codes = async (namespace: string, descriptors: Descriptor[], hits?: number) =>
      (await ask(namespace, descriptors, hits)).statuses.map(({ code }) => code);
    /** The limit that applies to one descriptor, and what is left of it; undefined: none applies. */
    const left = async (namespace: string, descriptor: Descriptor) => {
      const [status] = (await ask(namespace, [descriptor])).statuses;
      return status!.limit && ([status!.limit.requestsPerUnit, status!.remaining] as const);
    };

    it("are not stored beside an earlier release, which would not apply them (rule 146)", async () => {
      const namespace = "beside an earlier release";
      await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
      const body = { namespace, descriptors: [{ key: "a", ...perMinute(1) }] };
      if (store === "postgres") {
        await server.besideEarlierRelease(async () => {
          const { detail } = await server.rejected("ratelimits.setDescriptors", body, "precondition_failed");
          assert.match(detail, /would not apply descriptors/);
        });
      }
      assert.deepEqual((await server.ok("ratelimits.getDescriptors", { namespace })).descriptors, []);
      await server.ok("ratelimits.setDescriptors", body);
    });

    it("are matched level by level: a value, a beginning, any value (rule 142)", async () => {
      const namespace = await domain([
        { key: "key", ...perMinute(100) },
        { key: "key", value: "exact", ...perMinute(200) },
        { key: "key", value: "ex*", ...perMinute(300) },
        {
          key: "tenant",
          descriptors: [
            { key: "path", value: "/a", ...perMinute(400), descriptors: [{ key: "verb", ...perMinute(500) }] },
            { key: "path", value: "/b" },
          ],
        },
      ]);
      const found = async (...pairs: [string, string][]) => (await left(namespace, entries(...pairs)))?.[0];
      assert.equal(await found(["key", "exact"]), 200);
      assert.equal(await found(["key", "exactly"]), 300);
      assert.equal(await found(["key", "e"]), 100);
      assert.equal(await found(["key", ""]), 100);
      assert.equal(await found(["tenant", "t"], ["path", "/a"]), 400);
      assert.equal(await found(["tenant", "t"], ["path", "/a"], ["verb", "GET"]), 500);
      // The whole descriptor has to match at the depth of the limit.
      assert.equal(await found(["tenant", "t"]), undefined);
      assert.equal(await found(["tenant", "t"], ["path", "/b"]), undefined);
      assert.equal(await found(["tenant", "t"], ["path", "/b"], ["verb", "GET"]), undefined);
      assert.equal(await found(["tenant", "t"], ["path", "/a"], ["verb", "GET"], ["more", "x"]), undefined);
      assert.equal(await found(["path", "/a"], ["tenant", "t"]), undefined);
      // Keys and values are compared apart, so no value leads to the limit of another key.
      assert.equal(await found(["key_exact", ""]), undefined);
      const none = await ask(namespace, [entries(["unknown", "x"])]);
      assert.deepEqual(none, { code: OK, statuses: [{ code: OK, remaining: 0 }] });
    });

    it("come after the limit that a call brings, and before overrides (rule 142)", async () => {
      const namespace = await domain([
        { key: "user", value: "both", ...perMinute(10) },
        { key: "user", value: "without" },
      ]);
      for (const value of ["both", "without", "other"]) {
        const override = { namespace, identifier: `user=${value}`, limit: 20, duration: MINUTE };
        await server.ok("ratelimits.setOverride", override);
      }
      assert.deepEqual(await left(namespace, { ...entries(["user", "both"]), limit: [30, 2] }), [30, 29]);
      assert.deepEqual(await left(namespace, entries(["user", "both"])), [10, 8]);
      assert.deepEqual(await left(namespace, entries(["user", "without"])), [20, 19]);
      assert.deepEqual(await left(namespace, entries(["user", "other"])), [20, 19]);
    });

    it("count each value apart, and with share_threshold all that a beginning matches together (rule 143)", async () => {
      const namespace = await domain([
        { key: "any", ...perMinute(1) },
        { key: "apart", value: "f/*", ...perMinute(1) },
        {
          key: "shared",
          value: "f/*",
          share_threshold: true,
          ...perMinute(2),
          descriptors: [{ key: "verb", ...perMinute(1) }],
        },
      ]);
      const asked = async (...pairs: [string, string][]) => (await codes(namespace, [entries(...pairs)]))[0];
      assert.deepEqual(
        [await asked(["any", "a"]), await asked(["any", "b"]), await asked(["any", "a"])],
        [OK, OK, OVER_LIMIT],
      );
      assert.deepEqual([await asked(["apart", "f/a"]), await asked(["apart", "f/b"])], [OK, OK]);
      assert.equal(await asked(["apart", "f/b"]), OVER_LIMIT);
      assert.deepEqual([await asked(["shared", "f/a"]), await asked(["shared", "f/b"])], [OK, OK]);
      assert.equal(await asked(["shared", "f/c"]), OVER_LIMIT);
      assert.equal(await asked(["shared", "f/a"], ["verb", "GET"]), OK);
      assert.equal(await asked(["shared", "f/b"], ["verb", "GET"]), OVER_LIMIT);
      assert.equal(await asked(["shared", "f/b"], ["verb", "PUT"]), OK);
      // A value that looks like the shared one has another counter than it.
      const shared = { namespace, identifier: "shared=f/*", limit: 2, duration: MINUTE, cost: 0 };
      assert.equal((await server.ok("ratelimits.limit", shared)).remaining, 0);
      assert.equal((await server.ok("ratelimits.limit", { ...shared, identifier: "shared=f/%2A" })).remaining, 2);
    });

    it("without a bound pass with remaining 2^32-1, and count nothing (rule 144)", async () => {
      const namespace = await domain([{ key: "free", rate_limit: { unlimited: true } }]);
      assert.deepEqual(await ask(namespace, [entries(["free", "x"])], 10 ** 9), {
        code: OK,
        statuses: [{ code: OK, remaining: UINT32_MAX }],
      });
    });

    it("in shadow mode pass and are counted (rule 144)", async () => {
      const namespace = await domain([{ key: "try", shadow_mode: true, ...perMinute(1) }]);
      assert.deepEqual(await left(namespace, entries(["try", "x"])), [1, 0]);
      const over = await ask(namespace, [entries(["try", "x"])]);
      assert.deepEqual([over.code, over.statuses[0]!.code, over.statuses[0]!.remaining], [OK, OK, 0]);
      const input = { namespace, identifier: "try=x", limit: 1, duration: MINUTE, cost: 0 };
      assert.equal((await server.ok("ratelimits.limit", input)).remaining, 0);
      // It would have been over, and the event says that nobody was rejected.
      await server.pass(5_000);
      const { data } = (await server.call("events.listEvents", { types: ["limit.exceeded"] })).body;
      const event = data.find((one: { data: { identifier?: string } }) => one.data.identifier === "try=x");
      assert.equal(event?.data.shadow, true);
    });

    it("in quota mode are over only when all of the call are (rule 144)", async () => {
      const namespace = await domain(
        [
          { key: "small", quota_mode: true, ...perMinute(1) },
          { key: "large", quota_mode: true, ...perMinute(2) },
          { key: "plain", ...perMinute(100) },
        ],
        { metadata: true },
      );
      const asked = [entries(["small", "x"]), entries(["large", "x"]), entries(["plain", "x"])];
      const all: number[][] = [];
      const violations: unknown[] = [];
      for (let call = 0; call < 3; call++) {
        const { code, statuses, metadata } = await ask(namespace, asked);
        all.push([code, ...statuses.map((status) => status.code)]);
        violations.push(metadata!.quotaModeViolations);
      }
      assert.deepEqual(all, [
        [OK, OK, OK, OK],
        [OK, OK, OK, OK],
        [OVER_LIMIT, OVER_LIMIT, OVER_LIMIT, OK],
      ]);
      assert.deepEqual(violations, [undefined, [0], [0, 1]]);
    });

    it("leave out the limits that they replace, in any order (rule 144)", async () => {
      const namespace = await domain([
        { key: "general", ...perMinute(1, { name: "general" }) },
        { key: "special", ...perMinute(5, { name: "special", replaces: [{ name: "general" }] }) },
        { key: "free", rate_limit: { unlimited: true, replaces: [{ name: "general" }, { name: "special" }] } },
      ]);
      const [general, special, free] = [entries(["general", "x"]), entries(["special", "x"]), entries(["free", "x"])];
      for (let call = 0; call < 3; call++) {
        const { code, statuses } = await ask(namespace, [general, special]);
        assert.deepEqual([code, statuses[0]], [OK, { code: OK, remaining: 0 }]);
        assert.deepEqual(statuses[1]!.limit, { requestsPerUnit: 5, unit: 2, name: "special" });
        assert.equal(statuses[1]!.remaining, 4 - call);
      }
      assert.deepEqual(await codes(namespace, [special, general, free]), [OK, OK, OK]);
      // Nothing of them was counted.
      assert.deepEqual(await left(namespace, special), [5, 1]);
      assert.deepEqual(await left(namespace, general), [1, 0]);
      assert.deepEqual(await codes(namespace, [general]), [OVER_LIMIT]);
    });

    it("count every descriptor that has a limit, in the order of the call", async () => {
      const namespace = await domain([
        { key: "one", ...perMinute(1) },
        { key: "many", ...perMinute(9) },
      ]);
      const asked = [entries(["none", "x"]), entries(["one", "x"]), entries(["many", "x"])];
      assert.deepEqual(await codes(namespace, asked), [OK, OK, OK]);
      assert.deepEqual(await codes(namespace, asked), [OK, OVER_LIMIT, OK]);
      const { statuses } = await ask(namespace, asked);
      assert.deepEqual(
        statuses.map(({ remaining }) => remaining),
        [0, 0, 6],
      );
    });

    it("with atomic charge all descriptors of a call or none (rule 145)", async () => {
      const namespace = await domain(
        [
          { key: "one", ...perMinute(1) },
          { key: "many", ...perMinute(9) },
          { key: "shadow", shadow_mode: true, ...perMinute(9) },
          { key: "quota", quota_mode: true, ...perMinute(9) },
        ],
        { atomic: true },
      );
      const asked = [entries(["many", "x"]), entries(["one", "x"]), entries(["shadow", "x"]), entries(["quota", "x"])];
      const remaining = async () => {
        const { code, statuses } = await ask(namespace, asked);
        return [code, ...statuses.map((status) => [status.code, status.remaining])];
      };
      const passed = [OK, [OK, 8], [OK, 0], [OK, 8], [OK, 8]];
      assert.deepEqual(await remaining(), passed);
      const denied = [OVER_LIMIT, [OK, 8], [OVER_LIMIT, 0], [OK, 8], [OK, 8]];
      assert.deepEqual(await remaining(), denied);
      assert.deepEqual(await remaining(), denied);
      // Limits in shadow and quota mode reject nothing, and so keep nothing from being counted.
      assert.deepEqual(await codes(namespace, [asked[2]!, asked[3]!], 100), [OK, OVER_LIMIT]);
      assert.deepEqual(await left(namespace, asked[0]!), [9, 7]);
    });

    it("know every unit, and name a limit as the tree does", async () => {
      const units = ["second", "minute", "hour", "day", "month", "year", "week"] as const;
      const lengths = [1_000, MINUTE, HOUR, DAY, 30 * DAY, 365 * DAY, 7 * DAY];
      const namespace = await domain(
        units.map((unit) => ({ key: unit, rate_limit: { requests_per_unit: UINT32_MAX, unit, name: `per ${unit}` } })),
      );
      for (const [i, unit] of units.entries()) {
        const [status] = (await ask(namespace, [entries([unit, "x"])])).statuses;
        const limit = { requestsPerUnit: UINT32_MAX, unit: i + 1, name: `per ${unit}` };
        assert.deepEqual([status!.limit, status!.remaining], [limit, UINT32_MAX - 1]);
        assert.equal(status!.reset, lengths[i]! - (server.clock.now() % lengths[i]!));
      }
    });

    it("answer dynamic metadata where the namespace says so", async () => {
      const tree: DescriptorNode[] = [{ key: "quota", quota_mode: true, ...perMinute(5) }];
      const namespace = await domain(tree, { metadata: true });
      const { metadata } = await ask(namespace, [{ ...entries(["quota", "a=b"], ["none", ""]), hits: 2 }], 3);
      assert.deepEqual(metadata, {
        domain: namespace,
        descriptors: [{ entries: ["quota=a=b", "none="], hitsAddend: 2 }],
        hitsAddend: 3,
        quotaModeEnabled: false,
      });
      await set(namespace, tree);
      assert.equal((await ask(namespace, [entries(["quota", "a"])])).metadata, undefined);
    });

    it("are replaced as a whole, apply to the next call, and end with their namespace (rule 146)", async () => {
      const tree: DescriptorNode[] = [{ key: "a", ...perMinute(1) }];
      const namespace = await domain(tree);
      assert.deepEqual(await left(namespace, entries(["a", "x"])), [1, 0]);
      const written: DescriptorNode[] = [
        { key: "b", value: "", shadow_mode: false, ...perMinute(7, { replaces: [] }), descriptors: [] },
      ];
      await set(namespace, written, { atomic: true });
      const { updatedAt, namespaceId, ...read } = await server.ok("ratelimits.getDescriptors", { namespace });
      assert.deepEqual(read, {
        namespace,
        descriptors: [{ key: "b", ...perMinute(7) }],
        atomic: true,
        metadata: false,
      });
      assert.equal(updatedAt, server.clock.now());
      assert.equal(await left(namespace, entries(["a", "x"])), undefined);
      assert.deepEqual(await left(namespace, entries(["b", "x"])), [7, 6]);
      // The same unit is the same counter.
      await set(namespace, [{ key: "b", ...perMinute(9) }]);
      assert.deepEqual(await left(namespace, entries(["b", "x"])), [9, 7]);
      await set(namespace, []);
      assert.equal(await left(namespace, entries(["b", "x"])), undefined);
      const empty = { namespace, namespaceId, descriptors: [], atomic: false, metadata: false };
      assert.deepEqual(await server.ok("ratelimits.getDescriptors", { namespace }), empty);
      await set(namespace, tree);
      await server.ok("ratelimits.deleteNamespace", { namespace });
      assert.equal(await left(namespace, entries(["a", "x"])), undefined);
      await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000 });
      assert.deepEqual((await server.ok("ratelimits.getDescriptors", { namespace })).descriptors, []);
      const { data } = (await server.call("audit.listEvents", { target: namespaceId })).body;
      const actions = data.map(({ action }: { action: string }) => action);
      assert.equal(actions.filter((name: string) => name === "ratelimits.setDescriptors").length, 5);
    });

    it("that are not valid are rejected with their place, and change nothing (rule 146)", async () => {
      const tree: DescriptorNode[] = [{ key: "kept", ...perMinute(1) }];
      const namespace = await domain(tree);
      let deep: object = { key: "k" };
      for (let level = 0; level < 16; level++) deep = { key: "k", descriptors: [deep] };
      const minute = { unit: "minute" };
      const invalid: [unknown[], string | undefined, RegExp][] = [
        [[{}], "/properties/descriptors/items/required", /descriptors\[0\]\.key/],
        [[{ key: "" }], undefined, /descriptors\[0\]\.key must be at least 1/],
        [[{ key: "a".repeat(513) }], undefined, /at most 512 characters/],
        [[{ key: "k", values: "x" }], undefined, /'values'/],
        [[{ key: "k", value: 5 }], undefined, /descriptors\[0\]\.value must be a string/],
        [[{ key: "k", rate_limit: {} }], undefined, /rate_limit must have `requests_per_unit` and `unit`/],
        [[{ key: "k", rate_limit: { requests_per_unit: 1 } }], undefined, /must have/],
        [[{ key: "k", rate_limit: { ...minute, requests_per_unit: -1 } }], undefined, /at least 0/],
        [[{ key: "k", rate_limit: { ...minute, requests_per_unit: 2 ** 32 } }], undefined, /at most 4294967295/],
        [[{ key: "k", rate_limit: { unit: "fortnight", requests_per_unit: 1 } }], undefined, /must be one of "second"/],
        [[{ key: "k", rate_limit: { ...minute, unlimited: true } }], undefined, /must not be true beside `unit`/],
        [[{ key: "k", share_threshold: true }], undefined, /ends with an asterisk/],
        [
          [{ key: "k", rate_limit: { unlimited: true, name: "n", replaces: [{ name: "n" }] } }],
          undefined,
          /is the name of the same limit/,
        ],
        ...['quoted"', "back\\slash", "line\r\nx-admin: 1", "ü"].map((name): [unknown[], undefined, RegExp] => [
          [{ key: "k", rate_limit: { unlimited: true, name } }],
          undefined,
          /rate_limit\.name may hold printable ASCII/,
        ]),
        [
          [
            { key: "k" },
            {
              key: "a",
              descriptors: [
                { key: "k", value: "v" },
                { key: "k", value: "v" },
              ],
            },
          ],
          "/properties/descriptors/items/properties/descriptors/items/uniqueItems",
          /descriptors\[1\]\.descriptors\[1\] has the key and the value of an earlier one/,
        ],
        [[{ key: "k" }, { key: "k", value: "" }], undefined, /of an earlier one/],
        [[deep], "/properties/descriptors/maxDepth", /deeper than 16 levels/],
        [Array.from({ length: 10_001 }, (_, i) => ({ key: `${i}` })), undefined, /more than 10000 descriptors/],
        [
          Array.from({ length: 3_000 }, (_, i) => ({ key: `${i}`.padEnd(400, "x") })),
          "/properties/descriptors/maxBytes",
          /at most 1048576 bytes/,
        ],
      ];
      for (const [descriptors, location, message] of invalid) {
        const { status, body } = await server.call("ratelimits.setDescriptors", { namespace, descriptors });
        assert.equal(status, 400, JSON.stringify(descriptors).slice(0, 200));
        assert.match(body.error.errors[0].message, message);
        if (location !== undefined) assert.equal(body.error.errors[0].location, location);
      }
      assert.deepEqual((await server.ok("ratelimits.getDescriptors", { namespace })).descriptors, tree);
    });

    it("need the permissions of overrides, and belong to one workspace", async () => {
      const namespace = await domain([{ key: "a", ...perMinute(1) }]);
      const { namespaceId } = await server.ok("ratelimits.getDescriptors", { namespace });
      const reader = await server.grant(`ratelimits.${namespaceId}.read_override`);
      const writer = await server.grant(`ratelimits.${namespaceId}.set_override`);
      const body = { namespace, descriptors: [] };
      const status = async (operation: string, input: object, as: string) =>
        (await server.call(operation, input, { as })).status;
      assert.equal(await status("ratelimits.getDescriptors", { namespace }, reader.key), 200);
      assert.equal(await status("ratelimits.setDescriptors", body, reader.key), 403);
      assert.equal(await status("ratelimits.getDescriptors", { namespace }, writer.key), 403);
      assert.equal(await status("ratelimits.setDescriptors", body, writer.key), 200);
      const other = await server.workspace(`other of ${store}`);
      for (const [operation, input] of [
        ["ratelimits.getDescriptors", { namespace: namespaceId }],
        ["ratelimits.setDescriptors", { ...body, namespace: namespaceId }],
      ] as const) {
        assert.equal(await status(operation, input, other.key), 404);
      }
    });
  });
}
