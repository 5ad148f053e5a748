import type { Config } from "../config/config.ts";
import type { Secrets } from "../config/secrets.ts";
import { OperatorError } from "../log/operator-error.ts";

/** What every command is given. */
export interface Invocation {
  config: Config;
  secrets: Secrets;
  /** Print JSON, for programs. */
  json: boolean;
}

/** A command that cannot be carried out: the message is for the person who gave it. */
export class CommandError extends OperatorError {
  constructor(message: string) {
    super(message);
    this.name = "CommandError";
  }
}

/** Prints a result: as JSON when that was asked for, else as the lines given. */
export function print(json: boolean, result: unknown, lines: () => readonly string[]): void {
  for (const line of json ? [JSON.stringify(result, null, 2)] : lines()) console.log(line);
}

/** Rows in aligned columns, with a head. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  return [head, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}
