import { lazy, type ReactNode, Suspense, useRef } from "react";
// TooltipTrigger of react-aria-components has the code that places the tooltip with it. This is its first half.
import { FocusableProvider } from "react-aria/private/interactions/useFocusable";
import { useTooltipTrigger } from "react-aria/useTooltipTrigger";
import { useTooltipTriggerState } from "react-stately/useTooltipTriggerState";
import { loadCode } from "../../api/connection.ts";

const TooltipWindow = lazy(() => loadCode(() => import("./tooltip-window.tsx")));

/** A short text beside what is focusable in it, while that is hovered or focused. Its code is loaded then. */
export function Tooltip({ text, delay, children }: { text: ReactNode; delay: number; children: ReactNode }) {
  const state = useTooltipTriggerState({ delay });
  const ref = useRef<HTMLElement>(null);
  const { triggerProps, tooltipProps } = useTooltipTrigger({ delay }, state, ref);
  return (
    <>
      <FocusableProvider {...triggerProps} ref={ref}>
        {children}
      </FocusableProvider>
      <Suspense>
        {state.isOpen && (
          <TooltipWindow id={tooltipProps.id} state={state} triggerRef={ref}>
            {text}
          </TooltipWindow>
        )}
      </Suspense>
    </>
  );
}
