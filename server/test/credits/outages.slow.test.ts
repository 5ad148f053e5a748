import assert from "node:assert/strict";
import { describe, it } from "node:test";
import inject from "light-my-request";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import { readConfig } from "../../src/platform/config/config.ts";
import { readSecrets } from "../../src/platform/config/secrets.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import { openAnalyticsStore } from "../../src/service/analytics.ts";
import { type AppProcedures, openProcedures } from "../../src/service/procedures.ts";
import { openService } from "../../src/service/service.ts";
import { describeOnStores } from "../harness.ts";
import { makeFolder, ROOT_KEY } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { TcpProxy } from "../tcp-proxy.ts";

describeOnStores("while the database fails", (server) => {
  const failures: [name: string, fails: (proceed: () => Promise<unknown>) => Promise<unknown>][] = [
    ["is away", () => Promise.reject(new StoreUnavailable("away"))],
    ["reports a broken disk", () => Promise.reject(Object.assign(new Error("disk I/O error"), { code: "58030" }))],
  ];

  for (const [name, fails] of failures) {
    it(`because it ${name}, verifications that need credits get 503, others continue, and nothing is lost`, async () => {
      const apiId = await server.createApi();
      const ratelimits = [{ name: "requests", limit: 100, duration: 3_600_000, autoApply: true }];
      const paying = await server.createKey(apiId, { credits: { remaining: 10 } });
      const limited = await server.createKey(apiId, { credits: { remaining: 10 }, ratelimits });
      const free = await server.createKey(apiId);
      const disabled = await server.createKey(apiId, { credits: { remaining: 10 }, enabled: false });
      for (const { key } of [paying, limited, free]) assert.equal((await server.verify(key)).code, "VALID");
      await server.verify(disabled.key);

      server.store.interception = (procedure, proceed) => (procedure === "readChanges" ? proceed() : fails(proceed));
      for (let i = 0; i < 5; i++) {
        for (const { key } of [paying, limited]) {
          const reply = await server.call("keys.verifyKey", { key });
          assert.equal(reply.problem, "service_unavailable");
          assert.equal(reply.headers["retry-after"], "1");
        }
      }
      // The balance cannot be read either.
      await server.rejected("keys.verifyKey", { key: paying.key, credits: { cost: 0 } }, "service_unavailable");
      assert.equal((await server.verify(free.key)).code, "VALID");
      const rejected = await server.verify(disabled.key);
      assert.deepEqual([rejected.code, rejected.credits], ["DISABLED", undefined]);

      server.store.interception = undefined;
      assert.equal((await server.verify(paying.key)).credits, 8);
      const { credits, ratelimits: states } = await server.verify(limited.key);
      assert.equal(credits, 8);
      // The transactions failed before any limit was charged.
      assert.equal(states[0].remaining, 98);
    });
  }

  it("and only the answer of a batch is lost, no credit is spent twice and none comes back", async () => {
    const { key, keyId } = await server.createKey(await server.createApi(), { credits: { remaining: 10 } });
    server.store.interception = async (procedure, proceed) => {
      const answer = await proceed();
      if (procedure === "spend") throw new StoreUnavailable("the answer was lost");
      return answer;
    };
    await server.rejected("keys.verifyKey", { key }, "service_unavailable");
    server.store.interception = undefined;
    assert.deepEqual((await server.getKey(keyId)).credits, { remaining: 9 });
    assert.equal((await server.verify(key)).credits, 8);
  });
});

describe("a COMMIT on PostgreSQL without an answer", () => {
  /** Short, because the loss is only detected after it. */
  const STATEMENT_TIMEOUT = 1_000;

  async function serve(t: { after(undo: () => void | Promise<void>): void }) {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const proxy = await TcpProxy.open(database.url);
    t.after(() => proxy.close());
    const values = new Map([
      ["DATA_DIR", makeFolder(t)],
      ["DATABASE_URL", proxy.url],
      ["ROOT_KEY", ROOT_KEY],
      // Commits of the analytics are not part of this test.
      ["ANALYTICS", "off"],
    ]);
    const [config, secrets] = [readConfig(values), readSecrets(values)];
    const options = { url: proxy.url, clock: systemClock, statementTimeout: STATEMENT_TIMEOUT };
    const procedures: AppProcedures = openProcedures({ vault: { kind: "none" } });
    const silent = { info() {}, warn() {}, error() {} };
    const dependencies = { clock: systemClock, random: systemRandom, log: silent };
    const openStore = () => openPostgresStore(options, procedures);
    const service = await openService(config, secrets, dependencies, { openStore, openAnalyticsStore });
    t.after(() => service.stop());

    const call = async (operation: string, payload: object) => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${ROOT_KEY}` };
      const reply = await inject(service.dispatch, { method: "POST", url: `/v2/${operation}`, headers, payload });
      return { status: reply.statusCode, headers: reply.headers, data: reply.json().data };
    };
    const { apiId } = (await call("apis.createApi", { name: "commits" })).data;
    const paying = (await call("keys.createKey", { apiId, credits: { remaining: 10 } })).data;
    const free = (await call("keys.createKey", { apiId })).data;
    const verify = (key: string) => call("keys.verifyKey", { key });
    const remaining = async () => (await call("keys.getKey", { keyId: paying.keyId })).data.credits.remaining;
    for (const { key } of [paying, free]) assert.equal((await verify(key)).data.code, "VALID");

    /**
     * Applies this to the next COMMIT of a charge, once. Resolves when the server has executed it anyway, or when it is
     * lost. Other transactions, such as those of leases, pass.
     */
    const interceptCommit = (verdict: "mute" | "drop") => {
      const { promise, resolve } = Promise.withResolvers<void>();
      let charging: object | undefined;
      proxy.filter = (bytes, connection) => {
        if (bytes.includes('update "balances"')) charging = connection;
        if (connection !== charging || !bytes.includes("commit")) return "pass";
        proxy.filter = () => "pass";
        if (verdict === "drop") resolve();
        else proxy.onMuted = resolve;
        return verdict;
      };
      return promise;
    };
    return { proxy, paying: paying.key as string, free: free.key as string, verify, remaining, interceptCommit };
  }

  it("is detected as committed, and its calls are answered", async (t) => {
    const { paying, free, verify, remaining, interceptCommit } = await serve(t);
    const intercepted = interceptCommit("mute");
    const first = verify(paying);
    await intercepted;
    // Later calls that need credits wait; others do not.
    const second = verify(paying);
    assert.equal((await verify(free)).data.code, "VALID");
    assert.deepEqual([(await first).data.credits, (await second).data.credits], [8, 7]);
    assert.equal(await remaining(), 7);
  });

  it("is detected as lost: 503 with Retry-After, and nothing is charged", async (t) => {
    const { paying, free, verify, remaining, interceptCommit } = await serve(t);
    const intercepted = interceptCommit("drop");
    const first = verify(paying);
    await intercepted;
    const second = verify(paying);
    assert.equal((await verify(free)).data.code, "VALID");
    const { status, headers } = await first;
    assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
    assert.equal((await second).data.credits, 8);
    assert.equal(await remaining(), 8);
  });

  it("and without a connection for the detection: its calls wait, and get the correct answer when the server is back", async (t) => {
    const { proxy, paying, free, verify, remaining, interceptCommit } = await serve(t);
    const intercepted = interceptCommit("mute");
    const first = verify(paying);
    await intercepted;
    proxy.isClosed = true;
    proxy.cut();
    assert.equal((await verify(free)).data.code, "VALID");
    proxy.isClosed = false;
    assert.equal((await first).data.credits, 8);
    assert.equal(await remaining(), 8);
  });

  it("and without a server: calls get 503, and nothing is lost", async (t) => {
    const { proxy, paying, free, verify, remaining } = await serve(t);
    proxy.isClosed = true;
    proxy.cut();
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await verify(paying);
      assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
    }
    assert.equal((await verify(free)).data.code, "VALID");
    proxy.isClosed = false;
    assert.equal((await verify(paying)).data.credits, 8);
    assert.equal(await remaining(), 8);
  });
});
