/** What the real program has counted when it is killed, and when the disk is full. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../src/clock/system.ts";
import { eventually, makeFolder, type Server, start } from "./process.ts";

const HOUR = 3_600_000;

/** A key, and a way to verify it and to ask how often that was counted. */
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

describe("counts of a service that is killed", () => {
  it("are there but for the last second's, and none twice", async (t) => {
    const directory = makeFolder(t);
    let server = await start({ directory });
    const key = await makeKey(server);
    await key.verify(server, 20);
    await eventually("twenty to be delivered", async () => (await key.counted(server)) === 20);
    await key.verify(server, 5);
    await server.kill("SIGKILL");

    server = await start({ directory });
    const after = await key.counted(server);
    assert(after >= 20 && after <= 25, `${after} of 25 were counted`);
    await key.verify(server, 3);
    // A stop hands on what there is.
    await server.kill("SIGTERM");
    server = await start({ directory });
    assert.equal(await key.counted(server), after + 3);
    assert.equal(await metric(server, "latchkey_analytics_lost_total"), 0);
    await server.kill("SIGTERM");
  });
});
