/** What a long-lived service deletes, and that it never brings anything back. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { sql as raw } from "kysely";
import { instantAt } from "../../../engine/src/clock/clock.ts";
import { describeOnStores, openTestServer } from "../harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describeOnStores(
  "a service that runs for long",
  (server, store) => {
    /** Lets the marks of purged keys become old enough on PostgreSQL, whose own clock decides. */
    const age = () => server.change([], ({ db }) => raw`update purged_keys set purged_at = 0`.execute(db));
    const pass = async (length: number) => {
      for (let left = length; left > 0; left -= 10_000) {
        await server.advance(10_000);
        await server.store.settled();
        await server.analytics.settled();
      }
    };
    const passRetention = async () => {
      await pass(11 * MINUTE);
      await age();
      await pass(3 * MINUTE);
    };

    it("forgets keys that were deleted long ago, with everything that was theirs", async () => {
      const apiId = await server.createApi("kept");
      const doomed = await server.createApi("deleted");
      const made = { credits: { remaining: 5 }, ratelimits: [{ name: "a", limit: 5, duration: 60_000 }], roles: [] };
      await server.createRole("reader", "documents.read");
      const deleted = await server.createKey(apiId, { ...made, externalId: "user_1", permissions: ["documents.read"] });
      const ofApi = await server.createKey(doomed, made);
      const kept = await server.createKey(apiId, made);
      await server.ok("keys.deleteKey", { keyId: deleted.keyId });
      await server.ok("apis.deleteApi", { apiId: doomed });
      server.clock.step(22 * HOUR);
      const young = await server.createKey(apiId, made);
      await server.ok("keys.deleteKey", { keyId: young.keyId });
      const rows = async (table: "keys" | "balances" | "ratelimits" | "keys_permissions") =>
        (await server.rowsOf(table)).length;
      assert.deepEqual([await rows("keys"), await rows("balances")], [4, 4]);
      await passRetention();
      assert.equal(await rows("keys"), 4, "a key was forgotten before its time");

      server.clock.step(3 * HOUR);
      await passRetention();
      assert.deepEqual([await rows("keys"), await rows("balances"), await rows("ratelimits")], [2, 2, 2]);
      assert.equal(await rows("keys_permissions"), 0);
      for (const { key } of [deleted, ofApi, young]) assert.equal((await server.verify(key)).code, "NOT_FOUND");
      assert.equal((await server.verify(kept.key)).code, "VALID");
      // The log of what happened to it stays.
      const events = await server.ok("audit.listEvents", { target: deleted.keyId });
      assert.deepEqual((events.events ?? events).map(({ action }: { action: string }) => action).sort(), [
        "keys.createKey",
        "keys.deleteKey",
      ]);
    });

    it("forgets identities, namespaces and root keys that were deleted long ago, unless something refers to them", async () => {
      const apiId = await server.createApi("of identities");
      const limits = [{ name: "a", limit: 5, duration: 60_000 }];
      const identity = async (externalId: string) => {
        await server.ok("identities.createIdentity", { externalId, ratelimits: limits });
        return externalId;
      };
      const [alone, shared, living] = [await identity("alone"), await identity("shared"), await identity("living")];
      const ofShared = await server.createKey(apiId, { externalId: shared });
      await server.ok("ratelimits.limit", { namespace: "gone", identifier: "a", limit: 5, duration: 60_000 });
      await server.ok("ratelimits.limit", { namespace: "kept", identifier: "a", limit: 5, duration: 60_000 });
      await server.ok("ratelimits.setOverride", { namespace: "gone", identifier: "a", limit: 5, duration: 60_000 });
      const { rootKeyId } = await server.ok("rootKeys.createRootKey", { name: "gone", permissions: ["*"] });
      // Each of these was made by the one before it.
      const makers: { rootKeyId: string; key: string }[] = [];
      for (let i = 0; i < 5; i++) {
        const [as = server.rootKey, body] = [makers.at(-1)?.key, { name: "made", permissions: ["*"] }];
        makers.push(await server.ok("rootKeys.createRootKey", body, { as }));
      }
      for (const { rootKeyId } of makers.slice(1, 4)) await server.ok("rootKeys.deleteRootKey", { rootKeyId });
      for (const externalId of [alone, shared]) await server.ok("identities.deleteIdentity", { identity: externalId });
      await server.ok("ratelimits.deleteNamespace", { namespace: "gone" });
      await server.ok("rootKeys.deleteRootKey", { rootKeyId });
      const names = async (table: "identities" | "ratelimit_namespaces" | "root_keys", column: string) =>
        ((await server.rowsOf(table)) as Record<string, string>[]).map((row) => row[column]!);
      const identities = async () =>
        (await names("identities", "external_id")).filter((name) => [alone, shared, living].includes(name)).sort();
      server.clock.step(22 * HOUR);
      await passRetention();
      assert.deepEqual(await identities(), [alone, living, shared], "an identity was forgotten before its time");
      assert((await names("ratelimit_namespaces", "name")).includes("gone"));
      assert((await names("root_keys", "id")).includes(rootKeyId));

      server.clock.step(3 * HOUR);
      await passRetention();
      assert.deepEqual(await identities(), [living, shared]);
      assert.deepEqual(
        (await names("ratelimit_namespaces", "name")).filter((name) => name === "gone" || name === "kept"),
        ["kept"],
      );
      assert(!(await names("root_keys", "id")).includes(rootKeyId));
      const stored = await names("root_keys", "id");
      assert.deepEqual(
        makers.map((maker) => stored.includes(maker.rootKeyId)),
        [true, false, false, false, true],
      );
      const eldest = { rootKeyId: makers[0]!.rootKeyId, descendants: true };
      const deleted = await server.ok("rootKeys.deleteRootKey", eldest);
      assert.deepEqual(deleted, { deletedDescendants: 1, livingDescendants: 0 });
      assert.equal((await server.verify(ofShared.key)).code, "VALID");

      // With its last key, the other one goes too.
      await server.ok("keys.deleteKey", { keyId: ofShared.keyId });
      server.clock.step(25 * HOUR);
      await passRetention();
      // Identities are looked for less often than keys.
      await pass(11 * MINUTE);
      assert.deepEqual(await identities(), [living]);
      const limitsLeft = (await server.rowsOf("ratelimits")) as { identity_id: string | null }[];
      assert.equal(limitsLeft.filter(({ identity_id }) => identity_id !== null).length, 1);
    });

    it("does not let an import bring a forgotten key back", async () => {
      const apiId = await server.createApi("imported");
      const { key, keyId } = await server.createKey(apiId);
      await server.ok("keys.deleteKey", { keyId });
      server.clock.step(25 * HOUR);
      await passRetention();
      const hash = createHash("sha256").update(key).digest("hex");
      assert.equal(
        (await server.rowsOf("keys")).some((row) => (row as { id: string }).id === keyId),
        false,
      );
      const { migrated, failed } = await server.ok("keys.migrateKeys", {
        apiId,
        migrationId: "again",
        algorithm: "sha256",
        keys: [{ hash }],
      });
      assert.deepEqual([migrated.length, failed.length], [0, 1]);
      assert.equal((await server.verify(key)).code, "NOT_FOUND");

      // A node of the previous release inserts without asking.
      const before = (await server.rowsOf("keys")).length;
      await server.change([], async ({ db }) => {
        const row = await db.selectFrom("purged_keys").selectAll().limit(1).executeTakeFirstOrThrow();
        const columns = { id: "key_revived", api_id: apiId, pool_id: "pool_x", hash_version: 1, start: "", enabled: 1 };
        await db
          .insertInto("keys")
          .values({
            ...columns,
            hash: row.hash,
            workspace_id: row.workspace_id,
            recoverable: 0,
            created_at: instantAt(0),
          } as never)
          .execute();
      });
      assert.equal((await server.rowsOf("keys")).length, before);
    });

    it("deletes old entries of the audit log, and only those", async () => {
      const apiId = await server.createApi("logged");
      server.clock.step(95 * HOUR);
      await server.createKey(apiId);
      server.clock.step(3 * HOUR);
      await passRetention();
      const events = (await server.rowsOf("audit_events")) as { id: string; action: string; occurred_at: number }[];
      const oldest = Math.min(...events.map(({ occurred_at }) => occurred_at));
      assert(
        oldest >= server.clock.now() - 96 * HOUR - 20 * MINUTE,
        `an entry is ${server.clock.now() - oldest} ms old`,
      );
      assert(events.some(({ action }) => action === "keys.createKey"));
      assert(!events.some(({ action }) => action === "apis.createApi"));
      const targets = (await server.rowsOf("audit_targets")) as { event_id: string }[];
      const ids = new Set(events.map(({ id }) => id));
      assert(targets.length > 0 && targets.every(({ event_id }) => ids.has(event_id)));
    });

    it("reports what it deleted", async () => {
      const metrics = await server.scrape();
      assert.match(metrics, /^latchkey_retention_lease 1$/m);
      for (const table of ["keys", "audit_events"]) {
        assert.match(metrics, new RegExp(`^latchkey_retention_deleted_total\\{table="${table}"\\} [1-9]\\d*$`, "m"));
        assert.match(metrics, new RegExp(`^latchkey_retention_lag_seconds\\{table="${table}"\\} 0$`, "m"));
      }
      assert(server.logged.some(({ message }) => message === "rows beyond their retention were deleted"));
      assert.deepEqual(
        server.logged.filter(({ message }) => message === "rows beyond their retention could not be deleted"),
        [],
        store,
      );
    });
  },
  { RETENTION_DELETED: "1d", RETENTION_AUDIT: "4d" },
);

describe("an embedded database whose clock jumps ahead", () => {
  it("deletes nothing for its age in the hour after that, and no event if the clock is set right (rule 240)", async (t) => {
    const server = await openTestServer({ store: "sqlite" });
    t.after(() => server.close());
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    await server.ok("keys.deleteKey", { keyId });
    const pass = async (length: number) => {
      for (let left = length; left > 0; left -= 20_000) {
        await server.advance(20_000);
        await server.store.settled();
        await server.analytics.settled();
      }
    };
    const isRestorable = async () => (await server.call("keys.getKey", { keyId, deleted: true })).status === 200;
    const warned = () => server.logged.filter(({ message }) => /jumped ahead by more than a week/.test(message)).length;
    await pass(MINUTE);
    const before = (await server.rowsOf("events")).length;
    for (const _ of ["first", "second"]) {
      server.clock.step(400 * 24 * HOUR);
      await pass(50 * MINUTE);
      assert.equal(await isRestorable(), true);
      server.clock.step(-400 * 24 * HOUR);
      await pass(15 * MINUTE);
      assert.equal(await isRestorable(), true);
    }
    assert.equal((await server.rowsOf("events")).length, before);
    assert.equal(warned(), 2);

    // It is right: nobody sets it back.
    server.clock.step(400 * 24 * HOUR);
    await pass(75 * MINUTE);
    assert.equal(await isRestorable(), false);
    assert((await server.rowsOf("events")).length < before);
    assert.equal(warned(), 3);
  });
});

describe("two nodes", () => {
  it("do the work one at a time, and a former holder changes nothing", async (t) => {
    const first = await openTestServer({ store: "postgres" });
    const second = await openTestServer({ store: "postgres", beside: first });
    t.after(async () => {
      await second.close();
      await first.close();
    });
    const holders = async () =>
      (await Promise.all([first, second].map((node) => node.scrape()))).map((text) =>
        /^latchkey_retention_lease 1$/m.test(text),
      );
    const pass = async () => {
      for (let i = 0; i < 60; i++) {
        await first.pass(500);
        await second.store.settled();
      }
    };
    await pass();
    const before = await holders();
    assert.deepEqual([...before].sort(), [false, true]);
    await pass();
    assert.deepEqual(await holders(), before);

    // The holder does nothing for longer than its lease lasts, so the other one takes over.
    const [frozen, other] = before[0] ? [first, second] : [second, first];
    frozen.store.interception = async () => {
      throw new Error("frozen");
    };
    await first.change([], ({ db }) => raw`update leases set expires_at = 0`.execute(db));
    const [row] = (await first.rowsOf("leases")) as { token: number; holder: string }[];
    const lease = { name: "retention" as const, holder: row!.holder, token: Number(row!.token) };
    await pass();
    assert.equal(/^latchkey_retention_lease 1$/m.test(await other.scrape()), true);
    frozen.store.interception = undefined;
    const times = { audit: 1, events: 1, deleted: 1, holds: 1, expiredHolds: 1 };
    const entries = (await first.rowsOf("audit_events")).length;
    await assert.rejects(
      frozen.store.transact("retain", { table: "audit_events", times, now: first.clock.now(), lease }),
      { name: "LeaseLost" },
    );
    assert.equal((await first.rowsOf("audit_events")).length, entries);
  });
});
