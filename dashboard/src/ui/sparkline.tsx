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
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox="0 0 100 20"
      preserveAspectRatio="none"
      className={classes("h-5 w-24 text-code-valid", className)}
    >
      {values.map((value, index) => {
        const height = value === 0 ? 1 : Math.max(2, (value / most) * 20);
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its place in time.
            key={index}
            x={index * width}
            y={20 - height}
            width={width * 0.75}
            height={height}
            className={value === 0 ? "fill-line" : "fill-current"}
          />
        );
      })}
    </svg>
  );
}
