import { closeSync, createReadStream, readFileSync, statSync } from "node:fs";
import { basename } from "node:path";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { digest, digestOf } from "../../../engine/src/crypto/digest.ts";
import type { HashAlgorithm } from "../../../engine/src/rules/imported-keys.ts";
import { type Attempts, call, type Endpoint, ServiceError } from "../call.ts";
import { readFile } from "../input.ts";
import { CommandError, UsageError } from "../output.ts";
import { jsonText } from "../printable.ts";
import { ProgressLine } from "../progress.ts";
import type { ServiceRules } from "../service-rules.ts";
import { ImportedBudgets, type PlannedBudget } from "./budgets.ts";
import { Fields, fieldName, type Note } from "./fields.ts";
import { createOwnFile, lockImport, writeFully, writing } from "./own-files.ts";
import { OWNER_NOTE, writeOwner } from "./owners.ts";
import { ImportedPlans, type PlannedPlan } from "./plans.ts";
import { type InputFormat, type InputRow, parseDocument, readRows, repetitionOf, requireText } from "./rows.ts";
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
  readonly rules: ServiceRules;
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
const ROWS_PER_CALL = 1_000;
/** The largest body has 10 MiB by default; a row can have 64 KiB of metadata, and longer lists of permissions. */
const BYTES_PER_CALL = 2 * 1024 * 1024;
/** A service that restarts, or limits requests, is asked again for some minutes. */
const retryOptions = { repeatable: "always", retries: 12, waitMax: 120_000 } satisfies Attempts;
/** The hashes by which a dry run finds repetitions in a file: about 600 MB. Later ones are compared with these. */
const HASHES_MAX = 5_000_000;
/** Bounds of `--with`. */
const OTHER_FILES_MAX = 1_000;
const OTHER_BYTES_MAX = 256 * 1024 * 1024;

/** A row with the key that it describes. */
interface Prepared {
  number: number;
  name: string | undefined;
  key: HashedKey;
  /** Set if the external id of the key is a written form of it. */
  owner: string | undefined;
  budget: PlannedBudget | undefined;
  plan: PlannedPlan | undefined;
  notes: readonly Note[];
}

/**
 * Checks every row, and asks the service about those that are valid, which imports none. Writes what it finds to a report
 * of its own. Without a service, only the rows themselves are checked.
 */
export async function checkRows(task: ImportTask, endpoint: Endpoint | undefined): Promise<ImportSummary> {
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
  const target = createOwnFile(report);
  let written = 0;
  const seen = new Set<string>();
  let block: (Prepared | ReportedRow)[] = [];
  let bytes = 0;
  const flush = async () => {
    const keys = block.filter((row) => "key" in row);
    const reasons = new Map<Prepared, string>();
    for (const row of keys) {
      if (seen.has(row.key.hash)) reasons.set(row, EXISTS);
      else if (seen.size < HASHES_MAX) seen.add(row.key.hash);
    }
    if (endpoint) {
      const clashes = await keepOriginals(keys, task, endpoint, { dryRun: true });
      for (const row of keys) if (row.owner !== undefined && clashes.has(row.owner)) reasons.set(row, OWNER_CLASHES);
      const unique = keys.filter((row) => !reasons.has(row));
      if (unique.length > 0) await askAbout(unique, task, endpoint, reasons);
    }
    const lines = block.map((row) => {
      const reason = "key" in row ? reasons.get(row) : undefined;
      const reported =
        "key" in row ? (reason === undefined ? accepted(row, "valid") : rejection(row.number, row.name, reason)) : row;
      summary.rows++;
      summary[reported.outcome === "valid" ? "imported" : reported.outcome]++;
      count(tally, reported);
      return `${jsonText(reported, 0)}\n`;
    });
    const text = lines.join("");
    writing(report, () => writeFully(target, text, written));
    written += Buffer.byteLength(text);
    block = [];
    bytes = 0;
  };
  try {
    for await (const row of readRows(inputOf(task))) {
      const prepared = prepare(row);
      block.push(prepared);
      if ("key" in prepared) bytes += JSON.stringify(prepared.key).length;
      if (block.length < ROWS_PER_CALL && bytes < BYTES_PER_CALL) continue;
      await flush();
      progress.show(summary.rows, row.progress);
    }
    await flush();
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
  const release = lockImport(`${filePrefix(task)}.import-lock`);
  try {
    return await importLocked(task, endpoint);
  } finally {
    release();
  }
}

async function importLocked(task: ImportTask, endpoint: Endpoint): Promise<ImportSummary> {
  const before = versionOf(task.file);
  const others = await readOthers(task);
  const prepare = preparation(task, others.documents);
  const files = new ImportFiles(filePrefix(task), await identify(task, endpoint, others.digests));
  const { state } = files;
  const budgets = new ImportedBudgets(endpoint, { ...retryOptions, timeout: task.timeout });
  const plans = new ImportedPlans(endpoint, { ...retryOptions, timeout: task.timeout });
  const progress = new Progress("imported");
  let block: { bytes: number; keys: Prepared[]; reported: ReportedRow[] } = emptyBlock();
  const rowsIn = () => block.keys.length + block.reported.length;
  const flush = async () => {
    if (rowsIn() === 0) return;
    const reported = [...block.reported];
    const clashes = await keepOriginals(block.keys, task, endpoint);
    const keys = block.keys.filter(({ owner }) => owner === undefined || !clashes.has(owner));
    for (const { number, name, owner } of block.keys) {
      if (owner !== undefined && clashes.has(owner)) reported.push(rejection(number, name, OWNER_CLASHES));
    }
    for (const { key, budget, plan } of keys) {
      if (budget) key.budgetId = await budgets.idOf(budget);
      if (plan) key.plan = await plans.nameOf(plan);
    }
    if (keys.length > 0) {
      let isRepeated = state.isSending;
      files.begin();
      const sent = await send(keys, task, endpoint, () => {
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
    if (versionOf(task.file) !== before) {
      throw new CommandError(
        `${task.file} changed while it was read: what was imported may be neither of its versions. Compare ${files.reportFile} with it.`,
      );
    }
    state.isFinished = true;
    files.save();
  }
  progress.clear();
  const { done: rows, imported, present, rejected, skipped, reasons } = state;
  return { rows, imported, present, rejected, skipped, reasons, report: files.reportFile };
}

/** What changes with the content of a file. */
function versionOf(file: string): string {
  const { dev, ino, size, mtimeNs } = statSync(file, { bigint: true });
  return [dev, ino, size, mtimeNs].join();
}

const emptyBlock = () => ({ bytes: 0, keys: [], reported: [] });

const EXISTS = "a key with this hash exists already, or earlier in the file";

function rejection(row: number, name: string | undefined, reason: string): ReportedRow {
  return { row, ...(name !== undefined && { name }), outcome: "rejected", reason };
}

function accepted(
  { number: row, name, key, owner, budget, plan, notes }: Prepared,
  outcome: "imported" | "present" | "valid",
  keyId?: string,
): ReportedRow {
  const mapped = Object.keys(key).filter((member) => member !== "hash" && member !== "budgetId" && member !== "plan");
  if (budget) mapped.push("budgetId");
  if (plan) mapped.push("plan");
  return {
    row,
    ...(name !== undefined && { name }),
    outcome,
    ...(keyId !== undefined && { keyId }),
    ...(owner !== undefined && { externalId: key.externalId as string }),
    mapped,
    notes,
  };
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
    others.documents.push(parseDocument(text, file));
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
  await requireText(task);
  return JSON.stringify([content, url, sourceName, sourceApi, format, apiId, migrationId, algorithm, ...others]);
}

/** Makes a function that gives the key of a row, validated by the schema of the operation, or why there is none. */
function preparation(task: ImportTask, others: readonly unknown[]): (row: InputRow) => Prepared | ReportedRow {
  const { source, sourceApi, algorithm, migrationId, apiId, rules } = task;
  const map = source.mapping({ now: systemClock.now(), algorithm, sourceApi, others });
  const left = new Map(Object.entries(source.left).map(([name, note]) => [fieldName(name), note]));
  return (row) => {
    if (!row.fields) return rejection(row.number, undefined, row.damage);
    const fields = new Fields(row.fields);
    const name = fields.label();
    if (fields.repeated !== undefined) {
      return rejection(row.number, name, `has the field ${fields.repeated} twice, in two spellings`);
    }
    const mapped: Mapped = map(fields);
    if ("skipped" in mapped)
      return { ...rejection(row.number, name, mapped.skipped), outcome: "skipped" } as ReportedRow;
    if ("rejected" in mapped) return rejection(row.number, name, mapped.rejected);
    const [repeated] = fields.repeatedMembers;
    if (repeated !== undefined) return rejection(row.number, name, repetitionOf(repeated));
    const [notTime] = fields.notTimes;
    if (notTime !== undefined) return rejection(row.number, name, `${notTime} ${NOT_A_TIME}`);
    const owner = ownerOf(mapped.key);
    if ("rejected" in owner) return rejection(row.number, name, owner.rejected);
    const { key, original } = owner;
    if (original !== undefined) fields.note("externalId", OWNER_NOTE);
    const errors = rules.errorsOfImport({ migrationId, apiId, algorithm, keys: [key] });
    if (errors.length > 0) return rejection(row.number, name, reasonOf(errors));
    for (const field of fields.unread().slice(0, NOTES_MAX)) {
      const note = left.has(field) ? left.get(field)! : UNKNOWN;
      if (note !== null) fields.note(fields.spelling(field), note);
    }
    return {
      number: row.number,
      name,
      key,
      owner: original,
      budget: mapped.budget,
      plan: mapped.plan,
      notes: fields.notes,
    };
  };
}

const NOT_A_TIME =
  "is no time that the import reads: a date such as 2027-01-31 or 2027-01-31T12:00:00Z (UTC without a zone), or Unix time in seconds or milliseconds";

/** A key with an external id that every operation accepts. */
function ownerOf(key: HashedKey): { key: HashedKey; original?: string } | { rejected: string } {
  if (typeof key.externalId !== "string") return { key };
  const written = writeOwner(key.externalId);
  if ("rejected" in written) return written;
  const { externalId, original } = written;
  return original === undefined ? { key } : { key: { ...key, externalId }, original };
}

/** Maximum number of unread fields that the report names for one row. */
const NOTES_MAX = 100;
const UNKNOWN = "is not known to this import, and not imported";

/** Errors in a key as one text. Messages name values by their place and never quote them. */
function reasonOf(errors: readonly { message: string; fix?: string | undefined }[]): string {
  return errors
    .map(({ message, fix }) => message + (fix === undefined ? "" : ` (${fix})`))
    .join("; ")
    .replaceAll(/keys\[0\]\.?/g, "");
}

const OWNER_CLASHES = "has an owner whose written form is the external id of an identity with another meta.externalId";
/** Identities that are made at the same time. */
const IDENTITIES_AT_ONCE = 10;

/**
 * Makes the identities of owners that are written in another form, with the original in their metadata. Returns the owners
 * whose identity exists already and has another original. A dry run makes none.
 */
async function keepOriginals(
  rows: readonly Prepared[],
  task: ImportTask,
  endpoint: Endpoint,
  { dryRun }: { dryRun?: true } = {},
): Promise<Set<string>> {
  const clashes = new Set<string>();
  const owners = new Map<string, string>();
  for (const { key, owner } of rows) if (owner !== undefined) owners.set(owner, String(key.externalId));
  const left = [...owners];
  for (let part = left.splice(0, IDENTITIES_AT_ONCE); part.length > 0; part = left.splice(0, IDENTITIES_AT_ONCE)) {
    await Promise.all(
      part.map(async ([original, externalId]) => {
        const isKept = await (dryRun ? couldKeepOriginal : keepOriginal)(original, externalId, task, endpoint);
        if (!isKept) clashes.add(original);
      }),
    );
  }
  return clashes;
}

async function keepOriginal(
  original: string,
  externalId: string,
  { timeout }: ImportTask,
  endpoint: Endpoint,
): Promise<boolean> {
  const ask = (operation: string, body: object) =>
    call(endpoint, operation, JSON.stringify(body), { ...retryOptions, timeout });
  try {
    await ask("identities.createIdentity", { externalId, meta: { externalId: original } });
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError && error.type === "data/identity_already_exists")) throw error;
  }
  const { meta = {} } = (await ask("identities.getIdentity", { identity: externalId })).data ?? {};
  if (meta.externalId !== undefined) return meta.externalId === original;
  await ask("identities.updateIdentity", { identity: externalId, meta: { ...meta, externalId: original } });
  return true;
}

/** Whether `keepOriginal` would keep it. */
async function couldKeepOriginal(
  original: string,
  externalId: string,
  { timeout }: ImportTask,
  endpoint: Endpoint,
): Promise<boolean> {
  const body = JSON.stringify({ identity: externalId });
  try {
    const { data } = await call(endpoint, "identities.getIdentity", body, { ...retryOptions, timeout });
    const kept = data?.meta?.externalId;
    return kept === undefined || kept === original;
  } catch (error) {
    if (error instanceof ServiceError && error.type === "data/identity_not_found") return true;
    throw error;
  }
}

interface Sent {
  imported: { row: Prepared; keyId: string }[];
  /** Rows whose hash exists. */
  existing: Prepared[];
  rejected: { row: Prepared; reason: string }[];
}

/** Sends keys, and finds out about each of them what became of it. `onRetry` is called before a request is repeated that may have had its effect. */
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

/** Sends keys in one call, or in several if the service rejects some of them. */
async function migrate(
  rows: readonly Prepared[],
  task: ImportTask,
  endpoint: Endpoint,
  onRetry: () => void,
  sent: Sent,
): Promise<{ failed: string[] }> {
  const attempt = async (part: readonly Prepared[]) => {
    const { data } = await callMigrate(part, task, endpoint, { onRetry });
    const [migrated, failed] = [data?.migrated, data?.failed];
    const byHash = new Map(part.map((row) => [row.key.hash, row]));
    const isComplete =
      Array.isArray(migrated) &&
      Array.isArray(failed) &&
      migrated.length + failed.length === part.length &&
      [...failed, ...migrated.map((one) => one?.hash)].every((hash) => byHash.has(hash));
    if (!isComplete) throw new CommandError(INCOMPLETE);
    for (const { hash, keyId } of migrated) sent.imported.push({ row: byHash.get(hash)!, keyId: String(keyId) });
    return failed as string[];
  };
  return { failed: await inHalves(rows, attempt, (row, reason) => sent.rejected.push({ row, reason })) };
}

/** Asks the service about keys, without an import, and adds the reason for each key that it would not import. */
async function askAbout(
  rows: readonly Prepared[],
  task: ImportTask,
  endpoint: Endpoint,
  reasons: Map<Prepared, string>,
): Promise<void> {
  const attempt = async (part: readonly Prepared[]) => {
    const { data } = await callMigrate(part, task, endpoint, { dryRun: true }).catch((error: unknown) => {
      throw isUnknownDryRun(error) ? new CommandError(TOO_OLD, { cause: error }) : error;
    });
    if (!Array.isArray(data?.failed) || data.migrated?.length !== 0) throw new CommandError(INCOMPLETE);
    return data.failed as string[];
  };
  const failed = new Set(await inHalves(rows, attempt, (row, reason) => reasons.set(row, reason)));
  // As in `send`: only an answer for one transaction says which hashes exist.
  const unclear = rows.filter(({ key }) => failed.has(key.hash));
  for (const part of unclear.length > 0 ? chunksOf(unclear, task) : []) {
    const existing = await attempt(part);
    for (const row of part) if (existing.includes(row.key.hash)) reasons.set(row, EXISTS);
  }
}

const INCOMPLETE = "The service did not answer for each key. Is its version newer?";

const TOO_OLD =
  "The service is too old for dry runs. Update it, or check the rows without it: add --offline to this command.";

function isUnknownDryRun(error: unknown): boolean {
  return error instanceof ServiceError && error.details.some((line) => /additionalProperties: .*'dryRun'/.test(line));
}

function callMigrate(
  rows: readonly Prepared[],
  { migrationId, apiId, algorithm, pepper, timeout }: ImportTask,
  endpoint: Endpoint,
  { dryRun, onRetry }: { dryRun?: true; onRetry?: () => void },
) {
  const body = {
    migrationId,
    apiId,
    algorithm,
    ...(pepper !== undefined && { pepper }),
    ...(dryRun && { dryRun }),
    keys: rows.map(({ key }) => key),
  };
  const attempts = { ...retryOptions, timeout, ...(onRetry && { onRetry }) };
  return call(endpoint, "keys.migrateKeys", JSON.stringify(body), attempts);
}

/** Calls with all keys. If the service rejects the input, with halves of them, down to the key that it rejects. */
async function inHalves(
  rows: readonly Prepared[],
  attempt: (rows: readonly Prepared[]) => Promise<string[]>,
  onRejected: (row: Prepared, reason: string) => void,
): Promise<string[]> {
  try {
    return await attempt(rows);
  } catch (error) {
    const isRejected =
      error instanceof ServiceError &&
      error.type === "application/invalid_input" &&
      error.details.some((line) => line.includes("/keys/"));
    if (!isRejected) throw error;
    if (rows.length === 1) {
      onRejected(rows[0]!, error.details[0]!);
      return [];
    }
    const half = Math.ceil(rows.length / 2);
    const first = await inHalves(rows.slice(0, half), attempt, onRejected);
    return [...first, ...(await inHalves(rows.slice(half), attempt, onRejected))];
  }
}

/** Lists of rows, each of which the service imports in one transaction. */
function chunksOf(rows: readonly Prepared[], { migrationId, apiId, algorithm, rules }: ImportTask): Prepared[][] {
  const together = rules.importedTogether({ migrationId, apiId, algorithm, keys: rows.map(({ key }) => key) });
  let next = 0;
  return together.map((keys) => {
    next += keys;
    return rows.slice(next - keys, next);
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
