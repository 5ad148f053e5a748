import { type Html, html } from "./html.ts";

/** The parts of JSON Schema in the OpenAPI document. */
export interface DocumentSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, DocumentSchema>>;
  readonly required?: readonly string[];
  readonly items?: DocumentSchema;
  readonly anyOf?: readonly DocumentSchema[];
  readonly oneOf?: readonly DocumentSchema[];
}

export type Schemas = Readonly<Record<string, DocumentSchema>>;

export interface MemberOptions {
  readonly schemas: Schemas;
  /** Prints a description, which is Markdown. */
  inline(text: string): Html;
  /** Whether required members are marked: those of inputs. */
  readonly marksRequired: boolean;
}

/** Longer patterns explain nothing. */
const PATTERN_LENGTH_MAX = 40;
/** Every text of the API: no NUL. */
const ANY_TEXT = "^[^\\u0000]*$";

/** The members of an object, or of the objects in a list, with everything that the schema says about them. */
export function printMembers(schema: DocumentSchema, options: MemberOptions, names: readonly string[] = []): Html {
  const { properties = {}, required = [] } = objectOf(schema, options.schemas) ?? {};
  const isRequired = new Set(required);
  const entries = Object.entries(properties);
  // Optional members come after those that a caller needs.
  if (options.marksRequired) entries.sort(([a], [b]) => Number(isRequired.has(b)) - Number(isRequired.has(a)));
  return html`<ul class="members">${entries.map(([name, member]) => {
    const nested = nestedMembers(member, options, names);
    return html`<li><p><code class="name">${name}</code> <span class="type">${typeOf(member)}</span>${
      options.marksRequired && isRequired.has(name) && html` <span class="required">required</span>`
    }</p>${describe(member, options)}${nested}</li>`;
  })}</ul>`;
}

function describe(schema: DocumentSchema, { inline, schemas }: MemberOptions): Html {
  const { description } = schema.$ref ? { ...schemas[nameOf(schema)], ...schema } : schema;
  const bounds = boundsOf(withoutNull(schema));
  return html`${description && html`<p>${inline(description)}</p>`}${bounds.length > 0 && html`<p class="bounds">${bounds.join(" · ")}</p>`}`;
}

function nestedMembers(schema: DocumentSchema, options: MemberOptions, names: readonly string[]): Html | undefined {
  const shared = sharedName(schema);
  // A schema can contain itself.
  if (shared !== undefined && names.includes(shared)) return undefined;
  const object = objectOf(schema, options.schemas);
  if (!object?.properties || Object.keys(object.properties).length === 0) return undefined;
  const inner = printMembers(object, options, shared === undefined ? names : [...names, shared]);
  return html`<details${!options.marksRequired || names.length > 0 ? undefined : html` open`}><summary>Members</summary>${inner}</details>`;
}

/** The object that a schema is, or that the items of its list are; the first one of alternatives. */
function objectOf(schema: DocumentSchema, schemas: Schemas): DocumentSchema | undefined {
  if (schema.$ref) return objectOf(schemas[nameOf(schema)]!, schemas);
  if (schema.properties) return schema;
  if (schema.items) return objectOf(schema.items, schemas);
  const alternatives = schema.anyOf ?? schema.oneOf ?? [];
  return alternatives.map((one) => objectOf(one, schemas)).find(Boolean);
}

function sharedName(schema: DocumentSchema): string | undefined {
  if (schema.$ref) return nameOf(schema);
  return schema.items && sharedName(schema.items);
}

function nameOf({ $ref = "" }: DocumentSchema): string {
  return $ref.slice($ref.lastIndexOf("/") + 1);
}

/** A type as readers call it: `string`, `integer or null`, `Key[]`. */
export function typeOf(schema: DocumentSchema): string {
  if (schema.$ref) return nameOf(schema);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return [...new Set(alternatives.map(typeOf))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.items) {
    const item = typeOf(schema.items);
    return item.includes(" ") ? `(${item})[]` : `${item}[]`;
  }
  return [schema.type ?? "any"].flat().join(" or ");
}

function withoutNull(schema: DocumentSchema): DocumentSchema {
  const [first] = (schema.anyOf ?? []).filter(({ type }) => type !== "null");
  return first ? { ...first, ...(schema.default !== undefined && { default: schema.default }) } : schema;
}

function boundsOf(schema: DocumentSchema): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern } = schema;
  return [
    schema.enum && `One of ${schema.enum.map(String).join(", ")}`,
    schema.items?.enum && `Each one of ${schema.items.enum.map(String).join(", ")}`,
    schema.default !== undefined && `Default ${JSON.stringify(schema.default)}`,
    range(minimum, maximum, ""),
    range(minLength || undefined, maxLength, "characters"),
    range(minItems || undefined, maxItems, "entries"),
    pattern !== undefined && pattern !== ANY_TEXT && pattern.length <= PATTERN_LENGTH_MAX && `Matches ${pattern}`,
  ].filter((bound) => typeof bound === "string");
}

function range(from: number | undefined, to: number | undefined, unit: string): string | undefined {
  const numbers = (value: number) => value.toLocaleString("en");
  const end = unit && ` ${unit}`;
  if (from !== undefined && to !== undefined) return `${numbers(from)} to ${numbers(to)}${end}`;
  if (from !== undefined) return `At least ${numbers(from)}${end}`;
  if (to !== undefined) return `At most ${numbers(to)}${end}`;
  return undefined;
}
