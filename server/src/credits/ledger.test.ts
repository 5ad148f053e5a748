import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { SimulatedClock } from "../clock/simulated.ts";
import { StoreUnavailable } from "../store/store.ts";
import { Ledger, LedgerFailed, LedgerOverloaded } from "./ledger.ts";
import type { BatchAnswers, BatchScopes, LedgerBatch, SettledBatch } from "./procedures.ts";
import type { SpendOutcome } from "./spend.ts";

/** What a call's limits will say when they are charged. */
interface Charges {
  readonly id: number;
  readonly says: "allowed" | "refused" | "broken";
  /** Whether they answer with a promise, as counters in Redis do. */
  readonly later?: boolean;
}
interface Limits {
  readonly allowed: boolean;
}
type Outcome = SpendOutcome<Limits>;

const workspaceId = "ws";

/** Row locks, granted in the order in which they were asked for. */
class Locks {
  readonly #held = new Set<string>();
  readonly #queues = new Map<string, (() => void)[]>();

  tryLock(id: string): boolean {
    if (this.#held.has(id)) return false;
    this.#held.add(id);
    return true;
  }

  /** False: it took longer than the timeout. */
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
    else this.#held.delete(id);
  }

  #queueOf(id: string): (() => void)[] {
    const queue = this.#queues.get(id) ?? [];
    this.#queues.set(id, queue);
    return queue;
  }
}

/** A ledger over balances in a map, which are locked like rows of a database, and kept all or nothing. */
class Books {
  readonly clock: SimulatedClock;
  readonly balances: Map<string, number>;
  readonly locks: Locks;
  /** Ids of calls whose limits were charged, in that order. */
  readonly charged: number[] = [];
  readonly batches: LedgerBatch[] = [];
  readonly ledger: Ledger<Charges, Limits>;
  /** Scopes that another node has claimed. */
  readonly claimedElsewhere = new Set<string>();
  /** Records of calls that were made before. */
  readonly records = new Map<string, { fingerprint: string; outcome: string }>();
  /** Runs in every batch: before its balances are locked, after it was settled, after it was kept. */
  at: (moment: "begun" | "settled" | "kept") => Promise<void> | void = () => {};

  /** Beside another one: a second node on the same balances. */
  constructor(balances: Record<string, number> | Books) {
    const beside = balances instanceof Books ? balances : undefined;
    this.clock = beside?.clock ?? new SimulatedClock(1_768_478_400_000);
    this.balances = beside?.balances ?? new Map(Object.entries(balances));
    this.locks = beside?.locks ?? new Locks();
    this.ledger = new Ledger({
      clock: this.clock,
      charge: (charges) => this.#charge(charges),
      transact: (batch, answer) => this.#transact(batch, answer),
    });
  }

  /** Spends one after the other without waiting in between. */
  async spendAll(calls: readonly Call[]): Promise<(Outcome | Error)[]> {
    const spent = calls.map(({ poolId, cost, says, later = false }, id) =>
      this.ledger
        .spend({ workspaceId, poolId, cost, charges: says === "unlimited" ? undefined : { id, says, later } })
        .catch((error: Error) => error),
    );
    return Promise.all(spent);
  }

  #charge({ id, says, later }: Charges): Limits | Promise<Limits> {
    this.charged.push(id);
    const answer = () => {
      if (says === "broken") throw new Error("The limiter is broken");
      return { allowed: says === "allowed" };
    };
    return later ? setImmediate().then(answer) : answer();
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
      const { scopes } = answer({ step: "choose", contended }) as BatchScopes;
      const balances = locked.map((poolId) => ({ poolId, remaining: this.balances.get(poolId)! }));
      const { spends, records } = (await answer({
        step: "settle",
        balances,
        recorded: this.records,
        claimedElsewhere: scopes.filter((scope) => this.claimedElsewhere.has(scope)),
        hasCapacity: true,
      })) as SettledBatch;
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
      await this.at("kept");
    } finally {
      for (const poolId of locked) this.locks.unlock(poolId);
    }
  }
}

interface Call {
  poolId: string;
  cost: number;
  says: Charges["says"] | "unlimited";
  later?: boolean;
}

const calls = (poolId: string, ...list: [cost: number, says?: Call["says"]][]): Call[] =>
  list.map(([cost, says = "unlimited"]) => ({ poolId, cost, says }));
const spent = (remaining: number | undefined, limits?: Limits): Outcome => ({ outcome: "spent", remaining, limits });
const limited = (remaining: number): Outcome => ({ outcome: "limited", remaining, limits: { allowed: false } });
const insufficient = (remaining: number): Outcome => ({ outcome: "insufficient", remaining });

describe("a batch of the ledger", () => {
  it("is decided in the order of arrival, each call told the balance it left", async () => {
    const books = new Books({ a: 10 });
    assert.deepEqual(await books.spendAll(calls("a", [4], [0], [5], [3], [1], [0])), [
      spent(6),
      spent(6),
      spent(1),
      insufficient(0),
      spent(0),
      spent(0),
    ]);
    assert.equal(books.balances.get("a"), 0);
    assert.equal(books.batches.length, 1);
  });

  it("locks its balances each once", async () => {
    const books = new Books({ a: 1, b: 1, c: 1 });
    await books.spendAll(["c", "a", "b", "a", "c"].flatMap((poolId) => calls(poolId, [0])));
    assert.deepEqual(books.batches[0]!.poolIds, ["c", "a", "b"]);
  });

  it("gives what a limit refused to the next that lacked it", async () => {
    const books = new Books({ a: 5 });
    const outcomes = await books.spendAll(calls("a", [5, "refused"], [5, "allowed"], [5, "allowed"]));
    assert.deepEqual(outcomes, [limited(5), spent(0, { allowed: true }), insufficient(0)]);
    assert.deepEqual(books.charged, [0, 1], "who lacks credits meets no limit");
    assert.equal(books.balances.get("a"), 0);
  });

  it("takes nothing for a call whose limits could not be decided, and goes on", async () => {
    const books = new Books({ a: 5 });
    const [broken, next] = await books.spendAll(calls("a", [5, "broken"], [5, "allowed"]));
    assert(broken instanceof Error && !("outcome" in broken));
    assert.deepEqual(next, spent(0, { allowed: true }));
    assert.equal(books.balances.get("a"), 0);
  });

  it("asks nothing of a pool that has become unlimited, but its limits", async () => {
    const books = new Books({});
    const outcomes = await books.spendAll(calls("a", [1e12], [1, "refused"]));
    assert.deepEqual(outcomes, [
      spent(undefined),
      { outcome: "limited", remaining: undefined, limits: { allowed: false } },
    ]);
  });

  it("begins when the one before has been answered, with everything that came meanwhile", async () => {
    const books = new Books({ a: 1_000 });
    const gate = Promise.withResolvers<void>();
    books.at = (moment) => (moment === "kept" && books.batches.length === 1 ? gate.promise : undefined);
    const first = books.spendAll(calls("a", [1]));
    await setImmediate();
    const others = books.spendAll(Array.from({ length: 500 }, () => calls("a", [1])[0]!));
    await setImmediate();
    assert.equal(books.batches.length, 1);
    assert.equal(books.ledger.waiting, 500);
    gate.resolve();
    await Promise.all([first, others]);
    assert.equal(books.batches.length, 2);
    assert.deepEqual(books.ledger.counts, { batches: 2, calls: 501, credits: 501, failures: 0 });
  });

  it("fails as a whole, with 503 for whatever reason, and the next does not", async () => {
    for (const failure of [new Error("disk I/O error"), new StoreUnavailable("away")]) {
      const books = new Books({ a: 10, b: 10 });
      books.at = (moment) => {
        if (moment === "settled" && books.batches.length === 1) throw failure;
      };
      for (const outcome of await books.spendAll([...calls("a", [1], [20]), ...calls("b", [1])])) {
        assert(outcome instanceof StoreUnavailable);
        assert(outcome === failure || (outcome instanceof LedgerFailed && outcome.cause === failure));
      }
      assert.deepEqual([...books.balances.values()], [10, 10]);
      assert.deepEqual(await books.spendAll(calls("a", [1])), [spent(9)]);
      assert.equal(books.ledger.counts.failures, 1);
    }
  });

  it("is never settled twice: that would charge its limits again", async () => {
    const books = new Books({ a: 10 });
    const ledger = new Ledger<Charges, Limits>({
      clock: books.clock,
      charge: ({ id }) => {
        books.charged.push(id);
        return { allowed: true };
      },
      async transact(_, answer) {
        const balances = [{ poolId: "a", remaining: 10 }];
        const held = { balances, recorded: new Map(), claimedElsewhere: [], hasCapacity: true };
        answer({ step: "choose", contended: [] });
        await answer({ step: "settle", ...held });
        await answer({ step: "settle", ...held });
      },
    });
    await assert.rejects(
      ledger.spend({ workspaceId, poolId: "a", cost: 1, charges: { id: 1, says: "allowed" } }),
      LedgerFailed,
    );
    assert.deepEqual(books.charged, [1]);
  });
});

describe("a batch that does not end", () => {
  it("sends those behind it away after 5 s, and tells its own calls in the end", async () => {
    const books = new Books({ a: 10 });
    const gate = Promise.withResolvers<void>();
    books.at = (moment) => (moment === "settled" ? gate.promise : undefined);
    const first = books.spendAll(calls("a", [1]));
    await setImmediate();
    books.clock.advance(3_000);
    const early = books.spendAll(calls("a", [1], [1]));
    books.clock.advance(4_000);
    const late = books.spendAll(calls("a", [1]));
    await setImmediate();
    assert.equal(books.ledger.waiting, 3);
    // The chore that looks is done each second, and each time begins the next.
    for (let second = 0; second < 3; second++) {
      books.clock.advance(1_000);
      await setImmediate();
    }
    assert.equal(books.ledger.waiting, 1);
    for (const outcome of await early) assert(outcome instanceof LedgerOverloaded);
    gate.resolve();
    assert.deepEqual(await first, [spent(9)]);
    assert.deepEqual(await late, [spent(8)]);
    assert.equal(books.balances.get("a"), 8);
  });

  it("has at most 100,000 calls behind it, half of them of one workspace, a quarter of one pool", async () => {
    const books = new Books({});
    const gate = Promise.withResolvers<void>();
    books.at = () => gate.promise;
    let refused = 0;
    const spend = async (workspaceId: string, poolId: string, count: number) => {
      for (let i = 0; i < count; i++) {
        const call = books.ledger.spend({ workspaceId, poolId: workspaceId + poolId, cost: 0, charges: undefined });
        call.catch((error: unknown) => {
          assert(error instanceof LedgerOverloaded);
          refused++;
        });
      }
      await setImmediate();
    };
    await spend("one", "a", 25_001);
    assert.equal(refused, 1);
    await spend("one", "b", 25_001);
    assert.equal(refused, 2);
    await spend("one", "c", 1);
    assert.equal(refused, 3);
    for (const poolId of ["a", "b"]) await spend("other", poolId, 25_000);
    assert.equal(refused, 3);
    assert.equal(books.ledger.waiting, 100_000);
    await spend("third", "a", 1);
    assert.equal(refused, 4);
    gate.resolve();
    while (books.ledger.waiting > 0) await setImmediate();
    assert.equal(refused, 4);
  });
});

describe("a pool whose lock another transaction has", () => {
  const names = Array.from({ length: 12 }, (_, i) => `pool${i}`);
  const rich = () => new Books(Object.fromEntries([...names, "free"].map((name) => [name, 100])));
  /** Lets everything run that needs no time to pass. */
  const settle = async () => {
    for (let i = 0; i < 20; i++) await setImmediate();
  };

  it("delays no call of another pool, and its own calls until the lock is there", async () => {
    const books = rich();
    books.locks.tryLock("pool0");
    const delayed = books.spendAll(calls("pool0", [1], [1]));
    assert.deepEqual(await books.spendAll(calls("free", [1])), [spent(99)]);
    await settle();
    const later = books.spendAll(calls("pool0", [1]));
    await settle();
    assert.equal(books.ledger.waiting, 3);
    assert.equal(books.batches.filter(({ lockTimeout }) => lockTimeout !== undefined).length, 1);
    books.locks.unlock("pool0");
    assert.deepEqual(await delayed, [spent(99), spent(98)]);
    // What came meanwhile goes along.
    assert.deepEqual(await later, [spent(97)]);
    assert.equal(books.batches.filter(({ lockTimeout }) => lockTimeout !== undefined).length, 1);
  });

  it("has at most four transactions that wait for such locks, and the other pools are tried again", async () => {
    const books = rich();
    for (const name of names) books.locks.tryLock(name);
    const delayed = names.map((name) => books.spendAll(calls(name, [1])));
    await settle();
    assert.equal(books.batches.filter(({ lockTimeout }) => lockTimeout !== undefined).length, 4);
    for (let i = 0; i < 10; i++) {
      books.clock.advance(50);
      await settle();
      assert.deepEqual(await books.spendAll(calls("free", [1])), [spent(99 - i)]);
    }
    for (const name of names) books.locks.unlock(name);
    await settle();
    books.clock.advance(50);
    for (const outcomes of delayed) assert.deepEqual(await outcomes, [spent(99)]);
    const waited = books.batches.filter(({ lockTimeout }) => lockTimeout !== undefined);
    assert(waited.every(({ lockTimeout, poolIds }) => lockTimeout === 3_000 && poolIds.length === 1));
  });

  it("and keeps it: its calls are sent away after 5 s, others are not delayed, and nothing is charged", async () => {
    const books = rich();
    for (const name of names) books.locks.tryLock(name);
    const delayed = names.map((name) => books.spendAll(calls(name, [1, "allowed"])));
    for (let passed = 0; passed < 7_000; passed += 500) {
      await settle();
      books.clock.advance(500);
      assert.equal((await books.spendAll(calls("free", [1])))[0] instanceof Error, false);
    }
    for (const outcomes of delayed) assert((await outcomes)[0] instanceof LedgerOverloaded);
    assert.deepEqual(books.charged, []);
    for (const name of names) books.locks.unlock(name);
    books.clock.advance(50);
    await settle();
    assert.deepEqual(await books.spendAll(calls("pool3", [1])), [spent(99)]);
    assert.equal(books.ledger.waiting, 0);
  });

  it("is shared by two nodes that both spend all the time, each of which makes progress", async () => {
    const one = new Books({ hot: 1_000_000 });
    const other = new Books(one);
    const done = [0, 0];
    let isOver = false;
    for (const books of [one, other]) books.at = () => setImmediate();
    const spender = async (books: Books, node: number) => {
      while (!isOver) {
        assert.equal((await books.spendAll(calls("hot", [1])))[0] instanceof Error, false);
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
  const spend = (books: Books, isCurrent: () => boolean, cost = 1, charges?: Charges) =>
    books.ledger.spend({ workspaceId, poolId: "a", cost, charges, isCurrent });

  it("when its balance is locked is not charged, neither its limits", async () => {
    const books = new Books({ a: 1 });
    const outcomes = [spend(books, () => false, 1, { id: 7, says: "allowed" }), spend(books, () => true)];
    assert.deepEqual(await Promise.all(outcomes), [{ outcome: "outdated" }, spent(0)]);
    assert.deepEqual(books.charged, []);
  });

  it("after its limits were charged is not charged, and the next call gets its credits", async () => {
    const books = new Books({ a: 1 });
    let isCurrent = true;
    const outdated = spend(books, () => isCurrent, 1, { id: 7, says: "allowed", later: true });
    const next = spend(books, () => true);
    const last = books.ledger.spend({
      ...{ workspaceId, poolId: "b", cost: 0, charges: undefined },
      isCurrent() {
        isCurrent = false;
        return true;
      },
    });
    assert.deepEqual(await outdated, { outcome: "outdated" });
    assert.deepEqual(await next, spent(0));
    await last;
    assert.deepEqual(books.charged, [7]);
  });

  it("is not told that it lacks credits", async () => {
    const books = new Books({ a: 1 });
    assert.deepEqual(await spend(books, () => false, 5), { outcome: "outdated" });
  });
});

describe("calls with an Idempotency-Key", () => {
  const spend = (books: Books, scope: string, { poolId = "a", fingerprint = "f", cost = 1, id = 0 } = {}) =>
    books.ledger.spend({
      ...{ workspaceId, poolId, cost, charges: { id, says: "allowed" as const } },
      idempotent: { scope, fingerprint, keyId: null, outcome: ({ remaining }) => `left ${remaining}` },
    });

  it("that another node has under way are told so, and nobody else is delayed", async () => {
    const books = new Books({ a: 5, b: 5 });
    books.claimedElsewhere.add("taken");
    const outcomes = [spend(books, "taken"), spend(books, "other", { poolId: "b" }), spend(books, "third")];
    assert.deepEqual(
      (await Promise.all(outcomes)).map(({ outcome }) => outcome),
      ["running", "spent", "spent"],
    );
    assert.equal(books.batches.length, 1);
    assert.equal(books.charged.length, 2);
  });

  it("are charged once, and those that repeat them are answered together", async () => {
    const books = new Books({ a: 50 });
    const same = Array.from({ length: 2_000 }, () => spend(books, "once"));
    const other = spend(books, "once", { fingerprint: "g" });
    assert.deepEqual(await same[0], spent(49, { allowed: true }));
    for (const call of same.slice(1)) assert.deepEqual(await call, { outcome: "repeated", before: "left 49" });
    assert.deepEqual(await other, { outcome: "mismatched" });
    assert.equal(books.batches.length, 1);
    assert.deepEqual(await spend(books, "once"), { outcome: "repeated", before: "left 49" });
  });

  it("are decided one after the other while they are refused", async () => {
    const books = new Books({ a: 5 });
    const outcomes = await Promise.all([9, 9, 4, 4].map((cost) => spend(books, "once", { cost })));
    assert.deepEqual(
      outcomes.map(({ outcome }) => outcome),
      ["insufficient", "insufficient", "spent", "repeated"],
    );
  });

  it("go at most 256 to a batch", async () => {
    const books = new Books({ a: 10_000, b: 10_000 });
    const poolId = (i: number) => (i % 2 === 0 ? "a" : "b");
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => spend(books, `scope${i}`, { poolId: poolId(i) })));
    assert.equal(books.batches.length, 4);
  });
});

describe("a crowd on one pool that its limit refuses", () => {
  it("takes time in proportion to its size", async () => {
    const refused = (count: number) => Array.from({ length: count }, () => calls("a", [1, "refused"])[0]!);
    const took = async (count: number) => {
      const books = new Books({ a: 1 });
      const before = process.threadCpuUsage();
      const outcomes = await books.spendAll(refused(count));
      const { user } = process.threadCpuUsage(before);
      for (const outcome of outcomes) assert.deepEqual(outcome, limited(1));
      assert.equal(books.charged.length, count);
      return user / 1_000;
    };
    await took(1_000);
    const [small, large] = [await took(2_000), await took(20_000)];
    // Ten times as many; a hundred times as long if each looked at all others.
    assert(large < 40 * small + 200, `2,000 took ${small} ms, 20,000 took ${large} ms`);
  });
});

describe("whatever arrives", () => {
  const call = fc.record({
    poolId: fc.constantFrom("a", "b", "c", "unlimited"),
    cost: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 30 })),
    says: fc.oneof(
      { arbitrary: fc.constantFrom("allowed" as const, "unlimited" as const), weight: 3 },
      { arbitrary: fc.constantFrom("refused" as const, "broken" as const), weight: 1 },
    ),
    later: fc.boolean(),
  });
  const balances = fc.record({ a: fc.nat(30), b: fc.nat(30), c: fc.constant(1e15) });
  /** Calls that arrive together, some of them while others are being written. */
  const waves = fc.array(fc.array(call, { maxLength: 12 }), { minLength: 1, maxLength: 4 });

  /** Plays waves on books and gives every call with its outcome, in the order of arrival. */
  async function play(start: Record<string, number>, waves: Call[][]) {
    const books = new Books(start);
    const outcomes: Promise<(Outcome | Error)[]>[] = [];
    for (const wave of waves) {
      outcomes.push(books.spendAll(wave));
      await setImmediate();
    }
    const settled = (await Promise.all(outcomes)).flat();
    return { books, calls: waves.flat().map((call, i) => ({ ...call, outcome: settled[i]! })) };
  }

  const taken = (calls: { cost: number; outcome: Outcome | Error }[]) =>
    calls.reduce((sum, { cost, outcome }) => sum + ("outcome" in outcome && outcome.outcome === "spent" ? cost : 0), 0);

  it("what was granted is what was taken, and never more than there was", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const { books, calls } = await play(start, waves);
        for (const [poolId, before] of Object.entries(start)) {
          const ofPool = calls.filter((call) => call.poolId === poolId);
          assert.equal(books.balances.get(poolId), before - taken(ofPool));
          assert(books.balances.get(poolId)! >= 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("every outcome is what the call's limits and the balance say", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const { calls } = await play(start, waves);
        for (const { poolId, cost, says, outcome } of calls) {
          if (outcome instanceof Error) {
            assert.equal(says, "broken");
            continue;
          }
          if (outcome.outcome === "insufficient") assert(outcome.remaining < cost);
          if (outcome.outcome === "limited") assert.equal(says, "refused");
          if (outcome.outcome === "spent") assert(says === "allowed" || says === "unlimited");
          if (poolId === "unlimited") assert.notEqual(outcome.outcome, "insufficient");
        }
      }),
      { numRuns: 300 },
    );
  });

  it("who is refused for want of credits had, in the end, less than he asked for and charged no limit", async () => {
    await fc.assert(
      fc.asyncProperty(balances, fc.array(call, { maxLength: 20 }), async (start, wave) => {
        const { books, calls } = await play(start, [wave]);
        calls.forEach(({ poolId, cost, outcome }, id) => {
          if (outcome instanceof Error || outcome.outcome !== "insufficient") return;
          assert.equal(outcome.remaining, books.balances.get(poolId));
          assert(books.balances.get(poolId)! < cost);
          assert(!books.charged.includes(id));
        });
      }),
      { numRuns: 300 },
    );
  });

  it("where no limit refuses, it is as if the calls came one by one", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, async (start, waves) => {
        const willing = waves.map((wave) =>
          wave.map((call) => ({ ...call, says: call.says === "allowed" ? call.says : ("unlimited" as const) })),
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

  it("of two calls that ask for the same, the earlier one is not refused for want of what the later one got", async () => {
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

  /** Locks of a third node: which pool, when it takes the lock and for how long it keeps it, 2 s when it is frozen. */
  const rivals = fc.array(
    fc.record({
      poolId: fc.constantFrom("a", "b", "c"),
      afterTurns: fc.nat(30),
      keeps: fc.oneof(fc.nat(20), fc.constant(2_000)),
    }),
    { maxLength: 6 },
  );

  it("at two nodes, beside locks of a third one that may be frozen: the books are exact and everything is answered", async () => {
    await fc.assert(
      fc.asyncProperty(balances, waves, waves, rivals, async (start, ofOne, ofOther, rivals) => {
        const one = new Books(start);
        const other = new Books(one);
        const outcomes: Promise<(Outcome | Error)[]>[] = [];
        let isAnswered = false;
        for (let turn = 0; turn < 2_000 && !isAnswered; turn++) {
          for (const { poolId, keeps } of rivals.filter(({ afterTurns }) => afterTurns === turn)) {
            if (one.locks.tryLock(poolId)) one.clock.schedule(keeps, () => one.locks.unlock(poolId));
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
        for (const { says, outcome } of calls) {
          // A frozen lock is gone after 2 s, so no call waits for as long as it may.
          if (outcome instanceof Error) assert(says === "broken", outcome.stack);
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
