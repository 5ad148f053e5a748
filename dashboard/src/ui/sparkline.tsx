import { classes } from "./classes.ts";

/** Small bars of counts over time; a value of zero is a thin line. The number beside it says the sum. */
export function Sparkline({
  values,
  label,
  className,
}: {
  values: readonly number[];
  label: string;
  className?: string;
}) {
  const most = Math.max(1, ...values);
  const width = 100 / Math.max(values.length, 1);
  // One path for all bars, because a table makes many sparklines while it is scrolled.
  const bars = (isDrawn: (value: number) => boolean) =>
    values
      .map((value, index) => {
        if (!isDrawn(value)) return "";
        const height = value === 0 ? 1 : Math.max(2, (value / most) * 20);
        return `M${round(index * width)} 20h${round(width * 0.75)}v${-round(height)}h${-round(width * 0.75)}z`;
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
      <path className="fill-line" d={bars((value) => value === 0)} />
      <path className="fill-current" d={bars((value) => value !== 0)} />
    </svg>
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
