import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { fold } from "../../store/search.ts";
import { exampleKey, exampleKeyPermissions } from "../examples.ts";
import { idsOf, slugsOf, without } from "../permissions/ensure.ts";
import { Slug } from "../permissions/fields.ts";
import { PermissionOutput, permissionRecord } from "../permissions/record.ts";
import { KeyId, PERMISSIONS_PER_KEY_MAX } from "../schema.ts";

export const removePermissions = mutation("keys.removePermissions", {
  summary: "Take permissions from a key",
  description:
    "Those that it has directly; what its roles give stays. The answer is what remains. Every one must exist, whether " +
    "or not the key has it.",
  permissions: ["apis.{apiId}.update_key", "permissions.*.remove_permission_from_key"],
  input: z.strictObject({ keyId: KeyId, permissions: z.array(Slug).min(1).max(PERMISSIONS_PER_KEY_MAX) }),
  output: z.array(PermissionOutput),
  problems: ["key_not_found", "permission_not_found"],
  examples: [
    {
      summary: "Take a permission from a key",
      input: { keyId: exampleKey.keyId, permissions: [exampleKeyPermissions[1]!.slug] },
      output: [exampleKeyPermissions[0]!],
    },
    {
      summary: "A permission that is not there",
      input: { keyId: exampleKey.keyId, permissions: ["documents.share"] },
      problem: "permission_not_found",
      detail: "Permission 'documents.share' was not found.",
    },
    {
      summary: "A key that is not there",
      input: { keyId: "key_IXIyFsB89IXl4uYc", permissions: ["documents.share"] },
      problem: "key_not_found",
    },
  ],
}).handle(async ({ keyId, permissions: slugs }, { store, principal, now, invalidate, audit, fail }) => {
  const key = await store.keys.findForUpdate(keyId);
  if (!key) return fail("key_not_found");
  principal.authorize(`apis.${key.api_id}.update_key`);
  principal.authorize("permissions.*.remove_permission_from_key");
  const given = await store.permissions.lockBySlugs(slugs);
  const found = new Set(given.map((permission) => permission.slug_folded));
  const missing = slugs.find((slug) => !found.has(fold(slug)));
  if (missing !== undefined) return fail("permission_not_found", `Permission '${missing}' was not found.`);

  const before = await store.permissions.listOfKey(keyId);
  const after = without(before, given);
  if (after.length < before.length) {
    await store.keyGrants.removePermissions(keyId, idsOf(given));
    await store.keys.update(keyId, { updated_at: now });
    invalidate.key(keyId);
    audit([keyId, key.api_id], { removed: slugsOf(without(before, after)) });
  }
  return after.map(permissionRecord);
});
