import type { CreatePlanInput, PreviewUpdateOutput } from "../../../sdk/src/index.ts";

type Json = Record<string, unknown>;

/** The fields of a plan that can change, in the form of the service: what is not given has no value. */
export function planMembers({
  ratelimits = [],
  concurrency = [],
  credits,
  budget,
  permissions = [],
  roles = [],
  meta = {},
}: DocumentPlan): Json {
  return {
    ratelimits: ratelimits
      .map(({ name, limit, duration, mode, autoApply = false, shadow }) => ({
        name,
        limit,
        duration,
        ...(mode === "strict" && { mode }),
        autoApply,
        ...(shadow && { shadow }),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    concurrency:
      concurrency.length > 0
        ? concurrency.map(({ name, limit }) => ({ name, limit })).sort((a, b) => (a.name < b.name ? -1 : 1))
        : null,
    credits: credits ? creditsMembers(credits) : null,
    budget: budget ? budgetMembers(budget) : null,
    permissions: sortedSet(permissions),
    roles: sortedSet(roles),
    meta: Object.keys(meta).length > 0 ? meta : null,
  };
}

/** Credits with their members in one order, so that equal ones have the same text. */
function creditsMembers({ amount, refill }: NonNullable<DocumentPlan["credits"]>): Json {
  if (!refill) return { amount };
  const { interval, refillDay, refillMonth, timeZone, rollover } = refill;
  return {
    amount,
    refill: {
      interval,
      ...(refillDay !== undefined && { refillDay }),
      ...(refillMonth !== undefined && { refillMonth }),
      ...(timeZone !== undefined && { timeZone }),
      ...(rollover !== undefined && { rollover }),
    },
  };
}

/** The same of a budget. */
function budgetMembers({
  onEmpty = "deny",
  thresholds = [],
  unit,
  ...credits
}: NonNullable<DocumentPlan["budget"]>): Json {
  return {
    ...creditsMembers(credits),
    onEmpty,
    thresholds: [...new Set(thresholds)].sort((a, b) => a - b),
    ...(unit !== undefined && { unit }),
  };
}

/** A plan of a document. */
export type DocumentPlan = CreatePlanInput;

function sortedSet(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}

/** The members of a plan as lines of a change can name them: a limit each, instead of the list of all. */
export function comparablePlan(plan: DocumentPlan): Json {
  const { ratelimits, ...members } = planMembers(plan) as Json & { ratelimits: Json[] };
  return { ...Object.fromEntries(ratelimits.map(({ name, ...limit }) => [`limit ${name}`, limit])), ...members };
}

/** What an owner has itself that stays; of other fields: a limit. */
const OWN: Readonly<Record<string, string>> = { credits: "credits", budget: "a budget" };

/** What an update of a plan does to how many keys and identities, a line for each change. */
export function effectsOf({ keys, identities, changes }: PreviewUpdateOutput): string[] {
  const isComplete = keys.isComplete && identities.isComplete;
  return changes.map((change) => {
    const { field, name = field, startsAtZero } = change;
    const kept = owners(change.keysKeeping, change.identitiesKeeping);
    return [
      `${name}: ${isComplete ? "" : "at least "}${owners(change.keys, change.identities) || "nobody yet"}`,
      ...(kept ? [`${kept} with ${OWN[field] ?? "a limit"} of their own stay`] : []),
      ...(startsAtZero ? ["what was counted so far no longer counts"] : []),
    ].join("; ");
  });
}

function owners(keys: number, identities: number): string {
  return [counted(keys, "key", "keys"), counted(identities, "identity", "identities")].filter(Boolean).join(" and ");
}

function counted(count: number, one: string, many: string): string {
  return count === 0 ? "" : `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
