import { type Command, Option } from "commander";
import type { Instant } from "../../engine/src/clock/clock.ts";
import { systemClock } from "../../engine/src/clock/system.ts";
import { bodyOf, type Given, readDuration } from "./body.ts";
import { type Answer, call, type Endpoint, TIMEOUT_DEFAULT } from "./call.ts";
import { decisionLine } from "./colours.ts";
import { addConfirmation, confirmDeletion } from "./confirmation.ts";
import { type ConnectionFlags, connect } from "./connection.ts";
import { type DeclaredCommand, declaredCommands, declaredGroups, type Flag } from "./declared.ts";
import { exampleCommand } from "./example-command.ts";
import { parseJson, readInput } from "./input.ts";
import { CommandError, UsageError } from "./output.ts";
import { jsonText, printable } from "./printable.ts";
import { ProgressLine } from "./progress.ts";
import { Columns, type Format, printData, printMember, tableOf } from "./render.ts";
import { iso } from "./times.ts";
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
  readonly yes?: true;
  readonly allowPast?: true;
  readonly columns?: string;
  /** As in `call.ts`. */
  readonly waitMax?: number;
}

/** Adds the flags of every command that calls a service. `timeout` is the default that the help shows. */
export function addConnectionOptions(command: Command, timeout = "10s"): Command {
  const profile = new Option("--profile <name>", "profile of `latchkey login` (default: the current one)");
  return command
    .addOption(profile.helpGroup(connectionGroup))
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
      const command = addOperation(group, declared.words[1], declared, environment);
      if (declared.short?.[0] === word) command.alias(declared.short[1]);
    }
    for (const declared of declaredCommands) {
      const { words, short } = declared;
      if (short?.[0] === word && words[0] !== word) addOperation(group, short[1], declared, environment);
    }
  }
}

/** Adds the command of an operation to a group. */
function addOperation(
  group: Command,
  name: string,
  declared: DeclaredCommand,
  environment: NodeJS.ProcessEnv,
): Command {
  const { summary, description, flags, paged, list, members, deletes, repeatable } = declared;
  const command = group.command(name).summary(summary).description(`${summary}.\n\n${description}`).exitOverride();
  addFlags(command, flags);
  addOutputOptions(addConnectionOptions(command));
  command.option("--body <json>", "the whole request body: JSON, @FILE, or - for the standard input; flags change it");
  command.addOption(
    new Option("--only <member>", "print only this member, such as keyId, for use in scripts")
      .conflicts(["json", "yaml"])
      .helpGroup(outputGroup),
  );
  if (paged) command.option("--all", "get all pages");
  if (list) {
    command.addOption(
      new Option("--columns <list>", `columns of the table, separated by commas: ${members.join(", ")}`)
        .conflicts(["json", "yaml", "only"])
        .helpGroup(outputGroup),
    );
  }
  if (deletes) addConfirmation(command);
  if (flags.some(isExpiry)) command.option("--allow-past", "accept an --expires in the past, which is expired at once");
  if (repeatable === "idempotent") {
    command.addOption(
      new Option("--idempotency-key <text>", "calls with the same key have one effect (a random one)").helpGroup(
        connectionGroup,
      ),
    );
  }
  command.addHelpText("after", `\nExample:\n  ${exampleCommand(declared, declared.example)}`);
  command.action(() => runOperation(declared, command, environment));
  return command;
}

/** Whether the flag is the time at which something that is created or updated expires. */
function isExpiry({ path, kind }: Flag): boolean {
  return path === "expires" && kind === "time";
}

/**
 * The arguments with flags for single members of an object as values of its flag: `--meta.plan pro` is
 * `--meta plan=pro`. The parser knows only the flags that are declared.
 */
export function expandMembers(args: readonly string[]): string[] {
  const isNamed = (words?: readonly [string, string]) => words?.[0] === args[0] && words?.[1] === args[1];
  const declared = declaredCommands.find(({ words, short }) => isNamed(words) || isNamed(short));
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
  checkOnly(declared, options);
  const body = await readBody(declared, given, options);
  const endpoint = await connect(options, environment, !declared.withoutRootKey);
  if (declared.deletes) {
    const question = `${declared.summary}${targetOf(body)} at ${endpoint.url}?`;
    await confirmDeletion(question, { yes: options.yes, usesInput: options.body === "-" });
  }
  const { all, only } = options;
  const columns = Columns.ofList(columnsOf(declared, options));
  const format = formatOf(options);
  if (all && only !== undefined) {
    for await (const items of pages(declared, endpoint, JSON.parse(body), timeoutOf(options))) printMember(items, only);
    return;
  }
  if (all) return printAll(declared, endpoint, JSON.parse(body), format, columns, timeoutOf(options));
  const answer = await callDeclared(declared, endpoint, body, options);
  const data = declared.paged ? itemsOf(declared, answer) : answer.data;
  const words = format === "table" ? inWords[declared.operation] : undefined;
  if (only !== undefined) printMember(data, only);
  else if (words && typeof data === "object") {
    const [decision = "", ...lines] = words(data as never);
    console.log([decisionLine(decision, /^(VALID|PASSES):/.test(decision)), ...lines].join("\n"));
  } else await printData(data, format, columns);
  noteColumns(columns);
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
  const { idempotencyKey } = options;
  if (idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw new UsageError("--idempotency-key: give 1 to 255 visible ASCII characters.");
  }
  return call(endpoint, operation, body, {
    ...(repeatable !== "never" && { repeatable }),
    idempotencyKey,
    timeout: timeoutOf(options),
    ...(options.waitMax !== undefined && { waitMax: options.waitMax }),
  });
}

/** What a request is about, for a question: its first members. */
function targetOf(body: string): string {
  const members = Object.entries(JSON.parse(body) as object)
    .filter(([, value]) => typeof value !== "object")
    .slice(0, 3)
    .map(([name, value]) => `${name} ${printable(String(value)).slice(0, 100)}`);
  return members.length === 0 ? "" : ` (${members.join(", ")})`;
}

/** The request body of flags and `--body`, as JSON. A body without flags is sent as it was given. */
async function readBody(
  declared: DeclaredCommand,
  given: ReadonlyMap<string, Given>,
  { body: text, allowPast }: CommandFlags,
): Promise<string> {
  const { flags, words, example } = declared;
  const now = systemClock.now();
  if (text === undefined) {
    const missing = flags.filter(({ required, path }) => required && !given.has(path));
    if (missing.length > 0) {
      throw new UsageError(
        `Missing: ${missing.map(({ name }) => `--${name}`).join(", ")}. See: latchkey ${words.join(" ")} --help`,
      );
    }
    return JSON.stringify(checkExpiry(bodyOf(flags, given, now), given, now, allowPast));
  }
  const source = await readInput(text, BODY_BYTES_MAX);
  const base = parseBody(source, Array.isArray(example));
  if (given.size === 0) return source;
  return JSON.stringify(checkExpiry(bodyOf(flags, given, now, base), given, now, allowPast));
}

/** @throws {UsageError} if `--expires` is in the past and `--allow-past` is not given. */
function checkExpiry(body: unknown, given: ReadonlyMap<string, Given>, now: Instant, allowPast?: true): unknown {
  const { expires } = body as { expires?: unknown };
  if (given.has("expires") && typeof expires === "number" && expires <= now && !allowPast) {
    throw new UsageError(
      `--expires ${String(given.get("expires"))} is in the past: ${iso(expires)}. Give a later time, such as +30d, or add --allow-past.`,
    );
  }
  return body;
}

function parseBody(text: string, isList: boolean): unknown {
  const body = parseJson(text, "--body", { ErrorClass: UsageError });
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
  columns: Columns,
  timeout: number,
): Promise<void> {
  const progress = new ProgressLine();
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
  noteColumns(columns);
}

/** The names that `--columns` gives. */
function columnsOf({ members }: DeclaredCommand, options: CommandFlags): string[] | undefined {
  const names = options.columns?.split(",").map((name) => name.trim());
  const unknown = names?.find((name) => !members.includes(name));
  if (unknown !== undefined) throw new UsageError(`--columns ${unknown}: the columns are ${members.join(", ")}.`);
  return names;
}

/**
 * Checks `--only` before the call: after it, a secret that is shown once would be lost.
 *
 * @throws {UsageError} if the result never has such a member.
 */
function checkOnly({ members }: DeclaredCommand, { only }: CommandFlags): void {
  if (only === undefined || members.includes(only)) return;
  throw new UsageError(
    `--only ${printable(only)}: the result has ${members.length > 0 ? `the members ${members.join(", ")}` : "no members"}.`,
  );
}

/** Says on a terminal which columns there are besides those that are shown. */
function noteColumns({ left }: Columns): void {
  if (left.length === 0 || !process.stderr.isTTY) return;
  console.error(`Not shown: ${left.map(printable).join(", ")}. Choose with --columns.`);
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
      repeatable: "always",
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
