import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { CommandError } from "../../output.ts";

/** How far the import of one file is. */
export interface ImportState {
  /** Identifies the file and what was asked for. */
  readonly task: string;
  /** The number of rows that are finished. */
  done: number;
  /** Whether the rows after `done` may have been sent without an answer. */
  isSending: boolean;
  imported: number;
  /** Rows whose key existed when they were sent again. */
  present: number;
  rejected: number;
  skipped: number;
  /** The length of the report that belongs to the finished rows, in bytes. */
  reportBytes: number;
  isFinished: boolean;
}

/** A row in the report. It has no key string and no hash. */
export interface ReportedRow {
  row: number;
  name?: string;
  outcome: "rejected" | "skipped";
  reason: string;
}

/**
 * The state file and the report of an import, beside the input. After a crash at any moment, the state is that of before
 * or after a step, and the report has the rows of the state.
 */
export class ImportFiles {
  readonly stateFile: string;
  readonly reportFile: string;
  readonly state: ImportState;
  #report: number | undefined;

  /** @throws {CommandError} when the state file belongs to another task. */
  constructor(input: string, task: string) {
    this.stateFile = `${input}.import-state.json`;
    this.reportFile = `${input}.report.jsonl`;
    this.state = this.#read(task);
  }

  #read(task: string): ImportState {
    const empty = {
      task,
      done: 0,
      isSending: false,
      imported: 0,
      present: 0,
      rejected: 0,
      skipped: 0,
      reportBytes: 0,
      isFinished: false,
    };
    if (!existsSync(this.stateFile)) return empty;
    let state: ImportState;
    try {
      state = JSON.parse(readFileSync(this.stateFile, "utf8"));
    } catch (error) {
      throw new CommandError(
        `${this.stateFile} cannot be read: ${(error as Error).message}. Remove it to begin again.`,
      );
    }
    if (state?.task === task) return state;
    throw new CommandError(
      `${this.stateFile} belongs to another import: the file has changed, or the service, --api-id, --from, --migration-id or --algorithm differ. Remove it to begin again.`,
    );
  }

  /** Records that the next rows are being sent. */
  begin(): void {
    if (this.state.isSending) return;
    this.state.isSending = true;
    this.save();
  }

  /** Records rows as finished, with those that were not imported. */
  finish(rows: number, reported: readonly ReportedRow[]): void {
    this.#append(reported.map((row) => `${JSON.stringify(row)}\n`).join(""));
    this.state.done += rows;
    this.state.isSending = false;
    this.save();
  }

  /** Adds to the report, after what belongs to the state. */
  #append(text: string): void {
    if (text === "" && this.#report === undefined) return;
    if (this.#report === undefined) {
      this.#report = openSync(this.reportFile, existsSync(this.reportFile) ? "r+" : "w+", 0o600);
      ftruncateSync(this.#report, this.state.reportBytes);
    }
    writeSync(this.#report, text, this.state.reportBytes);
    fsyncSync(this.#report);
    this.state.reportBytes += Buffer.byteLength(text);
  }

  save(): void {
    const draft = `${this.stateFile}.draft`;
    const file = openSync(draft, "w", 0o600);
    writeFileSync(file, JSON.stringify(this.state));
    fsyncSync(file);
    closeSync(file);
    renameSync(draft, this.stateFile);
  }
}
