import { X } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import {
  Switch as AriaSwitch,
  TextField as AriaTextField,
  Button,
  FieldError,
  Input,
  Label,
  Text,
  TextArea,
} from "react-aria-components";
import { classes } from "../classes.ts";
import { TextWithCode } from "../text/text-with-code.tsx";

/** The look of a field. */
export const box =
  "w-full rounded-md border border-edge bg-raised px-2.5 text-ink placeholder:text-quiet disabled:bg-field disabled:text-quiet data-invalid:border-bad";

interface Described {
  label: string;
  description?: string | undefined;
  /** Why the value cannot be used. */
  problem?: string | undefined;
  isRequired?: boolean;
  isDisabled?: boolean;
}

/** The texts around a field. */
function Around({ label, description, problem, children }: Described & { children: ReactNode }) {
  return (
    <>
      <Label className="label">{label}</Label>
      {children}
      {description && (
        <Text slot="description" className="text-xs text-quiet">
          <TextWithCode text={description} />
        </Text>
      )}
      <FieldError className="text-xs text-bad">{problem}</FieldError>
    </>
  );
}

/** A line of text, or several with `lines`. */
export function TextField({
  value,
  onChange,
  type = "text",
  placeholder,
  isMono = false,
  lines,
  autoFocus = false,
  onEnter,
  ...texts
}: Described & {
  value: string;
  onChange: (value: string) => void;
  type?: "text" | "password" | "number" | "datetime-local";
  placeholder?: string | undefined;
  isMono?: boolean;
  lines?: number;
  autoFocus?: boolean;
  onEnter?: () => void;
}) {
  const look = classes(box, isMono && "font-mono text-xs");
  return (
    <AriaTextField
      value={value}
      onChange={onChange}
      isInvalid={texts.problem !== undefined}
      isDisabled={texts.isDisabled ?? false}
      isRequired={texts.isRequired ?? false}
      validationBehavior="aria"
      autoFocus={autoFocus}
      className="flex flex-col gap-1"
    >
      <Around {...texts}>
        {lines === undefined ? (
          <Input
            type={type}
            className={classes(look, "h-8")}
            {...(placeholder !== undefined && { placeholder })}
            autoComplete="off"
            spellCheck={false}
            {...(onEnter && { onKeyDown: (event: KeyboardEvent) => event.key === "Enter" && onEnter() })}
          />
        ) : (
          <TextArea
            rows={lines}
            className={classes(look, "resize-y py-1.5")}
            placeholder={placeholder}
            spellCheck={false}
          />
        )}
      </Around>
    </AriaTextField>
  );
}

/** A yes or no. */
export function Switch({
  label,
  description,
  value,
  onChange,
  isDisabled = false,
}: {
  label: string;
  description?: string | undefined;
  value: boolean;
  onChange: (value: boolean) => void;
  isDisabled?: boolean;
}) {
  const id = useId();
  return (
    <AriaSwitch
      isSelected={value}
      onChange={onChange}
      isDisabled={isDisabled}
      {...(description && { "aria-describedby": id })}
      className="group flex items-start gap-2.5 data-disabled:text-quiet"
    >
      <span className="mt-0.5 inline-flex h-4.5 w-8 shrink-0 items-center rounded-full border border-edge bg-field p-0.5 transition-colors duration-120 group-data-selected:border-accent group-data-selected:bg-accent">
        <span className="size-3 rounded-full bg-edge transition-transform duration-120 group-data-selected:translate-x-3.5 group-data-selected:bg-on-accent" />
      </span>
      <span>
        {label}
        {description && (
          <span id={id} className="block text-xs text-quiet">
            <TextWithCode text={description} />
          </span>
        )}
      </span>
    </AriaSwitch>
  );
}

/** Several short texts. Enter, a comma and a space end one; Backspace removes the last. */
export function TagsField({
  value,
  onChange,
  placeholder,
  suggestions,
  ...texts
}: Described & {
  value: readonly string[];
  onChange: (value: string[]) => void;
  placeholder?: string;
  suggestions?: readonly string[];
}) {
  const [text, setText] = useState("");
  const listId = useId();
  const add = (added: string) => {
    const names = added.split(/[\s,]+/).filter((name) => name !== "" && !value.includes(name));
    if (names.length > 0) onChange([...value, ...new Set(names)]);
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === "," || event.key === " ") {
      if (text === "" && event.key === "Enter") return;
      event.preventDefault();
      add(text);
    } else if (event.key === "Backspace" && text === "") {
      onChange(value.slice(0, -1));
    }
  };
  return (
    <AriaTextField
      value={text}
      // A pasted list has separators too.
      onChange={(text) => (/[\s,]/.test(text) ? add(text) : setText(text))}
      onBlur={() => add(text)}
      isInvalid={texts.problem !== undefined}
      isDisabled={texts.isDisabled ?? false}
      className="flex flex-col gap-1"
    >
      <Around {...texts}>
        <div
          className={classes(
            box,
            "flex min-h-8 flex-wrap items-center gap-1 py-1 focus-within:outline-2 focus-within:outline-accent",
          )}
        >
          {value.map((name) => (
            <span key={name} className="inline-flex items-center gap-0.5 rounded-sm bg-field pl-1.5 font-mono text-xs">
              {name}
              <Button
                slot={null}
                aria-label={`Remove ${name}`}
                className="rounded-sm p-1 hover:bg-hover"
                onPress={() => onChange(value.filter((other) => other !== name))}
              >
                <X aria-hidden className="size-3" />
              </Button>
            </span>
          ))}
          <Input
            className="min-w-24 flex-1 bg-transparent font-mono text-xs outline-none"
            {...(value.length === 0 && placeholder !== undefined && { placeholder })}
            onKeyDown={onKeyDown}
            // Also while there are none yet: the role of the field must not change while one types.
            {...(suggestions && { list: listId })}
            autoComplete="off"
            spellCheck={false}
          />
          {suggestions && (
            <datalist id={listId}>
              {suggestions.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          )}
        </div>
      </Around>
    </AriaTextField>
  );
}
