import { mutation } from "../../platform/rpc/operation.ts";
import { exampleKey, exampleKeyPermissions } from "../../platform/vocabulary/examples.ts";
import { ensurePermissions, idsOf, slugsOf, without } from "../permissions/ensure.ts";
import { PermissionsOutput, toPermissionOutput } from "../permissions/record.ts";
import { PermissionWriter } from "../permissions/statements/permissions.ts";
import { lockKey } from "./lock-key.ts";
import { missingKey, permissionsInput, recordKeyChange } from "./permissions-and-roles.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";

export const setPermissions = mutation("keys.setPermissions", {
  summary: "Set the permissions of a key",
  description:
    "Replaces all direct permissions of the key. The key keeps the permissions of its roles. Permissions that do not " +
    "exist yet are created.",
  permissions: [
    "apis.{apiId}.update_key",
    "permissions.*.add_permission_to_key",
    "permissions.*.remove_permission_from_key",
    "permissions.*.create_permission",
  ],
  input: permissionsInput(),
  output: PermissionsOutput,
  problems: ["key_not_found"],
  examples: [
    {
      summary: "Set the permissions of a key",
      input: { keyId: exampleKey.keyId, permissions: [exampleKeyPermissions[0].slug] },
      output: [exampleKeyPermissions[0]],
    },
    { summary: "Remove all permissions", input: { keyId: exampleKey.keyId, permissions: [] }, output: [] },
    missingKey({ permissions: [] }),
  ],
}).handle(async ({ keyId, permissions: slugs }, context) => {
  const { store, principal } = context;
  const key = await lockKey(keyId, "update_key", context);
  principal.authorize("permissions.*.add_permission_to_key");
  principal.authorize("permissions.*.remove_permission_from_key");
  const before = await store.of(PermissionWriter).listOfKey(keyId);
  const permissions = await ensurePermissions(slugs, context);
  const added = without(permissions, before);
  const removed = without(before, permissions);
  if (added.length + removed.length > 0) {
    await store.of(KeyGrantWriter).permissions.set(keyId, idsOf(permissions));
    await recordKeyChange(key, "permissions", { added: slugsOf(added), removed: slugsOf(removed) }, context);
  }
  return permissions.map(toPermissionOutput);
});
