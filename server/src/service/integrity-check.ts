import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { OperatorError } from "../log/operator-error.ts";
import { FileClaim } from "../platform/store/sqlite/claim.ts";
import { findFault } from "../platform/store/sqlite/integrity.ts";

/** Up to this size a database with a log is checked in full, in about two seconds. */
const FULL_CHECK_BYTES_MAX = 32 * 1024 ** 2;
/** Up to this size its structure is checked, in about six seconds. Larger databases are not checked at the start. */
const QUICK_CHECK_BYTES_MAX = 256 * 1024 ** 2;
/** A checkpoint writes the database right after the log. Beyond this time, something else has written it. */
const CHECKPOINT_MS_MAX = 10_000;

/**
 * Checks an embedded database that no process uses, before it is opened for writing: opening it with the wrong log would
 * destroy it. After a clean stop there is no log, and only the length of the file is compared with its header.
 *
 * @throws {OperatorError} when the log belongs to another file, or the database is damaged.
 */
export function requireIntegrity(setting: string, file: string): void {
  if (!existsSync(file) || statSync(file).size === 0) return;
  const log = `${file}-wal`;
  const fault = existsSync(log) && statSync(log).size > 0 ? findFaultUnlessUsed(file, log) : findMissingEnd(file);
  if (fault === undefined) return;
  throw new OperatorError(
    `${setting}=${file}: ${fault}. Nothing was changed. Keep a copy of the folder, and restore a backup into an empty ` +
      "one with `latchkey restore FILE --data-dir FOLDER`.",
  );
}

/** A database in use has been checked by the process that uses it. */
function findFaultUnlessUsed(file: string, log: string): string | undefined {
  const claim = FileClaim.take(file);
  try {
    return claim && findFaultWithLog(file, log);
  } finally {
    void claim?.release();
  }
}

function findFaultWithLog(file: string, log: string): string | undefined {
  if (isReplaced(statSync(file).ctimeMs, statSync(log).ctimeMs)) {
    return (
      `the database was replaced after its log ${log} was written, so the log belongs to another file. If both were ` +
      `copied together, run \`touch ${log}\` and start again`
    );
  }
  const { size } = statSync(file);
  if (size > QUICK_CHECK_BYTES_MAX) return undefined;
  const fault = findFault(file, size > FULL_CHECK_BYTES_MAX ? "quick" : "full");
  return fault && `the database with its log ${log} fails the integrity check (${fault})`;
}

/** Whether a database file was put beside an older log. Takes the times of the last changes, which `cp -p` cannot set. */
export function isReplaced(databaseChangedMs: number, logChangedMs: number): boolean {
  return databaseChangedMs > logChangedMs + CHECKPOINT_MS_MAX;
}

/** SQLite's file format, 1.3: the page size at byte 16, the number of pages at 28, valid if 24 equals 92. */
function findMissingEnd(file: string): string | undefined {
  const header = Buffer.alloc(100);
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, header, 0, header.length, 0);
  } finally {
    closeSync(descriptor);
  }
  if (header.toString("latin1", 0, 15) !== "SQLite format 3") return "the file is not a database";
  const stored = header.readUInt16BE(16);
  const bytes = (stored === 1 ? 65_536 : stored) * header.readUInt32BE(28);
  if (header.readUInt32BE(24) !== header.readUInt32BE(92) || statSync(file).size >= bytes) return undefined;
  return `the file has ${statSync(file).size} of ${bytes} bytes: its end is missing`;
}
