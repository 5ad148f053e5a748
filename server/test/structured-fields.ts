import assert from "node:assert/strict";

/** A parameter of an item: an Integer, a String, or a Byte Sequence. */
export type Parameter = number | string | Uint8Array;

/** An item whose value is a String, with its parameters in their order. */
export interface StringItem {
  readonly value: string;
  readonly parameters: ReadonlyMap<string, Parameter>;
}

/**
 * Reads a List of Strings with parameters as RFC 9651, section 4.2 says, and fails at the first character that is not
 * allowed. It knows no types of items but those of the headers about limits.
 */
export function parseStringList(text: string): StringItem[] {
  let rest = text;
  const take = (expression: RegExp, what: string): string => {
    const [found] = expression.exec(rest) ?? [];
    assert(found !== undefined, `${what} is missing before ${JSON.stringify(rest)} in ${JSON.stringify(text)}`);
    rest = rest.slice(found.length);
    return found;
  };
  const takeString = (): string =>
    take(/^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/, "a String")
      .slice(1, -1)
      .replace(/\\(.)/g, "$1");
  const takeBare = (): Parameter => {
    if (rest.startsWith('"')) return takeString();
    if (!rest.startsWith(":")) return Number(take(/^-?\d{1,15}(?![\d.])/, "an Integer"));
    const base64 = take(/^:[A-Za-z0-9+/]*={0,2}:/, "a Byte Sequence").slice(1, -1);
    assert.equal(base64.length % 4, 0, `A Byte Sequence lacks padding: ${base64}`);
    return Buffer.from(base64, "base64");
  };
  const items: StringItem[] = [];
  rest = rest.replace(/^ +/, "").replace(/ +$/, "");
  while (rest !== "") {
    if (items.length > 0) {
      take(/^[ \t]*,[ \t]*/, "a comma");
      assert.notEqual(rest, "", "A List ends with a comma");
    }
    const value = takeString();
    const parameters = new Map<string, Parameter>();
    while (rest.startsWith(";")) {
      take(/^; */, "a parameter");
      const name = take(/^[a-z*][a-z0-9_.*-]*/, "the name of a parameter");
      assert(!parameters.has(name), `The parameter ${name} is there twice`);
      take(/^=/, "the value of a parameter");
      parameters.set(name, takeBare());
    }
    items.push({ value, parameters });
  }
  return items;
}
