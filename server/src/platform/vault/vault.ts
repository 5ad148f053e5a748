import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { newSealingKey, SealBroken, seal, unseal } from "../../../../engine/src/crypto/seal.ts";
import { OperatorError } from "../../log/operator-error.ts";
import { sampleVaultSecrets } from "../store/inspection.ts";
import type { VaultDataKeyRow } from "../store/schema.ts";
import type { Sql } from "../store/store.ts";
import {
  findDataKey,
  findDataKeysNotUnder,
  findVaultFingerprint,
  findVaultSecrets,
  insertDataKey,
  insertVaultSecret,
  lockVaultFingerprint,
  putVaultFingerprint,
  updateDataKey,
} from "../store/vault.ts";
import type { KeyRing } from "./key-ring.ts";

const MASTER_KEY_MISSING = "MasterKeyMissing";

/** This process does not have the vault's master key. */
export class MasterKeyMissing extends OperatorError {
  constructor() {
    super(
      "This process does not have the master key of the vault of this database: it has another one, or none. " +
        "Set LATCHKEY_VAULT_KEY to the key that the vault was made with. With an embedded database, that is the file vault-key: put the file back into the data folder.",
    );
    this.name = MASTER_KEY_MISSING;
  }
}

/** Also for the copy of the error from a database thread, where its class is lost. */
export function isMasterKeyMissing(error: unknown): boolean {
  return error instanceof Error && error.name === MASTER_KEY_MISSING;
}

/** What a sample of recoverable keys showed. `locked`: this process lacks the master key. */
export type VaultSample =
  | { kind: "decrypted"; decrypted: number }
  | { kind: "locked"; fingerprint: string }
  | { kind: "broken"; keyId: string };

/** A step of a rotation of the master key. */
export interface RotationStep {
  /** The fingerprint of the next master key. */
  to: string;
  /** Workspaces whose data keys earlier steps could not open. */
  unreadable?: readonly string[];
}

/** What a step of a rotation has done. */
export interface RotatedStep {
  /** Data keys that are sealed under the next master key now. */
  wrapped: number;
  /** Workspaces whose data keys no step could open: they were altered, or stand under another master key. */
  unreadable: readonly string[];
  /** No step follows. */
  done: boolean;
}

const DATA_KEYS_PER_STEP = 500;
/** A rotation that finds more data keys that it cannot open ends. */
export const UNREADABLE_MAX = 100;
const DATA_KEYS_CACHED_MAX = 10_000;

/**
 * Envelope encryption of recoverable key strings, peppers of imported hashes, headers of upstream verifiers, secrets of
 * webhooks, and keys that sign access tokens. Each value is sealed under its workspace's data key and bound to its owner and
 * workspace. Each data key is sealed under the master key and bound to its workspace. The database contains only the
 * fingerprint of the master key.
 */
export class Vault {
  readonly #keyRing: KeyRing;
  /** Opened data keys. A rotation of the master key seals them again but does not change them. */
  readonly #dataKeys = new Map<string, Buffer>();

  constructor(keyRing: KeyRing) {
    this.#keyRing = keyRing;
  }

  /** Whether a master key is available, so that keys can be recoverable. */
  get isOpen(): boolean {
    return !this.#keyRing.isEmpty;
  }

  /**
   * Compares the master key with the fingerprint in the database, and stores the fingerprint at first use.
   *
   * @throws {MasterKeyMissing}
   */
  async check(sql: Sql): Promise<void> {
    const current = await lockVaultFingerprint(sql);
    if (current !== undefined) {
      if (!this.#keyRing.find(current)) throw new MasterKeyMissing();
      this.#keyRing.promote(current);
      return;
    }
    const first = this.#keyRing.first();
    if (first !== undefined) await putVaultFingerprint(sql, first);
  }

  /** Whether the vault has a master key that this process does not have. */
  async isLocked(sql: Sql): Promise<boolean> {
    const current = await findVaultFingerprint(sql);
    return current !== undefined && !this.#keyRing.find(current);
  }

  /** Stores a key string so that it can be revealed later, in the transaction that creates the key. */
  async save(sql: Sql, workspaceId: string, keyId: string, plaintext: string, at: Instant): Promise<void> {
    await insertVaultSecret(sql, {
      keyId,
      workspaceId,
      sealed: await this.#seal(sql, workspaceId, secretContext(workspaceId, keyId), Buffer.from(plaintext), at),
      createdAt: at,
    });
  }

  /** The strings of those keys that are stored, by key id. */
  async reveal(sql: Sql, workspaceId: string, keyIds: readonly string[]): Promise<Map<string, string>> {
    const secrets = await findVaultSecrets(sql, workspaceId, keyIds);
    if (secrets.length === 0) return new Map();
    const dataKey = await this.#findDataKey(sql, workspaceId);
    if (!dataKey) throw new SealBroken(new Error("A vault secret has no data key"));
    // Only reads fill the cache: a transaction might still roll back the data key that it created.
    if (this.#dataKeys.size >= DATA_KEYS_CACHED_MAX) this.#dataKeys.clear();
    this.#dataKeys.set(workspaceId, dataKey);
    return new Map(
      secrets.map(({ key_id, sealed }) => [
        key_id,
        unseal(dataKey, secretContext(workspaceId, key_id), sealed).toString(),
      ]),
    );
  }

  /** Seals the pepper of a migration. */
  async sealPepper(
    sql: Sql,
    workspaceId: string,
    migrationId: string,
    pepper: Uint8Array,
    at: Instant,
  ): Promise<string> {
    return this.#seal(sql, workspaceId, pepperContext(workspaceId, migrationId), pepper, at);
  }

  /** Opens a sealed pepper. */
  async openPepper(sql: Sql, workspaceId: string, migrationId: string, sealed: string): Promise<Buffer> {
    return this.#unseal(sql, workspaceId, pepperContext(workspaceId, migrationId), sealed);
  }

  /** Seals the headers of an API's upstream verifier. */
  async sealHeaders(sql: Sql, workspaceId: string, apiId: string, headers: string, at: Instant): Promise<string> {
    return this.#seal(sql, workspaceId, headersContext(workspaceId, apiId), Buffer.from(headers), at);
  }

  /** Opens sealed headers. */
  async openHeaders(sql: Sql, workspaceId: string, apiId: string, sealed: string): Promise<string> {
    return (await this.#unseal(sql, workspaceId, headersContext(workspaceId, apiId), sealed)).toString();
  }

  /** Seals the secret of a webhook. */
  async sealWebhookSecret(
    sql: Sql,
    workspaceId: string,
    webhookId: string,
    secret: string,
    at: Instant,
  ): Promise<string> {
    return this.#seal(sql, workspaceId, webhookContext(workspaceId, webhookId), Buffer.from(secret), at);
  }

  /** Opens the sealed secret of a webhook. */
  async openWebhookSecret(sql: Sql, workspaceId: string, webhookId: string, sealed: string): Promise<string> {
    return (await this.#unseal(sql, workspaceId, webhookContext(workspaceId, webhookId), sealed)).toString();
  }

  /** Seals the private key that signs access tokens. */
  async sealSigningKey(sql: Sql, workspaceId: string, id: string, privateKey: string, at: Instant): Promise<string> {
    return this.#seal(sql, workspaceId, signingKeyContext(workspaceId, id), Buffer.from(privateKey), at);
  }

  /** Opens the sealed private key that signs access tokens. */
  async openSigningKey(sql: Sql, workspaceId: string, id: string, sealed: string): Promise<string> {
    return (await this.#unseal(sql, workspaceId, signingKeyContext(workspaceId, id), sealed)).toString();
  }

  /**
   * The fingerprints of a rotation of the master key. `from` is undefined if there is no vault yet, `to` if there is no
   * next key. They are equal if the rotation is complete.
   *
   * @throws {MasterKeyMissing} when the current master key is missing.
   */
  async rotation(sql: Sql): Promise<{ from: string | undefined; to: string | undefined }> {
    const from = await lockVaultFingerprint(sql);
    if (from === undefined) return { from, to: undefined };
    if (!this.#keyRing.find(from)) throw new MasterKeyMissing();
    // The last step of a rotation that was interrupted at its end.
    this.#keyRing.promote(from);
    return { from, to: this.#keyRing.next() };
  }

  /**
   * One step of a rotation: seals up to 500 data keys under the new master key. The last step makes it the current master
   * key, unless a data key could not be opened. An interrupted rotation continues with the next call.
   *
   * @throws {MasterKeyMissing} when the next master key is missing.
   */
  async rotateStep(sql: Sql, { to, unreadable = [] }: RotationStep): Promise<RotatedStep> {
    const target = this.#keyRing.find(to);
    await lockVaultFingerprint(sql);
    if (!target) throw new MasterKeyMissing();
    const dataKeys = await findDataKeysNotUnder(sql, to, unreadable, DATA_KEYS_PER_STEP);
    const failed: string[] = [];
    for (const dataKey of dataKeys) {
      const sealed = this.#sealUnder(target, dataKey);
      if (sealed === undefined) failed.push(dataKey.workspace_id);
      else await updateDataKey(sql, { ...dataKey, fingerprint: to, sealed });
    }
    const all = [...unreadable, ...failed];
    const done = dataKeys.length < DATA_KEYS_PER_STEP || all.length > UNREADABLE_MAX;
    if (done && all.length === 0) await putVaultFingerprint(sql, to);
    return { wrapped: dataKeys.length - failed.length, unreadable: all, done };
  }

  /** A data key, sealed under another master key; undefined if it cannot be opened. */
  #sealUnder(target: Buffer, row: VaultDataKeyRow): string | undefined {
    try {
      return seal(target, dataKeyContext(row.workspace_id), this.#open(row));
    } catch (error) {
      if (error instanceof MasterKeyMissing || error instanceof SealBroken) return undefined;
      throw error;
    }
  }

  /** Decrypts some recoverable keys, to check that the master key fits and that nothing was altered. */
  async revealSample(sql: Sql): Promise<VaultSample> {
    const fingerprint = await findVaultFingerprint(sql);
    if (fingerprint === undefined) return { kind: "decrypted", decrypted: 0 };
    if (!this.#keyRing.find(fingerprint)) return { kind: "locked", fingerprint };
    const sample = await sampleVaultSecrets(sql);
    for (const { key_id, workspace_id } of sample) {
      try {
        await this.reveal(sql, workspace_id, [key_id]);
      } catch (error) {
        if (error instanceof MasterKeyMissing || error instanceof SealBroken) return { kind: "broken", keyId: key_id };
        throw error;
      }
    }
    return { kind: "decrypted", decrypted: sample.length };
  }

  /** Seals a value under the data key of its workspace. */
  async #seal(sql: Sql, workspaceId: string, context: string, value: Uint8Array, at: Instant): Promise<string> {
    return seal(await this.#dataKeyForWriting(sql, workspaceId, at), context, value);
  }

  async #unseal(sql: Sql, workspaceId: string, context: string, sealed: string): Promise<Buffer> {
    const dataKey = await this.#findDataKey(sql, workspaceId);
    if (!dataKey) throw new SealBroken(new Error("A sealed value has no data key"));
    return unseal(dataKey, context, sealed);
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
    // Locked, so that a concurrent rotation cannot miss a data key that is sealed under the old master key.
    const current = await lockVaultFingerprint(sql);
    const master = current === undefined ? undefined : this.#keyRing.find(current);
    if (!master) throw new MasterKeyMissing();
    await insertDataKey(sql, {
      workspace_id: workspaceId,
      fingerprint: current!,
      sealed: seal(master, dataKeyContext(workspaceId), newSealingKey()),
      created_at: at,
    });
    // Re-read: a concurrent transaction may have inserted it first.
    return this.#open((await findDataKey(sql, workspaceId))!);
  }
}

/** What a sealed data key is bound to. */
export function dataKeyContext(workspaceId: string): string {
  return `latchkey data key ${workspaceId}`;
}

function secretContext(workspaceId: string, keyId: string): string {
  return `latchkey key string ${workspaceId} ${keyId}`;
}

function headersContext(workspaceId: string, apiId: string): string {
  return `latchkey upstream headers ${workspaceId} ${apiId}`;
}

function webhookContext(workspaceId: string, webhookId: string): string {
  return `latchkey webhook secret ${workspaceId} ${webhookId}`;
}

function signingKeyContext(workspaceId: string, id: string): string {
  return `latchkey signing key ${workspaceId} ${id}`;
}

function pepperContext(workspaceId: string, migrationId: string): string {
  return `latchkey pepper ${workspaceId} ${migrationId}`;
}
