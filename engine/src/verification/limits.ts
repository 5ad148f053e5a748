import type { Milliseconds } from "../clock/clock.ts";
import { PlannedKey } from "../directory/planned-key.ts";
import { type KeyLimit, type KeyRecord, limitCounter } from "../directory/records.ts";
import type { Charge, LimitDecision, LimitState } from "../limits/counters.ts";
import type { LimitMode } from "../rules/strict-window.ts";
import { LIMIT_MAX } from "../rules/window.ts";

/** A limit that the caller names: a stored one, or an ad-hoc one that has both `limit` and `duration`. */
export interface NamedLimit {
  name: string;
  cost: number;
  limit?: number | undefined;
  duration?: number | undefined;
  /** Of an ad-hoc limit. */
  mode?: LimitMode | undefined;
  /** Of an ad-hoc limit: it is counted and never denies. */
  shadow?: boolean | undefined;
}

/** A limit that a verification checks: a stored one, or one that the call gives. */
export type CheckedLimit = KeyLimit | Omit<KeyLimit, "owner" | "applies" | "counter">;

/** The charges of a verification, and the limit of each. */
export interface SelectedLimits {
  readonly charges: readonly Charge[];
  readonly limits: readonly CheckedLimit[];
  /** The parsed `members` of the limits, once an answer has needed them. */
  values?: readonly object[];
}

function charge(stored: KeyLimit, cost: number, commit: boolean, owner: string): Charge {
  const { counter, limit, duration, mode, shadow } = stored;
  if (shadow) return { counter, limit, duration, mode, cost, commit, owner, shadow };
  return commit
    ? { counter, limit, duration, mode, cost, owner }
    : { counter, limit, duration, mode, cost, commit, owner };
}

/**
 * Selects the limits of a verification with their charges. Without names: all limits that apply automatically, at a cost
 * of 1 each. With names: the named limits at their cost, on the key and on its identity; the other limits that apply
 * automatically are checked with a cost of 1 and not charged. Returns the name of a limit that does not exist, if there is
 * one.
 */
export function selectLimits(
  key: KeyRecord,
  named: readonly NamedLimit[] | undefined,
): SelectedLimits | undefined | { unknown: string } {
  if (named === undefined || named.length === 0) return selectDefault(key);
  const charges: Charge[] = [];
  const limits: CheckedLimit[] = [];
  for (const { name, cost, limit, duration, mode = "standard", shadow = false } of named) {
    const isAdHoc = limit !== undefined && duration !== undefined;
    if (isAdHoc) {
      const counter = limitCounter("key", key.poolId, name);
      const charged = { counter, limit, duration, mode, cost, owner: key.workspaceId };
      charges.push(shadow ? { ...charged, shadow } : charged);
      const shown = `"limit":${limit},"duration":${duration}${mode === "strict" ? ',"mode":"strict"' : ""}`;
      const members = `"id":"","name":${JSON.stringify(name)},${shown},"autoApply":false${shadow ? ',"shadow":true' : ""}`;
      limits.push({ name, limit, duration, mode, shadow, members });
    }
    let exists = isAdHoc;
    for (const stored of key.limits) {
      if (stored.name !== name || (isAdHoc && stored.owner === "key")) continue;
      exists = true;
      charges.push(charge(stored, cost, true, key.workspaceId));
      limits.push(stored);
    }
    if (!exists) return { unknown: name };
  }
  for (const stored of key.limits) {
    if (!stored.applies || named.some(({ name }) => name === stored.name)) continue;
    charges.push(charge(stored, 1, false, key.workspaceId));
    limits.push(stored);
  }
  return { charges, limits };
}

/**
 * A charge that only reads its counter: it consumes nothing, and its limit is the largest, so that what remains says what
 * was used.
 */
export function readingOf(charge: Charge): Charge {
  return { ...charge, limit: LIMIT_MAX, cost: 0, commit: false, shadow: false };
}

/** What a charge of `readingOf` found. */
export function usedIn({ remaining }: LimitState): number {
  return LIMIT_MAX - remaining;
}

/** The charge of a stored limit at a cost of 1. */
export function chargeOf(limit: KeyLimit, key: KeyRecord): Charge {
  return charge(limit, 1, true, key.workspaceId);
}

/** The selections of verifications without named limits, made once per record. A key with plans is made for each call. */
const defaultSelections = new WeakMap<KeyRecord, SelectedLimits>();

function selectDefault(key: KeyRecord): SelectedLimits | undefined {
  if (key.limits.length === 0) return undefined;
  let selected = defaultSelections.get(key);
  if (!selected) {
    const applying = key.limits.filter(({ applies }) => applies);
    selected = {
      charges: applying.map((limit) => charge(limit, 1, true, key.workspaceId)),
      limits: applying,
    };
    if (!(key.top instanceof PlannedKey)) defaultSelections.set(key, selected);
  }
  return selected.charges.length === 0 ? undefined : selected;
}

/**
 * The states of the limits as JSON members, with `retryAfter` for a rejected call.
 *
 * @param wait how long it has to wait for slots; 0: they do not reject it.
 */
export function limitsText(
  selected: SelectedLimits,
  { limits, allowed, retryAfter }: LimitDecision,
  wait: Milliseconds = 0,
): string {
  let text = ',"ratelimits":[';
  for (let i = 0; i < limits.length; i++) {
    const state = limits[i]!;
    text += `${i === 0 ? "" : ","}{${selected.limits[i]!.members},"exceeded":${!state.allowed},"remaining":${state.remaining},"reset":${state.reset}`;
    text += state.retryAfter === undefined ? "}" : `,"retryAfter":${state.retryAfter}}`;
  }
  if (allowed) return `${text}]${waitText(wait)}`;
  return retryAfter === undefined ? `${text}]` : `${text}],"retryAfter":${Math.max(retryAfter, wait)}`;
}

/** What `limitsText` has, as an object that shares nothing with others. */
export function limitsValues(selected: SelectedLimits, { limits, allowed, retryAfter }: LimitDecision): object {
  selected.values ??= selected.limits.map(({ members }) => JSON.parse(`{${members}}`));
  const { values } = selected;
  const ratelimits = limits.map(({ allowed: admitted, remaining, reset, retryAfter: wait }, i) => {
    const state = { ...values[i], exceeded: !admitted, remaining, reset };
    return wait === undefined ? state : { ...state, retryAfter: wait };
  });
  return allowed || retryAfter === undefined ? { ratelimits } : { ratelimits, retryAfter };
}

/** A wait as a JSON member; empty if there is none. */
export function waitText(wait: Milliseconds): string {
  return wait === 0 ? "" : `,"retryAfter":${wait}`;
}

/** The name of the first limit that rejects the call; undefined if none does. */
export function exceededLimit(
  selected: SelectedLimits | undefined,
  decided: LimitDecision | undefined,
): string | undefined {
  if (selected === undefined || decided === undefined || decided.allowed) return undefined;
  const index = decided.limits.findIndex(({ allowed }, i) => !allowed && selected.charges[i]?.shadow !== true);
  return selected.limits[index]?.name;
}
