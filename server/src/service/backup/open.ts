import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { extract } from "tar";
import { OperatorError } from "../../log/operator-error.ts";
import { reasonOf } from "../claim.ts";
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

/**
 * Unpacks a backup into an empty folder, and compares sizes and digests with its manifest.
 *
 * @throws {DamagedBackup} and {OperatorError} when the file cannot be read or the folder cannot be written.
 */
export async function unpackBackup(file: string, folder: string): Promise<Manifest> {
  if (!existsSync(file) || !statSync(file).isFile()) throw new OperatorError(`There is no backup at ${file}.`);
  const names = new Set<string>();
  let unexpected: string | undefined;
  try {
    extract({
      ...{
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
      },
      filter(name, entry) {
        const isFile = "type" in entry && (entry.type === "File" || entry.type === "OldFile");
        const isExpected = isFile && NAMES.test(name) && !names.has(name) && names.size < FILES_MAX;
        if (isExpected) names.add(name);
        else unexpected ??= name;
        return isExpected;
      },
    });
  } catch (error) {
    const reason = reasonOf(error);
    if (reason !== undefined) throw new OperatorError(`${folder}: ${reason}`, { cause: error });
    throw new DamagedBackup(file, (error as Error).message, { cause: error });
  }
  if (unexpected !== undefined) throw new DamagedBackup(file, `"${unexpected.slice(0, 100)}" does not belong into it`);
  const manifest = await readManifest(file, folder);
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
  if (manifest?.format !== BACKUP_FORMAT) {
    throw new OperatorError(`${file} has a format that this version does not read. Use the version that made it.`);
  }
  if (!isManifest(manifest)) throw new DamagedBackup(file, "its manifest has another form");
  return manifest;
}

function isManifest({ version, copiedAt, tables, vault, files }: Manifest): boolean {
  return (
    typeof version === "string" &&
    typeof copiedAt === "string" &&
    Object.values(tables ?? {}).every(Number.isSafeInteger) &&
    typeof vault?.includesKey === "boolean" &&
    Array.isArray(files) &&
    files.every((listed) => NAMES.test(listed?.name) && Number.isSafeInteger(listed.bytes))
  );
}
