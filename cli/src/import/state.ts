import { existsSync, fsyncSync, ftruncateSync, readFileSync } from "node:fs";
import { CommandError } from "../output.ts";
import { jsonText } from "../printable.ts";
import type { Note } from "./fields.ts";
import { openOwnFile, replaceFile, writeFully, writing } from "./own-files.ts";
import { type Reason, Tally } from "./tally.ts";

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
  /** Why rows were not imported, or lost something. */
  readonly reasons: Reason[];
  /** The length of the report that belongs to the finished rows, in bytes. */
  reportBytes: number;
  isFinished: boolean;
}

/** A row in the report. It has no key string and no hash. */
export type ReportedRow = {
  row: number;
  name?: string;
} & (
  | { outcome: "rejected" | "skipped"; reason: string }
  | {
      /** `present`: its key existed when the row was sent again; `valid`: a dry run found nothing to reject. */
      outcome: "imported" | "present" | "valid";
      keyId?: string;
      /** The external id of the key, if it is a written form of the owner; see `writeOwner`. */
      externalId?: string;
      /** The members of the key that the row gives. */
      mapped: readonly string[];
      /** What the row has besides, or what is different here. */
      notes: readonly Note[];
    }
);

/** Counts a row in a tally. */
export function count(tally: Tally, { row: first, name, ...row }: ReportedRow): void {
  const place = { first, ...(name !== undefined && { name }) };
  if ("reason" in row) tally.add({ outcome: row.outcome, text: row.reason, ...place });
  else for (const { field, note } of row.notes) tally.add({ outcome: "imported", field, text: note, ...place });
}

/**
 * The state file and the report of an import, beside the input. After a crash at any moment, the state is that of before
 * or after a step, and the report has the rows of the state.
 */
export class ImportFiles {
  readonly stateFile: string;
  readonly reportFile: string;
  readonly state: ImportState;
  readonly #tally: Tally;
  #report: number | undefined;

  /** @throws {CommandError} when the state file belongs to another task. */
  constructor(input: string, task: string) {
    this.stateFile = `${input}.import-state.json`;
    this.reportFile = `${input}.report.jsonl`;
    this.state = this.#read(task);
    this.#tally = new Tally(this.state.reasons);
  }

  #read(task: string): ImportState {
    const empty: ImportState = {
      task,
      done: 0,
      isSending: false,
      imported: 0,
      present: 0,
      rejected: 0,
      skipped: 0,
      reasons: [],
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
      `${this.stateFile} belongs to another import: the file has changed, or the service or an option differs. Remove it to begin again.`,
    );
  }

  /** Records that the next rows are being sent. */
  begin(): void {
    if (this.state.isSending) return;
    this.state.isSending = true;
    this.save();
  }

  /** Records rows as finished. */
  finish(rows: readonly ReportedRow[]): void {
    this.#append(rows.map((row) => `${jsonText(row, 0)}\n`).join(""));
    for (const row of rows) {
      count(this.#tally, row);
      if (row.outcome !== "valid") this.state[row.outcome]++;
    }
    this.state.done += rows.length;
    this.state.isSending = false;
    this.save();
  }

  /** Adds to the report, after what belongs to the state. */
  #append(text: string): void {
    if (text === "" && this.#report === undefined) return;
    if (this.#report === undefined) {
      const report = openOwnFile(this.reportFile);
      ftruncateSync(report, this.state.reportBytes);
      this.#report = report;
    }
    const report = this.#report;
    writing(this.reportFile, () => {
      writeFully(report, text, this.state.reportBytes);
      fsyncSync(report);
    });
    this.state.reportBytes += Buffer.byteLength(text);
  }

  save(): void {
    replaceFile(this.stateFile, JSON.stringify(this.state));
  }
}
