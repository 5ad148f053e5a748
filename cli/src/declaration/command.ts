import { type Command, InvalidArgumentError, Option } from "commander";
import type { Endpoint } from "../call.ts";
import { coloured } from "../colours.ts";
import { addConfirmation, confirmDeletion } from "../confirmation.ts";
import { connect } from "../connection.ts";
import { declaredCommand } from "../declared.ts";
import { readFile } from "../input.ts";
import {
  addConnectionOptions,
  type CommandFlags,
  callDeclared,
  QUOTA_WAIT_MAX,
  timeoutOf,
} from "../operation-commands.ts";
import { CommandError } from "../output.ts";
import { jsonText, printable } from "../printable.ts";
import type { ServiceRules } from "../service-rules.ts";
import { yamlText } from "../yaml.ts";
import { type Section, sections } from "./document.ts";
import {
  type CallOperation,
  type Change,
  type CreatedRootKey,
  type HeaderValues,
  type Plan,
  planChanges,
} from "./plan.ts";
import { effectsOf } from "./plans.ts";
import { DOCUMENT_BYTES_MAX, readDocument } from "./read-document.ts";
import { readService } from "./service-state.ts";

interface DeclarationOptions extends CommandFlags {
  readonly file: string;
  readonly prune?: true;
  readonly sections?: Section[];
}

/** Adds `apply`, `diff` and `export`. */
export function addDeclaration(
  program: Command,
  environment: NodeJS.ProcessEnv,
  loadRules: () => Promise<ServiceRules>,
): void {
  const add = (name: string, description: string) =>
    addConnectionOptions(
      program
        .command(name)
        .description(description)
        .helpGroup("Commands that call a service:")
        .exitOverride()
        .option("--json", "print JSON"),
    );
  const withFile = (command: Command) =>
    command
      .requiredOption("-f, --file <file>", "document in YAML or JSON; - for the standard input")
      .option("--prune", "also delete what the service has and the document does not, in the sections of the document")
      .addHelpText(
        "after",
        "\nA section that the document does not have is left alone. Keys and secrets are never part of a document.",
      );

  const apply = withFile(add("apply", "make a service have what a document says; a second time changes nothing"));
  addConfirmation(apply);
  apply.action(async () => {
    const options = apply.opts<DeclarationOptions>();
    const endpoint = await connect(options, environment);
    const plan = await makePlan(endpoint, options, loadRules, headerValues(environment));
    const deletions = options.prune ? plan.extras : [];
    const effects = await readEffects(plan, callerOf(endpoint, options));
    if (!options.json) for (const line of planLines(plan, options.prune === true, effects)) console.log(line);
    if (deletions.length > 0) {
      // The question is about these lines, and the standard output is for the JSON.
      if (options.json && !options.yes) for (const line of planLines(plan, true, effects)) console.error(line);
      const question = `Delete ${deletions.length} of these at ${endpoint.url}?`;
      await confirmDeletion(question, { yes: options.yes, usesInput: options.file === "-" });
    }
    const issued: CreatedRootKey[] = [];
    const call = callerOf(endpoint, options);
    for (const change of [...plan.changes, ...deletions]) {
      await change
        .run(call, (rootKey) => {
          issued.push(rootKey);
          // At once: this is the only time that it is known.
          if (!options.json)
            console.log(
              `Root key ${rootKey.rootKeyId} (${printable(rootKey.name)}), shown this once:\n  ${printable(rootKey.key)}`,
            );
        })
        .catch((error: unknown) => {
          if (options.json && issued.length > 0) console.log(jsonText({ issued }));
          throw interrupted(change, error);
        });
    }
    if (options.json)
      console.log(jsonText({ changes: [...plan.changes, ...deletions].map((change) => summaryOf(change)), issued }));
    else if (plan.changes.length + deletions.length > 0) console.log("Done.");
  });

  const diff = withFile(add("diff", "show what apply would change; exit code 1 if there is something"));
  diff.action(async () => {
    const options = diff.opts<DeclarationOptions>();
    // Its changes never run, so they need no values: a check in CI works without these secrets.
    const endpoint = await connect(options, environment);
    const plan = await makePlan(endpoint, options, loadRules, () => "");
    const effects = await readEffects(plan, callerOf(endpoint, options));
    const pending = [...plan.changes, ...(options.prune ? plan.extras : [])];
    if (options.json) console.log(jsonText({ changes: pending.map((change) => summaryOf(change, effects)) }));
    else for (const line of planLines(plan, options.prune === true, effects)) console.log(line);
    if (pending.length > 0) process.exitCode = 1;
  });

  const exported = add("export", "print what a service has as a document for apply").addOption(
    new Option("--sections <list>", `sections separated by commas (${sections.join(",")})`).argParser(readSections),
  );
  exported.action(async () => {
    const options = exported.opts<DeclarationOptions>();
    const wanted = options.sections ?? sections;
    const { document } = await readService(await connect(options, environment), wanted, timeoutOf(options));
    const own = Object.fromEntries(wanted.map((section) => [section, document[section].map(withDates)]));
    process.stdout.write(options.json ? `${jsonText(own)}\n` : await yamlText(own));
  });
}

function readSections(text: string): Section[] {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !sections.includes(name as Section));
  if (unknown !== undefined) throw new InvalidArgumentError(`The sections are ${sections.join(", ")}.`);
  return sections.filter((name) => names.includes(name));
}

/** The expiry as a date, which is easier to read than milliseconds. */
function withDates(entry: object): object {
  return "expires" in entry && typeof entry.expires === "number"
    ? { ...entry, expires: new Date(entry.expires).toISOString() }
    : entry;
}

async function makePlan(
  endpoint: Endpoint,
  options: DeclarationOptions,
  loadRules: () => Promise<ServiceRules>,
  headerValue: HeaderValues,
): Promise<Plan> {
  const text = await readFile(options.file, DOCUMENT_BYTES_MAX);
  const desired = await readDocument(text, options.file, loadRules);
  const wanted = sections.filter((section) => desired[section] !== undefined);
  const state = await readService(endpoint, wanted, timeoutOf(options));
  return planChanges(desired, state, headerValue, endpoint.rootKey);
}

/** Values of headers: `${NAME}` is that of a variable, so that a document has no secrets. */
function headerValues(environment: NodeJS.ProcessEnv): HeaderValues {
  return ({ name, value }, api) => {
    const variable = value && /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(value)?.[1];
    const text = variable ? environment[variable] : value;
    if (text) return text;
    const header = `the header ${printable(name)} of the upstream of the API ${printable(api)}`;
    throw new CommandError(
      variable
        ? `The variable ${variable} is not set. It is the value of ${header}. Nothing was changed.`
        : `The value of ${header} is missing. Write a variable, such as \`value: \${UPSTREAM_TOKEN}\`. Nothing was changed.`,
    );
  };
}

function callerOf(endpoint: Endpoint, { timeout }: CommandFlags): CallOperation {
  const options = { waitMax: QUOTA_WAIT_MAX, ...(timeout !== undefined && { timeout }) };
  return async (operation, body) =>
    (await callDeclared(declaredCommand(operation), endpoint, JSON.stringify(body), options)).data;
}

const signs = { create: ["+", "green"], update: ["~", "yellow"], delete: ["-", "red"] } as const;

/** What changes do to how many keys, as lines. */
type Effects = ReadonlyMap<Change, readonly string[]>;

/** Asks the service what the changes of plans would do. It knows a plan as it is now, so a change is asked about alone. */
async function readEffects({ changes }: Plan, call: CallOperation): Promise<Effects> {
  const effects = new Map<Change, readonly string[]>();
  for (const change of changes) {
    if (!change.preview) continue;
    effects.set(change, effectsOf((await call("plans.previewUpdate", change.preview)) as Preview));
  }
  return effects;
}

type Preview = Parameters<typeof effectsOf>[0] & Record<string, unknown>;

function planLines({ changes, extras }: Plan, prunes: boolean, effects: Effects): string[] {
  const lines = [...changes, ...extras].flatMap((change) => {
    const details = change.details.map(printable).join(", ");
    const [sign, colour] = signs[change.action];
    const isKept = change.action === "delete" && !prunes;
    return [
      `${isKept ? " " : coloured(colour, sign)} ${change.kind} ${printable(change.name)}${details ? `  ${details}` : ""}${isKept ? "  (only in the service; --prune deletes it)" : ""}`,
      ...(effects.get(change) ?? []).map((line) => `    ${printable(line)}`),
    ];
  });
  const count = (action: Change["action"]) => changes.filter((change) => change.action === action).length;
  const deletions = prunes ? extras.length : 0;
  const total = changes.length + deletions;
  return [
    ...lines,
    total === 0
      ? "Nothing to change."
      : `${count("create")} to create, ${count("update")} to update, ${deletions} to delete.`,
  ];
}

function summaryOf(change: Change, effects?: Effects) {
  const { action, kind, name, details } = change;
  const found = effects?.get(change);
  return { action, kind, name, details, ...(found && { effects: found }) };
}

/** The error of a change. What ran before it stays, and the next apply continues. */
function interrupted({ action, kind, name }: Change, error: unknown): unknown {
  if (!(error instanceof CommandError)) return error;
  return new CommandError(`${action} ${kind} ${printable(name)}: ${error.message}`, {
    cause: error,
    details: [...error.details, "The changes above it are made. Run apply again to continue."],
  });
}
