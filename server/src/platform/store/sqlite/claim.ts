import { realpathSync, rmSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Claim } from "../store.ts";

/**
 * Locks a path for this process with the file `<path>.lock`. The operating system holds the lock and releases it when the
 * process ends in any way. Returns a function that releases it, or undefined when another process has locked the path.
 *
 * @throws when the lock file cannot be created.
 */
export function lockPath(path: string, open = openLock): (() => void) | undefined {
  const file = `${path}.lock`;
  for (let attempt = 1; ; attempt++) {
    const before = identityOf(file);
    const lock = open(file);
    // The holder may have removed the file that was opened: another process could lock the next one. A file that did not
    // exist is opened again, because nothing says whether it is the one that was opened.
    const isSame = () => before !== undefined && before === identityOf(file);
    try {
      lock.exec("begin exclusive");
      if (isSame()) return () => lock.close();
    } catch (error) {
      lock.close();
      if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
      if (isSame() || attempt === ATTEMPTS_MAX) throw error;
      continue;
    }
    lock.close();
    if (attempt === ATTEMPTS_MAX) throw new Error(`${file} is removed again and again`);
  }
}

const openLock = (file: string) => new DatabaseSync(file, { timeout: 0 });

/** Removes the lock file of a path that this process has locked. */
export function removeLock(path: string): void {
  for (const suffix of [".lock", ".lock-journal"]) rmSync(path + suffix, { force: true });
}

function identityOf(file: string): string | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}

const SQLITE_BUSY = 5;
const ATTEMPTS_MAX = 10;

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
