import { z } from "zod";
import type { StoredBalance } from "../../../../engine/src/rules/refill.ts";
import { concurrencyOf } from "../../../../engine/src/rules/slots.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import type { StoreWriter } from "../../platform/store/workspace-store.ts";
import { changedValues, limitValues, sortedSet, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf, flag, jsonColumn, WRITTEN_APART } from "../../platform/vocabulary/columns.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import {
  concurrency,
  Empty,
  Expires,
  ExternalId,
  KEY_META_BYTES_MAX,
  KeyAllowedIps,
  KeyId,
  KeyName,
  meta,
  PERMISSIONS_PER_KEY_MAX,
  ROLES_PER_KEY_MAX,
  ratelimits,
  slug,
  text,
} from "../../platform/vocabulary/schema.ts";
import { policyOf } from "../apis/record.ts";
import { assignBudgets } from "../budgets/assign.ts";
import { AssignedBudget } from "../budgets/record.ts";
import {
  type CreditsOutput,
  CreditsUpdate,
  newBalanceColumns,
  OLDER_PROGRAMS,
  refillColumns,
  refillError,
  toCreditsOutput,
} from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { PlanBalanceWriter } from "../credits/statements/plan-balances.ts";
import { SlotWriter } from "../credits/statements/slots.ts";
import { acceptConcurrency, concurrencyColumn, sortedByName } from "../holds/concurrency.ts";
import { authorizeLeaving } from "../identities/plan-budget.ts";
import { IdentityWriter } from "../identities/statements.ts";
import { idsOf } from "../permissions/ensure.ts";
import { PermissionWriter } from "../permissions/statements/permissions.ts";
import { choosePlan } from "../plans/assign.ts";
import { AssignedPlan, BALANCES_WITHOUT_PLAN } from "../plans/record.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { acceptShadow } from "../ratelimits/shadow.ts";
import { RatelimitWriter } from "../ratelimits/statements/ratelimits.ts";
import { acceptAllowedIps } from "./allowed-ips.ts";
import { lockKey } from "./lock-key.ts";
import { setRolesByNames } from "./permissions-and-roles.ts";
import { OWN_CREDITS, settleCredits } from "./plan-credits.ts";
import { expiryFault, LAST_LIMIT, requireNone } from "./policy.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";
import { KeyPolicyReader } from "./statements/key-policy.ts";
import { KeyWriter } from "./statements/keys.ts";
import type { StoredKey } from "./statements/stored-key.ts";

export const updateKey = mutation("keys.updateKey", {
  summary: "Update a key",
  description:
    "Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. " +
    "The next verification on the same node uses the new values. No change takes a key out of the `policy` of its API.",
  permissions: ["apis.{apiId}.update_key", "budgets.{budgetId}.assign_budget", "plans.{planId}.assign_plan"],
  input: z.strictObject({
    keyId: KeyId,
    name: KeyName.nullish(),
    externalId: ExternalId.nullish().describe(
      "Null removes the key from its identity. The identity is not deleted. If the identity has a budget, a key that leaves " +
        "it needs `assign_budget` on that, or `assign_plan` on the plan that gives it.",
    ),
    meta: meta(KEY_META_BYTES_MAX).nullish(),
    expires: Expires.nullish().describe("Null: the key never expires."),
    credits: CreditsUpdate.nullish().describe("Null: unlimited."),
    budgetId: AssignedBudget.nullish().describe(
      "The budget that verifications spend from too, together with its ancestors. Null: none. Needs `assign_budget` on the " +
        "former one and on the new one.",
    ),
    plan: AssignedPlan.nullish().describe(
      "The plan whose limits, permissions and roles the key has besides its own. All keys of a reroll chain share it. Null: " +
        "none. Needs `assign_plan` on the former one and on the new one.",
    ),
    balances: z
      .enum(["keep", "reset"])
      .optional()
      .describe(
        "With `plan`: what happens to the credits that plans gave. `keep`: what is left stays, until the next refill. `reset`: the " +
          "amount of the new plan at once; only once in each period. Omitted: `keep`.",
      ),
    ratelimits: ratelimits.nullish().describe("All limits of the key. A limit with an existing name keeps its id."),
    concurrency: concurrency
      .nullish()
      .describe(
        "How many calls may run at once: all limits of the key. Open holds count for a limit with an existing name, also " +
          "where it is lower than their number.",
      ),
    allowedIps: KeyAllowedIps.nullish().describe(
      "IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowedIps`, both lists must contain the " +
        "address. Null: every address that the API allows.",
    ),
    enabled: z.boolean().optional(),
    roles: z.array(text(1, 100)).max(ROLES_PER_KEY_MAX).optional(),
    permissions: z.array(slug(3, 100)).max(PERMISSIONS_PER_KEY_MAX).optional(),
  }),
  output: Empty,
  problems: ["key_not_found", "budget_not_found", "plan_not_found", "role_not_found", "precondition_failed"],
  examples: [
    { summary: "Disable a key", input: { keyId: exampleKey.keyId, enabled: false }, output: {} },
    {
      summary: "Rename a key, and remove its expiry and its credits",
      input: { keyId: exampleKey.keyId, name: "Acme, staging", expires: null, credits: null },
      output: {},
    },
    { summary: "A key that does not exist", input: { keyId: "key_IXIyFsB89IXl4uYc" }, problem: "key_not_found" },
  ],
}).handle(async (input, context) => {
  const { store, principal, random, now, invalidate, audit, fail } = context;
  const { keyId, credits } = input;
  const key = await lockKey(keyId, "update_key", context);
  const balances = store.of(BalanceWriter);
  const found =
    credits === undefined && input.plan === undefined && key.plan === null
      ? undefined
      : await balances.findForUpdate(key.pool_id, random, now);
  // What a plan gave is not the key's own.
  const balance = credits === undefined || found?.plan_id !== null ? undefined : found;
  if (input.balances !== undefined && input.plan === undefined) {
    return fail("invalid_input", BALANCES_WITHOUT_PLAN);
  }
  const unlimited = credits?.remaining === null || (credits?.remaining === undefined && !balance);
  const invalid = refillError(credits?.refill, unlimited);
  if (invalid) return fail("invalid_input", invalid);
  if (!(await balances.accepts([credits?.refill]))) return fail("precondition_failed", OLDER_PROGRAMS);

  const { keyId: _, ...given } = input;
  const changed = Object.keys(given);
  if (changed.length === 0) return {};
  await assignBudgets(
    [
      { former: key.budget_id, next: input.budgetId === undefined ? key.budget_id : input.budgetId },
      leftBudget(key, input.externalId),
    ],
    context,
  );
  if (key.identity && isLeft(key, input.externalId)) authorizeLeaving(key.identity, principal);
  const plan = input.plan === undefined ? undefined : await choosePlan("key", key.plan, input.plan, context);
  await acceptConcurrency(input.concurrency, context);
  await acceptShadow(input.ratelimits, context);
  await acceptAllowedIps(input.allowedIps, context);
  const policy = policyOf({ policy: key.api_policy });
  // A key that is older than the policy may come nearer to it.
  const isLater = (input.expires ?? Number.POSITIVE_INFINITY) > (key.expires_at ?? Number.POSITIVE_INFINITY);
  if (input.expires !== undefined && isLater) requireNone(expiryFault(policy, input.expires, key.created_at));
  // Before anything is written: `apis.updateKeys` goes on with other keys.
  if (policy.limitsRequired && touchesLimits(input) && (await takesLastLimit(key, { ...input, plan }, store))) {
    return fail("invalid_input", LAST_LIMIT);
  }
  const former = input.permissions && (await store.of(PermissionWriter).listOfKey(keyId));
  const values = valuesOf(key, former, balance);

  const identityId = input.externalId ? await store.of(IdentityWriter).ensure(input.externalId, random, now) : null;
  await store.of(KeyWriter).update(keyId, {
    updated_at: now,
    ...columnsOf(given, {
      name: (name) => ({ name }),
      meta: (value) => ({ meta: jsonColumn(value) }),
      expires: (expires) => ({ expires_at: expires }),
      enabled: (enabled) => ({ enabled: flag(enabled) }),
      externalId: () => ({ identity_id: identityId }),
      budgetId: (budgetId) => ({ budget_id: budgetId }),
      plan: WRITTEN_APART,
      balances: WRITTEN_APART,
      concurrency: (limits) => ({ concurrency: concurrencyColumn(limits) }),
      allowedIps: (allowedIps) => ({ allowed_ips: jsonColumn(allowedIps) }),
      credits: WRITTEN_APART,
      ratelimits: WRITTEN_APART,
      roles: WRITTEN_APART,
      permissions: WRITTEN_APART,
    } satisfies ColumnsFor<typeof given>),
  });
  if (plan !== undefined) await store.of(PlanWriter).assign("key", key.pool_id, plan?.id ?? null);
  else if (key.plan) await store.of(PlanWriter).lockAssignment(key.pool_id);
  if (input.roles) await setRolesByNames(store, keyId, input.roles, fail);
  if (input.permissions) {
    const { permissions } = await store.of(PermissionWriter).ensure(input.permissions, random, now);
    await store.of(KeyGrantWriter).permissions.set(keyId, idsOf(permissions));
  }
  if (input.ratelimits !== undefined) {
    await store.of(RatelimitWriter).replace({ key_id: keyId }, input.ratelimits ?? [], random, now);
  }
  if (input.concurrency !== undefined) await store.of(SlotWriter).replaceOfPool(key.pool_id);
  let creditsAfter: z.input<typeof CreditsOutput> | null | undefined;
  if (credits === null || credits?.remaining === null) {
    if (balance) await balances.remove(key.pool_id, now);
    creditsAfter = null;
  } else if (credits && (credits.remaining !== undefined || (balance && credits.refill !== undefined))) {
    if (found && found.plan_id !== null) await store.of(PlanBalanceWriter).replace(key.pool_id, found);
    const next = {
      ...newBalanceColumns(now),
      ...balance,
      plan_id: null,
      plan_version: null,
      pool_id: key.pool_id,
      // A refill without any balance was rejected above.
      remaining: credits.remaining ?? balance!.remaining,
      ...(credits.refill !== undefined && refillColumns(credits.refill, now)),
    };
    await balances.put(next);
    creditsAfter = toCreditsOutput(next);
  }
  const planId = plan === undefined ? (key.plan?.id ?? null) : (plan?.id ?? null);
  const isOwn = creditsAfter != null || (creditsAfter === undefined && found?.plan_id === null);
  const granted =
    isOwn || (plan === undefined && creditsAfter === undefined)
      ? undefined
      : await settleCredits(
          key.pool_id,
          found?.plan_id === null ? undefined : found,
          { planId, mode: input.balances },
          context,
        );
  if (isOwn && input.balances === "reset") return fail("invalid_input", OWN_CREDITS);
  // The keys of a reroll chain share the balance.
  invalidate.key(keyId);
  invalidate.pool(key.pool_id);
  const after = {
    ...given,
    plan: plan === undefined ? undefined : (plan?.name ?? null),
    credits: creditsAfter,
    ratelimits: given.ratelimits === undefined ? undefined : limitValues(given.ratelimits ?? []),
    concurrency: given.concurrency === undefined ? undefined : sortedByName(given.concurrency ?? []),
    roles: given.roles && sortedSet(given.roles),
    permissions: given.permissions && sortedSet(given.permissions),
  };
  const { balances: _balances, ...compared } = after;
  const differing = changedValues(compared, values);
  const externalId = input.externalId === undefined ? key.identity?.external_id : input.externalId;
  const about = { keyId, apiId: key.api_id, ...(externalId && { externalId }) };
  audit(
    [keyId, key.api_id],
    { changed, ...differing, ...(granted && { granted }) },
    updateEvents("key", keyId, about, differing.after),
  );
  return {};
});

/** Whether a change can take a limit away from a key. */
function touchesLimits(input: { [Field in "ratelimits" | "concurrency" | "plan" | "externalId"]?: unknown }) {
  const { ratelimits, concurrency, plan, externalId } = input;
  return [ratelimits, concurrency, plan, externalId].some((value) => value !== undefined);
}

/** Whether a change leaves a key without a limit that has one, or another key of its reroll chain, with which it shares a plan. */
async function takesLastLimit(
  key: StoredKey,
  {
    ratelimits = key.ratelimits,
    concurrency = concurrencyOf(key.concurrency),
    externalId = key.identity?.external_id,
    plan,
  }: {
    ratelimits?: readonly { readonly shadow?: unknown }[] | null | undefined;
    concurrency?: readonly object[] | null | undefined;
    externalId?: string | null | undefined;
    plan: { id: string } | null | undefined;
  },
  store: StoreWriter,
): Promise<boolean> {
  const policies = store.of(KeyPolicyReader);
  const formerPlanId = await store.of(PlanWriter).lockPlanId(key.pool_id);
  const planId = plan === undefined ? formerPlanId : (plan?.id ?? null);
  if (planId !== null && (await policies.planHasLimit(planId))) return false;
  const unlimited = new Set(await policies.unlimitedOfPool(key.pool_id, { besidePlan: false }));
  const isLimited = ratelimits?.some(({ shadow }) => !shadow) || concurrency?.length;
  if (!isLimited && !unlimited.has(key.id)) {
    if (!externalId || !(await policies.identityHasLimit("external_id", externalId))) return true;
  }
  if (planId === formerPlanId) return false;
  const others = await policies.unlimitedOfPool(key.pool_id, { besidePlan: true });
  return others.some((id) => id !== key.id && !unlimited.has(id));
}

/** The budget of its identity that a key leaves. It may join any identity, as a new key may. */
function leftBudget(key: StoredKey, externalId: string | null | undefined) {
  return { former: isLeft(key, externalId) ? (key.identity?.budget_id ?? null) : null, next: null };
}

/** Whether a key leaves its identity. */
function isLeft({ identity }: StoredKey, externalId: string | null | undefined): boolean {
  return externalId !== undefined && externalId !== identity?.external_id;
}

/** The values of a key as its update names them. */
function valuesOf(
  key: StoredKey,
  permissions: readonly { slug: string }[] | undefined,
  balance: StoredBalance | undefined,
) {
  return {
    name: key.name,
    externalId: key.identity?.external_id ?? null,
    budgetId: key.budget_id,
    plan: key.plan?.name ?? null,
    meta: key.meta === null ? null : JSON.parse(key.meta),
    expires: key.expires_at,
    credits: balance === undefined ? null : toCreditsOutput(balance),
    ratelimits: limitValues(key.ratelimits),
    concurrency: concurrencyOf(key.concurrency),
    allowedIps: key.allowed_ips && JSON.parse(key.allowed_ips),
    enabled: key.enabled === 1,
    roles: sortedSet(key.roles),
    permissions: permissions && sortedSet(permissions.map(({ slug }) => slug)),
  };
}
