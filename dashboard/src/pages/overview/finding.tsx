import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { counted, exactNumber } from "../../api/format.ts";
import { StatusBadge, type Tone } from "../../ui/text/status-badge.tsx";

/** As many of a kind the service counts. */
const COUNTED_MAX = 1_000;

/** What needs attention, in one line that shows more when it is opened. */
export function Finding({
  tone,
  badge,
  title,
  children,
}: {
  tone: Tone;
  badge: string;
  title: string;
  children: ReactNode;
}) {
  return (
    <li>
      <details className="group">
        <summary className="flex cursor-pointer list-none items-center gap-2.5 py-2 hover:bg-hover">
          <StatusBadge tone={tone}>{badge}</StatusBadge>
          <span className="min-w-0 flex-1">{title}</span>
          <ChevronRight
            aria-hidden
            className="size-4 shrink-0 text-quiet transition-transform duration-120 group-open:rotate-90"
          />
        </summary>
        <div className="pb-3 pl-2">{children}</div>
      </details>
    </li>
  );
}

/** What a finding is about: those that are listed, and how many others there are. */
export function FindingList({
  entries,
  of,
}: {
  entries: readonly { readonly id: string; readonly label: ReactNode; readonly note: ReactNode }[];
  of: number;
}) {
  return (
    <ul className="space-y-1">
      {entries.map(({ id, label, note }) => (
        <li key={id} className="flex items-baseline justify-between gap-4">
          <span className="min-w-0 truncate">{label}</span>
          <span className="shrink-0 text-xs text-quiet tabular-nums">{note}</span>
        </li>
      ))}
      {of > entries.length && (
        <li className="text-xs text-quiet">{`and ${countedUpTo(of - entries.length, "other")}`}</li>
      )}
    </ul>
  );
}

/** A number that the service counts no further than to 1,000. */
export function countedUpTo(count: number, one: string): string {
  return count >= COUNTED_MAX ? `${exactNumber(COUNTED_MAX)} ${one}s or more` : counted(count, one);
}
