import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleKey, exampleRole } from "../examples.ts";
import { idsOf, without } from "../permissions/ensure.ts";
import { RoleName } from "../permissions/fields.ts";
import { RoleOutput, roleRecord } from "../permissions/record.ts";
import { KeyId, ROLES_PER_KEY_MAX } from "../schema.ts";
import { rolesNamed } from "./assign.ts";

export const addRoles = mutation("keys.addRoles", {
  summary: "Give a key roles",
  description: "In addition to those that it has; the answer is all of them. Roles are named, and must exist.",
  permissions: ["apis.{apiId}.update_key", "permissions.*.add_role_to_key"],
  input: z.strictObject({ keyId: KeyId, roles: z.array(RoleName).min(1).max(ROLES_PER_KEY_MAX) }),
  output: z.array(RoleOutput),
  problems: ["key_not_found", "role_not_found"],
  examples: [
    {
      summary: "Give a key a role",
      input: { keyId: exampleKey.keyId, roles: [exampleRole.name] },
      output: [exampleRole],
    },
    {
      summary: "A role that is not there",
      input: { keyId: exampleKey.keyId, roles: [exampleRole.name, "reader"] },
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
  principal.authorize("permissions.*.add_role_to_key");
  const given = await rolesNamed(store, names, fail);
  const before = await store.roles.listOfKey(keyId);
  const added = without(given, before);
  if (added.length === 0) return before.map(roleRecord);
  const count = before.length + added.length;
  if (count > ROLES_PER_KEY_MAX) {
    return fail("invalid_input", `A key has at most ${ROLES_PER_KEY_MAX} roles; this would make ${count}.`);
  }
  await store.keyGrants.addRoles(keyId, idsOf(added));
  await store.keys.update(keyId, { updated_at: now });
  invalidate.key(keyId);
  audit([keyId, key.api_id], { added: added.map(({ name }) => name) });
  return (await store.roles.listOfKey(keyId)).map(roleRecord);
});
