import {
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { copyFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { create as createTar } from "tar";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { analyticsPlan } from "../features/analytics/sql/procedures.ts";
import { OperatorError } from "../log/operator-error.ts";
import { reasonOf, syncPath } from "../platform/store/folder.ts";
import { type MigrationPlan, mainPlan, schemaState } from "../platform/store/migrate.ts";
import { lockPath } from "../platform/store/sqlite/claim.ts";
import { openSqliteConnection } from "../platform/store/sqlite/connection.ts";
import { copySqliteDatabase } from "../platform/store/sqlite/snapshot.ts";
import { summarizeDatabase } from "../platform/store/sqlite/summary.ts";
import { KeyRing } from "../platform/vault/key-ring.ts";
import { fileDigest, Throttle } from "./files.ts";
import {
  ANALYTICS,
  BACKUP_FORMAT,
  type BackupFile,
  COUNTERS,
  DATABASE,
  MANIFEST,
  MANIFEST_DIGEST,
  type Manifest,
  SPOOL,
  VAULT_KEYS,
} from "./manifest.ts";

/** What to copy, and where to; can be sent to another thread. */
export interface BackupPlan {
  /** The file of the embedded database. */
  database: string;
  dataDirectory: string;
  /** The file to write. */
  target: string;
  /** Whether an existing file is replaced. */
  replaces: boolean;
  includesVaultKey: boolean;
  /** The rate of reading and of writing, so that a running service gets its share of the disk. */
  bytesPerSecond: number;
  /** The version of this program. */
  version: string;
}

export interface BackupProgress {
  doneBytes: number;
  bytes: number;
}

/**
 * Writes a backup while a service runs. It is made in the folder `<target>.partial`, which a crash can leave and the next
 * backup removes, and renamed when it is complete and on the disk. Needs room for two copies, and little memory.
 *
 * @throws {OperatorError}
 */
export async function createBackup(
  given: BackupPlan,
  clock: Clock,
  onProgress: (progress: BackupProgress) => void = () => {},
): Promise<Manifest & { bytes: number }> {
  const plan = { ...given, target: resolve(given.target) };
  rejectExisting(plan);
  const folder = `${plan.target}.partial`;
  let release: (() => void) | undefined;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    release = lockPath(join(folder, "copying"));
    if (release === undefined) throw new OperatorError(`${plan.target}: another backup is writing this file.`);
    const stage = join(folder, "files");
    rmSync(stage, { recursive: true, force: true });
    mkdirSync(stage, { mode: 0o700 });
    const manifest = await writeBackup(plan, stage, clock, onProgress);
    rejectExisting(plan);
    renameSync(join(folder, "backup.tar"), plan.target);
    syncPath(dirname(plan.target));
    return { ...manifest, bytes: statSync(plan.target).size };
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`${plan.target}: no backup was written: ${reasonOf(error) ?? (error as Error).message}`, {
      cause: error,
    });
  } finally {
    if (release !== undefined) {
      release();
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

function rejectExisting({ target, replaces }: BackupPlan): void {
  if (!replaces && existsSync(target)) {
    throw new OperatorError(`${target} exists. Name another file, or replace this one with --force.`);
  }
}

async function writeBackup(
  plan: BackupPlan,
  stage: string,
  clock: Clock,
  onProgress: (progress: BackupProgress) => void,
): Promise<Manifest> {
  const throttle = new Throttle(clock, plan.bytesPerSecond);
  const analytics = join(plan.dataDirectory, ANALYTICS);
  // Each byte is copied once and packed once.
  const bytes = 2 * (sizeOf(plan.database) + sizeOf(analytics));
  let copiedBytes = 0;
  const copyDatabase = async (source: string, name: string) => {
    const before = copiedBytes;
    await copySqliteDatabase(source, join(stage, name), (copied) => {
      throttle.spend(before + copied - copiedBytes);
      copiedBytes = before + copied;
      onProgress({ doneBytes: copiedBytes, bytes: Math.max(bytes, copiedBytes) });
    });
  };

  const copiedAt = clock.now();
  await copyDatabase(plan.database, DATABASE);
  await copyIfExists(join(plan.dataDirectory, COUNTERS), join(stage, COUNTERS));
  // Before the analytics: a batch that is delivered meanwhile is in both, and is not counted twice.
  await copySpool(plan.dataDirectory, stage);
  if (existsSync(analytics)) await copyDatabase(analytics, ANALYTICS);
  const { tables, changes, migration, vaultFingerprint, masterKeys } = summarizeDatabase(join(stage, DATABASE));
  const needs = {
    release: plan.version,
    schema: await demandOf(join(stage, DATABASE), mainPlan),
    analyticsSchema: await demandOf(join(stage, ANALYTICS), analyticsPlan),
  };
  if (plan.includesVaultKey) await copyVaultKeys(plan.dataDirectory, stage, masterKeys);

  const files: BackupFile[] = [];
  for (const name of namesIn(stage)) {
    const path = join(stage, name);
    files.push({ name, bytes: statSync(path).size, sha256: await fileDigest(path) });
  }
  const manifest: Manifest = {
    format: BACKUP_FORMAT,
    version: plan.version,
    copiedAt: new Date(copiedAt).toISOString(),
    changes,
    migration,
    needs,
    tables,
    vault: { fingerprint: vaultFingerprint, includesKey: plan.includesVaultKey && masterKeys.length > 0 },
    files,
  };
  writeFileSync(join(stage, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(stage, MANIFEST_DIGEST), `${await fileDigest(join(stage, MANIFEST))}\n`);

  const packedBytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const paced = new Transform({
    transform(chunk: Buffer, _, done) {
      throttle.spend(chunk.length);
      copiedBytes += chunk.length;
      onProgress({ doneBytes: copiedBytes, bytes: Math.max(2 * packedBytes, copiedBytes) });
      done(null, chunk);
    },
  });
  const archive = join(dirname(stage), "backup.tar");
  rmSync(archive, { force: true });
  const names = [MANIFEST, MANIFEST_DIGEST, ...files.map(({ name }) => name)];
  const packed = createTar({ cwd: stage, portable: true, strict: true, maxReadSize: 1024 * 1024 }, names);
  await pipeline(packed as unknown as AsyncIterable<Buffer>, paced, createWriteStream(archive, { mode: 0o600 }));
  syncPath(archive);
  return manifest;
}

/** The lowest schema version of programs that may run on a database; 0 if there is none. */
async function demandOf(file: string, plan: MigrationPlan): Promise<number> {
  if (!existsSync(file)) return 0;
  const { sql, close } = openSqliteConnection(file, "read");
  try {
    return (await schemaState(sql, plan)).needs;
  } finally {
    close();
  }
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

/** Copies a file unless it does not exist, also if it disappears meanwhile. */
async function copyIfExists(source: string, target: string): Promise<void> {
  await copyFile(source, target).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}

async function copySpool(dataDirectory: string, stage: string): Promise<void> {
  const folder = join(dataDirectory, SPOOL);
  if (!existsSync(folder)) return;
  mkdirSync(join(stage, SPOOL));
  for (const name of readdirSync(folder)) {
    if (name.endsWith(".batches")) await copyIfExists(join(folder, name), join(stage, SPOOL, name));
  }
}

async function copyVaultKeys(dataDirectory: string, stage: string, needed: readonly string[]): Promise<void> {
  for (const name of VAULT_KEYS) await copyIfExists(join(dataDirectory, name), join(stage, name));
  const ring = new KeyRing({ kind: "folder", folder: stage });
  if (needed.every((fingerprint) => ring.find(fingerprint))) return;
  throw new OperatorError(
    `--include-vault-key: ${dataDirectory} does not have the master key of the vault. If LATCHKEY_VAULT_KEY gives it, ` +
      "keep it with your secrets and leave the option out. If the key was rotated meanwhile, run the backup again.",
  );
}

/** The files of a folder by their names relative to it, with `/` between folder and file. */
function namesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => (entry.parentPath === folder ? entry.name : `${basename(entry.parentPath)}/${entry.name}`))
    .sort();
}
