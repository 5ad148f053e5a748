import type { Config } from "../config/config.ts";
import type { Secrets } from "../config/secrets.ts";
import { OperatorError } from "../log/operator-error.ts";

/** The input of every command. */
export interface Invocation {
  config: Config;
  secrets: Secrets;
  /** Whether to print JSON. */
  json: boolean;
}

/** Runs a command with the options and arguments of the command line. */
export type CommandHandler = (
  invocation: Invocation,
  options: Record<string, string>,
  given: unknown[],
) => Promise<void>;

/** A command cannot be run. The message says why and what to do. */
export class CommandError extends OperatorError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CommandError";
  }
}

/** Prints a result, as JSON or as lines of text. */
export function print(json: boolean, result: unknown, lines: () => readonly string[]): void {
  for (const line of json ? [JSON.stringify(result, null, 2)] : lines()) console.log(line);
}

/** Rows in aligned columns under a header. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}
