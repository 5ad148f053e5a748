import schema from "virtual:operation/ratelimits.setOverride";
import { useState } from "react";
import { SHADOW_PROMISE, STRICT_PROMISE } from "../../api/limit-text.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { newRatelimit, ratelimitDraft, WindowFields, windowOf } from "../../ui/fields/ratelimits-field.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";

type Mode = "standard" | "strict";
/** The mode of the call, or one of the override. */
const modes = { call: "As the call says", standard: "Standard", strict: "Strict" };
/** Whether it denies calls: what the call says, or one of the override. */
const effects = { call: "As the call says", enforced: "Denies what is over", shadow: "Shadow mode: denies nothing" };

/** What an override begins with. `limit`: that of an existing one, whose identifier stays. */
export interface OverrideStart {
  readonly identifier: string;
  readonly window?: {
    readonly limit: number;
    readonly duration: number;
    readonly mode?: Mode | undefined;
    readonly shadow?: boolean | undefined;
  };
}

function effectOf(shadow: boolean | undefined): keyof typeof effects {
  if (shadow === undefined) return "call";
  return shadow ? "shadow" : "enforced";
}

/** Sets the limit of an identifier or of a pattern, for every call in a namespace. */
export function OverrideDialog({
  namespace: { id, name },
  start,
  onClose,
}: {
  namespace: { readonly id: string; readonly name: string };
  start: OverrideStart;
  onClose: () => void;
}) {
  const [identifier, setIdentifier] = useState(start.identifier);
  const [draft, setDraft] = useState(
    start.window
      ? ratelimitDraft({ ...start.window, mode: "standard", shadow: false, name: "", autoApply: false })
      : newRatelimit,
  );
  const [mode, setMode] = useState<keyof typeof modes>(start.window?.mode ?? "call");
  const [effect, setEffect] = useState<keyof typeof effects>(effectOf(start.window?.shadow));
  const { limit, duration } = windowOf(draft);
  const identifierProblem = textProblem(member(schema, "identifier"), identifier);
  const windowProblem =
    numberProblem(member(schema, "limit"), limit) ??
    (numberProblem(member(schema, "duration"), duration) && "The window must be between 1 second and 366 days.");
  const isPattern = identifier.includes("*");
  return (
    <FormDialog
      title={start.window ? `Edit the override of ${start.identifier}` : `Create override in ${name}`}
      operation="ratelimits.setOverride"
      input={{
        namespace: name,
        identifier,
        limit,
        duration,
        ...(mode !== "call" && { mode }),
        ...(effect !== "call" && { shadow: effect === "shadow" }),
      }}
      problem={(identifier === "" ? "Enter an identifier" : identifierProblem) ?? windowProblem}
      action={start.window ? "Save override" : "Create override"}
      needs={`ratelimits.${id}.set_override`}
      onClose={onClose}
      onDone={() => {
        onClose();
        toast({ text: `Set the override of ${identifier}.` });
      }}
    >
      <TextField
        label="Identifier or pattern"
        description={
          isPattern
            ? "A pattern: * matches any characters. Of several that match, the one with the most other characters holds."
            : "An exact identifier. It holds before every pattern."
        }
        value={identifier}
        onChange={setIdentifier}
        problem={identifier === "" ? undefined : identifierProblem}
        placeholder="user_4021 or partner-*"
        isMono
        isDisabled={start.window !== undefined}
        autoFocus={start.window === undefined}
      />
      <div className="grid grid-cols-[minmax(0,1fr)_minmax(0,1fr)_8rem] items-end gap-2">
        <WindowFields value={draft} onChange={(change) => setDraft({ ...draft, ...change })} />
      </div>
      <Select
        label="Mode"
        value={mode}
        onChange={setMode}
        options={(Object.keys(modes) as (keyof typeof modes)[]).map((value) => ({ value, label: modes[value] }))}
      />
      <Select
        label="Effect"
        value={effect}
        onChange={setEffect}
        options={(Object.keys(effects) as (keyof typeof effects)[]).map((value) => ({ value, label: effects[value] }))}
      />
      <p className="text-xs text-quiet">
        {windowProblem ? (
          <span className="text-bad">{windowProblem}</span>
        ) : effect === "shadow" ? (
          SHADOW_PROMISE
        ) : limit === 0 ? (
          "0 denies every call of this identifier."
        ) : (
          "It replaces the limit that calls send, at once."
        )}
        {mode === "strict" && ` Strict: ${STRICT_PROMISE.charAt(0).toLowerCase()}${STRICT_PROMISE.slice(1)}`}
      </p>
    </FormDialog>
  );
}
