import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { CommandError, print } from "../../../../cli/src/output.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { type BackupProgress, createBackup } from "../../backup/create.ts";
import type { Manifest } from "../../backup/manifest.ts";
import { restoreBackup } from "../../backup/restore.ts";
import { BACKUP_BYTES_PER_SECOND } from "../../backup/schedule.ts";
import { placesToVerify, verifyBackup } from "../../backup/verify.ts";
import { version } from "../../platform/config/version.ts";
import { KeyRing } from "../../platform/vault/key-ring.ts";
import { keyRingSource } from "../../service/app-store.ts";
import type { CommandHandler, Invocation } from "./invocation.ts";

/** Time between two lines of progress: on a terminal they replace each other. */
const PROGRESS_INTERVAL = process.stderr.isTTY ? 200 : 10_000;

/** Writes a backup of the embedded database and what belongs to it, while the service runs. */
export const backup: CommandHandler = async (invocation, options, [file]) => {
  const { database, dataDirectory } = embedded(invocation);
  if (!existsSync(database)) {
    throw new CommandError(`There is no database at ${database}. Give the service's data folder with --data-dir.`);
  }
  const startedAt = systemClock.monotonic();
  const manifest = await createBackup(
    {
      database,
      dataDirectory,
      version,
      target: file as string,
      replaces: options.force !== undefined,
      includesVaultKey: options.includeVaultKey !== undefined,
      bytesPerSecond: rateOf(options.rate),
    },
    systemClock,
    progressLine(startedAt),
  );
  const seconds = (systemClock.monotonic() - startedAt) / 1_000;
  print(invocation.json, { file: resolve(file as string), ...manifest }, () => [
    `Wrote ${resolve(file as string)}: ${mebibytes(manifest.bytes)} in ${seconds.toFixed(1)} s, the state of ${manifest.copiedAt}.`,
    ...vaultLines(manifest),
  ]);
};

/** Checks a backup, and exits with 1 if anything is wrong with it. */
export const verifyBackupFile: CommandHandler = async (invocation, _, [file]) => {
  const { manifest, decrypted } = await verifyBackup(
    file as string,
    keyRingSource(invocation.config, invocation.secrets),
    placesToVerify(file as string, invocation.config.dataDirectory),
  );
  const rows = Object.values(manifest.tables).reduce((sum, count) => sum + count, 0);
  print(invocation.json, { file: resolve(file as string), ...manifest, decrypted: decrypted ?? null }, () => [
    `${file} is complete: ${rows} rows, the state of ${manifest.copiedAt}, made by version ${manifest.version}.`,
    ...(decrypted === undefined ? [] : [`${decrypted} recoverable keys were decrypted as a sample.`]),
    ...(decrypted === undefined && manifest.vault.fingerprint !== null
      ? [`Recoverable keys were not checked: their master key ${manifest.vault.fingerprint} is not here.`]
      : []),
  ]);
};

/** Restores a backup into an empty data folder. */
export const restore: CommandHandler = async (invocation, _, [file]) => {
  const target = embedded(invocation);
  const manifest = await restoreBackup(file as string, target, systemClock);
  print(invocation.json, { ...target, ...manifest }, () => [
    `Restored ${target.dataDirectory} to the state of ${manifest.copiedAt}. Changes after that time are lost: keys that ` +
      "were revoked since work again, so delete them again.",
    ...restoredVaultLines(manifest, target.dataDirectory, invocation),
  ]);
};

/** What the folder lacks before a service can start on it. */
function restoredVaultLines({ vault }: Manifest, dataDirectory: string, { secrets }: Invocation): string[] {
  const { fingerprint, includesKey } = vault;
  if (fingerprint === null || includesKey) return [];
  const ring = new KeyRing(
    secrets.vaultKeys.length > 0 ? { kind: "given", keys: secrets.vaultKeys } : { kind: "none" },
  );
  if (ring.find(fingerprint))
    return ["Start the service with the same LATCHKEY_VAULT_KEY, which decrypts what it restored."];
  return [
    `Before the start, copy the vault key (${fingerprint}) to ${join(dataDirectory, "vault-key")}, with mode 600, or set ` +
      "LATCHKEY_VAULT_KEY_FILE: without it the service does not start. It decrypts recoverable keys, secrets of webhooks and " +
      "headers of upstream verifiers.",
  ];
}

function embedded({ config }: Invocation): { database: string; dataDirectory: string } {
  if (config.database.kind === "sqlite") return { database: config.database.file, dataDirectory: config.dataDirectory };
  throw new CommandError(
    "Backups of PostgreSQL are made with its own tools: `pg_dump --format=custom` for a copy, or base backups with " +
      "archived write-ahead log (`pg_basebackup`, pgBackRest) for any point in time. Check what was restored with " +
      "`latchkey verify-store`. See docs/backup.md.",
  );
}

function rateOf(text: string | undefined): number {
  if (text === undefined) return BACKUP_BYTES_PER_SECOND;
  const mebibytesPerSecond = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (mebibytesPerSecond === 0) throw new CommandError("--rate: give MiB per second, from 1 to 999999.");
  return mebibytesPerSecond * 2 ** 20;
}

function progressLine(startedAt: number): (progress: BackupProgress) => void {
  let shownAt = startedAt;
  return ({ doneBytes, bytes }) => {
    const now = systemClock.monotonic();
    if (now - shownAt < PROGRESS_INTERVAL) return;
    shownAt = now;
    const bytesPerSecond = doneBytes / ((now - startedAt) / 1_000);
    const secondsLeft = Math.ceil((bytes - doneBytes) / bytesPerSecond);
    const text = `${Math.floor((100 * doneBytes) / bytes)} %, ${mebibytes(bytesPerSecond)}/s, ${secondsLeft} s left`;
    process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}${doneBytes >= bytes ? "\n" : ""}` : `${text}\n`);
  };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function vaultLines({ vault }: Manifest): string[] {
  if (vault.fingerprint === null) return [];
  return vault.includesKey
    ? ["It contains the master key of the vault, and with it every recoverable key: store it like a secret."]
    : [
        `It does not contain the master key of the vault (${vault.fingerprint}). Keep that key apart: without it a ` +
          "restored service does not start.",
      ];
}
