import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { SimulatedClock } from "../clock/simulated.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { BatchAnswers, LedgerBatch, SettledBatch } from "./batch.ts";
import { Ledger, LedgerFailed, LedgerOverloaded } from "./ledger.ts";
import type { SpendOutcome } from "./spend.ts";

/** The decision of a call's limits when they are charged. */
interface Charges {
  readonly id: number;
  readonly decision: "allowed" | "denied" | "broken";
  /** Whether they return a promise, like counters in Redis. */
  readonly isAsync?: boolean;
}
interface Limits {
  readonly allowed: boolean;
}
type Outcome = SpendOutcome<Limits>;

const workspaceId = "ws";

/** Row locks, granted in the order of requests. */
class Locks {
  readonly #locked = new Set<string>();
  readonly #queues = new Map<string, (() => void)[]>();

  tryLock(id: string): boolean {
    if (this.#locked.has(id)) return false;
    this.#locked.add(id);
    return true;
  }

  /** False after the timeout. */
  lock(id: string, clock: SimulatedClock, timeout: number): Promise<boolean> {
    if (this.tryLock(id)) return Promise.resolve(true);
    return new Promise((resolve) => {
      const queue = this.#queueOf(id);
      const grant = () => {
        timer.cancel();
        resolve(true);
      };
      const timer = clock.schedule(timeout, () => {
        queue.splice(queue.indexOf(grant), 1);
        resolve(false);
      });
      queue.push(grant);
    });
  }

  unlock(id: string): void {
    const next = this.#queues.get(id)?.shift();
    if (next) next();
    else this.#locked.delete(id);
  }

  #queueOf(id: string): (() => void)[] {
    const queue = this.#queues.get(id) ?? [];
    this.#queues.set(id, queue);
    return queue;
  }
}

/** A ledger over balances in a map, with row locks and atomic transactions. */
class TestLedger {
  readonly clock: SimulatedClock;
  readonly balances: Map<string, number>;
  readonly locks: Locks;
  /** Ids of calls whose limits were charged, in that order. */
  readonly charged: number[] = [];
  readonly batches: LedgerBatch[] = [];
  readonly ledger: Ledger<Charges, Limits>;
  /** Scopes that another node has claimed. */
  readonly claimedElsewhere = new Set<string>();
  /** Records of earlier calls. */
  readonly records = new Map<string, { fingerprint: string; outcome: string }>();
  /** Runs in every batch: before its balances are locked, after it was settled, after its commit. */
  at: (moment: "begun" | "settled" | "committed") => Promise<void> | void = () => {};

  /** With another `TestLedger`: a second node on the same balances. */
  constructor(balances: Record<string, number> | TestLedger) {
    const first = balances instanceof TestLedger ? balances : undefined;
    this.clock = first?.clock ?? new SimulatedClock(1_768_478_400_000);
    this.balances = first?.balances ?? new Map(Object.entries(balances));
    this.locks = first?.locks ?? new Locks();
    this.ledger = new Ledger({
      clock: this.clock,
      charge: (charges) => this.#charge(charges),
      transact: (batch, answer) => this.#transact(batch, answer),
    });
  }

  /** Spends for all calls without waiting in between. */
  async spendAll(calls: readonly Call[]): Promise<(Outcome | Error)[]> {
    const spent = calls.map(({ poolId, cost, decision, isAsync = false }, id) =>
      this.ledger
        .spend({ workspaceId, poolId, cost, charges: decision === "unlimited" ? undefined : { id, decision, isAsync } })
        .catch((error: Error) => error),
    );
    return Promise.all(spent);
  }

  #charge({ id, decision, isAsync }: Charges): Limits | Promise<Limits> {
    this.charged.push(id);
    const answer = () => {
      if (decision === "broken") throw new Error("The limiter is broken");
      return { allowed: decision === "allowed" };
    };
    return isAsync ? setImmediate().then(answer) : answer();
  }

  async #transact(batch: LedgerBatch, answer: BatchAnswers): Promise<void> {
    this.batches.push(batch);
    await this.at("begun");
    const locked: string[] = [];
    try {
      const contended: string[] = [];
      for (const poolId of batch.poolIds.filter((id) => this.balances.has(id))) {
        if (batch.lockTimeout === undefined) {
          if (this.locks.tryLock(poolId)) locked.push(poolId);
          else contended.push(poolId);
        } else {
          const isLocked = await this.locks.lock(poolId, this.clock, batch.lockTimeout);
          if (!isLocked) throw Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" });
          locked.push(poolId);
        }
      }
      const balances = locked.map((poolId) => ({ poolId, remaining: this.balances.get(poolId)! }));
      let settled = await answer({ step: "choose", balances, contended });
      if ("scopes" in settled) {
        settled = await answer({
          step: "settle",
          recorded: this.records,
          claimedElsewhere: settled.scopes.filter((scope) => this.claimedElsewhere.has(scope)),
          hasCapacity: true,
        });
      }
      const { spends, records } = settled as SettledBatch;
      await this.at("settled");
      for (const { poolId, amount } of spends) {
        const remaining = this.balances.get(poolId)! - amount;
        assert(amount > 0 && remaining >= 0, `${amount} of ${this.balances.get(poolId)}`);
        assert(locked.includes(poolId), `${poolId} is not locked`);
        this.balances.set(poolId, remaining);
      }
      for (const { scope, ...record } of records) {
        assert(!this.records.has(scope), `${scope} is recorded already`);
        this.records.set(scope, record);
      }
      await this.at("committed");
    } finally {
      for (const poolId of locked) this.locks.unlock(poolId);
    }
  }
}

interface Call {
  poolId: string;
  cost: number;
  decision: Charges["decision"] | "unlimited";
  isAsync?: boolean;
}

const calls = (poolId: string, ...list: [cost: number, decision?: Call["decision"]][]): Call[] =>
  list.map(([cost, decision = "unlimited"]) => ({ poolId, cost, decision }));
const spent = (remaining: number | undefined, limits?: Limits): Outcome => ({ outcome: "spent", remaining, limits });
const limited = (remaining: number): Outcome => ({ outcome: "limited", remaining, limits: { allowed: false } });
const insufficient = (remaining: number): Outcome => ({ outcome: "insufficient", remaining });

describe("a batch of the ledger", () => {
  it("is decided in the order of arrival, each call with the balance after it", async () => {
    const testLedger = new TestLedger({ a: 10 });
    assert.deepEqual(await testLedger.spendAll(calls("a", [4], [0], [5], [3], [1], [0])), [
      spent(6),
      spent(6),
      spent(1),
      insufficient(0),
      spent(0),
      spent(0),
    ]);
    assert.equal(testLedger.balances.get("a"), 0);
    assert.equal(testLedger.batches.length, 1);
  });

  it("locks each balance once", async () => {
    const testLedger = new TestLedger({ a: 1, b: 1, c: 1 });
    await testLedger.spendAll(["c", "a", "b", "a", "c"].flatMap((poolId) => calls(poolId, [0])));
    assert.deepEqual(testLedger.batches[0]!.poolIds, ["c", "a", "b"]);
  });

  it("gives the credits of a call that a limit denied to the next call that lacked them", async () => {
    const testLedger = new TestLedger({ a: 5 });
    const outcomes = await testLedger.spendAll(calls("a", [5, "denied"], [5, "allowed"], [5, "allowed"]));
    assert.deepEqual(outcomes, [limited(5), spent(0, { allowed: true }), insufficient(0)]);
    assert.deepEqual(testLedger.charged, [0, 1], "a call without credits charges no limit");
    assert.equal(testLedger.balances.get("a"), 0);
  });

  it("spends nothing for a call whose limits could not be decided, and continues", async () => {
    const testLedger = new TestLedger({ a: 5 });
    const [broken, next] = await testLedger.spendAll(calls("a", [5, "broken"], [5, "allowed"]));
    assert(broken instanceof Error && !("outcome" in broken));
    assert.deepEqual(next, spent(0, { allowed: true }));
    assert.equal(testLedger.balances.get("a"), 0);
  });

  it("charges only the limits for a pool that has become unlimited", async () => {
    const testLedger = new TestLedger({});
    const outcomes = await testLedger.spendAll(calls("a", [1e12], [1, "denied"]));
    assert.deepEqual(outcomes, [
      spent(undefined),
      { outcome: "limited", remaining: undefined, limits: { allowed: false } },
    ]);
  });

  it("begins after the previous one was answered, with all calls that arrived meanwhile", async () => {
    const testLedger = new TestLedger({ a: 1_000 });
    const gate = Promise.withResolvers<void>();
    testLedger.at = (moment) => (moment === "committed" && testLedger.batches.length === 1 ? gate.promise : undefined);
    const first = testLedger.spendAll(calls("a", [1]));
    await setImmediate();
    const others = testLedger.spendAll(Array.from({ length: 500 }, () => calls("a", [1])[0]!));
    await setImmediate();
    assert.equal(testLedger.batches.length, 1);
    assert.equal(testLedger.ledger.waiting, 500);
    gate.resolve();
    await Promise.all([first, others]);
    assert.equal(testLedger.batches.length, 2);
    assert.deepEqual(testLedger.ledger.counts, { batches: 2, calls: 501, credits: 501, failures: 0 });
  });

  it("fails as a whole with 503 for any reason, and the next one succeeds", async () => {
    for (const failure of [new Error("disk I/O error"), new StoreUnavailable("away")]) {
      const testLedger = new TestLedger({ a: 10, b: 10 });
      testLedger.at = (moment) => {
        if (moment === "settled" && testLedger.batches.length === 1) throw failure;
      };
      for (const outcome of await testLedger.spendAll([...calls("a", [1], [20]), ...calls("b", [1])])) {
        assert(outcome instanceof StoreUnavailable);
        assert(outcome === failure || (outcome instanceof LedgerFailed && outcome.cause === failure));
      }
      assert.deepEqual([...testLedger.balances.values()], [10, 10]);
      assert.deepEqual(await testLedger.spendAll(calls("a", [1])), [spent(9)]);
      assert.equal(testLedger.ledger.counts.failures, 1);
    }
  });

  it("is never settled twice, which would charge its limits again", async () => {
    const testLedger = new TestLedger({ a: 10 });
    const ledger = new Ledger<Charges, Limits>({
      clock: testLedger.clock,
      charge: ({ id }) => {
        testLedger.charged.push(id);
        return { allowed: true };
      },
      async transact(_, answer) {
        await answer({ step: "choose", balances: [{ poolId: "a", remaining: 10 }], contended: [] });
        await answer({ step: "settle", recorded: new Map(), claimedElsewhere: [], hasCapacity: true });
      },
    });
    await assert.rejects(
      ledger.spend({ workspaceId, poolId: "a", cost: 1, charges: { id: 1, decision: "allowed" } }),
      LedgerFailed,
    );
    assert.deepEqual(testLedger.charged, [1]);
  });
});

describe("a batch that hangs", () => {
  it("makes calls behind it fail after 5 s, and still answers its own calls", async () => {
    const testLedger = new TestLedger({ a: 10 });
    const gate = Promise.withResolvers<void>();
    testLedger.at = (moment) => (moment === "settled" ? gate.promise : undefined);
    const first = testLedger.spendAll(calls("a", [1]));
    await setImmediate();
    testLedger.clock.advance(3_000);
    const early = testLedger.spendAll(calls("a", [1], [1]));
    testLedger.clock.advance(4_000);
    const late = testLedger.spendAll(calls("a", [1]));
    await setImmediate();
    assert.equal(testLedger.ledger.waiting, 3);
    // The check for expired calls runs each second and schedules the next one.
    for (let second = 0; second < 3; second++) {
      testLedger.clock.advance(1_000);
      await setImmediate();
    }
    assert.equal(testLedger.ledger.waiting, 1);
    for (const outcome of await early) assert(outcome instanceof LedgerOverloaded);
    gate.resolve();
    assert.deepEqual(await first, [spent(9)]);
    assert.deepEqual(await late, [spent(8)]);
    assert.equal(testLedger.balances.get("a"), 8);
  });

  it("has at most 100,000 waiting calls, half of them of one workspace, a quarter of one pool", async () => {
    const testLedger = new TestLedger({});
    const gate = Promise.withResolvers<void>();
    testLedger.at = () => gate.promise;
    let rejected = 0;
    const spend = async (workspaceId: string, poolId: string, count: number) => {
      for (let i = 0; i < count; i++) {
        const call = testLedger.ledger.spend({
          workspaceId,
          poolId: workspaceId + poolId,
          cost: 0,
          charges: undefined,
        });
        call.catch((error: unknown) => {
          assert(error instanceof LedgerOverloaded);
          rejected++;
        });
      }
      await setImmediate();
    };
    await spend("one", "a", 25_001);
    assert.equal(rejected, 1);
    await spend("one", "b", 25_001);
    assert.equal(rejected, 2);
    await spend("one", "c", 1);
    assert.equal(rejected, 3);
    for (const poolId of ["a", "b"]) await spend("other", poolId, 25_000);
    assert.equal(rejected, 3);
    assert.equal(testLedger.ledger.waiting, 100_000);
    await spend("third", "a", 1);
    assert.equal(rejected, 4);
    gate.resolve();
    while (testLedger.ledger.waiting > 0) await setImmediate();
    assert.equal(rejected, 4);
  });
});

describe("a pool that another transaction has locked", () => {
  const names = Array.from({ length: 12 }, (_, i) => `pool${i}`);
  const rich = () => new TestLedger(Object.fromEntries([...names, "free"].map((name) => [name, 100])));
  /** Runs everything that needs no time to pass. */
  const settle = async () => {
    for (let i = 0; i < 20; i++) await setImmediate();
  };

  it("delays no call of another pool, and its own calls until the lock is granted", async () => {
    const testLedger = rich();
    testLedger.locks.tryLock("pool0");
    const delayed = testLedger.spendAll(calls("pool0", [1], [1]));
    assert.deepEqual(await testLedger.spendAll(calls("free", [1])), [spent(99)]);
    await settle();
    const later = testLedger.spendAll(calls("pool0", [1]));
    await settle();
    assert.equal(testLedger.ledger.waiting, 3);
    assert.equal(testLedger.batches.filter(({ lockTimeout }) => lockTimeout !== undefined).length, 1);
    testLedger.locks.unlock("pool0");
    assert.deepEqual(await delayed, [spent(99), spent(98)]);
    // Calls that arrived meanwhile are in the same batch.
    assert.deepEqual(await later, [spent(97)]);
    assert.equal(testLedger.batches.filter(({ lockTimeout }) => lockTimeout !== undefined).length, 1);
  });

  it("is waited for by one of at most four transactions, and is retried otherwise", async () => {
    const testLedger = rich();
    for (const name of names) testLedger.locks.tryLock(name);
    const delayed = names.map((name) => testLedger.spendAll(calls(name, [1])));
    await settle();
    assert.equal(testLedger.batches.filter(({ lockTimeout }) => lockTimeout !== undefined).length, 4);
    for (let i = 0; i < 10; i++) {
      testLedger.clock.advance(50);
      await settle();
      assert.deepEqual(await testLedger.spendAll(calls("free", [1])), [spent(99 - i)]);
    }
    for (const name of names) testLedger.locks.unlock(name);
    await settle();
    testLedger.clock.advance(50);
    for (const outcomes of delayed) assert.deepEqual(await outcomes, [spent(99)]);
    const waited = testLedger.batches.filter(({ lockTimeout }) => lockTimeout !== undefined);
    assert(waited.every(({ lockTimeout, poolIds }) => lockTimeout === 3_000 && poolIds.length === 1));
  });

  it("for long makes its calls fail after 5 s, delays no others, and nothing is charged", async () => {
    const testLedger = rich();
    for (const name of names) testLedger.locks.tryLock(name);
    const delayed = names.map((name) => testLedger.spendAll(calls(name, [1, "allowed"])));
    for (let passed = 0; passed < 7_000; passed += 500) {
      await settle();
      testLedger.clock.advance(500);
      assert.equal((await testLedger.spendAll(calls("free", [1])))[0] instanceof Error, false);
    }
    for (const outcomes of delayed) assert((await outcomes)[0] instanceof LedgerOverloaded);
    assert.deepEqual(testLedger.charged, []);
    for (const name of names) testLedger.locks.unlock(name);
    testLedger.clock.advance(50);
    await settle();
    assert.deepEqual(await testLedger.spendAll(calls("pool3", [1])), [spent(99)]);
    assert.equal(testLedger.ledger.waiting, 0);
  });

  it("lets two nodes that both spend continuously make progress", async () => {
    const one = new TestLedger({ hot: 1_000_000 });
    const other = new TestLedger(one);
    const done = [0, 0];
    let isOver = false;
    for (const testLedger of [one, other]) testLedger.at = () => setImmediate();
    const spender = async (testLedger: TestLedger, node: number) => {
      while (!isOver) {
        assert.equal((await testLedger.spendAll(calls("hot", [1])))[0] instanceof Error, false);
        done[node]!++;
      }
    };
    const spenders = Array.from({ length: 40 }, (_, i) => spender(i % 2 === 0 ? one : other, i % 2));
    for (let turns = 0; turns < 3_000; turns++) {
      await setImmediate();
      if (turns % 10 === 0) one.clock.advance(1);
    }
    isOver = true;
    await Promise.all(spenders);
    assert.equal(one.balances.get("hot"), 1_000_000 - done[0]! - done[1]!);
    for (const count of done) assert(count * 3 > done[0]! + done[1]!, `${done}`);
  });
});

describe("a call that is no longer current", () => {
  const spend = (testLedger: TestLedger, isCurrent: () => boolean, cost = 1, charges?: Charges) =>
    testLedger.ledger.spend({ workspaceId, poolId: "a", cost, charges, isCurrent });

  it("when its balance is locked is not charged, and neither are its limits", async () => {
    const testLedger = new TestLedger({ a: 1 });
    const outcomes = [spend(testLedger, () => false, 1, { id: 7, decision: "allowed" }), spend(testLedger, () => true)];
    assert.deepEqual(await Promise.all(outcomes), [{ outcome: "outdated" }, spent(0)]);
    assert.deepEqual(testLedger.charged, []);
  });

  it("after its limits were charged is not charged, and the next call gets its credits", async () => {
    const testLedger = new TestLedger({ a: 1 });
    let isCurrent = true;
    const outdated = spend(testLedger, () => isCurrent, 1, { id: 7, decision: "allowed", isAsync: true });
    const next = spend(testLedger, () => true);
    const last = testLedger.ledger.spend({
      workspaceId,
      poolId: "b",
      cost: 0,
      charges: undefined,
      isCurrent() {
        isCurrent = false;
        return true;
      },
    });
    assert.deepEqual(await outdated, { outcome: "outdated" });
    assert.deepEqual(await next, spent(0));
    await last;
    assert.deepEqual(testLedger.charged, [7]);
  });

  it("is outdated even if it lacks credits", async () => {
    const testLedger = new TestLedger({ a: 1 });
    assert.deepEqual(await spend(testLedger, () => false, 5), { outcome: "outdated" });
  });
});

describe("calls with an Idempotency-Key", () => {
  const spend = (testLedger: TestLedger, scope: string, { poolId = "a", fingerprint = "f", cost = 1, id = 0 } = {}) =>
    testLedger.ledger.spend({
      workspaceId,
      poolId,
      cost,
      charges: { id, decision: "allowed" as const },
      idempotent: { scope, fingerprint, keyId: null, outcome: ({ remaining }) => `left ${remaining}` },
    });

  it("that another node is running are answered as running, and delay no other call", async () => {
    const testLedger = new TestLedger({ a: 5, b: 5 });
    testLedger.claimedElsewhere.add("taken");
    const outcomes = [
      spend(testLedger, "taken"),
      spend(testLedger, "other", { poolId: "b" }),
      spend(testLedger, "third"),
    ];
    assert.deepEqual(
      (await Promise.all(outcomes)).map(({ outcome }) => outcome),
      ["running", "spent", "spent"],
    );
    assert.equal(testLedger.batches.length, 1);
    assert.equal(testLedger.charged.length, 2);
  });

  it("are charged once, and their replays are answered together", async () => {
    const testLedger = new TestLedger({ a: 50 });
    const same = Array.from({ length: 2_000 }, () => spend(testLedger, "once"));
    const other = spend(testLedger, "once", { fingerprint: "g" });
    assert.deepEqual(await same[0], spent(49, { allowed: true }));
    for (const call of same.slice(1)) assert.deepEqual(await call, { outcome: "repeated", before: "left 49" });
    assert.deepEqual(await other, { outcome: "mismatched" });
    assert.equal(testLedger.batches.length, 1);
    assert.deepEqual(await spend(testLedger, "once"), { outcome: "repeated", before: "left 49" });
  });

  it("are decided one after the other while they are denied", async () => {
    const testLedger = new TestLedger({ a: 5 });
    const outcomes = await Promise.all([9, 9, 4, 4].map((cost) => spend(testLedger, "once", { cost })));
    assert.deepEqual(
      outcomes.map(({ outcome }) => outcome),
      ["insufficient", "insufficient", "spent", "repeated"],
    );
  });

  it("go at most 256 to a batch", async () => {
    const testLedger = new TestLedger({ a: 10_000, b: 10_000 });
    const poolId = (i: number) => (i % 2 === 0 ? "a" : "b");
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => spend(testLedger, `scope${i}`, { poolId: poolId(i) })));
    assert.equal(testLedger.batches.length, 4);
  });
});

describe("many calls on one pool that its limit denies", () => {
  it("take time in proportion to their number", async () => {
    const denied = (count: number) => Array.from({ length: count }, () => calls("a", [1, "denied"])[0]!);
    const took = async (count: number) => {
      const testLedger = new TestLedger({ a: 1 });
      const before = process.threadCpuUsage();
      const outcomes = await testLedger.spendAll(denied(count));
      const { user } = process.threadCpuUsage(before);
      for (const outcome of outcomes) assert.deepEqual(outcome, limited(1));
      assert.equal(testLedger.charged.length, count);
      return user / 1_000;
    };
    await took(1_000);
    const [small, large] = [await took(2_000), await took(20_000)];
    // Ten times as many calls. Quadratic work would take a hundred times as long.
    assert(large < 40 * small + 200, `2,000 took ${small} ms, 20,000 took ${large} ms`);
  });
});

describe("for any calls", () => {
  const call = fc.record({
    poolId: fc.constantFrom("a", "b", "c", "unlimited"),
    cost: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 30 })),
    decision: fc.oneof(
      { arbitrary: fc.constantFrom("allowed" as const, "unlimited" as const), weight: 3 },
      { arbitrary: fc.constantFrom("denied" as const, "broken" as const), weight: 1 },
    ),
    isAsync: fc.boolean(),
  });
  const balances = fc.record({ a: fc.nat(30), b: fc.nat(30), c: fc.constant(1e15) });
  /** Calls that arrive together, some of them while others are being written. */
  const waves = fc.array(fc.array(call, { maxLength: 12 }), { minLength: 1, maxLength: 4 });

  /** Runs waves of calls and returns every call with its outcome, in the order of arrival. */
  async function play(start: Record<string, number>, waves: Call[][]) {
    const testLedger = new TestLedger(start);
    const outcomes: Promise<(Outcome | Error)[]>[] = [];
    for (const wave of waves) {
      outcomes.push(testLedger.spendAll(wave));
      await setImmediate();
    }
    const settled = (await Promise.all(outcomes)).flat();
    return { testLedger, calls: waves.flat().map((call, i) => ({ ...call, outcome: settled[i]! })) };
  }

  const taken = (calls: { cost: number; outcome: Outcome | Error }[]) =>
    calls.reduce((sum, { cost, outcome }) => sum + ("outcome" in outcome && outcome.outcome === "spent" ? cost : 0), 0);

  it("granted credits equal spent credits and never exceed the balance", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const { testLedger, calls } = await play(start, waves);
        for (const [poolId, before] of Object.entries(start)) {
          const ofPool = calls.filter((call) => call.poolId === poolId);
          assert.equal(testLedger.balances.get(poolId), before - taken(ofPool));
          assert(testLedger.balances.get(poolId)! >= 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("every outcome follows from the call's limits and the balance", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const { calls } = await play(start, waves);
        for (const { poolId, cost, decision, outcome } of calls) {
          if (outcome instanceof Error) {
            assert.equal(decision, "broken");
            continue;
          }
          if (outcome.outcome === "insufficient") assert(outcome.remaining < cost);
          if (outcome.outcome === "limited") assert.equal(decision, "denied");
          if (outcome.outcome === "spent") assert(decision === "allowed" || decision === "unlimited");
          if (poolId === "unlimited") assert.notEqual(outcome.outcome, "insufficient");
        }
      }),
      { numRuns: 300 },
    );
  });

  it("a call with insufficient credits costs more than the final balance and charges no limit", async () => {
    await fc.assert(
      fc.asyncProperty(balances, fc.array(call, { maxLength: 20 }), async (start, wave) => {
        const { testLedger, calls } = await play(start, [wave]);
        calls.forEach(({ poolId, cost, outcome }, id) => {
          if (outcome instanceof Error || outcome.outcome !== "insufficient") return;
          assert.equal(outcome.remaining, testLedger.balances.get(poolId));
          assert(testLedger.balances.get(poolId)! < cost);
          assert(!testLedger.charged.includes(id));
        });
      }),
      { numRuns: 300 },
    );
  });

  it("without denials, the result is the same as for sequential calls", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const willing = waves.map((wave) =>
          wave.map((call) => ({
            ...call,
            decision: call.decision === "allowed" ? call.decision : ("unlimited" as const),
          })),
        );
        const { calls } = await play(start, willing);
        const left = new Map(Object.entries(start));
        for (const { poolId, cost, outcome } of calls) {
          assert(!(outcome instanceof Error));
          const before = left.get(poolId);
          const passes = before === undefined || before >= cost;
          assert.equal(outcome.outcome, passes ? "spent" : "insufficient");
          if (before === undefined) continue;
          if (passes) left.set(poolId, before - cost);
          if (passes) assert.equal(outcome.remaining, left.get(poolId));
        }
      }),
      { numRuns: 300 },
    );
  });

  it("of two calls with the same cost, the later one never gets credits that the earlier one lacked", async () => {
    await fc.assert(
      fc.asyncProperty(balances, fc.array(call, { maxLength: 20 }), async (start, wave) => {
        const { calls } = await play(start, [wave]);
        calls.forEach(({ poolId, cost, outcome }, i) => {
          if (outcome instanceof Error || outcome.outcome !== "insufficient") return;
          const overtaken = calls
            .slice(i + 1)
            .filter((later) => later.poolId === poolId && later.cost === cost && taken([later]) > 0);
          assert.deepEqual(overtaken, []);
        });
      }),
      { numRuns: 300 },
    );
  });

  /** Locks of a third node: the pool, the start and the duration, which is 2 s when the node is frozen. */
  const rivals = fc.array(
    fc.record({
      poolId: fc.constantFrom("a", "b", "c"),
      afterTurns: fc.nat(30),
      heldFor: fc.oneof(fc.nat(20), fc.constant(2_000)),
    }),
    { maxLength: 6 },
  );

  it("at two nodes, with locks of a third one that may be frozen, balances are exact and every call is answered", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, waves, rivals, async (start, ofOne, ofOther, rivals) => {
        const one = new TestLedger(start);
        const other = new TestLedger(one);
        const outcomes: Promise<(Outcome | Error)[]>[] = [];
        let isAnswered = false;
        for (let turn = 0; turn < 2_000 && !isAnswered; turn++) {
          for (const { poolId, heldFor } of rivals.filter(({ afterTurns }) => afterTurns === turn)) {
            if (one.locks.tryLock(poolId)) one.clock.schedule(heldFor, () => one.locks.unlock(poolId));
          }
          if (turn % 5 === 0) {
            outcomes.push(one.spendAll(ofOne[turn / 5] ?? []), other.spendAll(ofOther[turn / 5] ?? []));
          }
          if (turn === 40) void Promise.all(outcomes).then(() => (isAnswered = true));
          await setImmediate();
          one.clock.advance(turn < 40 ? 1 : 20);
        }
        assert(isAnswered, "some calls had no answer");
        const settled = (await Promise.all(outcomes)).flat();
        const called = Array.from({ length: 9 }, (_, i) => [...(ofOne[i] ?? []), ...(ofOther[i] ?? [])]).flat();
        const calls = called.map((call, i) => ({ ...call, outcome: settled[i]! }));
        for (const { decision, outcome } of calls) {
          // A frozen node's lock ends after 2 s, so no call reaches the maximum wait.
          if (outcome instanceof Error) assert(decision === "broken", outcome.stack);
        }
        for (const [poolId, before] of Object.entries(start)) {
          assert.equal(one.balances.get(poolId), before - taken(calls.filter((call) => call.poolId === poolId)));
        }
        assert.equal(one.ledger.waiting + other.ledger.waiting, 0);
      }),
      { numRuns: 150 },
    );
  });
});
