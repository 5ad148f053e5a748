import { InlineEditor } from "../../ui/fields/inline-edit.tsx";
import { BudgetField } from "./budget-field.tsx";

/** The editor of the budget of a key or an identity. */
export function BudgetEditor({
  budgetId = "",
  save,
  onClose,
}: {
  budgetId: string | undefined;
  save: (budgetId: string | null) => Promise<unknown>;
  onClose: () => void;
}) {
  return (
    <InlineEditor
      field="budgetId"
      draft={() => budgetId}
      change={(draft) => (draft === budgetId ? {} : { value: draft === "" ? null : draft })}
      editor={(draft, set) => <BudgetField value={draft} onChange={set} />}
      save={(value) => save(value as string | null)}
      onClose={onClose}
    />
  );
}
