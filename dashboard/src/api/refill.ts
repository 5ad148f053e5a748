import type { Credits } from "@latchkey/sdk";
import { instantAt } from "../../../engine/src/clock/clock.ts";
import { nextDue } from "../../../engine/src/rules/refill.ts";
import { exactNumber } from "./format.ts";

export type Refill = NonNullable<Credits["refill"]>;

const REFILLS_SHOWN = 3;

export const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
export const MONTHS = Array.from({ length: 12 }, (_, month) =>
  new Date(Date.UTC(2000, month)).toLocaleString("en", { month: "long", timeZone: "UTC" }),
);

/** When a refill is due, such as `Weekly on Monday (Europe/Berlin)`. */
function refillWords({ interval, refillDay = 1, refillMonth = 1, timeZone }: Refill): string {
  const day = {
    hourly: "",
    daily: "",
    weekly: ` on ${WEEKDAYS[refillDay - 1]}`,
    monthly: ` on day ${refillDay}`,
    yearly: ` on ${MONTHS[refillMonth - 1]} ${refillDay}`,
  }[interval];
  return `${interval.charAt(0).toUpperCase()}${interval.slice(1)}${day}${timeZone === undefined ? "" : ` (${timeZone})`}`;
}

/** A refill in one sentence: when it is due, and what it does. */
export function refillText(refill: Refill): string {
  const { amount, rollover } = refill;
  const effect =
    rollover === undefined
      ? `set to ${exactNumber(amount)}.`
      : `raised by ${exactNumber(amount)}; at most ${exactNumber(rollover)} of what is left is kept.`;
  return `${refillWords(refill)} it is ${effect}`;
}

/** The next times of a refill. */
export function nextRefills(refill: Refill): number[] {
  const times: number[] = [];
  for (let now = instantAt(Date.now()); times.length < REFILLS_SHOWN; times.push(now)) now = nextDue(refill, now);
  return times;
}
