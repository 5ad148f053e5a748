import { chmodSync, mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system in memory, on Linux. */
const MEMORY = "/dev/shm";
/** The least room there. Databases of all files that run at a time need less than a fifth of it. */
const ROOM = 4 * 1024 ** 3;

/** The folder for databases of tests: in memory, if the run has found room there. */
export function dataFolder(): string {
  return process.env.LATCHKEY_TEST_DATA ?? tmpdir();
}

/** Makes the folder for a run, in memory if there is room. Databases there sync as fast as they write. */
export function makeDataFolder(): string {
  const folder = mkdtempSync(join(hasRoom() ? MEMORY : tmpdir(), "latchkey-tests-"));
  // Other accounts run the servers.
  chmodSync(folder, 0o755);
  return folder;
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM;
  } catch {
    return false;
  }
}
