import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleKey, exampleKeyPermissions } from "../examples.ts";
import { ensurePermissions, idsOf, slugsOf, without } from "../permissions/ensure.ts";
import { Slug } from "../permissions/fields.ts";
import { PermissionOutput, permissionRecord } from "../permissions/record.ts";
import { KeyId, PERMISSIONS_PER_KEY_MAX } from "../schema.ts";

export const setPermissions = mutation("keys.setPermissions", {
  summary: "Set the permissions of a key",
  description:
    "It has these directly and no others; what its roles give stays. Permissions that do not exist yet are created.",
  permissions: [
    "apis.{apiId}.update_key",
    "permissions.*.add_permission_to_key",
    "permissions.*.remove_permission_from_key",
    "permissions.*.create_permission",
  ],
  input: z.strictObject({ keyId: KeyId, permissions: z.array(Slug).max(PERMISSIONS_PER_KEY_MAX) }),
  output: z.array(PermissionOutput),
  problems: ["key_not_found"],
  examples: [
    {
      summary: "Set the permissions of a key",
      input: { keyId: exampleKey.keyId, permissions: [exampleKeyPermissions[0]!.slug] },
      output: [exampleKeyPermissions[0]!],
    },
    { summary: "Take all", input: { keyId: exampleKey.keyId, permissions: [] }, output: [] },
    {
      summary: "A key that is not there",
      input: { keyId: "key_IXIyFsB89IXl4uYc", permissions: [] },
      problem: "key_not_found",
    },
  ],
}).handle(async ({ keyId, permissions: slugs }, context) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  const key = await store.keys.findForUpdate(keyId);
  if (!key) return fail("key_not_found");
  principal.authorize(`apis.${key.api_id}.update_key`);
  principal.authorize("permissions.*.add_permission_to_key");
  principal.authorize("permissions.*.remove_permission_from_key");
  const before = await store.permissions.listOfKey(keyId);
  const permissions = await ensurePermissions(slugs, context);
  const added = without(permissions, before);
  const removed = without(before, permissions);
  if (added.length + removed.length > 0) {
    await store.keyGrants.setPermissions(keyId, idsOf(permissions));
    await store.keys.update(keyId, { updated_at: now });
    invalidate.key(keyId);
    audit([keyId, key.api_id], { added: slugsOf(added), removed: slugsOf(removed) });
  }
  return permissions.map(permissionRecord);
});
