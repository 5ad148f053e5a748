import { z } from "zod";
import { concurrencyOf } from "../../../../engine/src/rules/slots.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues, limitValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf, WRITTEN_APART } from "../../platform/vocabulary/columns.ts";
import { exampleIdentity, exampleIdentityInput } from "../../platform/vocabulary/examples.ts";
import { concurrency, IDENTITY_META_BYTES_MAX, Identity, meta, ratelimits } from "../../platform/vocabulary/schema.ts";
import { assignBudgets } from "../budgets/assign.ts";
import { AssignedBudget } from "../budgets/record.ts";
import { SlotWriter } from "../credits/statements/slots.ts";
import { acceptConcurrency, concurrencyColumn, sortedByName } from "../holds/concurrency.ts";
import { IdentityOutput, toIdentityOutput } from "../keys/record.ts";
import { choosePlan } from "../plans/assign.ts";
import { AssignedPlan, BALANCES_WITHOUT_PLAN } from "../plans/record.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { acceptShadow } from "../ratelimits/shadow.ts";
import { RatelimitWriter } from "../ratelimits/statements/ratelimits.ts";
import { authorizeLeaving, settleBudget } from "./plan-budget.ts";
import { metaColumn } from "./record.ts";
import { IdentityWriter } from "./statements.ts";

export const updateIdentity = mutation("identities.updateIdentity", {
  summary: "Update an identity",
  description:
    "Omitted fields do not change. `meta`, `ratelimits` and `concurrency` are replaced as a whole. The next verification of any of its " +
    "keys on the same node uses the new limits.",
  permissions: ["identities.*.update_identity", "budgets.{budgetId}.assign_budget", "plans.{planId}.assign_plan"],
  input: z.strictObject({
    identity: Identity,
    meta: meta(IDENTITY_META_BYTES_MAX).optional(),
    ratelimits: ratelimits
      .optional()
      .describe("All limits of the identity. A limit with an existing name keeps its id."),
    concurrency: concurrency
      .nullish()
      .describe(
        "How many calls of all its keys together may run at once: all limits of the identity. Null: any number. Open holds " +
          "count for a limit with an existing name, also where it is lower than their number.",
      ),
    plan: AssignedPlan.nullish().describe(
      "The plan whose limits and budget all its keys share, besides the limits of the identity. Its permissions and roles are for " +
        "keys only. Null: none. Needs `assign_plan` on the former one and on the new one.",
    ),
    balances: z
      .enum(["keep", "reset"])
      .optional()
      .describe(
        "With `plan`: what happens to the budget that plans gave. `keep`: what is left stays, until the next refill. `reset`: the " +
          "amount of the new plan at once; only once in each period. Omitted: `keep`.",
      ),
    budgetId: AssignedBudget.nullish().describe(
      "The budget that verifications of all its keys spend from too, together with its ancestors. Null: none. Needs " +
        "`assign_budget` on the former one and on the new one.",
    ),
  }),
  output: IdentityOutput,
  problems: ["identity_not_found", "budget_not_found", "plan_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Remove its limits",
      input: { identity: exampleIdentityInput.externalId, ratelimits: [] },
      output: { ...exampleIdentity, ratelimits: [] },
    },
    {
      summary: "Change a limit",
      input: {
        identity: exampleIdentity.id,
        ratelimits: [{ ...exampleIdentityInput.ratelimits[0], limit: 10_000 }],
      },
      output: { ...exampleIdentity, ratelimits: [{ ...exampleIdentity.ratelimits[0], limit: 10_000 }] },
    },
    {
      summary: "An identity that does not exist",
      input: { identity: "initech", meta: {} },
      problem: "identity_not_found",
    },
  ],
}).handle(async (input, context) => {
  const { store, principal, random, now, invalidate, audit, fail } = context;
  principal.authorize("identities.*.update_identity");
  const identities = store.of(IdentityWriter);
  const identity = await identities.findForUpdate(input.identity);
  if (!identity) return fail("identity_not_found");
  const { identity: _, ...given } = input;
  const changed = Object.keys(given);
  if (changed.length === 0) return toIdentityOutput(identity);
  const former = identity.budget_id;
  await assignBudgets([{ former, next: input.budgetId === undefined ? former : input.budgetId }], context);
  const plan = input.plan === undefined ? undefined : await choosePlan("identity", identity.plan, input.plan, context);
  if (input.balances !== undefined && input.plan === undefined) return fail("invalid_input", BALANCES_WITHOUT_PLAN);
  // A budget of its own takes the place of that of its plan.
  if (input.budgetId) authorizeLeaving(identity, principal);
  await acceptConcurrency(input.concurrency, context);
  await acceptShadow(input.ratelimits, context);
  await identities.update(identity.id, {
    updated_at: now,
    ...columnsOf(given, {
      meta: (value) => ({ meta: metaColumn(value) }),
      ratelimits: WRITTEN_APART,
      budgetId: (budgetId) => ({ budget_id: budgetId }),
      plan: WRITTEN_APART,
      balances: WRITTEN_APART,
      concurrency: (limits) => ({ concurrency: concurrencyColumn(limits) }),
    } satisfies ColumnsFor<typeof given>),
  });
  if (plan !== undefined) await store.of(PlanWriter).assign("identity", identity.id, plan?.id ?? null);
  else if (identity.plan) await store.of(PlanWriter).lockAssignment(identity.id);
  const granted = await settleBudget(
    {
      identity,
      next: { plan: plan === undefined ? identity.plan : plan, budgetId: input.budgetId },
      mode: input.balances,
    },
    context,
  );
  if (input.ratelimits) {
    await store.of(RatelimitWriter).replace({ identity_id: identity.id }, input.ratelimits, random, now);
  }
  if (input.concurrency !== undefined) {
    await store.of(SlotWriter).replaceOfIdentity(identity.id, input.concurrency ?? []);
  }
  invalidate.identity(identity.id);
  const { balances: _balances, ...compared } = given;
  const after = {
    ...compared,
    plan: plan === undefined ? undefined : (plan?.name ?? null),
    ...(given.ratelimits && { ratelimits: limitValues(given.ratelimits) }),
    concurrency: given.concurrency === undefined ? undefined : sortedByName(given.concurrency ?? []),
  };
  const differing = changedValues(after, {
    meta: JSON.parse(identity.meta ?? "{}"),
    ratelimits: limitValues(identity.ratelimits),
    budgetId: former,
    plan: identity.plan?.name ?? null,
    concurrency: concurrencyOf(identity.concurrency),
  });
  const { id: identityId, external_id: externalId } = identity;
  audit(
    [identityId],
    { changed, ...differing, ...(granted && { granted }) },
    updateEvents("identity", identityId, { identityId, externalId }, differing.after),
  );
  return toIdentityOutput((await identities.find(identity.id))!);
});
