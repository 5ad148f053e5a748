import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { extract } from "tar";
import { analyticsPlan } from "../features/analytics/sql/procedures.ts";
import { OperatorError } from "../log/operator-error.ts";
import { version } from "../platform/config/version.ts";
import { reasonOf } from "../platform/store/folder.ts";
import { mainPlan, programVersion } from "../platform/store/migrate.ts";
import { fileDigest } from "./files.ts";
import { BACKUP_FORMAT, DATABASE, MANIFEST, MANIFEST_DIGEST, type Manifest } from "./manifest.ts";

/** The names that a backup may contain. No other file is written. */
const NAMES =
  /^(?:manifest\.json(?:\.sha256)?|latchkey\.db|analytics\.db|counters|vault-key(?:\.next)?|analytics\/[\w-]+\.batches)$/;
/** More than the spool of analytics can have. */
const FILES_MAX = 200_000;
const MANIFEST_BYTES_MAX = 64 * 1024 * 1024;

/** A file is not a complete and unaltered backup. */
export class DamagedBackup extends OperatorError {
  constructor(file: string, fault: string, options?: ErrorOptions) {
    super(`${file} is not a complete backup: ${fault}. Use another copy.`, options);
    this.name = "DamagedBackup";
  }
}

/** @throws {OperatorError} when there is no such file. */
export function requireBackup(file: string): void {
  if (!existsSync(file) || !statSync(file).isFile()) throw new OperatorError(`There is no backup at ${file}.`);
}

/** What compressed files begin with. A small one can have any number of bytes. */
const compressions = [
  { beginning: "1f8b", program: "gunzip" },
  { beginning: "28b52ffd", program: "unzstd" },
  { beginning: "fd377a58", program: "unxz" },
  { beginning: "425a68", program: "bunzip2" },
] as const;

function rejectCompressed(file: string): void {
  const head = Buffer.alloc(4);
  const source = openSync(file, "r");
  try {
    readSync(source, head);
  } finally {
    closeSync(source);
  }
  const found = compressions.find(({ beginning }) => head.toString("hex").startsWith(beginning));
  if (found) throw new OperatorError(`${file} is compressed. Decompress it with ${found.program}, and give that file.`);
}

/**
 * Unpacks a backup into an empty folder, and compares sizes and digests with its manifest.
 *
 * @throws {DamagedBackup} and {OperatorError} when the file cannot be read or the folder cannot be written.
 */
export async function unpackBackup(file: string, folder: string): Promise<Manifest> {
  requireBackup(file);
  rejectCompressed(file);
  const names = new Set<string>();
  // An archive has its files as they are, so what it unpacks has no more bytes than it: the room for that was looked for.
  let room = statSync(file).size;
  let unexpected: string | undefined;
  try {
    extract({
      file,
      cwd: folder,
      // Otherwise a rejection comes while files are still being written, and the folder cannot be removed.
      sync: true,
      strict: true,
      preserveOwner: false,
      noMtime: true,
      chmod: true,
      fmode: 0o600,
      dmode: 0o700,
      filter(name, entry) {
        const isFile = "type" in entry && (entry.type === "File" || entry.type === "OldFile");
        const isExpected =
          isFile && NAMES.test(name) && !names.has(name) && names.size < FILES_MAX && entry.size <= room;
        if (isExpected) {
          names.add(name);
          room -= entry.size;
        } else unexpected ??= name;
        return isExpected;
      },
    });
  } catch (error) {
    const reason = reasonOf(error);
    if (reason !== undefined) throw new OperatorError(`${folder}: ${reason}`, { cause: error });
    throw new DamagedBackup(file, (error as Error).message, { cause: error });
  }
  // First, because a newer release may add files.
  const manifest = names.has(MANIFEST) ? await readManifest(file, folder) : undefined;
  if (unexpected !== undefined) throw new DamagedBackup(file, `"${unexpected.slice(0, 100)}" does not belong into it`);
  if (!manifest) throw new DamagedBackup(file, "it has no manifest");
  const expected = new Set([MANIFEST, MANIFEST_DIGEST, ...manifest.files.map(({ name }) => name)]);
  for (const name of names)
    if (!expected.has(name)) throw new DamagedBackup(file, `its manifest does not list ${name}`);
  for (const { name, bytes, sha256 } of manifest.files) {
    if (!names.has(name)) throw new DamagedBackup(file, `${name} is missing`);
    const path = join(folder, name);
    if (statSync(path).size !== bytes || (await fileDigest(path)) !== sha256) {
      throw new DamagedBackup(file, `${name} differs from its digest`);
    }
  }
  if (!names.has(DATABASE)) throw new DamagedBackup(file, `${DATABASE} is missing`);
  return manifest;
}

async function readManifest(file: string, folder: string): Promise<Manifest> {
  const [path, digest] = [join(folder, MANIFEST), join(folder, MANIFEST_DIGEST)];
  if (!existsSync(path) || !existsSync(digest)) throw new DamagedBackup(file, "it has no manifest");
  if (statSync(path).size > MANIFEST_BYTES_MAX) throw new DamagedBackup(file, "its manifest is too large");
  if (readFileSync(digest, "utf8").trim() !== (await fileDigest(path))) {
    throw new DamagedBackup(file, "its manifest differs from its digest");
  }
  let manifest: Manifest;
  try {
    manifest = JSON.parse(readFileSync(path, "utf8")) as Manifest;
  } catch (error) {
    throw new DamagedBackup(file, "its manifest is not JSON", { cause: error });
  }
  requireReadable(file, manifest);
  if (!isManifest(manifest)) throw new DamagedBackup(file, "its manifest has another form");
  return manifest;
}

/** @throws {OperatorError} which names a release that can read the backup, if this one cannot. */
function requireReadable(file: string, manifest: Partial<Manifest> | null): void {
  if (!Number.isSafeInteger(manifest?.format)) throw new DamagedBackup(file, "its manifest has another form");
  const { format, needs, version: madeBy } = manifest!;
  const lacks =
    format !== BACKUP_FORMAT
      ? `the format ${format} of backups; this release reads the format ${BACKUP_FORMAT}`
      : [
          { what: "schema", needed: needs?.schema, own: programVersion(mainPlan) },
          { what: "schema of analytics", needed: needs?.analyticsSchema, own: programVersion(analyticsPlan) },
        ]
          .map(({ what, needed, own }) =>
            needed !== undefined && !(needed <= own) ? `the ${what} ${needed}; this release has ${own}` : undefined,
          )
          .find((lack) => lack !== undefined);
  if (lacks === undefined) return;
  const release = String(needs?.release ?? madeBy).slice(0, 50);
  throw new OperatorError(
    `${file} was made by Latchkey ${String(madeBy).slice(0, 50)} and has ${lacks}, Latchkey ${version}. Use Latchkey ${release} or newer.`,
  );
}

/** A version, and a fingerprint: what operators see of them comes from a file that anybody may have made. */
const isWord = (value: unknown) => typeof value === "string" && /^[\w.+-]{1,100}$/.test(value);
const isTime = (value: unknown) => typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value);
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

function isManifest({ version, copiedAt, changes, migration, needs, tables, vault, files }: Manifest): boolean {
  return (
    isWord(version) &&
    isTime(copiedAt) &&
    isCount(changes) &&
    typeof migration === "string" &&
    (needs === undefined || (isWord(needs?.release) && isCount(needs.schema) && isCount(needs.analyticsSchema))) &&
    isObject(tables) &&
    Object.values(tables).every(isCount) &&
    (vault?.fingerprint === null || isWord(vault?.fingerprint)) &&
    typeof vault.includesKey === "boolean" &&
    Array.isArray(files) &&
    files.every((file) => NAMES.test(file?.name) && isCount(file.bytes) && typeof file.sha256 === "string") &&
    new Set(files.map(({ name }) => name)).size === files.length
  );
}
