import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Insertable } from "kysely";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { newSealingKey, SealBroken, seal } from "../../../../engine/src/crypto/seal.ts";
import { freshDatabase } from "../../../test/services/postgres.ts";
import { migrate } from "../store/migrate.ts";
import { openPostgresStore } from "../store/postgres/store.ts";
import type { Schema } from "../store/schema.ts";
import { openSqliteStoreHere } from "../store/sqlite/store-here.ts";
import { Rollback, type Sql, type Store } from "../store/store.ts";
import { KeyRing } from "./key-ring.ts";
import { MasterKeyMissing, type RotatedStep, UNREADABLE_MAX, Vault } from "./vault.ts";

const procedures = {
  reading: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
  writing: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
};

const databases: Record<string, () => Promise<{ store: Store<typeof procedures>; remove(): Promise<void> }>> = {
  async sqlite() {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-vault-"));
    const store = openSqliteStoreHere(join(folder, "latchkey.db"), procedures);
    return { store, remove: async () => rmSync(folder, { recursive: true, force: true }) };
  },
  async postgres() {
    const { url, drop } = await freshDatabase();
    return { store: await openPostgresStore({ url, clock: new SimulatedClock(0) }, procedures), remove: drop };
  },
};

const at = instantAt(1_768_478_400_000);
const newMasterKey = () => newSealingKey().toString("base64");
const openVault = (...keys: string[]) => new Vault(new KeyRing({ kind: "given", keys }));

for (const [name, open] of Object.entries(databases)) {
  describe(`the vault on ${name}`, () => {
    let store: Store<typeof procedures>;
    let remove: () => Promise<void>;
    /** The master key of the vault in this database. */
    let master = newMasterKey();
    let made = 0;

    before(async () => {
      ({ store, remove } = await open());
      await write((sql) => migrate(sql));
      await write((sql) => openVault(master).check(sql));
    });
    after(async () => {
      await store.close();
      await remove();
    });

    /** All steps of a rotation. */
    const rotateAll = async (vault: Vault, to = "") => {
      let step: RotatedStep = { wrapped: 0, unreadable: [], done: false };
      let wrapped = 0;
      while (!step.done) {
        const { unreadable } = step;
        step = await write((sql) => vault.rotateStep(sql, { to, unreadable }));
        wrapped += step.wrapped;
      }
      return { wrapped, unreadable: step.unreadable };
    };
    const write = <T>(work: (sql: Sql) => Promise<T>) => store.transact("run", work) as Promise<T>;
    const reveal = (vault: Vault, workspaceId: string, ...keyIds: string[]) =>
      store.read("run", (sql) => vault.reveal(sql, workspaceId, keyIds)) as Promise<Map<string, string>>;
    /** Asserts that these keys are revealed, each with the string `secret of <id>`. */
    const revealsAll = async (vault: Vault, workspaceId: string, ...keyIds: string[]) =>
      assert.deepEqual(
        [...(await reveal(vault, workspaceId, ...keyIds))].sort(),
        keyIds.map((id) => [id, `secret of ${id}`]).sort(),
      );

    /** Workspaces with one API each. */
    async function makeWorkspaces(count: number): Promise<string[]> {
      const ids = Array.from({ length: count }, () => `ws_${String(++made).padStart(5, "0")}`);
      await write(async ({ db }) => {
        const rows = ids.map((id) => ({
          id,
          name: id,
          enabled: 1,
          has_imported_keys: 0,
          is_default: 0,
          created_at: at,
          requests_per_minute: null,
          updated_at: null,
        })) as Insertable<Schema["workspaces"]>[];
        await db.insertInto("workspaces").values(rows).execute();
        const apis = ids.map((id) => ({
          id: `api of ${id}`,
          workspace_id: id,
          name: id,
          delete_protection: 0,
          created_at: at,
        })) as Insertable<Schema["apis"]>[];
        await db.insertInto("apis").values(apis).execute();
      });
      return ids;
    }

    async function insertKey({ db }: Sql, workspaceId: string, id: string): Promise<void> {
      const row = { id, workspace_id: workspaceId, api_id: `api of ${workspaceId}`, pool_id: id, hash: id };
      await db
        .insertInto("keys")
        .values({ ...row, hash_version: 1, start: id, enabled: 1, recoverable: 1, created_at: at } as Insertable<
          Schema["keys"]
        >)
        .execute();
    }

    /** A key whose string is `secret of <id>`. */
    async function saveSecret(vault: Vault, workspaceId: string): Promise<string> {
      const id = `key_${++made}`;
      await write(async (sql) => {
        await insertKey(sql, workspaceId, id);
        await vault.save(sql, workspaceId, id, `secret of ${id}`, at);
      });
      return id;
    }

    const sealedOf = (keyId: string) =>
      write(async ({ db }) => {
        const query = db.selectFrom("vault_secrets").select("sealed").where("key_id", "=", keyId);
        return (await query.executeTakeFirstOrThrow()).sealed;
      });
    const setSealed = (keyId: string, sealed: string) =>
      write(({ db }) => db.updateTable("vault_secrets").set({ sealed }).where("key_id", "=", keyId).execute());
    const dataKeyOf = (workspaceId: string) =>
      write(({ db }) =>
        db
          .selectFrom("vault_data_keys")
          .select(["sealed", "fingerprint"])
          .where("workspace_id", "=", workspaceId)
          .executeTakeFirstOrThrow(),
      );
    const setDataKey = (workspaceId: string, values: { sealed?: string; fingerprint?: string }) =>
      write(({ db }) =>
        db.updateTable("vault_data_keys").set(values).where("workspace_id", "=", workspaceId).execute(),
      );

    it("reveals stored key strings to their workspace only", async () => {
      const [one, other] = (await makeWorkspaces(2)) as [string, string];
      const vault = openVault(master);
      const keys = [await saveSecret(vault, one), await saveSecret(vault, one)];
      await saveSecret(vault, other);
      await revealsAll(vault, one, ...keys);
      await revealsAll(openVault(master), one, ...keys);
      assert.equal((await reveal(vault, other, ...keys)).size, 0);
      assert.equal((await reveal(vault, one, "key_that_is_not_there")).size, 0);
      assert.equal((await reveal(vault, one)).size, 0);
      for (const id of keys) assert(!(await sealedOf(id)).includes("secret"));
    });

    it("does not open a secret that was moved to another key, and loses nothing", async () => {
      const [workspace] = (await makeWorkspaces(1)) as [string];
      const vault = openVault(master);
      const [one, other, third] = [
        await saveSecret(vault, workspace),
        await saveSecret(vault, workspace),
        await saveSecret(vault, workspace),
      ];
      const [ofOne, ofOther] = [await sealedOf(one), await sealedOf(other)];
      await setSealed(one, ofOther);
      await setSealed(other, ofOne);
      for (const id of [one, other]) await assert.rejects(reveal(vault, workspace, id), SealBroken);
      await revealsAll(vault, workspace, third);
      await setSealed(one, ofOne);
      await setSealed(other, ofOther);
      await revealsAll(vault, workspace, one, other, third);
    });

    it("does not open a secret that was moved to another workspace, with or without its data key", async () => {
      const [one, other] = (await makeWorkspaces(2)) as [string, string];
      const vault = openVault(master);
      const [ofOne, ofOther] = [await saveSecret(vault, one), await saveSecret(vault, other)];
      const secrets = [await sealedOf(ofOne), await sealedOf(ofOther)] as const;
      const dataKeys = [await dataKeyOf(one), await dataKeyOf(other)] as const;

      await setSealed(ofOne, secrets[1]);
      await assert.rejects(reveal(openVault(master), one, ofOne), SealBroken);
      await setDataKey(one, dataKeys[1]);
      await assert.rejects(reveal(openVault(master), one, ofOne), SealBroken);
      await setSealed(ofOne, secrets[0]);
      await assert.rejects(reveal(openVault(master), one, ofOne), SealBroken);
      // Nothing can be encrypted under it either.
      await assert.rejects(saveSecret(openVault(master), one), SealBroken);

      await setDataKey(one, dataKeys[0]);
      await revealsAll(openVault(master), one, ofOne);
      await revealsAll(openVault(master), other, ofOther);
    });

    it("does not open a row that names another workspace", async () => {
      const [one, other] = (await makeWorkspaces(2)) as [string, string];
      const vault = openVault(master);
      const id = await saveSecret(vault, one);
      await saveSecret(vault, other);
      await write(({ db }) =>
        db.updateTable("vault_secrets").set({ workspace_id: other }).where("key_id", "=", id).execute(),
      );
      await assert.rejects(reveal(vault, other, id), SealBroken);
      assert.equal((await reveal(vault, one, id)).size, 0);
    });

    it("does not open a truncated or altered value", async () => {
      const [workspace] = (await makeWorkspaces(1)) as [string];
      const vault = openVault(master);
      const id = await saveSecret(vault, workspace);
      const sealed = await sealedOf(id);
      const { sealed: dataKey } = await dataKeyOf(workspace);
      const breakages = [
        () => "",
        (text: string) => text.slice(0, 20),
        (text: string) => text.slice(0, -4),
        (text: string) => text.slice(4),
        (text: string) => withOtherCharacter(text, 0),
        (text: string) => withOtherCharacter(text, 20),
        (text: string) => `${text}AAAA`,
      ];
      for (const broken of breakages) {
        await setSealed(id, broken(sealed));
        await assert.rejects(reveal(vault, workspace, id), SealBroken);
        await setSealed(id, sealed);
        await setDataKey(workspace, { sealed: broken(dataKey) });
        await assert.rejects(reveal(openVault(master), workspace, id), SealBroken);
        await setDataKey(workspace, { sealed: dataKey });
      }
      await revealsAll(openVault(master), workspace, id);
    });

    it("does not open anything with another master key, even if the database has its fingerprint", async () => {
      const [workspace] = (await makeWorkspaces(1)) as [string];
      const id = await saveSecret(openVault(master), workspace);
      const wrong = newMasterKey();
      for (const vault of [openVault(wrong), new Vault(new KeyRing({ kind: "none" }))]) {
        await assert.rejects(
          write((sql) => vault.check(sql)),
          MasterKeyMissing,
        );
        await assert.rejects(reveal(vault, workspace, id), MasterKeyMissing);
        await assert.rejects(saveSecret(vault, workspace), MasterKeyMissing);
        await assert.rejects(
          write((sql) => vault.rotation(sql)),
          MasterKeyMissing,
        );
      }
      const { fingerprint } = await dataKeyOf(workspace);
      const [claimed] = new KeyRing({ kind: "given", keys: [wrong] }).fingerprints;
      await setDataKey(workspace, { fingerprint: claimed! });
      await assert.rejects(reveal(openVault(wrong), workspace, id), SealBroken);
      await setDataKey(workspace, { fingerprint });
      await revealsAll(openVault(master), workspace, id);
    });

    it("stays open with a second, unused key", async () => {
      await write((sql) => openVault(master, newMasterKey()).check(sql));
      await write((sql) => openVault(newMasterKey(), master).check(sql));
    });

    it("does not cache a data key that was rolled back", async () => {
      const [workspace] = (await makeWorkspaces(1)) as [string];
      const vault = openVault(master);
      await write(async (sql) => {
        for (const id of [`key_${++made}`, `key_${++made}`]) {
          await insertKey(sql, workspace, id);
          await vault.save(sql, workspace, id, "never seen", at);
        }
        return new Rollback(undefined);
      });
      const id = await saveSecret(vault, workspace);
      await revealsAll(openVault(master), workspace, id);
    });

    it("creates one data key for concurrent first calls of a workspace", async () => {
      const [workspace] = (await makeWorkspaces(1)) as [string];
      const vaults = Array.from({ length: 8 }, () => openVault(master));
      const keys = await Promise.all(vaults.map((vault) => saveSecret(vault, workspace)));
      await revealsAll(openVault(master), workspace, ...keys);
    });

    describe("a rotation of its master key", () => {
      it("can be interrupted after each step and continued by other processes, without losing anything", async () => {
        // More than two steps.
        const workspaces = await makeWorkspaces(1_003);
        const [first, last] = [workspaces[0]!, workspaces.at(-1)!];
        const next = newMasterKey();
        const [from, to] = new KeyRing({ kind: "given", keys: [master, next] }).fingerprints as [string, string];
        // All except two have a data key that the test does not open.
        const dataKeys = workspaces.slice(1, -1).map((workspace_id) => ({
          workspace_id,
          fingerprint: from,
          sealed: seal(Buffer.from(master, "base64"), `latchkey data key ${workspace_id}`, newSealingKey()),
          created_at: at,
        }));
        await write(({ db }) => db.insertInto("vault_data_keys").values(dataKeys).execute());
        const keys = new Map([first, last].map((workspace) => [workspace, [] as string[]]));
        for (const [workspace, ids] of keys) ids.push(await saveSecret(openVault(master), workspace));
        // A process with all data keys in its cache.
        const running = openVault(master, next);
        for (const [workspace, ids] of keys) await revealsAll(running, workspace, ...ids);

        const steps: number[] = [];
        for (let done = false; !done; ) {
          // A new process for each step.
          const vault = openVault(master, next);
          assert.deepEqual(await write((sql) => vault.rotation(sql)), { from, to });
          const step = await write((sql) => vault.rotateStep(sql, { to }));
          steps.push(step.wrapped);
          done = step.done;

          const [fresh] = (await makeWorkspaces(1)) as [string];
          keys.set(fresh, [await saveSecret(openVault(master, next), fresh)]);
          for (const [workspace, ids] of keys) {
            ids.push(await saveSecret(running, workspace));
            for (const reader of [running, openVault(master, next)]) await revealsAll(reader, workspace, ...ids);
          }
        }
        assert.deepEqual([steps[0], steps[1]], [500, 500]);
        assert.equal(steps.length, 3);

        // A repeated rotation does nothing and does not reverse it.
        const again = openVault(master, next);
        assert.deepEqual(await write((sql) => again.rotation(sql)), { from: to, to });
        assert.deepEqual(await write((sql) => again.rotateStep(sql, { to })), {
          wrapped: 0,
          unreadable: [],
          done: true,
        });

        await write((sql) => openVault(next).check(sql));
        await assert.rejects(
          write((sql) => openVault(master).check(sql)),
          MasterKeyMissing,
        );
        for (const [workspace, ids] of keys) {
          await revealsAll(openVault(next), workspace, ...ids);
          await assert.rejects(reveal(openVault(master), workspace, ...ids), MasterKeyMissing);
        }
        const left = await write(({ db }) =>
          db.selectFrom("vault_data_keys").select("workspace_id").where("fingerprint", "<>", to).execute(),
        );
        assert.deepEqual(left, []);
        master = next;
      });

      it("can return to the former key halfway", async () => {
        const workspaces = await makeWorkspaces(501);
        const next = newMasterKey();
        const [from, to] = new KeyRing({ kind: "given", keys: [master, next] }).fingerprints as [string, string];
        const ids = new Map<string, string>();
        for (const workspace of workspaces) ids.set(workspace, await saveSecret(openVault(master), workspace));
        await write((sql) => openVault(master, next).rotateStep(sql, { to }));
        const back = openVault(next, master);
        assert.deepEqual(await write((sql) => back.rotation(sql)), { from, to: from });
        for (let done = false; !done; ) ({ done } = await write((sql) => back.rotateStep(sql, { to: from })));
        await write((sql) => openVault(master).check(sql));
        const vault = openVault(master);
        for (const [workspace, id] of ids) await revealsAll(vault, workspace, id);
      });

      it("fails without a next key, or with an unknown one", async () => {
        assert.equal((await write((sql) => openVault(master).rotation(sql))).to, undefined);
        await assert.rejects(
          write((sql) => openVault(master).rotateStep(sql, { to: "unknown" })),
          MasterKeyMissing,
        );
      });

      it("seals all data keys but those that cannot be opened, and keeps the former master key", async () => {
        const workspaces = await makeWorkspaces(503);
        const ids = new Map<string, string>();
        for (const workspace of workspaces) ids.set(workspace, await saveSecret(openVault(master), workspace));
        const [altered, foreign] = workspaces.toSorted() as [string, string];
        const { sealed, fingerprint } = await dataKeyOf(altered);
        await setDataKey(altered, { sealed: sealed.slice(0, -4) });
        await setDataKey(foreign, { fingerprint: "unknown" });
        const next = newMasterKey();
        const vault = openVault(master, next);
        const { from, to } = await write((sql) => vault.rotation(sql));
        const rotate = () => rotateAll(vault, to);
        assert.deepEqual((await rotate()).unreadable, [altered, foreign]);
        // The old master key stays current, so that the operator does not delete it.
        assert.equal((await write((sql) => vault.rotation(sql))).from, from);
        for (const workspace of workspaces) {
          if (workspace !== altered && workspace !== foreign)
            assert.equal((await dataKeyOf(workspace)).fingerprint, to);
        }
        await setDataKey(altered, { sealed });
        await setDataKey(foreign, { fingerprint });
        assert.deepEqual(await rotate(), { unreadable: [], wrapped: 2 });
        master = next;
        for (const [workspace, id] of ids) await revealsAll(openVault(master), workspace, id);
      });

      it("ends where it cannot open more than a hundred data keys", async () => {
        const workspaces = await makeWorkspaces(UNREADABLE_MAX + 1);
        for (const workspace of workspaces) await saveSecret(openVault(master), workspace);
        const rows = await Promise.all(
          workspaces.map(async (workspace) => ({ workspace, ...(await dataKeyOf(workspace)) })),
        );
        for (const { workspace, sealed } of rows) await setDataKey(workspace, { sealed: sealed.slice(0, -4) });
        const vault = openVault(master, newMasterKey());
        const { from, to } = await write((sql) => vault.rotation(sql));
        assert.deepEqual((await rotateAll(vault, to)).unreadable.toSorted(), workspaces.toSorted());
        assert.equal((await write((sql) => vault.rotation(sql))).from, from);
        for (const { workspace, sealed } of rows) await setDataKey(workspace, { sealed });
      });
    });
  });
}

function withOtherCharacter(text: string, index: number): string {
  return text.slice(0, index) + (text[index] === "A" ? "B" : "A") + text.slice(index + 1);
}
