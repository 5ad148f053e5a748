import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../../log/operator-error.ts";
import { makeFolder, syncPath } from "../folder.ts";

/** A file in a data folder from before a move creates its database until that is marked as an unfinished copy. */
const MOVING = "moving";

/** Marks a data folder without a database, so that no service starts on it as on a new one. */
export function markMoving(dataDirectory: string, database: string, source: string): void {
  if (existsSync(database)) return;
  makeFolder(dataDirectory);
  // Renamed, because a process that is killed here can leave an empty file.
  const file = join(dataDirectory, MOVING);
  writeFileSync(`${file}.new`, `${source}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  syncPath(dataDirectory);
}

export function unmarkMoving(dataDirectory: string): void {
  rmSync(join(dataDirectory, MOVING), { force: true });
}

/** @throws {OperatorError} if a move into this folder was interrupted before its database was marked. */
export function rejectMoving(dataDirectory: string): void {
  const file = join(dataDirectory, MOVING);
  if (!existsSync(file)) return;
  const source = readFileSync(file, "utf8").trim().slice(0, 500);
  throw new OperatorError(
    `LATCHKEY_DATA_DIR=${dataDirectory}: a move of ${source} into this folder did not end. Run \`latchkey migrate-store\` ` +
      "there again, which continues, or remove this folder.",
  );
}
