/**
 * The largest sum that is kept. A larger one would be no exact number any more, and later no number of the column: the transaction
 * fails then, with the counts of all others in it.
 */
const SUM_MAX = Number.MAX_SAFE_INTEGER;

/** A sum, or the largest one that is kept. */
export function sumOf(a: number, b: number): number {
  return Math.min(SUM_MAX, a + b);
}

/** The same in SQL, of a sum of values that were kept. */
export function keptSum(sum: string): string {
  return `case when ${sum} > ${SUM_MAX} then ${SUM_MAX} else ${sum} end`;
}
