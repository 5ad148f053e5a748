import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { sql as raw } from "kysely";
import { readHash } from "../../../engine/src/rules/imported-keys.ts";
import { SHORT_LIST_LENGTH_MAX } from "../../src/platform/rpc/long-body.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";
import { eventually } from "../process.ts";

const sha256 = (text: string, encoding: "hex" | "base64" | "base64url" = "hex") =>
  createHash("sha256").update(text).digest(encoding);
const sha512 = (text: string) => createHash("sha512").update(text).digest("hex");
const hmac = (pepper: string | Buffer, text: string) => createHmac("sha256", pepper).update(text).digest("hex");
let made = 0;
/** A key string that another system issued. */
const foreignKey = () => `sk_live_${sha256(`foreign ${++made}`, "base64url")}`;
const unique = (name: string) => `${name} ${++made}`;

/** Advances the clock during a transaction, and waits for the transactions that the service begins then. */
async function passAlone({ clock, store }: TestServer, length: number): Promise<void> {
  clock.advance(length);
  while (store.writesInFlight > 1) await setImmediate();
}

/** Imports key strings by their SHA-256, unless `more` says otherwise. */
async function migrate(server: TestServer, keys: readonly object[], more: object = {}) {
  const apiId = await server.createApi();
  const input = { migrationId: unique("migration"), apiId, ...more, keys };
  return { apiId, ...(await server.ok("keys.migrateKeys", input)) } as {
    apiId: string;
    migrated: { hash: string; keyId: string }[];
    failed: string[];
  };
}

describeOnStores(
  "imported keys",
  (server) => {
    it("verify at once, for every encoding of their SHA-256", async () => {
      const keys = [foreignKey(), foreignKey(), foreignKey()];
      // A caller tried one before the import.
      assert.equal((await server.verify(keys[0]!)).code, "NOT_FOUND");
      const hashes = [sha256(keys[0]!), sha256(keys[1]!, "base64"), sha256(keys[2]!, "base64url")];
      const { apiId, migrated, failed } = await migrate(
        server,
        hashes.map((hash) => ({ hash })),
      );
      assert.deepEqual(failed, []);
      assert.deepEqual(
        migrated.map(({ hash }) => hash),
        hashes,
      );
      for (const [i, key] of keys.entries()) {
        const verified = await server.verify(key, { apiId });
        assert.deepEqual([verified.code, verified.keyId], ["VALID", migrated[i]!.keyId]);
      }
      assert.equal((await server.verify(foreignKey())).code, "NOT_FOUND");
    });

    it("are only looked up by a dry run", async () => {
      const [present, fresh] = [sha256(foreignKey()), sha256(foreignKey())];
      const { apiId } = await migrate(server, [{ hash: present }]);
      const migrationId = unique("migration");
      const input = { migrationId, apiId, keys: [{ hash: present }, { hash: fresh, externalId: unique("dry_owner") }] };
      const changes = async () => (await server.ok("audit.listEvents", {})).length;
      const before = await changes();
      const asked = await server.ok("keys.migrateKeys", { ...input, dryRun: true });
      assert.deepEqual(asked, { migrated: [], failed: [present] });
      assert.equal(await changes(), before);
      const { status } = await server.call("keys.migrateKeys", { ...input, apiId: "api_none", dryRun: true });
      assert.equal(status, 404);
      // The migration was not begun, so its algorithm is open.
      const longHash = sha512(foreignKey());
      const begun = await server.ok("keys.migrateKeys", { ...input, algorithm: "sha512", keys: [{ hash: longHash }] });
      assert.equal(begun.migrated.length, 1);
      const mismatch = await server.call("keys.migrateKeys", { ...input, dryRun: true });
      assert.equal(mismatch.status, 400);
      assert.deepEqual((await server.ok("keys.migrateKeys", { ...input, migrationId: unique("m") })).failed, [present]);
    });

    it("are the same in a dry run and in an import, also if a hash is twice in a long list", async () => {
      const digests = Array.from({ length: 60 }, () => createHash("sha256").update(foreignKey()).digest());
      const keys = [...digests, digests[0]!, digests[59]!, digests[0]!].map((digest, i) => ({
        hash: digest.toString(i < 61 ? "hex" : "base64"),
      }));
      const repeated = keys.slice(60).map(({ hash }) => hash);
      const [asked, done] = [await migrate(server, keys, { dryRun: true }), await migrate(server, keys)];
      assert.deepEqual(asked.failed.toSorted(), repeated.toSorted());
      assert.deepEqual(done.failed.toSorted(), repeated.toSorted());
    });

    it("have a start from their first verification on", async () => {
      const key = foreignKey();
      const { migrated } = await migrate(server, [{ hash: sha256(key), enabled: false }]);
      const { keyId } = migrated[0]!;
      assert.equal((await server.getKey(keyId)).start, "");
      assert.equal((await server.verify(key)).code, "DISABLED");
      assert.equal((await server.getKey(keyId)).start, "");
      await server.ok("keys.updateKey", { keyId, enabled: true });
      const updated = await server.getKey(keyId);
      for (let time = 0; time < 2; time++) {
        assert.equal((await server.verify(key)).code, "VALID");
        // The answer does not wait until the start is stored.
        await eventually("the start", async () => (await server.getKey(keyId)).start !== "");
        assert.deepEqual(await server.getKey(keyId), { ...updated, start: "sk_live" });
      }
      assert.equal((await server.ok("keys.whoami", { key })).keyId, keyId);
    });

    it("keep all properties; missing identities and permissions are created once (rule 29)", async () => {
      await server.createRole("migrated editor", "migrated.write");
      const { identityId } = await server.ok("identities.createIdentity", { externalId: "migrated_user" });
      const [one, two] = [foreignKey(), foreignKey()];
      const more = {
        meta: { plan: "pro", nested: [1, { a: null }] },
        externalId: "migrated_user",
        roles: ["Migrated Editor", "migrated reader", "migrated reader"],
        permissions: ["Migrated.Read", "migrated.read", "migrated.write"],
        expires: 4_000_000_000_000,
        credits: { remaining: 7, refill: { interval: "monthly", amount: 9, refillDay: 31 } },
        ratelimits: [{ name: "requests", limit: 3, duration: 60_000, autoApply: true }],
      };
      const { migrated } = await migrate(server, [
        { hash: sha256(one), name: "one", ...more },
        { hash: sha256(two), ...more, externalId: "odd id/with blanks", credits: { remaining: null } },
      ]);
      const [first, second] = [await server.getKey(migrated[0]!.keyId), await server.getKey(migrated[1]!.keyId)];
      assert.equal(first.name, "one");
      assert.deepEqual(first.meta, more.meta);
      assert.deepEqual(first.roles, ["migrated editor", "migrated reader"]);
      assert.deepEqual(first.permissions, second.permissions);
      assert.deepEqual(first.permissions.map((slug: string) => slug.toLowerCase()).sort(), [
        "migrated.read",
        "migrated.write",
      ]);
      assert.deepEqual(first.credits, more.credits);
      assert.equal(second.credits, undefined);
      assert.equal(first.identity.id, identityId);
      assert.equal(second.identity.externalId, "odd id/with blanks");
      const [{ id, ...limit }] = first.ratelimits;
      assert.match(id, /^rl_/);
      assert.deepEqual(limit, more.ratelimits[0]);
      const verified = await server.verify(one, { permissions: "migrated.write" });
      assert.deepEqual([verified.code, verified.credits, verified.ratelimits[0].remaining], ["VALID", 6, 2]);

      const rows = await server.rows();
      const count = (table: string, text: string) => rows[table]!.filter((row) => String(row).includes(text)).length;
      assert.equal(count("roles", "migrated reader"), 1);
      assert.equal(count("roles", "editor"), 1);
      assert.equal(count("identities", '"migrated_user"'), 1);
      assert.equal(count("permissions", '"migrated.read"'), 1);
    });

    it("are rejected individually if they exist or occur twice (rule 29)", async () => {
      const [known, twice, fresh, own] = [foreignKey(), foreignKey(), foreignKey(), await keyOfOurs()];
      await migrate(server, [{ hash: sha256(known) }]);
      const { migrated, failed } = await migrate(server, [
        { hash: sha256(known, "base64") },
        { hash: sha256(twice), name: "first" },
        { hash: sha256(twice, "base64url"), roles: ["role of a rejected key"] },
        { hash: sha256(fresh) },
        { hash: sha256(own) },
      ]);
      assert.deepEqual(
        migrated.map(({ hash }) => hash),
        [sha256(twice), sha256(fresh)],
      );
      assert.deepEqual(failed.sort(), [sha256(known, "base64"), sha256(twice, "base64url"), sha256(own)].sort());
      assert.equal((await server.getKey(migrated[0]!.keyId)).name, "first");
      assert(!(await server.rows()).roles!.some((row) => String(row).includes("never made")));

      async function keyOfOurs() {
        return (await server.createKey(await server.createApi())).key;
      }
    });

    it("are rejected as a list if one of them is malformed, with its index", async () => {
      const apiId = await server.createApi();
      const input = { migrationId: "malformed", apiId };
      const good = { hash: sha256(foreignKey()) };
      const before = await server.rows();
      const rejected = async (body: object, location: string) => {
        const { errors } = await server.rejected("keys.migrateKeys", { ...input, ...body }, "invalid_input");
        assert(
          errors!.some((error) => error.location.startsWith(location)),
          JSON.stringify(errors),
        );
      };
      const inHash = "/properties/keys/items/properties/hash";
      await rejected({ keys: [good, { hash: "f".repeat(63) }] }, inHash);
      await rejected({ keys: [good, { hash: sha512("a") }] }, inHash);
      await rejected({ keys: [good], algorithm: "sha512" }, inHash);
      await rejected({ keys: [good], algorithm: "md5" }, "/properties/algorithm");
      await rejected({ keys: [good], pepper: "pepper" }, "/properties/pepper");
      await rejected(
        { keys: [good], algorithm: "hmac-sha256", pepper: "xyz", pepperEncoding: "hex" },
        "/properties/pepper",
      );
      const credits = { remaining: null, refill: { interval: "daily", amount: 1 } };
      await rejected({ keys: [{ ...good, credits }] }, "/properties/keys/items/properties/credits");
      await rejected({ keys: [] }, "/properties/keys/minItems");
      await rejected({ keys: [good], apiId: "" }, "/properties/apiId");
      await rejected({ keys: [good], migrationId: "" }, "/properties/migrationId");
      assert.deepEqual(await server.rows(), before);
    });

    it("need create_key for their API, and then the API (rules 5, 29)", async () => {
      const [apiId, other] = [await server.createApi(), await server.createApi()];
      const input = { migrationId: "permitted", apiId, keys: [{ hash: sha256(foreignKey()) }] };
      const { key: as } = await server.grant(`apis.${other}.create_key`, "apis.*.update_key");
      const { detail } = await server.rejected("keys.migrateKeys", input, "insufficient_permissions", { as });
      assert.match(detail, /apis\.\*\.create_key/);
      const never = { ...input, apiId: "api_never0existed000" };
      await server.rejected("keys.migrateKeys", never, "insufficient_permissions", { as });
      await server.rejected("keys.migrateKeys", never, "api_not_found");
      await server.ok("apis.deleteApi", { apiId: other });
      const error = await server.rejected("keys.migrateKeys", { ...input, apiId: other }, "api_not_found", { as });
      assert.equal(error.detail, "The requested API does not exist or has been deleted.");
      await server.ok("keys.migrateKeys", input, { as: (await server.grant(`apis.${apiId}.create_key`)).key });
    });

    it("verify by SHA-512 without the id of their migration", async () => {
      const [key, ours] = [foreignKey(), (await server.createKey(await server.createApi())).key];
      assert.equal((await server.verify(key)).code, "NOT_FOUND");
      const { migrated } = await migrate(server, [{ hash: sha512(key) }], { algorithm: "sha512" });
      for (let time = 0; time < 2; time++) {
        assert.equal((await server.verify(key, {}, { as: null })).keyId, migrated[0]!.keyId);
        assert.equal((await server.verify(ours)).code, "VALID");
        assert.equal((await server.verify(foreignKey())).code, "NOT_FOUND");
      }
      await eventually("the start", async () => (await server.ok("keys.whoami", { key })).start === "sk_live");
      // The same key, imported by SHA-256, takes precedence at once.
      const again = await migrate(server, [{ hash: sha256(key) }]);
      assert.equal((await server.verify(key)).keyId, again.migrated[0]!.keyId);
      await server.ok("keys.deleteKey", { keyId: again.migrated[0]!.keyId });
      assert.equal((await server.verify(key)).keyId, migrated[0]!.keyId);
    });

    it("verify by an HMAC with the id of their migration, whose pepper is in the vault", async () => {
      const [key, later] = [foreignKey(), foreignKey()];
      const migrationId = unique("peppered");
      const algorithm = "hmac-sha256";
      assert.equal((await server.verify(key, { migrationId })).code, "NOT_FOUND");
      const { apiId, migrated } = await migrate(server, [{ hash: hmac("white pepper", key) }], {
        migrationId,
        algorithm,
        pepper: "white pepper",
      });
      for (let time = 0; time < 2; time++) {
        assert.equal((await server.verify(key)).code, "NOT_FOUND");
        assert.equal((await server.verify(key, { migrationId: "another" })).code, "NOT_FOUND");
        assert.equal((await server.verify(later, { migrationId })).code, "NOT_FOUND");
        assert.equal((await server.verify(key, { migrationId })).keyId, migrated[0]!.keyId);
      }
      await eventually("the start", async () => (await server.getKey(migrated[0]!.keyId)).start === "sk_live");
      // Its hash is not the SHA-256 of any key.
      await server.rejected("keys.whoami", { key }, "key_not_found");

      const input = { migrationId, apiId, algorithm, keys: [{ hash: hmac("white pepper", later) }] };
      const { detail } = await server.rejected(
        "keys.migrateKeys",
        { ...input, pepper: "black pepper" },
        "invalid_input",
      );
      assert.match(detail, /another pepper/);
      await server.ok("keys.migrateKeys", input);
      assert.equal((await server.verify(later, { migrationId })).code, "VALID");
      const binary = Buffer.from([0, 255, 128, 7]);
      const second = { ...input, migrationId: unique("binary"), keys: [{ hash: hmac(binary, later) }] };
      await server.rejected("keys.migrateKeys", second, "invalid_input");
      await server.ok("keys.migrateKeys", { ...second, pepper: binary.toString("base64"), pepperEncoding: "base64" });
      assert.equal((await server.verify(later, { migrationId: second.migrationId })).code, "VALID");
      assert(!JSON.stringify(await server.rows()).includes("white pepper"));
    });

    it("verify while a pepper of another workspace, which is looked up at the same moment, cannot be read (rule 227)", async () => {
      const key = foreignKey();
      const algorithm = "hmac-sha256";
      const migrationId = unique("whole");
      await migrate(server, [{ hash: hmac("pepper", key) }], { migrationId, algorithm, pepper: "pepper" });
      const { key: as, workspaceId } = await server.workspace(unique("broken"));
      const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
      const theirs = {
        migrationId: "broken",
        apiId,
        algorithm,
        pepper: "pepper",
        keys: [{ hash: hmac("pepper", key) }],
      };
      await server.ok("keys.migrateKeys", theirs, { as });
      await server.change([], ({ db }) =>
        db.updateTable("key_migrations").set({ pepper: "altered" }).where("workspace_id", "=", workspaceId).execute(),
      );
      // At most two queries at a time, so that the next look-ups share one.
      const gate = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      server.store.interception = async (name, proceed) => {
        if (name !== "keyMigrationsByReferences") return proceed();
        held.resolve();
        await gate.promise;
        return proceed();
      };
      const ask = (id: string, caller = server.rootKey) =>
        server.call("keys.verifyKey", { key, migrationId: id }, { as: caller });
      const turns = async () => {
        for (let turn = 0; turn < 20; turn++) await setImmediate();
      };
      const first = ask(unique("first"));
      await held.promise;
      const second = ask(unique("second"));
      await turns();
      const both = [ask("broken", as), ask(migrationId)] as const;
      await turns();
      gate.resolve();
      server.store.interception = undefined;
      await Promise.all([first, second]);
      const [broken, whole] = await Promise.all(both);
      assert.equal(broken.problem, "unexpected_error");
      assert.equal(whole.body.data?.code, "VALID");
    });

    it("with three parts verify with their migration once, and without it from then on", async () => {
      const token = "acme_BRTRKFsL_51FwqftsmMDHHbJAMEXXHCgG";
      const migrationId = unique("tokens");
      const { migrated } = await migrate(server, [{ hash: sha256("51FwqftsmMDHHbJAMEXXHCgG") }], {
        migrationId,
        algorithm: "prefixed-api-key",
      });
      const { keyId } = migrated[0]!;
      // Neither the whole string nor the hashed part is enough.
      for (const key of [token, "51FwqftsmMDHHbJAMEXXHCgG"]) {
        assert.equal((await server.verify(key)).code, "NOT_FOUND");
        await server.rejected("keys.whoami", { key }, "key_not_found");
      }
      await server.rejected("keys.verifyKey", { key: "acme_51Fw", migrationId }, "invalid_input");
      assert.equal((await server.verify("acme_51Fw")).code, "NOT_FOUND");
      assert.equal((await server.verify("acme_BRTRKFsL_wrong", { migrationId })).code, "NOT_FOUND");

      const verified = await server.verify(token, { migrationId });
      assert.deepEqual([verified.code, verified.keyId], ["VALID", keyId]);
      assert.equal((await server.getKey(keyId)).start, "acme_BRTR");
      for (const more of [{}, { migrationId }]) assert.equal((await server.verify(token, more)).keyId, keyId);
      assert.equal((await server.ok("keys.whoami", { key: token })).keyId, keyId);
      // After that, another token with the same long part does not verify.
      assert.equal((await server.verify("evil_x_51FwqftsmMDHHbJAMEXXHCgG", { migrationId })).code, "NOT_FOUND");
    });

    it("belong to a migration whose kind never changes", async () => {
      const migrationId = unique("settled");
      const { apiId } = await migrate(server, [{ hash: sha256(foreignKey()) }], { migrationId });
      const input = { migrationId, apiId, algorithm: "sha512", keys: [{ hash: sha512(foreignKey()) }] };
      const { detail } = await server.rejected("keys.migrateKeys", input, "invalid_input");
      assert.match(detail, /sha256, not of sha512/);
    });

    it("can be named with their migration by callers with a root key only", async () => {
      const body = { key: foreignKey(), migrationId: "any" };
      await server.rejected("keys.verifyKey", body, "authentication_missing", { as: null });
      assert.equal((await server.verify(body.key, { migrationId: "any" })).code, "NOT_FOUND");
    });

    it("are stored in chunks, with one answer in the order of the list", async () => {
      const keys = Array.from({ length: 1_201 }, foreignKey);
      const list = keys.map((key, i) => ({
        hash: sha256(key),
        externalId: `crowd_${i % 7}`,
        permissions: ["crowd.read"],
      }));
      let chunks = 0;
      server.store.interception = (name, proceed) => {
        if (name === "mutation") chunks++;
        return proceed();
      };
      const { migrated, failed } = await migrate(server, [...list, list[0]!]);
      server.store.interception = undefined;
      assert.deepEqual(
        migrated.map(({ hash }) => hash),
        list.map(({ hash }) => hash),
      );
      assert.deepEqual(failed, [list[0]!.hash]);
      // One for the API. No time passes, so chunks grow from 200 rows to 1,000, and each key takes two.
      assert.equal(chunks, 1 + 5);
      assert.equal((await server.verify(keys[1_200]!, { permissions: "crowd.read" })).identity.externalId, "crowd_3");
    });

    it("can be sent in thirty calls at once, each of which is validated in parts", async () => {
      const lists = Array.from({ length: 30 }, () =>
        Array.from({ length: 220 }, () => ({ hash: sha256(foreignKey()) })),
      );
      assert(JSON.stringify(lists[0]).length > SHORT_LIST_LENGTH_MAX);
      const into = { migrationId: unique("migration"), apiId: await server.createApi() };
      const imports: { migrated: { hash: string }[] }[] = await Promise.all(
        lists.map((keys) => server.ok("keys.migrateKeys", { ...into, keys })),
      );
      assert.deepEqual(
        imports.map(({ migrated }) => migrated.map(({ hash }) => hash)),
        lists.map((keys) => keys.map(({ hash }) => hash)),
      );
    });

    it("are updated together when they are first verified together", async () => {
      const keys = Array.from({ length: 300 }, foreignKey);
      await migrate(
        server,
        keys.map((key) => ({ hash: sha256(key) })),
      );
      let written = 0;
      server.store.interception = (name, proceed) => {
        if (name === "recordFirstUses") written++;
        return proceed();
      };
      const verified = await Promise.all(keys.map((key) => server.verify(key)));
      assert(verified.every(({ code }) => code === "VALID"));
      const isWritten = async () => (await server.ok("keys.whoami", { key: keys[299]! })).start === "sk_live";
      await eventually("the starts", isWritten);
      assert(written > 0 && written < 30, String(written));
      server.store.interception = async (name, proceed) => {
        assert.notEqual(name, "recordFirstUses");
        // A second look-up would cost more than the first use itself.
        assert.notEqual(name, "keysAt");
        return proceed();
      };
      await Promise.all(keys.map((key) => server.verify(key)));
      server.store.interception = undefined;
    });

    it("are not imported if another import, which has not committed yet, has their hash (rule 29)", async (t) => {
      if (server.options.store === "sqlite") return t.skip("It has one writer.");
      const {
        apiId,
        migrated: [first],
      } = await migrate(server, [{ hash: sha256(foreignKey()) }]);
      const [taken, free] = [sha256(foreignKey()), sha256(foreignKey())];
      const other = await server.openTransaction([], async ({ db }) => {
        const row = await db.selectFrom("keys").selectAll().where("id", "=", first!.keyId).executeTakeFirstOrThrow();
        const of = { id: unique("key"), pool_id: unique("pool"), hash: readHash(taken, "sha256")! };
        await db
          .insertInto("keys")
          .values({ ...row, ...of })
          .execute();
      });
      const importing = server.ok("keys.migrateKeys", {
        migrationId: unique("migration"),
        apiId,
        keys: [{ hash: taken }, { hash: free }],
      });
      await eventually("the import that waits for the other", async () => {
        let waiting = 0;
        const look = await server.openTransaction([], async ({ db }) => {
          const { rows } = await raw<{ count: number }>`
            select count(*) as count from pg_locks where not granted and locktype = 'transactionid'`.execute(db);
          waiting = Number(rows[0]!.count);
        });
        await look.commit();
        return waiting > 0;
      });
      await other.commit();
      const { migrated, failed } = await importing;
      assert.deepEqual([migrated.map(({ hash }: { hash: string }) => hash), failed], [[free], [taken]]);
    });

    it("of another workspace are not found", async () => {
      const key = foreignKey();
      const { migrated } = await migrate(server, [{ hash: sha256(key) }]);
      const { key: as } = await server.workspace(unique("stranger"));
      assert.equal((await server.verify(key, {}, { as })).code, "NOT_FOUND");
      const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
      const input = { migrationId: "theirs", apiId, keys: [{ hash: sha256(key) }] };
      const theirs = await server.ok("keys.migrateKeys", input, { as });
      assert.equal((await server.verify(key, {}, { as })).keyId, theirs.migrated[0].keyId);
      assert.equal((await server.verify(key)).keyId, migrated[0]!.keyId);
    });
  },
  { VAULT_KEY: randomBytes(32).toString("base64") },
);

describe("an import", () => {
  it("needs the vault for a pepper, and for nothing else", async () => {
    const server = await openTestServer({ store: "postgres" });
    try {
      const input = { migrationId: "peppered", apiId: await server.createApi() };
      const peppered = { ...input, algorithm: "hmac-sha256", pepper: "white", keys: [{ hash: hmac("white", "key") }] };
      const { detail } = await server.rejected("keys.migrateKeys", peppered, "precondition_failed");
      assert.match(detail, /^Vault hasn't been set up/);
      await server.ok("keys.migrateKeys", { ...input, keys: [{ hash: sha256("key") }] });
    } finally {
      await server.close();
    }
  });

  it("takes effect on every node within a second, also where the keys were cached as missing", async () => {
    const server = await openTestServer();
    const node = await openTestServer({ beside: server });
    try {
      const [own, long] = [foreignKey(), "51FwqftsmMDHHbJAMEXXHCgG"];
      const token = `acme_BRTRKFsL_${long}`;
      const migrationId = "tokens";
      for (const key of [own, token]) {
        for (const more of [{}, { migrationId }]) assert.equal((await node.verify(key, more)).code, "NOT_FOUND");
      }
      await migrate(server, [{ hash: sha512(own) }], { algorithm: "sha512" });
      await migrate(server, [{ hash: sha256(long) }], { migrationId, algorithm: "prefixed-api-key" });
      await node.pass(500);
      assert.equal((await node.verify(own)).code, "VALID");
      assert.equal((await node.verify(token, { migrationId })).code, "VALID");
      await server.pass(500);
      assert.equal((await server.verify(token)).code, "VALID");
    } finally {
      await node.close();
      await server.close();
    }
  });

  it("that fails in the middle returns the keys that it stored, and why it stopped (rule 209)", async () => {
    const server = await openTestServer();
    try {
      const apiId = await server.createApi();
      const keys = Array.from({ length: 1_001 }, (_, i) => ({ hash: sha256(`stopped ${i}`) }));
      let chunks = 0;
      server.store.interception = async (name, proceed) => {
        if (name === "mutation" && ++chunks === 2) throw new Error("The database has gone");
        return proceed();
      };
      const reply = await server.ok("keys.migrateKeys", { migrationId: "stopped", apiId, keys });
      server.store.interception = undefined;
      assert.equal(chunks, 2);
      assert.equal(reply.migrated.length, 200);
      assert.equal(reply.failed.length, 801);
      const { count, status, type, detail } = reply.stopped;
      assert.deepEqual([count, status], [801, 500]);
      assert.match(type, /\/errors\/application\/unexpected_error$/);
      assert.ok(!detail.includes("The database has gone"), detail);
      assert.equal(server.logged.at(-1)?.level, "error");
      // The same call again stores the rest.
      const again = await server.ok("keys.migrateKeys", { migrationId: "stopped", apiId, keys });
      assert.deepEqual([again.migrated.length, again.failed.length, again.stopped], [801, 200, undefined]);
    } finally {
      await server.close();
    }
  });

  it("makes chunks of as many keys as take 12 ms, and of 500 at most", async () => {
    const server = await openTestServer();
    try {
      const apiId = await server.createApi();
      const keys = Array.from({ length: 3_000 }, (_, i) => ({ hash: sha256(`timed ${i}`) }));
      let microsecondsPerKey = 100;
      const sizes: number[] = [];
      server.store.interception = async (name, proceed) => {
        const outcome = await proceed();
        if (name === "mutation") {
          const size = JSON.parse(`{${(outcome as { outcome: { body: string } }).outcome.body}}`).data.migrated.length;
          sizes.push(size);
          await passAlone(server, Math.ceil((size * microsecondsPerKey) / 1_000));
        }
        return outcome;
      };
      const migrate = async (from: number, to: number) => {
        sizes.length = 0;
        await server.ok("keys.migrateKeys", { migrationId: "timed", apiId, keys: keys.slice(from, to) });
        return sizes;
      };
      assert.deepEqual(await migrate(0, 500), [200, 200, 100]);
      microsecondsPerKey = 40;
      assert.deepEqual(await migrate(500, 1_200), [200, 300, 200]);
      microsecondsPerKey = 10;
      assert.deepEqual(await migrate(1_200, 3_000), [300, 500, 500, 500]);
    } finally {
      await server.close();
    }
  });

  it("pauses after a chunk for as long as it took if others wait for the database, and only then", async () => {
    const server = await openTestServer();
    try {
      const apiId = await server.createApi();
      const keys = (part: string) => Array.from({ length: 450 }, (_, i) => ({ hash: sha256(`${part} ${i}`) }));
      let chunks = 0;
      /** Runs during a chunk. */
      let beside = async () => {};
      const takeTwelve = async (proceed: () => Promise<unknown>) => {
        chunks++;
        const outcome = await proceed();
        await passAlone(server, 12);
        await beside();
        return outcome;
      };
      server.store.interception = (name, proceed) => (name === "mutation" ? takeTwelve(proceed) : proceed());
      const migrate = (part: string) =>
        server.ok("keys.migrateKeys", { migrationId: "paused", apiId, keys: keys(part) });
      await migrate("alone");
      assert.equal(chunks, 3);
      chunks = 0;
      const others = Promise.withResolvers<void>();
      let haveAsked = false;
      beside = async () => {
        server.store.interception = (name, proceed) => (name === "mutation" ? others.promise.then(proceed) : proceed());
        void server.ok("apis.createApi", { name: "of others" });
        while (server.store.writesInFlight < 2) await setImmediate();
        server.store.interception = (name, proceed) => (name === "mutation" ? takeTwelve(proceed) : proceed());
        haveAsked = true;
        beside = async () => {};
      };
      const paused = migrate("beside others");
      await eventually("the end of the first chunk", async () => haveAsked && server.store.writesInFlight === 1);
      assert.equal(chunks, 1);
      others.resolve();
      await server.advance(11);
      await server.store.settled();
      assert.equal(chunks, 1);
      await server.advance(1);
      assert.equal((await paused).migrated.length, 450);
      assert.equal(chunks, 3);
    } finally {
      await server.close();
    }
  });
});
