/** Writes the types and methods of the TypeScript client from the declarations of the operations. */
import { type ClientOperation, capitalized, clientModel, nameOf, type Schema, wrapped } from "./client-model.ts";

type Direction = "input" | "output";

/** The text of `sdk/src/operations.ts`. */
export function printSdk(): string {
  const { namespaces, schemas, errorTypes, events } = clientModel();
  const shared = Object.entries(schemas);
  const names = Object.keys(schemas);
  const types: string[] = [];
  const declare = (name: string, description: string, type: string) => {
    if (names.includes(name)) throw new Error(`Two types of the client have the name ${name}: rename an operation.`);
    names.push(name);
    types.push(`${comment([description])}export type ${name} = ${type};`);
  };

  const interfaces = namespaces.map(({ name, description, operations }) => {
    const methods = operations.map((operation) => {
      const { type, input, output } = operation;
      declare(`${type}Input`, `The input of \`${operation.name}\`.`, print(input, "input", 0));
      declare(`${type}Output`, `The \`data\` of an answer of \`${operation.name}\`.`, print(output, "output", 0));
      return method(operation);
    });
    return `${comment([description])}export interface ${capitalized(name)}Operations {\n${methods.join("\n")}\n}`;
  });

  const data = events.map(({ type, name, summary, data }) => {
    declare(name, `The \`data\` of \`${type}\`. ${summary}`, print(data, "output", 0));
    return `  ${JSON.stringify(type)}: ${name};`;
  });

  return `// Written by \`npm run generate\` from the declarations of the operations.
import type { Args, List, MakeMethod, Result } from "./call.ts";
import type { Secret } from "./secret.ts";

/** The errors of the service. Each has a page at \`/errors/<type>\` of the service. */
export type ProblemType =
${errorTypes.map((type) => `  | ${JSON.stringify(type)}`).join("\n")};

${shared.map(([name, schema]) => `${comment([schema.description ?? ""])}export type ${name} = ${print(schema, "output", 0)};`).join("\n\n")}

${types.join("\n\n")}

/** The \`data\` of the events that webhooks get, by the type of the event. */
export type EventData = {
${data.join("\n")}
};

${interfaces.join("\n\n")}

/** The operations of the service, by namespace. */
export class Operations {
${namespaces.map(({ name }) => `  readonly ${name}: ${capitalized(name)}Operations;`).join("\n")}

  constructor(make: MakeMethod) {
${namespaces.map(({ name, operations }) => `    this.${name} = {\n${operations.map(maker).join("\n")}\n    };`).join("\n")}
  }
}
`;
}

function method(operation: ClientOperation): string {
  const { verb, type, summary, description, permissions, errors, hasCommonErrors, isPaged } = operation;
  const common = hasCommonErrors ? " Besides the errors of every operation." : "";
  const lines = [
    `${summary}\n\n${description}`,
    `Permissions of the root key: ${permissions.map(quoted).join(", ")}`,
    ...(errors.length > 0 ? [`@throws {LatchkeyError} ${errors.map(quoted).join(", ")}.${common}`] : []),
  ];
  const signature = isPaged
    ? `${verb}: List<${type}Input, ${type}Output, ${itemOf(operation)}>;`
    : `${verb}(...args: Args<${type}Input>): Promise<Result<${type}Output>>;`;
  return `${comment([lines.join("\n\n")], 1)}  ${signature}`;
}

function quoted(text: string): string {
  return `\`${text}\``;
}

/** The type of an entry of a list. */
function itemOf({ type, traits: { list } }: ClientOperation): string {
  return list === undefined ? `${type}Output[number]` : `${type}Output[${JSON.stringify(list)}][number]`;
}

/** The member of the class for an operation. */
function maker({ name, verb, traits }: ClientOperation): string {
  const printed = Object.entries(traits).map(([key, value]) => `${key}: ${printValue(value)}`);
  const object = printed.length === 0 ? "{}" : `{ ${printed.join(", ")} }`;
  return `      ${verb}: make(${JSON.stringify(name)}, ${object}),`;
}

function printValue(value: unknown): string {
  return Array.isArray(value) ? `[${value.map((each) => JSON.stringify(each)).join(", ")}]` : JSON.stringify(value);
}

/** A schema as a type of TypeScript. */
function print(schema: Schema, direction: Direction, depth: number): string {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map((each) => print(each, direction, depth)))].join(" | ");
  const { type } = schema;
  if (Array.isArray(type)) {
    return type
      .map((each) => (each === "null" ? "null" : print({ ...schema, type: each }, direction, depth)))
      .join(" | ");
  }
  if (type === "string") return schema.format !== "password" ? "string" : secretType(direction, depth);
  if (type === "integer" || type === "number") return "number";
  if (type === "boolean" || type === "null") return type;
  if (type === "array") {
    const item = print(schema.items!, direction, depth + 1);
    const list = /[|{ ]/.test(item) && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
    return direction === "input" ? `readonly ${list}` : list;
  }
  if (type === "object") return printObject(schema, direction, depth);
  throw new Error(`A schema has the type ${JSON.stringify(type)}, for which the client has none.`);
}

function printObject(schema: Schema, direction: Direction, depth: number): string {
  const members = Object.entries(schema.properties ?? {});
  const { additionalProperties: additional } = schema;
  if (members.length === 0) {
    const values = typeof additional === "object" ? print(additional, direction, depth + 1) : "unknown";
    return additional ? `{ [name: string]: ${values} }` : "Record<string, never>";
  }
  const required = new Set(schema.required);
  const indent = "  ".repeat(depth + 1);
  const lines = members.map(([name, member]) => {
    const help = [member.description ?? "", defaultOf(member)].filter(Boolean).join(" ");
    const mark = required.has(name) ? "" : "?";
    const absent = mark && direction === "input" ? " | undefined" : "";
    const key = /^[a-zA-Z]\w*$/.test(name) ? name : JSON.stringify(name);
    return `${comment([help], depth + 1)}${indent}${key}${mark}: ${print(member, direction, depth + 1)}${absent};\n`;
  });
  return `{\n${lines.join("")}${"  ".repeat(depth)}}`;
}

function secretType(direction: Direction, depth: number): string {
  if (direction === "output") return "Secret";
  if (depth > 1) throw new Error("A secret is a member of a member of an input: the client reveals none there.");
  return "string | Secret";
}

function defaultOf({ default: value }: Schema): string {
  return value === undefined ? "" : `Default: ${JSON.stringify(value)}.`;
}

/** A doc comment with lines of at most 120 characters; nothing for an empty text. */
function comment(parts: readonly string[], depth = 0): string {
  const indent = "  ".repeat(depth);
  const text = parts.filter(Boolean).join("\n\n").replaceAll("*/", "*\\/");
  if (text === "") return "";
  const width = 116 - indent.length;
  if (!text.includes("\n") && text.length + 3 <= width) return `${indent}/** ${text} */\n`;
  const lines = wrapped(text, width);
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}
