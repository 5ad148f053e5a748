/** One part of the bars of a chart, or one line. */
export interface Series {
  readonly label: string;
  /** A custom property of theme.css: `--color-code-valid`. */
  readonly color: `--${string}`;
  /** One value per time. Null: there is no data, which is a gap. */
  readonly values: readonly (number | null)[];
}

/** The codes of verifications with their colours, from the bottom of a stack upwards. */
export const codeColors = {
  VALID: "--color-code-valid",
  RATE_LIMITED: "--color-code-limited",
  USAGE_EXCEEDED: "--color-code-usage",
  INSUFFICIENT_PERMISSIONS: "--color-code-insufficient",
  EXPIRED: "--color-code-expired",
  DISABLED: "--color-code-disabled",
  FORBIDDEN: "--color-code-forbidden",
  NOT_FOUND: "--color-code-not-found",
} as const satisfies Record<string, `--${string}`>;

/** Colours of parts that have none of their own, such as owners. None is that of a code. */
export const categoryColors = [
  "--color-part-1",
  "--color-part-2",
  "--color-part-3",
  "--color-part-4",
  "--color-part-5",
  "--color-part-6",
  "--color-part-7",
  "--color-part-8",
] as const;

/** The parts of bars by code, of an answer of `analytics.*`. Codes that did not occur have no part. */
export function seriesByCode(series: readonly { readonly outcomes: Readonly<Record<string, number>> }[]): Series[] {
  return Object.entries(codeColors)
    .map(([code, color]) => ({ label: code, color, values: series.map(({ outcomes }) => outcomes[code] ?? 0) }))
    .filter(({ label, values }) => label === "VALID" || values.some((value) => value > 0));
}
