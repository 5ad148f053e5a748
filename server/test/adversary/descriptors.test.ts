/** Trees of descriptors, whose values come from strangers, and whose owner can be one: neither fills what others need. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescriptorNode } from "../../../engine/src/rules/descriptor-node.ts";
import { GrpcClient } from "../grpc/client.ts";
import { type Descriptor, rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import { TestServer } from "../harness.ts";

const [OK, RESOURCE_EXHAUSTED, UNAVAILABLE] = [0, 8, 14];
const OVER_LIMIT = 2;
const PER_CALL = 100;
/** More values than there is room for counters. */
const VALUES = 40_000;
const perDay = { requests_per_unit: 1, unit: "day" } as const;

describe("a tree of descriptors", () => {
  const server = new TestServer({
    settings: { PORT: "0", GRPC_PORT: "0", COUNTER_BYTES: "1m", WORKSPACE_REQUESTS_PER_MINUTE: "1000000" },
  });
  const clients: GrpcClient[] = [];
  before(async () => {
    await server.open();
    await server.service.listen();
  });
  after(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.close();
  });

  /** A workspace of its own with this tree in its namespace `edge`. */
  async function tenant(name: string, descriptors: DescriptorNode[]) {
    const { key } = await server.workspace(name);
    const first = { namespace: "edge", identifier: "first", limit: 1, duration: 1_000, cost: 0 };
    await server.ok("ratelimits.limit", first, { as: key });
    await server.ok("ratelimits.setDescriptors", { namespace: "edge", descriptors }, { as: key });
    const client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, key);
    clients.push(client);
    return async (asked: Descriptor[]) => {
      const { status, body } = await client.call(SHOULD_RATE_LIMIT, rateLimitRequest("edge", asked));
      return { status, codes: status === OK ? readResponse(body).statuses.map(({ code }) => code) : [] };
    };
  }

  const address = (i: number): Descriptor => ({ entries: [["address", `invented ${i}`]] });
  const many = (first: number) => Array.from({ length: PER_CALL }, (_, i) => address(first + i));

  it("counts values of strangers in the share of its workspace, and then decides nothing about new ones", async () => {
    const flooded = await tenant("flooded", [{ key: "address", rate_limit: perDay }]);
    const statuses = new Map<number, number>();
    for (let first = 0; first < VALUES; first += PER_CALL) {
      const { status } = await flooded(many(first));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    assert((statuses.get(OK) ?? 0) > 50, JSON.stringify([...statuses]));
    // Undecided is never over the limit.
    const refused = [...statuses.keys()].filter((status) => status !== OK);
    assert(refused.length > 0 && refused.every((status) => [RESOURCE_EXHAUSTED, UNAVAILABLE].includes(status)));
    // What is counted goes on to count.
    assert.deepEqual(new Set((await flooded(many(0))).codes), new Set([OVER_LIMIT]));
    const other = await tenant("beside", [{ key: "address", rate_limit: perDay }]);
    assert.deepEqual((await other([address(1)])).codes, [1]);
    assert.deepEqual((await other([address(1)])).codes, [OVER_LIMIT]);
  });

  it("has one counter for all values that share a threshold", async () => {
    const sharing = await tenant("sharing", [
      {
        key: "address",
        value: "invented*",
        share_threshold: true,
        rate_limit: { ...perDay, requests_per_unit: VALUES },
      },
    ]);
    for (let first = 0; first < VALUES; first += PER_CALL) {
      const { status, codes } = await sharing(many(first));
      assert.equal(status, OK);
      assert(codes.every((code) => code === 1));
    }
    assert.deepEqual((await sharing([address(0)])).codes, [OVER_LIMIT]);
  });

  it("can be the largest one, which its neighbour does not feel", async () => {
    // Each beginning is one of the next: a search that tried all of them would look at 500 for each value.
    const beginnings = Array.from({ length: 500 }, (_, i) => ({ key: "k", value: `${"x".repeat(i + 1)}*` }));
    const hostile = await tenant("hostile", [
      ...beginnings.map((node) => ({ ...node, descriptors: [{ key: "z", rate_limit: perDay }] })),
    ]);
    const value = "x".repeat(490);
    const deep = (): Descriptor => ({
      entries: [
        ["k", value],
        ["y", "1"],
      ],
    });
    const { status, codes } = await hostile(Array.from({ length: 80 }, deep));
    assert.deepEqual([status, codes.length, new Set(codes)], [OK, 80, new Set([1])]);
    const calm = await tenant("calm", [{ key: "user", rate_limit: perDay }]);
    const [one] = await Promise.all([calm([{ entries: [["user", "1"]] }]), hostile(Array.from({ length: 80 }, deep))]);
    assert.deepEqual(one, { status: OK, codes: [1] });
  });

  it("floods with the largest trees and with megabytes of descriptors: another workspace gets every answer (rule 153)", async () => {
    const padding = "x".repeat(60);
    const largest = (turn: number) =>
      Array.from({ length: 6_000 }, (_, i) => ({ key: "k", value: `${padding}${turn} ${i}*` }));
    const { key } = await server.workspace("flooding");
    const first = { namespace: "edge", identifier: "first", limit: 1, duration: 1_000, cost: 0 };
    await server.ok("ratelimits.limit", first, { as: key });
    const innocent = await tenant("beside trees", [{ key: "user", rate_limit: { ...perDay, requests_per_unit: 50 } }]);

    const megabyte = Array.from(
      { length: 10_000 },
      (_, i): Descriptor => ({ entries: [["k", `${padding}${padding}${i}`]] }),
    );
    const deepest = Array.from(
      { length: PER_CALL },
      (_, i): Descriptor => ({
        entries: Array.from({ length: 32 }, (_, j): [string, string] => ["k", `${i} ${j}`]),
      }),
    );
    let isOver = false;
    const trees = async () => {
      for (let turn = 1; !isOver; turn++) {
        await server.ok("ratelimits.setDescriptors", { namespace: "edge", descriptors: largest(turn) }, { as: key });
      }
    };
    const calls = async () => {
      const statuses = new Set<number>();
      while (!isOver) {
        // A client of Node keeps what it could not send of a rejected message, so each has its own connection.
        const client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, key);
        for (const asked of [megabyte, deepest]) {
          statuses.add((await client.call(SHOULD_RATE_LIMIT, rateLimitRequest("edge", asked))).status);
        }
        client.session.destroy();
      }
      return statuses;
    };
    const floods = Promise.all([trees(), calls(), calls()]);
    const codes: number[][] = [];
    for (let i = 0; i < 51; i++) codes.push((await innocent([{ entries: [["user", "innocent"]] }])).codes);
    isOver = true;
    const [, statuses] = await floods;
    assert.deepEqual(codes, [...Array.from({ length: 50 }, () => [1]), [OVER_LIMIT]]);
    assert.deepEqual(statuses, new Set([RESOURCE_EXHAUSTED, OK]));
  });
});
