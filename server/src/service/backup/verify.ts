import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteConnection } from "../../store/sqlite/connection.ts";
import { findFault } from "../../store/sqlite/integrity.ts";
import { summarizeDatabase } from "../../store/sqlite/summary.ts";
import { KeyRing, type KeyRingSource } from "../../vault/key-ring.ts";
import { Vault } from "../../vault/vault.ts";
import { ANALYTICS, DATABASE, type Manifest } from "./manifest.ts";
import { DamagedBackup, unpackBackup } from "./open.ts";

/** Recoverable keys that a verification decrypts. */
const SAMPLE = 20;

export interface VerifiedBackup {
  manifest: Manifest;
  /** How many recoverable keys were decrypted; undefined if their master key is not at hand. */
  decrypted: number | undefined;
}

/**
 * Unpacks a backup into a temporary folder and checks everything in it: digests, the integrity of both databases, the
 * number of rows, and a sample of recoverable keys if the master key is in the backup or in `keys`.
 *
 * @throws {DamagedBackup}
 */
export async function verifyBackup(file: string, keys: KeyRingSource): Promise<VerifiedBackup> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-verify-"));
  try {
    const manifest = await unpackBackup(file, folder);
    for (const { name } of manifest.files) {
      if (name !== DATABASE && name !== ANALYTICS) continue;
      const fault = findFault(join(folder, name), "full");
      if (fault !== undefined) throw new DamagedBackup(file, `${name} fails its integrity check (${fault})`);
    }
    const { tables: rows } = summarizeDatabase(join(folder, DATABASE));
    for (const [table, count] of Object.entries(manifest.tables)) {
      if (rows[table] === count) continue;
      throw new DamagedBackup(file, `the table ${table} has ${rows[table] ?? "no"} rows instead of ${count}`);
    }
    const ring = [new KeyRing({ kind: "folder", folder }), new KeyRing(keys)].find(
      (candidate) => manifest.vault.fingerprint !== null && candidate.find(manifest.vault.fingerprint),
    );
    return { manifest, decrypted: ring && (await decryptSample(file, folder, new Vault(ring))) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function decryptSample(file: string, folder: string, vault: Vault): Promise<number> {
  const { sql, close } = openSqliteConnection(join(folder, DATABASE), "read");
  try {
    const rows = await sql.db.selectFrom("vault_secrets").select(["workspace_id", "key_id"]).limit(SAMPLE).execute();
    for (const { workspace_id, key_id } of rows) {
      await vault.reveal(sql, workspace_id, [key_id]).catch((error: Error) => {
        throw new DamagedBackup(file, `the recoverable key ${key_id} cannot be decrypted`, { cause: error });
      });
    }
    return rows.length;
  } finally {
    close();
  }
}
