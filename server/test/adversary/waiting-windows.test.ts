/** Windows of the dashboard that wait for changes, and those who wait for too many. */
import assert from "node:assert/strict";
import { it } from "node:test";
import inject from "light-my-request";
import { WAITING_MAX } from "../../src/features/dashboard/change-watch.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;

interface Answered {
  status: number;
  data?: { cursor: number; kinds: string[] };
}

const browser = { host: "127.0.0.1:3000", "sec-fetch-site": "same-origin" };

async function signIn(server: TestServer, rootKey = server.rootKey): Promise<string> {
  const response = await inject(server.service.dispatch, {
    method: "POST",
    url: "/dashboard/session",
    headers: { ...browser, "content-type": "application/json" },
    payload: JSON.stringify({ rootKey }),
  });
  assert.equal(response.statusCode, 200);
  return String(response.headers["set-cookie"]).split(";")[0] ?? "";
}

async function ask(
  server: TestServer,
  cookie: string,
  after?: number | string,
  signal?: AbortSignal,
): Promise<Answered> {
  const response = await inject(server.service.dispatch, {
    method: "GET",
    url: `/dashboard/changes${after === undefined ? "" : `?after=${after}`}`,
    headers: { ...browser, cookie },
    ...(signal && { signal }),
  });
  return { status: response.statusCode, data: JSON.parse(response.payload).data };
}

const newest = async (server: TestServer, cookie: string) => (await ask(server, cookie)).data?.cursor ?? 0;

/** Lets time pass until the answer is there, at most this long. Undefined: it is not. */
async function within<T>(server: TestServer, answer: Promise<T>, most: number): Promise<T | undefined> {
  let settled: T | undefined;
  void answer.then((value) => {
    settled = value;
  });
  for (let passed = 0; passed <= most && settled === undefined; passed += 500) {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    if (settled === undefined) await server.pass(500);
  }
  return settled;
}

describeOnStores("a window that waits", (server, store) => {
  it("learns of changes of its workspace within seconds, and of no others", async () => {
    const cookie = await signIn(server);
    const cursor = await newest(server, cookie);
    const waiting = ask(server, cookie, cursor);
    const { key: stranger } = await server.workspace("stranger");
    // The default workspace has the event that a workspace was created.
    const first = await within(server, waiting, 5 * SECOND);
    assert.deepEqual([first?.status, first?.data?.kinds], [200, ["workspace"]]);
    const next = ask(server, cookie, first?.data?.cursor);
    await server.ok("apis.createApi", { name: "other" }, { as: stranger });
    assert.equal(await within(server, next, 5 * SECOND), undefined);
    await server.ok("permissions.createRole", { name: "reader" });
    await server.ok("apis.createApi", { name: "own" });
    const second = await within(server, next, 5 * SECOND);
    assert.deepEqual(second?.data?.kinds.sort(), ["api", "role"]);
    // What happened between two questions is answered at once, and each change once.
    await server.ok("permissions.createRole", { name: "writer" });
    const third = await within(server, ask(server, cookie, second?.data?.cursor), 500);
    assert.deepEqual(third?.data?.kinds, ["role"]);
  });

  it("gets an empty answer after 20 seconds, and names what it cannot read", async () => {
    const cookie = await signIn(server);
    const cursor = await newest(server, cookie);
    const answer = await within(server, ask(server, cookie, cursor), 22 * SECOND);
    assert.deepEqual(answer, { status: 200, data: { cursor, kinds: [] } });
    assert.equal((await ask(server, cookie, "soon")).status, 400);
    // The cursor of a database that was replaced by an earlier state.
    const replaced = await within(server, ask(server, cookie, cursor + 1_000_000), 5 * SECOND);
    assert.deepEqual(replaced?.data?.kinds, ["*"]);
    assert.equal((await ask(server, "")).status, 401);
  });

  it("is answered when its session ends, and does not make it last", async () => {
    const { key, rootKeyId } = await server.grant("apis.*.read_api");
    const cookie = await signIn(server, key);
    const cursor = await newest(server, cookie);
    const waiting = ask(server, cookie, cursor);
    assert.equal(await within(server, waiting, 2 * SECOND), undefined);
    await server.ok("rootKeys.deleteSessions", { rootKeyId });
    assert.equal((await within(server, waiting, 5 * SECOND))?.status, 401);

    const idle = await signIn(server);
    for (let hour = 0; hour < 13; hour++) {
      await ask(server, idle);
      server.clock.step(HOUR);
    }
    assert.equal((await ask(server, idle)).status, 401);
  });

  it("is one of a bounded number, and gives its place back when it closes", async () => {
    const cookies = await Promise.all(Array.from({ length: 9 }, () => signIn(server)));
    const cursor = await newest(server, cookies[0] ?? "");
    const closed = new AbortController();
    const many = cookies.flatMap((cookie) =>
      Array.from({ length: WAITING_MAX.session }, () =>
        ask(server, cookie, cursor, closed.signal).catch(() => ({ status: 0 })),
      ),
    );
    const refused = many.slice(WAITING_MAX.workspace);
    for (const answer of refused) assert.equal((await within(server, answer, SECOND))?.status, 429);
    const { key } = await server.workspace("patient");
    const other = await signIn(server, key);
    const patient = ask(server, other, await newest(server, other));
    await server.ok("apis.createApi", { name: "patient" }, { as: key });
    assert.deepEqual((await within(server, patient, 5 * SECOND))?.data?.kinds, ["api"]);
    closed.abort();
    await Promise.all(many);
    const answer = await within(server, ask(server, cookies[0] ?? "", cursor), 22 * SECOND);
    assert.equal(answer?.status, 200);
  });

  if (store === "postgres") {
    it("learns of a change on another node, and continues there", async (t) => {
      const other = await openTestServer({ beside: server });
      t.after(() => other.close());
      const cookie = await signIn(server);
      const cursor = await newest(server, cookie);
      const waiting = ask(server, cookie, cursor);
      await other.ok("permissions.createRole", { name: "elsewhere" });
      const answer = await within(server, waiting, 5 * SECOND);
      assert.deepEqual(answer?.data?.kinds, ["role"]);
      const continued = await within(other, ask(other, cookie, cursor), 5 * SECOND);
      assert.deepEqual(continued, answer);
    });
  }
});

it("a stop of the service answers windows that wait", async (t) => {
  const server = await openTestServer();
  t.after(() => server.close());
  const cookie = await signIn(server);
  const waiting = ask(server, cookie, await newest(server, cookie));
  assert.equal(await within(server, waiting, 2 * SECOND), undefined);
  await server.service.stop();
  assert.deepEqual((await waiting).data?.kinds, []);
});
