import { realpathSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Claim } from "../store.ts";

/**
 * Locks a path for this process: with `<path>.lock`, beside it. The lock is the operating system's and ends with the
 * process, however it ends. Gives what releases it, or undefined when another process has it.
 *
 * @throws when the file of the lock cannot be made.
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

/** The claim of one process on an embedded database. It is lost with the process only. */
export class FileClaim implements Claim {
  readonly mayCount = true;
  readonly trouble = undefined;
  readonly isMember = true;
  readonly #release: () => void;

  private constructor(release: () => void) {
    this.#release = release;
  }

  /** Links lead to the same file, so the lock is that of the file. */
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
