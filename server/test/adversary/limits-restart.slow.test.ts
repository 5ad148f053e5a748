/** The calls that restarts and kills of a process with counters in memory admit beyond the limit. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { eventually, makeFolder, type Server, start } from "../process.ts";
import { parseExposition } from "../prometheus.ts";

const HOUR = 3_600_000;
const ENTRIES = 100;
/** 1 MiB holds 32,768 counters. This number is nearly the share of one workspace. */
const COUNTERS = 23_000;

async function chargeAll(server: Server, counters = COUNTERS): Promise<number> {
  let admitted = 0;
  for (let first = 0; first < counters; first += ENTRIES) {
    const entries = Array.from({ length: ENTRIES }, (_, i) => ({
      namespace: "restarts",
      identifier: `user ${first + i}`,
      limit: 1,
      duration: HOUR * 24 * 30,
    }));
    const { limits } = await server.ok("ratelimits.multiLimit", entries);
    admitted += limits.filter(({ passed }: { passed: boolean }) => passed).length;
  }
  return admitted;
}

async function restartWithFullTable(t: TestContext, WORKERS: string): Promise<void> {
  const directory = makeFolder(t);
  const options = { directory, settings: { COUNTER_BYTES: "1m", ANALYTICS: "off", WORKERS } };
  let server = await start(options);
  assert.equal(await chargeAll(server), COUNTERS);
  const file = join(directory, "data", "counters");
  await eventually("the journal", () => statSync(file).size >= COUNTERS * 32);
  const admitted: number[] = [];
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    await server.kill(signal);
    server = await start(options);
    admitted.push(await chargeAll(server));
    const exposed = parseExposition(await (await fetch(`${server.address}/metrics`)).text());
    assert.equal(exposed.value("latchkey_counters_dropped_total"), 0);
  }
  t.diagnostic(`${COUNTERS} exhausted limits; admitted again after a kill and a stop: ${admitted.join(", ")}`);
  assert.deepEqual(admitted, [0, 0]);
}

describe("restarts of a process with counters in memory", () => {
  for (const WORKERS of ["1", "3"]) {
    it(`admit nothing beyond the limit with a nearly full table, after a kill or a stop, on ${WORKERS} threads`, (t) =>
      restartWithFullTable(t, WORKERS));
  }

  it("lose at most the last second of a short window", async (t) => {
    const directory = makeFolder(t);
    let server = await start({ directory });
    const limit = 1_000_000;
    const charge = { namespace: "short", identifier: "a", limit, duration: 10_000, cost: limit };
    const { success, reset } = await server.ok("ratelimits.limit", charge);
    assert.equal(success, true);
    const file = join(directory, "data", "counters");
    const empty = 20;
    await eventually("the journal", () => statSync(file).size > empty);
    await server.kill("SIGKILL");
    server = await start({ directory });
    const after = await server.ok("ratelimits.limit", { ...charge, cost: 0 });
    const rest = Math.max(0, after.reset - systemClock.now());
    t.diagnostic(
      `${after.remaining} of ${limit} left, ${after.reset === reset ? "same" : "next"} window, ${rest} ms of it`,
    );
    if (after.reset === reset) assert.equal(after.remaining, 0);
    // In the next window, it counts in proportion to the overlap.
    else if (after.reset === reset + 10_000) assert.ok(after.remaining <= limit - (limit * rest) / 10_000 + 1);
  });

  it("log the number of counters without room after the memory was reduced", async (t) => {
    const directory = makeFolder(t);
    const settings = { ANALYTICS: "off" };
    let server = await start({ directory, settings: { ...settings, COUNTER_BYTES: "2m" } });
    assert.equal(await chargeAll(server, 34_000), 34_000);
    await server.kill("SIGTERM");
    server = await start({ directory, settings: { ...settings, COUNTER_BYTES: "1m" } });
    const exposed = parseExposition(await (await fetch(`${server.address}/metrics`)).text());
    const dropped = exposed.value("latchkey_counters_dropped_total");
    // The namespace and the workspace may have counters too.
    assert.ok(dropped >= 34_000 - 32_768, `${dropped}`);
    const line = server.log.find(({ msg }) => (msg as string).startsWith("counters on disk do not fit"));
    assert.equal(line?.counters, dropped);
  });
});
