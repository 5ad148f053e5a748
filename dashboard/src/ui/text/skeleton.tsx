import { ROW_HEIGHT, useDensity } from "../theme.ts";

/** Lines in the place of text that is being loaded. They appear after 300 ms. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div aria-busy="true" className="space-y-3 py-2">
      <span className="sr-only">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all the same.
        <div key={index} className="skeleton h-5 odd:w-full even:w-4/5" />
      ))}
    </div>
  );
}

/** Rows in the place of a table that is being loaded, as high as those of the table. */
export function SkeletonRows({ count }: { count: number }) {
  const [density] = useDensity();
  return (
    <div aria-busy="true" data-skeleton="rows" className="pt-6">
      <span className="sr-only">Loading</span>
      {Array.from({ length: count }, (_, index) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all the same.
          key={index}
          className="grid grid-cols-[2fr_1fr_1fr] items-center gap-x-3 border-b border-line px-2 sm:grid-cols-[2fr_1fr_1fr_1fr_1fr]"
          style={{ height: ROW_HEIGHT[density] }}
        >
          <div className="skeleton h-3.5 w-3/5" />
          <div className="skeleton h-3.5 w-4/5" />
          <div className="skeleton h-3.5 w-2/5" />
          <div className="skeleton h-3.5 w-3/5 max-sm:hidden" />
          <div className="skeleton ml-auto h-3.5 w-2/5 max-sm:hidden" />
        </div>
      ))}
    </div>
  );
}
