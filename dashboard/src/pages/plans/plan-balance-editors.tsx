import schema from "virtual:operation/plans.updatePlan";
import type { Plan } from "@latchkey/sdk";
import { member, numberProblem, type Schema, textProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import type { Change } from "../../ui/fields/inline-edit.tsx";
import { type RefillDraft, RefillFields, refillDraft, refillInput, whole } from "../../ui/fields/refill-field.tsx";
import { OnEmptyField, ThresholdsField, thresholdsInput } from "../budgets/budget-fields.tsx";
import { type EditorProps, PlanEditor } from "./plan-editors.tsx";

/** What a plan has now, to edit it. An empty amount: nothing. */
function balanceDraft(given: Plan["credits"]): RefillDraft {
  const refill = given?.refill && { ...given.refill, amount: given.amount };
  return { ...refillDraft(refill, 0), amount: given ? String(given.amount) : "" };
}

/** The amount and the refill as an operation takes them. */
function balanceInput(draft: RefillDraft, schema: Schema) {
  const amount = whole(draft.amount);
  const refilled = refillInput(draft, member(schema, "refill"));
  const { amount: _, ...refill } = refilled.value ?? {};
  return {
    value: { amount, ...(refilled.value && { refill }) },
    problem: numberProblem(member(schema, "amount"), amount) ?? refilled.problem,
  };
}

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

function AmountFields<Draft extends RefillDraft>({
  value,
  onChange,
  description,
}: {
  value: Draft;
  onChange: (value: Draft) => void;
  description: string;
}) {
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <TextField
        label="Amount"
        type="number"
        description={description}
        value={value.amount}
        onChange={(amount) => onChange({ ...value, amount })}
      />
      <RefillFields value={value} onChange={onChange} isAmountAbove />
    </div>
  );
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

interface BudgetDraft extends RefillDraft {
  readonly onEmpty: "deny" | "allow";
  readonly thresholds: readonly string[];
  readonly unit: string;
}

function budgetInput({ onEmpty, thresholds, unit, ...draft }: BudgetDraft) {
  const ofBudget = member(schema, "budget");
  const balance = balanceInput(draft, ofBudget);
  const marks = thresholdsInput(thresholds, member(ofBudget, "thresholds"));
  const unitProblem = unit === "" ? undefined : textProblem(member(ofBudget, "unit"), unit);
  return {
    value: {
      ...balance.value,
      onEmpty,
      thresholds: marks.value,
      ...(unit !== "" && { unit }),
    },
    problem: balance.problem ?? marks.problem ?? unitProblem,
  };
}

export function PlanBudgetEditor({ of: plan, onClose }: EditorProps) {
  const { onEmpty = "deny", thresholds = [], unit = "", ...balance } = plan.budget ?? { amount: 0 };
  const before: BudgetDraft = {
    ...balanceDraft(plan.budget && balance),
    onEmpty,
    thresholds: thresholds.map(String),
    unit,
  };
  return (
    <PlanEditor
      plan={plan}
      field="budget"
      before={before}
      change={(draft) => changeOf(before, draft, () => budgetInput(draft))}
      editor={(draft, set) => (
        <div className="space-y-3">
          <AmountFields
            value={draft}
            onChange={set}
            description="Of each identity, for all its keys. A new one counts from the next refill. Empty: none."
          />
          {plan.budget === undefined && (
            <TextField
              label="Unit"
              description="What a credit is, such as usd_micro or token. It never changes. Empty: none."
              value={draft.unit}
              onChange={(unit) => set({ ...draft, unit })}
              isMono
            />
          )}
          <ThresholdsField value={draft.thresholds} onChange={(thresholds) => set({ ...draft, thresholds })} />
          <OnEmptyField value={draft.onEmpty} onChange={(onEmpty) => set({ ...draft, onEmpty })} />
        </div>
      )}
      onClose={onClose}
    />
  );
}
