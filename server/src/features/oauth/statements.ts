import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { KeyPlace } from "../../../../engine/src/verification/request.ts";
import { recordChange } from "../../platform/store/audit/audit.ts";
import type { SigningAlgorithm, SigningKeyRow } from "../../platform/store/schema.ts";
import type { Sql } from "../../platform/store/store.ts";
import { lockVaultFingerprint } from "../../platform/store/vault.ts";
import type { Vault } from "../../platform/vault/vault.ts";
import { DerivedKeyReader } from "../keys/statements/derived-keys.ts";
import { nextActiveFrom, publishedKeysAt, type Rotation } from "./rotation.ts";

/** A signing key with its private key, which no log and no answer contains. */
export interface OpenedSigningKey {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  /** A JWK as JSON. */
  readonly publicKey: string;
  /** PKCS #8 in PEM. */
  readonly privateKey: string;
  readonly activeFrom: number;
}

/** A pair of keys that was made in case a new one is needed. */
export type NewSigningKey = Omit<OpenedSigningKey, "activeFrom">;

/** The signing keys of a workspace, in the order in which they sign. */
export async function findSigningKeys(sql: Sql, workspaceId: string, vault: Vault): Promise<OpenedSigningKey[]> {
  const rows = await selectKeys(sql, workspaceId);
  const opened: OpenedSigningKey[] = [];
  for (const { id, algorithm, public_key, sealed, active_from } of rows) {
    const privateKey = await vault.openSigningKey(sql, workspaceId, id, sealed);
    opened.push({ id, algorithm, publicKey: public_key, privateKey, activeFrom: Number(active_from) });
  }
  return opened;
}

/**
 * Stores a new signing key if one is needed, and deletes those that are no longer published. The lock decides between nodes
 * that have each made one.
 */
export async function addSigningKey(
  sql: Sql,
  { workspaceId, made, rotation, now }: { workspaceId: string; made: NewSigningKey; rotation: Rotation; now: Instant },
  { vault, random }: { vault: Vault; random: Random },
): Promise<void> {
  await lockVaultFingerprint(sql);
  const rows = await selectKeys(sql, workspaceId);
  const keys = rows.map(({ id, algorithm, active_from }) => ({ id, algorithm, activeFrom: Number(active_from) }));
  const activeFrom = nextActiveFrom(keys, rotation, now);
  if (activeFrom === undefined) return;
  const { id, algorithm, publicKey, privateKey } = made;
  const row: SigningKeyRow = {
    id,
    workspace_id: workspaceId,
    algorithm,
    public_key: publicKey,
    sealed: await vault.sealSigningKey(sql, workspaceId, id, privateKey, now),
    active_from: activeFrom,
    created_at: now,
  };
  await sql.db.insertInto("signing_keys").values(row).execute();
  const kept = new Set(publishedKeysAt(keys, rotation, now).map((key) => key.id));
  const ended = keys.filter((key) => !kept.has(key.id)).map((key) => key.id);
  if (ended.length > 0) {
    await sql.db.deleteFrom("signing_keys").where(sql.dialect.values.isOneOf("id", ended)).execute();
  }
  const meta = { algorithm, activeFrom, ...(ended.length > 0 && { deleted: ended }) };
  const entry = {
    workspaceId,
    occurredAt: now,
    actor: "system",
    action: "oauth.createSigningKey",
    targets: [id],
    meta,
  };
  await recordChange(sql, { ...entry, events: [] }, random);
}

function selectKeys(sql: Sql, workspaceId: string): Promise<SigningKeyRow[]> {
  return sql.db
    .selectFrom("signing_keys")
    .selectAll()
    .where("workspace_id", "=", workspaceId)
    .orderBy("active_from")
    .orderBy("id")
    .execute();
}

interface KeyQuestion {
  readonly workspaceId: string;
  readonly keyId: string;
}

/** Where this key, or derived key, is stored; undefined if the workspace has none with this id. */
export async function findKeyPlace(sql: Sql, { workspaceId, keyId }: KeyQuestion): Promise<KeyPlace | undefined> {
  const row = await sql.db
    .selectFrom("keys")
    .select(["hash", "migration_id"])
    .where("id", "=", keyId)
    .where("workspace_id", "=", workspaceId)
    .executeTakeFirst();
  if (row) return { hash: row.hash, migrationId: row.migration_id };
  const derived = await new DerivedKeyReader(sql, workspaceId).find(keyId);
  return derived && { hash: derived.hash, migrationId: null, isDerived: true };
}

/** When a key, or a derived key, was created; undefined if it was erased. */
export async function findKeyCreation(sql: Sql, { workspaceId, keyId }: KeyQuestion): Promise<number | undefined> {
  const row = await sql.db
    .selectFrom("keys")
    .select("created_at")
    .where("id", "=", keyId)
    .where("workspace_id", "=", workspaceId)
    .executeTakeFirst();
  const made = row ?? (await new DerivedKeyReader(sql, workspaceId).find(keyId));
  return made && Number(made.created_at);
}

/** The resources for which keys of an API get access tokens. */
export async function findResources(
  sql: Sql,
  { workspaceId, apiId }: { workspaceId: string; apiId: string },
): Promise<string[]> {
  const row = await sql.db
    .selectFrom("apis")
    .select("resources")
    .where("id", "=", apiId)
    .where("workspace_id", "=", workspaceId)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  return row?.resources ? (JSON.parse(row.resources) as string[]) : [];
}
