import { useEffect } from "react";

/** One entry for each form that was changed and not sent. */
const forms = new Set<object>();

/** Whether leaving the page would lose what was entered. */
export const hasUnsaved = () => forms.size > 0;

/** While it is true, leaving the page asks first. */
export function useUnsaved(isChanged: boolean): void {
  useEffect(() => {
    if (!isChanged) return;
    const form = {};
    forms.add(form);
    return () => void forms.delete(form);
  }, [isChanged]);
}
