import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { StoreRules } from "./inspection.ts";
import type { VaultDataKeyRow, VaultSecretRow } from "./schema.ts";
import type { Sql } from "./store.ts";

/** Fingerprint of the vault's master key; undefined before the first use. */
export async function findVaultFingerprint(sql: Sql): Promise<string | undefined> {
  return (await sql.db.selectFrom("vault").select("fingerprint").executeTakeFirst())?.fingerprint;
}

/** The same, with the row locked: creating a data key and rotating the master key exclude each other. */
export async function lockVaultFingerprint(sql: Sql): Promise<string | undefined> {
  const query = sql.db.selectFrom("vault").select("fingerprint");
  return (await sql.dialect.locks.locking(query, "update").executeTakeFirst())?.fingerprint;
}

export async function putVaultFingerprint(sql: Sql, fingerprint: string): Promise<void> {
  await sql.db
    .insertInto("vault")
    .values({ id: 1, fingerprint })
    .onConflict((conflict) => conflict.column("id").doUpdateSet({ fingerprint }))
    .execute();
}

export function findDataKey(sql: Sql, workspaceId: string): Promise<VaultDataKeyRow | undefined> {
  return sql.db.selectFrom("vault_data_keys").selectAll().where("workspace_id", "=", workspaceId).executeTakeFirst();
}

/** Up to `limit` data keys that are sealed under another master key, but those of some workspaces. */
export function findDataKeysNotUnder(
  sql: Sql,
  fingerprint: string,
  except: readonly string[],
  limit: number,
): Promise<VaultDataKeyRow[]> {
  return sql.db
    .selectFrom("vault_data_keys")
    .selectAll()
    .where("fingerprint", "<>", fingerprint)
    .$if(except.length > 0, (query) => query.where("workspace_id", "not in", except))
    .orderBy("workspace_id")
    .limit(limit)
    .execute();
}

export async function insertDataKey(sql: Sql, dataKey: VaultDataKeyRow): Promise<void> {
  await sql.db
    .insertInto("vault_data_keys")
    .values(dataKey)
    .onConflict((conflict) => conflict.column("workspace_id").doNothing())
    .execute();
}

export async function updateDataKey(sql: Sql, dataKey: VaultDataKeyRow): Promise<void> {
  await sql.db
    .updateTable("vault_data_keys")
    .set({ fingerprint: dataKey.fingerprint, sealed: dataKey.sealed })
    .where("workspace_id", "=", dataKey.workspace_id)
    .execute();
}

export async function insertVaultSecret(
  sql: Sql,
  secret: { keyId: string; workspaceId: string; sealed: string; createdAt: Instant },
): Promise<void> {
  await sql.db
    .insertInto("vault_secrets")
    .values({
      key_id: secret.keyId,
      workspace_id: secret.workspaceId,
      sealed: secret.sealed,
      created_at: secret.createdAt,
    })
    .execute();
}

export function findVaultSecrets(sql: Sql, workspaceId: string, keyIds: readonly string[]): Promise<VaultSecretRow[]> {
  return sql.db
    .selectFrom("vault_secrets")
    .selectAll()
    .where("workspace_id", "=", workspaceId)
    .where(sql.dialect.values.isOneOf("key_id", keyIds))
    .execute();
}

/** What holds for all encrypted strings. */
export const vaultRules: StoreRules = {
  "every encrypted string has a data key": `select count(*) as count from vault_secrets
    where not exists (select 1 from vault_data_keys where workspace_id = vault_secrets.workspace_id)`,
};
