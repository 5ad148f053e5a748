import { DatabaseSync } from "node:sqlite";

/**
 * Takes a database file for one serving process. The lock is the operating system's and ends with the process, however
 * it ends. Gives what releases it, or undefined when another process has it.
 */
export function claimFile(file: string): (() => void) | undefined {
  const lock = new DatabaseSync(`${file}.lock`, { timeout: 0 });
  try {
    lock.exec("begin exclusive");
  } catch {
    lock.close();
    return undefined;
  }
  return () => lock.close();
}
