/** What the clients in all languages are printed from: the operations with their schemas, in terms of a client. */

import { openApiDocument } from "../src/platform/rpc/document.ts";
import type { Operation } from "../src/platform/rpc/operation.ts";
import { problemsOf, repetitionOf } from "../src/platform/rpc/operation.ts";
import { problems } from "../src/platform/rpc/problems.ts";
import { namespaces, operations } from "../src/service/operations.ts";

/** JSON Schema, as far as the declarations use it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  /** `password`: a secret. */
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

/** An operation as a method of a client. */
export interface ClientOperation {
  /** `keys.verifyKey`. */
  readonly name: string;
  /** `verifyKey`. */
  readonly verb: string;
  /** The beginning of the names of its types: `VerifyKey`, or `EventsListEvents` if an earlier operation has its verb. */
  readonly type: string;
  /** One sentence. */
  readonly summary: string;
  /** Markdown. */
  readonly description: string;
  readonly permissions: readonly string[];
  /** The types of its errors besides those of every operation. */
  readonly errors: readonly string[];
  /** Whether it has the errors of every operation. */
  readonly hasCommonErrors: boolean;
  readonly input: Schema;
  readonly output: Schema;
  /** Whether it returns one page of a list. */
  readonly isPaged: boolean;
  readonly traits: Traits;
}

/** What a client must know of an operation besides its types. */
export interface Traits {
  /** Whether a call can be repeated: always, or with an Idempotency-Key; `charge`: only on request. Omitted: never. */
  readonly repeatable?: "always" | "idempotent" | "charge";
  /** The members of the answer, or of each entry of a list, that are secrets. A client looks at no deeper ones. */
  readonly secrets?: readonly string[];
  /** Name of the list inside `data`. Omitted: `data` is the list. */
  readonly list?: string;
}

/** The operations of a namespace. */
export interface ClientNamespace {
  readonly name: string;
  /** One sentence. */
  readonly description: string;
  readonly operations: readonly ClientOperation[];
}

/** An event as a webhook gets it. */
export interface ClientEvent {
  /** `key.created`. */
  readonly type: string;
  /** The name of the type of its data: `KeyCreatedEvent`. */
  readonly name: string;
  /** One sentence. */
  readonly summary: string;
  readonly data: Schema;
}

export interface ClientModel {
  readonly events: readonly ClientEvent[];
  readonly namespaces: readonly ClientNamespace[];
  /** Schemas that several outputs refer to, by name. No input refers to one. */
  readonly schemas: Readonly<Record<string, Schema>>;
  /** The types of all errors. */
  readonly errorTypes: readonly string[];
}

/** Schemas of the document that clients write by hand. */
const envelope = ["Meta", "Pagination", "InputError", "Problem", "Error"];

/** Reads the declarations. */
export function clientModel(): ClientModel {
  // biome-ignore lint/suspicious/noExplicitAny: the document has the shape that document.ts gives it.
  const document: any = openApiDocument({ operations, namespaces, version: "", publicUrl: "" });
  const schemas: Record<string, Schema> = Object.fromEntries(
    Object.entries<Schema>(document.components.schemas).filter(([name]) => !envelope.includes(name)),
  );
  const describe = (operation: Operation): ClientOperation => {
    const { name, kind, declaration } = operation;
    const { post } = document.paths[`/v2/${name}`];
    const output: Schema = post.responses[200].content["application/json"].schema.properties.data;
    const [namespace, verb] = name.split(".") as [string, string];
    const isFirst = operations.find((other) => other.name.endsWith(`.${verb}`)) === operation;
    const errors = declaration.problems.map((code: keyof typeof problems) => problems[code].type);
    return {
      name,
      verb,
      type: isFirst ? capitalized(verb) : capitalized(namespace) + capitalized(verb),
      summary: sentence(declaration.summary),
      description: declaration.description,
      permissions: declaration.permissions,
      errors,
      hasCommonErrors: problemsOf(operation).length > errors.length,
      input: post.requestBody.content["application/json"].schema,
      output,
      isPaged: kind === "query" && operation.paged,
      traits: traitsOf(operation, secretsOf(output, schemas)),
    };
  };
  return {
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    events: Object.entries<any>(document.webhooks).map(([type, { post }]) => ({
      type,
      name: `${type.split(/[._]/).map(capitalized).join("")}Event`,
      summary: post.summary,
      data: post.requestBody.content["application/json"].schema.properties.data,
    })),
    namespaces: Object.entries(namespaces).map(([name, description]) => ({
      name,
      description: sentence(description),
      operations: operations.filter((operation) => operation.name.startsWith(`${name}.`)).map(describe),
    })),
    schemas,
    errorTypes: [...new Set(Object.values(problems).map(({ type }) => type))],
  };
}

function traitsOf(operation: Operation, secrets: readonly string[]): Traits {
  const { kind } = operation;
  const repetition = repetitionOf(operation);
  return {
    ...(repetition !== "never" && {
      repeatable: repetition === "idempotent" && kind === "metered" ? "charge" : repetition,
    }),
    ...(secrets.length > 0 && { secrets }),
    ...(kind === "query" && operation.listName !== undefined && { list: operation.listName }),
  };
}

function secretsOf(data: Schema, schemas: Readonly<Record<string, Schema>>): string[] {
  const resolve = (schema: Schema): Schema => (schema.$ref ? schemas[nameOf(schema.$ref)]! : schema);
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
  if (deep) throw new Error(`A secret is inside of ${deep[0]}: the clients find secrets only beside it.`);
  return members.filter(([, { format }]) => format === "password").map(([name]) => name);
}

/** The name of the schema that a `$ref` names. */
export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

export function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

/** The text in lines of at most `width` characters, except for longer words. Line breaks of the text remain. */
export function wrapped(text: string, width: number): string[] {
  return text.split("\n").flatMap((paragraph) => {
    const lines = [""];
    for (const word of paragraph.split(" ")) {
      const line = lines.at(-1)!;
      if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
      else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
    }
    return lines;
  });
}
