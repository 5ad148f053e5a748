import type { z } from "zod";
import type { NamespaceRecord } from "../../directory/records.ts";
import type { Charge, LimitDecision, LimitState } from "../../limits/counters.ts";
import type { MeteredAnswer, MeteredContext } from "../../rpc/operation.ts";
import type { Override } from "../../rules/override-patterns.ts";
import { StoreUnavailable } from "../../store/store.ts";
import type { LimitInput } from "./fields.ts";

type Context = MeteredContext<never>;

/** More attempts than anybody needs who is not raced by deletions. */
const ATTEMPTS_MAX = 10;

/**
 * The namespaces with these ids or names, those that do not exist made now. Nothing is made for a root key that may
 * not both make them and count in all of them.
 */
export async function obtainNamespaces(
  operation: string,
  names: readonly string[],
  { principal, namespaces, now }: Context,
): Promise<NamespaceRecord[]> {
  const caller = principal!;
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    const records = await Promise.all(names.map((name) => namespaces.find(name, caller.workspaceId)));
    const missing = names.filter((_, i) => records[i] === null);
    if (missing.length === 0) return records as NamespaceRecord[];
    caller.authorize("ratelimits.*.create_namespace");
    // A namespace that is not there yet has no id that somebody could have been granted.
    for (const record of records) caller.authorize(record?.limitRequirement ?? "ratelimits.*.limit");
    await namespaces.make(missing, caller, operation, now);
  }
  throw new StoreUnavailable("A namespace was deleted each time it was made");
}

/** What one thing is counted against. */
export interface Counted {
  readonly namespaceId: string;
  readonly identifier: string;
  readonly charge: Charge;
  readonly override: Override | undefined;
}

export function countedIn(
  namespace: NamespaceRecord,
  { identifier, limit, duration, cost }: z.output<typeof LimitInput>,
  workspaceId: string,
): Counted {
  const override = namespace.overrides.find(identifier);
  return {
    namespaceId: namespace.namespaceId,
    identifier,
    charge: {
      counter: `n\0${namespace.namespaceId}\0${identifier}`,
      limit: override === undefined ? limit : override.limit,
      duration: override === undefined ? duration : override.duration,
      cost,
      owner: workspaceId,
    },
    override,
  };
}

const mistakes = { mismatched: "idempotency_mismatch", running: "idempotency_in_progress" } as const;

/** Charges all or nothing, and answers. A repetition of a call that was charged is answered as that one was. */
export function charge(
  counted: readonly Counted[],
  context: Context,
  answer: (decided: LimitDecision) => MeteredAnswer,
): MeteredAnswer | Promise<MeteredAnswer> {
  const { limiter, replays, idempotent, fail } = context;
  const charges = counted.map((one) => one.charge);
  const conclude = (decided: LimitDecision) => {
    record(counted, context, ({ cost }, i) => ({
      passed: decided.limits[i]!.allowed,
      cost: decided.allowed ? cost : 0,
    }));
    return answer(decided);
  };
  if (idempotent === undefined) {
    const decided = limiter.charge(charges);
    return decided instanceof Promise ? decided.then(conclude) : conclude(decided);
  }
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
    if (settled.replay !== "completed") return fail(mistakes[settled.replay]);
    record(counted, context, () => ({ passed: true, cost: 0 }));
    return JSON.parse(settled.text);
  };
  return outcome instanceof Promise ? outcome.then(settle) : settle(outcome);
}

function record(
  counted: readonly Counted[],
  { recorder, now, startedAt, workspaceId }: Context,
  outcomeOf: (charge: Charge, index: number) => { passed: boolean; cost: number },
): void {
  if (recorder === null) return;
  for (const [i, { namespaceId, identifier, charge }] of counted.entries()) {
    const { passed, cost } = outcomeOf(charge, i);
    recorder.ratelimit({ at: now, startedAt, workspaceId, namespaceId, identifier, passed, cost });
  }
}

/** The members of a limit result as JSON text, after what only one operation has. */
export function resultMembers({ charge, override }: Counted, { remaining, reset, retryAfter }: LimitState): string {
  let members = `"limit":${charge.limit},"remaining":${remaining},"reset":${reset}`;
  if (retryAfter !== undefined) members += `,"retryAfter":${retryAfter}`;
  if (override !== undefined) members += `,"overrideId":"${override.id}"`;
  return members;
}
