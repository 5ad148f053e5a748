import type { MinuteCount } from "../batch.ts";
import { compare } from "./compare.ts";

/** Characters of an id that all ids of a kind have in common, such as `key_`, and how many after them are compared as a number. */
const COMMON = 4;
const COMPARED = 5;
/** A number has the place of its count below the characters, of seven bits each. */
const COUNTS_MAX = 2 ** (53 - 7 * COMPARED);

/**
 * The counts by workspace and subject, then by identity, outcome and time: the order of segments and runs. First roughly, by
 * numbers, which takes a fifth of the time that comparing texts takes.
 */
export function inKeyOrder(counts: readonly MinuteCount[]): MinuteCount[] {
  const kinds: { first: MinuteCount; counts: MinuteCount[] }[] = [];
  const found = new Map<string, MinuteCount[]>();
  let [workspaceId, common, kind] = ["", "", undefined as MinuteCount[] | undefined];
  for (const count of counts) {
    if (kind === undefined || count.workspaceId !== workspaceId || !count.subject.startsWith(common)) {
      workspaceId = count.workspaceId;
      common = count.subject.slice(0, COMMON);
      const name = `${workspaceId} ${common}`;
      kind = found.get(name);
      if (kind === undefined) {
        kind = [];
        found.set(name, kind);
        kinds.push({ first: count, counts: kind });
      }
    }
    kind.push(count);
  }
  kinds.sort((a, b) => compareCounts(a.first, b.first));
  // Counts that are in order already are compared once each.
  return kinds.flatMap(({ counts }) => roughlyInOrder(counts)).sort(compareCounts);
}

function roughlyInOrder(counts: MinuteCount[]): MinuteCount[] {
  if (counts.length > COUNTS_MAX) return counts;
  const numbers = new Float64Array(counts.length);
  for (const [i, { subject }] of counts.entries()) {
    let number = 0;
    for (let at = COMMON; at < COMMON + COMPARED; at++) number = number * 128 + (subject.charCodeAt(at) & 127);
    numbers[i] = number * COUNTS_MAX + i;
  }
  const sorted: MinuteCount[] = [];
  for (const number of numbers.sort()) {
    const count = counts[number % COUNTS_MAX];
    if (count !== undefined) sorted.push(count);
  }
  return sorted;
}

function compareCounts(a: MinuteCount, b: MinuteCount): number {
  return (
    compare(a.workspaceId, b.workspaceId) ||
    compare(a.subject, b.subject) ||
    compare(a.identityId, b.identityId) ||
    compare(a.outcome, b.outcome) ||
    a.time - b.time
  );
}
