import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const STALE_MAX = 5_000;

async function readiness(server: TestServer): Promise<[number, string]> {
  const { status, body } = await server.request("GET", "/health/ready");
  return [status, body.status];
}

/** The ways in which a database can be away. */
const outages = {
  rejects: () => Promise.reject(new StoreUnavailable("away")),
  hangs: () => new Promise<never>(() => {}),
};

describeOnStores(
  "while the database is away",
  (server) => {
    for (const [outage, instead] of Object.entries(outages)) {
      it(`because it ${outage}, cached keys verify for a time, then nothing does, until it is back`, async () => {
        const apiId = await server.createApi();
        const [known, unknown] = [await server.createKey(apiId), await server.createKey(apiId)];
        assert.equal((await server.verify(known.key)).code, "VALID");
        assert.deepEqual(await readiness(server), [200, "ok"]);

        const before = server.logged.length;
        server.store.interception = instead;
        await server.pass(2_000);
        assert.deepEqual(await readiness(server), [200, "degraded"]);
        assert.equal((await server.verify(known.key)).code, "VALID");
        assert.equal((await server.verify(known.key, { permissions: "nope" })).code, "INSUFFICIENT_PERMISSIONS");
        // A query without an answer leaves no reply to check.
        if (outage === "rejects") {
          for (const [operation, body] of [
            ["keys.verifyKey", { key: unknown.key }],
            ["keys.createKey", { apiId }],
            ["keys.updateKey", { keyId: known.keyId, enabled: false }],
            ["keys.getKey", { keyId: known.keyId }],
          ] as const) {
            const reply = await server.call(operation, body);
            assert.equal(reply.problem, "service_unavailable", operation);
            assert.equal(reply.headers["retry-after"], "1");
          }
          // An uncached root key cannot be distinguished from an unknown one.
          await server.rejected("keys.verifyKey", { key: known.key }, "service_unavailable", { as: "lk_root_unknown" });
        }

        await server.pass(STALE_MAX);
        assert.deepEqual(await readiness(server), [503, "fail"]);
        await server.rejected("keys.verifyKey", { key: known.key }, "service_unavailable");
        await server.rejected("keys.verifyKey", { key: known.key }, "service_unavailable", { as: null });
        const lost = server.logged
          .slice(before)
          .filter(({ message }) => message.startsWith("the database does not answer"));
        assert.equal(lost.length, 1);

        server.store.interception = undefined;
        await server.pass(1_500);
        assert.deepEqual(await readiness(server), [200, "ok"]);
        for (const { key } of [known, unknown]) assert.equal((await server.verify(key)).code, "VALID");
        assert.equal(server.logged.at(-1)!.message, "the database answers again");
      });
    }
  },
  { STALE_MAX: `${STALE_MAX}ms` },
);

describe("a service whose database thread has ended", () => {
  it("is not ready, and says that it must be restarted", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    assert.deepEqual(await readiness(server), [200, "ok"]);
    const failure = "the thread of the embedded database has ended; restart";
    Object.defineProperty(server.store, "failure", { value: failure });
    const { status, body } = await server.request("GET", "/health/ready");
    assert.deepEqual([status, body.status, body.checks.database], [503, "fail", failure]);
  });
});

describe("a stopped service", () => {
  it("is not ready", async () => {
    const server = await openTestServer();
    await server.close();
    assert.deepEqual(await readiness(server), [503, "shutting down"]);
  });
});
