/** Sessions of the dashboard, and those who attack them. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { it } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import inject from "light-my-request";
import { describeOnStores, examine, openTestServer, TestServer } from "../harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Sent {
  /** Undefined: the header is not sent. */
  headers?: Record<string, string | undefined>;
  body?: unknown;
  raw?: string;
  cookie?: string;
  from?: string;
}

/** What a browser on a page of the dashboard sends. */
async function browse(server: TestServer, method: string, url: string, sent: Sent = {}) {
  const { headers = {}, body, raw, cookie, from } = sent;
  const response = await inject(server.service.dispatch, {
    method: method as "GET",
    url,
    headers: Object.fromEntries(
      Object.entries({
        host: "127.0.0.1:3000",
        "sec-fetch-site": "same-origin",
        ...(method === "GET" ? {} : { "content-type": "application/json", origin: "http://127.0.0.1:3000" }),
        cookie,
        ...headers,
      }).filter(([, value]) => value !== undefined),
    ) as Record<string, string>,
    ...((raw !== undefined || body !== undefined) && { payload: raw ?? JSON.stringify(body) }),
    ...(from !== undefined && { remoteAddress: from }),
  });
  const coding = response.headers["content-encoding"];
  const decode = { br: brotliDecompressSync, gzip: gunzipSync }[String(coding)];
  const payload = decode ? decode(response.rawPayload).toString() : response.payload;
  examine(undefined, url, response.statusCode, response.headers as Record<string, string>, payload);
  const setCookie = String(response.headers["set-cookie"] ?? "");
  return {
    status: response.statusCode,
    headers: response.headers as Record<string, string>,
    setCookie,
    cookie: setCookie.split(";")[0]!,
    bytes: response.rawPayload.length,
    body: JSON.parse(payload),
  };
}

const signIn = (server: TestServer, rootKey = server.rootKey, more: Sent = {}) =>
  browse(server, "POST", "/dashboard/session", { body: { rootKey }, ...more });

const call = (server: TestServer, cookie: string, name: string, body: unknown = {}, more: Sent = {}) =>
  browse(server, "POST", `/dashboard/api/v2/${name}`, { cookie, body, ...more });

const without = (...names: string[]) => Object.fromEntries(names.map((name) => [name, undefined]));

describeOnStores(
  "a session",
  (server) => {
    it("stands for its root key: the same workspace, permissions and audit log", async () => {
      const { key, rootKeyId } = await server.grant("apis.*.create_api", "apis.*.read_api");
      const { status, body, cookie, setCookie, headers } = await signIn(server, key);
      assert.equal(status, 200);
      assert.match(
        setCookie,
        /^latchkey_session=[\w-]{43}; Path=\/dashboard; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
      );
      assert.equal(headers["cache-control"], "no-store");
      const { sessionId, workspace, rootKey, createdAt, expiresAt, version } = body.data;
      assert.deepEqual(workspace, { id: server.workspaceId, name: "default" });
      assert.deepEqual(rootKey, {
        keyId: rootKeyId,
        name: "granted",
        permissions: ["apis.*.create_api", "apis.*.read_api"],
      });
      assert.equal(expiresAt - createdAt, 12 * HOUR);
      assert.match(version, /^\d+\.\d+\.\d+/);
      assert.deepEqual((await browse(server, "GET", "/dashboard/session", { cookie })).body.data, body.data);

      const made = await call(server, cookie, "apis.createApi", { name: "by hand" });
      assert.equal(made.status, 200);
      const refused = await call(server, cookie, "apis.deleteApi", { apiId: made.body.data.apiId });
      assert.equal(refused.body.error.type, "/errors/authorization/insufficient_permissions");
      const [event] = await server.ok("audit.listEvents", { target: made.body.data.apiId });
      assert.deepEqual([event.actor, event.meta.session], [rootKeyId, sessionId]);
      const [signedIn] = await server.ok("audit.listEvents", { target: sessionId });
      assert.deepEqual([signedIn.actor, signedIn.action], [rootKeyId, "dashboard.signIn"]);
      const rows = JSON.stringify(await server.rowsOf("sessions"));
      assert(!rows.includes(cookie.split("=")[1]!), "the database has the token");
    });

    it("verifies keys, and replays a call with an Idempotency-Key", async () => {
      const { cookie } = await signIn(server);
      const { key } = await server.createKey(await server.createApi());
      assert.equal((await call(server, cookie, "keys.verifyKey", { key })).body.data.code, "VALID");
      const headers = { "idempotency-key": `once-${server.options.store}` };
      const first = await call(server, cookie, "apis.createApi", { name: "once" }, { headers });
      const second = await call(server, cookie, "apis.createApi", { name: "once" }, { headers });
      assert.deepEqual(second.body.data, first.body.data);
    });

    it("ends by signing out", async () => {
      const { cookie } = await signIn(server);
      const out = await browse(server, "DELETE", "/dashboard/session", { cookie });
      assert.match(out.setCookie, /^latchkey_session=; .*Max-Age=0/);
      assert.equal((await call(server, cookie, "apis.listApis")).status, 401);
      assert.equal((await browse(server, "GET", "/dashboard/session", { cookie })).status, 401);
    });

    it("ends after 12 hours without a call, and after 30 days in any case", async () => {
      const other = await new TestServer({ store: server.options.store! }).open();
      try {
        const status = async (cookie: string) => (await browse(other, "GET", "/dashboard/session", { cookie })).status;
        const idle = (await signIn(other)).cookie;
        const busy = (await signIn(other)).cookie;
        const age = async (length: number) => {
          await other.change([], async ({ db }) => {
            await db
              .updateTable("sessions")
              .set((eb) => ({
                last_used_at: eb("last_used_at", "-", length),
                expires_at: eb("expires_at", "-", length),
              }))
              .execute();
          });
          // A session is read again after a second.
          await other.pass(1_000);
        };
        await age(12 * HOUR - MINUTE);
        assert.equal(await status(busy), 200);
        await age(MINUTE);
        assert.deepEqual([await status(idle), await status(busy)], [401, 200]);
        for (let passed = 12 * HOUR; passed < 30 * DAY - 11 * HOUR; passed += 11 * HOUR) {
          await age(11 * HOUR);
          assert.equal(await status(busy), 200, `after ${passed / HOUR} hours`);
        }
        await age(11 * HOUR);
        assert.equal(await status(busy), 401);
      } finally {
        await other.close();
      }
    });

    it("is dead on every node once its root key is deleted, disabled or expired, or it is deleted itself", async () => {
      const node = await new TestServer({ ...server.options, beside: server }).open();
      try {
        const deleted = await server.grant("*");
        const disabled = await server.grant("*");
        const expiring = await server.grant("*");
        const own = await server.grant("*");
        const cookies: string[] = [];
        for (const { key } of [deleted, disabled, expiring, own]) cookies.push((await signIn(node, key)).cookie);
        const statuses = async () => {
          const all = [];
          for (const cookie of cookies) all.push((await call(node, cookie, "apis.listApis")).status);
          return all;
        };
        assert.deepEqual(await statuses(), [200, 200, 200, 200]);
        const { rootKeyId } = own;
        const [{ sessionId }] = await server.ok("rootKeys.listSessions", { rootKeyId });
        await server.ok("rootKeys.deleteRootKey", { rootKeyId: deleted.rootKeyId });
        await server.ok("rootKeys.updateRootKey", { rootKeyId: disabled.rootKeyId, enabled: false });
        await server.ok("rootKeys.updateRootKey", { rootKeyId: expiring.rootKeyId, expires: server.clock.now() });
        assert.deepEqual(await server.ok("rootKeys.deleteSessions", { rootKeyId, sessionId }), { deleted: 1 });
        await node.pass(1_000);
        assert.deepEqual(await statuses(), [401, 403, 403, 401]);
      } finally {
        await node.close();
      }
    });

    it("has a new token at each sign-in: a planted cookie is never used", async () => {
      const planted = `latchkey_session=${"A".repeat(43)}`;
      const first = await signIn(server, server.rootKey, { cookie: planted });
      assert.notEqual(first.cookie, planted);
      assert.equal((await call(server, planted, "apis.listApis")).status, 401);
      // Signing in again ends the former session, whose token an attacker may know.
      const second = await signIn(server, server.rootKey, { cookie: first.cookie });
      assert.notEqual(second.cookie, first.cookie);
      assert.equal((await call(server, first.cookie, "apis.listApis")).status, 401);
      // A cookie that a site of the same domain adds does not decide whose session is used.
      assert.equal((await call(server, `${planted}; ${second.cookie}`, "apis.listApis")).status, 401);
      assert.equal((await call(server, second.cookie, "apis.listApis")).status, 200);
    });

    it("cannot be used by another site (CSRF)", async () => {
      const { cookie } = await signIn(server);
      const attempts: Sent[] = [
        { headers: { "sec-fetch-site": "cross-site" } },
        { headers: { "sec-fetch-site": "same-site" } },
        { headers: { "sec-fetch-site": "none" } },
        { headers: { ...without("sec-fetch-site"), origin: "https://evil.example" } },
        { headers: { ...without("sec-fetch-site"), origin: "null" } },
        { headers: { ...without("sec-fetch-site"), origin: "http://127.0.0.1:3001" } },
        { headers: without("sec-fetch-site", "origin") },
      ];
      const before = await server.rows();
      for (const attempt of attempts) {
        const at = JSON.stringify(attempt);
        const made = await call(server, cookie, "apis.createApi", { name: "forged" }, attempt);
        assert.equal(made.body.error.type, "/errors/authorization/cross_origin_request", at);
        assert.equal((await signIn(server, server.rootKey, attempt)).status, 403, at);
        assert.equal((await browse(server, "DELETE", "/dashboard/session", { cookie, ...attempt })).status, 403, at);
      }
      // What a form of another site can send.
      for (const type of ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""]) {
        const headers = { "content-type": type };
        assert.equal((await call(server, cookie, "apis.createApi", { name: "forged" }, { headers })).status, 400, type);
        assert.equal((await signIn(server, server.rootKey, { headers })).status, 400, type);
      }
      assert.deepEqual(await server.rows(), before);
      // An older browser sends only its origin.
      const old = { headers: without("sec-fetch-site") };
      assert.equal((await call(server, cookie, "apis.listApis", {}, old)).status, 200);
      assert.equal(
        (await browse(server, "GET", "/dashboard/session", { cookie, headers: { "sec-fetch-site": "cross-site" } }))
          .status,
        403,
      );
    });

    it("means nothing to /v2, and a root key means nothing to /dashboard/api", async () => {
      const { cookie } = await signIn(server);
      const options = {
        as: null,
        headers: { cookie, origin: "http://127.0.0.1:3000", "sec-fetch-site": "same-origin" },
      };
      await server.rejected("apis.listApis", {}, "authentication_missing", options);
      const token = cookie.split("=")[1]!;
      await server.rejected("apis.listApis", {}, "authentication_failed", { as: token });
      const headers = { authorization: `Bearer ${server.rootKey}` };
      assert.equal(
        (await browse(server, "POST", "/dashboard/api/v2/apis.listApis", { body: {}, headers })).status,
        401,
      );
    });

    it("gets long answers compressed as its browser accepts them, unless they have a secret", async () => {
      const { cookie } = await signIn(server);
      const { apiId } = await server.ok("apis.createApi", { name: "compressed" });
      const { keyId } = await server.ok("keys.createKey", {
        apiId,
        recoverable: true,
        meta: { text: "a".repeat(2_000) },
      });
      const read = (coding: string, more: object = {}) =>
        call(server, cookie, "keys.getKey", { keyId, ...more }, { headers: { "accept-encoding": coding } });
      const plain = await read("identity");
      assert.equal(plain.headers["content-encoding"], undefined);
      assert.ok(plain.bytes > 2_000);
      for (const [accepted, coding] of [
        ["gzip, deflate, br, zstd", "br"],
        ["gzip, deflate", "gzip"],
      ] as const) {
        const { headers, body, bytes } = await read(accepted);
        assert.deepEqual([headers["content-encoding"], headers.vary], [coding, "Accept-Encoding"]);
        assert.equal(headers["content-length"], String(bytes));
        assert.ok(bytes < 1_000, `${bytes} bytes`);
        assert.deepEqual(body.data, plain.body.data);
      }
      const secret = await read("gzip, br", { decrypt: true });
      assert.equal(typeof secret.body.data.plaintext, "string");
      assert.equal(secret.headers["content-encoding"], undefined);
      const accepting = { headers: { "accept-encoding": "gzip, br" } };
      const input = { apiId, meta: { text: "a".repeat(2_000) } };
      assert.equal(
        (await call(server, cookie, "keys.createKey", input, accepting)).headers["content-encoding"],
        undefined,
      );
    });

    it("is not shown in a frame of another site, and not cached", async () => {
      const { cookie } = await signIn(server);
      for (const { headers } of [
        await browse(server, "GET", "/dashboard/session", { cookie }),
        await browse(server, "GET", "/dashboard/session"),
        await call(server, cookie, "apis.listApis"),
      ]) {
        assert.equal(headers["x-frame-options"], "DENY");
        assert.match(headers["content-security-policy"]!, /frame-ancestors 'none'/);
        assert.equal(headers["x-content-type-options"], "nosniff");
        assert.equal(headers["referrer-policy"], "no-referrer");
        assert.equal(headers["cache-control"], "no-store");
      }
    });

    it("is one of at most 20 of its root key, also of many that sign in at once", async () => {
      const { key, rootKeyId } = await server.grant("*");
      await Promise.all(Array.from({ length: 60 }, () => signIn(server, key)));
      assert.equal((await server.ok("rootKeys.listSessions", { rootKeyId })).length, 20);
    });

    it("is one of at most 20 of its root key: the least recently used one makes room", async () => {
      const { key, rootKeyId } = await server.grant("*");
      const first = await signIn(server, key);
      const cookies = [first.cookie];
      for (let i = 0; i < 20; i++) {
        await server.advance(1);
        cookies.push((await signIn(server, key)).cookie);
      }
      assert.equal((await server.ok("rootKeys.listSessions", { rootKeyId })).length, 20);
      assert.equal((await call(server, cookies[0]!, "apis.listApis")).status, 401);
      assert.equal((await call(server, cookies[1]!, "apis.listApis")).status, 200);
      assert.deepEqual(await server.ok("rootKeys.deleteSessions", { rootKeyId }), { deleted: 20 });
    });
  },
  { VAULT_KEY: randomBytes(32).toString("base64") },
);

describeOnStores("a sign-in", (server) => {
  it("is bounded per workspace: it counts as a request of the workspace", async () => {
    const { workspaceId, key } = await server.ok("workspaces.createWorkspace", { name: "busy" });
    await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 2 });
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await signIn(server, key)).status);
    assert.deepEqual(statuses, [200, 200, 429]);
    assert.equal((await signIn(server)).status, 200);
  });

  it("is a use of its root key, and so is a call of the session", async () => {
    const { rootKeyId } = await server.grant("*");
    const link = await server.service.createSignInLink(rootKeyId);
    const lastUsedAt = async () => {
      const all = await server.ok("rootKeys.listRootKeys", { search: rootKeyId });
      return all[0].lastUsedAt;
    };
    const signedInAt = server.clock.now();
    const { cookie } = await browse(server, "POST", "/dashboard/session", { body: { link } });
    await server.pass(MINUTE);
    assert.equal(await lastUsedAt(), signedInAt);
    const calledAt = server.clock.now();
    await call(server, cookie, "apis.listApis");
    await server.pass(MINUTE);
    assert.equal(await lastUsedAt(), calledAt);
  });

  it("takes nothing but a root key or a link, in a short body", async () => {
    const { rootKey } = server;
    for (const body of [{}, { rootKey, link: "x" }, { rootKey: 1 }, { key: rootKey }, [], null, { link: "" }]) {
      const { status } = await browse(server, "POST", "/dashboard/session", { body });
      assert.equal(status, 400, JSON.stringify(body));
    }
    const long = { raw: JSON.stringify({ rootKey }).padEnd(4_097) };
    assert.equal((await browse(server, "POST", "/dashboard/session", long)).status, 413);
    const { key } = await server.createKey(await server.createApi());
    assert.equal((await signIn(server, key)).status, 401);
  });

  it("by link works once, for 10 minutes, from this machine only", async () => {
    const { rootKeyId } = await server.grant("*");
    const byLink = (link: string, more: Sent = {}) =>
      browse(server, "POST", "/dashboard/session", { body: { link }, ...more });
    const link = await server.service.createSignInLink(rootKeyId);
    assert.equal((await byLink(link, { from: "203.0.113.9" })).status, 401);
    assert.equal((await byLink(link, { headers: { "x-forwarded-for": "127.0.0.1" } })).status, 401);
    await server.pass(1_000);
    const { status, body } = await byLink(link);
    assert.deepEqual([status, body.data?.rootKey.keyId], [200, rootKeyId]);
    assert.equal((await byLink(link)).status, 401);
    await server.pass(1_000);
    const late = await server.service.createSignInLink(rootKeyId);
    await server.pass(10 * MINUTE);
    assert.equal((await byLink(late)).status, 401);
    const rows = JSON.stringify([await server.rowsOf("sign_in_links"), server.logged]);
    assert(!rows.includes(link) && !rows.includes(late));
  });
});

describeOnStores(
  "an invented credential of the dashboard",
  (server) => {
    const invented = () => `latchkey_session=${randomBytes(32).toString("base64url")}`;
    const refused = async (kind: string) =>
      Number(
        new RegExp(`^latchkey_lookups_refused_total{kind="${kind}"} (\\d+)$`, "m").exec(await server.scrape())![1],
      );

    it("costs its address a look-up, and others nothing: root keys", async () => {
      const { key } = await server.grant("*");
      const from = "203.0.113.7";
      const guesses = await Promise.all(Array.from({ length: 20 }, (_, i) => signIn(server, `lk_root_${i}`, { from })));
      const statuses = guesses.map(({ status }) => status);
      assert.deepEqual([...new Set(statuses)].sort(), [401, 503]);
      assert.equal(await refused("rootKeys"), statuses.filter((status) => status === 503).length);
      assert.equal((await signIn(server, key, { from: "203.0.113.8" })).status, 200);
      // The root key is known now, so that its owner does not pay for those behind the same address.
      assert.equal((await signIn(server, key, { from })).status, 200);
    });

    it("costs its address a look-up, and others nothing: links", async () => {
      const { rootKeyId } = await server.grant("*");
      const byLink = (link: string) => browse(server, "POST", "/dashboard/session", { body: { link } });
      const links = Array.from({ length: 20 }, () => randomBytes(32).toString("base64url"));
      const statuses = (await Promise.all(links.map(byLink))).map(({ status }) => status);
      assert.deepEqual(statuses.sort(), [...Array(5).fill(401), ...Array(15).fill(503)]);
      assert.equal(await refused("signInLinks"), 15);
      await server.pass(1_000);
      assert.equal((await byLink(await server.service.createSignInLink(rootKeyId))).status, 200);
      // Links that exist pass at once, however many.
      const made = [];
      for (let i = 0; i < 20; i++) {
        made.push(await server.service.createSignInLink((await server.grant("*")).rootKeyId));
      }
      for (const { status } of await Promise.all(made.map(byLink))) assert.equal(status, 200);
    });

    it("costs its address a look-up, and sessions nothing, also at signing out", async () => {
      const from = "203.0.113.20";
      const before = await refused("sessions");
      const { cookie } = await signIn(server);
      const cookies = Array.from({ length: 100 }, invented).join("; ");
      assert.equal((await browse(server, "DELETE", "/dashboard/session", { cookie: cookies, from })).status, 503);
      assert.equal((await browse(server, "DELETE", "/dashboard/session", { cookie: invented(), from })).status, 503);
      assert.equal((await refused("sessions")) - before, 2);
      // Behind the same address, on a node that has not seen this session yet.
      assert.equal((await call(server, cookie, "apis.listApis", {}, { from })).status, 200);
      // Signing in does not fail because an earlier cookie cannot be looked up.
      const signedIn = await signIn(server, server.rootKey, { cookie: invented(), from });
      assert.equal(signedIn.status, 200);
      assert.equal(
        (await browse(server, "DELETE", "/dashboard/session", { cookie: signedIn.cookie, from })).status,
        200,
      );
      assert.equal((await call(server, signedIn.cookie, "apis.listApis", {}, { from })).status, 401);
      assert.equal((await call(server, cookie, "apis.listApis", {}, { from })).status, 200);
    });
  },
  { LOOKUPS_PER_SECOND: "10" },
);

it("a cookie is secure under https: by its public address, or by the word of a trusted proxy", async (t) => {
  const behind = await openTestServer({ settings: { TRUSTED_PROXIES: "10.0.0.1" } });
  t.after(() => behind.close());
  const forwarded = { headers: { "x-forwarded-proto": "https" } };
  assert.doesNotMatch((await signIn(behind, behind.rootKey, forwarded)).setCookie, /Secure/);
  assert.match((await signIn(behind, behind.rootKey, { ...forwarded, from: "10.0.0.1" })).setCookie, /; Secure$/);
  const published = await openTestServer({ settings: { PUBLIC_URL: "https://keys.example.com" } });
  t.after(() => published.close());
  const headers = { ...without("sec-fetch-site"), origin: "https://keys.example.com" };
  assert.match((await signIn(published, published.rootKey, { headers })).setCookie, /; Secure$/);
});

it("LATCHKEY_DASHBOARD=off: nothing of it exists", async (t) => {
  const server = await openTestServer({ settings: { DASHBOARD: "off" } });
  t.after(() => server.close());
  assert.equal((await signIn(server)).status, 404);
  assert.equal((await browse(server, "GET", "/dashboard/session")).status, 404);
  assert.equal((await call(server, "", "apis.listApis")).status, 404);
});
