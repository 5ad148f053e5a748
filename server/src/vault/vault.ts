import type { Instant } from "../clock/clock.ts";
import { newSealingKey, seal, unseal } from "../crypto/seal.ts";
import { OperatorError } from "../log/operator-error.ts";
import type { VaultDataKeyRow } from "../store/schema.ts";
import type { Sql } from "../store/store.ts";
import {
  findDataKey,
  findDataKeysNotUnder,
  findVaultSecrets,
  insertDataKey,
  insertVaultSecret,
  lockVaultFingerprint,
  putVaultFingerprint,
  updateDataKey,
} from "../store/vault.ts";
import type { KeyRing } from "./key-ring.ts";

/** This process does not have the master key that the database names. */
export class MasterKeyMissing extends OperatorError {
  constructor() {
    super(
      "The vault of this database stands under another master key than the one configured here. " +
        "Set LATCHKEY_VAULT_KEY (or put the file vault-key back into the data folder) to the key it was made with.",
    );
    this.name = "MasterKeyMissing";
  }
}

const DATA_KEYS_PER_STEP = 500;
const DATA_KEYS_CACHED_MAX = 10_000;

/**
 * Recoverable key strings, and the peppers of imported hashes. Each is sealed under its workspace's data key and bound to
 * what it belongs to and its workspace; each data key is sealed under the master key and bound to its workspace. The master key is not in the database: only its
 * fingerprint is.
 */
export class Vault {
  readonly #keyRing: KeyRing;
  /** Data keys that were opened. A change of the master key wraps them anew and leaves them as they are. */
  readonly #dataKeys = new Map<string, Buffer>();

  constructor(keyRing: KeyRing) {
    this.#keyRing = keyRing;
  }

  /** Whether keys can be recoverable here. */
  get isOpen(): boolean {
    return !this.#keyRing.isEmpty;
  }

  /**
   * Compares the master key with the database, which takes over the fingerprint at first use.
   *
   * @throws {MasterKeyMissing}
   */
  async check(sql: Sql): Promise<void> {
    const current = await lockVaultFingerprint(sql);
    if (current !== undefined) {
      if (!this.#keyRing.find(current)) throw new MasterKeyMissing();
      this.#keyRing.settle(current);
      return;
    }
    const first = this.#keyRing.first();
    if (first !== undefined) await putVaultFingerprint(sql, first);
  }

  /** Keeps a key string so that it can be shown again; in the transaction that makes the key. */
  async save(sql: Sql, workspaceId: string, keyId: string, plaintext: string, at: Instant): Promise<void> {
    const dataKey = await this.#dataKeyForWriting(sql, workspaceId, at);
    await insertVaultSecret(sql, {
      keyId,
      workspaceId,
      sealed: seal(dataKey, secretContext(workspaceId, keyId), Buffer.from(plaintext)),
      createdAt: at,
    });
  }

  /** The strings of those keys that are kept, by key id. */
  async reveal(sql: Sql, workspaceId: string, keyIds: readonly string[]): Promise<Map<string, string>> {
    const secrets = await findVaultSecrets(sql, workspaceId, keyIds);
    if (secrets.length === 0) return new Map();
    const dataKey = await this.#findDataKey(sql, workspaceId);
    if (!dataKey) throw new Error("A vault secret has no data key");
    // Remembered by readers only, who see nothing that may still be rolled back.
    if (this.#dataKeys.size >= DATA_KEYS_CACHED_MAX) this.#dataKeys.clear();
    this.#dataKeys.set(workspaceId, dataKey);
    return new Map(
      secrets.map(({ key_id, sealed }) => [
        key_id,
        unseal(dataKey, secretContext(workspaceId, key_id), sealed).toString(),
      ]),
    );
  }

  /** Seals what the hashes of a migration are keyed with, for its row. */
  async sealPepper(
    sql: Sql,
    workspaceId: string,
    migrationId: string,
    pepper: Uint8Array,
    at: Instant,
  ): Promise<string> {
    return seal(await this.#dataKeyForWriting(sql, workspaceId, at), pepperContext(workspaceId, migrationId), pepper);
  }

  /** Opens it again. */
  async openPepper(sql: Sql, workspaceId: string, migrationId: string, sealed: string): Promise<Buffer> {
    const dataKey = await this.#findDataKey(sql, workspaceId);
    if (!dataKey) throw new Error("A sealed pepper has no data key");
    return unseal(dataKey, pepperContext(workspaceId, migrationId), sealed);
  }

  /**
   * The fingerprints of a change of the master key: `from` is undefined when there is no vault yet, `to` when there is
   * no key to change to. They are the same when the change came to its end before.
   *
   * @throws {MasterKeyMissing} when the key that the vault stands under is not here.
   */
  async rotation(sql: Sql): Promise<{ from: string | undefined; to: string | undefined }> {
    const from = await lockVaultFingerprint(sql);
    if (from === undefined) return { from, to: undefined };
    if (!this.#keyRing.find(from)) throw new MasterKeyMissing();
    // A change that was stopped after its last step has done everything but this.
    this.#keyRing.settle(from);
    return { from, to: this.#keyRing.next() };
  }

  /**
   * One step of a change of the master key: wraps up to 500 data keys anew. With the last the vault stands under the
   * new key. Stopped anywhere, the next call goes on from there.
   *
   * @throws {MasterKeyMissing} when one of the two keys is not here.
   */
  async rotateStep(sql: Sql, to: string): Promise<{ wrapped: number; done: boolean }> {
    const target = this.#keyRing.find(to);
    await lockVaultFingerprint(sql);
    if (!target) throw new MasterKeyMissing();
    const dataKeys = await findDataKeysNotUnder(sql, to, DATA_KEYS_PER_STEP);
    for (const dataKey of dataKeys) {
      const former = this.#keyRing.find(dataKey.fingerprint);
      if (!former) throw new MasterKeyMissing();
      const context = dataKeyContext(dataKey.workspace_id);
      await updateDataKey(sql, {
        ...dataKey,
        fingerprint: to,
        sealed: seal(target, context, unseal(former, context, dataKey.sealed)),
      });
    }
    const done = dataKeys.length < DATA_KEYS_PER_STEP;
    if (done) await putVaultFingerprint(sql, to);
    return { wrapped: dataKeys.length, done };
  }

  async #findDataKey(sql: Sql, workspaceId: string): Promise<Buffer | undefined> {
    const cached = this.#dataKeys.get(workspaceId);
    if (cached) return cached;
    const row = await findDataKey(sql, workspaceId);
    return row && this.#open(row);
  }

  #open({ workspace_id, fingerprint, sealed }: VaultDataKeyRow): Buffer {
    const master = this.#keyRing.find(fingerprint);
    if (!master) throw new MasterKeyMissing();
    return unseal(master, dataKeyContext(workspace_id), sealed);
  }

  async #dataKeyForWriting(sql: Sql, workspaceId: string, at: Instant): Promise<Buffer> {
    const existing = await this.#findDataKey(sql, workspaceId);
    if (existing) return existing;
    // Locked, so that no change of the master key passes by a data key that is wrapped under the old one meanwhile.
    const current = await lockVaultFingerprint(sql);
    const master = current === undefined ? undefined : this.#keyRing.find(current);
    if (!master) throw new MasterKeyMissing();
    await insertDataKey(sql, {
      workspace_id: workspaceId,
      fingerprint: current!,
      sealed: seal(master, dataKeyContext(workspaceId), newSealingKey()),
      created_at: at,
    });
    // The one in the database, mine or that of who was faster.
    return this.#open((await findDataKey(sql, workspaceId))!);
  }
}

function dataKeyContext(workspaceId: string): string {
  return `latchkey data key ${workspaceId}`;
}

function secretContext(workspaceId: string, keyId: string): string {
  return `latchkey key string ${workspaceId} ${keyId}`;
}

function pepperContext(workspaceId: string, migrationId: string): string {
  return `latchkey pepper ${workspaceId} ${migrationId}`;
}
