import { X } from "lucide-react";
import type { ReactNode } from "react";
import { exactNumber } from "../../api/format.ts";
import { IconButton } from "../button.tsx";

/** What can be done with the selected rows. It appears only when there are some. */
export function SelectionBar({
  count,
  onClear,
  children,
}: {
  count: number;
  onClear: () => void;
  children: ReactNode;
}) {
  if (count === 0) return null;
  return (
    <div
      role="toolbar"
      aria-label="Selected rows"
      className="appear fixed bottom-4 left-1/2 z-30 flex max-w-[calc(100vw-2rem)] -translate-x-1/2 flex-wrap items-center gap-2 rounded-lg border border-line bg-raised py-2 pr-2 pl-4 shadow-over"
    >
      <span className="font-medium whitespace-nowrap tabular-nums">{exactNumber(count)} selected</span>
      {children}
      <IconButton label="Clear the selection" onPress={onClear}>
        <X aria-hidden />
      </IconButton>
    </div>
  );
}
