/** Endpoints that a tenant chose and that send, or withhold, whatever costs most. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { busyness } from "../busyness.ts";
import { makeFolder, type Server } from "../process.ts";
import { floods, openHostileEndpoint, TEST_CERTIFICATE } from "./hostile-endpoint.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

/** Questions at once about unknown keys. One workspace has as many open ones. */
const QUESTIONS = 20;
const TIMEOUT_MS = 500;
/** How much longer than its time limit a request may take. */
const LATE_MAX_MS = 500;

describe("a hostile endpoint", () => {
  it("of an upstream verifier takes nothing from another tenant, and ends in its time limit", async (t) => {
    const directory = makeFolder(t);
    const certificate = join(directory, "certificate.pem");
    writeFileSync(certificate, TEST_CERTIFICATE);
    const server = await startMonitored({
      directory,
      settings: { UPSTREAM_ALLOW_PRIVATE: "yes", LOOKUPS_PER_SECOND: "10000" },
      environment: { NODE_EXTRA_CA_CERTS: certificate },
    });
    const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
    const { key } = await server.ok("keys.createKey", { apiId });
    const measured = await measureBeside(server, { operation: "keys.verifyKey", bodies: [{ key }] }, async () => {
      const slowest: Record<string, number> = {};
      for (const what of Object.keys(floods)) slowest[what] = await ask(t, server, what);
      return slowest;
    });
    report(t, "hostile upstream verifiers", measured);
    t.diagnostic(JSON.stringify(measured.result));
    const latest = Math.max(...Object.values(measured.result));
    assert(latest <= TIMEOUT_MS + LATE_MAX_MS * busyness(), JSON.stringify(measured.result));
    assertUnharmed(measured);
  });
});

/** Asks a verifier about many keys at once. Returns how long the slowest verification took, in milliseconds. */
async function ask(t: TestContext, server: Server, what: string): Promise<number> {
  const { url } = await openHostileEndpoint(t, floods[what]!);
  const { key: theirs } = await server.ok("workspaces.createWorkspace", { name: "hostile" });
  const { apiId } = await server.ok("apis.createApi", { name: "hostile" }, theirs);
  await server.ok("apis.updateApi", { apiId, upstream: { url, timeout: TIMEOUT_MS } }, theirs);
  const times = Array.from({ length: QUESTIONS }, async (_, i) => {
    const startedAt = performance.now();
    const response = await fetch(`${server.address}/v2/keys.verifyKey`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${theirs}` },
      body: JSON.stringify({ key: `unknown_${i}` }),
    });
    await response.arrayBuffer();
    // Nobody knows whether the key is valid, or the verifier refused it.
    assert([200, 503].includes(response.status), `${what}: ${response.status}`);
    return performance.now() - startedAt;
  });
  return Math.max(...(await Promise.all(times)));
}
