import assert from "node:assert/strict";
import { it } from "node:test";
import { seededRandom } from "../random/seeded.ts";
import { SimulatedClock } from "./simulated.ts";

it("a simulated clock shows whole milliseconds, however long its timers are", () => {
  const random = seededRandom(1);
  const clock = new SimulatedClock(1_768_478_400_000);
  let times = 0;
  const again = () => {
    times++;
    assert.ok(Number.isInteger(clock.now()));
    clock.schedule(random.below(1_000) / 997, again);
  };
  again();
  for (let i = 1; i <= 1_000; i++) {
    clock.advance(7);
    assert.equal(clock.now(), 1_768_478_400_000 + 7 * i);
    assert.equal(clock.monotonic(), 7 * i);
  }
  assert.ok(times > 10_000);
});
