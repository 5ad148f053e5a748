/** How counts are written: by a thread of low priority, and what survives when the program is killed. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { describe, it } from "node:test";
import { systemClock } from "../../engine/src/clock/system.ts";
import { NICE_STEP } from "../src/platform/store/sqlite/thread-priority.ts";
import { eventually, makeFolder, type Server, start } from "./process.ts";

const HOUR = 3_600_000;

/** A key, a way to verify it, and a way to read its counts. */
async function makeKey(server: Server) {
  const { apiId } = await server.ok("apis.createApi", { name: "counted" });
  const { key, keyId } = await server.ok("keys.createKey", { apiId });
  return {
    async verify(on: Server, times: number) {
      for (let i = 0; i < times; i++) assert.equal((await on.ok("keys.verifyKey", { key })).code, "VALID");
    },
    async counted(on: Server): Promise<number> {
      const now = systemClock.now();
      return (await on.ok("analytics.getKeyStats", { keyId, start: now - HOUR, end: now + HOUR })).total;
    },
  };
}

async function metric(server: Server, name: string): Promise<number> {
  const text = await (await fetch(`${server.address}/metrics`)).text();
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)![1]);
}

describe("the counts of a killed service", () => {
  it("lose at most the last second, and count nothing twice", async (t) => {
    const directory = makeFolder(t);
    let server = await start({ directory });
    const key = await makeKey(server);
    await key.verify(server, 20);
    await eventually("twenty events to be delivered", async () => (await key.counted(server)) === 20);
    await key.verify(server, 5);
    await server.kill("SIGKILL");

    server = await start({ directory });
    const after = await key.counted(server);
    assert(after >= 20 && after <= 25, `${after} of 25 were counted`);
    await key.verify(server, 3);
    // A stop delivers all events.
    await server.kill("SIGTERM");
    server = await start({ directory });
    assert.equal(await key.counted(server), after + 3);
    assert.equal(await metric(server, "latchkey_analytics_lost_total"), 0);
    await server.kill("SIGTERM");
  });
});

describe("the thread that writes counts", () => {
  it("has a lower priority than all others", { skip: process.platform !== "linux" && "only on Linux" }, async (t) => {
    const server = await start({ directory: makeFolder(t) });
    const key = await makeKey(server);
    await key.verify(server, 3);
    await eventually("three events to be delivered", async () => (await key.counted(server)) === 3);
    const tasks = `/proc/${server.pid}/task`;
    const threads = readdirSync(tasks).map((thread) => {
      const stat = readFileSync(`${tasks}/${thread}/stat`, "utf8");
      // The fields after the name, which may contain spaces; see proc_pid_stat(5).
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return { name: /\((.*)\)/.exec(stat)![1]!, nice: Number(fields[16]) };
    });
    const own = getPriority();
    const lower = threads.filter(({ nice }) => nice !== own);
    assert.deepEqual(lower, [{ name: "sqlite-write", nice: own + NICE_STEP }]);
    // The other one writes what calls wait for.
    assert.equal(threads.filter(({ name }) => name === "sqlite-write").length, 2);
    await server.kill("SIGTERM");
  });
});
