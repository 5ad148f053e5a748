import { type ReactNode, useEffect, useRef, useState } from "react";
import { useAutocomplete } from "react-aria/useAutocomplete";
import { FieldInputContext, SelectableCollectionContext } from "react-aria-components";

/**
 * Connects a text field with the list of its results: the arrows move in the list while the field keeps the focus.
 *
 * This is `Autocomplete` of React Aria, made of its hook. That component is in one module with what every text field
 * imports, so each page with a form would load it.
 */
export function FieldWithResults({
  text,
  onChange,
  results,
  children,
}: {
  text: string;
  onChange: (text: string) => void;
  /** The ids of the results, in their order. */
  results: readonly string[];
  children: ReactNode;
}) {
  const [focusedNodeId, setFocusedNodeId] = useState<string | null>(null);
  const inputRef = useRef<HTMLInputElement>(null);
  const listRef = useRef<HTMLElement>(null);
  const { inputProps, collectionProps, collectionRef } = useAutocomplete(
    { inputRef, collectionRef: listRef },
    { inputValue: text, setInputValue: onChange, focusedNodeId, setFocusedNodeId },
  );
  const shown = results.join(" ");
  // The library chooses the first result while one types. It chooses none after a paste, and none when an answer that comes
  // later lacks the chosen one: Enter would do nothing. It builds the list in a second pass, so this waits for the next frame.
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      if (text === "" || shown === "" || listRef.current?.querySelector("[data-focused]")) return;
      const down = new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true, cancelable: true });
      inputRef.current?.dispatchEvent(down);
    });
    return () => cancelAnimationFrame(frame);
  }, [text, shown]);
  return (
    <FieldInputContext value={{ ...inputProps, ref: inputRef }}>
      <SelectableCollectionContext value={{ ...collectionProps, ref: collectionRef }}>
        {children}
      </SelectableCollectionContext>
    </FieldInputContext>
  );
}
