/** Sessions of the portal: what the owner of keys does in one. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";
import { callPortal } from "../portal-caller.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ALL = ["list", "create", "reroll", "rename", "delete", "usage"];

/** A session of the owner "ada", with a way to call in it. */
async function openSession(server: TestServer, more: object = {}, as?: string) {
  const apiId = await server.createApi();
  const body = { apiId, externalId: "ada", actions: ALL, ...more };
  const session = await server.ok("portal.createSession", body, as === undefined ? {} : { as });
  const call = (name: string, input: object = {}) => callPortal(server, session.token, name, input);
  const ok = async (name: string, input: object = {}) => {
    const reply = await call(name, input);
    assert.equal(reply.status, 200, JSON.stringify(reply.body));
    return reply.body.data;
  };
  return { apiId, session, call, ok };
}

describeOnStores("a session of the portal", (server) => {
  it("lets an owner create, see, rename, reroll and delete keys", async () => {
    const { apiId, session, ok } = await openSession(server, {
      keys: { max: 3 },
      page: { name: "Acme", color: "#246BCE" },
    });
    assert.match(session.token, /^lk_portal_[0-9A-Za-z]{30,}$/);
    assert.equal(session.url, `/portal#${session.token}`);
    assert.equal(session.expiresAt, server.clock.now() + 15 * MINUTE);
    const { actions, keys, page, expiresIn } = await ok("getSession");
    assert.deepEqual(actions, ALL);
    assert.deepEqual(keys, { max: 3, prefixes: null, expiresInMax: null, roles: [] });
    assert.deepEqual(page, { name: "Acme", logoUrl: null, color: "#246BCE", language: null, returnUrl: null });
    assert.equal(expiresIn, 15 * MINUTE);

    assert.deepEqual(await ok("listKeys"), []);
    const { keyId, key } = await ok("createKey", { name: "laptop" });
    assert.equal((await server.verify(key)).identity.externalId, "ada");
    const [listed] = await ok("listKeys");
    assert.deepEqual([listed.keyId, listed.name, listed.enabled], [keyId, "laptop", true]);
    assert(key.startsWith(listed.start));

    await ok("renameKey", { keyId, name: "phone" });
    assert.equal((await server.getKey(keyId)).name, "phone");
    await ok("renameKey", { keyId, name: null });
    assert.equal((await server.getKey(keyId)).name, undefined);

    const rerolled = await ok("rerollKey", { keyId, expiration: HOUR });
    assert.equal((await server.verify(key)).code, "VALID");
    assert.equal((await server.verify(rerolled.key)).identity.externalId, "ada");
    assert.equal((await ok("listKeys")).length, 2);

    await ok("deleteKey", { keyId: rerolled.keyId });
    assert.equal((await server.verify(rerolled.key)).code, "NOT_FOUND");
    const events = await server.ok("audit.listEvents", { target: keyId });
    const done = events.map(({ action }: { action: string }) => action).sort();
    assert.deepEqual(
      done,
      ["createKey", "renameKey", "renameKey", "rerollKey"].map((name) => `portal.${name}`),
    );
    for (const { meta } of events) assert.equal(meta.session, session.sessionId);
    const [created] = await server.ok("audit.listEvents", { target: session.sessionId });
    assert.deepEqual([created.action, created.targets.includes(apiId)], ["portal.createSession", true]);
  });

  it("lists what was derived of the owner's keys, and ends it (rule 141)", async () => {
    const { apiId, call, ok } = await openSession(server);
    const { keyId } = await server.createKey(apiId, { externalId: "ada" });
    const { keyId: plain } = await server.createKey(apiId, { externalId: "ada" });
    const derive = async (of: string, more: object = {}) => {
      await server.advance(1);
      return server.ok("keys.deriveKey", { keyId: of, ttl: HOUR, ...more });
    };
    const limit = { name: "agent", limit: 5, duration: MINUTE };
    const secret = { permissions: ["internal.read"], meta: { internal: true }, allowedIps: ["192.0.2.0/24"] };
    const child = await derive(keyId, { ratelimits: [limit], credits: { max: 9 }, ...secret });
    const grandchild = await derive(child.keyId);
    const sibling = await derive(keyId);
    const counts = async () => {
      const keys: { keyId: string; derivedKeys?: number }[] = await ok("listKeys");
      return new Map(keys.map((key) => [key.keyId, key.derivedKeys]));
    };
    assert.deepEqual([(await counts()).get(keyId), (await counts()).get(plain)], [3, undefined]);
    const listed = await ok("listDerivedKeys", { keyId });
    assert.deepEqual(listed[0], {
      keyId: child.keyId,
      parentKeyId: keyId,
      start: child.key.slice(0, 4),
      createdAt: listed[0].createdAt,
      expires: child.expires,
      credits: { remaining: 9 },
      ratelimits: [limit],
    });
    const ids = async () => (await ok("listDerivedKeys", { keyId })).map((one: { keyId: string }) => one.keyId);
    assert.deepEqual(await ids(), [child.keyId, grandchild.keyId, sibling.keyId]);
    const first = await call("listDerivedKeys", { keyId, limit: 2 });
    const { cursor } = first.body.pagination;
    assert.deepEqual(
      (await ok("listDerivedKeys", { keyId, limit: 2, cursor })).map((one: { keyId: string }) => one.keyId),
      [sibling.keyId],
    );
    assert(!JSON.stringify([listed, await ok("listKeys")]).includes("internal"));

    await ok("deleteKey", { keyId: child.keyId });
    for (const { key } of [child, grandchild]) assert.equal((await server.verify(key)).code, "NOT_FOUND");
    assert.equal((await server.verify(sibling.key)).code, "VALID");
    assert.deepEqual(await ids(), [sibling.keyId]);
    assert.equal((await call("deleteKey", { keyId: child.keyId })).problem, "key_not_found");
    const [ended] = await server.ok("audit.listEvents", { target: child.keyId, limit: 1 });
    assert.equal(ended.action, "portal.deleteKey");
    // An expired one is no longer listed, and one that was derived of a derived key has no list of its own here.
    assert.equal((await call("listDerivedKeys", { keyId: sibling.keyId })).problem, "key_not_found");
    const brief = await server.ok("keys.deriveKey", { keyId: plain, ttl: MINUTE });
    assert.equal((await counts()).get(plain), 1);
    server.clock.step(MINUTE);
    assert.deepEqual([(await counts()).get(plain), await ok("listDerivedKeys", { keyId: plain })], [undefined, []]);
    assert.equal((await server.verify(brief.key)).code, "EXPIRED");
  });

  it("shows credits, limits and usage, and nothing that is for the operator", async () => {
    const { apiId, ok } = await openSession(server);
    const { key, keyId } = await server.createKey(apiId, {
      externalId: "ada",
      meta: { plan: "internal" },
      permissions: ["internal.read"],
      credits: { remaining: 10 },
      ratelimits: [{ name: "requests", limit: 5, duration: MINUTE, autoApply: true }],
    });
    await server.ok("identities.updateIdentity", {
      identity: "ada",
      meta: { margin: "internal" },
      ratelimits: [{ name: "shared", limit: 7, duration: MINUTE }],
    });
    for (let call = 0; call < 3; call++) await server.verify(key, { tags: ["internal"] });
    await server.pass(1_000);
    const [listed] = await ok("listKeys");
    assert.deepEqual(listed.credits, { remaining: 7 });
    assert.deepEqual(
      listed.ratelimits.map(({ name, limit }: { name: string; limit: number }) => [name, limit]),
      [
        ["requests", 5],
        ["shared", 7],
      ],
    );
    const usage = await ok("getUsage", { keyId, days: 7 });
    assert.deepEqual([usage.total, usage.valid, usage.creditsSpent, usage.series.length], [3, 3, 3, 7]);
    assert.equal(usage.series.at(-1).total, 3);
    assert.equal(usage.granularity, "day");
    assert(!JSON.stringify([listed, usage]).includes("internal"));
  });

  it("inherits the actions and the look that the API says, as far as the session names none", async () => {
    const { apiId } = await openSession(server);
    const look = { name: "Acme", logoUrl: "https://acme.example/a.svg", color: "#246bce", language: "pt" };
    await server.ok("apis.updateApi", { apiId, portal: { actions: ["list", "usage"], page: look } });
    const sessionOf = async (input: object) => {
      const { token } = await server.ok("portal.createSession", { apiId, externalId: "ada", ...input });
      return (await callPortal(server, token, "getSession")).body.data;
    };
    const inherited = await sessionOf({});
    assert.deepEqual(inherited.actions, ["list", "usage"]);
    assert.deepEqual(inherited.page, { ...look, returnUrl: null });
    const own = await sessionOf({ actions: ["list"], page: { language: "ar", returnUrl: "https://acme.example/" } });
    assert.deepEqual(own.actions, ["list"]);
    assert.deepEqual(own.page, { ...look, language: "ar", returnUrl: "https://acme.example/" });

    await server.ok("apis.updateApi", { apiId, portal: null });
    const { body } = await server.call("portal.createSession", { apiId, externalId: "ada" });
    assert.match(body.error.detail, /^Name the `actions` of the session, or set those of its API/);
  });

  it("cannot inherit what its root key may not do", async () => {
    const { apiId } = await openSession(server);
    await server.ok("apis.updateApi", { apiId, portal: { actions: ["list", "delete"] } });
    const { key } = await server.grant(`apis.${apiId}.create_portal_session`, `apis.${apiId}.read_key`);
    const { status, body } = await server.call("portal.createSession", { apiId, externalId: "ada" }, { as: key });
    assert.equal(status, 403);
    assert.match(body.error.detail, /delete_key/);
  });

  it("inherits no action that the root key which set it lacked", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "payments" });
    const { key: as } = await server.grant(`apis.${apiId}.update_api`, `apis.${apiId}.read_key`);
    await server.ok("apis.updateApi", { apiId, portal: { actions: ["list"] } }, { as });
    const { status, body } = await server.call(
      "apis.updateApi",
      { apiId, portal: { actions: ["list", "delete"] } },
      { as },
    );
    assert.equal(status, 403);
    assert.match(body.error.detail, /delete_key/);
    assert.deepEqual((await server.ok("apis.getApi", { apiId })).portal.actions, ["list"]);
  });

  it("says that a key has leaked, and counts the usage of all keys together", async () => {
    const { apiId, ok } = await openSession(server, { actions: ["usage", "list"] });
    const first = await server.createKey(apiId, { externalId: "ada" });
    await server.advance(1);
    const second = await server.createKey(apiId, { externalId: "ada" });
    const other = await server.createKey(apiId, { externalId: "grace" });
    for (const { key } of [first, first, second, other]) await server.verify(key);
    await server.pass(1_000);
    const usage = await ok("getTotalUsage", { days: 7 });
    assert.deepEqual([usage.total, usage.valid, usage.series.length, usage.series.at(-1).total], [3, 3, 7, 3]);
    const at = server.clock.now();
    await server.ok("keys.reportLeak", { key: first.key });
    await server.store.settled();
    const listed = await ok("listKeys");
    assert.deepEqual(
      listed.map(({ keyId, leakedAt }: { keyId: string; leakedAt?: number }) => [keyId, leakedAt]),
      [
        [second.keyId, undefined],
        [first.keyId, at],
      ],
    );
  });

  it("lists long lists by pages, the newest first", async () => {
    const { apiId, call } = await openSession(server);
    const made: string[] = [];
    for (let i = 0; i < 5; i++) {
      made.push((await server.createKey(apiId, { externalId: "ada" })).keyId);
      await server.advance(1);
    }
    await server.createKey(apiId, { externalId: "bob" });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await call("listKeys", { limit: 2, ...(cursor !== undefined && { cursor }) });
      seen.push(...body.data.map(({ keyId }: { keyId: string }) => keyId));
      cursor = body.pagination.cursor;
    } while (cursor !== undefined);
    assert.deepEqual(seen, made.reverse());
  });

  it("limits the number, the prefix, the life and the roles of new keys (rule 210)", async () => {
    for (const role of ["reader", "writer", "owner"])
      await server.createRole(`${role} ${server.options.store}`, "documents.read");
    const [reader, writer, owner] = ["reader", "writer", "owner"].map((role) => `${role} ${server.options.store}`);
    const { apiId, call, ok } = await openSession(server, {
      keys: { max: 3, prefixes: ["live", "test"], expiresInMax: 30 * DAY, roles: [reader, writer] },
    });
    const rejected = async (input: object, problem: string, detail: RegExp) => {
      const reply = await call("createKey", input);
      assert.equal(reply.problem, problem, JSON.stringify(reply.body));
      assert.match(reply.body.error.detail, detail);
    };
    const first = await ok("createKey");
    assert.match(first.key, /^live_/);
    const key = await server.getKey(first.keyId);
    assert.deepEqual([key.roles, key.expires], [[reader, writer], server.clock.now() + 30 * DAY]);
    const second = await ok("createKey", { prefix: "test", expiresIn: MINUTE, roles: [reader] });
    assert.match(second.key, /^test_/);
    assert.deepEqual((await server.getKey(second.keyId)).roles, [reader]);
    await rejected({ prefix: "root" }, "invalid_input", /prefix/);
    await rejected({ expiresIn: 31 * DAY }, "invalid_input", /expiresIn/);
    await rejected({ roles: [owner] }, "invalid_input", /roles/);
    await server.createKey(apiId, { externalId: "ada", enabled: false });
    await rejected({}, "maximum_reached", /^There are 3 keys already/);
    // A key that has expired makes room.
    await server.pass(MINUTE - 1);
    await rejected({}, "maximum_reached", /maximum/);
    await server.pass(1);
    await ok("createKey");
  });

  it("never has more than one key above the maximum by rerolls (rule 210)", async () => {
    const { call, ok } = await openSession(server, { keys: { max: 1 } });
    const { keyId } = await ok("createKey");
    const second = await ok("rerollKey", { keyId, expiration: HOUR });
    assert.equal((await call("rerollKey", { keyId, expiration: HOUR })).problem, "maximum_reached");
    assert.equal((await call("createKey")).problem, "maximum_reached");
    // Without overlap the number stays the same.
    const third = await ok("rerollKey", { keyId: second.keyId, expiration: 0 });
    assert.equal((await server.verify(third.key)).code, "VALID");
    assert.equal((await call("rerollKey", { keyId: third.keyId, expiration: HOUR })).problem, "maximum_reached");
  });

  it("is listed, and ended by itself, by owner or with all of its API", async () => {
    const { apiId, session, call } = await openSession(server);
    const open = (more: object) => server.ok("portal.createSession", { apiId, actions: ["list"], ...more });
    await server.advance(1);
    const bob = await open({ externalId: "bob", expiresIn: MINUTE });
    await server.advance(1);
    const again = await open({ identity: "ada" });
    const list = async (more: object = {}) =>
      (await server.ok("portal.listPortalSessions", { apiId, ...more })).map(
        ({ sessionId, externalId }: { sessionId: string; externalId: string }) => [sessionId, externalId],
      );
    const [ada, ofBob, adaAgain] = [
      [session.sessionId, "ada"],
      [bob.sessionId, "bob"],
      [again.sessionId, "ada"],
    ];
    assert.deepEqual(await list(), [ada, ofBob, adaAgain]);
    assert.deepEqual(await list({ identity: "ada" }), [ada, adaAgain]);
    assert.deepEqual(await list({ identity: "nobody" }), []);
    const [entry] = await server.ok("portal.listPortalSessions", { apiId, limit: 1 });
    assert.deepEqual(entry.actions, ALL);
    assert(!JSON.stringify(entry).includes("lk_portal"));

    const end = (more: object) => server.ok("portal.deletePortalSessions", { apiId, ...more });
    assert.deepEqual(await end({ sessionId: again.sessionId, identity: "bob" }), { deleted: 0 });
    assert.deepEqual(await end({ sessionId: again.sessionId }), { deleted: 1 });
    assert.equal((await callPortal(server, again.token, "listKeys")).problem, "authentication_failed");
    assert.equal((await call("listKeys")).status, 200);
    assert.deepEqual(await end({ identity: "nobody" }), { deleted: 0 });
    assert.deepEqual(await end({ identity: "ada" }), { deleted: 1 });
    assert.deepEqual(await list(), [ofBob]);
    await server.pass(MINUTE);
    assert.deepEqual(await list(), []);
    await open({ externalId: "bob" });
    assert.deepEqual(await end({}), { deleted: 2 });
    for (const name of ["portal.listPortalSessions", "portal.deletePortalSessions"]) {
      await server.rejected(name, { apiId: "api_never0existed000" }, "api_not_found");
    }
  });

  it("needs exactly one owner, and roles and an identity that exist", async () => {
    const apiId = await server.createApi();
    const rejected = (more: object, problem: "invalid_input" | "identity_not_found" | "role_not_found") =>
      server.rejected("portal.createSession", { apiId, actions: ["list"], ...more }, problem);
    await rejected({}, "invalid_input");
    await rejected({ externalId: "ada", identity: "ada" }, "invalid_input");
    await rejected({ identity: "nobody" }, "identity_not_found");
    await rejected({ externalId: "ada", keys: { roles: ["nothing"] } }, "role_not_found");
    for (const url of ["javascript:alert(1)", "data:text/html,x", "//evil.example", "https://a:b@evil.example/", "x"]) {
      await rejected({ externalId: "ada", page: { returnUrl: url } }, "invalid_input");
      await rejected({ externalId: "ada", page: { logoUrl: url } }, "invalid_input");
    }
    await rejected({ externalId: "ada", page: { logoUrl: "http://evil.example/logo.svg" } }, "invalid_input");
    for (const color of ["red", "#12345", "#1234567", "#12345g", "url(x)"]) {
      await rejected({ externalId: "ada", page: { color } }, "invalid_input");
    }
    await rejected({ externalId: "ada", expiresIn: HOUR + 1 }, "invalid_input");
  });
});

it("the address of a session begins with the public address of the service", async (t) => {
  const server = await openTestServer({ settings: { PUBLIC_URL: "https://keys.example.com/latchkey" } });
  t.after(() => server.close());
  const { session } = await openSession(server);
  assert.equal(session.url, `https://keys.example.com/latchkey/portal#${session.token}`);
});
