import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { seededRandom } from "../random/seeded.ts";
import { LookupRateLimiter, LookupsExhausted } from "./lookup-rate-limiter.ts";

const findNothing = async (): Promise<string | null> => null;
const findRecord = async () => "a record";

/** The number of look-ups that were allowed, of `count` concurrent ones. */
async function allowed(limiter: LookupRateLimiter, count: number, lookup = findNothing, source = "ws_1") {
  const results = await Promise.allSettled(Array.from({ length: count }, () => limiter.spend(source, lookup)));
  for (const result of results) if (result.status === "rejected") assert(result.reason instanceof LookupsExhausted);
  return results.filter(({ status }) => status === "fulfilled").length;
}

describe("LookupRateLimiter", () => {
  it("allows its rate of unsuccessful look-ups and counts the rejected ones", async () => {
    const limiter = new LookupRateLimiter(new SimulatedClock(0), 10);
    assert.equal(await allowed(limiter, 25), 10);
    assert.equal(limiter.rejected, 15);
  });

  it("refills over time, up to the tokens of one second", async () => {
    const clock = new SimulatedClock(0);
    const limiter = new LookupRateLimiter(clock, 10);
    await allowed(limiter, 10);
    clock.advance(99);
    assert.equal(await allowed(limiter, 1), 0);
    clock.advance(1);
    assert.equal(await allowed(limiter, 2), 1);
    clock.advance(3_600_000);
    assert.equal(await allowed(limiter, 25), 10);
  });

  it("charges nothing for successful look-ups", async () => {
    const limiter = new LookupRateLimiter(new SimulatedClock(0), 10);
    for (let i = 0; i < 100; i++) assert.equal(await limiter.spend("ws_1", findRecord), "a record");
    assert.equal(await allowed(limiter, 25), 10);
  });

  it("passes any number of successful look-ups at once, no more of them in progress than it could pay for", async () => {
    const limiter = new LookupRateLimiter(new SimulatedClock(0), 10);
    let open = 0;
    let openMax = 0;
    const find = async () => {
      openMax = Math.max(openMax, ++open);
      await new Promise(setImmediate);
      open--;
      return "a record";
    };
    assert.equal(await allowed(limiter, 1_000, find), 1_000);
    assert.equal(openMax, 10);
    assert.equal(await allowed(limiter, 25), 10);
  });

  it("passes successful look-ups among unknown names for as long as these leave something of the share", async () => {
    for (const unknown of [1, 5, 9]) {
      const limiter = new LookupRateLimiter(new SimulatedClock(0), 10);
      let begun = 0;
      // The unknown ones are spread among the others.
      const lookup = async () => (begun++ % 100 < unknown ? null : "a record");
      assert.equal(await allowed(limiter, 100, lookup), 100, `${unknown} unknown`);
      assert.equal(limiter.rejected, 0);
      assert.equal(await allowed(limiter, 25), 10 - unknown);
    }
  });

  it("never has more unsuccessful look-ups than its rate, however they mix with others and end", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = seededRandom(seed);
      const clock = new SimulatedClock(0);
      const limiter = new LookupRateLimiter(clock, 50);
      const ending: (() => void)[] = [];
      let unknown = 0;
      const lookup = () =>
        new Promise<string | null>((resolve) => {
          const isUnknown = random.below(3) > 0;
          ending.push(() => {
            if (isUnknown) unknown++;
            resolve(isUnknown ? null : "a record");
          });
        });
      const all: Promise<unknown>[] = [];
      for (let step = 0; step < 300; step++) {
        for (let n = random.below(12); n > 0; n--) all.push(limiter.spend(`ws_${random.below(4)}`, lookup));
        all.push(Promise.allSettled(all.splice(0)));
        for (let n = random.below(12); n > 0 && ending.length > 0; n--) {
          ending.splice(random.below(ending.length), 1)[0]!();
        }
        await new Promise(setImmediate);
        clock.advance(random.below(40));
        // A source that was alone had the whole second; with four of them each has a quarter.
        const most = 4 * 50 + (50 * clock.monotonic()) / 1_000;
        assert(unknown <= most, `${unknown} after ${clock.monotonic()} ms, seed ${seed}`);
      }
      while (ending.length > 0) {
        for (const end of ending.splice(0)) end();
        await new Promise(setImmediate);
      }
      await Promise.all(all);
    }
  });

  it("rejects what waits once the share is used up, and admits the same source again when it is refilled", async () => {
    const clock = new SimulatedClock(0);
    const limiter = new LookupRateLimiter(clock, 10);
    assert.equal(await allowed(limiter, 500), 10);
    assert.equal(limiter.rejected, 490);
    assert.equal(await allowed(limiter, 1, findRecord), 0);
    clock.advance(100);
    assert.equal(await allowed(limiter, 500, findRecord), 500);
  });

  it("charges no look-up that failed: it does not say that the name is unknown", async () => {
    const limiter = new LookupRateLimiter(new SimulatedClock(0), 1);
    for (let i = 0; i < 10; i++) {
      await assert.rejects(
        limiter.spend("ws_1", () => Promise.reject(new Error("away"))),
        /away/,
      );
    }
    assert.equal(await allowed(limiter, 1), 1);
  });

  it("lets as many look-ups of one source wait as are bounded", async () => {
    const limiter = new LookupRateLimiter(new SimulatedClock(0), 10);
    const gate = Promise.withResolvers<string>();
    const all = allowed(limiter, 20_000, () => gate.promise);
    await new Promise(setImmediate);
    assert.equal(limiter.rejected, 20_000 - 10 - 16_384);
    // Another source does not wait.
    assert.equal(await allowed(limiter, 5, findRecord, "other"), 5);
    gate.resolve("a record");
    assert.equal(await all, 10 + 16_384);
  });

  it("charges reports of any name, apart from look-ups in progress", async () => {
    const limiter = new LookupRateLimiter(new SimulatedClock(0), 3);
    for (let i = 0; i < 3; i++) limiter.take("ws_1");
    assert.throws(() => limiter.take("ws_1"), LookupsExhausted);
    assert.equal(limiter.rejected, 1);
  });

  it("keeps the share of a source with few look-ups while another floods", async () => {
    const clock = new SimulatedClock(0);
    const limiter = new LookupRateLimiter(clock, 100);
    assert.equal(await allowed(limiter, 1_000, findNothing, "flood"), 100);
    assert.equal(await allowed(limiter, 50, findNothing, "other"), 50);
    for (let second = 0; second < 5; second++) {
      let flood = 0;
      let other = 0;
      for (let tenth = 0; tenth < 10; tenth++) {
        clock.advance(100);
        flood += await allowed(limiter, 100, findNothing, "flood");
        other += await allowed(limiter, 3, findNothing, "other");
      }
      assert.equal(other, 30);
      assert(flood <= 51, `the flood made ${flood} look-ups in second ${second}`);
    }
  });

  it("bounds the total of any number of sources", async () => {
    const clock = new SimulatedClock(0);
    const limiter = new LookupRateLimiter(clock, 100);
    const round = async () => {
      let all = 0;
      for (let i = 0; i < 1_000; i++) all += await allowed(limiter, 2, findNothing, `source ${i}`);
      return all;
    };
    // Each new source may make one look-up at once.
    assert((await round()) <= 1_500);
    for (let second = 0; second < 20; second++) {
      clock.advance(1_000);
      const all = await round();
      assert(all <= 1_000, `${all} in second ${second}`);
    }
    let later = 0;
    for (let second = 0; second < 20; second++) {
      clock.advance(1_000);
      later += await round();
    }
    assert(later <= 20 * 110, `${later} in 20 seconds`);
  });

  it("tracks a bounded number of sources", async () => {
    const limiter = new LookupRateLimiter(new SimulatedClock(0), 100_000);
    let all = 0;
    for (let i = 0; i < 20_000; i++) all += await allowed(limiter, 1, findNothing, `source ${i}`);
    assert(all > 16_384);
    assert.equal(await allowed(limiter, 1_000, findNothing, "one more"), 0);
  });
});
