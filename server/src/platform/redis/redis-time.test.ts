import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { RedisTime } from "./redis-time.ts";

describe("RedisTime", () => {
  it("contains the time of Redis for all network delays", () => {
    const reply = fc.record({
      pass: fc.nat(10_000),
      there: fc.nat(400),
      back: fc.nat(400),
      slew: fc.integer({ min: -4, max: 4 }),
    });
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1 }), fc.nat(2e12), (replies, start) => {
        const time = new RedisTime();
        let here = 0;
        let there = start;
        const pass = (length: number, slew: number) => {
          here += length;
          there += length * (1 + slew * 1e-4);
        };
        for (const { pass: idle, there: out, back, slew } of replies) {
          pass(idle, slew);
          const sentAt = here;
          pass(out, slew);
          const replied = Math.floor(there);
          pass(back, slew);
          time.learn(sentAt, here, replied);
          // The drift during one round trip is ignored; it is below a millisecond.
          assert.ok(time.earliest(here) <= there + 1 && there - 1 <= time.latest(here));
        }
      }),
    );
  });

  it("follows a step of the clock", () => {
    const time = new RedisTime();
    time.learn(0, 2, 1_000_000);
    time.learn(10, 12, 5_000_000);
    assert.deepEqual([time.earliest(12), time.latest(12)], [5_000_000, 5_000_003]);
    time.learn(20, 22, 1_000_000);
    assert.deepEqual([time.earliest(22), time.latest(22)], [1_000_000, 1_000_003]);
  });
});
