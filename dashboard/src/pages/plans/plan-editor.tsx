import { InlineEditor } from "../../ui/fields/inline-edit.tsx";
import { PlanField } from "./plan-field.tsx";

/** The editor of the plan of a key or an identity. */
export function PlanEditor({
  plan = "",
  save,
  onClose,
}: {
  plan: string | undefined;
  save: (plan: string | null) => Promise<unknown>;
  onClose: () => void;
}) {
  return (
    <InlineEditor
      field="plan"
      draft={() => plan}
      change={(draft) => (draft === plan ? {} : { value: draft === "" ? null : draft })}
      editor={(draft, set) => <PlanField value={draft} onChange={set} />}
      save={(value) => save(value as string | null)}
      onClose={onClose}
    />
  );
}
