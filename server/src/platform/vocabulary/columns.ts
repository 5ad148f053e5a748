/** Marks a field of an update that a statement of its own writes, in `columnsOf`. */
export const WRITTEN_APART: unique symbol = Symbol("written apart");

/** What each field of an update sets. A field without an entry does not compile. */
export type ColumnsFor<Given> = {
  readonly [Field in keyof Given]-?: ((value: Exclude<Given[Field], undefined>) => object) | typeof WRITTEN_APART;
};

type Intersection<Union> = (Union extends unknown ? (member: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

type ColumnsOf<Fields> = Partial<
  Intersection<
    {
      // biome-ignore lint/suspicious/noExplicitAny: a parameter of every type.
      [Field in keyof Fields]: Fields[Field] extends (value: any) => infer Columns ? Columns : object;
    }[keyof Fields]
  >
>;

/**
 * The columns that an update sets, made of the fields that its caller gave. Write `fields` with
 * `satisfies ColumnsFor<typeof given>`: the compiler then reports a new field that is validated and recorded, and changes
 * nothing.
 */
export function columnsOf<Fields extends ColumnsFor<object>>(given: object, fields: Fields): ColumnsOf<Fields> {
  const entries = new Map<string, unknown>(Object.entries(fields));
  const columns = {};
  for (const [name, value] of Object.entries(given)) {
    const entry = entries.get(name);
    if (value !== undefined && typeof entry === "function") Object.assign(columns, entry(value));
  }
  return columns as ColumnsOf<Fields>;
}

/** A boolean that both databases store, or null. */
export function optionalFlag(stored: 0 | 1 | null): boolean | null {
  return stored === null ? null : stored === 1;
}

/** A boolean as both databases store it. */
export function flag(value: boolean): 0 | 1 {
  return value ? 1 : 0;
}

/** A value as JSON text, null for none. */
export function jsonColumn(value: unknown): string | null {
  return value == null ? null : JSON.stringify(value);
}
