/** What a service promises holds on one thread and on several. The system decides which thread gets which connection. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { eventually, ROOT_KEY } from "../process.ts";
import { type Answer, backends, CONNECTIONS, sumOf, ThreadedService } from "./service.ts";

const HOUR = 3_600_000;
const LONG = 24 * HOUR;

/** How often a thread is killed under load. */
const KILLS = 3;

const combinations = backends.flatMap((backend) => {
  // All other tests run on one thread, on each of them.
  const counts = backend === "the embedded database" ? [1, 2, 4] : [2, 4];
  return counts.map((workers) => {
    const start = (settings: Record<string, string> = {}) =>
      ThreadedService.start({ WORKERS: String(workers), ...settings }, backend);
    return {
      backend,
      workers,
      start,
      name: `a service with ${workers} thread${workers === 1 ? "" : "s"} on ${backend}`,
    };
  });
});

for (const { name, backend, workers, start } of combinations) {
  describe(name, () => {
    let service: ThreadedService;
    before(async () => {
      service = await start();
    });
    after(() => service.remove());

    it("admits exactly the limit of concurrent calls on all threads", async () => {
      assert.equal(service.service.threads, workers);
      const { apiId } = await service.ok("apis.createApi", { name: "a" });
      const ratelimits = [{ name: "r", limit: 150, duration: LONG, autoApply: true }];
      const { key } = await service.ok("keys.createKey", { apiId, ratelimits });
      const limit = { namespace: "n", identifier: "i", limit: 100, duration: LONG };
      await service.ok("ratelimits.limit", { ...limit, cost: 0 });
      let [passed, valid] = [0, 0];
      await Promise.all(
        service.agents.map(async (_, i) => {
          for (let call = 0; call < 5; call++) {
            const limited = await service.send(i, "ratelimits.limit", limit);
            assert.equal(limited?.status, 200);
            if (limited.body.data.success) passed++;
            const verified = await service.send(i, "keys.verifyKey", { key });
            if (verified!.body.data.valid) valid++;
            else assert.equal(verified!.body.data.code, "RATE_LIMITED");
          }
        }),
      );
      assert.deepEqual({ passed, valid }, { passed: 100, valid: 150 });
      for (const { body } of await service.sendOnAll("keys.explainVerification", { key }))
        assert.deepEqual([body.data.code, body.data.ratelimits[0].used], ["RATE_LIMITED", 150]);
      for (const { body } of await service.sendOnAll("ratelimits.explainLimit", limit))
        assert.deepEqual([body.data.success, body.data.used], [false, 100]);
    });

    it("verifies a revoked key nowhere once the revocation is answered", async () => {
      const { apiId } = await service.ok("apis.createApi", { name: "a" });
      for (const [operation, change] of [
        ["keys.updateKey", { enabled: false }],
        ["keys.deleteKey", {}],
        ["keys.updateKey", { expires: 1_600_000_000_000 }],
      ] as const) {
        const { key, keyId } = await service.ok("keys.createKey", { apiId });
        for (const { body } of await service.sendOnAll("keys.verifyKey", { key })) assert.equal(body.data.valid, true);
        await service.ok(operation, { keyId, ...change });
        for (const { body } of await service.sendOnAll("keys.verifyKey", { key })) assert.equal(body.data.valid, false);
      }
      const { key: rootKey, rootKeyId } = await service.ok("rootKeys.createRootKey", { name: "b", permissions: ["*"] });
      await service.sendOnAll("keys.verifyKey", { key: "x" }, { rootKey });
      await service.ok("rootKeys.deleteRootKey", { rootKeyId });
      for (const { status } of await service.sendOnAll("keys.verifyKey", { key: "x" }, { rootKey })) {
        assert.equal(status, 401);
      }
    });

    it("finds a key everywhere once its creation is answered, also where it was unknown", async () => {
      const { apiId } = await service.ok("apis.createApi", { name: "a" });
      const { key, keyId } = await service.ok("keys.createKey", { apiId });
      await service.ok("keys.deleteKey", { keyId, permanent: true });
      for (const { body } of await service.sendOnAll("keys.verifyKey", { key }))
        assert.equal(body.data.code, "NOT_FOUND");
      const again = await service.ok("keys.createKey", { apiId });
      for (const { body } of await service.sendOnAll("keys.verifyKey", { key: again.key })) {
        assert.equal(body.data.code, "VALID");
      }
    });

    it("spends exactly the credits of a key, and each call with an Idempotency-Key once", async () => {
      const { apiId } = await service.ok("apis.createApi", { name: "a" });
      const { key } = await service.ok("keys.createKey", { apiId, credits: { remaining: 50 } });
      const spent = (await service.sendOnAll("keys.verifyKey", { key })).map(({ body }) => body.data);
      assert.equal(spent.filter(({ valid }) => valid).length, 50);
      for (const { valid, code } of spent) if (!valid) assert.equal(code, "USAGE_EXCEEDED");
      // A rejection has the balance, which only the main thread knows.
      const disabled = await service.ok("keys.createKey", { apiId, credits: { remaining: 7 }, enabled: false });
      for (const { body } of await service.sendOnAll("keys.verifyKey", { key: disabled.key })) {
        assert.deepEqual([body.data.code, body.data.credits], ["DISABLED", 7]);
      }

      const limit = { namespace: "n", identifier: "once", limit: 100, duration: LONG };
      const once = { headers: { "idempotency-key": "one" } };
      for (const { status } of await service.sendOnAll("ratelimits.limit", limit, once)) {
        assert([200, 409].includes(status), String(status));
      }
      assert.equal((await service.ok("ratelimits.limit", { ...limit, cost: 0 })).remaining, 99);
    });

    if (!(backend === "the embedded database" || (backend === "PostgreSQL and Redis" && workers === 2))) return;

    it("counts each call once against the limit of its workspace, wherever it is answered", async () => {
      const { apiId } = await service.ok("apis.createApi", { name: "a" });
      const { key } = await service.ok("keys.createKey", { apiId, credits: { remaining: 1_000 } });
      const { workspaceId } = (await service.ok("workspaces.listWorkspaces", {}))[0];
      await service.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 1_000 });
      const earlier = await service.sendOnAll("keys.verifyKey", { key: "x" });
      const remaining = (answers: readonly Answer[]) =>
        Math.min(...answers.map(({ headers }) => Number(headers["ratelimit-remaining"])));
      // Calls that spend credits begin in the thread of their connection and end in the main thread.
      const later = await service.sendOnAll("keys.verifyKey", { key });
      for (const { body } of later) assert.equal(body.data.valid, true);
      assert.equal(remaining(earlier) - remaining(later), CONNECTIONS);
      await service.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: null });
    });

    it("adds up the metrics and the analytics of all threads, and counts limits on after a restart", async (t) => {
      const service = await start();
      t.after(() => service.remove());
      const { apiId } = await service.ok("apis.createApi", { name: "a" });
      const { key, keyId } = await service.ok("keys.createKey", { apiId });
      for (let i = 0; i < 3; i++) await service.sendOnAll("keys.verifyKey", { key });
      const calls = 3 * CONNECTIONS;
      const metrics = await service.metrics();
      const verifications = 'operation="keys.verifyKey"';
      assert.equal(sumOf(metrics, "latchkey_calls_total", verifications), calls);
      assert.equal(sumOf(metrics, "latchkey_call_duration_seconds_count", verifications), calls);
      assert.equal(sumOf(metrics, "latchkey_verifications_total", 'code="VALID"'), calls);
      assert.equal(sumOf(metrics, "latchkey_directory_entries", 'kind="keys"'), workers);
      assert.equal(sumOf(metrics, "latchkey_analytics_events_total"), calls);
      assert.equal((await service.ok("system.getStatus", {})).service.recent.verifications, calls);
      assert((await service.ok("system.listDecisions", {})).decisions.length >= 1);

      const limit = { namespace: "n", identifier: "i", limit: 1_000, duration: LONG };
      // All of them create the namespace.
      for (const { status } of await service.sendOnAll("ratelimits.limit", limit)) assert.equal(status, 200);
      // The threads have not reported these when the service stops.
      await service.sendOnAll("keys.verifyKey", { key });
      const since = { start: systemClock.now() - HOUR, end: systemClock.now() + HOUR };
      await service.stop();
      await service.open();
      assert.equal((await service.ok("ratelimits.limit", { ...limit, cost: 0 })).remaining, 1_000 - CONNECTIONS);
      assert.equal((await service.ok("analytics.getKeyStats", { keyId, ...since })).total, calls + CONNECTIONS);
    });

    it("asks an upstream verifier once about a key that all threads verify at the same time", async (t) => {
      const service = await start({ UPSTREAM_ALLOW_PRIVATE: "yes" });
      t.after(() => service.remove());
      let questions = 0;
      const other = createServer((request, response) => {
        questions++;
        request.resume().on("end", () => response.end('{"valid":true,"credits":{"remaining":1000}}'));
      }).listen(0, "127.0.0.1");
      t.after(() => other.close());
      await once(other, "listening");
      const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`;
      const { apiId } = await service.ok("apis.createApi", { name: "moved" });
      await service.ok("apis.updateApi", { apiId, upstream: { url } });
      for (let round = 1; round <= 2; round++) {
        const answers = await service.sendOnAll("keys.verifyKey", { key: "a key of the other system" });
        assert.deepEqual(new Set(answers.map(({ body }) => body.data.code)), new Set(["VALID"]));
        const left = Math.min(...answers.map(({ body }) => body.data.credits));
        assert.equal(left, 1_000 - round * CONNECTIONS);
      }
      assert.equal(questions, 1);
    });

    it("shares the budget for look-ups of unknown root keys", async (t) => {
      const service = await start({ LOOKUPS_PER_SECOND: "20" });
      t.after(() => service.remove());
      const startedAt = systemClock.monotonic();
      const answers = await Promise.all(
        service.agents.flatMap((_, i) =>
          [0, 1, 2].map((n) => service.send(i, "keys.verifyKey", { key: "x" }, { rootKey: `invented_${i}_${n}` })),
        ),
      );
      const seconds = (systemClock.monotonic() - startedAt) / 1_000;
      const looked = answers.filter((answer) => answer?.status === 401).length;
      assert(looked >= 20 && looked <= 20 * (1 + seconds) + 1, `${looked} of ${answers.length} in ${seconds} s`);
      assert.equal(sumOf(await service.metrics(), "latchkey_lookups_refused_total"), answers.length - looked);
    });

    it("answers requests that are not plain, on connections of every thread", async () => {
      const { apiId } = await service.ok("apis.createApi", { name: "a" });
      const { key } = await service.ok("keys.createKey", { apiId });
      const long = "x".repeat(300_000);
      await Promise.all(
        service.agents.map(async (_, i) => {
          assert.equal((await service.send(i, "keys.verifyKey", { key }))!.body.data.valid, true);
          assert.equal((await service.fetch(i, "GET", "/health/ready"))!.status, 200);
          assert((await service.fetch(i, "GET", "/openapi.json"))!.body.openapi);
        }),
      );
      for (let i = 0; i < CONNECTIONS; i++) {
        assert.equal((await service.send(i, "apis.createApi", { name: long }))!.status, 400);
        assert.equal((await service.send(i, "keys.verifyKey", { key }))!.body.data.valid, true);
      }
    });

    it("answers what is open when it stops, and ends every connection", async () => {
      const body = JSON.stringify({ name: "late" });
      const head = `POST /v2/apis.createApi HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ROOT_KEY}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
      const sockets = service.agents.map(() => connect(service.port, "127.0.0.1"));
      const received = sockets.map((socket) => {
        let text = "";
        socket.on("data", (chunk) => {
          text += chunk;
        });
        return once(socket, "close").then(() => text);
      });
      // The connections have left the fast lane, and their requests are not complete.
      await Promise.all(
        sockets.map(async (socket) => {
          socket.write("GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
          await once(socket, "data");
          socket.write(head);
        }),
      );
      await service.sendOnAll("keys.verifyKey", { key: "x" });
      const stopped = service.stop();
      for (const socket of sockets) socket.write(body);
      for (const text of await Promise.all(received))
        assert.match(text, /HTTP\/1\.1 200 OK.*HTTP\/1\.1 200 OK.*"apiId"/s);
      await stopped;
      const refused = connect(service.port, "127.0.0.1");
      const [error] = await once(refused, "error");
      assert.equal(error.code, "ECONNREFUSED");
    });
  });
}

describe("a worker thread", () => {
  const killed = combinations.filter(
    ({ backend, workers }) => workers === (backend === "the embedded database" ? 4 : 2),
  );
  for (const { name, workers, start } of killed) {
    it(`of ${name} is replaced when it is killed under load, and no count is lost or stuck`, async (t) => {
      const service = await start();
      t.after(() => service.remove());
      const limit = { namespace: "n", limit: 1e9, duration: LONG };
      await service.ok("ratelimits.limit", { ...limit, identifier: "0", cost: 0 });
      const acknowledged = new Map<string, number>();
      let attempts = 0;
      let broken = 0;
      let isOver = false;
      const load = service.agents.map(async (_, i) => {
        // Many counters, so that threads also die while they insert one.
        for (let call = 0; !isOver; call++) {
          const identifier = String(call % 50);
          attempts++;
          const answer = await service.send(i, "ratelimits.limit", { ...limit, identifier });
          if (answer?.status === 200) acknowledged.set(identifier, (acknowledged.get(identifier) ?? 0) + 1);
          // A lock of the dead thread blocks a call until the main thread has released it.
          else if (answer === undefined) broken++;
          else assert.equal(answer.status, 503);
        }
      });
      for (let kills = 0; kills < KILLS; kills++) {
        const before = attempts;
        await eventually("some calls", () => attempts > before + 500);
        const running = service.workers.filter(({ threadId }) => threadId !== -1);
        await running[kills % running.length]!.terminate();
        await eventually("a replacement", () => service.service.threads === workers);
      }
      isOver = true;
      await Promise.all(load);
      const ends = service.logged.filter(({ message }) => message === "a worker thread has ended and will be replaced");
      assert.equal(ends.length, KILLS);
      let [counted, confirmed] = [0, 0];
      for (const [identifier, count] of acknowledged) {
        const { remaining } = await service.ok("ratelimits.limit", { ...limit, identifier, cost: 0 });
        assert(limit.limit - remaining >= count, `${identifier}: ${limit.limit - remaining} of ${count}`);
        counted += limit.limit - remaining;
        confirmed += count;
      }
      // Beyond the acknowledged calls only those that broke.
      assert(counted <= confirmed + broken, `${counted} of ${confirmed} and ${broken}`);
      // Every counter works in every thread.
      for (const { status } of await service.sendOnAll("ratelimits.limit", { ...limit, identifier: "7" })) {
        assert.equal(status, 200);
      }
    });
  }

  it("is replaced when an error ends it", async (t) => {
    const service = await ThreadedService.start({ WORKERS: "2" });
    t.after(() => service.remove());
    const [victim] = service.workers;
    const ended = new Promise((resolve) => victim!.once("exit", resolve));
    // Each message that it does not understand stops it, as an error in its code would.
    victim!.postMessage(null);
    await ended;
    await eventually("a replacement", () => service.service.threads === 2);
    const end = service.logged.find(({ message }) => message === "a worker thread has ended and will be replaced");
    assert.equal((end!.fields.error as { name: string }).name, "TypeError");
    for (const { status } of await service.sendOnAll("keys.verifyKey", { key: "x" })) assert.equal(status, 200);
  });
});

describe("the log of a service with several threads", () => {
  it("has each answer once, and every failed authentication is counted, in any thread", async (t) => {
    const service = await ThreadedService.start({ WORKERS: "2", LOG_LEVEL: "debug" });
    t.after(() => service.remove());
    const answers = [
      ...(await service.sendOnAll("keys.verifyKey", { key: "x" })),
      ...(await service.sendOnAll("keys.verifyKey", { key: 1 })),
      ...(await service.sendOnAll("keys.verifyKey", { key: "x" }, { rootKey: "wrong" })),
      ...(await service.sendOnAll("keys.getKey", { keyId: "key_none" })),
    ];
    const expected = answers.map(({ status, body }) => `${body.meta.requestId} ${status}`).sort();
    const logged = () => service.logged.filter(({ message }) => message === "answered").map(({ fields }) => fields);
    await eventually("the lines of workers", () => logged().length >= expected.length);
    const lines = logged().map(({ requestId, status }) => `${requestId} ${status}`);
    assert.deepEqual(lines.sort(), expected);
    await eventually(
      "all failures",
      async () => sumOf(await service.metrics(), "latchkey_auth_failures_total") >= CONNECTIONS,
    );
    assert.equal(sumOf(await service.metrics(), "latchkey_auth_failures_total"), CONNECTIONS);
  });
});
