import type { ReactNode } from "react";
import { Focusable } from "react-aria-components";
import { Tooltip } from "./tooltip.tsx";

/** Text with more about it on hover and on focus. */
export function Hint({ children, text, className }: { children: ReactNode; text: ReactNode; className?: string }) {
  return (
    <Tooltip text={text} delay={300}>
      <Focusable>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the hint must be reachable by keyboard. */}
        <span tabIndex={0} role="note" className={className}>
          {children}
        </span>
      </Focusable>
    </Tooltip>
  );
}
