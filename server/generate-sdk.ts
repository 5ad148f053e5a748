/** Writes the types and methods of the TypeScript client from the declarations of the operations. */
import { namespaces, operations } from "./src/operations/index.ts";
import { openApiDocument } from "./src/rpc/document.ts";
import type { Operation } from "./src/rpc/operation.ts";
import { problemsOf } from "./src/rpc/operation.ts";
import { problems } from "./src/rpc/problems.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
}

type Direction = "input" | "output";

/** Schemas of the document that the client writes by hand. */
const envelope = ["Meta", "Pagination", "InputError", "Problem", "Error"];

/** The text of `sdk/src/operations.ts`. */
export function printSdk(): string {
  // biome-ignore lint/suspicious/noExplicitAny: the document has the shape that document.ts gives it.
  const document: any = openApiDocument({ operations, namespaces, version: "", publicUrl: "" });
  const components: Record<string, Schema> = document.components.schemas;
  const shared = Object.entries(components).filter(([name]) => !envelope.includes(name));
  const names = shared.map(([name]) => name);
  const types: string[] = [];
  const declare = (name: string, description: string, type: string) => {
    if (names.includes(name)) throw new Error(`Two types of the client have the name ${name}: rename an operation.`);
    names.push(name);
    types.push(`${comment([description])}export type ${name} = ${type};`);
  };

  const interfaces = Object.entries(namespaces).map(([namespace, description]) => {
    const own = operations.filter(({ name }) => name.startsWith(`${namespace}.`));
    const methods = own.map((operation) => {
      const { post } = document.paths[`/v2/${operation.name}`];
      const [input, output]: Schema[] = [
        post.requestBody.content["application/json"].schema,
        post.responses[200].content["application/json"].schema.properties.data,
      ];
      const type = capitalized(operation.name.split(".")[1]!);
      declare(`${type}Input`, `The input of \`${operation.name}\`.`, print(input!, "input", 0));
      declare(`${type}Output`, `The \`data\` of an answer of \`${operation.name}\`.`, print(output!, "output", 0));
      return method(operation, type);
    });
    return `${comment([sentence(description)])}export interface ${capitalized(namespace)}Operations {\n${methods.join("\n")}\n}`;
  });

  return `// Written by \`npm run generate\` from the declarations of the operations.
import type { Args, List, MakeMethod, Result } from "./call.ts";
import type { Secret } from "./secret.ts";

/** The errors of the service. Each has a page at \`/errors/<type>\` of the service. */
export type ProblemType =
${[...new Set(Object.values(problems).map(({ type }) => type))].map((type) => `  | ${JSON.stringify(type)}`).join("\n")};

${shared.map(([name, schema]) => `${comment([schema.description ?? ""])}export type ${name} = ${print(schema, "output", 0)};`).join("\n\n")}

${types.join("\n\n")}

${interfaces.join("\n\n")}

/** The operations of the service, by namespace. */
export class Operations {
${Object.keys(namespaces)
  .map((namespace) => `  readonly ${namespace}: ${capitalized(namespace)}Operations;`)
  .join("\n")}

  constructor(make: MakeMethod) {
${Object.keys(namespaces)
  .map((namespace) => `    this.${namespace} = {\n${makers(namespace, document, components)}\n    };`)
  .join("\n")}
  }
}
`;
}

function method(operation: Operation, type: string): string {
  const { name, declaration, kind } = operation;
  const throws = declaration.problems.map((code: keyof typeof problems) => `\`${problems[code].type}\``);
  const common = problemsOf(operation).length > throws.length ? " Besides the errors of every operation." : "";
  const lines = [
    `${sentence(declaration.summary)}\n\n${declaration.description}`,
    `Permissions of the root key: ${declaration.permissions.map((permission: string) => `\`${permission}\``).join(", ")}`,
    ...(throws.length > 0 ? [`@throws {LatchkeyError} ${throws.join(", ")}.${common}`] : []),
  ];
  const verb = name.split(".")[1]!;
  const paged = kind === "query" && operation.paged;
  const signature = paged
    ? `${verb}: List<${type}Input, ${type}Output, ${itemOf(operation, type)}>;`
    : `${verb}(...args: Args<${type}Input>): Promise<Result<${type}Output>>;`;
  return `${comment([lines.join("\n\n")], 1)}  ${signature}`;
}

/** The type of an entry of a list. */
function itemOf(operation: Operation, type: string): string {
  const listName = operation.kind === "query" ? operation.listName : undefined;
  return listName === undefined ? `${type}Output[number]` : `${type}Output[${JSON.stringify(listName)}][number]`;
}

/** The members of the class for the operations of one namespace. */
// biome-ignore lint/suspicious/noExplicitAny: the document has the shape that document.ts gives it.
function makers(namespace: string, document: any, components: Record<string, Schema>): string {
  return operations
    .filter(({ name }) => name.startsWith(`${namespace}.`))
    .map((operation) => {
      const { name, kind, declaration } = operation;
      const { post } = document.paths[`/v2/${name}`];
      const secrets = secretsOf(post.responses[200].content["application/json"].schema.properties.data, components);
      const traits = {
        ...(kind === "query"
          ? { repeatable: "always" }
          : declaration.idempotent && { repeatable: kind === "metered" ? "charge" : "idempotent" }),
        ...(secrets.length > 0 && { secrets }),
        ...(kind === "query" && operation.listName !== undefined && { list: operation.listName }),
      };
      const printed = Object.entries(traits).map(([key, value]) => `${key}: ${printValue(value)}`);
      const object = printed.length === 0 ? "{}" : `{ ${printed.join(", ")} }`;
      return `      ${name.split(".")[1]}: make(${JSON.stringify(name)}, ${object}),`;
    })
    .join("\n");
}

function printValue(value: unknown): string {
  return Array.isArray(value) ? `[${value.map((each) => JSON.stringify(each)).join(", ")}]` : JSON.stringify(value);
}

/** The members of an answer, or of each entry of a list, that are secrets. The client looks at no deeper ones. */
function secretsOf(data: Schema, components: Record<string, Schema>): string[] {
  const resolve = (schema: Schema): Schema => (schema.$ref ? components[nameOf(schema.$ref)]! : schema);
  const own = resolve(data);
  const entry = own.items ? resolve(own.items) : own;
  const members = Object.entries(entry.properties ?? {});
  const hasDeeper = (schema: Schema, depth = 0): boolean => {
    const { items, properties = {}, format } = resolve(schema);
    return (
      (depth > 0 && format === "password") ||
      Boolean(items && hasDeeper(items, depth + 1)) ||
      Object.values(properties).some((member) => hasDeeper(member, depth + 1))
    );
  };
  const deep = members.find(([, member]) => hasDeeper(member));
  if (deep) throw new Error(`A secret is inside of ${deep[0]}: the client finds secrets only beside it.`);
  return members.filter(([, { format }]) => format === "password").map(([name]) => name);
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

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

/** A doc comment with lines of at most 120 characters; nothing for an empty text. */
function comment(parts: readonly string[], depth = 0): string {
  const indent = "  ".repeat(depth);
  const text = parts.filter(Boolean).join("\n\n").replaceAll("*/", "*\\/");
  if (text === "") return "";
  const width = 116 - indent.length;
  if (!text.includes("\n") && text.length + 3 <= width) return `${indent}/** ${text} */\n`;
  const lines = text.split("\n").flatMap((line) => wrap(line, width));
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

function wrap(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}
