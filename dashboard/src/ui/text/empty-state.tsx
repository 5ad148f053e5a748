import type { ReactNode } from "react";

/** What stands in the place of a list without entries: what it is for, and what ends the emptiness. */
export function EmptyState({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex flex-col items-start gap-3 py-10">
      <h2 className="text-lg font-medium">{title}</h2>
      {children && <div className="max-w-prose space-y-2 text-quiet">{children}</div>}
      {action}
    </div>
  );
}
