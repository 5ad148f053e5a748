/** A command cannot be run, or failed. The message says why and what to do. */
export class CommandError extends Error {
  /** Lines that are printed below the message. */
  readonly details: readonly string[];

  constructor(message: string, { details = [], ...options }: ErrorOptions & { details?: readonly string[] } = {}) {
    super(message, options);
    this.name = "CommandError";
    this.details = details;
  }
}

/** The command line is not valid. The exit code is 2. */
export class UsageError extends CommandError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UsageError";
  }
}

/** Prints a result, as JSON or as lines of text. */
export function print(json: boolean, result: unknown, lines: () => readonly string[]): void {
  for (const line of json ? [JSON.stringify(result, null, 2)] : lines()) console.log(line);
}

/** Rows in aligned columns under a header. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]!.length), title.length),
  );
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}
