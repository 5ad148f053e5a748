import schema from "virtual:operation/budgets.updateBudget";
import type { Budget } from "@latchkey/sdk";
import { type Input, useCall } from "../../api/client.ts";
import { member, textProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { InlineEditor } from "../../ui/fields/inline-edit.tsx";
import { MetadataEditor } from "../../ui/fields/metadata-editor.tsx";
import { RefillFields, refillDraft, refillInput } from "../../ui/fields/refill-field.tsx";
import { OnEmptyField, ThresholdsField, thresholdsInput } from "./budget-fields.tsx";

interface EditorProps {
  of: Budget;
  onClose: () => void;
}

/** Saves one member of a budget. */
function useBudgetUpdate({
  budgetId,
}: Budget): (field: keyof Input<"budgets.updateBudget">) => (value: unknown) => Promise<unknown> {
  const { mutateAsync } = useCall("budgets.updateBudget");
  return (field) => (value) => mutateAsync({ budgetId, [field]: value });
}

export function BudgetNameEditor({ of: budget, onClose }: EditorProps) {
  return (
    <InlineEditor
      field="name"
      draft={() => budget.name}
      change={(draft) => {
        const value = draft.trim();
        return value === budget.name ? {} : { value, problem: textProblem(member(schema, "name"), value) };
      }}
      editor={(draft, set) => <TextField label="Name" value={draft} onChange={set} autoFocus />}
      save={useBudgetUpdate(budget)("name")}
      onClose={onClose}
    />
  );
}

export function RefillEditor({ of: budget, onClose }: EditorProps) {
  const before = refillDraft(budget.refill, Math.max(0, budget.spent + budget.remaining));
  return (
    <InlineEditor
      field="refill"
      draft={() => before}
      change={(draft) => {
        if (JSON.stringify(draft) === JSON.stringify(before)) return {};
        const { value = null, problem } = refillInput(draft, member(schema, "refill"));
        return value === null && !budget.refill ? {} : { value, problem };
      }}
      editor={(draft, set) => (
        <div className="grid gap-3 sm:grid-cols-2">
          <RefillFields value={draft} onChange={set} />
        </div>
      )}
      save={useBudgetUpdate(budget)("refill")}
      onClose={onClose}
    />
  );
}

export function ThresholdsEditor({ of: budget, onClose }: EditorProps) {
  const before: readonly string[] = budget.thresholds.map(String);
  return (
    <InlineEditor
      field="thresholds"
      draft={() => before}
      change={(draft) => (draft.join() === before.join() ? {} : thresholdsInput(draft, member(schema, "thresholds")))}
      editor={(draft, set) => <ThresholdsField value={draft} onChange={set} />}
      save={useBudgetUpdate(budget)("thresholds")}
      onClose={onClose}
    />
  );
}

export function OnEmptyEditor({ of: budget, onClose }: EditorProps) {
  return (
    <InlineEditor
      field="onEmpty"
      draft={() => budget.onEmpty}
      change={(draft) => (draft === budget.onEmpty ? {} : { value: draft })}
      editor={(draft, set) => <OnEmptyField value={draft} onChange={set} />}
      save={useBudgetUpdate(budget)("onEmpty")}
      onClose={onClose}
    />
  );
}

export function BudgetMetadataEditor({ of: budget, before, onClose }: EditorProps & { before: string }) {
  return <MetadataEditor before={before} empty={{}} save={useBudgetUpdate(budget)("meta")} onClose={onClose} />;
}
