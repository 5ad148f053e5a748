import { accepts, type Schema } from "../api/schema.ts";

/** A member of a request body, as a form asks for it. */
export interface CallField {
  readonly name: string;
  readonly kind: "text" | "integer" | "json" | "choice";
  readonly isRequired: boolean;
  readonly description: string | undefined;
  /** The values of a choice. */
  readonly values: readonly string[];
}

/** What the fields of a form are, or what is wrong in one of them. */
export type CallBody = { readonly body: unknown } | { readonly problems: Readonly<Record<string, string>> };

/** The fields for a schema, those first that a call needs; undefined: the body is no object. */
export function fieldsOf(schema: Schema): CallField[] | undefined {
  if (schema.type !== "object") return undefined;
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {})
    .map(([name, member]) => ({
      name,
      kind: kindOf(member),
      isRequired: required.has(name),
      description: member.description,
      values: accepts(member, "boolean") ? ["true", "false"] : (member.enum ?? []),
    }))
    .sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

function kindOf(schema: Schema): CallField["kind"] {
  if (schema.type === "boolean" || schema.enum) return "choice";
  if (schema.type === "integer" || schema.type === "number") return "integer";
  return schema.type === "string" ? "text" : "json";
}

/** The texts of the fields for a body. */
export function textsOf(fields: readonly CallField[], body: unknown): Record<string, string> {
  return Object.fromEntries(
    fields.map(({ name, kind }) => {
      const value = (body as Record<string, unknown>)[name];
      if (value === undefined) return [name, ""];
      return [name, kind === "json" ? JSON.stringify(value, null, 2) : String(value)];
    }),
  );
}

/** The body that the texts give. An empty field is left out. */
export function bodyOf(fields: readonly CallField[], texts: Readonly<Record<string, string>>): CallBody {
  const problems: Record<string, string> = {};
  const body: Record<string, unknown> = {};
  for (const { name, kind, values } of fields) {
    const text = texts[name] ?? "";
    if (text.trim() === "") continue;
    if (kind === "text") body[name] = text;
    else if (kind === "choice") body[name] = values.includes("true") ? text === "true" : text;
    else {
      const value = parseJson(text);
      if (value === undefined) problems[name] = kind === "integer" ? "Enter a number." : "This is no JSON.";
      else if (kind === "integer" && typeof value !== "number") problems[name] = "Enter a number.";
      else body[name] = value;
    }
  }
  return Object.keys(problems).length > 0 ? { problems } : { body };
}

/** The body in a JSON text: an object, or a list for an operation that takes one. */
export function bodyOfJson(text: string, isList: boolean): { readonly body: unknown } | { readonly problem: string } {
  const body = parseJson(text);
  if (body === undefined) return { problem: "This is no JSON." };
  if (isList ? !Array.isArray(body) : typeof body !== "object" || body === null || Array.isArray(body)) {
    return { problem: `The body of this operation is ${isList ? "a list" : "an object"}.` };
  }
  return { body };
}

/** The value of a JSON text; undefined: it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
