import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleKey, exampleKeyPermissions, examplePermission } from "../examples.ts";
import { ensurePermissions, idsOf, slugsOf, without } from "../permissions/ensure.ts";
import { Slug } from "../permissions/fields.ts";
import { PermissionOutput, permissionRecord } from "../permissions/record.ts";
import { KeyId, PERMISSIONS_PER_KEY_MAX } from "../schema.ts";

export const addPermissions = mutation("keys.addPermissions", {
  summary: "Give a key permissions",
  description:
    "In addition to those that it has directly; the answer is all of these, without those of its roles. Permissions " +
    "that do not exist yet are created.",
  permissions: ["apis.{apiId}.update_key", "permissions.*.add_permission_to_key", "permissions.*.create_permission"],
  input: z.strictObject({ keyId: KeyId, permissions: z.array(Slug).min(1).max(PERMISSIONS_PER_KEY_MAX) }),
  output: z.array(PermissionOutput),
  problems: ["key_not_found"],
  examples: [
    {
      summary: "Give a key a permission",
      input: { keyId: exampleKey.keyId, permissions: [examplePermission.slug] },
      output: [examplePermission, ...exampleKeyPermissions],
    },
    {
      summary: "A key that is not there",
      input: { keyId: "key_IXIyFsB89IXl4uYc", permissions: [examplePermission.slug] },
      problem: "key_not_found",
    },
  ],
}).handle(async ({ keyId, permissions: slugs }, context) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  const key = await store.keys.findForUpdate(keyId);
  if (!key) return fail("key_not_found");
  principal.authorize(`apis.${key.api_id}.update_key`);
  principal.authorize("permissions.*.add_permission_to_key");
  const before = await store.permissions.listOfKey(keyId);
  const added = without(await ensurePermissions(slugs, context), before);
  if (added.length === 0) return before.map(permissionRecord);
  const count = before.length + added.length;
  if (count > PERMISSIONS_PER_KEY_MAX) {
    return fail("invalid_input", `A key has at most ${PERMISSIONS_PER_KEY_MAX} permissions; this would make ${count}.`);
  }
  await store.keyGrants.addPermissions(keyId, idsOf(added));
  await store.keys.update(keyId, { updated_at: now });
  invalidate.key(keyId);
  audit([keyId, key.api_id], { added: slugsOf(added) });
  return (await store.permissions.listOfKey(keyId)).map(permissionRecord);
});
