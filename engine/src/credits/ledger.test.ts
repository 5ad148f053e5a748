import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import type { Instant } from "../clock/clock.ts";
import { SimulatedClock } from "../clock/simulated.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import { seededRandom } from "../random/seeded.ts";
import type {
  BatchAnswers,
  ExpiredHold,
  JoinedBalances,
  LedgerBatch,
  SettledBatch,
  StoredHold,
  StoredHoldRow,
} from "./batch.ts";
import type { ChangeOutcome, HoldAction, OnExpiry } from "./hold.ts";
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

/** The lock of the batch whose turn it is. */
const TURN = "turn";

function lockTimeout(): Error {
  return Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" });
}

/** A ledger over balances in a map, with row locks and atomic transactions. */
class TestLedger {
  readonly clock: SimulatedClock;
  readonly balances: Map<string, number>;
  readonly locks: Locks;
  /** The credits of the open holds of a balance, and when the first of them expires. */
  readonly held: Map<string, { held: number; nextExpiryAt: Instant | null }>;
  readonly holds: Map<string, StoredHold>;
  /** How often a batch had to read before it was settled. */
  reads = 0;
  /** The claims of each of these batches. */
  readonly claims: number[] = [];
  /** Balances that count and never deny. */
  readonly watched: Set<string>;
  /** Ids of calls whose limits were charged, in that order. */
  readonly charged: number[] = [];
  /** Ids of calls whose limits were given back, and whether a commit stores what they charge. */
  readonly givenBack: [id: number | undefined, isKept: boolean][] = [];
  readonly #ids = new WeakMap<Limits, number>();
  readonly batches: LedgerBatch[] = [];
  /** More batches than any test needs: a ledger that tries in vain for ever would not let a test end. */
  batchesMax = 20_000;
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
    this.watched = first?.watched ?? new Set();
    this.held = first?.held ?? new Map();
    this.holds = first?.holds ?? new Map();
    this.ledger = new Ledger({
      clock: this.clock,
      random: seededRandom(first ? 1 : 2),
      charge: (charges) => this.#charge(charges),
      giveBack: async (decided, isKept) => this.givenBack.push([this.#ids.get(decided), isKept]),
      transact: async (batch, answer) => ({ due: await this.#transact(batch, answer) }),
    });
  }

  /** Spends for all calls without waiting in between. */
  async spendAll(calls: readonly Call[]): Promise<(Outcome | Error)[]> {
    const spent = calls.map(({ balances, cost, decision, isAsync = false }, id) =>
      this.ledger
        .spend({
          workspaceId,
          balances,
          cost,
          charges: decision === "unlimited" ? undefined : { id, decision, isAsync },
        })
        .catch((error: Error) => error),
    );
    return Promise.all(spent);
  }

  #charge({ id, decision, isAsync }: Charges): Limits | Promise<Limits> {
    this.charged.push(id);
    const answer = () => {
      if (decision === "broken") throw new Error("The limiter is broken");
      const decided = { allowed: decision === "allowed" };
      this.#ids.set(decided, id);
      return decided;
    };
    return isAsync ? setImmediate().then(answer) : answer();
  }

  /** The open holds of these balances whose time has passed. */
  expiredHolds(balanceIds: readonly string[]): ExpiredHold[] {
    const now = this.clock.now();
    return [...this.holds.values()]
      .map((hold) => ({ ...hold, balances: hold.balances.map(({ id }) => id) }))
      .filter(({ state, expiresAt, balances }) => {
        return state === "open" && expiresAt <= now && balances.some((id) => balanceIds.includes(id));
      });
  }

  async #transact(batch: LedgerBatch, answer: BatchAnswers): Promise<ExpiredHold[]> {
    this.batches.push(batch);
    assert(this.batches.length < this.batchesMax, "the ledger spins");
    await this.at("begun");
    const locked: string[] = [];
    try {
      const contended: string[] = [];
      let { balanceIds } = batch;
      if (batch.lockTimeout !== undefined) {
        assert.equal(balanceIds.length, 1, "a batch waits for one balance");
        const [id] = balanceIds as [string];
        const { turnTimeout } = batch;
        const hasWaited = turnTimeout !== undefined && !this.locks.tryLock(TURN);
        if (hasWaited && !(await this.locks.lock(TURN, this.clock, turnTimeout))) throw lockTimeout();
        if (turnTimeout !== undefined) locked.push(TURN);
        const join = async () => ((await answer({ step: "join", hasWaited })) as JoinedBalances).balanceIds;
        if (turnTimeout !== undefined) balanceIds = await join();
        const isLocked = await this.locks.lock(id, this.clock, batch.lockTimeout);
        if (!isLocked) throw lockTimeout();
        locked.push(id);
        if (turnTimeout === undefined) balanceIds = await join();
      }
      for (const id of balanceIds.filter((id) => this.balances.has(id))) {
        if (this.locks.tryLock(id)) locked.push(id);
        else contended.push(id);
      }
      const balances = locked
        .filter((id) => this.balances.has(id))
        .map((id) => {
          const state = { id, remaining: this.balances.get(id)!, isWatched: this.watched.has(id) };
          return { ...state, ...this.held.get(id) };
        });
      let settled = await answer({ step: "choose", balances, contended });
      if ("scopes" in settled) {
        this.reads++;
        this.claims.push(settled.claims.length);
        const found = settled.holdIds?.flatMap((id) => this.holds.get(id) ?? []);
        settled = await answer({
          step: "settle",
          recorded: this.records,
          claimedElsewhere: settled.scopes.filter((scope) => this.claimedElsewhere.has(scope)),
          hasCapacity: true,
          holds: found && {
            at: this.clock.now(),
            stored: found.map(storedRow),
          },
        });
      }
      const { spends, records, holds, due = [] } = settled as SettledBatch;
      await this.at("settled");
      for (const { balanceId, amount } of spends) {
        const remaining = this.balances.get(balanceId)! - amount;
        assert(amount > 0, `${amount} of ${balanceId}`);
        assert(remaining >= 0 || this.watched.has(balanceId), `${amount} of ${this.balances.get(balanceId)}`);
        assert(locked.includes(balanceId), `${balanceId} is not locked`);
        this.balances.set(balanceId, remaining);
      }
      for (const { balanceId, remaining, held, nextExpiryAt } of holds?.balances ?? []) {
        assert(locked.includes(balanceId), `${balanceId} is not locked`);
        assert(remaining >= 0 || this.watched.has(balanceId), `${remaining} of ${balanceId}`);
        assert(held >= 0, `${balanceId} holds ${held}`);
        this.balances.set(balanceId, remaining);
        this.held.set(balanceId, { held, nextExpiryAt });
      }
      const open = { state: "open", charged: 0, lacks: [], settlement: null } as const;
      for (const row of holds?.opened ?? []) {
        const [id, , , , cost, held, onExpiry, , , createdAt, expiresAt] = row;
        this.holds.set(id, {
          ...{ id, workspaceId, cost, onExpiry, createdAt, expiresAt, ...open },
          balances: JSON.parse(held),
        });
      }
      for (const [id, expiresAt] of holds?.extended ?? []) this.holds.set(id, { ...this.holds.get(id)!, expiresAt });
      for (const [id, former, state, charged, , lacks, settlement] of holds?.closed ?? []) {
        const before = this.holds.get(id)!;
        assert.equal(before.state, former);
        this.holds.set(id, { ...before, state, charged, lacks: JSON.parse(lacks ?? "[]"), settlement });
      }
      for (const { scope, ...record } of records) {
        assert(!this.records.has(scope), `${scope} is recorded already`);
        this.records.set(scope, record);
      }
      await this.at("committed");
      return this.expiredHolds(due);
    } finally {
      for (const id of locked) this.locks.unlock(id);
    }
  }
}

function storedRow({ id, cost, balances, onExpiry, state, charged, lacks, ...hold }: StoredHold): StoredHoldRow {
  const { settlement, createdAt, expiresAt } = hold;
  const [held, lacking] = [JSON.stringify(balances), lacks.length === 0 ? null : JSON.stringify(lacks)];
  return [id, hold.workspaceId, cost, held, onExpiry, state, charged, lacking, settlement, createdAt, expiresAt];
}

interface Call {
  balances: readonly string[];
  cost: number;
  decision: Charges["decision"] | "unlimited";
  isAsync?: boolean;
}

const callsOf = (balances: readonly string[], ...list: [cost: number, decision?: Call["decision"]][]): Call[] =>
  list.map(([cost, decision = "unlimited"]) => ({ balances, cost, decision }));
const calls = (id: string, ...list: [cost: number, decision?: Call["decision"]][]): Call[] => callsOf([id], ...list);
const spent = (remaining: number | undefined, limits?: Limits): Outcome => ({
  outcome: "spent",
  remaining: [remaining],
  limits,
});
const limited = (remaining: number): Outcome => ({
  outcome: "limited",
  remaining: [remaining],
  limits: { allowed: false },
});
const insufficient = (remaining: number, balanceId = "a"): Outcome => ({
  outcome: "insufficient",
  remaining: [remaining],
  lacks: [{ balanceId, refillAt: null }],
});

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
    assert.deepEqual(testLedger.batches[0]!.balanceIds, ["c", "a", "b"]);
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
      { outcome: "limited", remaining: [undefined], limits: { allowed: false } },
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

  it("gives back what its calls have charged to limits if it fails, and nothing otherwise", async () => {
    const testLedger = new TestLedger({ a: 10 });
    testLedger.at = (moment) => {
      if (moment === "settled" && testLedger.batches.length === 1) throw new Error("disk I/O error");
    };
    const batch = calls("a", [1, "allowed"], [1, "denied"], [1], [20, "allowed"], [1, "broken"]);
    const failing = testLedger.spendAll(batch);
    const repeatable = testLedger.ledger.spend({
      workspaceId,
      balances: ["a"],
      cost: 1,
      charges: { id: 9, decision: "allowed", isAsync: true },
      idempotent: { scope: "scope", fingerprint: "call", keyId: "key_1", outcome: () => "" },
    });
    const held = testLedger.ledger.spend({
      workspaceId,
      balances: ["a"],
      cost: 1,
      charges: { id: 10, decision: "allowed", isAsync: false },
      hold: { holdId: "hold_1", ttl: 1_000, onExpiry: "release", keyId: "key_1", apiId: "api_1" },
    });
    await Promise.all([failing, assert.rejects(repeatable, LedgerFailed), assert.rejects(held, LedgerFailed)]);
    assert.deepEqual(testLedger.givenBack, [
      [0, false],
      [9, true],
      [10, true],
    ]);
    await testLedger.spendAll(batch);
    assert.equal(testLedger.givenBack.length, 3);
  });

  it("is never settled twice, which would charge its limits again", async () => {
    const testLedger = new TestLedger({ a: 10 });
    const ledger = new Ledger<Charges, Limits>({
      clock: testLedger.clock,
      random: seededRandom(1),
      charge: ({ id }) => {
        testLedger.charged.push(id);
        return { allowed: true };
      },
      async transact(_, answer) {
        await answer({ step: "choose", balances: [{ id: "a", remaining: 10 }], contended: [] });
        await answer({ step: "settle", recorded: new Map(), claimedElsewhere: [], hasCapacity: true });
        return { due: [] };
      },
    });
    await assert.rejects(
      ledger.spend({ workspaceId, balances: ["a"], cost: 1, charges: { id: 1, decision: "allowed" } }),
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

  it("has at most 100,000 waiting calls, half of them of one workspace, a quarter of one balance", async () => {
    const testLedger = new TestLedger({});
    const gate = Promise.withResolvers<void>();
    testLedger.at = () => gate.promise;
    let rejected = 0;
    const spend = async (workspaceId: string, poolId: string, count: number) => {
      for (let i = 0; i < count; i++) {
        const call = testLedger.ledger.spend({
          workspaceId,
          balances: [workspaceId + poolId],
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

  it("has one more waiter after each that has stalled, four at most, and is tried again by batches otherwise", async () => {
    const testLedger = rich();
    for (const name of names) testLedger.locks.tryLock(name);
    const delayed = names.map((name) => testLedger.spendAll(calls(name, [1])));
    for (const stall of [400, 100, 100, 100]) {
      await settle();
      testLedger.clock.advance(stall);
    }
    await settle();
    // The first one gave its turn up.
    assert.equal(testLedger.batches.filter(({ lockTimeout }) => lockTimeout !== undefined).length, 5);
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
    for (const { lockTimeout, turnTimeout, balanceIds } of waited) {
      assert.deepEqual([lockTimeout, balanceIds.length], [turnTimeout === undefined ? 3_000 : 400, 1]);
    }
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
    testLedger.ledger.spend({ workspaceId, balances: ["a"], cost, charges, isCurrent });

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
      balances: ["b"],
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
      balances: [poolId],
      cost,
      charges: { id, decision: "allowed" as const },
      idempotent: { scope, fingerprint, keyId: null, outcome: ({ remaining: [remaining] }) => `left ${remaining}` },
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

describe("a call of several balances", () => {
  it("is charged to all of them or to none, and says which lack", async () => {
    const testLedger = new TestLedger({ key: 10, team: 5, root: 20 });
    const [first, second, third] = await testLedger.spendAll([
      ...callsOf(["key", "team", "root"], [4], [4]),
      ...callsOf(["key", "root"], [6]),
    ]);
    assert.deepEqual(first, { outcome: "spent", remaining: [6, 1, 16], limits: undefined });
    const lacks = [{ balanceId: "team", refillAt: null }];
    // The balances after the batch, in which the third call was charged.
    assert.deepEqual(second, {
      outcome: "insufficient",
      remaining: [0, 1, 10],
      lacks: [{ balanceId: "key", refillAt: null }, ...lacks],
    });
    assert.deepEqual(third, { outcome: "spent", remaining: [0, 10], limits: undefined });
    assert.deepEqual(Object.fromEntries(testLedger.balances), { key: 0, team: 1, root: 10 });
    assert.deepEqual(testLedger.ledger.counts, { batches: 1, calls: 3, credits: 10, failures: 0 });
  });

  it("is never denied by a balance that is watched, which counts below 0", async () => {
    const testLedger = new TestLedger({ key: 10, root: 3 });
    testLedger.watched.add("root");
    const outcomes = await testLedger.spendAll(callsOf(["key", "root"], [4], [4], [4]));
    assert.deepEqual(outcomes.slice(0, 2), [
      { outcome: "spent", remaining: [6, -1], limits: undefined },
      { outcome: "spent", remaining: [2, -5], limits: undefined },
    ]);
    assert.deepEqual(outcomes[2], {
      outcome: "insufficient",
      remaining: [2, -5],
      lacks: [{ balanceId: "key", refillAt: null }],
    });
  });

  it("is not counted below -10^15", async () => {
    const testLedger = new TestLedger({ root: -1e15 + 5 });
    testLedger.watched.add("root");
    assert.deepEqual(await testLedger.spendAll(calls("root", [4], [4], [1])), [
      spent(-1e15 + 1),
      spent(-1e15 + 1),
      spent(-1e15),
    ]);
  });

  it("passes at cost 0, also with a balance below 0 that was watched before", async () => {
    const testLedger = new TestLedger({ key: 0, root: -5 });
    assert.deepEqual(await testLedger.spendAll(callsOf(["key", "root"], [0])), [
      { outcome: "spent", remaining: [0, -5], limits: undefined },
    ]);
  });

  it("gets what a call of another key that its limit denied gives back to their budget", async () => {
    const testLedger = new TestLedger({ a: 9, b: 9, c: 9, root: 5 });
    const outcomes = await testLedger.spendAll([
      ...callsOf(["a", "root"], [5, "denied"]),
      ...callsOf(["b", "root"], [5, "allowed"]),
      ...callsOf(["c", "root"], [5, "allowed"]),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => !(outcome instanceof Error) && outcome.outcome),
      ["limited", "spent", "insufficient"],
    );
    assert.deepEqual(testLedger.charged, [0, 1], "a call without credits charges no limit");
    assert.deepEqual(Object.fromEntries(testLedger.balances), { a: 9, b: 4, c: 9, root: 0 });
  });

  it("locks each balance of a batch once", async () => {
    const testLedger = new TestLedger({ a: 1, b: 1, root: 1 });
    await testLedger.spendAll(["a", "b", "a"].flatMap((id) => callsOf([id, "root"], [0])).concat(calls("root", [0])));
    assert.deepEqual(testLedger.batches[0]!.balanceIds, ["a", "root", "b"]);
  });

  it("waits with at most 25,000 others for one of its balances", async () => {
    const testLedger = new TestLedger({});
    const gate = Promise.withResolvers<void>();
    testLedger.at = () => gate.promise;
    let rejected = 0;
    const spend = (balances: readonly string[]) =>
      testLedger.ledger.spend({ workspaceId, balances, cost: 0, charges: undefined }).catch((error: unknown) => {
        assert(error instanceof LedgerOverloaded);
        rejected++;
      });
    const spends = Array.from({ length: 25_010 }, (_, i) => spend([`key${i % 100}`, "root"]));
    const other = spend(["key0", "other"]);
    await setImmediate();
    assert.equal(rejected, 10);
    gate.resolve();
    await Promise.all([...spends, other]);
    assert.equal(rejected, 10);
    assert.equal(testLedger.ledger.waiting, 0);
  });

  it("takes time in proportion to the crowd that gets the credits of a budget from one another, and is denied by limits", async () => {
    const took = async (count: number) => {
      const testLedger = new TestLedger({
        root: 5,
        ...Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`key${i}`, 9])),
      });
      const denied = Array.from({ length: count }, (_, i) => callsOf([`key${i % 100}`, "root"], [1, "denied"])[0]!);
      const before = process.threadCpuUsage();
      const outcomes = await testLedger.spendAll(denied);
      const { user } = process.threadCpuUsage(before);
      for (const outcome of outcomes) assert(!(outcome instanceof Error) && outcome.outcome === "limited");
      assert.equal(testLedger.charged.length, count);
      return user / 1_000;
    };
    await took(1_000);
    const [small, large] = [await took(2_000), await took(20_000)];
    assert(large < 40 * small + 200, `2,000 took ${small} ms, 20,000 took ${large} ms`);
  });
});

describe("shared balances that another transaction has locked", () => {
  const balances = Object.fromEntries(
    ["key0", "key1", "key2", "key3", "one", "two", "three"].map((id) => [id, 1_000_000]),
  );
  const settle = async () => {
    for (let i = 0; i < 20; i++) await setImmediate();
  };
  const waitersOf = ({ batches }: TestLedger) =>
    batches.flatMap(({ lockTimeout, balanceIds }) => (lockTimeout === undefined ? [] : balanceIds));

  it("have one waiter, which then takes all contended calls, and delay no others", async () => {
    const testLedger = new TestLedger(balances);
    for (const root of ["one", "two"]) testLedger.locks.tryLock(root);
    const delayed = testLedger.spendAll([
      ...callsOf(["key0", "one"], [1]),
      ...callsOf(["key1", "one"], [1]),
      ...callsOf(["key2", "two"], [1]),
    ]);
    const alone = testLedger.spendAll(calls("one", [1]));
    const others = await testLedger.spendAll(callsOf(["key3", "three"], [1]));
    assert(others.every((outcome) => !(outcome instanceof Error)));
    await settle();
    assert.deepEqual(waitersOf(testLedger), ["one"]);
    testLedger.locks.unlock("two");
    testLedger.locks.unlock("one");
    for (const outcome of [...(await delayed), ...(await alone)])
      assert(!(outcome instanceof Error) && outcome.outcome === "spent");
    assert.deepEqual(waitersOf(testLedger), ["one"]);
    assert.equal(testLedger.balances.get("one"), 999_997);
  });

  it("are left to the waiter for a second", async () => {
    const testLedger = new TestLedger(balances);
    testLedger.locks.tryLock("one");
    const delayed = testLedger.spendAll(callsOf(["key0", "one"], [1]));
    await settle();
    testLedger.locks.unlock("one");
    await delayed;
    const spend = async () => {
      testLedger.batches.length = 0;
      await testLedger.spendAll(callsOf(["key1", "one"], [1]));
      return waitersOf(testLedger);
    };
    testLedger.clock.advance(900);
    assert.deepEqual(await spend(), ["one"]);
    testLedger.clock.advance(101);
    assert.deepEqual(await spend(), []);
  });

  it("of a frozen node delay no calls of other contended ones for longer than 500 ms", async () => {
    const testLedger = new TestLedger(balances);
    for (const root of ["one", "two"]) testLedger.locks.tryLock(root);
    const frozen = testLedger.spendAll(callsOf(["key0", "one"], [1]));
    const delayed = testLedger.spendAll(callsOf(["key1", "two"], [1]));
    await settle();
    testLedger.locks.unlock("two");
    testLedger.clock.advance(400);
    await settle();
    testLedger.clock.advance(99);
    await settle();
    assert.deepEqual(waitersOf(testLedger), ["one", "one"]);
    testLedger.clock.advance(1);
    await delayed;
    assert.deepEqual(waitersOf(testLedger), ["one", "one", "two"]);
    testLedger.locks.unlock("one");
    await frozen;
  });

  it("that are free wait once for a turn that a frozen node has, and no longer than 400 ms", async () => {
    const testLedger = new TestLedger(balances);
    const { clock, locks } = testLedger;
    const turns = () => testLedger.batches.filter(({ turnTimeout }) => turnTimeout !== undefined).length;
    /** Calls of a root that another transaction has for 100 ms. */
    const contended = async (root: string) => {
      locks.tryLock(root);
      let isAnswered = false;
      const delayed = testLedger.spendAll(callsOf(["key0", root], [1])).then(() => (isAnswered = true));
      await settle();
      clock.advance(100);
      locks.unlock(root);
      await settle();
      return { delayed, isAnswered: () => isAnswered };
    };
    locks.tryLock(TURN);
    const first = await contended("one");
    clock.advance(299);
    await settle();
    assert.equal(first.isAnswered(), false);
    clock.advance(1);
    await settle();
    assert.equal(first.isAnswered(), true);
    for (const root of ["two", "one", "three"]) assert.equal((await contended(root)).isAnswered(), true, root);
    assert.equal(turns(), 1);
    // PostgreSQL has ended the transaction of the frozen node.
    locks.unlock(TURN);
    clock.advance(1_700);
    assert.equal((await contended("two")).isAnswered(), true);
    assert.equal(turns(), 2);
  });

  it("of a frozen node keep the turn from other nodes for at most 400 ms", async () => {
    const testLedger = new TestLedger(balances);
    const other = new TestLedger(testLedger);
    const { clock, locks } = testLedger;
    for (const root of ["one", "two"]) locks.tryLock(root);
    const frozen = testLedger.spendAll(callsOf(["key0", "one"], [1]));
    await settle();
    clock.advance(50);
    const delayed = other.spendAll(callsOf(["key1", "two"], [1]));
    await settle();
    locks.unlock("two");
    clock.advance(350);
    await settle();
    assert.equal(other.ledger.waiting, 0);
    assert.equal((await delayed)[0] instanceof Error, false);
    assert.equal(other.batches.at(-1)!.turnTimeout, 400);
    locks.unlock("one");
    assert.equal((await frozen)[0] instanceof Error, false);
  });

  it("wait longer for a turn where those of other nodes take long, and no longer again when they do not", async () => {
    const testLedger = new TestLedger(balances);
    const { clock, locks } = testLedger;
    /** How long a call is ready to wait while other nodes take turns for some time. */
    const timeoutBeside = async (turns: number) => {
      for (const lock of [TURN, "one"]) locks.tryLock(lock);
      testLedger.batches.length = 0;
      const delayed = testLedger.spendAll(callsOf(["key0", "one"], [1]));
      for (let passed = 0; passed <= turns; passed += 50) {
        await settle();
        if (passed === turns) break;
        clock.advance(50);
      }
      for (const lock of [TURN, "one"]) locks.unlock(lock);
      assert.equal((await delayed)[0] instanceof Error, false);
      const timeout = testLedger.batches.find(({ turnTimeout }) => turnTimeout !== undefined)?.turnTimeout;
      // The pause after a turn that it did not get.
      clock.advance(2_000);
      return timeout;
    };
    const timeouts: (number | undefined)[] = [];
    for (const turns of [450, 450, 1_650, 300, 0, 0]) timeouts.push(await timeoutBeside(turns));
    assert.deepEqual(timeouts, [400, 800, 900, 1_600, 600, 400]);
  });

  it("are tried again by batches while four waiters wait", async () => {
    const names = ["one", "two", "three", "key0", "key1"];
    const testLedger = new TestLedger(balances);
    for (const name of names) testLedger.locks.tryLock(name);
    const delayed = names.map((name) => testLedger.spendAll(callsOf([name, "key3"], [1])));
    for (const stall of [400, 100, 100, 100, 100]) {
      await settle();
      testLedger.clock.advance(stall);
    }
    await settle();
    // The first one gave its turn up.
    assert.equal(waitersOf(testLedger).length, 5);
    testLedger.locks.unlock("key1");
    await settle();
    testLedger.clock.advance(50);
    await delayed[4];
    assert.equal(waitersOf(testLedger).length, 5);
    for (const name of names.slice(0, 4)) testLedger.locks.unlock(name);
    await Promise.all(delayed);
    assert.equal(testLedger.balances.get("key3"), 999_995);
  });

  it("fail their calls with the waiter's transaction, and nothing is charged", async () => {
    const testLedger = new TestLedger(balances);
    testLedger.locks.tryLock("one");
    const delayed = testLedger.spendAll(callsOf(["key0", "one"], [1, "allowed"]));
    testLedger.at = (moment) => {
      if (moment === "begun" && testLedger.batches.length > 1) throw new StoreUnavailable("away");
    };
    const [outcome] = await delayed;
    assert(outcome instanceof StoreUnavailable);
    assert.deepEqual(testLedger.charged, []);
    assert.equal(testLedger.ledger.waiting, 0);
  });

  it("fail no calls that the waiter has left again", async () => {
    const testLedger = new TestLedger(balances);
    for (const id of ["key0", "one"]) testLedger.locks.tryLock(id);
    const delayed = testLedger.spendAll(callsOf(["key0", "one"], [1]));
    await settle();
    assert.deepEqual(waitersOf(testLedger), ["key0"]);
    testLedger.at = (moment) => {
      if (moment !== "settled") return;
      testLedger.at = () => {};
      throw new Error("The connection is closed");
    };
    testLedger.locks.unlock("key0");
    await settle();
    assert.equal(testLedger.ledger.counts.failures, 1);
    testLedger.locks.unlock("one");
    while (testLedger.ledger.waiting > 0) {
      testLedger.clock.advance(1);
      await settle();
    }
    const [outcome] = await delayed;
    assert(!(outcome instanceof Error), String(outcome));
  });

  it("let nodes make progress that need them in opposite order, at every turn of the other", async () => {
    for (const delays of [
      [1, 1],
      [1, 2],
      [2, 3],
    ]) {
      const one = new TestLedger(balances);
      const other = new TestLedger(one);
      const nodes = [one, other];
      const done = [0, 0];
      let isOver = false;
      nodes.forEach((node, i) => {
        node.at = async () => {
          for (let turns = 0; turns < delays[i]!; turns++) await setImmediate();
        };
      });
      const spender = async (i: number, roots: readonly string[]) => {
        while (!isOver) {
          const [outcome] = await nodes[i]!.spendAll(callsOf(roots, [1]));
          assert(!(outcome instanceof Error), String(outcome));
          done[i]!++;
        }
      };
      const spenders = Array.from({ length: 40 }, (_, i) =>
        spender(i % 2, (i >> 1) % 2 === 0 ? ["one", "two"] : ["two", "one"]),
      );
      for (let turns = 0; turns < 3_000; turns++) {
        await setImmediate();
        if (turns % 10 === 0) one.clock.advance(1);
      }
      isOver = true;
      await Promise.all(spenders);
      const sum = done[0]! + done[1]!;
      assert.deepEqual([one.balances.get("one"), one.balances.get("two")], [1_000_000 - sum, 1_000_000 - sum]);
      for (const count of done) assert(count * 4 > sum, `${done} at ${delays}`);
    }
  });

  it("are charged by three nodes in batches of what each has collected", async () => {
    const roots = Array.from({ length: 100 }, (_, i) => `root${i}`);
    /** Calls of each batch that has some, of nodes with as many open calls in all. */
    const callsPerBatch = async (count: number) => {
      const first = new TestLedger(Object.fromEntries(roots.map((root) => [root, 1_000_000])));
      const nodes = [first, ...Array.from({ length: count - 1 }, () => new TestLedger(first))];
      for (const node of nodes) {
        node.at = async () => {
          for (let turns = 0; turns < 3; turns++) await setImmediate();
        };
      }
      let isOver = false;
      const random = seededRandom(count);
      const spender = async (node: TestLedger) => {
        while (!isOver) {
          await node.spendAll(calls(roots[random.below(roots.length)]!, [1]));
          for (let turns = 0; turns < 4; turns++) await setImmediate();
        }
      };
      const spenders = Array.from({ length: 255 }, (_, i) => spender(nodes[i % count]!));
      for (let turns = 0; turns < 1_000; turns++) {
        await setImmediate();
        if (turns % 4 === 0) first.clock.advance(1);
      }
      isOver = true;
      await Promise.all(spenders);
      const sum = (figure: "calls" | "batches") => nodes.reduce((sum, { ledger }) => sum + ledger.counts[figure], 0);
      return sum("calls") / sum("batches");
    };
    const [one, three] = [await callsPerBatch(1), await callsPerBatch(3)];
    assert(three > one / 6, `${three} calls to a batch at three nodes, ${one} at one`);
  });
});

describe("for any calls", () => {
  const call = fc.record({
    balances: fc.uniqueArray(fc.constantFrom("a", "b", "c", "watched", "unlimited"), { minLength: 1, maxLength: 4 }),
    cost: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 30 })),
    decision: fc.oneof(
      { arbitrary: fc.constantFrom("allowed" as const, "unlimited" as const), weight: 3 },
      { arbitrary: fc.constantFrom("denied" as const, "broken" as const), weight: 1 },
    ),
    isAsync: fc.boolean(),
  });
  const balances = fc.record({
    a: fc.nat(30),
    b: fc.nat(30),
    c: fc.constant(1e15),
    watched: fc.integer({ min: -10, max: 30 }),
  });
  /** Calls that arrive together, some of them while others are being written. */
  const waves = fc.array(fc.array(call, { maxLength: 12 }), { minLength: 1, maxLength: 4 });

  function open(start: Record<string, number>): TestLedger {
    const testLedger = new TestLedger(start);
    testLedger.watched.add("watched");
    return testLedger;
  }

  /** Runs waves of calls and returns every call with its outcome, in the order of arrival. */
  async function play(start: Record<string, number>, waves: Call[][]) {
    const testLedger = open(start);
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

  /** Each balance fell by the cost of every call that has it and was charged, so each call was charged to all or none. */
  function assertExact(
    after: ReadonlyMap<string, number>,
    start: Record<string, number>,
    calls: (Call & { outcome: Outcome | Error })[],
  ): void {
    for (const [id, before] of Object.entries(start)) {
      const left = after.get(id)!;
      assert.equal(left, before - taken(calls.filter(({ balances }) => balances.includes(id))));
      assert(left >= 0 || id === "watched");
    }
  }

  it("granted credits equal spent credits in each balance and never exceed it", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const { testLedger, calls } = await play(start, waves);
        assertExact(testLedger.balances, start, calls);
      }),
      { numRuns: 300 },
    );
  });

  it("every outcome follows from the call's limits and its balances", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const { calls } = await play(start, waves);
        for (const { balances, cost, decision, outcome } of calls) {
          if (outcome instanceof Error) {
            assert.equal(decision, "broken");
            continue;
          }
          if (outcome.outcome === "limited") assert.equal(decision, "denied");
          if (outcome.outcome === "spent") assert(decision === "allowed" || decision === "unlimited");
          if (outcome.outcome !== "insufficient") continue;
          assert(cost > 0);
          const lacks = balances.filter(
            (id, i) => id !== "unlimited" && id !== "watched" && outcome.remaining[i]! < cost,
          );
          assert(lacks.length > 0);
          assert.deepEqual(
            outcome.lacks.map(({ balanceId }) => balanceId),
            lacks,
          );
        }
      }),
      { numRuns: 300 },
    );
  });

  it("a call with insufficient credits costs more than a final balance and charges no limit", async () => {
    await fc.assert(
      fc.asyncProperty(balances, fc.array(call, { maxLength: 20 }), async (start, wave) => {
        const { testLedger, calls } = await play(start, [wave]);
        calls.forEach(({ balances, cost, outcome }, id) => {
          if (outcome instanceof Error || outcome.outcome !== "insufficient") return;
          const final = balances.map((one) => testLedger.balances.get(one));
          assert.deepEqual(outcome.remaining, final);
          for (const { balanceId } of outcome.lacks) assert(testLedger.balances.get(balanceId)! < cost);
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
        for (const { balances, cost, outcome } of calls) {
          assert(!(outcome instanceof Error));
          const passes = balances.every((id) => cost === 0 || id === "watched" || (left.get(id) ?? Infinity) >= cost);
          assert.equal(outcome.outcome, passes ? "spent" : "insufficient");
          if (!passes) continue;
          for (const id of balances) if (left.has(id)) left.set(id, left.get(id)! - cost);
          assert.deepEqual(
            outcome.outcome === "spent" && outcome.remaining,
            balances.map((id) => left.get(id)),
          );
        }
      }),
      { numRuns: 300 },
    );
  });

  it("of two calls with the same cost and balances, the later one never gets credits that the earlier one lacked", async () => {
    await fc.assert(
      fc.asyncProperty(balances, fc.array(call, { maxLength: 20 }), async (start, wave) => {
        const { calls } = await play(start, [wave]);
        calls.forEach(({ balances, cost, outcome }, i) => {
          if (outcome instanceof Error || outcome.outcome !== "insufficient") return;
          const overtaken = calls
            .slice(i + 1)
            .filter((later) => `${later.balances}` === `${balances}` && later.cost === cost && taken([later]) > 0);
          assert.deepEqual(overtaken, []);
        });
      }),
      { numRuns: 300 },
    );
  });

  /** A lock of a third node, for 2 s when the node is frozen. */
  interface Rival {
    id: string;
    afterTurns: number;
    heldFor: number;
  }

  const rivals = fc.array(
    fc.record({
      id: fc.constantFrom("a", "b", "c", "watched"),
      afterTurns: fc.nat(30),
      heldFor: fc.oneof(fc.nat(20), fc.constant(2_000)),
    }),
    { maxLength: 6 },
  );

  /** Two nodes that need the same balances in opposite order when both are released: without chance they try in step. */
  const inStep: [Record<"a" | "b" | "c" | "watched", number>, Call[][], Call[][], Rival[]] = [
    { a: 0, b: 0, c: 1e15, watched: 0 },
    [[], callsOf(["a", "watched"], [0])],
    [[], callsOf(["watched", "a"], [0])],
    ["a", "watched"].map((id) => ({ id, afterTurns: 1, heldFor: 2_000 })),
  ];

  it("at two nodes, with locks of a third one that may be frozen, balances are exact and every call is answered", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, waves, rivals, async (start, ofOne, ofOther, rivals) => {
        const one = open(start);
        const other = new TestLedger(one);
        one.batchesMax = other.batchesMax = 1_000;
        const outcomes: Promise<(Outcome | Error)[]>[] = [];
        let isAnswered = false;
        for (let turn = 0; turn < 2_000 && !isAnswered; turn++) {
          for (const { id, heldFor } of rivals.filter(({ afterTurns }) => afterTurns === turn)) {
            if (one.locks.tryLock(id)) one.clock.schedule(heldFor, () => one.locks.unlock(id));
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
        assertExact(one.balances, start, calls);
        assert.equal(one.ledger.waiting + other.ledger.waiting, 0);
      }),
      { numRuns: 150, examples: [inStep] },
    );
  });
});

describe("holds", () => {
  const held = (
    { ledger }: TestLedger,
    holdId: string,
    {
      balances = ["a"],
      cost = 5,
      ttl = 1_000,
      onExpiry = "release",
      decision,
    }: Partial<Call> & { ttl?: number; onExpiry?: OnExpiry } = {},
  ) =>
    ledger.spend({
      workspaceId,
      balances,
      cost,
      charges: decision && decision !== "unlimited" ? { id: 0, decision } : undefined,
      hold: { holdId, ttl, onExpiry, keyId: "key", apiId: "api" },
    });
  const change = ({ ledger }: TestLedger, holdId: string, action: HoldAction, balances: readonly string[] = ["a"]) =>
    ledger.change({ workspaceId, holdId, balances, action });
  const settleAction = (amount: number): HoldAction => ({ kind: "settle", amount, settlement: `${amount}` });

  it("are changed before the calls of the batch, which may have arrived earlier", async () => {
    const testLedger = new TestLedger({ a: 5 });
    await held(testLedger, "one");
    const [call, settled] = await Promise.all([
      testLedger.spendAll(calls("a", [4])),
      change(testLedger, "one", settleAction(1)),
    ]);
    assert.deepEqual(call, [spent(0)]);
    assert.equal(settled.outcome, "changed");
    assert.equal(testLedger.batches.length, 2);
  });

  it("cost batches without them no question, and take no credits of calls that limits deny", async () => {
    const testLedger = new TestLedger({ a: 5 });
    await testLedger.spendAll(calls("a", [1], [1, "allowed"]));
    assert.equal(testLedger.reads, 0);
    const denied = held(testLedger, "one", { cost: 3, decision: "denied" });
    const [next] = await testLedger.spendAll(calls("a", [3, "allowed"]));
    assert.equal((await denied).outcome, "limited");
    assert.deepEqual([next, testLedger.reads, testLedger.holds.size], [spent(0, { allowed: true }), 1, 0]);
  });

  it("expire in the transaction of a change that comes too late, and before a call that lacks them", async () => {
    const testLedger = new TestLedger({ a: 10 });
    await Promise.all([held(testLedger, "one"), held(testLedger, "two", { ttl: 2_000 })]);
    testLedger.clock.advance(1_000);
    const late = await change(testLedger, "one", settleAction(3));
    assert(late.outcome === "changed");
    assert.deepEqual([late.state, late.charged, late.former.state], ["settled", 3, "open"]);
    assert.deepEqual(await testLedger.spendAll(calls("a", [7])), [{ ...insufficient(2), held: [5] }]);
    testLedger.clock.advance(1_000);
    assert.deepEqual(await testLedger.spendAll(calls("a", [7], [7])), [spent(0), insufficient(0)]);
    assert.deepEqual(
      [...testLedger.holds.values()].map(({ state }) => state),
      ["settled", "expired"],
    );
  });

  it("have room of their own for changes, a quarter of it for one balance, and none of calls", async () => {
    const testLedger = new TestLedger({ a: 100_000 });
    const gate = Promise.withResolvers<void>();
    await held(testLedger, "one");
    testLedger.at = () => gate.promise;
    const waiting = testLedger.spendAll(Array.from({ length: 25_000 }, () => calls("a", [1])[0]!));
    await setImmediate();
    const [refused] = await testLedger.spendAll(calls("a", [1]));
    assert(refused instanceof LedgerOverloaded);
    let rejected = 0;
    const changes = Array.from({ length: 2_501 }, () =>
      change(testLedger, "one", { kind: "release" }).catch((error: unknown) => {
        assert(error instanceof LedgerOverloaded);
        rejected++;
      }),
    );
    await setImmediate();
    assert.equal(rejected, 1);
    gate.resolve();
    const answers = (await Promise.all(changes)).filter((answer) => answer?.outcome === "changed");
    assert.equal(answers.length, 2_500);
    await waiting;
    assert.equal(testLedger.ledger.waiting, 0);
  });

  it("lets a batch change at most 256 of which no balance is locked", async () => {
    const testLedger = new TestLedger({});
    const names = Array.from({ length: 300 }, (_, i) => `gone${i}`);
    for (const name of names) await held(testLedger, name);
    const before = testLedger.claims.length;
    const answers = await Promise.all(names.map((name) => change(testLedger, name, { kind: "release" })));
    assert(answers.every(({ outcome }) => outcome === "changed"));
    assert.deepEqual(
      testLedger.claims.slice(before).filter((count) => count > 0),
      [256, 44],
    );
  });

  it("that expire and are settled in one batch were open before it", async () => {
    const testLedger = new TestLedger({ a: 10 });
    await held(testLedger, "one", { onExpiry: "charge" });
    testLedger.clock.advance(1_000);
    const [, late] = await Promise.all([
      change(testLedger, "one", { kind: "expire" }),
      change(testLedger, "one", settleAction(3)),
    ]);
    assert(late.outcome === "changed");
    assert.deepEqual([late.charged, late.former], [3, { state: "open", charged: 0 }]);
  });

  it("do not keep a call waiting that lacks them, when a frozen node has locked one of their balances", async () => {
    const testLedger = new TestLedger({ a: 5, b: 5 });
    await held(testLedger, "one", { balances: ["a", "b"] });
    testLedger.clock.advance(1_000);
    testLedger.locks.tryLock("b");
    const call = testLedger.spendAll(calls("a", [1]));
    for (let i = 0; i < 50; i++) {
      await setImmediate();
      testLedger.clock.advance(10);
    }
    testLedger.locks.unlock("b");
    assert.deepEqual(await call, [{ ...insufficient(0), held: [5] }]);
  });

  it("give back no more than a balance can have", async () => {
    const testLedger = new TestLedger({ a: 1e15 });
    await held(testLedger, "one", { onExpiry: "charge", cost: 1e12 });
    testLedger.clock.advance(1_000);
    await change(testLedger, "one", { kind: "expire" });
    testLedger.balances.set("a", 1e15);
    const settled = await change(testLedger, "one", settleAction(0));
    assert.equal(settled.outcome, "changed");
    assert.equal(testLedger.balances.get("a"), 1e15);
  });

  it("of an unlimited balance, and of calls that lack credits, leave room for others", async () => {
    const testLedger = new TestLedger({ a: 5 });
    const outcomes = await Promise.all([
      held(testLedger, "one", { balances: ["unlimited"], cost: 1e15 }),
      held(testLedger, "two", { balances: ["unlimited"], cost: 1e15 }),
      held(testLedger, "three", { cost: 1e15 }),
      held(testLedger, "four", { cost: 5 }),
    ]);
    assert.deepEqual(
      outcomes.map(({ outcome }) => outcome),
      ["spent", "spent", "insufficient", "spent"],
    );
  });

  it("never have more than 10^15 credits of a balance", async () => {
    const testLedger = new TestLedger({ a: 0 });
    testLedger.watched.add("a");
    await held(testLedger, "one", { cost: 1e15 });
    await assert.rejects(held(testLedger, "two", { cost: 1 }), /too many credits/);
    assert.equal(testLedger.held.get("a")?.held, 1e15);
  });

  interface Step {
    turn: number;
    /** Which node makes the call. */
    node: number;
    kind: "hold" | "settle" | "release" | "extend" | "expire" | "spend";
    which: number;
    balances: string[];
    amount: number;
  }
  const step: fc.Arbitrary<Step> = fc.record({
    turn: fc.nat(40),
    node: fc.nat(1),
    kind: fc.constantFrom("hold", "hold", "settle", "settle", "release", "extend", "expire", "spend"),
    which: fc.nat(3),
    balances: fc.subarray(["a", "b", "watched"], { minLength: 1 }),
    amount: fc.nat(8),
  });
  const freeze = fc.record({ id: fc.constantFrom("a", "b"), turn: fc.nat(30), length: fc.constantFrom(5, 2_000) });

  it("at two nodes, with a third one that freezes, are closed once and no credit is lost", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 60 }),
        fc.array(freeze, { maxLength: 3 }),
        async (steps, freezes) => {
          const one = new TestLedger({ a: 30, b: 20, watched: 0 });
          one.watched.add("watched");
          const nodes = [one, new TestLedger(one)];
          const start = new Map(one.balances);
          /** What calls have spent of each balance. */
          const spentOf = new Map([...start.keys()].map((id) => [id, 0]));
          const closings = new Map<string, ChangeOutcome[]>();
          const running: Promise<unknown>[] = [];
          const run = ({ node, kind, which, balances, amount }: Step) => {
            const ledger = nodes[node]!;
            const holdId = `hold_${which}`;
            const existing = one.holds.get(holdId);
            if (kind === "spend") {
              return ledger.spendAll(callsOf(balances, [amount])).then(([outcome]) => {
                assert(outcome && !(outcome instanceof Error), String(outcome));
                if (outcome.outcome !== "spent") return;
                for (const id of balances) spentOf.set(id, spentOf.get(id)! + amount);
              });
            }
            if (kind === "hold") {
              if (existing || closings.has(holdId)) return Promise.resolve();
              closings.set(holdId, []);
              return held(ledger, holdId, { balances, cost: amount, ttl: 10 + which });
            }
            if (!existing) return Promise.resolve();
            const actions: Record<typeof kind, HoldAction> = {
              settle: settleAction(amount),
              release: { kind: "release" },
              extend: { kind: "extend", ttl: 15 },
              expire: { kind: "expire" },
            };
            const ids = existing.balances.map(({ id }) => id);
            return change(ledger, holdId, actions[kind], ids).then((outcome) => closings.get(holdId)?.push(outcome));
          };
          let isAnswered = false;
          for (let turn = 0; turn < 400 && !isAnswered; turn++) {
            for (const { id, length } of freezes.filter((freeze) => freeze.turn === turn)) {
              if (one.locks.tryLock(id)) one.clock.schedule(length, () => one.locks.unlock(id));
            }
            running.push(...steps.filter((step) => step.turn === turn).map(run));
            if (turn === 41) void Promise.all(running).then(() => (isAnswered = true));
            await setImmediate();
            one.clock.advance(turn < 40 ? 1 : 20);
          }
          assert(isAnswered, "some calls had no answer");
          one.clock.advance(100_000);
          const ended = one.expiredHolds([...start.keys()]).map(({ id, balances }) => {
            return change(one, id, { kind: "expire" }, balances);
          });
          await Promise.all(ended);
          for (const [id, before] of start) {
            const charged = [...one.holds.values()].map(({ lacks, charged, balances, ...hold }) => {
              if (!balances.some((balance) => balance.id === id)) return 0;
              const uncovered = Math.max(0, ...lacks.map(({ lack }) => lack));
              assert.notEqual(hold.state, "open");
              return charged + uncovered - (lacks.find(({ balanceId }) => balanceId === id)?.lack ?? 0);
            });
            const taken = charged.reduce((sum, amount) => sum + amount, spentOf.get(id)!);
            assert.equal(one.balances.get(id), before - taken, id);
            assert.equal(one.held.get(id)?.held ?? 0, 0);
          }
          for (const outcomes of closings.values()) {
            const settled = outcomes.filter(
              (one) => one.outcome === "changed" && one.state === "settled" && !one.isRepeated,
            );
            assert(settled.length <= 1, "a hold was settled twice");
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
