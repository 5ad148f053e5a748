import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readDuration } from "../../../../cli/src/body.ts";
import { CommandError, print } from "../../../../cli/src/output.ts";
import { keepProcessAlive } from "../../../../engine/src/clock/keep-alive.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { type MoveReport, type MoveStep, moveStore, undoMove } from "../../move/move.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Secrets } from "../../platform/config/secrets.ts";
import { settingsFor } from "../../platform/store/move/marks.ts";
import { parseMasterKey } from "../../platform/vault/key-ring.ts";
import type { CommandHandler, Invocation } from "./invocation.ts";

/** Time between two lines of progress: on a terminal they replace each other. */
const PROGRESS_INTERVAL = process.stderr.isTTY ? 200 : 10_000;
const ROWS_PER_SECOND_DEFAULT = 50_000;
const STOP_MAX_DEFAULT_S = 10;

/** Moves the configured store to another database, or undoes that. */
export const migrateStore: CommandHandler = async (invocation, options) => {
  const { config, secrets, json } = invocation;
  const release = keepProcessAlive();
  try {
    if (options.undo !== undefined) {
      if (options.to !== undefined || options.toFile !== undefined) {
        throw new CommandError("--undo: give it without --to. It undoes the move of the configured database.");
      }
      const other = await undoMove(config, secrets, systemClock);
      print(json, { undone: other ?? null }, () => [
        other === undefined
          ? "Nothing to undo: this database was not moved."
          : `The move to ${other} is forgotten, and this database accepts writes. Never serve both: remove the other one.`,
      ]);
      return;
    }
    const to = options.to ?? textOf("--to-file", options.toFile);
    if (to === undefined) throw new CommandError("--to: give postgres://user:password@host/database or sqlite:FOLDER.");
    const startedAt = systemClock.monotonic();
    const report = await moveStore(
      {
        config,
        secrets,
        to,
        vaultKey: vaultKeyIn(options.newVaultKeyFile),
        rowsPerSecond: numberOf("--rate", options.rate, ROWS_PER_SECOND_DEFAULT, "rows per second"),
        stopMax: stopMaxOf(options.stopMax),
      },
      systemClock,
      progressLine(startedAt),
    );
    if (process.stderr.isTTY) process.stderr.write("\n");
    print(json, report, () => lines(report, invocation, options, (systemClock.monotonic() - startedAt) / 1_000));
  } finally {
    release();
  }
};

function lines(
  report: MoveReport,
  { config, secrets }: Invocation,
  options: Record<string, string>,
  seconds: number,
): string[] {
  const { from, to, tables, stoppedMs } = report;
  const names = Object.keys(tables);
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0);
  const serve = settingsFor(to, "the address that --to had");
  return [
    names.length === 0
      ? `${from} had already been moved to ${to}.`
      : `Moved ${from} to ${to}: ${rows} rows of ${names.length} tables in ${seconds.toFixed(1)} s, with equal digests. ` +
        `Writes were stopped ${(stoppedMs / 1_000).toFixed(2)} s before it could be served.`,
    `Restart the service with ${serve}. Until then it verifies the keys that it knows, and answers everything else with 503.`,
    ...vaultLines(to, options.newVaultKeyFile, config, secrets),
  ];
}

/** Where the service that serves from the target finds the master key of the vault. */
function vaultLines(to: string, newFile: string | undefined, config: Config, secrets: Secrets): string[] {
  const needed =
    "It decrypts recoverable keys, secrets of webhooks and headers of upstream verifiers: without it the service does not start.";
  const ofFolder = join(config.dataDirectory, "vault-key");
  const file = newFile ?? (secrets.vaultKeys.length === 0 && existsSync(ofFolder) ? ofFolder : undefined);
  if (file === undefined) return secrets.vaultKeys.length > 0 ? [`Keep LATCHKEY_VAULT_KEY as it is. ${needed}`] : [];
  return [
    to.startsWith("sqlite:")
      ? `Before the start, copy ${file} to ${join(dirname(to.slice("sqlite:".length)), "vault-key")}, with mode 600, or set LATCHKEY_VAULT_KEY_FILE to it. ${needed}`
      : `Set LATCHKEY_VAULT_KEY_FILE to a copy of ${file}. ${needed}`,
  ];
}

function vaultKeyIn(file: string | undefined): string | undefined {
  const key = textOf("--new-vault-key-file", file);
  try {
    if (key !== undefined) parseMasterKey(key);
    return key;
  } catch (error) {
    throw new CommandError(`--new-vault-key-file: ${file}: ${(error as Error).message}.`, { cause: error });
  }
}

/** The text in a file; undefined without a file. */
function textOf(option: string, file: string | undefined): string | undefined {
  try {
    return file === undefined ? undefined : readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new CommandError(`${option}: ${(error as Error).message}.`, { cause: error });
  }
}

function numberOf(option: string, text: string | undefined, byDefault: number, unit: string): number {
  if (text === undefined) return byDefault;
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (number === 0) throw new CommandError(`${option}: give ${unit}, from 1 to 999999999.`);
  return number;
}

/** A duration, or a number of seconds, in milliseconds. */
function stopMaxOf(text: string | undefined): number {
  if (text === undefined) return STOP_MAX_DEFAULT_S * 1_000;
  const length = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : readDuration(text);
  if (!length) throw new CommandError("--stop-max: give a duration such as 10s, or a number of seconds, above 0.");
  return length;
}

function progressLine(startedAt: number): (step: MoveStep) => void {
  let shownAt = Number.NEGATIVE_INFINITY;
  let last = "";
  let began = { at: startedAt, done: 0 };
  return (progress) => {
    const now = systemClock.monotonic();
    const isNew = progress.step !== last;
    if (isNew) began = { at: now, done: "done" in progress ? progress.done : 0 };
    if (!isNew && now - shownAt < PROGRESS_INTERVAL) return;
    last = progress.step;
    shownAt = now;
    const text = described(progress, (now - began.at) / 1_000, began.done);
    process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`);
  };
}

function described(progress: MoveStep, seconds: number, before: number): string {
  if (!("done" in progress)) return progress.step === "last step" ? "last step: writes get 503" : progress.step;
  const { step, name, done, all } = progress;
  if (step === "indexing") return `indexing: ${name}`;
  const rate = Math.round((done - before) / Math.max(seconds, 0.001));
  const left = seconds < 0.2 || rate === 0 ? "" : `, ${rate} rows/s, ${Math.ceil((all - done) / rate)} s left`;
  return `${step}: ${all === 0 ? 100 : Math.floor((100 * done) / all)} %, ${done} of ${all} rows${left} (${name})`;
}
