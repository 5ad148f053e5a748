import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { OperatorError } from "../log/operator-error.ts";
import { makeFolder, syncPath, unusable } from "../platform/store/folder.ts";
import { lockPath, removeLock } from "../platform/store/sqlite/claim.ts";
import { findFault } from "../platform/store/sqlite/integrity.ts";
import { DATABASE, type Manifest, SPOOL } from "./manifest.ts";
import { DamagedBackup, requireBackup, unpackBackup } from "./open.ts";
import { RESTORING, writeRestoredCopy } from "./restored-copy.ts";

/** Where a backup is restored to. */
export interface RestoreTarget {
  /** The file of the embedded database. */
  database: string;
  dataDirectory: string;
}

/**
 * Restores a backup into an empty data folder. Files are moved to their places after everything was checked, so a file that
 * is no backup leaves nothing. If the move is interrupted, the service does not start on the folder, and the restore can be
 * repeated.
 *
 * @throws {DamagedBackup} and {OperatorError} when the folder is not empty or cannot be written.
 */
export async function restoreBackup(file: string, target: RestoreTarget, clock: Clock): Promise<Manifest> {
  const { dataDirectory } = target;
  rejectUsed(target);
  requireBackup(file);
  let made: readonly string[] = [];
  try {
    made = makeFolder(dataDirectory);
    const lock = join(dataDirectory, "folder");
    const wasLocked = existsSync(`${lock}.lock`);
    const release = lockPath(lock);
    if (release === undefined) {
      throw new OperatorError(`LATCHKEY_DATA_DIR=${dataDirectory}: a service runs on this data folder. Stop it first.`);
    }
    try {
      // Again: a service could have started before the lock.
      rejectUsed(target);
      return await unpackInto(file, target, clock);
    } catch (error) {
      // While the lock is held: who waits for it notices.
      if (!wasLocked && !existsSync(join(dataDirectory, RESTORING))) removeLock(lock);
      throw error;
    } finally {
      release();
    }
  } catch (error) {
    removeEmpty(made);
    throw unusable("LATCHKEY_DATA_DIR", dataDirectory, error);
  }
}

async function unpackInto(file: string, target: RestoreTarget, clock: Clock): Promise<Manifest> {
  const { dataDirectory, database } = target;
  const stage = join(dataDirectory, RESTORING);
  const isRepeated = existsSync(stage);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { mode: 0o700 });
  let manifest: Manifest;
  try {
    manifest = await unpackBackup(file, stage);
    const fault = findFault(join(stage, DATABASE), "quick");
    if (fault !== undefined) throw new DamagedBackup(file, `the database fails its integrity check (${fault})`);
  } catch (error) {
    // The first restore may have placed files, so the service must still not start.
    if (!isRepeated) rmSync(stage, { recursive: true, force: true });
    throw error;
  }
  if (isRepeated) removePlaced(dataDirectory);
  writeRestoredCopy(dataDirectory, { copiedAt: manifest.copiedAt, restoredAt: new Date(clock.now()).toISOString() });
  for (const { name } of manifest.files) {
    if (name.startsWith(`${SPOOL}/`)) mkdirSync(join(dataDirectory, SPOOL), { recursive: true, mode: 0o700 });
    syncPath(join(stage, name));
    move(join(stage, name), name === DATABASE ? database : join(dataDirectory, name));
  }
  for (const folder of [dataDirectory, dirname(database)]) syncPath(folder);
  rmSync(stage, { recursive: true });
  // After a power loss the folder would be there again, and the next restore would remove what was written since.
  syncPath(dataDirectory);
  return manifest;
}

/** Removes folders, the innermost first, up to one that is used. */
function removeEmpty(folders: readonly string[]): void {
  try {
    for (const folder of folders) rmdirSync(folder);
  } catch {
    // Another process uses it.
  }
}

/** Removes what an interrupted restore has placed. Its folder was empty, and no service has started on it. */
function removePlaced(dataDirectory: string): void {
  for (const name of readdirSync(dataDirectory)) {
    if (!isIgnored(name) && name !== RESTORING) rmSync(join(dataDirectory, name), { recursive: true });
  }
}

function move(source: string, target: string): void {
  try {
    makeFolder(dirname(target));
    renameSync(source, target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    throw new OperatorError(
      `LATCHKEY_DATABASE_URL: ${target} is on another file system than the data folder. Restore without ` +
        "LATCHKEY_DATABASE_URL, and move the database there.",
      { cause: error },
    );
  }
}

/** Locks of processes with SQLite's files beside them, and the folder that new file systems have. */
function isIgnored(name: string): boolean {
  return /\.lock(-journal)?$/.test(name) || name === "lost+found";
}

function rejectUsed({ dataDirectory, database }: RestoreTarget): void {
  if (dirname(database) !== dataDirectory) {
    for (const path of [database, `${database}-wal`, `${database}-journal`]) {
      if (existsSync(path)) {
        throw new OperatorError(`LATCHKEY_DATABASE_URL: ${path} exists. Name a database that does not.`);
      }
    }
  }
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : [];
  // Only an interrupted restore leaves this folder, and it began with an empty data folder.
  if (names.includes(RESTORING)) return;
  const used = names.find((name) => !isIgnored(name));
  if (used === undefined) return;
  throw new OperatorError(
    `LATCHKEY_DATA_DIR=${dataDirectory} is not empty: it has ${used}. Restore into an empty folder, and keep this one ` +
      "until the restored service works.",
  );
}
