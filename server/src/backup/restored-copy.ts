import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../log/operator-error.ts";

/** A folder in the data folder during a restore. The service does not start while it exists. */
export const RESTORING = "restoring";

const RESTORED = "restored.json";

/** A data folder that came out of a backup. */
export interface RestoredCopy {
  /** When the copy was made, as ISO 8601. Changes after it are lost. */
  copiedAt: string;
  restoredAt: string;
}

export function writeRestoredCopy(dataDirectory: string, copy: RestoredCopy): void {
  writeFileSync(join(dataDirectory, RESTORED), `${JSON.stringify(copy)}\n`, { mode: 0o600 });
}

/**
 * What the data folder says about the copy that it was restored from; undefined if it did not come out of a backup, or the
 * operator has removed the file.
 *
 * @throws {OperatorError} after an interrupted restore.
 */
export function readRestoredCopy(dataDirectory: string): (RestoredCopy & { file: string }) | undefined {
  if (existsSync(join(dataDirectory, RESTORING))) {
    throw new OperatorError(
      `LATCHKEY_DATA_DIR=${dataDirectory}: a restore into this folder did not end. Run \`latchkey restore FILE\` again.`,
    );
  }
  const file = join(dataDirectory, RESTORED);
  try {
    const { copiedAt, restoredAt } = JSON.parse(readFileSync(file, "utf8")) as RestoredCopy;
    return { copiedAt: String(copiedAt), restoredAt: String(restoredAt), file };
  } catch {
    return undefined;
  }
}
