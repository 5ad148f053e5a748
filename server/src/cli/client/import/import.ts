import { closeSync, createReadStream, openSync, readFileSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { systemClock } from "../../../../../engine/src/clock/system.ts";
import { digest, digestOf } from "../../../../../engine/src/crypto/digest.ts";
import type { HashAlgorithm } from "../../../../../engine/src/rules/imported-keys.ts";
import { migrateKeys } from "../../../features/keys/migrateKeys.ts";
import { inputErrorsOf, PARSE_OPTIONS } from "../../../platform/rpc/validate.ts";
import { CommandError, UsageError } from "../../output.ts";
import { type Attempts, call, type Endpoint, ServiceError } from "../http.ts";
import { parseJson, readFile } from "../input.ts";
import { jsonText } from "../printable.ts";
import { ProgressLine } from "../progress.ts";
import { Fields, fieldName, type Note } from "./fields.ts";
import { type InputFormat, type InputRow, readRows } from "./rows.ts";
import type { HashedKey, Mapped, Source } from "./sources/source.ts";
import { count, ImportFiles, type ReportedRow } from "./state.ts";
import { type Reason, Tally } from "./tally.ts";

export interface ImportTask {
  readonly file: string;
  readonly format: InputFormat;
  readonly source: Source;
  readonly sourceName: string;
  /** The API of the other system whose keys are imported. */
  readonly sourceApi: string | undefined;
  /** Further files of the same export. */
  readonly otherFiles: readonly string[];
  readonly apiId: string;
  readonly migrationId: string;
  readonly algorithm: HashAlgorithm;
  readonly pepper: string | undefined;
  /** For each request, in milliseconds. */
  readonly timeout: number;
}

/** What an import did, or would do. */
export interface ImportSummary {
  rows: number;
  imported: number;
  present: number;
  rejected: number;
  skipped: number;
  /** Why rows were not imported, or what of them was not. */
  reasons: Reason[];
  /** The file with a line for each row. */
  report: string;
}

/** Rows that are sent together. The service imports them in smaller transactions. */
const ROWS_PER_CALL = 500;
/** The largest body has 10 MiB by default; a row can have 64 KiB of metadata, and longer lists of permissions. */
const BYTES_PER_CALL = 2 * 1024 * 1024;
/** A service that restarts, or limits requests, is asked again for some minutes. */
const retryOptions = { repeatable: true, attempts: 12, waitMax: 120_000 } satisfies Attempts;
/** Bounds of `--with`. */
const OTHER_FILES_MAX = 1_000;
const OTHER_BYTES_MAX = 256 * 1024 * 1024;

/** A row with the key that it describes. */
interface Prepared {
  number: number;
  name: string | undefined;
  key: HashedKey;
  notes: readonly Note[];
}

/** Checks every row without a call of the service, and writes what it finds to a report of its own. */
export async function checkRows(task: ImportTask): Promise<ImportSummary> {
  const prepare = preparation(task, (await readOthers(task)).documents);
  const progress = new Progress("checked");
  const tally = new Tally([]);
  const report = `${filePrefix(task)}.dry-run.jsonl`;
  const summary: ImportSummary = {
    rows: 0,
    imported: 0,
    present: 0,
    rejected: 0,
    skipped: 0,
    reasons: tally.reasons,
    report,
  };
  const target = openSync(report, "w", 0o600);
  let lines: string[] = [];
  const flush = () => {
    writeSync(target, lines.join(""));
    lines = [];
  };
  try {
    for await (const row of readRows(inputOf(task))) {
      const prepared = prepare(row);
      const reported = "key" in prepared ? accepted(prepared, "valid") : prepared;
      summary.rows++;
      summary[reported.outcome === "valid" ? "imported" : reported.outcome]++;
      count(tally, reported);
      lines.push(`${jsonText(reported, 0)}\n`);
      if (lines.length === ROWS_PER_CALL) flush();
      progress.show(summary.rows, row.progress);
    }
    flush();
  } finally {
    closeSync(target);
    progress.clear();
  }
  return summary;
}

/**
 * Imports the rows in order, and continues where an earlier run of the same task ended. Every row is imported once: a
 * key exists once by its hash, and rows that may have been sent already are recognized by that.
 */
export async function importRows(task: ImportTask, endpoint: Endpoint): Promise<ImportSummary> {
  const others = await readOthers(task);
  const prepare = preparation(task, others.documents);
  const files = new ImportFiles(filePrefix(task), await identify(task, endpoint, others.digests));
  const { state } = files;
  const progress = new Progress("imported");
  let block: { bytes: number; keys: Prepared[]; reported: ReportedRow[] } = emptyBlock();
  const rowsIn = () => block.keys.length + block.reported.length;
  const flush = async () => {
    if (rowsIn() === 0) return;
    const reported = [...block.reported];
    if (block.keys.length > 0) {
      let isRepeated = state.isSending;
      files.begin();
      const sent = await send(block.keys, task, endpoint, () => {
        isRepeated = true;
      });
      for (const { row, keyId } of sent.imported) reported.push(accepted(row, "imported", keyId));
      for (const row of sent.existing) {
        reported.push(isRepeated ? accepted(row, "present") : rejection(row.number, row.name, EXISTS));
      }
      for (const { row, reason } of sent.rejected) reported.push(rejection(row.number, row.name, reason));
    }
    files.finish(reported.sort((a, b) => a.row - b.row));
    block = emptyBlock();
  };
  if (!state.isFinished) {
    for await (const row of readRows(inputOf(task))) {
      if (row.number <= state.done) continue;
      const prepared = prepare(row);
      if ("key" in prepared) {
        block.keys.push(prepared);
        block.bytes += JSON.stringify(prepared.key).length;
      } else block.reported.push(prepared);
      if (rowsIn() === ROWS_PER_CALL || block.bytes >= BYTES_PER_CALL) {
        await flush();
        progress.show(state.done, row.progress);
      }
    }
    await flush();
    state.isFinished = true;
    files.save();
  }
  progress.clear();
  const { done: rows, imported, present, rejected, skipped, reasons } = state;
  return { rows, imported, present, rejected, skipped, reasons, report: files.reportFile };
}

const emptyBlock = () => ({ bytes: 0, keys: [], reported: [] });

const EXISTS = "a key with this hash exists already, or earlier in the file";

function rejection(row: number, name: string | undefined, reason: string): ReportedRow {
  return { row, ...(name !== undefined && { name }), outcome: "rejected", reason };
}

function accepted(
  { number: row, name, key, notes }: Prepared,
  outcome: "imported" | "present" | "valid",
  keyId?: string,
): ReportedRow {
  const mapped = Object.keys(key).filter((member) => member !== "hash");
  return { row, ...(name !== undefined && { name }), outcome, ...(keyId !== undefined && { keyId }), mapped, notes };
}

/** The beginning of the names of the files beside the input. Imports of several APIs from one file have their own. */
function filePrefix({ file, sourceApi, algorithm }: ImportTask): string {
  const parts = [sourceApi?.replaceAll(/[^\w-]/g, "_"), algorithm === "sha256" ? undefined : algorithm];
  return [file, ...parts.filter((part) => part !== undefined)].join(".");
}

function inputOf({ file, format, source, sourceApi }: ImportTask) {
  return { file, format, source, sourceApi };
}

/** The documents of `--with`, and digests of them. */
async function readOthers({ otherFiles }: ImportTask): Promise<{ documents: unknown[]; digests: string[] }> {
  if (otherFiles.length > OTHER_FILES_MAX) throw new UsageError(`--with: give at most ${OTHER_FILES_MAX} files.`);
  const others: { documents: unknown[]; digests: string[] } = { documents: [], digests: [] };
  let left = OTHER_BYTES_MAX;
  for (const file of otherFiles) {
    const text = await readFile(file, left);
    left -= Buffer.byteLength(text);
    others.documents.push(parseJson(text, file));
    others.digests.push(digest(text));
  }
  return others;
}

/** Identifies the file by its content, with everything that decides what becomes of it. */
async function identify(task: ImportTask, { url }: Endpoint, others: readonly string[]): Promise<string> {
  const { sourceName, sourceApi, format, apiId, migrationId, algorithm } = task;
  const content = await digestOf(createReadStream(task.file)).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(`${task.file} cannot be read (${error.code}).`, { cause: error });
  });
  return JSON.stringify([content, url, sourceName, sourceApi, format, apiId, migrationId, algorithm, ...others]);
}

/** Makes a function that gives the key of a row, validated by the schema of the operation, or why there is none. */
function preparation(task: ImportTask, others: readonly unknown[]): (row: InputRow) => Prepared | ReportedRow {
  const { source, sourceApi, algorithm, migrationId, apiId } = task;
  const map = source.mapping({ now: systemClock.now(), algorithm, sourceApi, others });
  const left = new Map(Object.entries(source.left).map(([name, note]) => [fieldName(name), note]));
  return (row) => {
    if (!row.fields) return rejection(row.number, undefined, row.damage);
    const fields = new Fields(row.fields);
    const name = fields.label();
    const mapped: Mapped = map(fields);
    if ("skipped" in mapped)
      return { ...rejection(row.number, name, mapped.skipped), outcome: "skipped" } as ReportedRow;
    if ("rejected" in mapped) return rejection(row.number, name, mapped.rejected);
    const body = { migrationId, apiId, algorithm, keys: [mapped.key] };
    const parsed = migrateKeys.declaration.input.safeParse(body, PARSE_OPTIONS);
    if (!parsed.success) return rejection(row.number, name, reasonOf(inputErrorsOf(parsed.error.issues)));
    for (const field of fields.unread().slice(0, NOTES_MAX)) {
      const note = left.has(field) ? left.get(field)! : UNKNOWN;
      if (note !== null) fields.note(fields.spelling(field), note);
    }
    return { number: row.number, name, key: mapped.key, notes: fields.notes };
  };
}

/** Maximum number of unread fields that the report names for one row. */
const NOTES_MAX = 100;
const UNKNOWN = "is not known to this import, and not imported";

/** Errors in a key as one text. Messages name values by their place and never quote them. */
function reasonOf(errors: readonly { message: string; fix?: string | undefined }[]): string {
  return errors
    .map(({ message, fix }) => message.replaceAll(/keys\[0\]\.?/g, "") + (fix === undefined ? "" : ` (${fix})`))
    .join("; ");
}

interface Sent {
  imported: { row: Prepared; keyId: string }[];
  /** Rows whose hash exists. */
  existing: Prepared[];
  rejected: { row: Prepared; reason: string }[];
}

/** Sends keys, and finds out about each of them what became of it. `onRetry` is called before a request is repeated. */
async function send(
  rows: readonly Prepared[],
  task: ImportTask,
  endpoint: Endpoint,
  onRetry: () => void,
): Promise<Sent> {
  const sent: Sent = { imported: [], existing: [], rejected: [] };
  // Within one call the second of two equal hashes fails, so hashes identify rows only if each occurs once.
  const byHash = new Map<string, Prepared>();
  for (const row of rows) {
    if (byHash.has(row.key.hash)) sent.rejected.push({ row, reason: EXISTS });
    else byHash.set(row.key.hash, row);
  }
  const answers = await migrate([...byHash.values()], task, endpoint, onRetry, sent);
  // In an answer for several transactions, `failed` also has the rows of those that did not run. In an answer for one
  // transaction, it has only hashes that exist.
  const unclear = answers.failed.map((hash) => byHash.get(hash)!);
  for (const part of unclear.length > 0 ? chunksOf(unclear, task) : []) {
    const answer = await migrate(part, task, endpoint, onRetry, sent);
    for (const hash of answer.failed) sent.existing.push(byHash.get(hash)!);
  }
  return sent;
}

/** Sends keys in one call. If the service rejects the input, halves are sent, down to the key that it rejects. */
async function migrate(
  rows: readonly Prepared[],
  task: ImportTask,
  endpoint: Endpoint,
  onRetry: () => void,
  sent: Sent,
): Promise<{ failed: string[] }> {
  const { migrationId, apiId, algorithm, pepper, timeout } = task;
  const body = {
    migrationId,
    apiId,
    algorithm,
    ...(pepper !== undefined && { pepper }),
    keys: rows.map(({ key }) => key),
  };
  try {
    const { data } = await call(endpoint, "keys.migrateKeys", JSON.stringify(body), {
      ...retryOptions,
      timeout,
      onRetry,
    });
    const [migrated, failed] = [data?.migrated, data?.failed];
    const byHash = new Map(rows.map((row) => [row.key.hash, row]));
    const isComplete =
      Array.isArray(migrated) &&
      Array.isArray(failed) &&
      migrated.length + failed.length === rows.length &&
      [...failed, ...migrated.map((one) => one?.hash)].every((hash) => byHash.has(hash));
    if (!isComplete) throw new CommandError("The service did not answer for each key. Is its version newer?");
    for (const { hash, keyId } of migrated) sent.imported.push({ row: byHash.get(hash)!, keyId: String(keyId) });
    return { failed };
  } catch (error) {
    const isRejected =
      error instanceof ServiceError &&
      error.type === "application/invalid_input" &&
      error.details.some((line) => line.includes("/keys/"));
    if (!isRejected) throw error;
    if (rows.length === 1) {
      sent.rejected.push({ row: rows[0]!, reason: error.details[0]! });
      return { failed: [] };
    }
    const half = Math.ceil(rows.length / 2);
    const first = await migrate(rows.slice(0, half), task, endpoint, onRetry, sent);
    const second = await migrate(rows.slice(half), task, endpoint, onRetry, sent);
    return { failed: [...first.failed, ...second.failed] };
  }
}

/** Lists of rows, each of which the service imports in one transaction. */
function chunksOf(rows: readonly Prepared[], { migrationId, apiId }: ImportTask): Prepared[][] {
  const chunks = migrateKeys.split(
    migrateKeys.declaration.input.parse({ migrationId, apiId, keys: rows.map(({ key }) => key) }),
  );
  let next = 0;
  return chunks.map(({ keys }) => {
    next += keys.length;
    return rows.slice(next - keys.length, next);
  });
}

/** The secret of an HMAC, from a file. */
export function readPepper(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new CommandError(`${basename(file)} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** A bar with the rows so far, their rate and the time that is left. */
class Progress {
  readonly #verb: string;
  readonly #line = new ProgressLine();
  readonly #startedAt = systemClock.monotonic();
  #rowsAtStart: number | undefined;
  #shownAt = 0;

  constructor(verb: string) {
    this.#verb = verb;
  }

  show(rows: number, fraction: number): void {
    const elapsed = systemClock.monotonic() - this.#startedAt;
    this.#rowsAtStart ??= rows;
    if (elapsed - this.#shownAt < 100) return;
    this.#shownAt = elapsed;
    const filled = Math.round(Math.min(1, fraction) * 20);
    const rate = Math.round(((rows - this.#rowsAtStart) / elapsed) * 1_000);
    const left = fraction > 0 ? Math.ceil((elapsed * (1 - fraction)) / fraction / 1_000) : 0;
    this.#line.show(
      `[${"#".repeat(filled)}${" ".repeat(20 - filled)}] ${Math.floor(fraction * 100)} %  ${rows.toLocaleString("en")} rows ${this.#verb}  ${rate.toLocaleString("en")}/s  ${left} s left`,
    );
  }

  clear(): void {
    this.#line.clear();
  }
}
