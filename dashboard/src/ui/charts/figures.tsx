import type { ReactNode } from "react";

/** Numbers that matter about a page, side by side. */
export function Figures({ children }: { children: ReactNode }) {
  return (
    <dl className="mb-5 grid grid-cols-2 gap-x-6 gap-y-4 border-y border-line py-4 md:grid-cols-[repeat(auto-fit,minmax(9rem,1fr))]">
      {children}
    </dl>
  );
}

/** One number of `Figures`, with what puts it in proportion. */
export function Figure({ name, children, note }: { name: string; children: ReactNode; note?: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="label">{name}</dt>
      <dd className="text-xl font-semibold tracking-tight tabular-nums">{children}</dd>
      {note && <dd className="truncate text-xs text-quiet">{note}</dd>}
    </div>
  );
}
