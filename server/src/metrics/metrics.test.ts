import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseExposition } from "../../test/prometheus.ts";
import { CallMetrics, StoreMetrics } from "./calls.ts";
import { Histograms, LATENCY_BOUNDS_MS } from "./histogram.ts";
import { Metrics } from "./metrics.ts";

describe("Histograms", () => {
  it("count each latency in the first bucket with a sufficient bound", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 20_000, noNaN: true })), (latencies) => {
        const histograms = new Histograms(3);
        for (const ms of [...latencies, ...LATENCY_BOUNDS_MS]) histograms.observe(1, ms);
        const all = [...latencies, ...LATENCY_BOUNDS_MS];
        const { cumulated, sum } = histograms.read(1);
        const expected = [...LATENCY_BOUNDS_MS, Number.POSITIVE_INFINITY].map(
          (bound) => all.filter((ms) => ms <= bound).length,
        );
        assert.deepEqual(cumulated, expected);
        assert(Math.abs(sum - all.reduce((total, ms) => total + ms, 0)) < 1e-3);
        // Other series are unchanged.
        for (const other of [0, 2]) assert.equal(histograms.read(other).cumulated.at(-1), 0);
      }),
    );
  });
});

describe("CallMetrics", () => {
  it("counts each operation and status separately", async () => {
    const names = ["a.one", "a.two", "a.three"];
    const statuses = [200, 404, 500];
    const calls = new CallMetrics(names, statuses);
    const metrics = new Metrics();
    calls.register(metrics);
    for (const [i, name] of names.entries()) {
      for (const [k, status] of statuses.entries()) {
        if (i === k) continue;
        for (let n = 0; n < 1 + 10 * i + k; n++) calls.record(name, status, 2);
      }
    }
    const exposed = parseExposition((await metrics.expose()).text);
    assert.deepEqual(Object.fromEntries(exposed.values("latchkey_calls_total")), {
      'operation="a.one",status="404"': 2,
      'operation="a.one",status="500"': 3,
      'operation="a.two",status="200"': 11,
      'operation="a.two",status="500"': 13,
      'operation="a.three",status="200"': 21,
      'operation="a.three",status="404"': 22,
    });
    assert.equal(exposed.value("latchkey_call_duration_seconds_count", 'operation="a.three"'), 43);
    assert.equal(exposed.value("latchkey_call_duration_seconds_sum", 'operation="a.three"'), 0.086);
    const bucket = (le: string) =>
      exposed.value("latchkey_call_duration_seconds_bucket", `operation="a.one",le="${le}"`);
    assert.deepEqual([bucket("0.001"), bucket("0.0025"), bucket("+Inf")], [0, 5, 5]);
  });

  it("omits series without calls", async () => {
    const metrics = new Metrics();
    new CallMetrics(["a.one"], [200]).register(metrics);
    const exposed = parseExposition((await metrics.expose()).text);
    assert.equal(exposed.values("latchkey_calls_total").size, 0);
    assert.equal(exposed.values("latchkey_call_duration_seconds_bucket").size, 0);
  });
});

describe("StoreMetrics", () => {
  it("adds a series for each procedure name", async () => {
    const stores = new StoreMetrics();
    const metrics = new Metrics();
    stores.register(metrics);
    for (let i = 0; i < 3; i++) stores.record("mutation", 1, 20);
    stores.record("query", 0, 0.01);
    const exposed = parseExposition((await metrics.expose()).text);
    assert.equal(exposed.value("latchkey_store_run_seconds_count", 'procedure="mutation"'), 3);
    assert.equal(exposed.value("latchkey_store_run_seconds_sum", 'procedure="mutation"'), 0.06);
    assert.equal(exposed.value("latchkey_store_wait_seconds_sum", 'procedure="mutation"'), 0.003);
    assert.equal(exposed.value("latchkey_store_run_seconds_bucket", 'procedure="query",le="0.00005"'), 1);
  });
});
