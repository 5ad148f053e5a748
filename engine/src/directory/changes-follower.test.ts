import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../clock/simulated.ts";
import { CHANGES_PER_READ, type Changes } from "./changes.ts";
import { ChangesFeed } from "./changes-feed.ts";
import { ChangesFollower } from "./changes-follower.ts";
import { Generations } from "./generations.ts";

const HOUR = 3_600_000;
const STALE_MAX = 60_000;

/** A follower with a simulated source of changes and a simulated clock. */
async function follow() {
  const clock = new SimulatedClock(1_768_478_400_000);
  const generations = new Generations();
  const rows: Changes["rows"] = [];
  const reachability: boolean[] = [];
  const source = {
    rows,
    reads: 0,
    lost: 0,
    isLost: false,
    /** Replaces the answer of the source; undefined: the source answers normally. */
    override: undefined as (() => Promise<Changes>) | undefined,
  };
  const read = async (cursor: string | undefined): Promise<Changes> => {
    source.reads++;
    if (source.override) return source.override();
    const end = String(rows.at(-1)?.sequence ?? 0);
    if (cursor === undefined || source.isLost) {
      const { isLost } = source;
      source.isLost = false;
      return { cursor: end, rows: [], hasMore: false, isLost, server: "", final: Number(end) };
    }
    const newer = rows.filter(({ sequence }) => sequence > Number(cursor)).slice(0, CHANGES_PER_READ);
    const hasMore = newer.length === CHANGES_PER_READ;
    const final = newer.at(-1)?.sequence ?? Number(cursor);
    return { cursor: String(final), rows: newer, hasMore, isLost: false, server: "", final };
  };
  const follower = new ChangesFollower({
    clock,
    generations,
    feed: new ChangesFeed(clock, "test"),
    read,
    staleMax: STALE_MAX,
    onReachability: (isReachable) => void reachability.push(isReachable),
    onLost: () => void source.lost++,
  });
  await follower.start();
  let sequence = 0;
  return {
    clock,
    follower,
    source,
    reachability,
    change: (...tags: string[]) => rows.push({ sequence: ++sequence, tags, workspaceId: null, nonce: "" }),
    async pass(length: number) {
      for (let left = length; left > 0; left -= 50) {
        clock.advance(Math.min(left, 50));
        for (let i = 0; i < 5; i++) await setImmediate();
      }
    },
    /** Whether a record read now under a tag is still valid after `action`. */
    async staysValid(tag: string, action: () => unknown): Promise<boolean> {
      const generation = generations.newest();
      await action();
      return generations.areUnchanged([generations.slot(tag)], generation);
    },
  };
}

describe("ChangesFollower", () => {
  for (const step of [-HOUR, HOUR, -1_500, 1_500]) {
    it(`misses nothing when the wall clock is set by ${step} ms`, async () => {
      const { clock, follower, change, pass, staysValid } = await follow();
      await pass(1_000);
      clock.step(step);
      const stayedValid = await staysValid("key_1", async () => {
        change("key_1");
        await pass(500);
      });
      assert.equal(stayedValid, false);
      assert.equal(follower.mayServe(clock.now(), clock.monotonic()), true);
      assert(follower.age() <= 500);
    });
  }

  it("reads before it serves when the machine was suspended", async () => {
    const { clock, follower, change, staysValid } = await follow();
    const stayedValid = await staysValid("key_1", async () => {
      change("key_1");
      clock.step(60_000);
      assert.equal(await follower.mayServe(clock.now(), clock.monotonic()), true);
    });
    assert.equal(stayedValid, false);
  });

  it("delays a call by at most 250 ms, then counts as cut off", async () => {
    const { clock, follower, source, reachability, pass } = await follow();
    source.override = () => new Promise(() => {});
    clock.step(60_000);
    const served = follower.mayServe(clock.now(), clock.monotonic());
    assert(served instanceof Promise);
    let waited = 0;
    void served.then(() => {
      waited = clock.monotonic();
    });
    await pass(300);
    assert.equal(await served, true);
    assert(waited <= 250, `${waited} ms`);
    assert.deepEqual(reachability, [false]);
    assert.equal(follower.mayServe(clock.now(), clock.monotonic()), true);
    source.override = undefined;
    await pass(1_500);
    assert.deepEqual(reachability, [false, true]);
  });

  it("does not mistake its own blocked event loop for an unreachable database", async () => {
    const { clock, follower, source, reachability } = await follow();
    const answer = Promise.withResolvers<Changes>();
    source.override = () => answer.promise;
    clock.step(60_000);
    const served = follower.mayServe(clock.now(), clock.monotonic());
    // One timer fires late while the answer is already in the socket.
    clock.advance(50);
    answer.resolve({ cursor: "0", rows: [], hasMore: false, isLost: false, server: "", final: 0 });
    assert.equal(await served, true);
    assert.deepEqual(reachability, []);
  });

  it("stops serving after `staleMax`, independently of the wall clock", async () => {
    const { clock, follower, source, pass } = await follow();
    source.override = () => Promise.reject(new Error("away"));
    await pass(STALE_MAX / 2);
    assert.equal(follower.mayServe(clock.now(), clock.monotonic()), true);
    clock.step(HOUR);
    assert.equal(follower.mayServe(clock.now(), clock.monotonic()), true);
    clock.step(-2 * HOUR);
    await pass(STALE_MAX / 2 + 1_000);
    assert.equal(follower.mayServe(clock.now(), clock.monotonic()), false);
  });

  it("invalidates everything when its cursor no longer fits the database, and drops its recorded changes", async () => {
    const { follower, source, change, pass, staysValid } = await follow();
    for (let i = 0; i < 3; i++) change("other");
    await pass(500);
    follower.recordOwn(4);
    assert.equal(
      await staysValid("key_1", async () => {
        source.isLost = true;
        await pass(500);
      }),
      false,
    );
    assert.equal(source.lost, 1);
    // The new server reuses the number of a change that this node made on the old server.
    assert.equal(
      await staysValid("key_1", async () => {
        change("key_1");
        await pass(500);
      }),
      false,
    );
    assert.equal(source.lost, 1);
  });

  it("continues where a read ends, and invalidates everything when it is too far behind", async () => {
    const { source, change, pass, staysValid } = await follow();
    for (let i = 0; i <= 2 * CHANGES_PER_READ; i++) change(`key_${i}`);
    source.reads = 0;
    assert.equal(await staysValid(`key_${2 * CHANGES_PER_READ}`, () => pass(500)), false);
    assert.equal(source.reads, 3);
    for (let i = 0; i < 250_000; i++) change("other");
    source.reads = 0;
    assert.equal(await staysValid("key_1", () => pass(500)), false);
    assert(source.reads <= 12, `${source.reads} reads`);
  });
});
