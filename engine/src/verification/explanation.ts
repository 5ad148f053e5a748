import type { Instant } from "../clock/clock.ts";
import { covers } from "../credits/locked-balance.ts";
import { PlannedKey } from "../directory/planned-key.ts";
import type { KeyRecord } from "../directory/records.ts";
import type { LimitDecision, LimitState } from "../limits/counters.ts";
import { type AddressList, isListed } from "../rules/address.ts";
import { hasValidChecksum } from "../rules/key-string.ts";
import { conjunctsOf, type PermissionQuery, queryText, satisfies, slugsOf } from "../rules/permission-query.ts";
import { grantOf } from "../rules/permissions.ts";
import { adoptedColumns } from "../rules/plan-credits.ts";
import type { Refill, StoredBalance } from "../rules/refill.ts";
import { nextDue, refillOf, withDueRefill } from "../rules/refill.ts";
import type { Step, Trace } from "./checks.ts";
import type { ConcurrencyDecision, ConcurrencyState } from "./concurrency.ts";
import type { SelectedLimits } from "./limits.ts";
import type { VerificationCode, VerificationRequest } from "./request.ts";
import type { HeldBalance, KeyOrigins } from "./stored.ts";

/** The number of permissions that an explanation lists. */
export const PERMISSIONS_LISTED_MAX = 1_000;

/** Why a verification is answered as it is. */
export interface VerificationExplanation {
  valid: boolean;
  code: VerificationCode;
  /** The instant of the decision, in Unix milliseconds. */
  at: number;
  steps: ExplainedStep[];
  /** Absent if no key was found. */
  key?: {
    keyId: string;
    apiId: string;
    /** The name of its plan. */
    plan?: string;
    identity?: { id: string; externalId: string; plan?: string };
  };
  /** Where the record of the key came from. */
  record?: ExplainedRecord;
  permissions?: ExplainedPermissions;
  /** Absent: it has none. */
  concurrency?: (ConcurrencyState & { plan?: string })[];
  ratelimits?: ExplainedLimit[];
  /** Absent: unlimited. */
  credits?: ExplainedCredits;
  /** Absent: it has none. */
  budgets?: ExplainedBudget[];
  /** The derived key, and its parents that are derived keys. Absent: it was issued. */
  derived?: ExplainedDerivation[];
}

/** A derived key in the chain from the key that was presented to the one that was issued. */
export interface ExplainedDerivation {
  keyId: string;
  parentKeyId: string;
  expires: number;
  /** Whether it was ended. */
  ended: boolean;
  /** The permissions to which it narrows those of its parent. Absent: it has them all. */
  permissions?: string[];
  /** The most that it may spend, and what is left of that. Absent: as much as its parent. */
  credits?: { max: number; remaining: number };
}

export interface ExplainedStep {
  step: Step;
  code: VerificationCode;
  result: "passed" | "decided" | "notReached";
  /** What was compared, as a sentence. */
  detail: string;
}

export interface ExplainedRecord {
  source: "cache" | "database";
  /** The record includes every change up to this Unix time in milliseconds. */
  currentAt: number;
}

export interface ExplainedPermissions {
  query?: {
    text: string;
    satisfied: boolean;
    /** The parts that must all be satisfied. */
    parts: { text: string; satisfied: boolean }[];
    /** Each permission of the query, with the granted one that includes it. */
    slugs: { slug: string; grantedBy?: string }[];
  };
  /** `plan`: the name of the plan of the key, if it has the permission. */
  effective: { slug: string; direct: boolean; roles: string[]; plan?: string }[];
  count: number;
}

export interface ExplainedLimit {
  id: string;
  name: string;
  limit: number;
  duration: number;
  mode?: "strict";
  shadow?: true;
  from: "key" | "identity" | "derived" | "call";
  /** The name of the plan that gives it to the key or to the identity. */
  plan?: string;
  use: "charged" | "checked" | "replaced" | "unused";
  /** What this call costs; absent if the limit is not used. */
  cost?: number;
  exceeded?: boolean;
  retryAfter?: number;
  used: number;
  window: { startAt: number; endAt: number };
}

export interface ExplainedCredits {
  remaining: number;
  /** What open holds have taken from it. */
  held: number;
  cost: number;
  refill?: Refill & { nextAt: number };
  /** The name of the plan that gives it. Absent: it is one of the key. */
  plan?: string;
}

export interface ExplainedBudget extends ExplainedCredits {
  budgetId: string;
  name: string;
  unit?: string;
  onEmpty: "deny" | "allow";
  /** Whether it does not cover the call. */
  exceeded: boolean;
}

/** A key for which the steps were traced. */
export interface DecidedKey {
  key: KeyRecord;
  request: VerificationRequest;
  /** Whether the call gave the id of the key, and not its string. */
  isById: boolean;
  trace: Trace;
  record: ExplainedRecord;
  /** Undefined: the key looks missing to verifications, so nothing else was looked at. */
  decision?: Decision;
}

interface Decision {
  query: PermissionQuery | undefined;
  selected: SelectedLimits | undefined;
  /** The decision on the selected limits. */
  decided: LimitDecision | undefined;
  /** Each limit of the selection, then each other stored limit of the key, with its counter. */
  counted: readonly CountedLimit[];
  origins: KeyOrigins;
  /** The balance with its due refill; undefined: unlimited. */
  balance: HeldBalance | undefined;
  budgets: ExplainedBudget[];
  concurrency: ConcurrencyDecision;
  derived: ExplainedDerivation[];
  cost: number;
}

/** A limit with the state of its counter, which was read with a cost of 0. */
export interface CountedLimit {
  readonly limit: SelectedLimits["limits"][number];
  readonly used: number;
  readonly reset: number;
}

/**
 * The explanation of a key that does not exist for the caller.
 *
 * @param key its string; undefined if the call gave an id, and the key was deleted just now.
 */
export function explainMissing(key: string | undefined, at: Instant): VerificationExplanation {
  return {
    valid: false,
    code: "NOT_FOUND",
    at,
    steps: [{ step: "lookup", code: "NOT_FOUND", result: "decided", detail: missingDetail(key) }],
  };
}

function missingDetail(key: string | undefined): string {
  if (key === undefined) return "The key does not exist any more.";
  const missing = "No key that this root key may read has this string.";
  return hasValidChecksum(key)
    ? missing
    : `${missing} Its checksum is wrong: it is mistyped, cut off, or was made by another system.`;
}

export function explainKey(decided: DecidedKey): VerificationExplanation {
  const { key, request, trace, record, decision } = decided;
  const decidedAt = trace.findIndex(({ isFailed }) => isFailed);
  const code = decidedAt === -1 ? "VALID" : trace[decidedAt]!.code;
  const permissions = decision && permissionsOf(key, decision);
  return {
    valid: code === "VALID",
    code,
    at: request.now,
    steps: trace.map(({ step, code, isFailed }, i) => {
      const result = decidedAt === -1 || i < decidedAt ? "passed" : i === decidedAt ? "decided" : "notReached";
      return { step, code, result, detail: details[step]({ ...decided, ...decision, permissions, isFailed }) };
    }),
    key: explainedKey(key),
    record,
    ...(decision && {
      permissions,
      ...(decision.concurrency.states.length > 0 && {
        concurrency: decision.concurrency.states.map((state, i) => ({ ...state, ...planOf(key.concurrency[i] ?? {}) })),
      }),
      ratelimits: limitsOf(decision),
      ...(decision.balance && {
        credits: {
          ...heldCreditsOf(decision.balance, request.now),
          cost: decision.cost,
          ...(key.top instanceof PlannedKey && key.top.isBalanceOfPlan && key.top.plan && { plan: key.top.plan.name }),
        },
      }),
      ...(decision.budgets.length > 0 && { budgets: decision.budgets }),
    }),
    ...(key.derivation && { derived: decision?.derived ?? derivedAt(key) }),
  };
}

/** The plans of a key and of its identity, if the key has been joined with them. A derived key has those of the key at the top. */
function plansOf({ top }: KeyRecord): Pick<PlannedKey, "plan" | "planOfIdentity"> {
  return top instanceof PlannedKey ? top : { plan: null, planOfIdentity: null };
}

function explainedKey(key: KeyRecord): NonNullable<VerificationExplanation["key"]> {
  const { keyId, apiId, identity } = key;
  const { plan, planOfIdentity } = plansOf(key);
  const { id, externalId } = identity ?? {};
  return {
    keyId,
    apiId,
    ...(plan && { plan: plan.name }),
    ...(id !== undefined &&
      externalId !== undefined && {
        identity: { id, externalId, ...(planOfIdentity && { plan: planOfIdentity.name }) },
      }),
  };
}

/** The plan of a limit as a member; none if it is one of its owner. */
function planOf({ plan }: { plan?: string }) {
  return plan === undefined ? {} : { plan };
}

/** The chain of a derived key. `origins`: with what is left of what each may spend. */
export function derivedAt({ derivation }: KeyRecord, origins?: KeyOrigins): ExplainedDerivation[] {
  return (derivation?.levels ?? []).map(({ id, parent_id, expires_at, deleted_at, permissions, credits_max }) => {
    const stored = origins?.budgets.find(({ pool_id }) => pool_id === id);
    return {
      keyId: id,
      parentKeyId: parent_id,
      expires: expires_at,
      ended: deleted_at !== null,
      ...(permissions !== null && { permissions: JSON.parse(permissions) as string[] }),
      ...(credits_max !== null && stored && { credits: { max: credits_max, remaining: stored.remaining } }),
    };
  });
}

type Detail = Omit<DecidedKey, "decision"> &
  Partial<Decision> & { permissions: ExplainedPermissions | undefined; isFailed: boolean };

/** What each step compared, as a sentence. */
const details: Readonly<Record<Step, (decided: Detail) => string>> = {
  lookup: ({ key, isById }) => {
    const found = isById ? `The key ${key.keyId} exists.` : `The string is that of the key ${key.keyId}.`;
    const parents = key.derivation?.levels.map(({ parent_id }) => parent_id) ?? [];
    return parents.length === 0 ? found : `${found} It was derived from ${parents.join(", which was derived from ")}.`;
  },
  deletion: ({ key: { derivation }, isFailed }) => {
    if (derivation === null)
      return isFailed ? "The key or its API was deleted." : "Neither the key nor its API is deleted.";
    return isFailed
      ? "The key, one that it was derived from, or its API was deleted."
      : "Neither the key, nor those that it was derived from, nor its API is deleted.";
  },
  api: ({ key: { apiId: own }, request: { apiId, keyspaces } }) => {
    const accepted = [apiId, keyspaces?.join(", ")].filter((one) => one !== undefined);
    return `The key belongs to ${own}, and the call accepts ${accepted.length === 0 ? "every API" : accepted.join(" out of ")}.`;
  },
  rootKey: ({ key, isFailed }) =>
    isFailed
      ? `The root key lacks the permission '${key.verifyRequirement}'.`
      : `The root key may verify keys of ${key.apiId}.`,
  workspace: ({ isFailed }) => (isFailed ? "The workspace is disabled." : "The workspace is enabled."),
  enabled: ({ key: { top, derivation }, isFailed }) =>
    `${derivation === null ? "The key" : `The key ${top.keyId}, of which it was derived,`} is ${isFailed ? "disabled" : "enabled"}.`,
  expiry: ({ key: { expiresAt, top, derivation }, request: { now }, isFailed }) => {
    if (expiresAt === null) return "The key never expires.";
    const whose = derivation !== null && top.expiresAt === expiresAt ? `, with ${top.keyId}` : "";
    return `The key ${isFailed ? "expired" : "expires"} at ${iso(expiresAt)}${whose}, and it is ${iso(now)}.`;
  },
  address: ({ key: { allowedIps }, request: { address } }) => {
    if (allowedIps === null) return "Neither the API nor the key has an allow-list of addresses.";
    const shown = address || "an address that cannot be read";
    const of = (name: string, list: AddressList | null) =>
      list === null
        ? []
        : `the allow-list of the ${name} ${isListed(list, address) ? "contains" : "does not contain"} ${shown}`;
    const ofDerived = (allowedIps.ofDerived ?? []).flatMap((list) => of("derived key", list));
    const compared = [of("API", allowedIps.ofApi), of("key", allowedIps.ofKey), ofDerived].flat().join(", and ");
    return `${compared.charAt(0).toUpperCase()}${compared.slice(1)}.`;
  },
  permissions: ({ permissions }) => {
    const query = permissions?.query;
    if (query === undefined) return "The call asks for no permission.";
    if (query.satisfied) return `The permissions of the key satisfy ${query.text}.`;
    const missing = query.parts.filter(({ satisfied }) => !satisfied).map(({ text }) => text);
    return `The permissions of the key do not satisfy ${missing.join(", nor ")}.`;
  },
  concurrency: ({ concurrency }) => {
    if (!concurrency || concurrency.states.length === 0) return "No limit of concurrency applies to the call.";
    const uses = concurrency.states.map(({ name, limit, inUse }) => `${inUse} of ${limit} slots of '${name}'`);
    const wait = concurrency.exceeded
      ? ` A slot is free in ${inWords(concurrency.retryAfter)}, or when a hold ends before that.`
      : "";
    return `In use are ${uses.join(" and ")}.${wait}`;
  },
  limits: ({ selected, decided }) => {
    if (!selected || !decided) return "No limit applies to the call.";
    const judged = selected.limits.map(({ name }, i) => ({
      name,
      isOver: decided.limits[i]?.allowed === false,
      shadow: selected.charges[i]?.shadow === true,
    }));
    const namesOf = (some: typeof judged) => some.map(({ name }) => name).join(", ");
    const over = judged.filter(({ isOver }) => isOver);
    const exceeded = over.filter(({ shadow }) => !shadow);
    const shadowed = over.filter(({ shadow }) => shadow);
    const note = shadowed.length === 0 ? "" : `In shadow mode, these would deny the call: ${namesOf(shadowed)}.`;
    if (exceeded.length === 0) {
      const roomy = judged.filter(({ isOver }) => !isOver);
      return [...(roomy.length > 0 ? [`These limits have room: ${namesOf(roomy)}.`] : []), note].join(" ").trim();
    }
    const wait =
      decided.retryAfter === undefined
        ? "With this cost the call can never pass."
        : `Without other calls it passes in ${inWords(decided.retryAfter)}.`;
    return `These limits are exhausted: ${namesOf(exceeded)}. ${wait} ${note}`.trim();
  },
  credits: ({ balance, budgets = [], derived = [], cost }) => {
    const bounded = derived.filter(({ credits }) => credits !== undefined);
    if (balance === undefined && budgets.length === 0 && bounded.length === 0)
      return "The key has no balance: it is unlimited.";
    const left = [
      ...(balance ? [`the balance is ${balance.remaining}`] : []),
      ...budgets.map(({ name, remaining, onEmpty }) =>
        onEmpty === "deny"
          ? `the budget '${name}' has ${remaining}`
          : `the budget '${name}', which never denies, has ${remaining}`,
      ),
      ...bounded.map(({ keyId, credits }) => `${keyId} may still spend ${credits?.remaining}`),
    ];
    return `The call costs ${cost}, and ${left.join(", and ")}.`;
  },
};

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const units = [
  ["day", DAY],
  ["hour", HOUR],
  ["minute", MINUTE],
  ["second", SECOND],
] as const;

/** A duration in at most two units, rounded up: `800 ms`, `5 seconds`, `3 minutes 23 seconds`. */
function inWords(ms: number): string {
  if (ms < SECOND) return `${ms} ms`;
  const precision = ms < HOUR ? SECOND : ms < DAY ? MINUTE : HOUR;
  let rest = Math.ceil(ms / precision) * precision;
  const parts: string[] = [];
  for (const [unit, length] of units) {
    const count = Math.floor(rest / length);
    rest %= length;
    if (count > 0) parts.push(`${count} ${unit}${count === 1 ? "" : "s"}`);
  }
  return parts.join(" ");
}

/** Times in a database can be beyond those of a date. */
function iso(time: number): string {
  return Math.abs(time) <= 8_640_000_000_000_000 ? new Date(time).toISOString() : String(time);
}

/** The permissions to list: first those that the query needs. */
export function listedPermissions({ permissions }: KeyRecord, query: PermissionQuery | undefined): string[] {
  const needed = query === undefined ? [] : slugsOf(query).flatMap((slug) => grantOf(permissions, slug) ?? []);
  const listed = new Set(needed);
  for (const slug of permissions.slugs) {
    if (listed.size >= PERMISSIONS_LISTED_MAX) break;
    listed.add(slug);
  }
  return [...listed];
}

function permissionsOf(key: KeyRecord, { query, origins }: Decision): ExplainedPermissions {
  const { permissions } = key;
  const bySlug = Map.groupBy(origins.grants, ({ slug }) => slug);
  const { plan } = plansOf(key);
  return {
    ...(query && {
      query: {
        text: queryText(query),
        satisfied: satisfies(query, permissions),
        parts: conjunctsOf(query).map((part) => ({ text: queryText(part), satisfied: satisfies(part, permissions) })),
        slugs: slugsOf(query).map((slug) => {
          const grantedBy = grantOf(permissions, slug);
          return { slug, ...(grantedBy !== undefined && { grantedBy }) };
        }),
      },
    }),
    effective: listedPermissions(key, query).map((slug) => {
      const grants = bySlug.get(slug) ?? [];
      return {
        slug,
        direct: grants.some(({ role }) => role === null),
        roles: grants.flatMap(({ role }) => role ?? []),
        ...(plan?.permissions.has(slug) && { plan: plan.name }),
      };
    }),
    count: permissions.slugs.size,
  };
}

function limitsOf({ selected, decided, counted }: Decision): ExplainedLimit[] {
  return counted.map(({ limit, used, reset }, i) => {
    const charge = selected?.charges[i];
    const { name, duration, mode, shadow } = limit;
    return {
      id: JSON.parse(`{${limit.members}}`).id,
      name,
      limit: limit.limit,
      duration,
      ...(mode === "strict" && { mode }),
      ...(shadow && { shadow }),
      from: "owner" in limit ? limit.owner : "call",
      ...("owner" in limit && planOf(limit)),
      ...(charge
        ? { use: charge.commit === false ? "checked" : "charged", cost: charge.cost, ...stateOf(decided!.limits[i]!) }
        : { use: isReplaced(limit, selected) ? "replaced" : "unused" }),
      used,
      window: { startAt: reset - duration, endAt: reset },
    };
  });
}

function stateOf({ allowed, retryAfter }: LimitState) {
  return { exceeded: !allowed, ...(retryAfter !== undefined && { retryAfter }) };
}

/** Whether the call gives another limit of this name. */
function isReplaced({ name }: { name: string }, selected: SelectedLimits | undefined): boolean {
  return selected?.limits.some((found) => found.name === name) ?? false;
}

/** A balance with its next refill. */
export function creditsOf(balance: StoredBalance, now: Instant): Omit<ExplainedCredits, "held" | "cost"> {
  const rule = refillOf(balance);
  return {
    remaining: balance.remaining,
    ...(rule && { refill: { ...rule, nextAt: balance.refill_due_at ?? nextDue(rule, now) } }),
  };
}

function heldCreditsOf(balance: HeldBalance, now: Instant): Omit<ExplainedCredits, "cost"> {
  return { ...creditsOf(balance, now), held: balance.held ?? 0 };
}

/** The balance of a key at this time; undefined: unlimited. */
export function balanceAt(
  key: KeyRecord,
  { balance }: Pick<KeyOrigins, "balance">,
  now: Instant,
): HeldBalance | undefined {
  if (!key.hasBalance) return undefined;
  if (balance !== null) return withDueRefill(balance, now);
  const credits = plansOf(key).plan?.credits;
  // The first verification makes it.
  return credits ? { remaining: credits.amount, held: null, ...adoptedColumns(credits, now, null) } : undefined;
}

/** The budgets of a key at this time, in the order of its record, for a call of this cost. */
export function budgetsAt(key: KeyRecord, { budgets }: KeyOrigins, cost: number, now: Instant): ExplainedBudget[] {
  return key.budgets.flatMap(({ budgetId, name, unit, plan }) => {
    const found = budgets.find(({ pool_id }) => pool_id === budgetId);
    const stored = found ?? (plan === undefined ? undefined : firstBudget(key, now));
    if (!stored) return [];
    const credits = heldCreditsOf(withDueRefill(stored, now), now);
    const isDenying = stored.watched !== 1;
    return {
      budgetId,
      name,
      ...(unit !== null && { unit }),
      onEmpty: isDenying ? "deny" : "allow",
      ...credits,
      cost,
      exceeded: isDenying && !covers(credits.remaining, cost),
      ...(plan !== undefined && { plan }),
    };
  });
}

/** The budget that the plan of an identity gives, before the first verification makes it. */
function firstBudget(key: KeyRecord, now: Instant): (HeldBalance & { watched: number }) | undefined {
  const budget = plansOf(key).planOfIdentity?.budget;
  if (!budget) return undefined;
  const watched = budget.onEmpty === "allow" ? 1 : 0;
  return { remaining: budget.amount, held: null, watched, ...adoptedColumns(budget, now, null) };
}
