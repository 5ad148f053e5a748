/** PostgreSQL, or what is between it and us, that stops to send anything: every call ends within the time that is promised. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import inject from "light-my-request";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import { readConfig } from "../../src/platform/config/config.ts";
import { readSecrets } from "../../src/platform/config/secrets.ts";
import { openAnalyticsStore } from "../../src/service/analytics.ts";
import { openStore } from "../../src/service/app-store.ts";
import { openService } from "../../src/service/service.ts";
import { busyness } from "../busyness.ts";
import { makeFolder } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { TcpProxy } from "../tcp-proxy.ts";

/** What docs/postgresql.md promises, in milliseconds. Timers end the waits, so a busy machine adds little. */
const endsWithin = () => 4_000 + 500 * busyness();

interface Answer {
  name: string;
  status: number;
  tookMs: number;
}

/** The service behind a proxy, and a way to call it. */
async function open(t: TestContext) {
  const { url, drop } = await freshDatabase();
  const proxy = await TcpProxy.open(url);
  const values = new Map(Object.entries({ DATA_DIR: makeFolder(t), DATABASE_URL: proxy.url }));
  const log = { info() {}, warn() {}, error() {} };
  const dependencies = { clock: systemClock, random: systemRandom, log };
  const service = await openService(readConfig(values), readSecrets(values), dependencies, {
    openStore,
    openAnalyticsStore,
    claimFolder: () => ({ holder: "node_1", formerHolders: [], release: () => {} }),
  });
  t.after(async () => {
    proxy.cut();
    proxy.blackhole(false);
    await service.stop();
    await proxy.close();
    await drop();
  });
  const call = async (name: string, body: object): Promise<Answer> => {
    const startedAt = systemClock.monotonic();
    const reply = await inject(service.dispatch, {
      method: "POST",
      url: `/v2/${name}`,
      headers: { "content-type": "application/json", authorization: `Bearer ${service.issued!.key}` },
      payload: JSON.stringify(body),
    });
    return { name, status: reply.statusCode, tookMs: systemClock.monotonic() - startedAt };
  };
  let names = 0;
  /** Reads and writes, more than may run at a time. */
  const calls = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      i % 2 === 0 ? call("apis.listApis", {}) : call("apis.createApi", { name: `api${names++}` }),
    );
  // Connections for all of them are open, and were used just now.
  for (let i = 0; i < 3; i++) {
    const warm = await Promise.all(calls(12));
    assert.deepEqual(new Set(warm.map(({ status }) => status)), new Set([200]));
  }
  return { proxy, call, calls };
}

function describeTimes(answers: readonly Answer[]): string {
  const counts = answers.map(({ name, status, tookMs }) => `${name} ${status} after ${Math.round(tookMs)} ms`);
  return counts.join(", ");
}

describe("a database that sends nothing", () => {
  it("gives every call its 503 within 4 s, also those that wait for others and those that come later", async (t) => {
    const { proxy, call, calls } = await open(t);
    proxy.blackhole(true);
    const sent = [...calls(24)];
    for (let i = 0; i < 4; i++) {
      await setTimeout(1_000);
      sent.push(...calls(12));
    }
    const answers = await Promise.all(sent);
    const longest = Math.max(...answers.map(({ tookMs }) => tookMs));
    t.diagnostic(`${answers.length} calls, the longest took ${Math.round(longest)} ms`);
    assert(longest < endsWithin(), describeTimes(answers));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([503]));

    // The dead connections are gone: it works as soon as the network does.
    proxy.blackhole(false);
    const startedAt = systemClock.monotonic();
    while ((await call("apis.createApi", { name: "again" })).status !== 200) await setTimeout(50);
    const recovered = systemClock.monotonic() - startedAt;
    t.diagnostic(`it recovered after ${Math.round(recovered)} ms`);
    assert(recovered < 5_000 * busyness(), `${recovered} ms`);
    const after = await Promise.all(calls(12));
    assert.deepEqual(new Set(after.map(({ status }) => status)), new Set([200]));
  });

  it("on the open connections only, which a firewall forgot, lets every call end within 4 s", async (t) => {
    const { proxy, calls } = await open(t);
    proxy.blackhole(false);
    const answers = await Promise.all(calls(60));
    const longest = Math.max(...answers.map(({ tookMs }) => tookMs));
    const failed = answers.filter(({ status }) => status !== 200);
    t.diagnostic(`${failed.length} of ${answers.length} failed, the longest took ${Math.round(longest)} ms`);
    assert(longest < endsWithin(), describeTimes(answers));
    assert(
      failed.every(({ status }) => status === 503),
      describeTimes(failed),
    );
    // At most those that were using a connection when it died.
    assert(failed.length <= 5, describeTimes(failed));
  });
});
