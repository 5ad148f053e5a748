/**
 * A flood of unknown root keys from one address, beside tenants at other addresses whose root keys are not cached yet.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { describe, it } from "node:test";
import { makeFolder, type Server, start } from "../process.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const KNOWN = 50;
const FLOOD = 3_000;
const AT_ONCE = 32;
const settings = { LOOKUPS_PER_SECOND: "200", TRUSTED_PROXIES: "127.0.0.0/8" };

/** A call as a proxy on this machine forwards it. */
function callFrom(server: Server, address: string, rootKey: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${rootKey}`,
      "x-forwarded-for": address,
    };
    request(`${server.address}/v2/apis.listApis`, { method: "POST", agent, headers }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode!));
    })
      .once("error", reject)
      .end("{}");
  });
}

describe("a flood of unknown root keys", () => {
  it("leaves the look-ups of other addresses their budget", async (t) => {
    const directory = makeFolder(t);
    const before = await start({ directory, settings });
    const { apiId } = await before.ok("apis.createApi", { name: "innocent" });
    const { key } = await before.ok("keys.createKey", { apiId });
    const rootKeys: string[] = [];
    for (let i = 0; i < KNOWN; i++) {
      const made = await before.ok("rootKeys.createRootKey", { name: `tenant ${i}`, permissions: ["apis.*.read_api"] });
      rootKeys.push(made.key);
    }
    await before.kill("SIGTERM");

    // The new process has cached none of them.
    const server = await startMonitored({ directory, settings });
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const innocent = { operation: "keys.verifyKey", bodies: [{ key }] };
    const { result, ...measured } = await measureBeside(server, innocent, async () => {
      const flooded: number[] = [];
      const known: number[] = [];
      const flood = async () => {
        while (flooded.length < FLOOD) {
          flooded.push(await callFrom(server, "198.51.100.1", `lk_root_${randomBytes(16).toString("hex")}`, agent));
        }
      };
      const tenants = async () => {
        // Waits until the flood has used its whole share.
        while (flooded.length < FLOOD / 4) await new Promise((resolve) => setImmediate(resolve));
        for (const rootKey of rootKeys) known.push(await callFrom(server, "203.0.113.7", rootKey, agent));
      };
      await Promise.all([tenants(), ...Array.from({ length: AT_ONCE }, flood)]);
      return { flooded, known };
    });
    const count = (statuses: readonly number[], status: number) => statuses.filter((one) => one === status).length;
    report(t, `${FLOOD} unknown root keys`, measured);
    t.diagnostic(
      `flood: ${count(result.flooded, 401)} × 401 and ${count(result.flooded, 503)} × 503; ` +
        `${count(result.known, 200)} of ${KNOWN} valid root keys got 200`,
    );
    assert(count(result.flooded, 503) > 0, "the flood was too small");
    assert.equal(count(result.known, 200), KNOWN);
    assertUnharmed(measured);
  });
});
