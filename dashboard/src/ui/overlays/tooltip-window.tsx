import type { ReactNode, RefObject } from "react";
import { Tooltip, TooltipTriggerStateContext } from "react-aria-components";
import type { TooltipTriggerState } from "react-stately/useTooltipTriggerState";

/** The open tooltip of an element. */
export default function TooltipWindow({
  state,
  id,
  triggerRef,
  children,
}: {
  state: TooltipTriggerState;
  id?: string | undefined;
  triggerRef: RefObject<HTMLElement | null>;
  children: ReactNode;
}) {
  return (
    <TooltipTriggerStateContext value={state}>
      <Tooltip
        {...(id !== undefined && { id })}
        triggerRef={triggerRef}
        offset={6}
        className="appear max-w-72 rounded-md bg-ink px-2 py-1 text-xs text-paper shadow-over"
      >
        {children}
      </Tooltip>
    </TooltipTriggerStateContext>
  );
}
