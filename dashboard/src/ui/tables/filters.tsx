import { ChevronDown, Search, X } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { Button as AriaButton } from "react-aria-components";
import { classes } from "../classes.ts";
import { Menu } from "../overlays/menu.tsx";
import { ViewsMenu } from "./views-menu.tsx";

/** The pause in typing after which a search begins: longer than between two letters of a fast typist. */
const TYPING_MS = 80;

/** A field that searches while one types. `value` comes from the address; `onChange` writes it there. */
export function SearchField({
  value,
  onChange,
  onSecret,
  label,
  placeholder,
}: {
  value: string;
  onChange: (value: string) => void;
  /** Takes a text that was inserted as a whole and must stay neither in the field nor in the address; false if it may. */
  onSecret?: (text: string) => boolean;
  label: string;
  placeholder?: string;
}) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    // Another page or the back button changed the address.
    if (value !== sent.current) setText(value);
    sent.current = value;
  }, [value]);
  const send = useCallback(
    (text: string) => {
      if (text === sent.current) return;
      sent.current = text;
      onChange(text);
    },
    [onChange],
  );
  useEffect(() => {
    const timer = setTimeout(send, TYPING_MS, text);
    return () => clearTimeout(timer);
  }, [text, send]);
  const setAtOnce = (text: string) => {
    setText(text);
    send(text);
  };
  return (
    <div className="relative w-full sm:w-auto sm:min-w-72 sm:max-w-md sm:flex-1">
      <Search aria-hidden className="pointer-events-none absolute top-2 left-2.5 size-4 text-quiet" />
      <input
        type="text"
        role="searchbox"
        aria-label={label}
        data-search
        value={text}
        onChange={({ target }) => {
          const isTyped = target.value.length <= text.length + 1;
          if (isTyped) setText(target.value);
          else if (!onSecret?.(target.value.trim())) setAtOnce(target.value);
        }}
        onPaste={(event) => {
          if (onSecret?.(event.clipboardData.getData("text").trim())) event.preventDefault();
        }}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || text === "") return;
          event.stopPropagation();
          setAtOnce("");
        }}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        className="h-8 w-full rounded-md border border-edge bg-raised pr-8 pl-8.5"
      />
      {text !== "" && (
        <button
          type="button"
          aria-label="Clear the search"
          onClick={() => setAtOnce("")}
          className="absolute top-1 right-1 rounded-sm p-1 text-quiet hover:bg-hover"
        >
          <X aria-hidden className="size-4" />
        </button>
      )}
    </div>
  );
}

/** A filter as a chip that opens its choices. Its value lives in the address. */
export function FilterChip<Value extends string>({
  label,
  value,
  options,
  onChange,
  isAlwaysOn = false,
}: {
  label: string;
  value: Value | undefined;
  options: readonly { value: Value; label: string }[];
  /** Undefined: the filter is off. */
  onChange: (value: Value | undefined) => void;
  /** One of the options always holds. */
  isAlwaysOn?: boolean;
}) {
  const chosen = options.find((option) => option.value === value);
  return (
    <div
      className={classes(
        "inline-flex h-8 items-center rounded-md border",
        chosen && !isAlwaysOn ? "border-accent/60 bg-accent-soft" : "border-line hover:bg-hover",
      )}
    >
      <Menu
        label={label}
        placement="bottom start"
        entries={options.map((option) => ({
          label: option.label,
          isChosen: option.value === value,
          onAction: () => onChange(option.value === value && !isAlwaysOn ? undefined : option.value),
        }))}
        trigger={(opener) => (
          <AriaButton {...opener} className="flex h-full items-center gap-1.5 rounded-md px-2.5 whitespace-nowrap">
            {chosen ? (
              <span>
                {label}: <span className="font-medium">{chosen.label}</span>
              </span>
            ) : (
              label
            )}
            {(!chosen || isAlwaysOn) && <ChevronDown aria-hidden className="size-4 text-quiet" />}
          </AriaButton>
        )}
      />
      {chosen && !isAlwaysOn && (
        <button
          type="button"
          aria-label={`Remove the filter ${label}`}
          className="mr-1 rounded-sm p-1 hover:bg-hover"
          onClick={() => onChange(undefined)}
        >
          <X aria-hidden className="size-3.5" />
        </button>
      )}
    </div>
  );
}

/** A filter whose value is typed. Enter and leaving the field apply it. */
export function FilterText({
  label,
  value = "",
  onChange,
  placeholder,
}: {
  label: string;
  value: string | undefined;
  /** Undefined: the filter is off. */
  onChange: (value: string | undefined) => void;
  placeholder?: string;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const apply = (text: string) => {
    setText(text);
    if (text.trim() !== value) onChange(text.trim() || undefined);
  };
  return (
    <label
      className={classes(
        "inline-flex h-8 items-center gap-1.5 rounded-md border pl-2.5 focus-within:outline-2 focus-within:outline-accent",
        value !== "" ? "border-accent/60 bg-accent-soft" : "border-line hover:bg-hover",
      )}
    >
      {value === "" ? label : `${label}:`}
      <input
        value={text}
        onChange={({ target }) => setText(target.value)}
        onBlur={() => apply(text)}
        onKeyDown={(event) => {
          if (event.key === "Enter") apply(text);
          else if (event.key === "Escape" && text !== value) {
            event.stopPropagation();
            setText(value);
          }
        }}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        className="field-sizing-content h-full max-w-64 min-w-24 rounded-md bg-transparent pr-2 font-mono text-xs outline-none"
      />
      {value !== "" && (
        <button
          type="button"
          aria-label={`Remove the filter ${label}`}
          className="mr-1 rounded-sm p-1 hover:bg-hover"
          onClick={() => apply("")}
        >
          <X aria-hidden className="size-3.5" />
        </button>
      )}
    </label>
  );
}

/** The line of search and filters above a table, which can be kept as a view. */
export function Filters({ children }: { children: ReactNode }) {
  return (
    <search className="mb-3 flex flex-wrap items-center gap-2" aria-label="Filters">
      {children}
      <ViewsMenu />
    </search>
  );
}
