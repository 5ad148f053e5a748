import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { flag } from "../../platform/vocabulary/columns.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import { KeyId } from "../../platform/vocabulary/schema.ts";
import { BudgetWriter } from "../budgets/statements.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { KeyWriter } from "./statements/keys.ts";
import { rejectMissing } from "./statements/missing-key.ts";

export const restoreKey = mutation("keys.restoreKey", {
  summary: "Restore a deleted key",
  description:
    "Brings back a key that was deleted without `permanent`, until `LATCHKEY_RETENTION_DELETED` after its deletion: with its " +
    "key string, name, credits, limits, permissions, and the roles and the identity that still exist. What was deleted " +
    "meanwhile stays away from it: a role with its permissions, or the identity with its limits. A key whose API, plan or own " +
    "budget was deleted cannot be restored. A key that was reported as leaked, before its deletion or after it, is restored disabled. A key that " +
    "has expired stays expired. The key counts against the quota of the workspace again. The next verification on the same " +
    "node finds it, and on other nodes within a second.",
  permissions: ["apis.{apiId}.restore_key"],
  input: z.strictObject({ keyId: KeyId }),
  output: z.strictObject({
    enabled: z.boolean().describe("False if the key was disabled when it was deleted, or was reported as leaked."),
  }),
  problems: ["key_not_found", "api_not_found", "budget_not_found", "plan_not_found", "key_not_deleted"],
  examples: [
    { summary: "Restore a key", input: { keyId: exampleKey.keyId }, output: { enabled: true } },
    { summary: "A key that does not exist", input: { keyId: "key_IXIyFsB89IXl4uYc" }, problem: "key_not_found" },
  ],
}).handle(async ({ keyId }, { store, principal, now, invalidate, audit, fail }) => {
  const keys = store.of(KeyWriter);
  const key = await keys.findAnyForUpdate(keyId);
  if (!key) return rejectMissing(keyId, "restore_key", { store, principal, fail });
  principal.authorize(`apis.${key.api_id}.restore_key`);
  if (key.api_deleted_at !== null) {
    return fail("api_not_found", `The API of the key, '${key.api_id}', was deleted. The key cannot be restored.`);
  }
  if (key.deleted_at === null) return fail("key_not_deleted");
  const budgetId = key.budget_id;
  if (budgetId !== null && !(await store.of(BudgetWriter).keep([budgetId]))) {
    return fail("budget_not_found", `The budget of the key, '${budgetId}', was deleted. The key cannot be restored.`);
  }
  const plan = await store.of(PlanWriter).keepOfPool(key.pool_id);
  if (plan && !plan.exists) {
    return fail("plan_not_found", `The plan of the key, '${plan.planId}', was deleted. The key cannot be restored.`);
  }
  const enabled = key.enabled === 1 && key.leaked_at === null;
  await keys.restore(keyId, flag(enabled), now);
  invalidate.key(keyId);
  // Nodes may have cached that no key has this hash.
  invalidate.keyHash(key.hash);
  const about = { keyId, apiId: key.api_id, ...(key.external_id !== null && { externalId: key.external_id }) };
  audit([keyId, key.api_id], { deletedAt: key.deleted_at, enabled }, [
    { type: "key.restored", objectId: keyId, data: { ...about, enabled } },
  ]);
  return { enabled };
});
