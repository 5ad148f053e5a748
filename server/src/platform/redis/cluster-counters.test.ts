import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import fc from "fast-check";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import type { ChargeResult, LimitDecision } from "../../../../engine/src/limits/counters.ts";
import { describeCounters } from "../../../../engine/src/limits/counters-contract.ts";
import { MemoryCounters } from "../../../../engine/src/limits/memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "../../../../engine/src/limits/memory-table.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import { DURATION_MAX } from "../../../../engine/src/rules/window.ts";
import { eventually } from "../../../test/process.ts";
import {
  type RedisCluster as ClusterServers,
  type Member,
  startRedisCluster,
} from "../../../test/services/redis-groups.ts";
import { parseRedisAddress, type RedisAddress } from "./address.ts";
import { RedisCluster, type RedisClusterOptions } from "./cluster.ts";
import { ClusterCounters, type ClusterCountersOptions } from "./cluster-counters.ts";
import { PARTITIONS, partitionOf, SLOTS } from "./partitions.ts";
import { counterScripts, type OutagePolicy } from "./redis-counters.ts";

const SLOTS_PER_PARTITION = SLOTS / PARTITIONS;
const noon = 1_800_000_000_000;
let servers: ClusterServers;
let shared: RedisCluster;
let opened: { close(): void }[] = [];
before(async () => {
  servers = await startRedisCluster();
  shared = await RedisCluster.open(options({ timeout: 10_000 }));
});
after(async () => {
  shared?.close();
  await servers?.stop();
});
afterEach(() => {
  for (const one of opened) one.close();
  opened = [];
});

function options(more: Partial<RedisClusterOptions> = {}): RedisClusterOptions {
  return {
    address: parseRedisAddress(servers.url) as RedisAddress & { kind: "cluster" },
    clock: systemClock,
    timeout: 10_000,
    scripts: counterScripts,
    onOutage() {},
    onBack() {},
    onPrimaries() {},
    onWarning() {},
    ...more,
  };
}

let prefixes = 0;
describeCounters("Redis Cluster", () => {
  const clock = new SimulatedClock(noon);
  const counters = new ClusterCounters({
    partition: (number) => shared.partition(number),
    clock,
    random: systemRandom,
    policy: { kind: "open" },
    onLoss() {},
    prefix: `contract:${prefixes++}:`,
    simulatedTime: () => clock.now(),
  });
  return {
    counters,
    lender: counters,
    now: () => clock.now(),
    advance: (length) => clock.step(length),
    close: () => counters.close(),
  };
});

describe("ClusterCounters", () => {
  /** Opens a node with a connection of its own to each primary, as soon as all of them answer in time. */
  async function openNode(more: Partial<ClusterCountersOptions & RedisClusterOptions> = {}) {
    const outages: string[] = [];
    const losses: number[] = [];
    const onOutage = (_: unknown, server: string) => outages.push(server);
    let connected: RedisCluster | undefined;
    await eventually("all primaries", async () => {
      connected = await RedisCluster.open(options({ onOutage, ...more })).catch(() => undefined);
      if (connected?.hasOutage) connected.close();
      return connected?.hasOutage === false;
    });
    const cluster = connected!;
    outages.length = 0;
    const counters = new ClusterCounters({
      partition: (number) => cluster.partition(number),
      clock: systemClock,
      random: systemRandom,
      policy: { kind: "closed" },
      onLoss: (_, partition) => losses.push(partition),
      prefix: `node:${prefixes++}:`,
      ...more,
    });
    opened.push(cluster, counters);
    return { cluster, counters, outages, losses };
  }

  function localPolicy(): OutagePolicy {
    const table = new MemoryTable(reserveTable(SEGMENT_BYTES, false), 1, [17, -4]);
    return { kind: "local", counters: new MemoryCounters(table, systemClock) };
  }

  /** The duration is so long that no test reaches the end of a window by the clock of Redis. */
  const unit = { limit: 3, duration: DURATION_MAX, cost: 1 };
  const huge = 1_000_000;
  let names = 0;
  const freshName = () => `counter ${names++}`;

  /** A name whose partition this server has. */
  async function nameAt(cluster: RedisCluster, server: Member): Promise<string> {
    for (;;) {
      const name = freshName();
      if (cluster.serverOf(partitionOf(name)) === server.name) return name;
    }
  }

  /** A name in a partition. */
  function nameIn(partition: number): string {
    for (;;) {
      const name = freshName();
      if (partitionOf(name) === partition) return name;
    }
  }

  const usedOf = async (counters: ClusterCounters, counter: string) => {
    const look = decided(await counters.peek([{ ...unit, counter, limit: huge, cost: 0 }]));
    return huge - look.limits[0]!.remaining;
  };

  it("charges all limits of concurrent calls or none, on two nodes", async () => {
    const prefix = `property:${prefixes++}:`;
    const nodes = [await openNode({ prefix }), await openNode({ prefix })];
    const call = fc.record({
      node: fc.nat(1),
      charges: fc.uniqueArray(fc.record({ counter: fc.nat(5), cost: fc.integer({ min: 1, max: 3 }) }), {
        minLength: 1,
        maxLength: 4,
        selector: ({ counter }) => counter,
      }),
    });
    let returned = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 6, maxLength: 6 }),
        fc.array(call, { minLength: 30, maxLength: 80 }),
        async (limits, calls) => {
          const counters = limits.map(freshName);
          const used = limits.map(() => 0);
          const one = async ({ node, charges }: (typeof calls)[number]) => {
            const verdict = await nodes[node]!.counters.charge(
              charges.map(({ counter, cost }) => ({
                ...unit,
                counter: counters[counter]!,
                limit: limits[counter]!,
                cost,
              })),
            );
            if (decided(verdict).allowed) for (const { counter, cost } of charges) used[counter]! += cost;
          };
          await Promise.all(calls.map(one));
          for (const [i, limit] of limits.entries()) {
            assert.ok(used[i]! <= limit);
            assert.equal(await usedOf(nodes[0]!.counters, counters[i]!), used[i]);
          }
        },
      ),
      { numRuns: 40 },
    );
    for (const { counters } of nodes) {
      returned += counters.returned;
      assert.equal(counters.unreturned, 0);
    }
    assert.ok(returned > 0, "no call was given back");
  });

  it("gives back what it charged when a later server does not answer", async () => {
    // A replica that took over would lack what the next test has just counted.
    await servers.failOverAfter(60_000);
    const { cluster, counters } = await openNode({ timeout: 1_500 });
    const [first, , last] = await servers.primaries();
    const before = await nameAt(cluster, first!);
    const behind = await nameAt(cluster, last!);
    assert.ok(partitionOf(before) < partitionOf(behind));
    const call = [before, behind].map((counter) => ({ ...unit, counter, limit: 100 }));
    assert.equal(decided(await counters.charge(call)).allowed, true);
    // Both parts say yes when they are looked at, then the second one falls silent.
    const paused = new Promise<void>((resolve) => {
      const { decide } = cluster.partition(partitionOf(before));
      cluster.partition(partitionOf(before)).decide = function (script, keys, args, deadline) {
        if (!args.join().includes("0,1]") && keys.some((key) => key.includes("receipt"))) {
          last!.signal("SIGSTOP");
          resolve();
        }
        return decide.call(this, script, keys, args, deadline);
      };
    });
    const verdict = counters.charge(call);
    await paused;
    try {
      assert.notEqual((await verdict).outcome, "decided");
      await eventually("the return", async () => (await usedOf(counters, before)) === 1);
    } finally {
      last!.signal("SIGCONT");
    }
    await servers.untilServed();
    await servers.failOverAfter(1_000);
    await eventually("the server", () => !cluster.hasOutage);
    assert.ok((await usedOf(counters, behind)) <= 2);
  });

  it("asks again after a second where a count may have been given back", async () => {
    const clock = new SimulatedClock(noon);
    const prefix = `age:${prefixes++}:`;
    const more = { clock, prefix, simulatedTime: () => clock.now() };
    const one = new ClusterCounters({ ...more, partition: (n) => shared.partition(n), ...common() });
    const other = new ClusterCounters({ ...more, partition: (n) => shared.partition(n), ...common() });
    const counter = freshName();
    const call = [{ ...unit, counter }];
    for (let i = 0; i < 3; i++) await one.charge(call);
    assert.equal(decided(await other.charge(call)).allowed, false);
    const { sent } = other;
    clock.step(999);
    assert.equal(decided(await other.charge(call)).allowed, false);
    assert.equal(other.sent, sent);
    clock.advance(1_000);
    assert.equal(decided(await other.charge(call)).allowed, false);
    assert.equal(other.sent, sent + 1);
  });

  it("loads the scripts again after SCRIPT FLUSH on one server", async () => {
    const { counters, outages } = await openNode();
    const calls = Array.from({ length: 50 }, () => [freshName(), freshName()].map((counter) => ({ ...unit, counter })));
    for (const call of calls) assert.equal(decided(await counters.charge(call)).allowed, true);
    const [primary] = await servers.primaries();
    await primary!.send("SCRIPT", "FLUSH");
    for (const call of calls) assert.equal(decided(await counters.charge(call)).allowed, true);
    assert.deepEqual(outages, []);
  });

  it("detects what one server has lost, and denies only its earlier windows under `closed`", async () => {
    const { cluster, counters, losses } = await openNode();
    const [emptied, kept] = await servers.primaries();
    const lost = await nameAt(cluster, emptied!);
    const safe = await nameAt(cluster, kept!);
    for (const counter of [lost, safe])
      assert.equal(decided(await counters.charge([{ ...unit, counter }])).allowed, true);
    const { epochs } = counters;
    await emptied!.send("FLUSHALL");
    assert.equal(decided(await counters.charge([{ ...unit, counter: lost }])).allowed, false);
    assert.equal(decided(await counters.charge([{ ...unit, counter: safe }])).allowed, true);
    assert.deepEqual(losses, [partitionOf(lost)]);
    // A process that starts later, with what this one has recorded, detects the loss of another partition.
    await emptied!.send("FLUSHALL");
    const later = await openNode({ lastEpochs: epochs, prefix: `node:${prefixes - 1}:` });
    assert.equal(decided(await later.counters.charge([{ ...unit, counter: lost }])).allowed, false);
    assert.deepEqual(later.losses, [partitionOf(lost)]);
  });

  /** Callers that charge pairs of counters again and again. Counts what was admitted per counter. */
  function load(counters: ClusterCounters, pairs: readonly (readonly [string, string])[], limit: number) {
    const admitted = new Map<string, number>();
    const undecided: string[] = [];
    let calls = 0;
    let isOver = false;
    const callers = pairs.map(async (pair) => {
      while (!isOver) {
        const verdict = await counters.charge(pair.map((counter) => ({ ...unit, counter, limit })));
        calls++;
        // Leaves time to the servers, which share the machine.
        await new Promise<void>((resolve) => systemClock.schedule(2, resolve));
        if (verdict.outcome !== "decided") undecided.push(verdict.outcome);
        else if (verdict.allowed) for (const counter of pair) admitted.set(counter, (admitted.get(counter) ?? 0) + 1);
      }
    });
    return {
      admitted,
      undecided,
      calls: () => calls,
      async stop() {
        isOver = true;
        await Promise.all(callers);
      },
    };
  }

  const freshPairs = (count: number) => Array.from({ length: count }, () => [freshName(), freshName()] as const);

  it("counts exactly while slots are moved", async () => {
    const { cluster, counters, outages, losses } = await openNode();
    // The lowest slots of the first primary are moved, and one counter of each pair with them.
    const moved = 4;
    const pairs = Array.from({ length: 2 * moved }, (_, i) => [nameIn(i % moved), freshName()] as const);
    const limit = huge / 2;
    const running = load(counters, pairs, limit);
    await eventually("calls", () => running.calls() > 100);
    const [from, to] = await servers.primaries();
    const [source, target] = await Promise.all([from!, to!].map((one) => one.send("CLUSTER", "MYID")));
    const move = (a: unknown, b: unknown) =>
      servers.manage(
        ...[
          "reshard",
          from!.name,
          "--cluster-from",
          String(a),
          "--cluster-to",
          String(b),
          "--cluster-slots",
          String(moved * SLOTS_PER_PARTITION),
        ],
        "--cluster-yes",
      );
    assert.equal(cluster.serverOf(0), from!.name);
    await move(source, target);
    await eventually("the new map", () => cluster.serverOf(moved - 1) === to!.name);
    const callsBefore = running.calls();
    await eventually("calls after the move", () => running.calls() > callsBefore + 100);
    await running.stop();
    assert.deepEqual([outages, losses], [[], []]);
    for (const counter of pairs.flat()) assert.equal(await usedOf(counters, counter), running.admitted.get(counter));
    assert.deepEqual(
      [...new Set(running.undecided)].filter((outcome) => outcome !== "late"),
      [],
    );
  });

  it("names the servers that count, without a former primary that still answers", async () => {
    const { cluster } = await openNode();
    const [former] = await servers.primaries();
    const roles = await Promise.all(servers.members.map((member) => member.send("ROLE") as Promise<unknown[]>));
    const replica = servers.members[roles.findIndex(([role, , port]) => role === "slave" && port === former!.port)];
    await replica!.send("CLUSTER", "FAILOVER");
    await eventually("the new map", () => cluster.serverOf(0) === replica!.name);
    const primaries = await servers.primaries();
    assert.deepEqual(new Set(cluster.servers.map(({ name }) => name)), new Set(primaries.map(({ name }) => name)));
  });

  // Each kills another primary, because the one that takes over has no replica.
  for (const [i, kind] of (["local", "closed"] as const).entries()) {
    it(`never admits more than the limit under ${kind} when a primary is killed during calls`, async () => {
      const policy: OutagePolicy = kind === "local" ? localPolicy() : { kind };
      const { cluster, counters } = await openNode({ policy, timeout: 300 });
      const pairs = freshPairs(20);
      const limit = 60;
      const running = load(counters, pairs, limit);
      await eventually("calls", () => running.calls() > 500);
      const killed = (await servers.primaries())[i + 1];
      const acknowledged = new Map(running.admitted);
      await killed!.send("WAIT", 1, 1_000);
      killed!.signal("SIGKILL");
      const beforeKill = new Map(running.admitted);
      await eventually("an outage", () => cluster.hasOutage);
      await eventually("a failover", () => !cluster.hasOutage);
      const calls = running.calls();
      await eventually("calls", () => running.calls() > calls + 1_500);
      await running.stop();
      assert.ok(!cluster.servers.some(({ name }) => name === killed!.name));
      for (const counter of pairs.flat()) {
        const admitted = running.admitted.get(counter) ?? 0;
        // What the replica had not received is lost: at most what was admitted since it was known to have everything.
        const lost = kind === "local" ? 0 : beforeKill.get(counter)! - acknowledged.get(counter)!;
        assert.ok(admitted <= limit + lost, `${admitted} of ${limit}, at most ${lost} lost`);
        assert.ok(admitted > acknowledged.get(counter)!);
        if (kind === "closed") assert.ok((await usedOf(counters, counter)) >= acknowledged.get(counter)!);
      }
    });
  }

  function common() {
    return { random: systemRandom, policy: { kind: "closed" } as const, onLoss() {} };
  }
});

function decided(verdict: ChargeResult): LimitDecision {
  assert.equal(verdict.outcome, "decided");
  return verdict as LimitDecision;
}
