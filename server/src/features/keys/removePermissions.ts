import { mutation } from "../../platform/rpc/operation.ts";
import { fold } from "../../platform/store/search.ts";
import { exampleKey, exampleKeyPermissions } from "../../platform/vocabulary/examples.ts";
import { idsOf, slugsOf, without } from "../permissions/ensure.ts";
import { PermissionsOutput, toPermissionOutput } from "../permissions/record.ts";
import { PermissionWriter } from "../permissions/statements/permissions.ts";
import { lockKey } from "./lock-key.ts";
import { KeyPermissions, missingKey, permissionsInput, recordKeyChange } from "./permissions-and-roles.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";

export const removePermissions = mutation("keys.removePermissions", {
  summary: "Remove permissions from a key",
  description:
    "Removes direct permissions only. The key keeps the permissions of its roles. Returns the remaining direct " +
    "permissions. Every permission in the request must exist, but the key need not have it.",
  permissions: ["apis.{apiId}.update_key", "permissions.*.remove_permission_from_key"],
  input: permissionsInput(KeyPermissions.min(1)),
  output: PermissionsOutput,
  problems: ["key_not_found", "permission_not_found"],
  examples: [
    {
      summary: "Remove a permission from a key",
      input: { keyId: exampleKey.keyId, permissions: [exampleKeyPermissions[1]!.slug] },
      output: [exampleKeyPermissions[0]],
    },
    {
      summary: "A permission that does not exist",
      input: { keyId: exampleKey.keyId, permissions: ["documents.share"] },
      problem: "permission_not_found",
      detail: "Permission 'documents.share' was not found.",
    },
    missingKey({ permissions: ["documents.share"] }),
  ],
}).handle(async ({ keyId, permissions: slugs }, context) => {
  const { store, principal, fail } = context;
  const key = await lockKey(keyId, "update_key", context);
  principal.authorize("permissions.*.remove_permission_from_key");
  const named = await store.of(PermissionWriter).lockBySlugs(slugs);
  const found = new Set(named.map((permission) => permission.slug_folded));
  const missing = slugs.find((slug) => !found.has(fold(slug)));
  if (missing !== undefined) return fail("permission_not_found", `Permission '${missing}' was not found.`);

  const before = await store.of(PermissionWriter).listOfKey(keyId);
  const after = without(before, named);
  if (after.length < before.length) {
    await store.of(KeyGrantWriter).permissions.remove(keyId, idsOf(named));
    await recordKeyChange(key, "permissions", { removed: slugsOf(without(before, after)) }, context);
  }
  return after.map(toPermissionOutput);
});
