import { existsSync } from "node:fs";
import { type Command, Option } from "commander";
import { hashAlgorithms } from "../../../rules/imported-keys.ts";
import { print, UsageError } from "../../output.ts";
import { connect } from "../connection.ts";
import { addConnectionOptions, type CommandFlags, timeoutOf } from "../operation-commands.ts";
import { printable } from "../printable.ts";
import type { ImportSummary } from "./import.ts";
import { formatOfFile, type InputFormat, inputFormats } from "./rows.ts";
import { type SourceName, sourceNames, sources } from "./sources.ts";

/** Maximum number of rows that a dry run prints. */
const SHOWN_MAX = 20;
const TIMEOUT_DEFAULT = "60s";

interface ImportOptions extends CommandFlags {
  readonly from: SourceName;
  readonly apiId: string;
  readonly migrationId?: string;
  readonly algorithm: string;
  readonly pepperFile?: string;
  readonly format?: InputFormat;
  readonly dryRun?: true;
}

/** Adds `import`. */
export function addImport(program: Command, environment: NodeJS.ProcessEnv): void {
  const command = program
    .command("import <file>")
    .description("import keys from another system; the same command continues an interrupted import")
    .helpGroup("Commands that call a service:")
    .exitOverride()
    .addOption(
      new Option("--from <system>", "system that the file comes from").choices(sourceNames).makeOptionMandatory(),
    )
    .requiredOption("--api-id <id>", "API that the keys are imported into")
    .option("--dry-run", "check every row and import none; no service is called")
    .addOption(new Option("--format <format>", "format of the file (default: by its name)").choices(inputFormats))
    .option("--migration-id <text>", "name of the migration (default: import-SYSTEM or import-SYSTEM-ALGORITHM)")
    .addOption(
      new Option("--algorithm <name>", "with --from generic: the algorithm of the hashes")
        .choices(hashAlgorithms)
        .default("sha256"),
    )
    .option("--pepper-file <file>", "with hmac-sha256: a file with the secret of the HMAC")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      "\nKey strings in the file are hashed on this machine and never sent. FILE.report.jsonl lists each row that was not " +
        "imported. FILE.import-state.json stores the progress of the import.\n\n" +
        "Example:\n  latchkey import apikey.csv --from better-auth --api-id api_9ODorjezbjxUEanq --dry-run",
    );
  addConnectionOptions(command, TIMEOUT_DEFAULT);
  command.action(async (file: string) => {
    const options = command.opts<ImportOptions>();
    const { from, algorithm } = options;
    if (!existsSync(file)) throw new UsageError(`${file}: the file does not exist.`);
    if (from !== "generic" && algorithm !== "sha256")
      throw new UsageError(`--algorithm: keys from ${from} are hashed with sha256.`);
    const { checkRows, importRows, readPepper } = await import("./import.ts");
    const task = {
      file,
      format: options.format ?? formatOfFile(file),
      source: sources[from],
      sourceName: from,
      apiId: options.apiId,
      migrationId: options.migrationId ?? (algorithm === "sha256" ? `import-${from}` : `import-${from}-${algorithm}`),
      algorithm,
      pepper: options.pepperFile === undefined ? undefined : readPepper(options.pepperFile),
      timeout: timeoutOf({ timeout: options.timeout ?? TIMEOUT_DEFAULT }),
    };
    const rows: object[] = [];
    const lines: string[] = [];
    const summary = options.dryRun
      ? await checkRows(task, (row) => {
          if (rows.length === SHOWN_MAX) return;
          rows.push(row);
          lines.push(
            `Row ${row.row}${row.name === undefined ? "" : ` (${printable(row.name)})`} ${printable(row.reason)}.`,
          );
        })
      : await importRows(task, await connect(options, environment));
    print(options.json !== undefined, options.dryRun ? { ...summary, dryRun: true, shown: rows } : summary, () => [
      ...lines,
      ...summaryLines(summary, options.dryRun === true),
    ]);
    if (summary.rejected > 0) process.exitCode = 1;
  });
}

function summaryLines(
  { rows, imported, present, rejected, skipped, report }: ImportSummary,
  isDryRun: boolean,
): string[] {
  const count = (number: number) => number.toLocaleString("en");
  return [
    `${count(rows)} rows: ${count(imported)} ${isDryRun ? "can be imported" : "imported"}, ${count(rejected)} rejected, ${count(skipped)} skipped.`,
    ...(present > 0 ? [`${count(present)} more were sent again after an interruption, and their keys existed.`] : []),
    ...(report === undefined ? [] : [`${report} has the reasons.`]),
    ...(isDryRun ? ["Nothing was imported. To import, run the command without --dry-run."] : []),
  ];
}
