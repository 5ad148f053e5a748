import { styleText } from "node:util";

/** The text in a colour, if it goes to a terminal that has colours and `NO_COLOR` is not set. */
export function coloured(
  style: "bold" | "green" | "yellow" | "red",
  text: string,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return styleText(style, text, { stream });
}

/** A line whose first word is a decision, in green if it is a good one. */
export function decisionLine(line: string, isGood: boolean): string {
  return line.replace(/^[A-Z_]+/, (word) => coloured(isGood ? "green" : "red", word));
}
