import type { Credits } from "@latchkey/sdk";
import { member, numberProblem, type Schema } from "../../api/schema.ts";
import { Switch, TextField } from "../../ui/fields/fields.tsx";
import { type RefillDraft, RefillFields, refillDraft, refillInput, whole } from "../../ui/fields/refill-field.tsx";

/** A balance while it is edited. */
export interface CreditsDraft extends RefillDraft {
  readonly isLimited: boolean;
  readonly remaining: string;
}

const REMAINING = 1_000;

/** Unlimited, and what a balance begins with when it is switched on. */
export const noCredits: CreditsDraft = {
  isLimited: false,
  remaining: String(REMAINING),
  ...refillDraft(undefined, REMAINING),
};

/** A stored balance, to edit it. */
export function creditsDraft(credits: Credits | undefined): CreditsDraft {
  if (!credits) return noCredits;
  const { remaining, refill } = credits;
  return { isLimited: true, remaining: String(remaining), ...refillDraft(refill, remaining) };
}

/** The balance as an operation takes it; undefined for unlimited. `schema`: that of `credits` of an operation. */
export function creditsInput(draft: CreditsDraft, schema: Schema) {
  if (!draft.isLimited) return {};
  const refill = refillInput(draft, member(schema, "refill"));
  const value = { remaining: whole(draft.remaining), ...(refill.value && { refill: refill.value }) };
  return { value, problem: numberProblem(member(schema, "remaining"), value.remaining) ?? refill.problem };
}

/** A balance of credits with its refill. */
export function CreditsField({
  value,
  onChange,
  problem,
}: {
  value: CreditsDraft;
  onChange: (value: CreditsDraft) => void;
  problem?: string | undefined;
}) {
  return (
    <div className="space-y-3">
      <Switch
        label="A balance of credits"
        description="Each verification costs 1, or what it names. Off: unlimited."
        value={value.isLimited}
        onChange={(isLimited) => onChange({ ...value, isLimited })}
      />
      {value.isLimited && (
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField
            label="Remaining credits"
            type="number"
            value={value.remaining}
            onChange={(remaining) => onChange({ ...value, remaining })}
          />
          <RefillFields value={value} onChange={onChange} />
        </div>
      )}
      {problem && <p className="text-xs text-bad">{problem}</p>}
    </div>
  );
}
