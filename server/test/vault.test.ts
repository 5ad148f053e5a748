/** Recoverable keys: permissions, damaged data in the vault, and rotation of the master key. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import type { Insertable } from "kysely";
import { systemClock } from "../../engine/src/clock/system.ts";
import { newSealingKey, seal, sealingKeyFingerprint } from "../../engine/src/crypto/seal.ts";
import { StoreUnavailable } from "../../engine/src/errors/store-unavailable.ts";
import { openPostgresStore } from "../src/platform/store/postgres/store.ts";
import type { Schema, VaultDataKeyRow } from "../src/platform/store/schema.ts";
import { openSqliteStoreHere } from "../src/platform/store/sqlite/store-here.ts";
import type { Sql, Store } from "../src/platform/store/store.ts";
import { describeOnStores, openTestServer, type StoreKind, stores, TestServer } from "./harness.ts";
import { launch, makeFolder, Program, programFile, run, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const newKey = () => randomBytes(32).toString("base64");
const VAULT_KEY = newKey();
const MASTER_KEY_ERROR =
  /This process does not have the master key of the vault of this database: it has another one, or none\./;

describeOnStores(
  "a recoverable key",
  (server, store) => {
    /** The row of a key in the vault. */
    const sealedOf = (keyId: string) =>
      server.change([], async ({ db }) => {
        const query = db.selectFrom("vault_secrets").select("sealed").where("key_id", "=", keyId);
        return (await query.executeTakeFirst())?.sealed;
      });
    const setSealed = (keyId: string, sealed: string) =>
      server.change([], ({ db }) =>
        db.updateTable("vault_secrets").set({ sealed }).where("key_id", "=", keyId).execute(),
      );
    const dataKeys = () => server.change([], ({ db }) => db.selectFrom("vault_data_keys").selectAll().execute());
    const putDataKeys = (rows: readonly VaultDataKeyRow[]) =>
      server.change([], async ({ db }) => {
        for (const { workspace_id, ...values } of rows) {
          await db.updateTable("vault_data_keys").set(values).where("workspace_id", "=", workspace_id).execute();
        }
      });
    const plaintextOf = async (keyId: string, node = server) =>
      (await node.ok("keys.getKey", { keyId, decrypt: true })).plaintext;
    /** The keys that a root key has decrypted, by their audit entries, the oldest first. */
    const revealsBy = async (rootKeyId: string) =>
      (await server.rows())
        .audit_events!.map((row) => JSON.parse(row as string))
        .filter(({ actor, meta }) => actor === rootKeyId && JSON.parse(meta).revealed === true)
        .sort((a, b) => a.occurred_at - b.occurred_at);

    /** The caller gets no cause; the log has it, and neither contains a secret. */
    async function assertNotRevealed(
      apiId: string,
      keyId: string,
      node: TestServer,
      ...secrets: string[]
    ): Promise<void> {
      for (const [operation, body] of [
        ["keys.getKey", { keyId, decrypt: true }],
        ["apis.listKeys", { apiId, decrypt: true }],
      ] as const) {
        const logged = node.logged.length;
        const reply = await node.call(operation, body);
        assert.equal(reply.problem, "unexpected_error");
        assert.doesNotMatch(JSON.stringify(reply.body), /seal|vault|cipher|damage|another key/i);
        const lines = node.logged.slice(logged);
        // On a busy machine, others log something too.
        const own = lines.filter((line) => JSON.stringify(line).includes(reply.body.meta.requestId));
        assert.equal(own.length, 1, JSON.stringify(lines));
        assert.match(JSON.stringify(own), /SealBroken/);
        for (const secret of [...secrets, VAULT_KEY]) {
          assert(!JSON.stringify(lines).includes(secret) && !JSON.stringify(reply.body).includes(secret));
        }
      }
      // Everything else works.
      assert.equal((await node.getKey(keyId)).plaintext, undefined);
      await node.ok("apis.listKeys", { apiId });
    }

    it("is not decrypted from another key's row, truncated or altered, and is decrypted again after a repair", async () => {
      const apiId = await server.createApi();
      const [one, other] = [
        await server.createKey(apiId, { recoverable: true }),
        await server.createKey(apiId, { recoverable: true }),
      ];
      const sealed = (await sealedOf(one.keyId))!;
      const ofOther = (await sealedOf(other.keyId))!;
      for (const damaged of [
        ofOther,
        "",
        sealed.slice(0, -8),
        sealed.slice(8),
        `${ofOther.slice(0, 40)}${sealed.slice(40)}`,
      ]) {
        await setSealed(one.keyId, damaged);
        await assertNotRevealed(apiId, one.keyId, server, one.key, other.key, sealed);
        assert.equal(await plaintextOf(other.keyId), other.key);
        assert.equal((await server.verify(one.key)).code, "VALID");
      }
      await setSealed(one.keyId, sealed);
      assert.equal(await plaintextOf(one.keyId), one.key);
    });

    it("is not decrypted with the data key of another workspace, nor from there", async () => {
      const theirs = await server.workspace("theirs");
      const apiId = await server.createApi();
      const mine = await server.createKey(apiId, { recoverable: true });
      const as = { as: theirs.key };
      const { apiId: otherApi } = await server.ok("apis.createApi", { name: "theirs" }, as);
      const foreign = await server.ok("keys.createKey", { apiId: otherApi, recoverable: true }, as);
      await server.rejected("keys.getKey", { keyId: foreign.keyId, decrypt: true }, "key_not_found");

      const [sealed, ofForeign] = [(await sealedOf(mine.keyId))!, (await sealedOf(foreign.keyId))!];
      const kept = (await dataKeys()) as VaultDataKeyRow[];
      const ofMe = kept.find(({ workspace_id }) => workspace_id === server.workspaceId)!;
      const ofThem = kept.find(({ workspace_id }) => workspace_id === theirs.workspaceId)!;
      await putDataKeys([
        { ...ofMe, workspace_id: ofThem.workspace_id },
        { ...ofThem, workspace_id: ofMe.workspace_id },
      ]);
      // Another node, which has cached neither data key.
      const node = await openTestServer({ store, settings: { VAULT_KEY }, beside: server });
      try {
        for (const text of [sealed, ofForeign]) {
          await setSealed(mine.keyId, text);
          await assertNotRevealed(apiId, mine.keyId, node, mine.key, foreign.key);
        }
        // Such a workspace cannot create recoverable keys either.
        await node.rejected("keys.createKey", { apiId, recoverable: true }, "unexpected_error");
        await putDataKeys(kept);
        await setSealed(mine.keyId, ofForeign);
        await assertNotRevealed(apiId, mine.keyId, node, mine.key, foreign.key);
        await setSealed(mine.keyId, sealed);
        assert.equal(await plaintextOf(mine.keyId, node), mine.key);
        assert.equal(
          (await node.ok("keys.getKey", { keyId: foreign.keyId, decrypt: true }, as)).plaintext,
          foreign.key,
        );
      } finally {
        await node.close();
      }
    });

    it("has an audit entry before it is returned", async () => {
      const apiId = await server.createApi();
      const keys = [
        await server.createKey(apiId, { recoverable: true }),
        await server.createKey(apiId),
        await server.createKey(apiId, { recoverable: true }),
      ];
      const [first, plain, last] = keys.map(({ keyId }) => keyId) as [string, string, string];
      const { key: reader, rootKeyId } = await server.grant("apis.*.read_key", "apis.*.read_api", "apis.*.decrypt_key");

      let answered = false;
      let recorded = 0;
      server.store.interception = async (name, proceed) => {
        const result = await proceed();
        if (name === "recordReveal") {
          assert.equal(answered, false);
          recorded = (await revealsBy(rootKeyId)).length;
        }
        return result;
      };
      await server.ok("keys.getKey", { keyId: first, decrypt: true }, { as: reader });
      answered = true;
      server.store.interception = undefined;
      assert.equal(recorded, 1);

      await server.advance(1);
      const listed = await server.ok("apis.listKeys", { apiId, decrypt: true }, { as: reader });
      assert.deepEqual(
        listed.map(({ keyId, plaintext }: { keyId: string; plaintext?: string }) => [keyId, plaintext]).sort(),
        keys.map(({ keyId, key }) => [keyId, keyId === plain ? undefined : key]).sort(),
      );
      const [got, list, ...more] = await revealsBy(rootKeyId);
      assert.deepEqual(more, []);
      assert.deepEqual([got.action, JSON.parse(got.targets)], ["keys.getKey", [first]]);
      assert.equal(list.action, "apis.listKeys");
      assert.deepEqual(JSON.parse(list.targets).sort(), [first, last].sort());
      assert.equal(list.occurred_at, server.clock.now());
      assert.equal(list.workspace_id, server.workspaceId);
      for (const { key } of keys) assert(!JSON.stringify([got, list]).includes(key));

      // Reads without decryption, without recoverable keys, or without permission write no such entry.
      const { key: decryptor, rootKeyId: blindId } = await server.grant("apis.*.read_key");
      await server.rejected("keys.getKey", { keyId: first, decrypt: true }, "insufficient_permissions", {
        as: decryptor,
      });
      await server.ok("keys.getKey", { keyId: first }, { as: reader });
      assert.equal(
        (await server.ok("keys.getKey", { keyId: plain, decrypt: true }, { as: reader })).plaintext,
        undefined,
      );
      assert.equal((await revealsBy(rootKeyId)).length, 2);
      assert.deepEqual(await revealsBy(blindId), []);
    });

    it("is not returned when the audit entry fails", async () => {
      const apiId = await server.createApi();
      const { keyId, key } = await server.createKey(apiId, { recoverable: true });
      for (const [problem, error] of [
        ["unexpected_error", new Error("no room for entries")],
        ["service_unavailable", new StoreUnavailable("gone")],
      ] as const) {
        server.store.interception = (name, proceed) => (name === "recordReveal" ? Promise.reject(error) : proceed());
        for (const [operation, body] of [
          ["keys.getKey", { keyId, decrypt: true }],
          ["apis.listKeys", { apiId, decrypt: true }],
        ] as const) {
          const reply = await server.call(operation, body);
          assert.equal(reply.problem, problem);
          assert(!JSON.stringify([reply.body, server.logged.at(-1)]).includes(key));
        }
        server.store.interception = undefined;
      }
      assert.equal(await plaintextOf(keyId), key);
    });

    it("loses its secret when it is deleted permanently", async () => {
      const apiId = await server.createApi();
      const [marked, erased] = [
        await server.createKey(apiId, { recoverable: true }),
        await server.createKey(apiId, { recoverable: true }),
      ];
      await server.ok("keys.deleteKey", { keyId: marked.keyId });
      await server.ok("keys.deleteKey", { keyId: erased.keyId, permanent: true });
      assert.equal(await sealedOf(erased.keyId), undefined);
      for (const { keyId } of [marked, erased]) {
        await server.rejected("keys.getKey", { keyId, decrypt: true }, "key_not_found");
      }
    });

    it("leaves nothing in the vault when its creation fails", async () => {
      const apiId = await server.createApi();
      const count = () =>
        server.change([], ({ db }) =>
          db
            .selectFrom("vault_secrets")
            .select(({ fn }) => fn.countAll<number>().as("count"))
            .executeTakeFirstOrThrow(),
        );
      const before = await count();
      await server.rejected("keys.createKey", { apiId, recoverable: true, roles: ["no such role"] }, "role_not_found");
      assert.deepEqual(await count(), before);
    });

    it("is masked without the permission to encrypt, exactly like a missing API", async () => {
      const apiId = await server.createApi();
      const body = { apiId, recoverable: true };
      const { key: creator } = await server.grant("apis.*.create_key", "apis.*.decrypt_key");
      const { key: encryptor } = await server.grant("apis.*.encrypt_key");
      const unknown = await server.rejected("keys.createKey", { ...body, apiId: "api_unknown" }, "api_not_found");
      for (const as of [creator, encryptor]) {
        assert.deepEqual(await server.rejected("keys.createKey", body, "api_not_found", { as }), unknown);
      }
      await server.ok("keys.createKey", { apiId }, { as: creator });
    });

    it("is decrypted with the permission for its own API only", async () => {
      const [apiId, other] = [await server.createApi(), await server.createApi()];
      const { keyId, key } = await server.createKey(apiId, { recoverable: true });
      const read = ["apis.*.read_key", "apis.*.read_api"];
      const { key: right } = await server.grant(...read, `apis.${apiId}.decrypt_key`);
      const { key: wrong } = await server.grant(...read, `apis.${other}.decrypt_key`);
      for (const [operation, body] of [
        ["keys.getKey", { keyId, decrypt: true }],
        ["apis.listKeys", { apiId, decrypt: true }],
      ] as const) {
        assert(JSON.stringify(await server.ok(operation, body, { as: right })).includes(key));
        const error = await server.rejected(operation, body, "insufficient_permissions", { as: wrong });
        assert.match(error.detail, new RegExp(`apis\\.${apiId}\\.decrypt_key`));
      }
      const { key: decryptor } = await server.grant("apis.*.decrypt_key");
      await server.rejected("apis.listKeys", { apiId, decrypt: true }, "api_not_found", { as: decryptor });
      await server.rejected("keys.getKey", { keyId, decrypt: true }, "insufficient_permissions", { as: decryptor });
    });

    it("needs nodes with the master key: others do not start", async () => {
      const { keyId, key } = await server.createKey(await server.createApi(), { recoverable: true });
      const others: Record<string, string>[] = [{ VAULT_KEY: newKey() }, {}];
      for (const settings of others) {
        await assert.rejects(openTestServer({ store, beside: server, settings }), MASTER_KEY_ERROR);
      }
      const node = await openTestServer({ store, beside: server, settings: { VAULT_KEY: `${newKey()},${VAULT_KEY}` } });
      assert.equal(await plaintextOf(keyId, node), key);
      await node.close();
    });
  },
  { VAULT_KEY },
);

describe("without a vault", () => {
  const server = new TestServer({ store: "postgres" });
  before(() => server.open());
  after(() => server.close());

  it("createKey checks the permission, then the API, then the vault", async () => {
    const apiId = await server.createApi();
    const { key: unprivileged } = await server.grant("apis.*.encrypt_key");
    const { key: creator } = await server.grant("apis.*.create_key");
    const create = (as: string, api = apiId) =>
      server.call("keys.createKey", { apiId: api, recoverable: true }, { as });
    assert.equal((await create(unprivileged)).problem, "api_not_found");
    assert.equal((await create(creator, "api_unknown")).problem, "api_not_found");
    assert.equal((await create(creator)).problem, "precondition_failed");
  });

  it("decryption checks the permission to read, then the vault", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const { key: unprivileged } = await server.grant("apis.*.decrypt_key");
    const { key: reader } = await server.grant("apis.*.read_key", "apis.*.read_api");
    const get = { keyId, decrypt: true };
    const list = { apiId, decrypt: true };
    await server.rejected("keys.getKey", get, "insufficient_permissions", { as: unprivileged });
    await server.rejected("apis.listKeys", list, "api_not_found", { as: unprivileged });
    await server.rejected("keys.getKey", get, "precondition_failed", { as: reader });
    await server.rejected("apis.listKeys", list, "precondition_failed", { as: reader });
  });
});

for (const store of stores) {
  describe(`the master key on ${store}`, () => {
    it("changes while the service runs, and the keys stay readable", async (t) => {
      const deployment = await openDeployment(t, store);
      let server = await deployment.start();
      const { apiId } = await server.ok("apis.createApi", { name: "vaulted" });
      const keys = [await createRecoverable(server, apiId)];
      const former = deployment.masterKey();
      await revealsAll(server, keys);

      const rotating = deployment.rotate();
      while (!rotating.hasEnded) {
        if (keys.length < 50) keys.push(await createRecoverable(server, apiId));
        await revealsAll(server, keys.slice(-5));
      }
      const { code } = await rotating.ended;
      assert.equal(code, 0, rotating.stderr);
      const { from, to, wrapped } = JSON.parse(rotating.stdout);
      assert.equal(from, fingerprintOf(former));
      assert.notEqual(to, from);
      assert(wrapped >= 1);
      keys.push(await createRecoverable(server, apiId));
      await revealsAll(server, keys);

      await server.kill("SIGTERM");
      if (store === "sqlite") {
        assert.notEqual(deployment.masterKey(), former);
        assert.equal(fingerprintOf(deployment.masterKey()), to);
        assert.deepEqual(deployment.keyFiles(), ["vault-key"]);
      } else {
        deployment.useNextKeyAlone();
      }
      server = await deployment.start();
      await revealsAll(server, [...keys, await createRecoverable(server, apiId)]);
      await server.kill("SIGTERM");

      deployment.setMasterKey(former);
      const rejected = deployment.launch();
      assert.deepEqual(await rejected.ended, { code: 1, signal: null });
      assert.match(rejected.stderr, MASTER_KEY_ERROR);
      assert(!rejected.output.includes(former));
    });

    it("finishes its change after kill -9 in the middle, and nothing is lost", async (t) => {
      const deployment = await openDeployment(t, store);
      let server = await deployment.start();
      const { apiId } = await server.ok("apis.createApi", { name: "vaulted" });
      const keys = [await createRecoverable(server, apiId)];
      const former = deployment.masterKey();
      const count = store === "sqlite" ? 15_000 : 3_000;
      await deployment.makeDataKeys(count);

      const killed = deployment.rotate();
      while ((await deployment.wrapped(former)) === 0) assert(!killed.hasEnded, killed.output);
      assert.deepEqual(await killed.kill("SIGKILL"), { code: null, signal: "SIGKILL" });
      const done = await deployment.wrapped(former);
      assert(done > 0 && done < count, `${done} of ${count} data keys were rewrapped when it was killed`);
      keys.push(await createRecoverable(server, apiId));
      await revealsAll(server, keys);

      // A service that starts in the middle decrypts both halves.
      await server.kill("SIGKILL");
      server = await deployment.start();
      keys.push(await createRecoverable(server, apiId));
      await revealsAll(server, keys);

      const resumed = deployment.rotate();
      assert.equal((await resumed.ended).code, 0, resumed.stderr);
      const { from, to, wrapped } = JSON.parse(resumed.stdout);
      assert.equal(from, fingerprintOf(former));
      assert.equal(wrapped, count + 1 - done);
      keys.push(await createRecoverable(server, apiId));
      await revealsAll(server, keys);
      assert.equal(await deployment.wrapped(former), count + 1);

      await server.kill("SIGKILL");
      if (store === "sqlite") {
        // The state after a crash between the last step and the replacement of the key file.
        renameSync(deployment.file("vault-key"), deployment.file("vault-key.next"));
        deployment.setMasterKey(former);
      } else {
        deployment.useNextKeyAlone();
      }
      server = await deployment.start();
      await revealsAll(server, keys);
      assert.equal(fingerprintOf(deployment.masterKey()), to);
      if (store === "sqlite") {
        assert.deepEqual(deployment.keyFiles(), ["vault-key"]);
        assert.equal(statSync(deployment.file("vault-key")).mode & 0o777, 0o600);
      }
      await server.kill("SIGTERM");
    });
  });
}

describe("latchkey vault rotate", () => {
  it("continues after a change whose last step was done, and never reverses it", async (t) => {
    const deployment = await openDeployment(t, "sqlite");
    const server = await deployment.start();
    const { apiId } = await server.ok("apis.createApi", { name: "vaulted" });
    const keys = [await createRecoverable(server, apiId)];
    const former = deployment.masterKey();
    const first = JSON.parse((await deployment.rotated()).stdout);
    renameSync(deployment.file("vault-key"), deployment.file("vault-key.next"));
    deployment.setMasterKey(former);
    const second = JSON.parse((await deployment.rotated()).stdout);
    assert.equal(second.from, first.to);
    assert(![first.from, first.to].includes(second.to));
    assert.deepEqual(deployment.keyFiles(), ["vault-key"]);
    await revealsAll(server, keys);
  });

  it("does nothing when it is repeated with the same two keys", async (t) => {
    const deployment = await openDeployment(t, "postgres");
    const server = await deployment.start();
    const { apiId } = await server.ok("apis.createApi", { name: "vaulted" });
    const keys = [await createRecoverable(server, apiId)];
    const { to } = JSON.parse((await deployment.rotated()).stdout);
    assert.deepEqual(JSON.parse((await deployment.rotated()).stdout), { from: to, to, wrapped: 0 });
    await revealsAll(server, keys);
  });

  it("names the missing key", async (t) => {
    const deployment = await openDeployment(t, "postgres");
    const server = await deployment.start();
    await server.kill("SIGTERM");
    const [current] = deployment.settings.VAULT_KEY!.split(",") as [string];
    deployment.settings.VAULT_KEY = current;
    const alone = await deployment.rotate().ended.then(() => deployment.last!);
    assert.match(alone.stderr, /There is no key to change to\. Give both with LATCHKEY_VAULT_KEY=<current>,<next>/);
    deployment.settings.VAULT_KEY = `${newKey()},${newKey()}`;
    const foreign = await deployment.rotate().ended.then(() => deployment.last!);
    assert.match(foreign.stderr, MASTER_KEY_ERROR);
  });

  it("names the workspaces whose data keys cannot be opened, and goes on when they are restored", async (t) => {
    const deployment = await openDeployment(t, "sqlite");
    const server = await deployment.start();
    const { apiId } = await server.ok("apis.createApi", { name: "vaulted" });
    const keys = [await createRecoverable(server, apiId)];
    await server.kill("SIGTERM");
    const { workspaceId, restore } = await deployment.alterDataKey();
    const rotation = deployment.rotate();
    assert.equal((await rotation.ended).code, 1);
    const { stderr } = rotation;
    assert.match(
      stderr,
      /not complete: 1 of the data keys cannot be opened by these master keys; 0 were encrypted again\. Keep both/,
    );
    assert(stderr.includes(workspaceId));
    await restore();
    const { wrapped } = JSON.parse((await deployment.rotated()).stdout);
    assert.equal(wrapped, 1);
    await revealsAll(await deployment.start(), keys);
  });

  it("reports that there is no vault", async (t) => {
    const deployment = await openDeployment(t, "postgres");
    delete deployment.settings.VAULT_KEY;
    const server = await deployment.start();
    await server.kill("SIGTERM");
    const { stderr } = await deployment.rotate().ended.then(() => deployment.last!);
    assert.match(stderr, /This database has no vault yet/);
  });
});

interface Recoverable {
  keyId: string;
  key: string;
}

const createRecoverable = (server: Server, apiId: string): Promise<Recoverable> =>
  server.ok("keys.createKey", { apiId, recoverable: true });

async function revealsAll(server: Server, keys: readonly Recoverable[]): Promise<void> {
  for (const { keyId, key } of keys) {
    assert.equal((await server.ok("keys.getKey", { keyId, decrypt: true })).plaintext, key);
  }
}

function fingerprintOf(key: string): string {
  return sealingKeyFingerprint(Buffer.from(key, "base64"));
}

/** A database, its folder, and the real programs on them. The test removes the folder. */
class VaultDeployment {
  readonly directory: string;
  readonly settings: Record<string, string>;
  /** The last program. */
  last: Program | undefined;
  readonly #url: string | undefined;
  #store: Promise<Store<typeof direct>> | undefined;

  constructor(directory: string, url: string | undefined) {
    this.directory = directory;
    this.#url = url;
    this.settings = {
      DATA_DIR: join(directory, "data"),
      ...(url !== undefined && { DATABASE_URL: url, VAULT_KEY: `${newKey()},${newKey()}` }),
    };
  }

  start(): Promise<Server> {
    return start(this);
  }

  launch(): Server {
    return launch(this);
  }

  /** Starts `latchkey vault rotate`. */
  rotate(): Program {
    this.last = new Program([programFile(), "vault", "rotate", "--json"], this);
    return this.last;
  }

  /** Runs it to its successful end. */
  async rotated(): Promise<Program> {
    const ran = await run(["vault", "rotate", "--json"], this);
    assert.equal(ran.code, 0, ran.stderr);
    return ran;
  }

  file(name: string): string {
    return join(this.settings.DATA_DIR!, name);
  }

  keyFiles(): string[] {
    return readdirSync(this.settings.DATA_DIR!).filter((name) => name.startsWith("vault-key"));
  }

  /** The current master key. */
  masterKey(): string {
    if (this.#url !== undefined) return this.settings.VAULT_KEY!.split(",")[0]!;
    return readFileSync(this.file("vault-key"), "utf8").trim();
  }

  setMasterKey(key: string): void {
    if (this.#url !== undefined) this.settings.VAULT_KEY = key;
    else writeFileSync(this.file("vault-key"), `${key}\n`, { mode: 0o600 });
  }

  useNextKeyAlone(): void {
    this.settings.VAULT_KEY = this.settings.VAULT_KEY!.split(",")[1]!;
  }

  /** Creates data keys of other workspaces under the current master key. */
  async makeDataKeys(count: number): Promise<void> {
    const master = Buffer.from(this.masterKey(), "base64");
    const ids = Array.from({ length: count }, (_, i) => `ws_filler_${i}`);
    const row = { enabled: 1, has_imported_keys: 0, is_default: 0, created_at: 0 };
    const store = await this.#open();
    await store.transact("run", async ({ db }) => {
      for (let i = 0; i < count; i += 1_000) {
        const part = ids.slice(i, i + 1_000);
        const workspaces = part.map((id) => ({ ...row, id, name: id })) as Insertable<Schema["workspaces"]>[];
        await db.insertInto("workspaces").values(workspaces).execute();
        const dataKeys = part.map((workspace_id) => ({
          workspace_id,
          fingerprint: sealingKeyFingerprint(master),
          sealed: seal(master, `latchkey data key ${workspace_id}`, newSealingKey()),
          created_at: 0,
        }));
        await db.insertInto("vault_data_keys").values(dataKeys).execute();
      }
    });
  }

  /** Alters the data key of a workspace. */
  async alterDataKey(): Promise<{ workspaceId: string; restore(): Promise<unknown> }> {
    const store = await this.#open();
    const { workspace_id, sealed } = (await store.read("run", ({ db }) =>
      db.selectFrom("vault_data_keys").selectAll().executeTakeFirstOrThrow(),
    )) as VaultDataKeyRow;
    const put = (value: string) =>
      store.transact("run", ({ db }) =>
        db.updateTable("vault_data_keys").set({ sealed: value }).where("workspace_id", "=", workspace_id).execute(),
      );
    await put(`${sealed.slice(0, -4)}AAAA`);
    return { workspaceId: workspace_id, restore: () => put(sealed) };
  }

  /** The number of data keys under another master key than this one. */
  async wrapped(key: string): Promise<number> {
    const store = await this.#open();
    return (await store.read("run", async ({ db }) => {
      const query = db.selectFrom("vault_data_keys").where("fingerprint", "<>", fingerprintOf(key));
      return (await query.select(({ fn }) => fn.countAll<number>().as("count")).executeTakeFirstOrThrow()).count;
    })) as number;
  }

  async close(): Promise<void> {
    await (await this.#store)?.close();
  }

  /** A connection beside the programs'. */
  #open(): Promise<Store<typeof direct>> {
    this.#store ??=
      this.#url === undefined
        ? Promise.resolve(openSqliteStoreHere(this.file("latchkey.db"), direct))
        : openPostgresStore({ url: this.#url, clock: systemClock, connectionsMax: 1 }, direct);
    return this.#store;
  }
}

const direct = {
  reading: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
  writing: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
};

async function openDeployment(t: TestContext, store: StoreKind): Promise<VaultDeployment> {
  const directory = makeFolder(t);
  const database = store === "postgres" ? await freshDatabase() : undefined;
  const deployment = new VaultDeployment(directory, database?.url);
  t.after(async () => {
    await deployment.close();
    await database?.drop();
  });
  return deployment;
}

describe("the embedded vault's key file", () => {
  it("is created at the first start, readable by its owner only, and a missing one stops the next start", async (t) => {
    const deployment = await openDeployment(t, "sqlite");
    const server = await deployment.start();
    assert.equal(statSync(deployment.file("vault-key")).mode & 0o777, 0o600);
    assert.equal(statSync(deployment.settings.DATA_DIR!).mode & 0o777, 0o700);
    assert(!server.output.includes(deployment.masterKey()));
    await server.kill("SIGTERM");

    const key = deployment.masterKey();
    renameSync(deployment.file("vault-key"), join(deployment.directory, "elsewhere"));
    const rejected = deployment.launch();
    assert.deepEqual(await rejected.ended, { code: 1, signal: null });
    assert.match(rejected.stderr, MASTER_KEY_ERROR);
    assert.match(rejected.stderr, /put the file back into the data folder/);
    // No other key is created in its place.
    assert(!existsSync(deployment.file("vault-key")));
    // A configured key works as well as the file.
    deployment.settings.VAULT_KEY = key;
    await (await deployment.start()).kill("SIGTERM");
  });
});
