/** Tests the measurement that the other tests here rely on: it detects damage and nothing else. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeFolder } from "../process.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

describe("the measurement of an innocent tenant", () => {
  it("passes beside a few calls of another tenant", async (t) => {
    const server = await startMonitored({ directory: makeFolder(t) });
    const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
    const { key } = await server.ok("keys.createKey", { apiId });
    const measured = await measureBeside(server, { operation: "keys.verifyKey", bodies: [{ key }] }, async () => {
      for (let i = 0; i < 50; i++) await server.ok("apis.getApi", { apiId });
    });
    report(t, "a few calls", measured);
    assertUnharmed(measured);
  });

  it("fails for a stall, for memory growth, for errors and for delays", () => {
    const good = {
      count: 1_000,
      p50Ms: 1,
      p99Ms: 2,
      newMaxMs: 3,
      statuses: { 200: 1_000 },
      latenessMaxMs: 0,
      stallCpuMs: 5,
      stallMs: 5,
      rssPeak: 0,
    };
    const busy = 1;
    assertUnharmed({ quiet: good, attacked: good }, { busy });
    for (const bad of [
      { stallCpuMs: 110 },
      { rssPeak: 2 ** 30 },
      { statuses: { 200: 999, 503: 1 } },
      { p99Ms: 500 },
      { count: 0 },
    ]) {
      assert.throws(
        () => assertUnharmed({ quiet: good, attacked: { ...good, ...bad } }, { busy }),
        assert.AssertionError,
      );
    }
  });
});
