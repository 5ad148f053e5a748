import assert from "node:assert/strict";
import fc from "fast-check";
import { seededRandom } from "../random/seeded.ts";
import { LIMIT_MAX } from "../rules/window.ts";
import type { Counters } from "./counters.ts";
import { type Lease, type LeasedLimit, Leases } from "./leases.ts";
import type { Lender } from "./lender.ts";

/** What the model plays on. */
export interface LeaseWorld {
  readonly counters: Counters;
  readonly lender: Lender;
  now(): number;
  advance(length: number): void;
  /** Ends the process as kill -9 does, and starts another one. Charges from before `save` survive. */
  kill?(): Promise<void>;
  save?(): Promise<void>;
  /** Loses all counts. Windows from before count as full then. */
  lose?(): Promise<void>;
  close(): void | Promise<void>;
}

/** What the runs of a model did. */
export interface LeaseSteps {
  steps: number;
  direct: number;
  granted: number;
  spent: number;
  returns: number;
  found: number;
  /** Comparisons with the model. */
  compared: number;
}

/** Something that was admitted, or that may be. */
interface Entry {
  readonly limit: LeasedLimit;
  readonly at: number;
  admitted: number;
  /** What the counters should have of it. */
  counted: number;
  readonly lease?: Lease;
  readonly expiresAt: number;
  /** Whether its edge has ended it. */
  isEnded: boolean;
  /** Whether home has taken it back. */
  isReturned: boolean;
}

const short: LeasedLimit = { counter: "key\0pool\0short", limit: 200, duration: 10_000, owner: "ws" };
const long: LeasedLimit = { counter: "key\0pool\0long", limit: 1_000, duration: 60_000, owner: "ws" };
const limits = [short, long];

/** Of 100 steps, up to which one they do this. The others lose all counts. */
const actions = [
  [15, "direct"],
  [40, "grant"],
  [65, "spend"],
  [85, "return"],
  [94, "forge"],
  [98, "kill"],
] as const;

const step = fc.record({
  action: fc.nat(99).map((n) => actions.find(([share]) => n < share)?.[1] ?? "lose"),
  pass: fc
    .nat(99)
    .chain((n) => (n < 50 ? fc.nat(100) : n < 90 ? fc.nat(2_000) : n < 98 ? fc.nat(12_000) : fc.nat(70_000))),
  limit: fc.constantFrom(...limits),
  want: fc.oneof(fc.nat(30), fc.nat(2_000)),
  cost: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 400 })),
  chosen: fc.nat(50),
  isRepeated: fc.boolean(),
});

/**
 * Plays edges that spend what they lease, and return it once, twice, late, never, or to another limit, beside direct calls. The
 * windows roll over; the process ends, and counts are lost, where the world can do that.
 *
 * It holds: what was admitted is at each admission within the sliding window of the limit, with each spend counted at the
 * instant of its grant. What is leased or lost within the window is never more than a tenth. The counters have at least what
 * was admitted, and at most what was leased besides.
 */
export async function assertLeases(open: () => LeaseWorld | Promise<LeaseWorld>, runs: number): Promise<LeaseSteps> {
  const done: LeaseSteps = { steps: 0, direct: 0, granted: 0, spent: 0, returns: 0, found: 0, compared: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 100, size: "max" }), async (steps) => {
      const world = await open();
      try {
        await play(world, steps, done);
      } finally {
        await world.close();
      }
    }),
    { numRuns: runs, seed: 36 },
  );
  return done;
}

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function play(world: LeaseWorld, steps: readonly Step[], done: LeaseSteps): Promise<void> {
  const leases = () => new Leases(world.lender, random);
  const random = seededRandom(steps.length + (steps[0]?.chosen ?? 0));
  const entries: Entry[] = [];
  let isLost = false;
  const grant = async (limit: LeasedLimit, want: number) => {
    const lease = await leases().grant(limit, want);
    if (lease === null) return;
    done.granted++;
    const at = world.now();
    const { amount, expiresIn } = lease;
    assert(amount <= want && expiresIn > 0 && expiresIn <= 10_000);
    assert.equal(lease.reset, (Math.floor(at / limit.duration) + 1) * limit.duration);
    entries.push({
      limit,
      at,
      admitted: 0,
      counted: amount,
      lease,
      expiresAt: at + expiresIn,
      isEnded: false,
      isReturned: false,
    });
    done.compared++;
    const out = usedAt(entries, limit, at, ({ lease, isReturned, counted }) => (lease && !isReturned ? counted : 0));
    assert(out <= limit.limit / 10, `${out} of ${limit.limit} are leased or lost`);
  };
  for (const { action, pass, limit, want, cost, chosen, isRepeated } of steps) {
    done.steps++;
    world.advance(pass);
    const open = entries.filter(({ lease }) => lease !== undefined);
    const entry = open[open.length - 1 - (chosen % Math.max(1, open.length))];
    if (action === "direct") {
      const result = await world.counters.charge([{ ...limit, cost }]);
      assert(result.outcome === "decided");
      if (result.allowed) {
        done.direct += cost;
        const at = world.now();
        entries.push({ limit, at, admitted: cost, counted: cost, expiresAt: 0, isEnded: true, isReturned: false });
      }
    } else if (action === "grant") await grant(limit, want);
    else if (action === "spend" && entry?.lease && !entry.isEnded && world.now() < entry.expiresAt) {
      const spent = Math.min(cost, entry.lease.amount - entry.admitted);
      entry.admitted += spent;
      done.spent += spent;
    } else if (action === "return" && entry?.lease) {
      entry.isEnded = true;
      for (let times = isRepeated ? 2 : 1; times > 0; times--) {
        done.returns++;
        const wasFound = await leases().takeBack(entry.limit, entry.lease.id, entry.admitted);
        assert(!(wasFound && entry.isReturned), "a lease came back twice");
        if (!wasFound) continue;
        done.found++;
        entry.isReturned = true;
        // In a window that has ended, nothing is corrected, and nothing counts.
        entry.counted = entry.admitted;
      }
    } else if (action === "forge" && entry?.lease) {
      const other = entry.limit === short ? long : short;
      const spent = chosen % 2 === 0 ? 0 : LIMIT_MAX;
      const isTaken =
        chosen % 3 === 0
          ? await leases().takeBack({ ...entry.limit, duration: entry.limit.duration + 1 }, entry.lease.id, spent)
          : await leases().takeBack(other, entry.lease.id, spent);
      assert(!isTaken, "a lease came back to another limit");
    } else if (action === "kill" && world.kill && world.save) {
      // What direct calls charged in the last second may be lost. A grant may not.
      await world.save();
      await grant(limit, want);
      await world.kill();
    } else if (action === "lose" && world.lose) {
      await world.lose();
      isLost = true;
    }
    for (const one of limits) {
      const looked = await world.counters.peek([{ ...one, limit: LIMIT_MAX, cost: 0 }]);
      assert(looked.outcome === "decided");
      const used = LIMIT_MAX - (looked.limits[0]?.remaining ?? Number.NaN);
      const least = usedAt(entries, one, world.now(), ({ admitted }) => admitted);
      const most = isLost ? LIMIT_MAX : usedAt(entries, one, world.now(), ({ counted }) => counted);
      done.compared++;
      assert(least <= used && used <= most, `${used} are used, not ${least} to ${most}`);
    }
  }
  for (const [i, { limit, at, admitted }] of entries.entries()) {
    if (admitted === 0) continue;
    done.compared++;
    const used = usedAt(entries.slice(0, i + 1), limit, at, (one) => one.admitted);
    assert(used <= limit.limit, `${used} of ${limit.limit} were admitted`);
  }
}

/** The sliding window, from all that was charged. */
function usedAt(
  entries: readonly Entry[],
  limit: LeasedLimit,
  now: number,
  amountOf: (entry: Entry) => number,
): number {
  const { duration } = limit;
  const index = Math.floor(now / duration);
  let [current, previous] = [0, 0];
  for (const entry of entries) {
    if (entry.limit !== limit) continue;
    const ago = index - Math.floor(entry.at / duration);
    if (ago === 0) current += amountOf(entry);
    else if (ago === 1) previous += amountOf(entry);
  }
  return current + Math.floor((previous * ((index + 1) * duration - now)) / duration);
}
