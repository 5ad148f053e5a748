/** Control characters, and characters that change the direction of text. A terminal would act on them. */
const unprintable = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Text for a terminal: one line, with control characters as escapes. */
export function printable(text: string): string {
  return text.replaceAll(unprintable, (character) => escaped(character));
}

/** JSON for a terminal or a program. It parses to the same value as that of `JSON.stringify`. */
export function jsonText(value: unknown, indent = 2): string {
  return escapeLines(JSON.stringify(value, null, indent));
}

/** Text in which only the ends of lines are control characters. */
export function escapeLines(text: string): string {
  return text.replaceAll(unprintable, (character) => (character === "\n" ? character : escaped(character)));
}

function escaped(character: string): string {
  return `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`;
}
