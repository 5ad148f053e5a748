import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { Overloaded } from "../../../../engine/src/errors/overloaded.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import { LeakReports, type LeakReportsOptions, leakReport } from "./reports.ts";

function open(options: Partial<LeakReportsOptions> = {}) {
  const clock = new SimulatedClock(0);
  const seen = { found: 0, recorded: [] as string[], taken: 0, failures: [] as unknown[] };
  const known = leakReport("known", "report", null);
  const reports = new LeakReports({
    clock,
    async find(hashes) {
      seen.found++;
      return hashes.filter((hash) => known.hashes.includes(hash));
    },
    async record(stored) {
      seen.recorded.push(...stored.map(({ url }) => url ?? ""));
    },
    limiter: { take: () => void seen.taken++ },
    isReachable: () => true,
    onFailure: (error) => void seen.failures.push(error),
    ...options,
  });
  const accept = (key: string, url: string | null = null) => reports.accept(leakReport(key, "report", url), "source");
  return { clock, seen, reports, accept };
}

describe("reports of leaked keys", () => {
  it("are looked up a hundred at a time, and stored if their key exists", async () => {
    const { seen, reports, accept } = open();
    for (let i = 0; i < 250; i++) accept(i % 100 === 7 ? "known" : `unknown ${i}`, `https://example.com/${i}`);
    await reports.close();
    // The first batch began with the first report.
    assert.equal(seen.found, 4);
    assert.deepEqual(
      seen.recorded,
      [7, 107, 207].map((i) => `https://example.com/${i}`),
    );
    assert.equal(seen.taken, 250);
    assert.equal(reports.waiting, 0);
  });

  it("beyond ten thousand that wait are rejected", async () => {
    const gate = Promise.withResolvers<void>();
    const { reports, accept } = open({ find: () => gate.promise.then(() => []) });
    for (let i = 0; i < 10_000; i++) accept(`unknown ${i}`);
    assert.throws(() => accept("one more"), Overloaded);
    gate.resolve();
    await reports.close();
    assert.equal(reports.waiting, 0);
  });

  it("are rejected while the database is unreachable, and after the close", async () => {
    assert.throws(() => open({ isReachable: () => false }).accept("known"), StoreUnavailable);
    const { reports, accept } = open();
    await reports.close();
    assert.throws(() => accept("known"), Overloaded);
  });

  it("are kept while the database does not answer", async () => {
    let isDown = true;
    const { clock, seen, reports, accept } = open({
      async find(hashes) {
        if (isDown) throw new StoreUnavailable("for this test");
        return hashes;
      },
    });
    accept("known", "https://example.com/1");
    await setImmediate();
    isDown = false;
    assert.deepEqual(seen.recorded, []);
    clock.advance(1_000);
    await reports.close();
    assert.deepEqual(seen.recorded, ["https://example.com/1"]);
  });

  it("that fail by a bug are reported, and do not stop the others", async () => {
    let calls = 0;
    const { seen, reports, accept } = open({
      async find(hashes) {
        if (++calls === 1) throw new Error("a bug");
        return hashes;
      },
    });
    accept("first");
    await setImmediate();
    accept("second", "https://example.com/2");
    await reports.close();
    assert.equal(seen.failures.length, 1);
    assert.deepEqual(seen.recorded, ["https://example.com/2"]);
  });
});
