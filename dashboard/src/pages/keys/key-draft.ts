import schema from "virtual:operation/keys.createKey";
import type { Input } from "../../api/client.ts";
import { accepts, itemsOf, member, numberProblem, textProblem } from "../../api/schema.ts";
import { type ConcurrencyDraft, concurrencyInputs } from "../../ui/fields/concurrency-field.tsx";
import { parseObject } from "../../ui/fields/json-field.tsx";
import { type RatelimitDraft, ratelimitInputs } from "../../ui/fields/ratelimits-field.tsx";
import { type CreditsDraft, creditsInput, noCredits } from "./credits-field.tsx";

/** The texts and choices of a key that is not created yet. */
export interface Draft {
  readonly name: string;
  readonly prefix: string;
  readonly byteLength: string;
  readonly externalId: string;
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
  readonly expires: number | undefined;
  readonly credits: CreditsDraft;
  /** The id of a budget; empty: none. */
  readonly budgetId: string;
  /** The name of a plan; empty: none. */
  readonly plan: string;
  readonly ratelimits: readonly RatelimitDraft[];
  readonly concurrency: readonly ConcurrencyDraft[];
  readonly allowedIps: readonly string[];
  readonly meta: string;
  readonly enabled: boolean;
  readonly recoverable: boolean;
}

export const emptyDraft: Draft = {
  name: "",
  prefix: "",
  byteLength: "",
  externalId: "",
  roles: [],
  permissions: [],
  expires: undefined,
  credits: noCredits,
  budgetId: "",
  plan: "",
  ratelimits: [],
  concurrency: [],
  allowedIps: [],
  meta: "",
  enabled: true,
  recoverable: false,
};

/** Why members cannot be sent. */
export type Problems = Partial<Record<keyof Draft, string | undefined>>;

/** The input of the call: only what differs from the defaults of the operation. */
export function inputOf(apiId: string, draft: Draft): { input: Input<"keys.createKey">; problems: Problems } {
  const problems: Problems = {};
  const given = (name: "name" | "prefix" | "externalId") => {
    const value = draft[name].trim();
    if (value === "") return {};
    problems[name] = textProblem(member(schema, name), value);
    return { [name]: value };
  };
  const byteLength = draft.byteLength === "" ? undefined : Number(draft.byteLength);
  if (byteLength !== undefined) problems.byteLength = numberProblem(member(schema, "byteLength"), byteLength);
  const limits = ratelimitInputs(draft.ratelimits, itemsOf(schema, "ratelimits"));
  problems.ratelimits = limits.problem;
  const concurrency = concurrencyInputs(draft.concurrency, member(schema, "concurrency"));
  problems.concurrency = concurrency.problem;
  const credits = creditsInput(draft.credits, member(schema, "credits"));
  problems.credits = credits.problem;
  const meta = parseObject(draft.meta);
  problems.meta = meta.problem;
  const slug = itemsOf(schema, "permissions");
  problems.permissions = draft.permissions
    .map((name) =>
      accepts(slug, "string") && textProblem(slug, name) ? `${name} is no slug of a permission.` : undefined,
    )
    .find(Boolean);
  const input: Input<"keys.createKey"> = {
    apiId,
    ...given("prefix"),
    ...given("name"),
    ...(byteLength !== undefined && { byteLength }),
    ...given("externalId"),
    ...(meta.value && { meta: meta.value }),
    ...(draft.roles.length > 0 && { roles: draft.roles }),
    ...(draft.permissions.length > 0 && { permissions: draft.permissions }),
    ...(draft.expires !== undefined && { expires: draft.expires }),
    ...(credits.value && { credits: credits.value }),
    ...(draft.budgetId !== "" && { budgetId: draft.budgetId }),
    ...(draft.plan !== "" && { plan: draft.plan }),
    ...(limits.value.length > 0 && { ratelimits: limits.value }),
    ...(concurrency.value.length > 0 && { concurrency: concurrency.value }),
    ...(draft.allowedIps.length > 0 && { allowedIps: draft.allowedIps }),
    ...(!draft.enabled && { enabled: false }),
    ...(draft.recoverable && { recoverable: true }),
  };
  return { input, problems };
}
