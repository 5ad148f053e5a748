import schema from "virtual:operation/plans.updatePlan";
import { member } from "../../api/schema.ts";
import type { Change } from "../../ui/fields/inline-edit.tsx";
import type { RefillDraft } from "../../ui/fields/refill-field.tsx";
import {
  AmountFields,
  BudgetFields,
  balanceDraft,
  balanceInput,
  budgetDraft,
  budgetInput,
} from "./plan-balance-fields.tsx";
import { type EditorProps, PlanEditor } from "./plan-editors.tsx";

/** Null, which removes it, for an empty amount. */
function changeOf(
  before: RefillDraft,
  draft: RefillDraft,
  input: () => { value: object; problem?: string | undefined },
): Change {
  if (JSON.stringify(draft) === JSON.stringify(before)) return {};
  if (draft.amount.trim() !== "") return input();
  return before.amount === "" ? {} : { value: null };
}

export function PlanCreditsEditor({ of: plan, onClose }: EditorProps) {
  const before = balanceDraft(plan.credits);
  return (
    <PlanEditor
      plan={plan}
      field="credits"
      before={before}
      change={(draft) => changeOf(before, draft, () => balanceInput(draft, member(schema, "credits")))}
      editor={(draft, set) => (
        <AmountFields
          value={draft}
          onChange={set}
          description="Of each key, or of its reroll chain. A new one counts from the next refill. Empty: none."
        />
      )}
      onClose={onClose}
    />
  );
}

export function PlanBudgetEditor({ of: plan, onClose }: EditorProps) {
  const before = budgetDraft(plan.budget);
  return (
    <PlanEditor
      plan={plan}
      field="budget"
      before={before}
      change={(draft) => changeOf(before, draft, () => budgetInput(draft, member(schema, "budget")))}
      editor={(draft, set) => (
        <BudgetFields
          value={draft}
          onChange={set}
          description="Of each identity, for all its keys. A new one counts from the next refill. Empty: none."
          isNew={plan.budget === undefined}
        />
      )}
      onClose={onClose}
    />
  );
}
