import type { z } from "zod";
import { then } from "../../../../engine/src/clock/then.ts";
import type { NamespaceRecord } from "../../../../engine/src/directory/records.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { Charge, LimitDecision, LimitState } from "../../../../engine/src/limits/counters.ts";
import type { Override } from "../../../../engine/src/rules/override-patterns.ts";
import type { DecisionRecorder } from "../../../../engine/src/verification/event.ts";
import type { MeteredAnswer, MeteredContext } from "../../platform/rpc/operation.ts";
import type { Services } from "../services.ts";
import type { LimitInput } from "./fields.ts";

type Context = MeteredContext<never>;

/** One attempt is enough unless a namespace is deleted at the same time. */
const ATTEMPTS_MAX = 10;

/**
 * The namespaces with these ids or names. Missing ones are created, if the root key may create namespaces and count in
 * all of the given ones.
 */
export async function ensureNamespaces(
  operation: string,
  names: readonly string[],
  { namespaces }: Pick<Services, "namespaces">,
  { principal }: Context,
): Promise<NamespaceRecord[]> {
  const caller = principal!;
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    const records = await Promise.all(names.map((name) => namespaces.find(name, caller.workspaceId)));
    const missing = names.filter((_, i) => records[i] === null);
    if (missing.length === 0) return records as NamespaceRecord[];
    caller.authorize("ratelimits.*.create_namespace");
    // A new namespace has no id yet, so only a grant for all namespaces applies to it.
    for (const record of records) caller.authorize(record?.limitRequirement ?? "ratelimits.*.limit");
    await namespaces.create({ names: missing, caller, operation });
  }
  throw new StoreUnavailable("A namespace was deleted each time it was created");
}

/** One entry of a call: what it counts, and against which limit. */
export interface CountedEntry {
  readonly namespaceId: string;
  readonly identifier: string;
  readonly charge: Charge;
  readonly override: Override | undefined;
}

type EntryInput = Pick<z.output<typeof LimitInput>, "identifier" | "limit" | "duration" | "mode" | "cost"> &
  Partial<Pick<z.output<typeof LimitInput>, "shadow">>;

export function countEntry(
  { namespaceId, overrides }: NamespaceRecord,
  input: EntryInput,
  workspaceId: string,
): CountedEntry {
  return entryAgainst(overrides.find(input.identifier), namespaceId, input, workspaceId);
}

/** An entry against an override, or, without one, against the limit in the call. */
export function entryAgainst(
  override: Override | undefined,
  namespaceId: string,
  { identifier, limit, duration, mode, shadow = false, cost }: EntryInput,
  workspaceId: string,
): CountedEntry {
  const charge = {
    counter: `n\0${namespaceId}\0${identifier}`,
    limit: override === undefined ? limit : override.limit,
    duration: override === undefined ? duration : override.duration,
    mode: override?.mode ?? mode,
    cost,
    owner: workspaceId,
  };
  const isShadow = override?.shadow ?? shadow;
  return { namespaceId, identifier, charge: isShadow ? { ...charge, shadow: true } : charge, override };
}

const problemOf = { mismatched: "idempotency_mismatch", running: "idempotency_in_progress" } as const;

/** Charges all entries or none, and answers. A replay of a charged call gets the answer of the first attempt. */
export function charge(
  counted: readonly CountedEntry[],
  services: Pick<Services, "limiter" | "replays" | "recorder">,
  context: Context,
  answer: (decided: LimitDecision) => MeteredAnswer,
): MeteredAnswer | Promise<MeteredAnswer> {
  const { limiter, replays } = services;
  const { idempotent, fail } = context;
  if (idempotent === undefined) return then(chargeTogether(counted, services, context), answer);
  const charges = counted.map((entry) => entry.charge);
  const conclude = (decided: LimitDecision) => {
    report(counted, charges, decided, services, context);
    return answer(decided);
  };
  const outcome = replays.once(
    idempotent,
    () => limiter.charge(charges),
    (decided) =>
      decided.allowed && charges.some(({ cost }) => cost > 0)
        ? { text: JSON.stringify(answer(decided)), windowMax: Math.max(...charges.map(({ duration }) => duration)) }
        : undefined,
  );
  const settle = (settled: Awaited<typeof outcome>): MeteredAnswer => {
    if (!("replay" in settled)) return conclude(settled);
    if (settled.replay !== "completed") return fail(problemOf[settled.replay]);
    record(counted, services.recorder, context, () => ({ passed: true, cost: 0 }));
    return JSON.parse(settled.text);
  };
  return then(authorizedStill(outcome, counted, context), settle);
}

/**
 * The same decision. After a wait for it the caller is judged again: its root key may have been revoked meanwhile. What was
 * counted for such a call stays counted.
 */
function authorizedStill<T>(
  decided: T | Promise<T>,
  counted: readonly CountedEntry[],
  { principal, clock }: Context,
): T | Promise<T> {
  if (!(decided instanceof Promise) || principal === null) return decided;
  return decided.then((settled) => {
    const now = clock.now();
    if (principal.isCurrent(now)) return settled;
    return then(principal.renew(now), (renewed) => {
      for (const { namespaceId } of counted) renewed.authorize(`ratelimits.${namespaceId}.limit`);
      return settled;
    });
  });
}

type Decided = readonly [entry: CountedEntry, decision: LimitDecision];

/** The decision on each entry alone. */
export type Decisions = ReadonlyMap<CountedEntry, LimitDecision>;

/**
 * Charges each entry alone: one that is denied keeps no other from being counted. Of a denied one as much is charged as its
 * limit has left, so that smaller costs do not pass after it, and a caller that goes on does not keep itself out for longer
 * than until its window has passed.
 */
export function chargeEach(
  counted: readonly CountedEntry[],
  services: Pick<Services, "limiter" | "recorder">,
  context: Context,
): Decisions | Promise<Decisions> {
  const decisions = counted.map((entry) => {
    const decided = chargeAlone(entry, services, context);
    return then(decided, (decision): Decided => [entry, decision]);
  });
  const settled = decisions.filter((one): one is Decided => !(one instanceof Promise));
  return settled.length === decisions.length ? new Map(settled) : Promise.all(decisions).then((all) => new Map(all));
}

function chargeAlone(
  entry: CountedEntry,
  { limiter, recorder }: Pick<Services, "limiter" | "recorder">,
  context: Context,
): LimitDecision | Promise<LimitDecision> {
  const { charge } = entry;
  const conclude = (decided: LimitDecision, cost: number) => {
    record([entry], recorder, context, () => ({ passed: decided.allowed, cost }));
    limiter.exceeded.add(context.workspaceId, [charge], decided, null);
    return decided;
  };
  return then(authorizedStill(limiter.charge([charge]), [entry], context), (decided) => {
    if (decided.allowed) return conclude(decided, charge.cost);
    const cost = Math.min(charge.cost, ...decided.limits.map(({ remaining }) => remaining));
    if (cost === 0) return conclude(decided, 0);
    return then(limiter.charge([{ ...charge, cost, force: true }]), ({ limits }) =>
      conclude({ ...decided, limits: limits.map((state) => ({ ...state, allowed: false })) }, cost),
    );
  });
}

/** Charges all entries or none. */
export function chargeTogether(
  counted: readonly CountedEntry[],
  services: Pick<Services, "limiter" | "recorder">,
  context: Context,
): LimitDecision | Promise<LimitDecision> {
  const charges = counted.map((entry) => entry.charge);
  return then(authorizedStill(services.limiter.charge(charges), counted, context), (decided) => {
    report(counted, charges, decided, services, context);
    return decided;
  });
}

/** Records a decision on all entries together, and reports the limits that reject it, or would. */
function report(
  counted: readonly CountedEntry[],
  charges: readonly Charge[],
  decided: LimitDecision,
  { limiter, recorder }: Pick<Services, "limiter" | "recorder">,
  context: Context,
): void {
  record(counted, recorder, context, (charge, i) => ({
    passed: passes(charge, decided.limits[i]!),
    cost: decided.allowed ? charge.cost : 0,
  }));
  limiter.exceeded.add(context.workspaceId, charges, decided, null);
}

function record(
  counted: readonly CountedEntry[],
  recorder: Pick<DecisionRecorder, "ratelimit"> | null,
  { now, startedAt, workspaceId, address, requestId }: Context,
  outcomeOf: (charge: Charge, index: number) => { passed: boolean; cost: number },
): void {
  if (recorder === null) return;
  for (const [i, { namespaceId, identifier, charge }] of counted.entries()) {
    const { passed, cost } = outcomeOf(charge, i);
    recorder.ratelimit({
      at: now,
      startedAt,
      workspaceId,
      namespaceId,
      identifier,
      passed,
      cost,
      asked: charge,
      address,
      requestId,
    });
  }
}

/** Whether a limit lets a call pass. One in shadow mode always does. */
export function passes({ shadow }: Charge, { allowed }: LimitState): boolean {
  return allowed || shadow === true;
}

/** The JSON members that the results of both operations share. */
export function resultMembers(
  { charge, override }: CountedEntry,
  { allowed, remaining, reset, retryAfter }: LimitState,
): string {
  let members = `"limit":${charge.limit},"remaining":${remaining},"reset":${reset}`;
  if (retryAfter !== undefined) members += `,"retryAfter":${retryAfter}`;
  if (override !== undefined) members += `,"overrideId":"${override.id}"`;
  if (charge.shadow) members += `,"shadow":true,"exceeded":${!allowed}`;
  return members;
}
