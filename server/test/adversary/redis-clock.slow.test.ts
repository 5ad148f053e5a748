/**
 * A failover to a Redis whose clock is minutes ahead or behind, with real servers, Sentinels and a service. The servers are
 * those of Valkey, because libfaketime does not work with the memory allocator of Debian's Redis.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { eventually, makeFolder, start } from "../process.ts";
import { parseExposition } from "../prometheus.ts";
import { fakeClock } from "../services/faketime.ts";
import { startSentinels } from "../services/redis-groups.ts";
import { placeValkey } from "../services/valkey.ts";

const SHIFT_MS = 300_000;
const LIMIT = 3;
const DAY_MS = 86_400_000;
/** A window that does not end within the shift. */
const LONG_MS = [30, 29, 28].map((days) => days * DAY_MS).find((ms) => ms - (systemClock.now() % ms) > DAY_MS)!;
/** Windows of which many end within the shift. */
const SHORT_MS = 4_000;

describe("a failover to a Redis whose clock is", () => {
  let isMissing: string | undefined;
  let placed: ReturnType<typeof placeValkey> | undefined;
  before(() => {
    const clock = fakeClock({ FAKETIME: "-1" }, true);
    if (!clock) {
      isMissing = "needs libfaketime (Debian and Ubuntu: `apt-get install libfaketime`)";
      return;
    }
    try {
      placed = placeValkey();
    } catch (error) {
      isMissing = `needs Valkey: ${(error as Error).message.split("\n")[0]}`;
      return;
    }
    const { status } = spawnSync(placed.program, ["--version"], { env: { ...process.env, ...clock }, timeout: 10_000 });
    if (status === 0) process.env.LATCHKEY_TEST_REDIS_SERVER = placed.program;
    else isMissing = "needs a Valkey that runs under libfaketime";
  });
  after(() => placed?.remove());

  for (const sign of [1, -1]) {
    const shift = sign * SHIFT_MS;
    const direction = sign > 0 ? "ahead" : "behind";
    it(`${direction} by five minutes keeps long windows, and blocks no counter for longer than its window`, async (t) => {
      if (isMissing) return t.skip(isMissing);
      const group = await startSentinels(fakeClock({ FAKETIME: `${sign > 0 ? "+" : "-"}${SHIFT_MS / 1_000}` }, false)!);
      t.after(() => group.stop());
      const [primary, replica] = group.members;
      const server = await start({
        directory: makeFolder(t),
        settings: { REDIS_URL: group.url, REDIS_POLICY: "closed" },
      });
      t.after(() => server.kill("SIGKILL"));
      const call = (identifier: string, duration: number) =>
        server.call("ratelimits.limit", { namespace: "clock", identifier, limit: LIMIT, duration });
      const passed = async (identifier: string, duration: number) => {
        let count = 0;
        for (let i = 0; i < 3 * LIMIT; i++) {
          const { status, body } = await call(identifier, duration);
          assert.equal(status, 200, JSON.stringify(body));
          if (body.data.success) count++;
        }
        return count;
      };
      assert.equal(await passed("long", LONG_MS), LIMIT);
      assert.equal(await passed("short", SHORT_MS), LIMIT);
      const chargedAt = systemClock.monotonic();
      assert.equal(await primary!.send("WAIT", 1, 5_000), 1);
      primary!.signal("SIGKILL");
      await eventually("the failover", async () => (await group.primary()) === replica);
      await eventually("calls to be counted again", async () => (await call("other", LONG_MS)).status === 200);
      const [seconds] = (await replica!.send("TIME")) as [string];
      const difference = Number(seconds) * 1_000 - systemClock.now();
      assert(Math.abs(difference - shift) < 5_000, `the clock of the new primary is off by ${difference} ms`);

      assert.equal(await passed("long", LONG_MS), 0, "a long window began again");
      const first = (await call("short", SHORT_MS)).body.data;
      const now = systemClock.now() + shift;
      assert(Math.abs(first.reset - now) <= 2 * SHORT_MS, `the window ends ${first.reset - now} ms from now`);
      if (sign > 0) assert.equal(first.success, true, "a window that has ended still counts");
      else assert.equal(first.success, false, "a counter far ahead was forgotten");
      await eventually("the short window to end", async () => (await call("short", SHORT_MS)).body.data.success);
      const blocked = systemClock.monotonic() - chargedAt;
      t.diagnostic(`the short window admits again after ${Math.round(blocked)} ms, the failover included`);
      // Counts are data of Redis, and none was lost.
      const metrics = parseExposition(await (await fetch(`${server.address}/metrics`)).text());
      assert.equal(metrics.value("latchkey_redis_losses_total"), 0);
      assert.equal((await server.kill("SIGTERM")).code, 0);
    });
  }
});
