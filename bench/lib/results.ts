/** The published results of the benchmarks: sections of `bench/RESULTS.md`, of which several programs write one or more. */
import { readFileSync, writeFileSync } from "node:fs";

const FILE = new URL("../RESULTS.md", import.meta.url);

/** Headings of the sections that `npm run bench:peers` writes. `npm run bench` leaves them as they are. */
export const peerSections = {
  limits: "Rate limits beside others",
  verifications: "Verifications beside others",
} as const;

/** The heading of the section that `npm run bench:edges` writes. */
export const edgeSection = "Edges attached to a node";

/** Writes a section, in place of the one with its heading or at the end. `lines` follow the heading. */
export function publishSection(heading: string, lines: readonly string[]): void {
  writeFileSync(FILE, withSection(readFileSync(FILE, "utf8"), heading, lines));
}

/** Writes everything but the sections of others, which stay at the end. */
export function publishResults(lines: readonly string[]): void {
  const before = readFileSync(FILE, "utf8");
  let text = `${lines.join("\n").trimEnd()}\n`;
  for (const heading of [...Object.values(peerSections), edgeSection]) {
    const kept = sectionOf(before, heading);
    if (kept !== undefined) text = withSection(text, heading, kept);
  }
  writeFileSync(FILE, text);
}

function withSection(text: string, heading: string, lines: readonly string[]): string {
  const section = `## ${heading}\n\n${lines.join("\n").trim()}\n`;
  const known = rangeOf(text, heading);
  if (known === undefined) return `${text.trimEnd()}\n\n${section}`;
  const rest = text.slice(known.end);
  return `${text.slice(0, known.start)}${section}${rest === "" ? "" : `\n${rest}`}`;
}

function sectionOf(text: string, heading: string): string[] | undefined {
  const known = rangeOf(text, heading);
  return known && text.slice(known.start, known.end).split("\n").slice(1);
}

/** From the heading of a section to that of the next one, or to the end. */
function rangeOf(text: string, heading: string): { start: number; end: number } | undefined {
  const found = text.indexOf(`\n## ${heading}\n`);
  if (found === -1) return undefined;
  const next = text.indexOf("\n## ", found + 1);
  return { start: found + 1, end: next === -1 ? text.length : next + 1 };
}
