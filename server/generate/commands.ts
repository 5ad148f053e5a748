/** Writes the operations as commands of the command line, from their declarations. */
import { z } from "zod";
import type { DeclaredCommand, DeclaredGroup, Flag, FlagKind } from "../src/cli/client/declared.ts";
import type { Operation } from "../src/platform/rpc/operation.ts";
import { namespaces, operations } from "../src/service/operations.ts";

type Schema = z.core.JSONSchema.BaseSchema;

/** The text of `src/cli/client/commands.json`. */
export function printCommands(): string {
  const groups = Object.entries(namespaces).map(([namespace, description]): DeclaredGroup => {
    const own = operations.filter(({ name }) => name.startsWith(`${namespace}.`));
    return { word: kebab(namespace), description, commands: own.map(commandOf) };
  });
  return `${JSON.stringify(groups, null, 1)}\n`;
}

function commandOf(operation: Operation): DeclaredCommand {
  const { name, kind, declaration } = operation;
  const [namespace, verb] = name.split(".") as [string, string];
  const paged = kind === "query" && operation.paged;
  return {
    operation: name,
    words: [kebab(namespace), kebab(verb)],
    summary: declaration.summary,
    description: declaration.description,
    repeatable: kind === "query" ? "always" : declaration.idempotent ? "idempotent" : "never",
    ...(kind === "metered" && (operation.anonymousCaller || operation.isPublic) && { withoutRootKey: true }),
    ...(paged && { paged }),
    ...(paged && operation.listName !== undefined && { listName: operation.listName }),
    flags: flagsOf(z.toJSONSchema(declaration.input, { io: "input" })),
    example: declaration.examples[0]!.input,
  };
}

function flagsOf(schema: Schema): Flag[] {
  if (schema.type === "array") {
    return [{ ...flag("", "entries", "An entry of the list."), name: "entry", required: true }];
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
      ...(member.type === "array" && !(member.items as Schema).properties && itemsOf(member.items as Schema)),
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
  if (type === "array") return (items as Schema).properties ? "entries" : "list";
  if (type === "object") return properties ? "json" : "members";
  throw new Error(`A member has the type ${JSON.stringify(type)}, for which the command line has no kind of flag.`);
}

function valuesOf({ enum: values }: Schema): Pick<Flag, "values"> {
  return values === undefined ? {} : { values: values.map(String) };
}

/** What the flag of a list says of its items. */
function itemsOf(items: Schema): Pick<Flag, "values" | "integers" | "commas"> {
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
