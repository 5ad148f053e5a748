import type { ReactNode } from "react";

/** How much of a maximum is used, as a bar below its words. */
export function Meter({
  label,
  used,
  max,
  children,
  note,
}: {
  /** What is used, for readers of the screen. */
  label: string;
  used: number;
  max: number;
  /** The figures in words. */
  children: ReactNode;
  /** What else there is to know, opposite the words; false: nothing. */
  note: ReactNode;
}) {
  return (
    <div>
      <div className="flex flex-wrap justify-between gap-x-3 text-xs tabular-nums">
        <span>{children}</span>
        <span className="text-quiet">{note}</span>
      </div>
      <meter aria-label={label} min={0} max={Math.max(1, max)} high={max * 0.9} value={used} className="h-2 w-full" />
    </div>
  );
}
