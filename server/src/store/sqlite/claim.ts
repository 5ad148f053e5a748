import { realpathSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Claim } from "../store.ts";

/**
 * Locks a path for this process with the file `<path>.lock`. The operating system holds the lock and releases it when the
 * process ends in any way. Returns a function that releases it, or undefined when another process has locked the path.
 *
 * @throws when the lock file cannot be created.
 */
export function lockPath(path: string): (() => void) | undefined {
  const lock = new DatabaseSync(`${path}.lock`, { timeout: 0 });
  try {
    lock.exec("begin exclusive");
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
  return () => lock.close();
}

const SQLITE_BUSY = 5;

/** The claim of one process on an embedded database. It lasts until the process ends. */
export class FileClaim implements Claim {
  readonly mayCount = true;
  readonly trouble = undefined;
  readonly isMember = true;
  readonly #release: () => void;

  private constructor(release: () => void) {
    this.#release = release;
  }

  /** Locks the real path, because several links can lead to the same file. */
  static take(file: string): FileClaim | undefined {
    const release = lockPath(realpathSync(file));
    return release && new FileClaim(release);
  }

  async settle(): Promise<void> {}

  async join(): Promise<void> {}

  async release(): Promise<void> {
    this.#release();
  }
}
