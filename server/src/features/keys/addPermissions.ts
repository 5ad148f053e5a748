import { mutation } from "../../platform/rpc/operation.ts";
import { fold } from "../../platform/store/search.ts";
import { exampleKey, exampleKeyPermissions, examplePermission } from "../../platform/vocabulary/examples.ts";
import { PERMISSIONS_PER_KEY_MAX } from "../../platform/vocabulary/schema.ts";
import { ensurePermissions, idsOf, slugsOf, without } from "../permissions/ensure.ts";
import { PermissionsOutput, toPermissionOutput } from "../permissions/record.ts";
import { PermissionWriter } from "../permissions/statements/permissions.ts";
import { lockKey } from "./lock-key.ts";
import { KeyPermissions, missingKey, permissionsInput, recordKeyChange } from "./permissions-and-roles.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";

export const addPermissions = mutation("keys.addPermissions", {
  summary: "Add permissions to a key",
  description:
    "The key keeps its other permissions. Returns all direct permissions of the key, without those of its roles. " +
    "Permissions that do not exist yet are created.",
  permissions: ["apis.{apiId}.update_key", "permissions.*.add_permission_to_key", "permissions.*.create_permission"],
  input: permissionsInput(KeyPermissions.min(1)),
  output: PermissionsOutput,
  problems: ["key_not_found"],
  examples: [
    {
      summary: "Add a permission to a key",
      input: { keyId: exampleKey.keyId, permissions: [examplePermission.slug] },
      output: [examplePermission, ...exampleKeyPermissions],
    },
    missingKey({ permissions: [examplePermission.slug] }),
  ],
}).handle(async ({ keyId, permissions: slugs }, context) => {
  const { store, principal, fail } = context;
  const key = await lockKey(keyId, "update_key", context);
  principal.authorize("permissions.*.add_permission_to_key");
  const before = await store.of(PermissionWriter).listOfKey(keyId);
  // Checked before permissions are created: a change of many keys goes on with the next key.
  const held = new Set(before.map(({ slug }) => fold(slug)));
  const count = before.length + new Set(slugs.map(fold).filter((slug) => !held.has(slug))).size;
  if (count > PERMISSIONS_PER_KEY_MAX) {
    return fail("invalid_input", `A key has at most ${PERMISSIONS_PER_KEY_MAX} permissions; this would make ${count}.`);
  }
  const added = without(await ensurePermissions(slugs, context), before);
  if (added.length === 0) return before.map(toPermissionOutput);
  await store.of(KeyGrantWriter).permissions.add(keyId, idsOf(added));
  await recordKeyChange(key, "permissions", { added: slugsOf(added) }, context);
  return (await store.of(PermissionWriter).listOfKey(keyId)).map(toPermissionOutput);
});
