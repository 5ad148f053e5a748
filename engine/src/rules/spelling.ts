/** Longer names get no suggestions, because the time that a comparison takes grows with them. */
const NAME_LENGTH_MAX = 64;
/** The most mistakes in a name that is still recognized. */
const MISTAKES_MAX = 3;

/**
 * Returns the names that are most similar to an unknown one: those that differ in capitals and separators only, or else
 * those with the fewest mistakes, at most one in three characters.
 *
 * The unknown name can come from an attacker, so the work is bounded: a name of more than 64 characters is not compared, and
 * each comparison ends as soon as there are too many mistakes.
 */
export function nearestNames(unknown: string, names: Iterable<string>): string[] {
  if (unknown.length > NAME_LENGTH_MAX) return [];
  const letters = lettersOf(unknown);
  let least = Math.min(MISTAKES_MAX, Math.floor(unknown.length / 3));
  let nearest: string[] = [];
  for (const name of names) {
    if (Math.abs(name.length - unknown.length) > MISTAKES_MAX) continue;
    const mistakes = lettersOf(name) === letters ? 0 : mistakesIn(unknown, name, least);
    if (mistakes > least) continue;
    if (mistakes < least) nearest = [];
    least = mistakes;
    nearest.push(name);
  }
  return nearest;
}

/** A question for the nearest names; empty if there is none. */
export function didYouMean(unknown: string, names: Iterable<string>, quoted: (name: string) => string): string {
  const nearest = nearestNames(unknown, names);
  return nearest.length === 0 ? "" : `Did you mean ${nearest.map(quoted).join(" or ")}?`;
}

function lettersOf(name: string): string {
  return name.replace(/[_-]/g, "").toLowerCase();
}

/**
 * The number of characters that are missing, too many, wrong or swapped with the next one (optimal string alignment), or
 * any number above `max`.
 */
function mistakesIn(unknown: string, name: string, max: number): number {
  if (Math.abs(unknown.length - name.length) > max) return max + 1;
  const tooMany = max + 1;
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: name.length + 1 }, (_, j) => j);
  for (let i = 1; i <= unknown.length; i++) {
    const next: number[] = Array(name.length + 1).fill(tooMany);
    next[0] = i;
    let left = i > max + 1 ? tooMany : i;
    let least = left;
    // Cells farther from the diagonal have more mistakes than `max`.
    for (let j = Math.max(1, i - max); j <= Math.min(name.length, i + max); j++) {
      const isSame = unknown[i - 1] === name[j - 1];
      const isSwapped = i > 1 && j > 1 && unknown[i - 1] === name[j - 2] && unknown[i - 2] === name[j - 1];
      const [above = tooMany, diagonal = tooMany, swapped = tooMany] = [row[j], row[j - 1], before[j - 2]];
      left = Math.min(above + 1, left + 1, isSame ? diagonal : diagonal + 1, isSwapped ? swapped + 1 : tooMany);
      next[j] = left;
      least = Math.min(least, left);
    }
    if (least > max) return tooMany;
    before = row;
    row = next;
  }
  return row.at(-1) ?? tooMany;
}
