import { type KeyLimit, type KeyRecord, limitCounter } from "../directory/records.ts";
import type { Charge, LimitDecision } from "../limits/counters.ts";

/** A limit that the caller names: a stored one, or an ad-hoc one that has both `limit` and `duration`. */
export interface NamedLimit {
  name: string;
  cost: number;
  limit?: number | undefined;
  duration?: number | undefined;
}

/** The charges of a verification, and the JSON of each. */
export interface LimitPlan {
  readonly charges: readonly Charge[];
  /** For each charge, the JSON members of its state before `exceeded`. */
  readonly members: readonly string[];
}

const charge = ({ counter, limit, duration }: KeyLimit, cost: number, commit: boolean, owner: string): Charge =>
  commit ? { counter, limit, duration, cost, owner } : { counter, limit, duration, cost, commit, owner };

/**
 * Plans the charges of a verification. Without names: all limits that apply automatically, at a cost of 1 each. With
 * names: the named limits at their cost, on the key and on its identity; the other limits that apply automatically are
 * checked with a cost of 1 and not charged. Returns the name of a limit that does not exist, if there is one.
 */
export function planLimits(
  key: KeyRecord,
  named: readonly NamedLimit[] | undefined,
): LimitPlan | undefined | { unknown: string } {
  if (named === undefined || named.length === 0) return defaultPlan(key);
  const charges: Charge[] = [];
  const members: string[] = [];
  for (const { name, cost, limit, duration } of named) {
    const isAdHoc = limit !== undefined && duration !== undefined;
    if (isAdHoc) {
      charges.push({ counter: limitCounter("key", key.poolId, name), limit, duration, cost, owner: key.workspaceId });
      members.push(`"id":"","name":${JSON.stringify(name)},"limit":${limit},"duration":${duration},"autoApply":false`);
    }
    let exists = isAdHoc;
    for (const stored of key.limits) {
      if (stored.name !== name || (isAdHoc && stored.owner === "key")) continue;
      exists = true;
      charges.push(charge(stored, cost, true, key.workspaceId));
      members.push(stored.members);
    }
    if (!exists) return { unknown: name };
  }
  for (const stored of key.limits) {
    if (!stored.applies || named.some(({ name }) => name === stored.name)) continue;
    charges.push(charge(stored, 1, false, key.workspaceId));
    members.push(stored.members);
  }
  return { charges, members };
}

/** Plans of verifications without named limits, made once per record. */
const defaultPlans = new WeakMap<KeyRecord, LimitPlan>();

function defaultPlan(key: KeyRecord): LimitPlan | undefined {
  if (key.limits.length === 0) return undefined;
  let plan = defaultPlans.get(key);
  if (!plan) {
    const applying = key.limits.filter(({ applies }) => applies);
    plan = {
      charges: applying.map((limit) => charge(limit, 1, true, key.workspaceId)),
      members: applying.map(({ members }) => members),
    };
    defaultPlans.set(key, plan);
  }
  return plan.charges.length === 0 ? undefined : plan;
}

/** The states of the limits as JSON members, with `retryAfter` for a rejected call. */
export function limitsText({ members }: LimitPlan, { limits, allowed, retryAfter }: LimitDecision): string {
  let text = ',"ratelimits":[';
  for (let i = 0; i < limits.length; i++) {
    const state = limits[i]!;
    text += `${i === 0 ? "" : ","}{${members[i]},"exceeded":${!state.allowed},"remaining":${state.remaining},"reset":${state.reset}`;
    text += state.retryAfter === undefined ? "}" : `,"retryAfter":${state.retryAfter}}`;
  }
  return allowed || retryAfter === undefined ? `${text}]` : `${text}],"retryAfter":${retryAfter}`;
}
