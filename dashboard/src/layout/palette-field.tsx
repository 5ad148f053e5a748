import { type ReactNode, useRef, useState } from "react";
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
  children,
}: {
  text: string;
  onChange: (text: string) => void;
  children: ReactNode;
}) {
  const [focusedNodeId, setFocusedNodeId] = useState<string | null>(null);
  const inputRef = useRef<HTMLInputElement>(null);
  const listRef = useRef<HTMLElement>(null);
  const { inputProps, collectionProps, collectionRef } = useAutocomplete(
    { inputRef, collectionRef: listRef },
    { inputValue: text, setInputValue: onChange, focusedNodeId, setFocusedNodeId },
  );
  return (
    <FieldInputContext value={{ ...inputProps, ref: inputRef }}>
      <SelectableCollectionContext value={{ ...collectionProps, ref: collectionRef }}>
        {children}
      </SelectableCollectionContext>
    </FieldInputContext>
  );
}
