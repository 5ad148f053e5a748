import type { Plan } from "@latchkey/sdk";
import type { Refill } from "../../api/refill.ts";
import { member, numberProblem, type Schema, textProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { type RefillDraft, RefillFields, refillDraft, refillInput, whole } from "../../ui/fields/refill-field.tsx";
import { OnEmptyField, ThresholdsField, thresholdsInput } from "../budgets/budget-fields.tsx";

/** What a plan gives now, to edit it. An empty amount: nothing. */
export function balanceDraft(given: Plan["credits"]): RefillDraft {
  const refill = given?.refill && { ...given.refill, amount: given.amount };
  return { ...refillDraft(refill, 0), amount: given ? String(given.amount) : "" };
}

/** The amount and the refill as an operation takes them. `schema`: that of the balance. */
export function balanceInput(draft: RefillDraft, schema: Schema) {
  const amount = whole(draft.amount);
  const refilled = refillInput(draft, member(schema, "refill"));
  return {
    value: { amount, ...(refilled.value && { refill: withoutAmount(refilled.value) }) },
    problem: numberProblem(member(schema, "amount"), amount) ?? refilled.problem,
  };
}

/** The amount of a plan is beside its refill. */
function withoutAmount({ amount: _, ...refill }: Refill) {
  return refill;
}

/** An amount with its refill. */
export function AmountFields<Draft extends RefillDraft>({
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

/** The budget of a plan while it is edited. */
export interface BudgetDraft extends RefillDraft {
  readonly onEmpty: "deny" | "allow";
  readonly thresholds: readonly string[];
  readonly unit: string;
}

/** What a plan gives now, to edit it. */
export function budgetDraft(given: Plan["budget"]): BudgetDraft {
  const { onEmpty = "deny", thresholds = [], unit = "", ...balance } = given ?? { amount: 0 };
  return { ...balanceDraft(given && balance), onEmpty, thresholds: thresholds.map(String), unit };
}

/** The budget as an operation takes it. `schema`: that of the budget. */
export function budgetInput({ onEmpty, thresholds, unit, ...draft }: BudgetDraft, schema: Schema) {
  const balance = balanceInput(draft, schema);
  const marks = thresholdsInput(thresholds, member(schema, "thresholds"));
  const unitProblem = unit === "" ? undefined : textProblem(member(schema, "unit"), unit);
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

export function BudgetFields({
  value,
  onChange,
  description,
  isNew,
}: {
  value: BudgetDraft;
  onChange: (value: BudgetDraft) => void;
  description: string;
  /** Whether its unit can be chosen. */
  isNew: boolean;
}) {
  return (
    <div className="space-y-3">
      <AmountFields value={value} onChange={onChange} description={description} />
      {isNew && (
        <TextField
          label="Unit"
          description="What a credit is, such as usd_micro or token. It never changes. Empty: none."
          value={value.unit}
          onChange={(unit) => onChange({ ...value, unit })}
          isMono
        />
      )}
      <ThresholdsField value={value.thresholds} onChange={(thresholds) => onChange({ ...value, thresholds })} />
      <OnEmptyField value={value.onEmpty} onChange={(onEmpty) => onChange({ ...value, onEmpty })} />
    </div>
  );
}
