/** Attempts with wrong credentials leave a trace that is bounded and contains nothing of the credential. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import inject from "light-my-request";
import { AUTH_FAILURES_INTERVAL } from "../../src/features/events/statements/auth-failures.ts";
import { openTestServer, TestServer } from "../harness.ts";
import { parseExposition } from "../prometheus.ts";

interface Line {
  address: string;
  network: string;
  failures: number;
  problem: string;
  path: string;
  requestId: string;
}

const REPORTED = 2_000;

describe("failed authentications", () => {
  let server: TestServer;
  before(async () => {
    server = await openTestServer();
  });
  after(() => server.close());

  /** The lines in the log that `act` caused, a moment later. */
  async function linesOf(act: () => Promise<unknown>): Promise<Line[]> {
    await server.pass(60_000);
    const from = server.logged.length;
    await act();
    await server.pass(REPORTED);
    const lines = server.logged.slice(from).filter(({ message }) => /because of their credentials/.test(message));
    return lines.map(({ fields }) => fields as Line);
  }
  const attempt = (rootKey: string, address = "203.0.113.7") =>
    server.call("keys.getKey", { keyId: "key_1" }, { as: rootKey, from: address });
  const events = async (as = server.rootKey) =>
    (await server.ok("events.listEvents", { types: ["auth.failures"] }, { as })) as {
      data: { failures: number; since: number; addresses: object[] };
    }[];
  const counted = async () =>
    parseExposition(await server.scrape())
      .values("latchkey_auth_failures_total")
      .get('problem="authentication_failed"') ?? 0;

  it("are a line with address, path, count and the last request id, and without the credential", async () => {
    let last = "";
    const before = await counted();
    const lines = await linesOf(async () => {
      for (let i = 0; i < 15; i++) last = (await attempt(`wrong_secret_${i}`)).body.meta.requestId;
    });
    assert.deepEqual(lines, [
      {
        address: "203.0.113.7",
        network: "203.0.113.7",
        failures: 15,
        problem: "authentication_failed",
        path: "/v2/keys.getKey",
        requestId: last,
      },
    ]);
    assert(!JSON.stringify(server.logged).includes("wrong_secret"));
    assert.equal((await counted()) - before, 15);
  });

  it("of every way to authenticate are seen, and calls without a credential are not", async () => {
    const given = { "content-type": "application/json", "sec-fetch-site": "same-origin", host: "localhost" };
    const send = (url: string, headers: object, payload = "{}", method: "GET" | "POST" = "POST") =>
      inject(server.service.dispatch, { method, url, headers: { ...given, ...headers }, payload });
    const lines = await linesOf(async () => {
      await server.call("keys.verifyKey", { key: "k" }, { as: "wrong", from: "203.0.113.1" });
      await server.call("apis.listApis", {}, { as: null, headers: { authorization: "Basic d3Jvbmc=" } });
      await server.call("apis.listApis", {}, { as: null });
      await send("/dashboard/session", {}, '{"rootKey":"wrong"}');
      await send("/dashboard/api/v2/apis.listApis", { cookie: `latchkey_session=${"x".repeat(43)}` });
      await send("/portal/api/listKeys", { authorization: `Bearer portal_${"x".repeat(30)}` });
      await send(
        `/auth/verify?api=${await server.createApi("proxied")}`,
        { "x-latchkey-root-key": "wrong", authorization: "Bearer k" },
        "",
        "GET",
      );
    });
    const seen = lines.map(({ problem, path, failures }) => `${problem} ${path} ${failures}`).sort();
    assert.deepEqual(seen, [
      "authentication_failed /auth/verify 4",
      "authentication_failed /v2/keys.verifyKey 1",
      "authentication_malformed /v2/apis.listApis 1",
    ]);
  });

  it("are an event from the twentieth on, one for each workspace and interval, in the default workspace", async () => {
    const other = await server.workspace("globex");
    await server.pass(AUTH_FAILURES_INTERVAL);
    const before = (await events()).length;
    for (let i = 0; i < 19; i++) await attempt(`guess${i}`, `198.51.100.${i % 3}`);
    await server.pass(REPORTED);
    assert.equal((await events()).length, before);
    await attempt("guess", "198.51.100.0");
    await server.pass(REPORTED);
    for (let i = 0; i < 40; i++) await attempt(`more${i}`);
    await server.pass(REPORTED);
    const [event, ...rest] = (await events()).slice(before);
    assert.equal(rest.length, 0);
    assert.deepEqual(event!.data, {
      failures: 20,
      since: event!.data.since,
      addresses: [
        { address: "198.51.100.0", failures: 8 },
        { address: "198.51.100.1", failures: 6 },
        { address: "198.51.100.2", failures: 6 },
      ],
    });
    assert.equal(event!.data.since % AUTH_FAILURES_INTERVAL, 0);
    // Another node that notices the same burst adds none.
    const burst = { ...event!.data, workspaceId: server.workspaceId, at: server.clock.now() };
    await server.store.transact("recordAuthFailures", [burst]);
    assert.equal((await events()).length, before + 1);
    assert.deepEqual(await events(other.key), [], "another workspace learns nothing");
  });

  it("with a disabled root key are an event of its workspace", async () => {
    const other = await server.workspace("initech");
    const disabled = await server.ok(
      "rootKeys.createRootKey",
      { name: "old", permissions: ["apis.*.read_api"] },
      { as: other.key },
    );
    await server.ok("rootKeys.updateRootKey", { rootKeyId: disabled.rootKeyId, enabled: false }, { as: other.key });
    await server.pass(AUTH_FAILURES_INTERVAL);
    const before = (await events()).length;
    for (let i = 0; i < 20; i++) await attempt(disabled.key, "198.51.100.77");
    await server.pass(REPORTED);
    assert.deepEqual(
      (await events(other.key)).map(({ data }) => [data.failures, data.addresses]),
      [[20, [{ address: "198.51.100.77", failures: 20 }]]],
    );
    assert.equal((await events()).length, before);
  });

  it("from 1,500 networks cost ten lines a minute, and all are in a line and counted", async () => {
    await linesOf(async () => {});
    const before = await counted();
    const lines = await linesOf(async () => {
      for (let i = 0; i < 1_500; i++) await attempt("wrong", `10.${i >> 8}.${i & 255}.1`);
      await server.pass(60_000);
    });
    assert(lines.length >= 10 && lines.length <= 20, `${lines.length} lines`);
    assert(lines.some(({ network }) => network === "others"));
    const failures = lines.reduce((sum, line) => sum + line.failures, 0);
    assert.deepEqual([failures, (await counted()) - before], [1_500, 1_500]);
    assert.deepEqual(await linesOf(async () => {}), []);
  });

  it("are written again if the database was away", async () => {
    await server.pass(AUTH_FAILURES_INTERVAL);
    const before = (await events()).length;
    server.store.interception = (name, proceed) =>
      name === "recordAuthFailures" ? Promise.reject(new Error("away")) : proceed();
    for (let i = 0; i < 20; i++) await attempt(`again${i}`);
    await server.pass(REPORTED);
    server.store.interception = undefined;
    await server.pass(REPORTED);
    assert.equal((await events()).length, before + 1);
  });
});

describe("the log level debug", () => {
  it("has a line for every answer, with its request id, status and problem", async (t) => {
    const server = await new TestServer({ debug: true }).open();
    t.after(() => server.close());
    const answered = (requestId: string) =>
      server.logged.filter(({ fields }) => (fields as { requestId?: string }).requestId === requestId);
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    const expected: [reply: { status: number; body: never; headers: Record<string, string> }, path: string][] = [
      [(await server.call("keys.verifyKey", { key })) as never, "/v2/keys.verifyKey"],
      [(await server.call("keys.verifyKey", { key: 1 })) as never, "/v2/keys.verifyKey"],
      [(await server.call("apis.getApi", { apiId })) as never, "/v2/apis.getApi"],
      [(await server.call("apis.getApi", { apiId: "api_none" })) as never, "/v2/apis.getApi"],
      [(await server.call("apis.getApi", {}, { as: "wrong" })) as never, "/v2/apis.getApi"],
      [(await server.request("GET", "/health/ready")) as never, "/health/ready"],
      [(await server.request("POST", "/v2/keys.unheardOf")) as never, ""],
    ];
    for (const [reply, path] of expected) {
      const lines = answered(reply.headers["x-request-id"]!);
      assert.equal(lines.length, 1, `${path} ${reply.status}`);
      const { level, fields, message } = lines[0]!;
      const { status, path: logged, problem } = fields as { status: number; path: string; problem?: string };
      assert.deepEqual([level, message, status, logged], ["debug", "answered", reply.status, path]);
      assert.equal(problem !== undefined, reply.status >= 400);
    }
  });
});
