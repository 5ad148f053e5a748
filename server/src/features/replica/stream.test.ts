import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { ChangesFeed } from "../../../../engine/src/directory/changes-feed.ts";
import { ReplicaStream } from "./stream.ts";

/** A stream of a node that is current. `reads` has the time of each read; `take` ends the ones under way, or fails them. */
function openStream() {
  const clock = new SimulatedClock(0);
  const feed = new ChangesFeed(clock, "here");
  const reads: number[] = [];
  let ends: ((hasRead: boolean) => void)[] = [];
  const follower = {
    attend: () => {},
    isCurrent: () => true,
    readAt: { monotonic: 0, wall: clock.now() },
    catchUp: () => {
      reads.push(clock.monotonic());
      return new Promise<boolean>((resolve) => ends.push(resolve));
    },
  };
  const take = async (hasRead = true) => {
    await setImmediate();
    for (const end of ends) end(hasRead);
    ends = [];
    await setImmediate();
  };
  return { stream: new ReplicaStream({ clock, feed, follower }), feed, clock, reads, take };
}

const elsewhere = (i: number) => `there.1.1.AAAAAAAA.process${i}.1`;

describe("the stream of changes for edges", () => {
  it("reads once for all who come with positions that it does not know, and once more for those who come meanwhile", async () => {
    const { stream, clock, reads, take } = openStream();
    const first = Array.from({ length: 100 }, (_, i) => stream.reach(elsewhere(i)));
    await setImmediate();
    assert.deepEqual(reads, [0]);
    // The read is under way: it may miss what they have seen.
    const second = Array.from({ length: 100 }, (_, i) => stream.reach(elsewhere(i)));
    await take();
    assert.deepEqual(new Set(await Promise.all(first)), new Set([false]));
    clock.advance(19);
    assert.deepEqual(reads, [0]);
    clock.advance(1);
    await take();
    assert.deepEqual(reads, [0, 20]);
    assert.deepEqual(new Set(await Promise.all(second)), new Set([false]));
  });

  it("reads at once for the next one after a while", async () => {
    const { stream, clock, reads, take } = openStream();
    for (let i = 0; i < 3; i++) {
      const known = stream.reach(elsewhere(i));
      await take();
      assert.equal(await known, false);
      clock.advance(20);
    }
    assert.deepEqual(reads, [0, 20, 40]);
  });

  it("rejects all whose read fails, and reads again for the next", async () => {
    const { stream, clock, take } = openStream();
    const failed = Promise.allSettled([stream.reach(elsewhere(1)), stream.reach(elsewhere(2))]);
    await take(false);
    assert.deepEqual(
      (await failed).map(({ status }) => status),
      ["rejected", "rejected"],
    );
    const known = stream.reach(elsewhere(3));
    clock.advance(20);
    await take();
    assert.equal(await known, false);
  });

  it("reads nothing for a position of its own", async () => {
    const { stream, feed, reads } = openStream();
    assert.equal(await stream.reach(feed.present()), true);
    assert.deepEqual(reads, []);
  });
});
