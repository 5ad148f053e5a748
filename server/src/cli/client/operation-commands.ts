import { type Command, Option } from "commander";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { alphanumeric } from "../../../../engine/src/random/random.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import { CommandError, UsageError } from "../output.ts";
import { bodyOf, type Given, readDuration } from "./body.ts";
import { type ConnectionFlags, connect } from "./connection.ts";
import { type DeclaredCommand, declaredGroups, type Flag } from "./declared.ts";
import { type Answer, call, type Endpoint, TIMEOUT_DEFAULT } from "./http.ts";
import { parseJson, readInput } from "./input.ts";
import { jsonText, printable } from "./printable.ts";
import { ProgressLine } from "./progress.ts";
import { Columns, type Format, printData, printMember, tableOf } from "./render.ts";
import { inWords } from "./words.ts";
import { yamlText } from "./yaml.ts";

/** The longest request body that a service accepts by default has 10 MiB; an operator can raise it. */
const BODY_BYTES_MAX = 256 * 1024 * 1024;
/** The size of a page with `--all`. */
const PAGE_MAX = 100;

/** The longest wait in a command of many calls, in milliseconds: a workspace can have a limit of requests per minute. */
export const QUOTA_WAIT_MAX = 61_000;

const outputGroup = "Output:";
const connectionGroup = "Connection:";

/** The options of a command that calls a service. */
export interface CommandFlags extends ConnectionFlags {
  readonly json?: true;
  readonly yaml?: true;
  readonly only?: string;
  readonly all?: true;
  readonly body?: string;
  readonly timeout?: string;
  readonly idempotencyKey?: string;
  /** As in `http.ts`. */
  readonly waitMax?: number;
}

/** Adds the flags of every command that calls a service. */
export function addConnectionOptions(command: Command, timeout?: string): Command {
  const profile = new Option("--profile <name>", "profile of `latchkey login` (default: the current one)");
  return addAddressOptions(command.addOption(profile.helpGroup(connectionGroup)), timeout);
}

/** Adds `--url` and `--timeout`. `timeout` is the default that the help shows. */
export function addAddressOptions(command: Command, timeout = "10s"): Command {
  return command
    .addOption(new Option("--url <url>", "address of the service").helpGroup(connectionGroup))
    .addOption(
      new Option("--timeout <duration>", `time for each request (default: ${timeout})`).helpGroup(connectionGroup),
    );
}

/** Adds `--json` and `--yaml`. */
export function addOutputOptions(command: Command): Command {
  return command
    .addOption(new Option("--json", "print JSON").helpGroup(outputGroup))
    .addOption(new Option("--yaml", "print YAML").conflicts("json").helpGroup(outputGroup));
}

/** The format that options choose. */
export function formatOf({ json, yaml }: { json?: true; yaml?: true }): Format {
  return json ? "json" : yaml ? "yaml" : "table";
}

/** The timeout that options give, in milliseconds. */
export function timeoutOf({ timeout }: { timeout?: string }): number {
  const length = timeout === undefined ? TIMEOUT_DEFAULT : readDuration(timeout);
  if (length && length <= 3_600_000) return length;
  throw new UsageError(`--timeout ${timeout}: give a duration from 1ms to 1h, such as 30s.`);
}

/** Adds a command for every operation. */
export function addOperationCommands(program: Command, environment: NodeJS.ProcessEnv): void {
  for (const { word, description, commands } of declaredGroups) {
    const group = program.command(word).description(description).exitOverride().helpGroup("Operations of the service:");
    for (const declared of commands) {
      const command = group
        .command(declared.words[1])
        .summary(declared.summary)
        .description(`${declared.summary}.\n\n${declared.description}`)
        .exitOverride();
      addFlags(command, declared.flags);
      addOutputOptions(addConnectionOptions(command));
      command.option(
        "--body <json>",
        "the whole request body: JSON, @FILE, or - for the standard input; flags change it",
      );
      command.addOption(
        new Option("--only <member>", "print only this member, such as keyId, for use in scripts")
          .conflicts(["json", "yaml"])
          .helpGroup(outputGroup),
      );
      if (declared.paged) command.option("--all", "get all pages");
      if (declared.repeatable === "idempotent") {
        command.addOption(
          new Option("--idempotency-key <text>", "calls with the same key have one effect (a random one)").helpGroup(
            connectionGroup,
          ),
        );
      }
      command.addHelpText("after", `\nExample:\n  ${exampleOf(declared)}`);
      command.action(() => runOperation(declared, command, environment));
    }
  }
}

/**
 * The arguments with flags for single members of an object as values of its flag: `--meta.plan pro` is
 * `--meta plan=pro`. The parser knows only the flags that are declared.
 */
export function expandMembers(args: readonly string[]): string[] {
  const declared = declaredGroups
    .flatMap(({ commands }) => commands)
    .find(({ words }) => words[0] === args[0] && words[1] === args[1]);
  const names = declared?.flags.filter(({ kind }) => kind === "members").map(({ name }) => `--${name}.`) ?? [];
  const expanded: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const prefix = names.find((name) => args[i]!.startsWith(name));
    if (prefix === undefined) {
      expanded.push(args[i]!);
      continue;
    }
    const member = args[i]!.slice(prefix.length);
    const pair = member.includes("=") || i + 1 === args.length ? member : `${member}=${args[++i]}`;
    expanded.push(prefix.slice(0, -1), pair);
  }
  return expanded;
}

/** Adds an option for each member of the body. */
export function addFlags(command: Command, flags: readonly Flag[]): void {
  for (const flag of flags) {
    const option = new Option(
      flag.kind === "boolean" ? `--${flag.name} [boolean]` : `--${flag.name} <${placeholder(flag)}>`,
      flag.help + (flag.required ? " Required." : ""),
    );
    // Shown and completed; the service decides which values are valid.
    if (flag.values) option.argChoices = [...flag.values];
    if (["list", "members", "entries"].includes(flag.kind)) {
      option.argParser((text: string, former: string[] = []) => [...former, text]);
    }
    command.addOption(option);
  }
}

const placeholders: Partial<Record<Flag["kind"], string>> = {
  json: "json",
  members: "name=value",
  list: "text",
  entries: "name=value,…",
};

function placeholder({ kind, integers, commas, nullable }: Flag): string {
  const item = integers ? "integer" : (placeholders[kind] ?? kind);
  return item + (commas ? ",…" : "") + (nullable ? "|null" : "");
}

/** The values of the options of `addFlags` that were given, by the path of the member. */
export function givenFlags(command: Command, flags: readonly Flag[]): Map<string, Given> {
  const given = new Map<string, Given>();
  for (const { path, name } of flags) {
    const option = command.options.find(({ long }) => long === `--${name}`)!;
    const value = command.getOptionValue(option.attributeName());
    if (value !== undefined) given.set(path, value as Given);
  }
  return given;
}

async function runOperation(
  declared: DeclaredCommand,
  command: Command,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const options = command.opts<CommandFlags>();
  const given = givenFlags(command, declared.flags);
  const body = await readBody(declared, given, options.body);
  const endpoint = await connect(options, environment, !declared.withoutRootKey);
  const { all, only } = options;
  const format = formatOf(options);
  if (all && only !== undefined) {
    for await (const items of pages(declared, endpoint, JSON.parse(body), timeoutOf(options))) printMember(items, only);
    return;
  }
  if (all) return printAll(declared, endpoint, JSON.parse(body), format, timeoutOf(options));
  const answer = await callDeclared(declared, endpoint, body, options);
  const data = declared.paged ? itemsOf(declared, answer) : answer.data;
  const words = format === "table" ? inWords[declared.operation] : undefined;
  if (only !== undefined) printMember(data, only);
  else if (words && typeof data === "object") for (const line of words(data as never)) console.log(line);
  else await printData(data, format);
  if (answer.pagination?.hasMore) {
    console.error(`There are more: add --all, or --cursor ${printable(String(answer.pagination.cursor))}`);
  }
}

/** Calls an operation, and repeats the call only where that is safe. */
export function callDeclared(
  { operation, repeatable }: DeclaredCommand,
  endpoint: Endpoint,
  body: string,
  options: CommandFlags = {},
): Promise<Answer> {
  const idempotencyKey =
    repeatable === "idempotent" ? (options.idempotencyKey ?? alphanumeric(systemRandom, 32)) : undefined;
  return call(endpoint, operation, body, {
    repeatable: repeatable !== "never",
    idempotencyKey,
    timeout: timeoutOf(options),
    ...(options.waitMax !== undefined && { waitMax: options.waitMax }),
  });
}

/** The request body of flags and `--body`, as JSON. A body without flags is sent as it was given. */
async function readBody(
  { flags, words, example }: DeclaredCommand,
  given: ReadonlyMap<string, Given>,
  text: string | undefined,
): Promise<string> {
  if (text === undefined) {
    const missing = flags.filter(({ required, path }) => required && !given.has(path));
    if (missing.length > 0) {
      throw new UsageError(
        `Missing: ${missing.map(({ name }) => `--${name}`).join(", ")}. See: latchkey ${words.join(" ")} --help`,
      );
    }
    return JSON.stringify(bodyOf(flags, given, systemClock.now()));
  }
  const source = await readInput(text, BODY_BYTES_MAX);
  const base = parseBody(source, Array.isArray(example));
  return given.size === 0 ? source : JSON.stringify(bodyOf(flags, given, systemClock.now(), base));
}

function parseBody(text: string, isList: boolean): unknown {
  const body = parseJson(text, "--body", UsageError);
  if (typeof body === "object" && body !== null && Array.isArray(body) === isList) return body;
  throw new UsageError(`--body: give a JSON ${isList ? "list" : "object"}.`);
}

function itemsOf({ listName }: DeclaredCommand, { data }: Answer): Record<string, unknown>[] {
  const items = listName === undefined ? data : data?.[listName];
  if (!Array.isArray(items)) throw new CommandError("The service did not answer with a list. Is its version newer?");
  return items;
}

/** Prints every page while the next one is read. Memory holds one page. */
async function printAll(
  declared: DeclaredCommand,
  endpoint: Endpoint,
  body: Record<string, unknown>,
  format: Format,
  timeout: number,
): Promise<void> {
  const progress = new ProgressLine();
  const columns = new Columns();
  let count = 0;
  for await (const items of pages(declared, endpoint, body, timeout)) {
    progress.clear();
    if (format === "json") {
      for (const item of items) {
        process.stdout.write(`${count === 0 ? "[" : ","}\n${jsonText(item).replaceAll(/^/gm, "  ")}`);
        count++;
      }
    } else {
      if (format === "yaml" && items.length > 0) process.stdout.write(await yamlText(items));
      else for (const line of tableOf(items, columns)) console.log(line);
      count += items.length;
    }
    progress.show(`${count.toLocaleString("en")} entries`);
  }
  progress.clear();
  if (format === "json") console.log(count === 0 ? "[]" : "\n]");
  if (format === "yaml" && count === 0) console.log("[]");
}

/** The pages of a list, from the first one or from the cursor of the body. */
export async function* pages(
  declared: DeclaredCommand,
  endpoint: Endpoint,
  body: Record<string, unknown>,
  timeout = TIMEOUT_DEFAULT,
): AsyncGenerator<Record<string, unknown>[]> {
  for (let cursor: unknown = body.cursor; ; ) {
    const request = { limit: PAGE_MAX, ...body, ...(cursor !== undefined && { cursor }) };
    const answer = await call(endpoint, declared.operation, JSON.stringify(request), {
      repeatable: true,
      timeout,
      waitMax: QUOTA_WAIT_MAX,
    });
    yield itemsOf(declared, answer);
    if (!answer.pagination?.hasMore) return;
    const next = answer.pagination.cursor;
    if (next === undefined || next === cursor) throw new CommandError("The service answered with the same page again.");
    cursor = next;
  }
}

/** The command line of the first example. */
export function exampleOf({ words, flags, example }: DeclaredCommand): string {
  return ["latchkey", ...words, ...exampleArguments(flags, example).map(quoted)].join(" ");
}

/** The flags that give this body. */
export function exampleArguments(flags: readonly Flag[], body: unknown): string[] {
  if (Array.isArray(body)) return body.flatMap((entry) => ["--entry", JSON.stringify(entry)]);
  return flags.flatMap((flag) => {
    const value = flag.path
      .split(".")
      .reduce<unknown>((member, name) => (member as Record<string, unknown> | null | undefined)?.[name], body);
    const isSplit = typeof value === "object" && value !== null && !Array.isArray(value) && flag.kind === "json";
    if (value === undefined || isSplit) return [];
    if (flag.kind === "list" && flag.commas && Array.isArray(value) && value.length > 0)
      return [`--${flag.name}`, value.join(",")];
    if (Array.isArray(value) && value.length > 0) {
      return value.flatMap((item) => [`--${flag.name}`, typeof item === "string" ? item : JSON.stringify(item)]);
    }
    return [`--${flag.name}`, typeof value === "string" ? value : JSON.stringify(value)];
  });
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
