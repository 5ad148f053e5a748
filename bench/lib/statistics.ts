/** What several measurements of one thing say together. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** The spread of at least one number. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)! };
}

/** Writes `median (min–max)` in whole numbers, or with so many digits after the point. */
export function writeSpread({ median, min, max }: Spread, digits = 0): string {
  const write = (value: number) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${write(median)} (${write(min)}–${write(max)})`;
}
