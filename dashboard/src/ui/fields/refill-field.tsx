import { MONTHS, type Refill, WEEKDAYS } from "../../api/refill.ts";
import { member, numberProblem, type Schema } from "../../api/schema.ts";
import { TextField } from "./fields.tsx";
import { Select } from "./select.tsx";

/** A refill while it is edited. */
export interface RefillDraft {
  readonly interval: "none" | Refill["interval"];
  readonly amount: string;
  readonly day: string;
  readonly month: string;
  /** Empty: UTC. */
  readonly timeZone: string;
  /** Empty: nothing is kept. */
  readonly rollover: string;
}

/** Those with a day. */
const hasDay = (interval: string) => interval === "weekly" || interval === "monthly" || interval === "yearly";

/** A stored refill, to edit it. `amount`: what a new one begins with. */
export function refillDraft(refill: Refill | undefined, amount: number): RefillDraft {
  return {
    interval: refill?.interval ?? "none",
    amount: String(refill?.amount ?? amount),
    day: String(refill?.refillDay ?? 1),
    month: String(refill?.refillMonth ?? 1),
    timeZone: refill?.timeZone ?? "",
    rollover: refill?.rollover === undefined ? "" : String(refill.rollover),
  };
}

/** The refill as an operation takes it; undefined for none. `schema`: that of `refill` of an operation. */
export function refillInput(
  draft: RefillDraft,
  schema: Schema,
): { value?: Refill | undefined; problem?: string | undefined } {
  const { interval, amount, day, month, rollover } = draft;
  if (interval === "none") return {};
  const timeZone = interval === "hourly" ? "" : draft.timeZone.trim();
  const value: Refill = {
    interval,
    amount: whole(amount),
    ...(hasDay(interval) && { refillDay: whole(day) }),
    ...(interval === "yearly" && { refillMonth: whole(month) }),
    ...(timeZone !== "" && { timeZone }),
    ...(rollover.trim() !== "" && { rollover: whole(rollover) }),
  };
  const problem = (["amount", "refillDay", "rollover"] as const)
    .map((name) => {
      const number = value[name];
      // The amount of a plan is beside its refill.
      const isPart = number !== undefined && schema.properties?.[name] !== undefined;
      return isPart ? numberProblem(member(schema, name), number) : undefined;
    })
    .find((found) => found !== undefined);
  return { value, problem };
}

/** The number that was entered. */
export function whole(text: string): number {
  return text.trim() === "" ? Number.NaN : Number(text);
}

/** When a balance is refilled, and with how much. */
export function RefillFields<Draft extends RefillDraft>({
  value,
  onChange,
  isAmountAbove = false,
}: {
  value: Draft;
  onChange: (value: Draft) => void;
  /** Whether the amount is edited in a field before these. */
  isAmountAbove?: boolean;
}) {
  const { interval } = value;
  return (
    <>
      <Select
        label="Refill"
        value={interval}
        onChange={(interval) => {
          const isOfWeek = interval === "weekly" && Number(value.day) > 7;
          onChange({ ...value, interval, ...(isOfWeek && { day: "1" }) });
        }}
        options={[
          { value: "none", label: "Never" },
          { value: "hourly", label: "Hourly" },
          { value: "daily", label: "Daily" },
          { value: "weekly", label: "Weekly" },
          { value: "monthly", label: "Monthly" },
          { value: "yearly", label: "Yearly" },
        ]}
      />
      {interval !== "none" && (
        <>
          {!isAmountAbove && (
            <TextField
              label="Refill amount"
              type="number"
              description={value.rollover.trim() === "" ? "The balance after a refill." : "What a refill adds."}
              value={value.amount}
              onChange={(amount) => onChange({ ...value, amount })}
            />
          )}
          {interval === "yearly" && (
            <Select
              label="Month"
              value={value.month}
              onChange={(month) => onChange({ ...value, month })}
              options={MONTHS.map((label, month) => ({ value: String(month + 1), label }))}
            />
          )}
          {interval === "weekly" && (
            <Select
              label="Day of the week"
              value={value.day}
              onChange={(day) => onChange({ ...value, day })}
              options={WEEKDAYS.map((label, day) => ({ value: String(day + 1), label }))}
            />
          )}
          {(interval === "monthly" || interval === "yearly") && (
            <TextField
              label="Day of the month"
              type="number"
              description="In a shorter month, the last day."
              value={value.day}
              onChange={(day) => onChange({ ...value, day })}
            />
          )}
          {interval !== "hourly" && (
            <TextField
              label="Time zone"
              description="Whose midnight counts, such as Europe/Berlin. Empty: UTC."
              value={value.timeZone}
              onChange={(timeZone) => onChange({ ...value, timeZone })}
            />
          )}
          <TextField
            label="Keep at most"
            type="number"
            description="Of what is left at a refill. Empty: nothing."
            value={value.rollover}
            onChange={(rollover) => onChange({ ...value, rollover })}
          />
        </>
      )}
    </>
  );
}
