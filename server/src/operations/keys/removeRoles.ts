import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleKey, exampleRole } from "../examples.ts";
import { idsOf, without } from "../permissions/ensure.ts";
import { RoleName } from "../permissions/fields.ts";
import { RoleOutput, roleRecord } from "../permissions/record.ts";
import { KeyId, ROLES_PER_KEY_MAX } from "../schema.ts";
import { rolesNamed } from "./assign.ts";

export const removeRoles = mutation("keys.removeRoles", {
  summary: "Take roles from a key",
  description: "The answer is what remains. Every role must exist, whether or not the key has it.",
  permissions: ["apis.{apiId}.update_key"],
  input: z.strictObject({ keyId: KeyId, roles: z.array(RoleName).min(1).max(ROLES_PER_KEY_MAX) }),
  output: z.array(RoleOutput),
  problems: ["key_not_found", "role_not_found"],
  examples: [
    {
      summary: "Take a role from a key",
      input: { keyId: exampleKey.keyId, roles: [exampleRole.name] },
      output: [],
    },
    {
      summary: "A role that is not there",
      input: { keyId: exampleKey.keyId, roles: ["reader"] },
      problem: "role_not_found",
      detail: "Role 'reader' was not found.",
    },
    {
      summary: "A key that is not there",
      input: { keyId: "key_IXIyFsB89IXl4uYc", roles: [exampleRole.name] },
      problem: "key_not_found",
    },
  ],
}).handle(async ({ keyId, roles: names }, { store, principal, now, invalidate, audit, fail }) => {
  const key = await store.keys.findForUpdate(keyId);
  if (!key) return fail("key_not_found");
  principal.authorize(`apis.${key.api_id}.update_key`);
  const given = await rolesNamed(store, names, fail);
  const before = await store.roles.listOfKey(keyId);
  const after = without(before, given);
  if (after.length < before.length) {
    await store.keyGrants.removeRoles(keyId, idsOf(given));
    await store.keys.update(keyId, { updated_at: now });
    invalidate.key(keyId);
    audit([keyId, key.api_id], { removed: without(before, after).map(({ name }) => name) });
  }
  return after.map(roleRecord);
});
