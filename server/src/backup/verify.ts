import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { OperatorError } from "../log/operator-error.ts";
import { lockPath } from "../platform/store/sqlite/claim.ts";
import { openSqliteConnection } from "../platform/store/sqlite/connection.ts";
import { findFault } from "../platform/store/sqlite/integrity.ts";
import { summarizeDatabase } from "../platform/store/sqlite/summary.ts";
import { KeyRing, type KeyRingSource } from "../platform/vault/key-ring.ts";
import { Vault } from "../platform/vault/vault.ts";
import { ANALYTICS, DATABASE, type Manifest } from "./manifest.ts";
import { DamagedBackup, requireBackup, unpackBackup } from "./open.ts";

/** Names of the temporary folder, and of its lock. */
const PREFIX = "latchkey-verify-";
const LOCK = "verifying";

/** Recoverable keys that a verification decrypts. */
const SAMPLE = 20;

export interface VerifiedBackup {
  manifest: Manifest;
  /** How many recoverable keys were decrypted; undefined if their master key is not at hand. */
  decrypted: number | undefined;
}

/**
 * Unpacks a backup into a temporary folder and checks everything in it: digests, the integrity of both databases, the
 * number of rows, and a sample of recoverable keys if the master key is in the backup or in `keys`. The folder is in the
 * first of `places` that can be written and has room.
 *
 * @throws {DamagedBackup} and {OperatorError} if there is no such place.
 */
export async function verifyBackup(
  file: string,
  keys: KeyRingSource,
  places: readonly string[] = [tmpdir()],
): Promise<VerifiedBackup> {
  requireBackup(file);
  const folder = makeTemporary(places, statSync(file).size);
  const release = lockPath(join(folder, LOCK));
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
    release?.();
  }
}

/** Where a backup can be unpacked: the system's temporary folder, the data folder, or beside the backup. */
export function placesToVerify(file: string, dataDirectory: string): string[] {
  return [...new Set([tmpdir(), dataDirectory, dirname(resolve(file))])];
}

function makeTemporary(places: readonly string[], bytes: number): string {
  const faults: string[] = [];
  for (const place of places) {
    try {
      removeRemains(place);
      const { bavail, bsize } = statfsSync(place);
      if (bavail * bsize >= bytes) return mkdtempSync(join(place, PREFIX));
      faults.push(`${place}: too little room`);
    } catch (error) {
      faults.push(`${place}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
    }
  }
  throw new OperatorError(
    `There is no folder to unpack the backup into (${faults.join("; ")}). Set TMPDIR to a folder that can be written and ` +
      `has room for ${Math.ceil(bytes / 2 ** 20)} MiB.`,
  );
}

/** Removes what verifications left that were killed. One that runs holds its lock. */
function removeRemains(place: string): void {
  for (const name of readdirSync(place)) {
    const folder = join(place, name);
    if (!name.startsWith(PREFIX) || !existsSync(join(folder, `${LOCK}.lock`))) continue;
    try {
      const release = lockPath(join(folder, LOCK));
      if (release === undefined) continue;
      rmSync(folder, { recursive: true, force: true });
      release();
    } catch {
      // It belongs to another account.
    }
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
