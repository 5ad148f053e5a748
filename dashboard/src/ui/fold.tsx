import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";

/** A part of a form that is folded until it is needed. `summary`: what it holds now. */
export function Fold({
  title,
  summary,
  isOpen = false,
  children,
}: {
  title: string;
  summary?: string | undefined;
  isOpen?: boolean;
  children: ReactNode;
}) {
  return (
    <details open={isOpen} className="group border-t border-line">
      <summary className="flex cursor-pointer list-none items-center gap-2 rounded-md py-2.5">
        <ChevronRight
          aria-hidden
          className="size-4 text-quiet transition-transform duration-120 group-open:rotate-90"
        />
        <span className="font-medium">{title}</span>
        {summary && <span className="ml-auto truncate text-xs text-quiet">{summary}</span>}
      </summary>
      <div className="space-y-4 pb-4 pl-6">{children}</div>
    </details>
  );
}
