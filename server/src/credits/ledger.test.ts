import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { SimulatedClock } from "../clock/simulated.ts";
import { StoreUnavailable } from "../store/store.ts";
import { Ledger, LedgerFailed, LedgerOverloaded, type SpendOutcome } from "./ledger.ts";
import type { Held, LedgerBatch, Taken } from "./procedures.ts";

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

/** A ledger over balances in a map, which is held like rows of a database: one batch at a time, all or nothing. */
class Books {
  readonly clock = new SimulatedClock(1_768_478_400_000);
  readonly balances: Map<string, number>;
  /** Ids of calls whose limits were charged, in that order. */
  readonly charged: number[] = [];
  readonly batches: LedgerBatch[] = [];
  readonly ledger: Ledger<Charges, Limits>;
  /** Runs in every batch: before its balances are held, after it was settled, after it was kept. */
  at: (moment: "begun" | "settled" | "kept") => Promise<void> | void = () => {};

  constructor(balances: Record<string, number>) {
    this.balances = new Map(Object.entries(balances));
    this.ledger = new Ledger({
      clock: this.clock,
      charge: (charges) => this.#charge(charges),
      transact: (batch, settle) => this.#transact(batch, settle),
    });
  }

  /** Spends one after the other without waiting in between. */
  async spendAll(calls: readonly Call[]): Promise<(Outcome | Error)[]> {
    const spent = calls.map(({ poolId, cost, says, later = false }, id) =>
      this.ledger
        .spend({ poolId, cost, charges: says === "unlimited" ? undefined : { id, says, later } })
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

  async #transact(batch: LedgerBatch, settle: (held: Held) => Promise<Taken>): Promise<void> {
    this.batches.push(batch);
    await this.at("begun");
    const balances = batch.poolIds.flatMap((poolId) => {
      const remaining = this.balances.get(poolId);
      return remaining === undefined ? [] : [{ poolId, remaining }];
    });
    const { spends } = await settle({ balances, recorded: new Map(), hasRoom: true });
    await this.at("settled");
    for (const { poolId, amount } of spends) {
      const remaining = this.balances.get(poolId)! - amount;
      assert(amount > 0 && remaining >= 0, `${amount} of ${this.balances.get(poolId)}`);
      this.balances.set(poolId, remaining);
    }
    await this.at("kept");
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
  it("is decided in the order of arrival, each call told the balance it left (B3.6)", async () => {
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

  it("holds its balances in the order of their ids, each once", async () => {
    const books = new Books({ a: 1, b: 1, c: 1 });
    await books.spendAll(["c", "a", "b", "a", "c"].flatMap((poolId) => calls(poolId, [0])));
    assert.deepEqual(books.batches[0]!.poolIds, ["a", "b", "c"]);
  });

  it("gives what a limit refused to the next that lacked it (A2.21)", async () => {
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

  it("asks nothing of a pool that has become unlimited, but its limits (B3.6)", async () => {
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

  it("fails as a whole, with 503 for whatever reason, and the next does not (A2.4, A2.19)", async () => {
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
      async transact(_, settle) {
        const held = { balances: [{ poolId: "a", remaining: 10 }], recorded: new Map(), hasRoom: true };
        await settle(held);
        await settle(held);
      },
    });
    await assert.rejects(ledger.spend({ poolId: "a", cost: 1, charges: { id: 1, says: "allowed" } }), LedgerFailed);
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

  it("has at most 100,000 calls behind it", async () => {
    const books = new Books({ a: 10 });
    const gate = Promise.withResolvers<void>();
    books.at = () => gate.promise;
    const waiting = Array.from({ length: 100_000 }, () =>
      books.ledger.spend({ poolId: "a", cost: 0, charges: undefined }),
    );
    await assert.rejects(books.ledger.spend({ poolId: "a", cost: 0, charges: undefined }), LedgerOverloaded);
    gate.resolve();
    await Promise.all(waiting);
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
});
