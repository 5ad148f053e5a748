/** Writes the operations as commands of the command line, from their declarations. */
import { z } from "zod";
import type { DeclaredCommand, DeclaredGroup, Flag, FlagKind } from "../../cli/src/declared.ts";
import { type Operation, repetitionOf } from "../src/platform/rpc/operation.ts";
import { namespaces, operations } from "../src/service/operations.ts";

type Schema = z.core.JSONSchema.BaseSchema;

/** The text of `cli/src/commands.json`. */
export function printCommands(): string {
  const shortForms = shortFormsOf(operations.map(({ name }) => wordsOf(name)));
  const groups = Object.entries(namespaces).map(([namespace, description]): DeclaredGroup => {
    const own = operations.filter(({ name }) => name.startsWith(`${namespace}.`));
    return { word: kebab(namespace), description, commands: own.map((operation) => commandOf(operation, shortForms)) };
  });
  return `${JSON.stringify(groups, null, 1)}\n`;
}

function wordsOf(name: string): readonly [string, string] {
  const [namespace, verb] = name.split(".") as [string, string];
  return [kebab(namespace), kebab(verb)];
}

/**
 * The short forms of commands, by their words: without the noun if it is that of the group (`keys create`), and for lists
 * of another group's noun (`keys list` is `apis list-keys`).
 */
function shortFormsOf(commands: readonly (readonly [string, string])[]): Map<string, readonly [string, string]> {
  const taken = new Set(commands.map((words) => words.join(" ")));
  const forms = new Map<string, readonly [string, string]>();
  const add = (words: readonly [string, string], short: readonly [string, string]) => {
    if (taken.has(short.join(" "))) return;
    taken.add(short.join(" "));
    forms.set(words.join(" "), short);
  };
  const groups = new Set(commands.map(([group]) => group));
  const split = commands.map((words) => ({
    words,
    action: words[1].split("-")[0]!,
    noun: words[1].replace(/^[^-]*-?/, ""),
  }));
  for (const { words, action, noun } of split) {
    const [group] = words;
    if (noun === group || noun === group.replace(/ies$/, "y").replace(/s$/, "")) add(words, [group, action]);
  }
  for (const { words, action, noun } of split) if (action === "list" && groups.has(noun)) add(words, [noun, action]);
  return forms;
}

function commandOf(operation: Operation, shortForms: ReadonlyMap<string, readonly [string, string]>): DeclaredCommand {
  const { name, kind, declaration } = operation;
  const words = wordsOf(name);
  const short = shortForms.get(words.join(" "));
  const paged = kind === "query" && operation.paged;
  return {
    operation: name,
    words,
    ...(short && { short }),
    ...(words[1].startsWith("delete") && { deletes: true as const }),
    summary: declaration.summary,
    description: declaration.description,
    repeatable: repetitionOf(operation),
    ...(kind === "metered" && (operation.anonymousCaller || operation.isPublic) && { withoutRootKey: true }),
    ...(paged && { paged }),
    ...(paged && operation.listName !== undefined && { listName: operation.listName }),
    ...resultOf(declaration.output, paged ? operation.listName : undefined),
    flags: flagsOf(z.toJSONSchema(declaration.input, { io: "input" })),
    example: declaration.examples[0]!.input,
  };
}

/** Whether the result is a list, and its members or those of its entries. */
function resultOf(output: z.ZodType, listName: string | undefined): Pick<DeclaredCommand, "list" | "members"> {
  const whole: Schema = z.toJSONSchema(output, { io: "output" });
  const resolved = ({ $ref, ...schema }: Schema): Schema =>
    $ref === undefined ? schema : (whole.$defs![$ref.slice("#/$defs/".length)] as Schema);
  const result = resolved(listName === undefined ? whole : (resolved(whole).properties![listName] as Schema));
  const isList = result.type === "array";
  const { properties } = isList ? resolved(result.items as Schema) : result;
  if (!properties) throw new Error("A result has members of any name, which the command line cannot check for --only.");
  return { ...(isList && { list: true as const }), members: Object.keys(properties) };
}

function flagsOf(schema: Schema): Flag[] {
  if (schema.type === "array") {
    const entries = itemsOf(schema.items as Schema);
    return [{ ...flag("", "entries", "An entry of the list."), ...entries, name: "entry", required: true }];
  }
  return membersOf(schema, "");
}

/** The flags of an object: one for each member, and one for each member of a nested object. */
function membersOf(schema: Schema, prefix: string): Flag[] {
  const required = new Set(prefix === "" ? schema.required : []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, declared]): Flag[] => {
    const [member, nullable] = withoutNull(declared as Schema);
    const path = prefix + name;
    const description = (declared as Schema).description ?? member.description ?? "";
    const help = [description, defaultOf(declared as Schema)];
    const attributes = {
      ...(required.has(name) && { required: true as const }),
      ...(nullable && { nullable: true as const }),
      ...valuesOf(member),
      ...(member.type === "array" && itemsOf(member.items as Schema)),
    };
    const own = {
      ...flag(path, kindOf(member, `${description} ${member.description}`), help.filter(Boolean).join(" ")),
      ...attributes,
    };
    if (!member.properties) return [own];
    const nested = membersOf(member, `${path}.`);
    return nullable ? [own, ...nested] : nested;
  });
}

function flag(path: string, kind: FlagKind, help: string): Flag {
  return { path, name: path.split(".").map(kebab).join("."), kind, help };
}

/** A schema without the alternative null, and whether it had that. Of other alternatives, the first one. */
function withoutNull(schema: Schema): [Schema, boolean] {
  const alternatives = (schema.anyOf ?? [schema]) as Schema[];
  const [first = schema] = alternatives.filter(({ type }) => type !== "null");
  return [first, alternatives.some(({ type }) => type === "null")];
}

function kindOf({ type, items, properties }: Schema, description: string): FlagKind {
  if (type === "integer" || type === "number") {
    if (description.includes("Unix time in milliseconds")) return "time";
    return description.includes("in milliseconds") ? "duration" : "integer";
  }
  if (type === "boolean") return "boolean";
  if (type === "string") return "text";
  if (type === "array") return (items as Schema).type === "object" ? "entries" : "list";
  if (type === "object") return properties ? "json" : "members";
  throw new Error(`A member has the type ${JSON.stringify(type)}, for which the command line has no kind of flag.`);
}

function valuesOf({ enum: values }: Schema): Pick<Flag, "values"> {
  return values === undefined ? {} : { values: values.map(String) };
}

/** What the flag of a list says of its items. */
function itemsOf(items: Schema): Pick<Flag, "values" | "integers" | "commas" | "members"> {
  if (items.properties) {
    const kinds = membersOf(items, "").flatMap(({ path, kind }): [string, "time" | "duration"][] =>
      kind === "time" || kind === "duration" ? [[path, kind]] : [],
    );
    return kinds.length === 0 ? {} : { members: Object.fromEntries(kinds) };
  }
  const { type, pattern, enum: values } = items;
  const isInteger = type === "integer";
  // Whether no item can contain a comma.
  const commas =
    isInteger ||
    values?.every((value) => !String(value).includes(",")) ||
    (pattern !== undefined && !new RegExp(pattern as string, "u").test("a,b"));
  return {
    ...valuesOf(items),
    ...(isInteger && { integers: true as const }),
    ...(commas && { commas: true as const }),
  };
}

function defaultOf(schema: Schema): string {
  return schema.default === undefined ? "" : `Default: ${schema.default}.`;
}

function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
