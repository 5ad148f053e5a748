import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LackingCalls } from "./lacking-calls.ts";
import { LockedBalance, type LockedCall } from "./locked-balance.ts";

/** A call that takes its cost of each of its balances. */
interface LackingCall extends LockedCall {
  readonly cost: number;
}

describe("calls that lack credits", () => {
  const names = ["a", "b", "c", "root"] as const;
  const call = fc.record({
    cost: fc.integer({ min: 1, max: 5 }),
    /** What the root must have besides, as slots above a limit. */
    unused: fc.nat(3),
    names: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }),
  });
  const event = fc.record({ name: fc.constantFrom(...names), credits: fc.integer({ min: 1, max: 8 }) });

  /** Balances without credits, and the calls that lack them. */
  function open(calls: readonly { cost: number; unused?: number; names: readonly string[] }[]) {
    const balances = new Map(names.map((id) => [id as string, new LockedBalance(id, { id, remaining: 0 })]));
    const lacking = new LackingCalls<LackingCall>();
    const made = calls.map(({ cost, unused = 0, names }) => ({
      cost,
      locked: names.map((name) => balances.get(name)!),
      needOf: ({ id }: LockedBalance) => (id === "root" ? cost + unused : cost),
    }));
    for (const one of made) lacking.push(one, one.locked[0]!);
    return { balances, lacking, calls: made };
  }

  function reserve({ cost, locked }: LackingCall): void {
    for (const balance of locked) balance.free -= cost;
  }

  it("are taken in the order of arrival, each when all its balances cover it", () => {
    fc.assert(
      fc.property(fc.array(call, { maxLength: 60 }), fc.array(event, { maxLength: 60 }), (list, events) => {
        const { balances, lacking, calls } = open(list);
        lacking.moves = Infinity;
        const left = new Set(calls);
        for (const { name, credits } of events) {
          const balance = balances.get(name)!;
          balance.free += credits;
          for (;;) {
            const taken = lacking.take(balance);
            const expected = [...left].find((one) =>
              one.locked.every((balance) => balance.covers(one.needOf(balance))),
            );
            assert.equal(taken, expected);
            if (!taken) break;
            left.delete(taken);
            reserve(taken);
          }
        }
        assert.deepEqual(lacking.rest(), { lacking: [...left], untried: [] });
      }),
      { numRuns: 2_000 },
    );
  });

  it("that may not move any more stay where they are, to be tried again", () => {
    const { balances, lacking } = open(Array.from({ length: 100 }, () => ({ cost: 1, names: ["root", "b"] })));
    const root = balances.get("root")!;
    root.free = 5;
    lacking.moves = 3;
    assert.equal(lacking.take(root), undefined);
    assert.equal(lacking.moves, 0);
    const { lacking: refused, untried } = lacking.rest();
    assert.deepEqual([refused.length, untried.length], [3, 97]);
  });

  it("are refused only if a balance does not cover them, also where not all could be tried", () => {
    fc.assert(
      fc.property(fc.array(call), fc.array(event), fc.nat(3), (list, events, moves) => {
        const { balances, lacking, calls } = open(list);
        let count = 0;
        for (const { name, credits } of events) {
          const balance = balances.get(name)!;
          balance.free += credits;
          lacking.moves = moves;
          for (let taken = lacking.take(balance); taken; taken = lacking.take(balance)) {
            count++;
            reserve(taken);
          }
        }
        for (const { free } of balances.values()) assert(free >= 0);
        const rest = lacking.rest();
        assert.equal(rest.lacking.length + rest.untried.length + count, calls.length);
        for (const one of rest.lacking) assert(one.locked.some((balance) => !balance.covers(one.needOf(balance))));
      }),
      { numRuns: 1_000 },
    );
  });
});
