import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import type { EventContent } from "../../platform/store/events/events.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import { CREDITS_MAX, integer, KeyId } from "../../platform/vocabulary/schema.ts";
import { CreditsOutput, newBalanceColumns, toCreditsOutput } from "../credits/record.ts";
import { BalanceWriter, lowThreshold } from "../credits/statements/balances.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { keyInEvents, lockKey } from "./lock-key.ts";
import { settleCredits } from "./plan-credits.ts";

export const updateCredits = mutation("keys.updateCredits", {
  summary: "Update the credits of a key",
  description:
    "Sets, increments or decrements the balance. A decrement stops at 0. All keys of a reroll chain share one balance, " +
    "so the change applies to each of them. Setting null makes usage unlimited and removes the refill.",
  idempotent: true,
  permissions: ["apis.{apiId}.update_key"],
  input: z.strictObject({
    keyId: KeyId,
    operation: z.enum(["set", "increment", "decrement"]),
    value: integer(0, CREDITS_MAX).nullish().describe("The new balance, or the amount of the change. Null: unlimited."),
  }),
  output: z.strictObject({
    remaining: z.int().nullable().describe("The balance. Null: unlimited."),
    refill: CreditsOutput.shape.refill,
  }),
  problems: ["key_not_found"],
  examples: [
    {
      summary: "Add 500 credits",
      input: { keyId: exampleKey.keyId, operation: "increment", value: 500 },
      output: { ...exampleKey.credits, remaining: exampleKey.credits.remaining + 500 },
    },
  ],
}).handle(async ({ keyId, operation, value }, context) => {
  const { store, random, now, invalidate, audit, fail } = context;
  const key = await lockKey(keyId, "update_key", context);
  const updated: EventContent = {
    type: "key.updated",
    objectId: keyId,
    data: { ...keyInEvents(key), changed: ["credits"] },
  };
  const { pool_id: poolId } = key;
  const balances = store.of(BalanceWriter);
  let balance = await balances.findForUpdate(poolId, random, now);
  if (!balance && key.plan?.credits) {
    // The plan got its credits after the key, which was not verified since.
    await store.of(PlanWriter).lockAssignment(poolId);
    await settleCredits(poolId, undefined, { planId: key.plan.id }, context);
    balance = await balances.findForUpdate(poolId, random, now);
  }
  if (balance && balance.plan_id !== null && operation === "set" && (value === null || value === undefined)) {
    return fail(
      "invalid_input",
      "The credits come from the plan of the key. Give it another plan, or none, with keys.updateKey.",
    );
  }
  // Caches hold whether a key has a balance, not the balance. A verification that waits for its credits has to be decided
  // again after an invalidation, so a key whose credits change often would be slow.
  const isUnlimitedAfter = value === null || value === undefined;
  if (operation !== "set" || isUnlimitedAfter === (balance === undefined))
    invalidate.nothing("balances are not cached");
  else {
    // Every key of the pool shares the balance.
    invalidate.key(keyId);
    invalidate.pool(poolId);
  }

  if (operation === "set") {
    const before = balance?.remaining ?? null;
    const after = value ?? null;
    audit([keyId, key.api_id], { operation, value: after, before, after }, before === after ? [] : [updated]);
    if (value === null || value === undefined) {
      await balances.remove(poolId, now);
      return { remaining: null };
    }
    const next = { ...newBalanceColumns(now), ...balance, pool_id: poolId, remaining: value };
    await balances.put(next);
    return toCreditsOutput(next);
  }

  if (value === null || value === undefined) {
    return fail("invalid_input", `credits cannot be changed by null: send the value to ${operation} by.`);
  }
  if (!balance) {
    return fail("invalid_input", `The key has unlimited credits, which cannot be ${operation}ed. Set a balance first.`);
  }
  const remaining = operation === "increment" ? balance.remaining + value : Math.max(0, balance.remaining - value);
  if (remaining > CREDITS_MAX) {
    return fail("invalid_input", `The balance would exceed its maximum of ${CREDITS_MAX}.`);
  }
  const next = { ...balance, remaining };
  const isDecrement = operation === "decrement";
  // A decrement spends credits: it leaves the threshold as it is.
  await balances.put(next, isDecrement ? balance.low_at : lowThreshold(next));
  const low = await balances.lowEvents(balance, remaining);
  const events = remaining === balance.remaining ? [] : [updated, ...low];
  audit([keyId, key.api_id], { operation, value, before: balance.remaining, after: remaining }, events);
  return toCreditsOutput(next);
});
