/** A text of HTML, with everything in it escaped that has to be. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = Html | string | number | false | null | undefined | readonly Value[];

/** HTML from a template. Values are escaped, unless they are `Html`; lists are joined; nothing is written for `false`. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.map((part, index) => part + (index < values.length ? write(values[index]) : "")).join(""));
}

function write(value: Value): string {
  if (value instanceof Html) return value.text;
  if (typeof value === "string" || typeof value === "number") return escapeHtml(String(value));
  return Array.isArray(value) ? value.map(write).join("") : "";
}

/** A text as content or as the value of an attribute in double quotes. */
export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
