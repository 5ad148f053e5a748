import type { ReactNode } from "react";
import { Tooltip as AriaTooltip } from "react-aria-components";

/** A short text beside an element that is hovered or focused; inside a `TooltipTrigger`. */
export function Tooltip({ children }: { children: ReactNode }) {
  return (
    <AriaTooltip offset={6} className="appear max-w-72 rounded-md bg-ink px-2 py-1 text-xs text-paper shadow-over">
      {children}
    </AriaTooltip>
  );
}
