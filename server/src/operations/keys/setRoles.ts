import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleKey, exampleRole } from "../examples.ts";
import { without } from "../permissions/ensure.ts";
import { RoleName } from "../permissions/fields.ts";
import { RoleOutput, roleRecord } from "../permissions/record.ts";
import { KeyId, ROLES_PER_KEY_MAX } from "../schema.ts";
import { assignRoles } from "./assign.ts";

export const setRoles = mutation("keys.setRoles", {
  summary: "Set the roles of a key",
  description: "It has these and no others. Roles are named, and must exist.",
  permissions: ["apis.{apiId}.update_key"],
  input: z.strictObject({ keyId: KeyId, roles: z.array(RoleName).max(ROLES_PER_KEY_MAX) }),
  output: z.array(RoleOutput),
  problems: ["key_not_found", "role_not_found"],
  examples: [
    {
      summary: "Set the roles of a key",
      input: { keyId: exampleKey.keyId, roles: [exampleRole.name] },
      output: [exampleRole],
    },
    { summary: "Take all", input: { keyId: exampleKey.keyId, roles: [] }, output: [] },
    {
      summary: "A role that is not there",
      input: { keyId: exampleKey.keyId, roles: ["reader"] },
      problem: "role_not_found",
      detail: "Role 'reader' was not found.",
    },
    {
      summary: "A key that is not there",
      input: { keyId: "key_IXIyFsB89IXl4uYc", roles: [] },
      problem: "key_not_found",
    },
  ],
}).handle(async ({ keyId, roles: names }, { store, principal, now, invalidate, audit, fail }) => {
  const key = await store.keys.findForUpdate(keyId);
  if (!key) return fail("key_not_found");
  principal.authorize(`apis.${key.api_id}.update_key`);
  const before = await store.roles.listOfKey(keyId);
  await assignRoles(store, keyId, names, fail);
  const after = await store.roles.listOfKey(keyId);
  const [added, removed] = [without(after, before), without(before, after)];
  if (added.length + removed.length > 0) {
    await store.keys.update(keyId, { updated_at: now });
    invalidate.key(keyId);
    audit([keyId, key.api_id], {
      added: added.map(({ name }) => name),
      removed: removed.map(({ name }) => name),
    });
  }
  return after.map(roleRecord);
});
