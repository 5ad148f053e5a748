import type { Credits } from "@latchkey/sdk";
import { numberProblem, type Schema } from "../../api/schema.ts";
import { Switch, TextField } from "../../ui/fields.tsx";
import { Select } from "../../ui/select.tsx";

/** A balance while it is edited. */
export interface CreditsDraft {
  readonly isLimited: boolean;
  readonly remaining: string;
  readonly interval: "none" | "daily" | "monthly";
  readonly amount: string;
  readonly day: string;
}

/** Unlimited, and what a balance begins with when it is switched on. */
export const noCredits: CreditsDraft = {
  isLimited: false,
  remaining: "1000",
  interval: "none",
  amount: "1000",
  day: "1",
};

/** A stored balance, to edit it. */
export function creditsDraft(credits: Credits | undefined): CreditsDraft {
  if (!credits) return noCredits;
  const { remaining, refill } = credits;
  return {
    isLimited: true,
    remaining: String(remaining),
    interval: refill?.interval ?? "none",
    amount: String(refill?.amount ?? remaining),
    day: String(refill?.refillDay ?? 1),
  };
}

/** The balance as an operation takes it; undefined for unlimited. `schema`: that of `credits` of an operation. */
export function creditsInput({ isLimited, remaining, interval, amount, day }: CreditsDraft, schema: Schema) {
  if (!isLimited) return {};
  const refillSchema = schema.properties!.refill!.properties!;
  const value = {
    remaining: whole(remaining),
    ...(interval !== "none" && {
      refill: { interval, amount: whole(amount), ...(interval === "monthly" && { refillDay: whole(day) }) },
    }),
  };
  const problem =
    numberProblem(schema.properties!.remaining!, value.remaining) ??
    (value.refill && numberProblem(refillSchema.amount!, value.refill.amount)) ??
    (value.refill?.refillDay !== undefined
      ? numberProblem(refillSchema.refillDay!, value.refill.refillDay)
      : undefined);
  return { value, problem };
}

function whole(text: string): number {
  return text.trim() === "" ? Number.NaN : Number(text);
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
          <Select
            label="Refill"
            value={value.interval}
            onChange={(interval) => onChange({ ...value, interval })}
            options={[
              { value: "none", label: "Never" },
              { value: "daily", label: "Daily at midnight UTC" },
              { value: "monthly", label: "Monthly" },
            ]}
          />
          {value.interval !== "none" && (
            <TextField
              label="Refill to"
              type="number"
              description="The balance after a refill."
              value={value.amount}
              onChange={(amount) => onChange({ ...value, amount })}
            />
          )}
          {value.interval === "monthly" && (
            <TextField
              label="Day of the month"
              type="number"
              description="In a shorter month, the last day."
              value={value.day}
              onChange={(day) => onChange({ ...value, day })}
            />
          )}
        </div>
      )}
      {problem && <p className="text-xs text-bad">{problem}</p>}
    </div>
  );
}
