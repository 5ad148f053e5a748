import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { CommandError } from "../output.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR, O_WRONLY } = constants;
const OWNER_ONLY = 0o600;

/** Creates a file that its owner alone may read, in the place of any other: of a link, not of what it leads to. */
export function createOwnFile(path: string): number {
  return writing(path, () => {
    rmSync(path, { force: true });
    return openSync(path, O_WRONLY | O_CREAT | O_EXCL, OWNER_ONLY);
  });
}

/** Opens a file to change it, or creates it. No link is followed. */
export function openOwnFile(path: string): number {
  return writing(path, () => {
    const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, OWNER_ONLY);
    fchmodSync(file, OWNER_ONLY);
    return file;
  });
}

/** Writes all of a text: where a disk becomes full, one write writes a part of it and does not fail. */
export function writeFully(file: number, text: string, position: number): void {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, position + done);
}

/** Runs what writes a file. Its errors say which one, and what to do. */
export function writing<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new CommandError(`${path} cannot be written: ${reasons[code] ?? `${message}.`}`, { cause: error });
  }
}

const NO_PERMISSION =
  "this account may not write there. Copy the import's file to a folder of your own, and import it there.";
const reasons: Readonly<Record<string, string | undefined>> = {
  EACCES: NO_PERMISSION,
  EPERM: NO_PERMISSION,
  EROFS: "the file system is read-only. Copy the import's file to another folder, and import it there.",
  ENOSPC: "the disk is full. Make room, and run the same command again: it continues.",
  EDQUOT: "the disk quota is used up. Make room, and run the same command again: it continues.",
  ELOOP: "it is a symbolic link. Remove it, and run the same command again.",
};

/** Replaces the content of a file at once and durably: after a crash it is the former or this one. */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.draft`;
  const file = createOwnFile(draft);
  try {
    writing(draft, () => {
      writeFileSync(file, text);
      fsyncSync(file);
    });
  } finally {
    closeSync(file);
  }
  writing(path, () => {
    renameSync(draft, path);
    syncFolder(dirname(path));
  });
}

function syncFolder(folder: string): void {
  // Windows opens no folders, and its renames need none of this.
  if (process.platform === "win32") return;
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Locks an import for this process with a file that names it. Returns what releases it. The file of a process that has ended
 * is replaced.
 *
 * @throws {CommandError} while another process has it.
 */
export function lockImport(path: string): () => void {
  const own = String(process.pid);
  for (let isFirst = true; ; isFirst = false) {
    try {
      writeFileSync(path, own, { flag: "wx", mode: OWNER_ONLY });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
        writing(path, () => {
          throw error;
        });
      }
      const holder = Number(readFileSync(path, "utf8"));
      if (!isFirst || (holder !== process.pid && isRunning(holder))) {
        throw new CommandError(
          `This file is being imported by the process ${holder}. Wait until it ends, or remove ${path} if it is no import.`,
        );
      }
      rmSync(path, { force: true });
    }
  }
  return () => rmSync(path, { force: true });
}

function isRunning(processId: number): boolean {
  if (!Number.isSafeInteger(processId) || processId <= 0) return false;
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
