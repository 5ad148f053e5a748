/** Sessions are cached: how often they are read, and that one that has ended is dead. */
import assert from "node:assert/strict";
import { it } from "node:test";
import inject from "light-my-request";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { describeOnStores, TestServer } from "../harness.ts";
import { callPortal } from "../portal-caller.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;

describeOnStores("a cached session", (server) => {
  async function openPortal(externalId: string) {
    const { apiId } = await server.ok("apis.createApi", { name: "cached" });
    const { token, sessionId } = await server.ok("portal.createSession", { apiId, externalId, actions: ["list"] });
    return { apiId, externalId, token, sessionId };
  }

  async function signIn(rootKey: string) {
    const { headers, payload } = await inject(server.service.dispatch, {
      method: "POST",
      url: "/dashboard/session",
      payload: JSON.stringify({ rootKey }),
      headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
    });
    const [token] = /(?<=latchkey_session=)[\w-]+/.exec(String(headers["set-cookie"]))!;
    return { token, sessionId: JSON.parse(payload).data.sessionId as string };
  }

  const list = async (node: TestServer, token: string) => (await callPortal(node, token, "listKeys")).status;

  const browse = async (node: TestServer, token: string, method: "GET" | "DELETE" = "GET") => {
    const { statusCode } = await inject(node.service.dispatch, {
      method,
      url: "/dashboard/session",
      headers: { "sec-fetch-site": "same-origin", cookie: `latchkey_session=${token}` },
    });
    return statusCode;
  };

  /** Counts the queries for sessions during `work`. */
  async function readsDuring(work: () => Promise<unknown>): Promise<number> {
    let reads = 0;
    server.store.interception = async (name, proceed) => {
      if (name === "sessionsByHashes" || name === "portalSessionsByHashes") reads++;
      return proceed();
    };
    await work();
    server.store.interception = undefined;
    return reads;
  }

  it("is read at most once a second, together with others", async () => {
    const portals = await Promise.all(["a", "b", "c"].map(openPortal));
    const { token } = await signIn(server.rootKey);
    const load = async () => {
      const all = Array.from({ length: 5 }, () => [
        ...portals.map((one) => list(server, one.token)),
        browse(server, token),
      ]);
      for (const status of await Promise.all(all.flat())) assert.equal(status, 200);
    };
    const first = await readsDuring(load);
    assert(first >= 2 && first <= 8, `${first} queries for 20 calls`);
    assert.equal(await readsDuring(load), 0);
    await server.pass(SECOND - 1);
    assert.equal(await readsDuring(load), 0);
    await server.pass(1);
    assert((await readsDuring(load)) <= 8);
  });

  it("that has ended is dead on its node at once, and within a second on others", async () => {
    const node = await new TestServer({ ...server.options, beside: server }).open();
    try {
      const { key: rootKey, rootKeyId } = await server.grant("*");
      const portals = {
        "one session": await openPortal("one"),
        "of an identity": await openPortal("identity"),
        "of an API": await openPortal("api"),
        "beyond the maximum": await openPortal("maximum"),
        "owner deleted": await openPortal("owner"),
      };
      const dashboards = {
        "one session": await signIn(rootKey),
        "signed out": await signIn(rootKey),
        all: await signIn(rootKey),
      };
      const statuses = (on: TestServer) =>
        Promise.all([
          ...Object.values(portals).map(({ token }) => list(on, token)),
          ...Object.values(dashboards).map(({ token }) => browse(on, token)),
        ]);
      const alive = Array(8).fill(200);
      assert.deepEqual(await statuses(server), alive);
      assert.deepEqual(await statuses(node), alive);

      const { "one session": one, "of an identity": identity, "of an API": api, "beyond the maximum": max } = portals;
      await server.ok("portal.deletePortalSessions", { apiId: one.apiId, sessionId: one.sessionId });
      await server.ok("portal.deletePortalSessions", { apiId: identity.apiId, identity: "identity" });
      await server.ok("portal.deletePortalSessions", { apiId: api.apiId });
      for (let i = 0; i < 20; i++) {
        const wanted = { apiId: max.apiId, externalId: max.externalId, actions: ["list"] };
        await server.advance(1);
        await server.ok("portal.createSession", wanted);
      }
      await server.ok("identities.deleteIdentity", { identity: "owner" });
      await server.ok("rootKeys.deleteSessions", { rootKeyId, sessionId: dashboards["one session"].sessionId });
      assert.equal(await browse(server, dashboards["signed out"].token, "DELETE"), 200);
      assert.deepEqual(await statuses(server), [...Array(5).fill(401), 401, 401, 200]);
      await server.ok("rootKeys.deleteSessions", { rootKeyId });
      const dead = Array(8).fill(401);
      assert.deepEqual(await statuses(server), dead);
      await node.pass(SECOND);
      assert.deepEqual(await statuses(node), dead);
    } finally {
      await node.close();
    }
  });

  it("is dead within a second although its end was not published, as by a node of the previous release", async () => {
    const portal = await openPortal("unpublished");
    const { token, sessionId } = await signIn(server.rootKey);
    assert.deepEqual([await list(server, portal.token), await browse(server, token)], [200, 200]);
    await server.change(["unrelated"], async ({ db }) => {
      await db.deleteFrom("portal_sessions").where("id", "=", portal.sessionId).execute();
      await db.deleteFrom("sessions").where("id", "=", sessionId).execute();
    });
    await server.pass(SECOND);
    assert.deepEqual([await list(server, portal.token), await browse(server, token)], [401, 401]);
  });

  it("changes nothing after its end, also while it is cached", async () => {
    const portal = await openPortal("transaction");
    const { token } = await server.ok("portal.createSession", {
      ...portal,
      token: undefined,
      sessionId: undefined,
      actions: ["create"],
    });
    assert.equal((await callPortal(server, token, "getSession")).status, 200);
    await server.change(["unrelated"], ({ db }) => db.deleteFrom("portal_sessions").execute());
    assert.equal((await callPortal(server, token, "createKey")).status, 401);
    assert.equal((await server.ok("apis.countKeys", { apiId: portal.apiId })).count, 0);
  });

  it("goes on after calls on another node, and ends when none was made anywhere", async () => {
    const node = await new TestServer({ ...server.options, beside: server }).open();
    try {
      const { token, sessionId } = await signIn(server.rootKey);
      /** The session as after this time without a call. */
      const age = async (length: number) => {
        await server.change([], async ({ db }) => {
          await db
            .updateTable("sessions")
            .set((eb) => ({ last_used_at: eb("last_used_at", "-", length) }))
            .where("id", "=", sessionId)
            .execute();
        });
        await server.pass(SECOND);
      };
      // Each node alone is without a call for longer than a session may be.
      for (const on of [server, node, server, node, server, node]) {
        assert.equal(await browse(on, token), 200);
        await age(7 * HOUR);
      }
      assert.equal(await browse(server, token), 200);
      await age(12 * HOUR);
      assert.deepEqual([await browse(server, token), await browse(node, token)], [401, 401]);
    } finally {
      await node.close();
    }
  });

  it("of the previous release, whose token has no signature, works until it ends", async () => {
    const portal = await openPortal("former");
    const { token, sessionId } = await signIn(server.rootKey);
    const former = { portal: `lk_portal_${"A".repeat(39)}`, dashboard: "A".repeat(43) };
    assert.deepEqual([former.dashboard.length, token.length], [43, 43]);
    await server.change(["unrelated"], async ({ db }) => {
      const hashes = { portal: hashSecret(former.portal), dashboard: hashSecret(former.dashboard) };
      await db.updateTable("portal_sessions").set({ hash: hashes.portal }).where("id", "=", portal.sessionId).execute();
      await db.updateTable("sessions").set({ hash: hashes.dashboard }).where("id", "=", sessionId).execute();
    });
    for (let i = 0; i < 3; i++) {
      assert.deepEqual([await list(server, former.portal), await browse(server, former.dashboard)], [200, 200]);
      await server.pass(SECOND);
    }
    assert.equal(await browse(server, former.dashboard, "DELETE"), 200);
    await server.ok("portal.deletePortalSessions", { apiId: portal.apiId });
    assert.deepEqual([await list(server, former.portal), await browse(server, former.dashboard)], [401, 401]);
  });
});
