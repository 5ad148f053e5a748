/** Sessions of the portal, and those who try to do more with one than it was given. */
import assert from "node:assert/strict";
import { it } from "node:test";
import inject from "light-my-request";
import type { KeyRow } from "../../src/platform/store/schema.ts";
import { portalOperations } from "../../src/service/operations.ts";
import { describeOnStores, TestServer } from "../harness.ts";
import { callPortal } from "../portal-caller.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const ENDED_KEYS = 3;
/** More than the other tests need for one owner. */
const KEYS_PER_DAY = 20;
const SETTINGS = {
  PORTAL_ENDED_KEYS: String(ENDED_KEYS),
  PORTAL_KEYS_PER_DAY: String(KEYS_PER_DAY),
  RETENTION_DELETED: "1d",
};

/** Each call, the action that it needs, and a body. */
const calls: Record<string, { action?: string; body(keyId: string): object; takesKey?: boolean }> = {
  getSession: { body: () => ({}) },
  listKeys: { action: "list", body: () => ({}) },
  listDerivedKeys: { action: "list", body: (keyId) => ({ keyId }), takesKey: true },
  createKey: { action: "create", body: () => ({ name: "mine" }) },
  rerollKey: { action: "reroll", body: (keyId) => ({ keyId, expiration: 0 }), takesKey: true },
  renameKey: { action: "rename", body: (keyId) => ({ keyId, name: "mine" }), takesKey: true },
  deleteKey: { action: "delete", body: (keyId) => ({ keyId }), takesKey: true },
  getUsage: { action: "usage", body: (keyId) => ({ keyId }), takesKey: true },
  getTotalUsage: { action: "usage", body: () => ({}) },
};
const ALL = [...new Set(Object.values(calls).flatMap(({ action }) => action ?? []))];
const GRANTS = ["read_key", "create_key", "update_key", "delete_key", "read_analytics", "create_portal_session"];

const withoutRequestId = ({ status, body }: { status: number; body: object }) => ({ status, ...body, meta: undefined });

describeOnStores(
  "a session of the portal",
  (server) => {
    it("has a test for each of its calls", () => {
      assert.deepEqual(
        portalOperations.map(({ name }) => name.slice("portal.".length)),
        Object.keys(calls),
      );
    });

    /** An owner with a key in an API, and a session of it. */
    async function owner(apiId: string, externalId: string, more: object = {}, as = server.rootKey) {
      const { keyId, key } = await server.ok("keys.createKey", { apiId, externalId }, { as });
      const body = { apiId, externalId, actions: ALL, ...more };
      const { token, sessionId } = await server.ok("portal.createSession", body, { as });
      return { keyId, key, token, sessionId };
    }

    it("reaches only the keys of its owner in its API: every other looks like one that does not exist", async () => {
      const apiId = await server.createApi("mine");
      const otherApi = await server.createApi("other");
      const mine = await owner(apiId, "ada");
      const foreign = await server.workspace("theirs");
      const theirApi = (await server.ok("apis.createApi", { name: "theirs" }, { as: foreign.key })).apiId;
      const others = {
        "the key of another owner": (await owner(apiId, "bob")).keyId,
        "a key without an owner": (await server.createKey(apiId)).keyId,
        "an own key of another API": (await owner(otherApi, "ada")).keyId,
        "what was derived of the key of another owner": (
          await server.ok("keys.deriveKey", { keyId: (await owner(apiId, "bob")).keyId, ttl: HOUR })
        ).keyId,
        "a key of another workspace": (await owner(theirApi, "ada", {}, foreign.key)).keyId,
      };
      const before = await server.rows();
      for (const [name, { body, takesKey }] of Object.entries(calls)) {
        if (!takesKey) continue;
        const missing = await callPortal(server, mine.token, name, body("key_never0existed000"));
        assert.equal(missing.problem, "key_not_found");
        for (const [what, keyId] of Object.entries(others)) {
          const reply = await callPortal(server, mine.token, name, body(keyId));
          assert.deepEqual(withoutRequestId(reply), withoutRequestId(missing), `${name} with ${what}`);
        }
      }
      assert.deepEqual(await server.rows(), before);
      const { body } = await callPortal(server, mine.token, "listKeys");
      assert.deepEqual(
        body.data.map(({ keyId }: { keyId: string }) => keyId),
        [mine.keyId],
      );
      // A cursor of another session leads to own keys only.
      const bob = await callPortal(server, (await owner(apiId, "bob")).token, "listKeys", { limit: 1 });
      const moved = await callPortal(server, mine.token, "listKeys", { cursor: bob.body.pagination.cursor });
      for (const { keyId } of moved.body.data) assert.equal(keyId, mine.keyId);
      // Every call works with the own key, so that the others were not refused for another reason.
      let { keyId } = mine;
      for (const [name, { body: bodyOf }] of Object.entries(calls)) {
        const reply = await callPortal(server, mine.token, name, bodyOf(keyId));
        assert.equal(reply.status, 200, `${name}: ${JSON.stringify(reply.body)}`);
        if (name === "rerollKey") keyId = reply.body.data.keyId;
        if (name === "deleteKey") keyId = (await server.createKey(apiId, { externalId: "ada" })).keyId;
      }
    });

    it("does what it was given and nothing else", async () => {
      const apiId = await server.createApi();
      for (const [given, { action }] of Object.entries(calls)) {
        if (action === undefined) continue;
        const { keyId, token } = await owner(apiId, `only_${given}`, { actions: [action] });
        const before = await server.rows();
        for (const [name, { action: needed, body }] of Object.entries(calls)) {
          if (needed === undefined || needed === action) continue;
          const reply = await callPortal(server, token, name, body(keyId));
          assert.equal(reply.problem, "insufficient_permissions", `${name} with ${action}`);
        }
        assert.deepEqual(await server.rows(), before);
        const reply = await callPortal(server, token, given, calls[given]!.body(keyId));
        assert.equal(reply.status, 200, given);
      }
    });

    it("can do no more than its root key, at its creation and later", async () => {
      const apiId = await server.createApi();
      for (const [i, missing] of GRANTS.entries()) {
        const { key: as } = await server.grant(
          ...GRANTS.filter((one) => one !== missing).map((one) => `apis.${apiId}.${one}`),
        );
        const body = { apiId, externalId: `owner_${i}`, actions: ALL };
        await server.rejected("portal.createSession", body, "insufficient_permissions", { as });
      }
      // With permissions for another API it can do nothing in this one.
      const { key: elsewhere } = await server.grant("apis.api_other.create_portal_session", "apis.api_other.read_key");
      const wanted = { apiId, externalId: "ada", actions: ["list"] };
      await server.rejected("portal.createSession", wanted, "insufficient_permissions", { as: elsewhere });

      const { key, rootKeyId } = await server.grant(...GRANTS.map((one) => `apis.${apiId}.${one}`));
      const { keyId, token } = await owner(apiId, "ada", {}, key);
      await server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: [`apis.${apiId}.read_key`] });
      const before = await server.rows();
      for (const [name, { action, body }] of Object.entries(calls)) {
        const reply = await callPortal(server, token, name, body(keyId));
        const isAllowed = action === undefined || action === "list";
        assert.equal(reply.problem, isAllowed ? undefined : "insufficient_permissions", name);
      }
      assert.deepEqual((await callPortal(server, token, "getSession")).body.data.actions, ["list"]);
      assert.deepEqual(await server.rows(), before);
    });

    it("is dead on every node once it has expired, or it, its root key, its owner or its API is gone", async () => {
      const node = await new TestServer({ ...server.options, beside: server }).open();
      try {
        const grants = async () => server.grant("*");
        const roots = { deleted: await grants(), disabled: await grants(), expired: await grants() };
        const apiId = await server.createApi();
        const goneApi = await server.createApi("gone");
        const sessions = {
          "root key deleted": await owner(apiId, "a", {}, roots.deleted.key),
          "root key disabled": await owner(apiId, "b", {}, roots.disabled.key),
          "root key expired": await owner(apiId, "c", {}, roots.expired.key),
          "session deleted": await owner(apiId, "d"),
          "owner deleted": await owner(apiId, "e"),
          "API deleted": await owner(goneApi, "f"),
          "session expired": await owner(apiId, "g", { expiresIn: MINUTE }),
        };
        for (const [why, { token }] of Object.entries(sessions)) {
          assert.equal((await callPortal(node, token, "listKeys")).status, 200, why);
        }
        await server.ok("rootKeys.deleteRootKey", { rootKeyId: roots.deleted.rootKeyId });
        await server.ok("rootKeys.updateRootKey", { rootKeyId: roots.disabled.rootKeyId, enabled: false });
        await server.ok("rootKeys.updateRootKey", { rootKeyId: roots.expired.rootKeyId, expires: server.clock.now() });
        await server.ok("portal.deletePortalSessions", { apiId, sessionId: sessions["session deleted"].sessionId });
        await server.ok("identities.deleteIdentity", { identity: "e" });
        // A new owner with the same external id is another one.
        await server.ok("identities.createIdentity", { externalId: "e" });
        await server.ok("apis.deleteApi", { apiId: goneApi });
        await server.advance(MINUTE - 1);
        assert.equal((await callPortal(node, sessions["session expired"].token, "listKeys")).status, 200);
        await server.advance(1);
        const bodies = new Set<string>();
        for (const [why, { token, keyId }] of Object.entries(sessions)) {
          for (const [name, { body }] of Object.entries(calls)) {
            const reply = await callPortal(node, token, name, body(keyId));
            assert.equal(reply.problem, "authentication_failed", `${why}: ${name}`);
            bodies.add(JSON.stringify(withoutRequestId(reply)));
          }
        }
        assert.equal(bodies.size, 1, "the holder of a session learns why it has ended");
      } finally {
        await node.close();
      }
    });

    it("changes nothing once it was ended between the authentication of a call and its transaction", async () => {
      const apiId = await server.createApi();
      const { token } = await owner(apiId, "ada");
      server.store.interception = async (name, proceed) => {
        if (name !== "mutation") return proceed();
        server.store.interception = undefined;
        await server.ok("portal.deletePortalSessions", { apiId });
        return proceed();
      };
      const reply = await callPortal(server, token, "createKey");
      assert.equal(reply.problem, "authentication_failed");
      assert.equal((await server.ok("apis.countKeys", { apiId })).count, 1);
    });

    it("makes no more keys than its maximum with many calls at once", async () => {
      const apiId = await server.createApi();
      const { token } = await owner(apiId, "mia", { keys: { max: 4 } });
      const replies = await Promise.all(Array.from({ length: 12 }, () => callPortal(server, token, "createKey")));
      assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 200, ...Array<number>(9).fill(412)]);
      assert.equal((await callPortal(server, token, "listKeys")).body.data.length, 4);
    });

    it("cannot use up the keys of the workspace: replaced and expired keys count for their owner", async () => {
      const apiId = await server.createApi();
      const { token, keyId } = await owner(apiId, "eve", { keys: { max: 3 }, expiresIn: HOUR });
      const live = async () =>
        ((await server.rowsOf("keys")) as KeyRow[]).filter((key) => key.api_id === apiId && key.deleted_at === null);
      let current = keyId;
      let replaced = 0;
      for (; replaced < 8; replaced++) {
        const reply = await callPortal(server, token, "rerollKey", { keyId: current, expiration: 0 });
        assert.equal(reply.status, 200);
        current = reply.body.data.keyId;
      }
      // The one that is valid, and those that expired last.
      assert.equal((await live()).length, 1 + ENDED_KEYS);
      // Keys that expire by themselves, too.
      for (let i = 0; i < 8; i++) {
        const made = await callPortal(server, token, "createKey", { expiresIn: MINUTE });
        assert.equal(made.status, 200);
        await server.advance(2 * MINUTE);
        replaced++;
      }
      assert.equal((await live()).length, 1 + ENDED_KEYS + 1);
      assert((await live()).some(({ id }) => id === current));
      // An expired key that the operator made is the operator's.
      const { keyId: operators } = await server.createKey(apiId, {
        externalId: "eve",
        expires: server.clock.now() + MINUTE,
      });
      await server.advance(2 * MINUTE);
      const more = await callPortal(server, token, "createKey");
      assert.equal(more.status, 200);
      replaced++;
      assert((await live()).some(({ id }) => id === operators));

      // The rate is that of the owner, over all sessions.
      const { token: second } = await server.ok("portal.createSession", { apiId, externalId: "eve", actions: ALL });
      for (; replaced < KEYS_PER_DAY; replaced++) {
        const reply = await callPortal(server, second, "rerollKey", { keyId: current, expiration: 0 });
        assert.equal(reply.status, 200);
        current = reply.body.data.keyId;
      }
      for (const one of [token, second]) {
        for (const [name, body] of [
          ["rerollKey", { keyId: current, expiration: 0 }] as const,
          ["createKey", {}] as const,
        ]) {
          const refused = await callPortal(server, one, name, body);
          assert.equal(refused.problem, "workspace_rate_limited");
          assert.match(refused.body.error.detail, /LATCHKEY_PORTAL_KEYS_PER_DAY/);
          assert(Number(refused.headers["retry-after"]) > 60);
        }
      }
      // Other owners are not concerned.
      const bob = await owner(apiId, "dan");
      assert.equal((await callPortal(server, bob.token, "rerollKey", { keyId: bob.keyId, expiration: 0 })).status, 200);

      // Retention deletes what expired, and leaves the operator's key.
      const before = (await live()).length;
      await server.advance(2 * 24 * HOUR);
      await server.pass(2 * MINUTE);
      const after = (await live()).map(({ id }) => id);
      assert(after.includes(operators) && after.includes(current));
      assert.deepEqual([before, after.length], [5 + ENDED_KEYS, 4]);
    });

    it("means nothing to /v2 and to the dashboard, and root keys and keys mean nothing to it", async () => {
      const apiId = await server.createApi();
      const { token, key } = await owner(apiId, "ada");
      await server.rejected("apis.listKeys", { apiId }, "authentication_failed", { as: token });
      await server.rejected("keys.verifyKey", { key }, "authentication_failed", { as: token });
      const cookie = await inject(server.service.dispatch, {
        method: "POST",
        url: "/dashboard/api/v2/apis.listApis",
        payload: "{}",
        headers: {
          "content-type": "application/json",
          "sec-fetch-site": "same-origin",
          cookie: `latchkey_session=${token}`,
        },
      });
      assert.equal(cookie.statusCode, 401);
      const inBody = await inject(server.service.dispatch, {
        method: "POST",
        url: "/dashboard/session",
        payload: JSON.stringify({ rootKey: token }),
        headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
      });
      assert.equal(inBody.statusCode, 401);
      for (const credential of [
        server.rootKey,
        key,
        `${token}x`,
        token.slice(0, -1),
        "lk_portal_",
        "x".repeat(5_000),
      ]) {
        assert.equal((await callPortal(server, credential, "listKeys")).problem, "authentication_failed", credential);
      }
      assert.equal((await callPortal(server, null, "listKeys")).problem, "authentication_missing");
      const inCookie = { cookie: `latchkey_session=${token}; session=${token}` };
      assert.equal(
        (await callPortal(server, null, "listKeys", {}, { headers: inCookie })).problem,
        "authentication_missing",
      );
      // Operations of the API are not calls of the portal, under no spelling.
      for (const path of [
        "createSession",
        "keys.createKey",
        "../../v2/keys.createKey",
        "deleteSessions",
        "portal.listKeys",
      ]) {
        const url = `/portal/api/${path}`;
        const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
        const reply = await inject(server.service.dispatch, { method: "POST", url, headers, payload: "{}" });
        assert(reply.statusCode === 404 || reply.statusCode === 401, `${path}: ${reply.statusCode}`);
      }
      for (const { name } of portalOperations) {
        const options = {
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          raw: "{}",
        };
        assert.equal((await server.request("POST", `/v2/${name}`, options)).problem, "route_not_found");
      }
    });

    it("leaves its token in no row, no log line and no answer but the first", async () => {
      const apiId = await server.createApi();
      const { token, sessionId } = await owner(apiId, "ada");
      for (const [name, { body }] of Object.entries(calls)) await callPortal(server, token, name, body(token));
      await callPortal(server, token, "listKeys", {}, { raw: "{" });
      const rows = JSON.stringify([await server.rows(), await server.rowsOf("portal_sessions")]);
      const secret = token.slice("lk_portal_".length);
      assert(rows.includes(sessionId) && !rows.includes(secret));
      assert(!JSON.stringify(server.logged).includes(secret));
      assert(!JSON.stringify(await server.ok("portal.listPortalSessions", { apiId })).includes(secret));
    });

    it("answers pages of every origin, without cookies", async () => {
      const apiId = await server.createApi();
      const { token } = await owner(apiId, "ada");
      const preflight = await inject(server.service.dispatch, {
        method: "OPTIONS",
        url: "/portal/api/listKeys",
        headers: {
          origin: "https://customer.example",
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization,content-type",
        },
      });
      assert.equal(preflight.statusCode, 204);
      assert.equal(preflight.headers["access-control-allow-origin"], "*");
      assert.equal(preflight.headers["access-control-allow-headers"], "Authorization, Content-Type");
      const replies = [
        await callPortal(server, token, "listKeys"),
        await callPortal(server, "wrong", "listKeys"),
        await callPortal(server, token, "renameKey", { keyId: "key_never0existed000", name: "x" }),
        await callPortal(server, token, "listKeys", {}, { raw: " ".repeat(17_000) }),
      ];
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 401, 404, 413],
      );
      for (const { headers } of replies) {
        assert.equal(headers["access-control-allow-origin"], "*");
        assert.equal(headers["access-control-allow-credentials"], undefined);
        assert.equal(headers["set-cookie"], undefined);
        assert.equal(headers["cache-control"], "no-store");
        assert.equal(headers["referrer-policy"], "no-referrer");
      }
      // No other path of the service is shared with other origins.
      for (const url of ["/v2/apis.listKeys", "/dashboard/session", "/openapi.json"]) {
        const { headers } = await inject(server.service.dispatch, {
          method: "GET",
          url,
          headers: { origin: "https://a.example" },
        });
        assert.equal(headers["access-control-allow-origin"], undefined, url);
      }
    });

    it("is limited to 300 calls a minute, and counts as calls of its workspace", async () => {
      const apiId = await server.createApi();
      const busy = await owner(apiId, "busy");
      const other = await owner(apiId, "calm");
      // The window begins now.
      await server.advance(MINUTE - (server.clock.now() % MINUTE) + MINUTE);
      for (let call = 0; call < 300; call++) {
        assert.equal((await callPortal(server, busy.token, "getSession")).status, 200);
      }
      const rejected = await callPortal(server, busy.token, "getSession");
      assert.equal(rejected.problem, "workspace_rate_limited");
      assert.equal((await callPortal(server, other.token, "getSession")).status, 200);

      const limited = await server.ok("workspaces.createWorkspace", { name: "limited", requestsPerMinute: 6 });
      const as = limited.key;
      const theirApi = (await server.ok("apis.createApi", { name: "theirs" }, { as })).apiId;
      const theirs = await owner(theirApi, "ada", {}, as);
      const statuses: number[] = [];
      for (let call = 0; call < 4; call++) statuses.push((await callPortal(server, theirs.token, "getSession")).status);
      assert.deepEqual(statuses, [200, 200, 200, 429]);
    });

    it("is one of at most 20 of its owner, also of many that are created at once", async () => {
      const apiId = await server.createApi();
      await server.ok("identities.createIdentity", { externalId: "many" });
      const body = { apiId, externalId: "many", actions: ["list"] };
      await Promise.all(Array.from({ length: 60 }, () => server.ok("portal.createSession", body)));
      assert.equal((await server.ok("portal.listPortalSessions", { apiId, limit: 100 })).length, 20);
    });

    it("is one of at most 20 of its owner: a new one ends the oldest", async () => {
      const apiId = await server.createApi();
      const first = await owner(apiId, "ada", { expiresIn: HOUR });
      const bob = await owner(apiId, "bob", { expiresIn: HOUR });
      for (let i = 0; i < 19; i++) {
        await server.advance(1);
        await server.ok("portal.createSession", { apiId, externalId: "ada", actions: ["list"] });
      }
      assert.equal((await callPortal(server, first.token, "listKeys")).status, 200);
      await server.advance(1);
      await server.ok("portal.createSession", { apiId, externalId: "ada", actions: ["list"] });
      assert.equal((await callPortal(server, first.token, "listKeys")).problem, "authentication_failed");
      assert.equal((await callPortal(server, bob.token, "listKeys")).status, 200);
    });
  },
  SETTINGS,
);
