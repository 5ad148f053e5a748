import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import {
  hasDay,
  nextDue,
  type Refill,
  refillIntervals,
  refillOf,
  type StoredBalance,
} from "../../../../engine/src/rules/refill.ts";
import { isTimeZone } from "../../../../engine/src/rules/time-zone.ts";
import { CREDITS_MAX, integer, text } from "../../platform/vocabulary/schema.ts";

const TIME_ZONE_LENGTH_MAX = 64;

export const RefillInput = z
  .strictObject({
    interval: z.enum(refillIntervals).describe("At the start of each hour, or of a day at midnight."),
    amount: integer(1, CREDITS_MAX).describe("The balance after a refill."),
    refillDay: integer(1, 31)
      .optional()
      .describe(
        "With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a " +
          "shorter month, the last day. Omitted: 1.",
      ),
    refillMonth: integer(1, 12).optional().describe("With `yearly`: the month. Omitted: January."),
    timeZone: text(1, TIME_ZONE_LENGTH_MAX)
      .optional()
      .describe(
        "The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with " +
          "`hourly`. Omitted: UTC.",
      ),
    rollover: integer(1, CREDITS_MAX)
      .optional()
      .describe(
        "The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted: " +
          "nothing is kept.",
      ),
  })
  .describe("Sets the balance to an amount at regular intervals.");

/** The refill of a plan, whose amount is that of its credits. */
export const PlanRefillInput = RefillInput.omit({ amount: true });

export type RefillInput = z.output<typeof RefillInput>;

export const CreditsCreate = z.strictObject({
  remaining: integer(0, CREDITS_MAX).nullable().describe("Remaining credits. Null: unlimited."),
  refill: RefillInput.nullish(),
});

export const CreditsUpdate = z.strictObject({
  remaining: integer(0, CREDITS_MAX).nullish().describe("The new balance. Null: unlimited, without a refill."),
  refill: RefillInput.nullish().describe("The new refill. Null: no refill. The balance does not change."),
});

const RefillOutput = z.strictObject({
  interval: z.enum(refillIntervals),
  amount: z.int(),
  refillDay: z.int().optional(),
  refillMonth: z.int().optional(),
  timeZone: z.string().optional(),
  rollover: z.int().optional(),
});

export const CreditsOutput = z
  .strictObject({ remaining: z.int(), refill: RefillOutput.optional() })
  .meta({ id: "Credits", description: "A balance of credits." });

/** The refill of a plan as the API returns it. */
export const PlanRefillOutput = RefillOutput.omit({ amount: true });

/** A balance, and when it is refilled. */
export const CreditsState = z.strictObject({
  remaining: z.int(),
  refill: RefillOutput.extend({
    nextAt: z.int().describe("When the next refill is due, Unix time in milliseconds."),
  }).optional(),
});

/** Why refills of other kinds than those of the first release cannot be stored. */
export const OLDER_PROGRAMS =
  "Another node runs an earlier release, which would misread this refill, or is starting. " +
  "Upgrade every node, then send the request again.";

/** Why a refill of valid shape is not allowed, as a sentence; undefined if it is allowed. */
export function refillError(
  refill: RefillInput | null | undefined,
  unlimited: boolean,
  member = "credits.refill",
): string | undefined {
  if (!refill) return undefined;
  if (unlimited) return "A refill needs a balance: set credits.remaining to a number, or leave credits.refill out.";
  const { interval, amount, refillDay, refillMonth, timeZone, rollover } = refill;
  const misplaced = (name: string) => `${member}.${name} must not be provided when the refill interval is ${interval}.`;
  if (refillDay !== undefined && !hasDay(interval)) return misplaced("refillDay");
  if (refillMonth !== undefined && interval !== "yearly") return misplaced("refillMonth");
  if (timeZone !== undefined && interval === "hourly") return misplaced("timeZone");
  if (interval === "weekly" && refillDay !== undefined && refillDay > 7) {
    return `${member}.refillDay of a weekly refill must be a day of the week, 1 (Monday) to 7 (Sunday).`;
  }
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    return `${member}.timeZone must be the name of a time zone in the IANA database, such as Europe/Berlin.`;
  }
  if (rollover !== undefined && rollover + amount > CREDITS_MAX) {
    return `${member}.rollover and amount together must not exceed ${CREDITS_MAX}, the maximum of a balance.`;
  }
  return undefined;
}

/** The columns of a refill. Its first due time is after `now`. */
export function refillColumns(refill: RefillInput | null | undefined, now: Instant) {
  const columns = {
    refill_interval: refill?.interval ?? null,
    refill_amount: refill?.amount ?? null,
    refill_day: refill && hasDay(refill.interval) ? (refill.refillDay ?? 1) : null,
    refill_month: refill?.interval === "yearly" ? (refill.refillMonth ?? 1) : null,
    refill_zone: refill?.timeZone ?? null,
    refill_rollover: refill?.rollover ?? null,
  };
  const rule: Refill | undefined = refillOf(columns);
  return { ...columns, refill_due_at: rule ? nextDue(rule, now) : null, refill_mark: null };
}

/**
 * The columns of a new balance of a pool that had none. Its period is none of a balance that the pool had before, so that holds
 * of that one give nothing back to it.
 */
export function newBalanceColumns(now: Instant) {
  return { ...refillColumns(null, now), period: now };
}

/** A balance as the API returns it. */
export function toCreditsOutput(balance: StoredBalance): z.input<typeof CreditsOutput> {
  const refill = refillOf(balance);
  return { remaining: balance.remaining, ...(refill && { refill }) };
}
