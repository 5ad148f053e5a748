/** Median and range of several measurements. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** The spread of one or more numbers. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)! };
}

/** Formats `median (min–max)` with this many decimal places. */
export function writeSpread({ median, min, max }: Spread, digits = 0): string {
  const write = (value: number) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${write(median)} (${write(min)}–${write(max)})`;
}
