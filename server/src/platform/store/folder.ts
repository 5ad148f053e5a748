import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { OperatorError } from "../../log/operator-error.ts";

/**
 * Creates a folder that only its owner may read, and the folders above it. Returns those that did not exist, the innermost
 * first.
 */
export function makeFolder(folder: string): string[] {
  const make = (path: string) => {
    try {
      mkdirSync(path, { mode: 0o700 });
      return [path];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !statSync(path).isDirectory()) throw error;
      return [];
    }
  };
  try {
    return make(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(folder) === folder) throw error;
    // Node's recursive mkdir never returns on a file system that always answers ENOENT, such as /proc.
    const above = makeFolder(dirname(folder));
    return [...make(folder), ...above];
  }
}

/** The error of a path that cannot be used, as one line that names the setting. */
export function unusable(setting: string, path: string, error: unknown): unknown {
  if (error instanceof OperatorError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = reasonOf(error);
  return reason === undefined && code === undefined
    ? error
    : new OperatorError(`${setting}=${path}: ${reason ?? message}`, { cause: error });
}

/** Why a path cannot be used, and what to do; undefined for an error that is neither the system's nor SQLite's. */
export function reasonOf(error: unknown): string | undefined {
  const { code, errcode, errstr, message } = error as NodeJS.ErrnoException & { errcode?: number; errstr?: string };
  // Extended codes carry the primary one in their lowest byte.
  if (errcode !== undefined && (errcode & 0xff) === SQLITE_FULL) return reasons.ENOSPC;
  return reasons[code ?? ""] ?? (errcode === undefined ? undefined : `SQLite reports: ${errstr ?? message}`);
}

const SQLITE_FULL = 13;

const reasons: Readonly<Record<string, string | undefined>> = {
  EACCES: "this account may not write there. Change the owner of the folder, or name another one",
  EPERM: "this account may not write there. Change the owner of the folder, or name another one",
  EROFS: "the file system is read-only. Name a folder on one that can be written",
  ENOSPC: "the disk is full. Make room, or name a folder on another disk",
  EDQUOT: "the disk quota is used up. Make room, or name a folder on another disk",
  EEXIST: "there is a file in the place of the folder. Remove it, or name another folder",
  ENOTDIR: "a part of this path is a file. Name another folder",
  ENOENT: "the folder cannot be created there. Name another one",
  ELOOP: "the symbolic links in this path form a loop. Name another folder",
  ENAMETOOLONG: "the path is too long. Name another folder",
};

/** Flushes a file or a folder to the disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
