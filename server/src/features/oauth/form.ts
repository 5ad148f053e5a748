/** A form, or why it is none. */
export type ReadForm = { readonly form: Form } | { readonly mistake: string };

const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;
const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/** Parameters of a form. Empty ones count as omitted: RFC 6749, section 3.2. */
export class Form {
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(values: ReadonlyMap<string, readonly string[]>) {
    this.#values = values;
  }

  get(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
}

/** @param repeated the parameters that may be there several times. Unknown ones are ignored. */
export function readForm(
  text: string | null,
  { "content-type": type = "", "content-encoding": encoding = "" }: Record<string, string | string[] | undefined>,
  repeated: readonly string[] = [],
): ReadForm {
  if (!FORM.test(String(type)) || !/^(identity)?$/i.test(String(encoding))) {
    return { mistake: "Send the parameters as application/x-www-form-urlencoded, uncompressed." };
  }
  if (text === null) return { mistake: "The body is not UTF-8." };
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (value === "") continue;
    const before = values.get(name);
    if (before === undefined) values.set(name, [value]);
    else if (repeated.includes(name)) before.push(value);
    else return { mistake: "A parameter is there twice." };
  }
  return { form: new Form(values) };
}

/** The id and the secret of a client: RFC 6749, section 2.3.1. */
export interface ClientCredentials {
  readonly id: string;
  readonly secret: string;
}

/** The credentials in a header of HTTP Basic, whose parts are encoded like those of a form; undefined if it is malformed. */
export function readBasic(header: string): ClientCredentials | undefined {
  const encoded = BASIC.exec(header.trim())?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, "base64").toString();
  const colon = text.indexOf(":");
  if (colon < 0) return undefined;
  const [id, secret] = [formDecoded(text.slice(0, colon)), formDecoded(text.slice(colon + 1))];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

function formDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
