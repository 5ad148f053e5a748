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
