import { classes } from "../classes.ts";

/**
 * Small bars of counts over time, with what was refused on top in the colour of refusals; a value of zero is a thin line. The
 * number beside it says the sum.
 */
export function Sparkline({
  values,
  refused = [],
  label,
  className,
}: {
  values: readonly number[];
  /** The part of each value that was refused. */
  refused?: readonly number[];
  label: string;
  className?: string;
}) {
  const most = Math.max(1, ...values);
  const width = 100 / Math.max(values.length, 1);
  const heightOf = (value: number) => (value === 0 ? 1 : Math.max(2, (value / most) * 20));
  // However few were refused, they can be seen.
  const validHeight = (value: number, index: number) => {
    const bad = refused[index] ?? 0;
    const height = heightOf(value);
    return bad === 0 ? height : Math.min((height * (value - bad)) / value, height - 1.5);
  };
  // One path for all bars of a colour, because a table makes many sparklines while it is scrolled.
  const bars = (isDrawn: (value: number, index: number) => boolean, height: (value: number, index: number) => number) =>
    values
      .map((value, index) => {
        if (!isDrawn(value, index)) return "";
        return `M${round(index * width)} 20h${round(width * 0.75)}v${-round(height(value, index))}h${-round(width * 0.75)}z`;
      })
      .join("");
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox="0 0 100 20"
      preserveAspectRatio="none"
      className={classes("h-5 w-24 text-code-valid", className)}
    >
      <path className="fill-line" d={bars((value) => value === 0, heightOf)} />
      <path className="fill-code-limited" d={bars((_, index) => (refused[index] ?? 0) > 0, heightOf)} />
      <path className="fill-current" d={bars((value) => value !== 0, validHeight)} />
    </svg>
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
