import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { StoredBalance } from "../../../../engine/src/rules/refill.ts";
import { nextDue, type Refill } from "../../../../engine/src/rules/refill.ts";
import { CREDITS_MAX, integer } from "../../platform/vocabulary/schema.ts";

const RefillInput = z
  .strictObject({
    interval: z.enum(["daily", "monthly"]).describe("Daily at midnight UTC, or monthly."),
    amount: integer(1, CREDITS_MAX).describe("The balance after a refill."),
    refillDay: integer(1, 31)
      .optional()
      .describe("With `monthly`: the day of the month. In a shorter month, the last day. Omitted: the 1st."),
  })
  .describe("Sets the balance to an amount at regular intervals.");

export type RefillInput = z.output<typeof RefillInput>;

export const CreditsCreate = z.strictObject({
  remaining: integer(0, CREDITS_MAX).nullable().describe("Remaining credits. Null: unlimited."),
  refill: RefillInput.nullish(),
});

export const CreditsUpdate = z.strictObject({
  remaining: integer(0, CREDITS_MAX).nullish().describe("The new balance. Null: unlimited, without a refill."),
  refill: RefillInput.nullish().describe("The new refill. Null: no refill. The balance does not change."),
});

export const CreditsOutput = z
  .strictObject({
    remaining: z.int(),
    refill: z
      .strictObject({ interval: z.enum(["daily", "monthly"]), amount: z.int(), refillDay: z.int().optional() })
      .optional(),
  })
  .meta({ id: "Credits", description: "A balance of credits." });

/** A balance, and when it is refilled. */
export const CreditsState = z.strictObject({
  remaining: z.int(),
  refill: z
    .strictObject({
      interval: z.enum(["daily", "monthly"]),
      amount: z.int(),
      refillDay: z.int().optional(),
      nextAt: z.int().describe("When the balance is next set to `amount`, Unix time in milliseconds."),
    })
    .optional(),
});

/** Why a refill of valid shape is not allowed, as a sentence; undefined if it is allowed. */
export function refillError(refill: RefillInput | null | undefined, unlimited: boolean): string | undefined {
  if (!refill) return undefined;
  if (unlimited) return "A refill needs a balance: set credits.remaining to a number, or leave credits.refill out.";
  if (refill.interval === "daily" && refill.refillDay !== undefined) {
    return "credits.refill.refillDay must not be provided when the refill interval is daily.";
  }
  return undefined;
}

/** The columns of a refill. Its first due time is after `now`. */
export function refillColumns(refill: RefillInput | null | undefined, now: Instant) {
  if (!refill) return { refill_interval: null, refill_amount: null, refill_day: null, refill_due_at: null };
  const rule: Refill =
    refill.interval === "daily"
      ? { interval: "daily", amount: refill.amount }
      : { interval: "monthly", amount: refill.amount, refillDay: refill.refillDay ?? 1 };
  return {
    refill_interval: rule.interval,
    refill_amount: rule.amount,
    refill_day: rule.interval === "monthly" ? rule.refillDay : null,
    refill_due_at: nextDue(rule, now),
  };
}

/** A balance as the API returns it. */
export function toCreditsOutput(balance: StoredBalance): z.input<typeof CreditsOutput> {
  const { remaining, refill_interval: interval, refill_amount: amount, refill_day: refillDay } = balance;
  if (interval === null || amount === null) return { remaining };
  return { remaining, refill: { interval, amount, ...(refillDay !== null && { refillDay }) } };
}
