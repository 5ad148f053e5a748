/** The parts of JSON Schema that the operations use. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** The schema of a member, by its path: `member(schema, "credits", "remaining")`. */
export function member(schema: Schema, ...path: string[]): Schema {
  return path.reduce<Schema>((part, name) => {
    const found = part.properties?.[name];
    if (!found) throw new Error(`The schema has no member ${path.join(".")}.`);
    return found;
  }, schema);
}

/** The schema of the items of a list, by its path. */
export function itemsOf(schema: Schema, ...path: string[]): Schema {
  const { items } = member(schema, ...path);
  if (!items) throw new Error(`The member ${path.join(".")} of the schema is no list.`);
  return items;
}

/** Whether a schema accepts values of this type. */
export function accepts({ type, anyOf }: Schema, name: string): boolean {
  return [type].flat().includes(name) || (anyOf?.some((schema) => accepts(schema, name)) ?? false);
}

/** Why a text is not a value of the schema, in one sentence; undefined if it is one. */
export function textProblem(schema: Schema, text: string): string | undefined {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern } = schema;
  if (text.length < minLength) return minLength === 1 ? "Enter a value." : `Use at least ${minLength} characters.`;
  if (text.length > maxLength) return `Use at most ${maxLength} characters.`;
  if (pattern !== undefined && !new RegExp(pattern, "u").test(text)) {
    return pattern === "^[a-zA-Z0-9_.-]+$"
      ? "Use letters, digits, and _ . - only."
      : "It contains characters that are not allowed.";
  }
  return undefined;
}

/** Why a number is not a value of the schema, in one sentence; undefined if it is one. */
export function numberProblem(schema: Schema, value: number): string | undefined {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  if (!Number.isInteger(value)) return "Enter a whole number.";
  if (value < minimum) return `The least is ${minimum.toLocaleString("en")}.`;
  if (value > maximum) return `The most is ${maximum.toLocaleString("en")}.`;
  return undefined;
}
