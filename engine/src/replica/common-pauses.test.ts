import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { SimulatedClock } from "../clock/simulated.ts";
import { CommonPauses } from "./common-pauses.ts";

/** Between two questions of a client. */
const PAUSE = 20;
const settle = async () => {
  for (let i = 0; i < 3; i++) await setImmediate();
};

/** Clients that begin at these times, and whose questions take so long. */
function simulate(clients: readonly { begins: number; takes: number }[]) {
  const clock = new SimulatedClock(0);
  const pauses = new CommonPauses(clock);
  let underWay = 0;
  const askedAt = clients.map((): number[] => []);
  const wait = (time: number) => new Promise<void>((resolve) => clock.schedule(time, resolve));
  const live = async ({ begins, takes }: (typeof clients)[number], index: number) => {
    await wait(begins);
    for (;;) {
      await pauses.run(async () => {
        askedAt[index]?.push(clock.monotonic());
        underWay++;
        await wait(takes);
        underWay--;
      });
      await wait(PAUSE);
    }
  };
  clients.forEach((client, index) => void live(client, index));
  /** How long none was under way at the longest, in this time. */
  const longestPause = async (time: number) => {
    let [pause, longest] = [0, 0];
    for (let passed = 0; passed < time; passed += 5) {
      clock.advance(5);
      await settle();
      pause = underWay === 0 ? pause + 5 : 0;
      longest = Math.max(longest, pause);
    }
    return longest;
  };
  return { longestPause, askedAt };
}

describe("common pauses", () => {
  it("come soon, whenever clients begin", async () => {
    const client = fc.record({ begins: fc.nat(1_000), takes: fc.integer({ min: 300, max: 330 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(client, { minLength: 2, maxLength: 4 }), async (clients) => {
        const { longestPause } = simulate(clients);
        await longestPause(1_500);
        assert.ok((await longestPause(1_500)) >= 10);
      }),
      {
        numRuns: 50,
        // The pause of the last one must not end early.
        examples: [
          [
            [
              { begins: 0, takes: 316 },
              { begins: 0, takes: 300 },
              { begins: 16, takes: 316 },
            ],
          ],
        ],
      },
    );
  });

  it("are not waited for behind a question that hangs", async () => {
    const { longestPause, askedAt } = simulate([
      { begins: 0, takes: 1e9 },
      { begins: 100, takes: 300 },
    ]);
    await longestPause(5_000);
    const times = askedAt[1] ?? [];
    assert.ok(times.length > 12, times.join());
    assert.ok(
      times.slice(1).every((time, i) => time - times[i]! <= 730),
      times.join(),
    );
  });
});
