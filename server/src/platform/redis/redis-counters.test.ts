import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import type { Charge, ChargeResult, LimitDecision } from "../../../../engine/src/limits/counters.ts";
import { describeCounters } from "../../../../engine/src/limits/counters-contract.ts";
import { CountersModel } from "../../../../engine/src/limits/counters-model.ts";
import { DenialCache } from "../../../../engine/src/limits/denial-cache.ts";
import { assertLeases } from "../../../../engine/src/limits/leases-model.ts";
import { MemoryCounters } from "../../../../engine/src/limits/memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "../../../../engine/src/limits/memory-table.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import { DURATION_MAX } from "../../../../engine/src/rules/window.ts";
import { eventuallyWith } from "../../../test/process.ts";
import { countingOptions } from "../../../test/services/counting-redis.ts";
import { useProxiedRedis } from "../../../test/services/proxied-redis.ts";
import { sharedRedis, startRedis } from "../../../test/services/redis.ts";
import type { Service } from "../../../test/services/service.ts";
import type { TcpProxy } from "../../../test/tcp-proxy.ts";
import { RedisConnection, type RedisOptions } from "./connection.ts";
import { counterScripts, type OutagePolicy, RedisCounters, type RedisCountersOptions } from "./redis-counters.ts";

const noon = 1_800_000_000_000;
let redis: RedisConnection;
before(async () => {
  redis = await RedisConnection.open({
    url: await sharedRedis(),
    ...countingOptions,
  });
});
after(() => redis.close());

let opened = 0;
const run = systemRandom.below(2 ** 32);
describeCounters("Redis", () => {
  const clock = new SimulatedClock(noon);
  const prefix = `test:${run}:${opened++}:`;
  const counters = new RedisCounters({
    redis,
    clock,
    random: systemRandom,
    policy: { kind: "open" },
    onLoss() {},
    prefix,
    simulatedTime: () => clock.now(),
  });
  return {
    counters,
    lender: counters,
    now: () => clock.now(),
    advance: (length) => clock.step(length),
    async lose() {
      const keys = (await redis.send(["KEYS", `${prefix}*`])) as string[];
      if (keys.length > 0) await redis.send(["DEL", ...keys]);
      // The node detects the loss by a call that no cached denial answers.
      await counters.peek([{ counter: "other", limit: 1, duration: 1, cost: 0 }]);
    },
    close() {},
  };
});

/** Counters that count windows from before a loss as full. */
function openClosed() {
  const clock = new SimulatedClock(noon);
  const prefix = `test:${run}:${opened++}:`;
  const counters = new RedisCounters({
    redis,
    clock,
    random: systemRandom,
    policy: { kind: "closed" },
    onLoss() {},
    prefix,
    simulatedTime: () => clock.now(),
  });
  return {
    counters,
    lender: counters,
    now: () => clock.now(),
    advance: (length: number) => clock.step(length),
    async lose() {
      const keys = (await redis.send(["KEYS", `${prefix}*`])) as string[];
      if (keys.length > 0) await redis.send(["DEL", ...keys]);
    },
    close() {},
  };
}

describe("Leases over counters in Redis (rules 185, 186, 189)", () => {
  it("never exceed a limit, also when Redis is emptied, with the policy `closed`", async (t) => {
    const done = await assertLeases(openClosed, 150);
    t.diagnostic(JSON.stringify(done));
    assert(done.granted > 300 && done.found > 100, JSON.stringify(done));
  });
});

describe("RedisCounters", () => {
  let server: Service;
  let proxy: TcpProxy;
  const connections = useProxiedRedis((redis) => {
    ({ server, proxy } = redis);
  });

  /** Opens a node: connection, clock, counters. The script uses the node's clock if `usesNodeClock`, else that of Redis. */
  async function openNode({
    policy,
    usesNodeClock,
    ...options
  }: Partial<RedisCountersOptions & RedisOptions> & { usesNodeClock?: boolean } = {}) {
    const clock = new SimulatedClock(noon);
    const losses: number[] = [];
    let onOutage = () => {};
    let onBack = () => {};
    const outage = new Promise<void>((resolve) => {
      onOutage = resolve;
    });
    const back = new Promise<void>((resolve) => {
      onBack = resolve;
    });
    const events = { onOutage, onBack };
    const connection = await RedisConnection.open({
      url: proxy.url,
      clock,
      timeout: 250,
      scripts: counterScripts,
      ...events,
      ...options,
    });
    connections.push(connection);
    const counters = new RedisCounters({
      redis: connection,
      clock: options.clock ?? clock,
      random: systemRandom,
      policy: policy ?? { kind: "closed" },
      onLoss: (at) => losses.push(at),
      ...(usesNodeClock && { simulatedTime: () => clock.now() }),
      ...options,
    });
    return { counters, clock, connection, losses, outage, back };
  }

  function localPolicy(clock: Pick<SimulatedClock, "now">): OutagePolicy {
    const table = new MemoryTable(reserveTable(SEGMENT_BYTES, false), 1, [17, -4]);
    return { kind: "local", counters: new MemoryCounters(table, clock) };
  }

  /** The duration is so long that no test reaches the end of a window by the clock of Redis. */
  const unit = { limit: 3, duration: DURATION_MAX, cost: 1 };
  let counterCount = 0;
  const freshCall = (): Charge[] => [{ ...unit, counter: `counter ${counterCount++}` }];
  const outcomeOf = async (verdict: ChargeResult | Promise<ChargeResult>) => {
    const settled = await verdict;
    return settled.outcome === "decided" ? settled.allowed : settled.outcome;
  };
  const spend = async (counters: RedisCounters, call: Charge[], count: number) => {
    const outcomes = Array.from({ length: count }, () => outcomeOf(counters.charge(call)));
    return (await Promise.all(outcomes)).filter((outcome) => outcome === true).length;
  };

  it("decides the calls of one turn in their order", async () => {
    const charges = fc.array(
      fc.record({
        counter: fc.constantFrom("a", "b", "c"),
        limit: fc.nat(30),
        duration: fc.constantFrom(7, 1000),
        cost: fc.nat(5),
        commit: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    );
    const turn = fc.record({ pass: fc.nat(500), calls: fc.array(charges, { maxLength: 200 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 4 }), async (turns) => {
        const { counters, clock, connection } = await openNode({
          usesNodeClock: true,
          prefix: `turns ${counterCount++}:`,
        });
        const model = new CountersModel();
        for (const { pass, calls } of turns) {
          clock.step(pass);
          const verdicts = await Promise.all(calls.map((call) => counters.charge(call)));
          // Cached denials are answered before the batch, which does not change the results of other calls.
          assert.deepEqual(
            verdicts,
            calls.map((call) => model.charge(call, clock.now())),
          );
        }
        connection.close();
      }),
      { numRuns: 30 },
    );
  });

  it("does not send calls to Redis while a cached denial cannot change", async () => {
    const { counters, clock } = await openNode({ usesNodeClock: true, prefix: "denial:" });
    const call = freshCall();
    assert.equal(await spend(counters, call, 10), 3);
    const { sent } = counters;
    const { retryAfter } = (await counters.charge(call)) as LimitDecision;
    assert.equal(await spend(counters, call, 100), 0);
    assert.equal(counters.sent, sent);
    assert.equal(counters.denialCacheHits, 101);
    clock.step(retryAfter! - 1);
    assert.equal(await spend(counters, call, 1), 0);
    assert.equal(counters.sent, sent);
    clock.step(1);
    assert.equal(await spend(counters, call, 2), 1);
    // Calls with several limits are always sent: their other limits may have changed.
    const before = counters.sent;
    await counters.charge([...call, ...freshCall()]);
    assert.equal(counters.sent, before + 1);
  });

  it("drops a cached denial when a call with a larger limit is charged", async () => {
    const { counters, clock } = await openNode({ usesNodeClock: true, prefix: "larger:" });
    const model = new CountersModel();
    const call = freshCall();
    const larger = [{ ...call[0]!, limit: 6, cost: 3 }];
    for (const charges of [[{ ...call[0]!, cost: 3 }], call, larger, call]) {
      assert.deepEqual(await counters.charge(charges), model.charge(charges, clock.now()));
    }
  });

  it("keeps the denial cache within its memory bound", async () => {
    const denials = new DenialCache(20_000);
    const { counters } = await openNode({ denials });
    for (let i = 0; i < 1000; i += 100) {
      const calls = Array.from({ length: 100 }, () => [{ ...freshCall()[0]!, limit: 0 }]);
      await Promise.all(calls.map((call) => counters.charge(call)));
    }
    assert.ok(denials.bytes <= 20_000 && denials.bytes > 19_000);
  });

  it("sets the expiry of keys to the end of the counter", async () => {
    const { counters, connection } = await openNode({ prefix: "expiring:" });
    const call = freshCall();
    const { limits } = (await counters.charge(call)) as LimitDecision;
    const expiry = await connection.send(["PEXPIRETIME", `expiring:${DURATION_MAX}:${call[0]!.counter}`]);
    assert.equal(expiry, limits[0]!.reset + DURATION_MAX);
  });

  it("keeps a strict counter in at most 144 bytes, until its last charge stops counting", async () => {
    const { counters, clock, connection } = await openNode({ usesNodeClock: true, prefix: "strict:" });
    const call = [{ ...freshCall()[0]!, limit: 1_000_000, duration: 1_600, mode: "strict" as const }];
    const key = `strict:1600s:${call[0]!.counter}`;
    let longest = 0;
    for (let i = 0; i < 60; i++) {
      await counters.charge(call);
      longest = Math.max(longest, (await connection.send(["STRLEN", key])) as number);
      clock.step(50);
    }
    assert.equal(longest, 144);
    const own = await openNode({ prefix: "strict:" });
    const { limits } = (await own.counters.charge([{ ...call[0]!, counter: "own" }])) as LimitDecision;
    assert.equal(await connection.send(["PEXPIRETIME", "strict:1600s:own"]), limits[0]!.reset);
  });

  it("denies strict limits under `closed` until the charges before a loss stopped counting", async () => {
    const { counters, clock, connection } = await openNode({ usesNodeClock: true, prefix: "strict loss:" });
    const call = [{ ...unit, counter: "strict loss", duration: 1_600, mode: "strict" as const }];
    assert.equal(await spend(counters, call, 5), 3);
    clock.step(310);
    await connection.send(["FLUSHALL"]);
    const denied = (await counters.charge([{ ...call[0]!, counter: "other" }])) as LimitDecision;
    assert.deepEqual([denied.allowed, denied.retryAfter], [false, denied.limits[0]!.reset - clock.now()]);
    assert.ok(denied.retryAfter! >= 1_600 && denied.retryAfter! < 1_700, `${denied.retryAfter}`);
    clock.step(denied.retryAfter! - 1);
    assert.equal(await spend(counters, call, 1), 0);
    clock.step(1);
    assert.equal(await spend(counters, call, 5), 3);
  });

  describe("a part of a call", () => {
    const minute = 60_000;
    const charge = (cost: number, more: Partial<Charge> = {}): Charge => ({
      counter: "part",
      limit: 100,
      duration: minute,
      cost,
      ...more,
    });

    const receipt = { id: "receipt", life: 10_000 };

    /** The amount of a counter of which `limit` is 100 that is used. */
    async function usedOf(counters: RedisCounters, one = charge(0)): Promise<number> {
      const { limits } = (await counters.peek([{ ...one, cost: 0 }])) as LimitDecision;
      return 100 - limits[0]!.remaining;
    }

    async function openPart() {
      const node = await openNode({ usesNodeClock: true, prefix: `part ${counterCount++}:` });
      node.clock.step(minute - (node.clock.now() % minute));
      return node;
    }

    it("is given back once, and nothing else with it", async () => {
      const { counters } = await openPart();
      const other = charge(1, { counter: "other", duration: 2 * minute });
      const part = [charge(3), { ...other, commit: false }, other, charge(4)];
      await counters.charge([charge(10), other]);
      await counters.reserve(part, receipt);
      assert.deepEqual([await usedOf(counters), await usedOf(counters, other)], [17, 2]);
      assert.equal(await counters.giveBack(part, "unknown"), false);
      assert.equal(await counters.giveBack(part, "receipt"), true);
      assert.equal(await counters.giveBack(part, "receipt"), false);
      assert.deepEqual([await usedOf(counters), await usedOf(counters, other)], [10, 1]);
    });

    it("leaves no receipt when it is denied", async () => {
      const { counters } = await openPart();
      await counters.charge([charge(99)]);
      await counters.reserve([charge(2)], receipt);
      assert.equal(await counters.giveBack([charge(2)], "receipt"), false);
      assert.equal(await usedOf(counters), 99);
    });

    it("is subtracted from the window in which it was charged, while that counts", async () => {
      for (const [windows, before, after] of [
        [0, 60, 20],
        [1, 30 + 5, 10 + 5],
        [2, 5, 5],
      ] as const) {
        const { counters, clock } = await openPart();
        await counters.charge([charge(20)]);
        await counters.reserve([charge(40)], receipt);
        clock.step(windows * minute + (windows === 1 ? minute / 2 : 0));
        if (windows > 0) await counters.charge([charge(5)]);
        assert.equal(await usedOf(counters), before);
        assert.equal(await counters.giveBack([charge(40)], "receipt"), true);
        assert.equal(await usedOf(counters), after);
      }
    });

    it("is subtracted from the sub-window of a strict limit in which it was charged, while that counts", async () => {
      for (const [passed, before, after] of [
        [0, 65, 25],
        [minute / 2, 65, 25],
        [2 * minute, 5, 5],
      ] as const) {
        const { counters, clock } = await openPart();
        const strict = (cost: number) => charge(cost, { mode: "strict" });
        await counters.charge([strict(20)]);
        await counters.reserve([strict(40)], receipt);
        clock.step(passed);
        await counters.charge([strict(5)]);
        assert.equal(await usedOf(counters, strict(0)), before);
        assert.equal(await counters.giveBack([strict(40)], "receipt"), true);
        assert.equal(await usedOf(counters, strict(0)), after);
      }
    });

    it("is not taken from the charges of others after its own were lost", async () => {
      const { counters, connection } = await openPart();
      await counters.reserve([charge(40)], receipt);
      await connection.send(["FLUSHALL"]);
      // Charges of others in the same window.
      const lax = await openNode({ usesNodeClock: true, prefix: "others:", policy: { kind: "open" } });
      await lax.counters.charge([charge(30)]);
      assert.equal(await lax.counters.giveBack([charge(40)], "receipt"), false);
      assert.equal(await usedOf(lax.counters), 30);
    });
  });

  describe("a correction", () => {
    const charge = (cost: number, more: Partial<Charge> = {}): Charge => ({
      ...unit,
      counter: "a",
      limit: 100,
      cost,
      ...more,
    });
    const ask = async (counters: RedisCounters, cost: number) =>
      ((await counters.charge([charge(cost)], true)) as LimitDecision).receipt!;
    const usedOf = async (counters: RedisCounters) =>
      100 - ((await counters.peek([charge(0)])) as LimitDecision).limits[0]!.remaining;

    it("is made once, on any node, and its receipt is gone then", async () => {
      const prefix = `corrected ${counterCount++}:`;
      const { counters, connection } = await openNode({ usesNodeClock: true, prefix });
      const other = await openNode({ usesNodeClock: true, prefix });
      await counters.charge([charge(20)]);
      const [lowered, unchanged] = [await ask(counters, 30), await ask(counters, 5)];
      assert.equal(await connection.send(["EXISTS", `${prefix}receipt:${lowered.id}`]), 1);
      assert.deepEqual(await other.counters.adjust(lowered, [10]), [true]);
      assert.deepEqual(await other.counters.adjust(lowered, [10]), [false]);
      await counters.adjust(unchanged, []);
      assert.equal(await usedOf(counters), 35);
      assert.deepEqual(await connection.send(["KEYS", `${prefix}receipt:*`]), []);
    });

    it("takes nothing from others after a failover that has lost the charge", async () => {
      const prefix = `failover ${counterCount++}:`;
      const { counters, connection } = await openNode({ usesNodeClock: true, prefix });
      const receipt = await ask(counters, 40);
      // What a replica lacks that did not receive the last script. It has the epoch of the primary.
      await connection.send(["DEL", `${prefix}receipt:${receipt.id}`, `${prefix}${DURATION_MAX}:a`]);
      await counters.charge([charge(30)]);
      assert.deepEqual(await counters.adjust(receipt, [0]), [false]);
      assert.equal(await usedOf(counters), 30);
    });

    it("keeps receipts as long as their charges count, and for a day at most", async () => {
      const prefix = `lives ${counterCount++}:`;
      const { counters, connection } = await openNode({ prefix });
      for (const [duration, life] of [
        [60_000, 120_000],
        [DURATION_MAX, 86_400_000],
      ] as const) {
        const { receipt } = (await counters.charge([charge(1, { duration })], true)) as LimitDecision;
        const left = Number(await connection.send(["PTTL", `${prefix}receipt:${receipt!.id}`]));
        assert.ok(left <= life && left > life - 30_000, `${left}`);
      }
    });

    it("forces a higher cost when the receipt has expired, unless the data of its charge is gone", async () => {
      const prefix = `late ${counterCount++}:`;
      const { counters, clock, connection } = await openNode({ usesNodeClock: true, prefix, policy: { kind: "open" } });
      const receipt = await ask(counters, 10);
      await connection.send(["DEL", `${prefix}receipt:${receipt.id}`]);
      assert.deepEqual(await counters.adjust(receipt, [110]), [true]);
      assert.equal(await usedOf(counters), 100);
      await connection.send(["FLUSHALL"]);
      // Ends the cached denial.
      clock.advance(1_000);
      await counters.charge([charge(1)]);
      assert.deepEqual(await counters.adjust(receipt, [110]), [false]);
      assert.equal(await usedOf(counters), 1);
    });

    it("is not made of a call that this node has counted alone, nor while Redis is away", async () => {
      const local = new SimulatedClock(systemClock.now());
      const prefix = `alone ${counterCount++}:`;
      const { counters, clock, connection } = await openNode({ prefix, policy: localPolicy(local) });
      const receipt = await ask(counters, 10);
      connection.reportOutage(new Error("for the test"));
      const alone = (await counters.charge([charge(1)], true)) as LimitDecision;
      assert.deepEqual([alone.allowed, alone.receipt], [true, undefined]);
      assert.deepEqual(await counters.adjust(receipt, [50]), [false]);
      assert.deepEqual(await counters.adjust(receipt, [5]), [false]);
      await eventuallyWith(clock, "the return", () => !connection.hasOutage);
      const other = await openNode({ url: server.url, prefix });
      assert.equal(await usedOf(other.counters), 10);
    });

    it("of another node ends a cached denial within a second", async () => {
      const prefix = `cached ${counterCount++}:`;
      const { counters, clock } = await openNode({ usesNodeClock: true, prefix });
      const other = await openNode({ usesNodeClock: true, prefix });
      const receipt = await ask(other.counters, 100);
      const isAllowed = async (node: RedisCounters) => ((await node.charge([charge(1)])) as LimitDecision).allowed;
      assert.equal(await isAllowed(counters), false);
      await other.counters.adjust(receipt, [50]);
      assert.equal(await isAllowed(counters), false);
      clock.advance(1_000);
      assert.equal(await isAllowed(counters), true);
    });
  });

  it("uses late replies after a stall", async () => {
    const { counters, clock, connection } = await openNode();
    const call = freshCall();
    await counters.peek(call);
    proxy.stall();
    const stalled = proxy.heldBack();
    const spent = spend(counters, call, 10);
    await stalled;
    clock.advance(150);
    await setImmediate();
    proxy.resume();
    assert.equal(await spent, 3);
    assert.equal(connection.outages, 0);
    assert.equal(counters.late, 0);
  });

  for (const kind of ["closed", "open", "local"] as const) {
    it(`applies the policy ${kind} while Redis is away, and uses Redis again afterwards`, async () => {
      const localClock = new SimulatedClock(systemClock.now());
      const policy = kind === "local" ? localPolicy(localClock) : { kind };
      const { counters, clock, connection, outage, back } = await openNode({ policy });
      const call = freshCall();
      assert.equal(await outcomeOf(counters.charge(call)), true);
      proxy.stall();
      const stalled = proxy.heldBack();
      const inFlight = [1, 2, 3].map(() => outcomeOf(counters.charge(call)));
      await stalled;
      while (!connection.hasOutage) {
        clock.advance(10);
        await setImmediate();
      }
      await outage;
      // Redis has allowed one call, which counts in the local counters too, so they allow two more.
      assert.deepEqual(
        await Promise.all(inFlight),
        kind === "local" ? [true, true, false] : ["outage", "outage", "outage"],
      );
      // The result is synchronous.
      const verdict = counters.charge(call);
      assert.ok(!(verdict instanceof Promise));
      assert.equal(await outcomeOf(verdict), kind === "local" ? false : "outage");
      proxy.resume();
      await eventuallyWith(clock, "the return", () => !connection.hasOutage);
      await back;
      // Redis has counted one call and the local counters three. Together they must not exceed the limit.
      if (kind === "local") assert.equal(await spend(counters, call, 5), 0);
      else assert.ok((await spend(counters, call, 5)) <= 2);
    });
  }

  for (const kind of ["closed", "open", "local"] as const) {
    it(`lends nothing while Redis is away, and counts nothing on the node alone, with the policy ${kind} (rule 189)`, async () => {
      const localClock = new SimulatedClock(systemClock.now());
      const policy = kind === "local" ? localPolicy(localClock) : { kind };
      const { counters, clock, connection } = await openNode({ policy });
      const charges = freshCall().map((charge) => ({ ...charge, limit: 100, cost: 40 }));
      const usedHere = async () => {
        const looked =
          policy.kind === "local" ? await policy.counters.peek(charges.map((one) => ({ ...one, cost: 0 }))) : null;
        return looked?.outcome === "decided" ? 100 - (looked.limits[0]?.remaining ?? 0) : 0;
      };
      const lend = (name: string) => counters.lend(charges, { name, life: 60_000 });
      assert.equal((await lend("before"))?.allowed, true);
      assert.equal((await lend("returned"))?.allowed, true);
      assert.equal(await usedHere(), 0);
      assert.deepEqual(await counters.settle("returned", charges, [15]), [true]);
      // What was spent for sure, the node knows too.
      assert.equal(await usedHere(), kind === "local" ? 15 : 0);
      proxy.stall();
      const stalled = proxy.heldBack();
      const inFlight = lend("in flight");
      await stalled;
      while (!connection.hasOutage) {
        clock.advance(10);
        await setImmediate();
      }
      assert.deepEqual([await inFlight, await lend("during")], [undefined, undefined]);
      assert.equal(await counters.settle("before", charges, [0]), undefined);
      assert.equal(await usedHere(), kind === "local" ? 15 : 0);
      proxy.resume();
      await eventuallyWith(clock, "the return", () => !connection.hasOutage);
      assert.deepEqual(await counters.settle("before", charges, [30]), [true]);
    });
  }

  it("admits at most twice the limit on two nodes during repeated outages", async () => {
    const localClock = new SimulatedClock(systemClock.now());
    const nodes = [
      await openNode({ policy: localPolicy(localClock) }),
      await openNode({ policy: localPolicy(localClock) }),
    ];
    const call = [{ ...freshCall()[0]!, limit: 100 }];
    let admitted = 0;
    for (let round = 0; round < 4; round++) {
      for (const { counters } of nodes) admitted += await spend(counters, call, 20);
      for (const { connection } of nodes) connection.reportOutage(new Error("for the test"));
      for (const { counters } of nodes) admitted += await spend(counters, call, 60);
      for (const { clock, connection } of nodes) {
        await eventuallyWith(clock, "the return", () => !connection.hasOutage);
      }
    }
    assert.ok(admitted > 100 && admitted <= 200, `admitted ${admitted}`);
  });

  it("does not charge a call after its deadline when a stall ends", async () => {
    const { counters, outage } = await openNode({ clock: systemClock, timeout: 60, prefix: "late:" });
    const call = freshCall();
    await counters.peek(freshCall());
    proxy.stall();
    const verdict = counters.charge(call);
    await outage;
    assert.equal(await outcomeOf(verdict), "outage");
    const drained = proxy.drained();
    proxy.resume();
    await drained;
    const { connection } = await openNode({ url: server.url });
    assert.deepEqual(await connection.send(["KEYS", "late:*"]), ["late:epoch"]);
  });

  it("sends a call again that missed its deadline while Redis was reachable", async () => {
    const { counters, clock, connection } = await openNode({ prefix: "again:" });
    await counters.peek(freshCall());
    // Simulates a forward step of Redis' clock: the deadline that the node computes has passed already.
    connection.time.learn(clock.monotonic(), clock.monotonic(), 1_700_000_000_000);
    const verdict = (await counters.charge(freshCall())) as LimitDecision;
    assert.equal(verdict.limits[0]!.remaining, 2);
    assert.equal(counters.late, 1);
  });

  it("detects that Redis was emptied, and denies earlier windows under `closed`", async () => {
    const { counters, clock, connection, losses } = await openNode({ usesNodeClock: true, prefix: "flushed:" });
    const lax = await openNode({ usesNodeClock: true, prefix: "flushed:", policy: { kind: "open" } });
    const call = freshCall();
    assert.equal(await spend(counters, call, 5), 3);
    assert.equal(await spend(lax.counters, freshCall(), 1), 1);
    clock.step(1000);
    lax.clock.step(1000);
    await connection.send(["FLUSHALL"]);
    // A cached denial is answered from memory. Any other call detects the loss.
    const other = freshCall();
    const denied = (await counters.charge(other)) as LimitDecision;
    assert.equal(denied.allowed, false);
    assert.deepEqual(losses, [clock.now()]);
    assert.equal(counters.losses, 1);
    assert.equal(await spend(counters, call, 1), 0);
    clock.step(denied.retryAfter! - 1);
    assert.equal(await spend(counters, other, 1), 0);
    clock.step(1);
    assert.equal(await spend(counters, other, 2), 1);
    assert.equal(counters.losses, 1);
    // The policies `open` and `local` start with empty counters, and report the loss too.
    assert.equal(await spend(lax.counters, call, 5), 3);
    assert.equal(lax.losses.length, 1);
    // A node that starts later denies them too. Windows that begin after the loss are unaffected.
    const later = await openNode({ usesNodeClock: true, prefix: "flushed:" });
    assert.equal(await spend(later.counters, freshCall(), 1), 0);
    later.clock.step(3 * DURATION_MAX);
    assert.equal(await spend(later.counters, freshCall(), 5), 3);
    assert.deepEqual(later.losses, []);
  });

  it("detects by the stored epoch that Redis was emptied while no node was running", async () => {
    const first = await openNode({ usesNodeClock: true, prefix: "together:" });
    const call = freshCall();
    assert.equal(await spend(first.counters, call, 5), 3);
    const lastEpoch = first.counters.epoch!;
    await first.connection.send(["FLUSHALL"]);
    for (const policy of ["closed", "open"] as const) {
      const later = await openNode({ usesNodeClock: true, prefix: "together:", lastEpoch, policy: { kind: policy } });
      assert.equal(await spend(later.counters, call, 3), policy === "closed" ? 0 : 3);
      assert.equal(later.losses.length, 1);
      assert.notEqual(later.counters.epoch!.epoch, lastEpoch.epoch);
    }
    // A node with the current epoch detects no loss.
    const last = await openNode({ usesNodeClock: true, prefix: "together:", lastEpoch: first.counters.epoch });
    await last.counters.charge(freshCall());
    const same = await openNode({ usesNodeClock: true, prefix: "together:", lastEpoch: last.counters.epoch });
    await same.counters.charge(freshCall());
    assert.deepEqual(same.losses, []);
  });

  it("continues a window when the clock of Redis is set back", async () => {
    const { counters, clock, losses } = await openNode({ usesNodeClock: true, prefix: "set back:" });
    const charge = { ...freshCall()[0]!, duration: 60_000 };
    assert.equal(await spend(counters, [charge], 3), 3);
    clock.step(-3_600_000);
    assert.equal(await spend(counters, [charge], 5), 0);
    clock.step(120_000);
    assert.equal(await spend(counters, [charge], 5), 3);
    assert.deepEqual(losses, []);
  });

  it("detects a restored old copy of the data", async () => {
    const { counters, clock, connection, losses } = await openNode({ usesNodeClock: true, prefix: "old:" });
    await counters.charge(freshCall());
    const old = String(await connection.send(["GET", "old:epoch"]));
    clock.step(2_000);
    await counters.charge(freshCall());
    await connection.send(["SET", "old:epoch", old]);
    await counters.charge(freshCall());
    assert.deepEqual(losses, []);
    clock.step(4_000);
    await counters.charge(freshCall());
    await connection.send(["SET", "old:epoch", old]);
    assert.equal(await spend(counters, freshCall(), 1), 0);
    assert.deepEqual(losses, [clock.now()]);
  });

  it("detects a switch to another, empty Redis", async () => {
    const empty = await startRedis();
    try {
      const { counters, clock, connection, losses, outage } = await openNode({ prefix: "empty:" });
      assert.equal(await spend(counters, freshCall(), 1), 1);
      proxy.retarget(empty.url);
      proxy.cut();
      await outage;
      await eventuallyWith(clock, "the return", () => !connection.hasOutage);
      assert.equal(await spend(counters, freshCall(), 1), 0);
      assert.equal(losses.length, 1);
    } finally {
      proxy.retarget(server.url);
      await empty.stop();
    }
  });

  it("treats a Redis that rejects writes as away", async () => {
    const { counters, connection, outage } = await openNode();
    const other = await openNode({ url: server.url });
    await other.connection.send(["CONFIG", "SET", "maxmemory", "1"]);
    try {
      assert.equal(await outcomeOf(counters.charge(freshCall())), "outage");
      await outage;
      assert.equal(connection.hasOutage, true);
    } finally {
      await other.connection.send(["CONFIG", "SET", "maxmemory", "0"]);
    }
  });
});
