import { Pencil } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Button, IconButton } from "./button.tsx";
import { ErrorBox } from "./error-box.tsx";

/** What an edit sends. `value` undefined: nothing, because it is what it was. */
export interface Change {
  readonly value?: unknown;
  /** Why it cannot be sent. */
  readonly problem?: string | undefined;
}

/**
 * A value that is edited in place. Before it is saved, one line says what is sent: the new value, null (which removes
 * it), or nothing.
 */
export function InlineEdit<Draft>({
  label,
  field,
  display,
  draft: makeDraft,
  change: changeOf,
  editor,
  save,
  needs,
}: {
  /** What is edited, for readers of the screen: `name`. */
  label: string;
  /** The member of the input: `externalId`. */
  field: string;
  display: ReactNode;
  /** What the editor begins with. */
  draft: () => Draft;
  change: (draft: Draft) => Change;
  editor: (draft: Draft, set: (draft: Draft) => void) => ReactNode;
  save: (value: unknown) => Promise<unknown>;
  needs: string;
}) {
  const [draft, setDraft] = useState<{ value: Draft }>();
  const [state, setState] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  if (!draft) {
    return (
      <div className="flex items-start justify-between gap-2">
        <div className="min-w-0 flex-1">{display}</div>
        <IconButton
          label={`Edit ${label}`}
          needs={needs}
          className="!size-6 [&_svg]:!size-3.5"
          onPress={() => {
            setState({ isPending: false });
            setDraft({ value: makeDraft() });
          }}
        >
          <Pencil aria-hidden />
        </IconButton>
      </div>
    );
  }
  const { value, problem } = changeOf(draft.value);
  const submit = async () => {
    setState({ isPending: true });
    try {
      await save(value);
      setDraft(undefined);
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return (
    <div className="space-y-3 py-1">
      {editor(draft.value, (value) => setDraft({ value }))}
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
          onPress={() => void submit()}
          isPending={state.isPending}
          offBecause={problem ?? (value === undefined && "Nothing has changed")}
        >
          Save
        </Button>
        <Button onPress={() => setDraft(undefined)}>Cancel</Button>
      </div>
    </div>
  );
}

function short(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
