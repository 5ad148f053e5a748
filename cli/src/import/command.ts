import { existsSync, readFileSync, statSync } from "node:fs";
import { type Command, Option } from "commander";
import { type HashAlgorithm, hashAlgorithms } from "../../../engine/src/rules/imported-keys.ts";
import { connect, parseUrl } from "../connection.ts";
import { addConnectionOptions, type CommandFlags, timeoutOf } from "../operation-commands.ts";
import { CommandError, print, UsageError } from "../output.ts";
import { printable } from "../printable.ts";
import type { ServiceRules } from "../service-rules.ts";
import type { ImportSummary } from "./import.ts";
import { formatOfFile, type InputFormat, inputFormats } from "./rows.ts";
import { type SourceName, sourceNames, sources } from "./sources/sources.ts";
import type { Reason } from "./tally.ts";

/** Maximum number of reasons that are printed. The JSON and the report have more. */
const SHOWN_MAX = 20;
const TIMEOUT_DEFAULT = "60s";
const UNKEY_URL = "https://api.unkey.com";

/** The system whose limits are imported. All others have keys. */
const LIMITS = "envoy-ratelimit";

interface GivenOptions extends Omit<ImportOptions, "from" | "apiId"> {
  readonly from: SourceName | typeof LIMITS;
  readonly apiId?: string;
}

interface ImportOptions extends CommandFlags {
  readonly from: SourceName;
  readonly apiId: string;
  readonly migrationId?: string;
  readonly algorithm: HashAlgorithm;
  readonly pepperFile?: string;
  readonly format?: InputFormat;
  readonly with?: string[];
  readonly sourceApi?: string;
  readonly sourceKeyFile?: string;
  readonly sourceUrl: string;
  readonly dryRun?: true;
  readonly offline?: true;
}

/** Adds `import`. */
export function addImport(
  program: Command,
  environment: NodeJS.ProcessEnv,
  loadRules: () => Promise<ServiceRules>,
): void {
  const command = program
    .command("import <file> [more...]")
    .description("import keys or limits from another system; the same command continues an interrupted import")
    .helpGroup("Commands that call a service:")
    .exitOverride()
    .addOption(
      new Option("--from <system>", "system that the file comes from")
        .choices([...sourceNames, LIMITS])
        .makeOptionMandatory(),
    )
    .option("--api-id <id>", "API that the keys are imported into; not with envoy-ratelimit")
    .option("--dry-run", "check every row, ask the service about it, and import none")
    .option("--offline", "with --dry-run: check the rows without a service")
    .addOption(new Option("--format <format>", "format of the file (default: by its name)").choices(inputFormats))
    .option("--with <files...>", "with kong: JSON files with consumers; with aws: with usage plans and their keys")
    .option("--source-api <id>", "with unkey-dump, tyk, aws: only the keys of this API of that system")
    .option(
      "--source-key-file <file>",
      "with unkey: first download the keys of --source-api to <file>, with the root key in this file",
    )
    .addOption(new Option("--source-url <url>", "with --source-key-file: address of the service").default(UNKEY_URL))
    .option("--migration-id <text>", "name of the migration (default: import-SYSTEM or import-SYSTEM-ALGORITHM)")
    .addOption(
      new Option(
        "--algorithm <name>",
        "with generic: the algorithm of the hashes; with unkey-dump: of the pending keys to import",
      )
        .choices(hashAlgorithms)
        .default("sha256"),
    )
    .option("--pepper-file <file>", "with hmac-sha256: a file with the secret of the HMAC")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      "\nA file ….sql is a dump of the database, as pg_dump or mysqldump writes it, for better-auth, litellm, kong and " +
        "unkey-dump. One of LiteLLM also has the budgets of teams and users, which the import creates. For the other files of each system see docs/moving.md.\n\nWith envoy-ratelimit, each file is a configuration of envoyproxy/ratelimit, whose domain becomes a namespace with its tree of limits.\n\nKey strings in the file are hashed on this machine and never sent. FILE.report.jsonl lists for each row what was " +
        "imported, what was not and why; a dry run writes FILE.dry-run.jsonl. FILE.import-state.json stores the progress " +
        "of the import.\n\n" +
        "Example:\n  latchkey import apikey.csv --from better-auth --api-id api_9ODorjezbjxUEanq --dry-run",
    );
  addConnectionOptions(command, TIMEOUT_DEFAULT);
  command.action(async (file: string, more: readonly string[]) => {
    const given = command.opts<GivenOptions>();
    if (given.from === LIMITS) return importLimits([file, ...more], given, environment);
    if (more.length > 0) throw new UsageError(`${more[0]}: keys from ${given.from} are in one file.`);
    if (given.apiId === undefined) throw new UsageError("--api-id: name the API that the keys are imported into.");
    const options = given as ImportOptions;
    const { from, algorithm, sourceApi } = options;
    requireFile(file);
    const format = options.format ?? formatOfFile(file);
    checkOptions(options, format);
    const timeout = timeoutOf({ timeout: options.timeout ?? TIMEOUT_DEFAULT });
    if (options.sourceKeyFile !== undefined) await download(file, options, timeout);
    if (!existsSync(file)) throw new UsageError(`${file}: the file does not exist.`);
    const { checkRows, importRows, readPepper } = await import("./import.ts");
    const task = {
      file,
      format,
      source: sources[from],
      sourceName: from,
      sourceApi,
      otherFiles: options.with ?? [],
      apiId: options.apiId,
      migrationId: options.migrationId ?? (algorithm === "sha256" ? `import-${from}` : `import-${from}-${algorithm}`),
      algorithm,
      pepper: options.pepperFile === undefined ? undefined : readPepper(options.pepperFile),
      timeout,
      rules: await loadRules(),
    };
    const isDryRun = options.dryRun === true;
    const endpoint = options.offline ? undefined : await connect(options, environment);
    const summary = endpoint && !isDryRun ? await importRows(task, endpoint) : await checkRows(task, endpoint);
    print(options.json !== undefined, isDryRun ? { ...summary, dryRun: true } : summary, () =>
      summaryLines(summary, isDryRun),
    );
    if (summary.rejected > 0) process.exitCode = 1;
  });
}

/**
 * The file is read several times, and its name is that of the report: what is read once, as from a pipe, would look empty.
 *
 * @throws {UsageError} for what is neither a file nor a folder, which has an error of its own.
 */
function requireFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (file !== "-" && (found === undefined || found.isFile() || found.isDirectory())) return;
  throw new UsageError(`${file} is no file. Write what it gives to a file first, and import that.`);
}

/** Imports the limits of configurations of envoyproxy/ratelimit: each is the tree of a namespace. */
async function importLimits(
  files: readonly string[],
  options: GivenOptions,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  for (const name of ["apiId", "migrationId", "pepperFile", "format", "with", "sourceApi", "sourceKeyFile"] as const) {
    if (options[name] === undefined) continue;
    const option = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new UsageError(`${option}: --from ${LIMITS} reads limits, not keys.`);
  }
  const isDryRun = options.dryRun === true;
  if (options.offline && !isDryRun) throw new UsageError("--offline: give --dry-run too, an import needs the service.");
  const { importTrees, readConfigurations } = await import("./envoy-ratelimit.ts");
  const configurations = await readConfigurations(files);
  const endpoint = options.offline ? undefined : await connect(options, environment);
  const timeout = timeoutOf({ timeout: options.timeout ?? TIMEOUT_DEFAULT });
  const domains = await importTrees(configurations, endpoint, { timeout, isDryRun });
  print(options.json !== undefined, { domains, ...(isDryRun && { dryRun: true }) }, () => [
    ...domains.map(({ file, domain, descriptors, limits, outcome }) =>
      printable(
        `${domain} (${file}): ${formatCount(descriptors)} descriptors with ${formatCount(limits)} limits, ${outcome}.`,
      ),
    ),
    ...(isDryRun ? ["Nothing was imported. To import, run the command without --dry-run."] : []),
  ]);
}

/** @throws {UsageError} for options that do not belong to the system. */
function checkOptions(options: ImportOptions, format: InputFormat): void {
  const { from, algorithm, sourceApi, sourceKeyFile } = options;
  if (options.offline && !options.dryRun)
    throw new UsageError("--offline: give --dry-run too, an import needs the service.");
  const { algorithms, dump, hasApis, isDownloadable, others } = sources[from];
  if (!algorithms.includes(algorithm)) {
    throw new UsageError(`--algorithm: keys from ${from} are hashed with ${algorithms.join(" or ")}.`);
  }
  if (format === "sql" && dump === undefined) {
    throw new UsageError(
      from === "unkey"
        ? "--from unkey reads the table keys alone. For a dump of the database as SQL, give --from unkey-dump."
        : `--from ${from} reads ${inputFormats.filter((name) => name !== "sql").join(", ")}, not SQL.`,
    );
  }
  if (format !== "sql" && from === "unkey-dump") {
    throw new UsageError(
      `--from unkey-dump reads a dump of the database as SQL, not ${format}. For the table keys alone, give --from unkey.`,
    );
  }
  if (options.with !== undefined && others === undefined) {
    throw new UsageError(`--with: keys from ${from} need no other files.`);
  }
  if (sourceKeyFile !== undefined) {
    if (!isDownloadable)
      throw new UsageError(`--source-key-file: keys from ${from} cannot be downloaded. Export them to a file.`);
    if (sourceApi === undefined) throw new UsageError("--source-key-file: name the API to download with --source-api.");
    if (format !== "jsonl")
      throw new UsageError("--source-key-file: keys are downloaded as JSON Lines. Name the file …jsonl.");
  } else if (sourceApi !== undefined && !hasApis) {
    throw new UsageError(
      isDownloadable
        ? "--source-api: give --source-key-file too, to download the keys of that API."
        : `--source-api: rows from ${from} do not name an API.`,
    );
  }
}

/** Downloads the keys, unless the file exists. */
async function download(file: string, options: ImportOptions, timeout: number): Promise<void> {
  const { sourceApi, sourceKeyFile, sourceUrl } = options;
  if (existsSync(file)) {
    console.error(`${file} exists and is imported as it is. To download the keys again, remove it.`);
    return;
  }
  let rootKey: string;
  try {
    rootKey = readFileSync(sourceKeyFile!, "utf8").trim();
  } catch (error) {
    throw new CommandError(`${sourceKeyFile} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  const { downloadKeys } = await import("./unkey-api.ts");
  const keys = await downloadKeys(file, sourceApi!, { url: parseUrl(sourceUrl), rootKey }, timeout);
  console.error(`${keys.toLocaleString("en")} keys downloaded to ${file}, with hashes instead of key strings.`);
}

const formatCount = (number: number) => number.toLocaleString("en");

function summaryLines(
  { rows, imported, present, rejected, skipped, reasons, report }: ImportSummary,
  isDryRun: boolean,
): string[] {
  const more = reasons.length - SHOWN_MAX;
  return [
    ...reasons.slice(0, SHOWN_MAX).map(reasonLine),
    ...(more > 0 ? [`… and ${more} more reasons.`] : []),
    `${formatCount(rows)} rows: ${formatCount(imported)} ${isDryRun ? "can be imported" : "imported"}, ${formatCount(rejected)} rejected, ${formatCount(skipped)} skipped.`,
    ...(present > 0
      ? [`${formatCount(present)} more were sent again after an interruption, and their keys existed.`]
      : []),
    ...(rows > 0 ? [`${report} has a line for each row.`] : []),
    ...(isDryRun ? ["Nothing was imported. To import, run the command without --dry-run."] : []),
  ];
}

function reasonLine({ outcome, field, text, rows, first, name }: Reason): string {
  const row = name === undefined ? `row ${first}` : `row ${first}, ${name}`;
  const place = rows === 1 ? row : `${formatCount(rows)} rows, first ${row}`;
  return printable(`${field ?? outcome} (${place}): ${text}.`);
}
