import { type ComponentProps, type FormEvent, type KeyboardEvent, type ReactNode, useState } from "react";
import { Button } from "../button.tsx";
import { ErrorBox } from "../text/error-box.tsx";
import { useUnsaved } from "../unsaved.ts";
import { EditInPlace } from "./edit-in-place.tsx";

/** What an edit sends. `value` undefined: nothing, because it is what it was. */
export interface Change {
  readonly value?: unknown;
  /** Why it cannot be sent. */
  readonly problem?: string | undefined;
}

interface Edit<Draft> {
  /** The member of the input: `externalId`. */
  field: string;
  /** What the editor begins with. */
  draft: () => Draft;
  change: (draft: Draft) => Change;
  editor: (draft: Draft, set: (draft: Draft) => void) => ReactNode;
  save: (value: unknown) => Promise<unknown>;
}

/** A value that is edited in place. */
export function InlineEdit<Draft>({
  label,
  display,
  needs,
  ...edit
}: Edit<Draft> & Omit<ComponentProps<typeof EditInPlace>, "editor">) {
  return (
    <EditInPlace
      label={label}
      display={display}
      needs={needs}
      editor={(onClose) => <InlineEditor {...edit} onClose={onClose} />}
    />
  );
}

/**
 * The editor of one value. Before it is saved, one line says what is sent: the new value, null (which removes it), or
 * nothing. Enter saves, Escape cancels.
 */
export function InlineEditor<Draft>({
  field,
  draft: makeDraft,
  change: changeOf,
  editor,
  save,
  onClose,
}: Edit<Draft> & { onClose: () => void }) {
  const [draft, setDraft] = useState(makeDraft);
  const [state, setState] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  const { value, problem } = changeOf(draft);
  useUnsaved(value !== undefined || problem !== undefined);
  const submit = async () => {
    setState({ isPending: true });
    try {
      await save(value);
      onClose();
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if ((event.nativeEvent as SubmitEvent).submitter && !state.isPending) void submit();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    // The panel around it stays open.
    event.stopPropagation();
    onClose();
  };
  return (
    <form className="space-y-3 py-1" onSubmit={onSubmit} onKeyDown={onKeyDown}>
      {editor(draft, setDraft)}
      <p className="text-xs text-quiet" aria-live="polite">
        {problem ? (
          <span className="text-bad">{problem}</span>
        ) : value === undefined ? (
          "It is what it was: nothing is sent."
        ) : (
          <>
            Sends <code className="font-mono text-ink">{`"${field}": ${short(value)}`}</code>
            {value === null && ", which removes it"}
          </>
        )}
      </p>
      {state.error !== undefined && <ErrorBox error={state.error} />}
      <div className="flex gap-2">
        <Button
          kind="primary"
          type="submit"
          isPending={state.isPending}
          offBecause={problem ?? (value === undefined && "Nothing has changed")}
        >
          Save
        </Button>
        <Button onPress={onClose}>Cancel</Button>
      </div>
    </form>
  );
}

function short(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
