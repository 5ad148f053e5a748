import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import type { HoldChange } from "../../../../engine/src/credits/hold.ts";
import { Overloaded } from "../../../../engine/src/errors/overloaded.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { HoldSearch } from "./statements.ts";
import { HoldSweep, type HoldSweepOptions } from "./sweep.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const START = 1_768_478_400_000;

/** A sweep beside a store with these open holds, whose ids sort as numbers of the same length do. */
function sweeping(count: number) {
  const clock = new SimulatedClock(START);
  const open = new Map<string, number>();
  const add = (id: string, expiresAt: number) => open.set(id, expiresAt);
  for (let i = 0; i < count; i++) add(String(i).padStart(6, "0"), START - MINUTE + i);
  const read: string[][] = [];
  const reported: unknown[] = [];
  const failures = new Map<string, Error>();
  const store = {
    isEmbedded: true,
    transact: async () => ({ name: "holds", holder: "a", token: 1 }),
    async read(_: string, { after, now, limit }: HoldSearch) {
      const holds = [...open]
        .map(([id, expires_at]) => ({ id, expires_at, workspace_id: "ws", balances: "[]" }))
        .filter(({ id, expires_at }) =>
          expires_at === after.expiresAt ? id > after.id : expires_at > after.expiresAt && expires_at <= now,
        )
        .slice(0, limit);
      const last = holds.at(-1);
      read.push(holds.map(({ id }) => id));
      const end = last && holds.length === limit ? { expiresAt: last.expires_at, id: last.id } : null;
      return { holds, end, at: now };
    },
  } as unknown as HoldSweepOptions["store"];
  const sweep = new HoldSweep({
    store,
    clock,
    holder: "a",
    formerHolders: [],
    ledger: {
      async change({ holdId }: HoldChange) {
        const failure = failures.get(holdId);
        if (failure) throw failure;
        open.delete(holdId);
        return { outcome: "gone" };
      },
    },
    events: { holdSweepFailed: (error) => reported.push(error) },
  });
  return {
    ...{ add, clock, failures, open, read, reported, sweep },
    /** Lets one pass begin and end. */
    async pass(after = SECOND) {
      clock.advance(after);
      for (let turn = 0; turn < 100; turn++) {
        await setImmediate();
        clock.advance(0);
      }
    },
  };
}

describe("the sweep of holds", () => {
  it("goes on behind holds that cannot be expired, and tries them again in the next pass", async () => {
    const { failures, open, pass, reported, sweep } = sweeping(450);
    const unexpected = new Error("unexpected");
    failures.set("000000", new StoreUnavailable("unreachable"));
    failures.set("000001", new Overloaded("full"));
    failures.set("000300", unexpected);
    await pass();
    assert.deepEqual([...open.keys()], ["000000", "000001", "000300"]);
    assert.deepEqual(reported, [unexpected]);
    failures.delete("000001");
    await pass();
    assert.deepEqual([...open.keys()], ["000000", "000300"]);
    failures.clear();
    await pass();
    assert.deepEqual([...open.keys()], []);
    await sweep.stop();
  });

  it("continues from the place of the last step", async () => {
    const { failures, pass, read, sweep } = sweeping(500);
    failures.set("000010", new Overloaded("full"));
    await pass();
    assert.deepEqual(
      read.map((ids) => [ids.length, ids[0]]),
      [
        [200, "000000"],
        [200, "000200"],
        [100, "000400"],
      ],
    );
    read.length = 0;
    await pass();
    assert.deepEqual(read, [[]]);
    await sweep.stop();
  });

  it("finds what became visible late within an hour", async () => {
    const { add, open, pass, sweep } = sweeping(0);
    await pass();
    add("late", START - 10 * MINUTE);
    await pass();
    await pass(58 * MINUTE);
    assert.deepEqual([...open.keys()], ["late"]);
    await pass(2 * MINUTE);
    assert.deepEqual([...open.keys()], []);
    await sweep.stop();
  });

  it("begins again after a minute when more holds failed than it lists", async () => {
    const { failures, open, pass, sweep } = sweeping(1_300);
    for (const id of open.keys()) failures.set(id, new Overloaded("full"));
    await pass();
    failures.clear();
    await pass();
    assert.equal(open.size, 300);
    await pass(MINUTE);
    assert.equal(open.size, 0);
    await sweep.stop();
  });
});
