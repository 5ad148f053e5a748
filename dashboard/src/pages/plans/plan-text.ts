import type { Plan } from "@latchkey/sdk";
import type { Data } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { limitText } from "../../api/limit-text.ts";
import { refillText } from "../../api/refill.ts";

/** What an update of a plan would do. */
export type Preview = Data<"plans.previewUpdate">;
type Change = Preview["changes"][number];
type Value = NonNullable<Change["before"]>;

const fields: Record<Change["field"], string> = {
  ratelimits: "Limit",
  concurrency: "Calls at once of",
  credits: "Credits",
  budget: "Budget",
  permissions: "Permissions",
  roles: "Roles",
};

/** What a plan gives, in one line. */
export function planText({ ratelimits, concurrency = [], credits, budget, permissions, roles }: Plan): string {
  const parts = [
    ...ratelimits.map((limit) => `${limit.name}: ${limitText(limit)}`),
    ...concurrency.map(({ name, limit }) => `${name}: ${exactNumber(limit)} at once`),
    ...(credits ? [[counted(credits.amount, "credit"), credits.refill?.interval].filter(Boolean).join(" ")] : []),
    ...(budget ? [["budget of", amountText(budget), budget.refill?.interval].filter(Boolean).join(" ")] : []),
    ...(permissions.length > 0 ? [counted(permissions.length, "permission")] : []),
    ...(roles.length > 0 ? [counted(roles.length, "role")] : []),
  ];
  return parts.length === 0 ? "nothing" : parts.join(" · ");
}

/** Credits of each key: `5,000 credits. Monthly on day 1 it is set to 5,000.` */
export function creditsText({ amount, refill }: NonNullable<Plan["credits"]>): string {
  const text = counted(amount, "credit");
  return refill ? `${text}. ${refillText({ ...refill, amount })}` : text;
}

/** The budget of each identity: `5,000 tokens. Monthly on day 1 it is set to 5,000. It never refuses a call.` */
export function budgetText({ amount, refill, onEmpty, thresholds, unit }: PlanBudget): string {
  const sentences = [
    `${amountText({ amount, unit })}.`,
    ...(refill ? [refillText({ ...refill, amount })] : []),
    ...(onEmpty === "allow" ? ["It counts, and refuses no call."] : []),
    ...(thresholds.length > 0 ? [`Events at ${thresholds.map((percent) => `${percent} %`).join(", ")}.`] : []),
  ];
  return sentences.join(" ");
}

type PlanBudget = Pick<NonNullable<Plan["budget"]>, "amount" | "onEmpty" | "thresholds"> & {
  refill?: NonNullable<Plan["budget"]>["refill"] | undefined;
  unit?: string | undefined;
};

function amountText({ amount, unit }: { amount: number; unit?: string | undefined }): string {
  return unit === undefined ? counted(amount, "credit") : `${exactNumber(amount)} ${unit}`;
}

/** What changes: `Limit requests`. */
export function changedText({ field, name }: Change): string {
  return name === undefined ? fields[field] : `${fields[field]} ${name}`;
}

/** A limit before and after, or what a list gains and loses: `600 per minute → 1,000 per minute`, `+documents.read`. */
export function valuesText({ field, before, after, added = [], removed = [] }: Change): string {
  const values = {
    ratelimits: limitValue,
    concurrency: ({ limit = 0 }: Value) => `${exactNumber(limit)} at once`,
    credits: ({ amount = 0, refill }: Value) => creditsText(refill ? { amount, refill } : { amount }),
    budget: ({ amount = 0, refill, onEmpty = "deny", thresholds = [], unit }: Value) =>
      budgetText({ amount, refill, onEmpty, thresholds, unit }),
  };
  if (field !== "permissions" && field !== "roles") {
    return [before, after].map((value) => (value === undefined ? "none" : values[field](value))).join(" → ");
  }
  return [...added.map((one) => `+${one}`), ...removed.map((one) => `−${one}`)].join(", ");
}

function limitValue({ limit = 0, duration = 0, mode, autoApply }: Value): string {
  return `${limitText({ limit, duration, mode })}${autoApply ? "" : ", if it is named"}`;
}

/** Who gets a change: `1,192 keys and 3 identities; 12 keys have their own limit and stay`. */
export function reachText(
  { field, keys, keysKeeping, identities, identitiesKeeping }: Change,
  isComplete: boolean,
): string {
  const of = (keys: number, identities: number) =>
    [
      ...(keys > 0 || identities === 0 ? [counted(keys, "key")] : []),
      ...(identities > 0 ? [counted(identities, "identity", "identities")] : []),
    ].join(" and ");
  const kept = keysKeeping + identitiesKeeping;
  const what = field === "credits" || field === "budget" ? field : "limit";
  const have = kept === 1 ? `has its own ${what} and stays` : `have their own ${what} and stay`;
  const stay = `${of(keysKeeping, identitiesKeeping)} ${have}`;
  return `${isComplete ? "" : "at least "}${of(keys, identities)}${kept === 0 ? "" : `; ${stay}`}`;
}

/** Who has a plan: `1,204 keys and 3 identities`. */
export function membersText({ keys, identities }: Pick<Preview, "keys" | "identities">): string {
  const of = ({ count, isComplete }: Preview["keys"], one: string, many: string) =>
    `${isComplete ? "" : "more than "}${exactNumber(count)} ${count === 1 ? one : many}`;
  return `${of(keys, "key", "keys")} and ${of(identities, "identity", "identities")}`;
}
