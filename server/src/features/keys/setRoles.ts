import { mutation } from "../../platform/rpc/operation.ts";
import { exampleKey, exampleRole } from "../../platform/vocabulary/examples.ts";
import { without } from "../permissions/ensure.ts";
import { RolesOutput, toRoleOutput } from "../permissions/record.ts";
import { RoleWriter } from "../permissions/statements/roles.ts";
import { lockKey } from "./lock-key.ts";
import { missingKey, missingRole, recordKeyChange, rolesInput, setRolesByNames } from "./permissions-and-roles.ts";

export const setRoles = mutation("keys.setRoles", {
  summary: "Set the roles of a key",
  description: "Replaces all roles of the key. Roles are given by name and must exist.",
  permissions: ["apis.{apiId}.update_key"],
  input: rolesInput(),
  output: RolesOutput,
  problems: ["key_not_found", "role_not_found"],
  examples: [
    {
      summary: "Set the roles of a key",
      input: { keyId: exampleKey.keyId, roles: [exampleRole.name] },
      output: [exampleRole],
    },
    { summary: "Remove all roles", input: { keyId: exampleKey.keyId, roles: [] }, output: [] },
    missingRole(),
    missingKey({ roles: [] }),
  ],
}).handle(async ({ keyId, roles: names }, context) => {
  const { store, fail } = context;
  const key = await lockKey(keyId, "update_key", context);
  const before = await store.of(RoleWriter).listOfKey(keyId);
  await setRolesByNames(store, keyId, names, fail);
  const after = await store.of(RoleWriter).listOfKey(keyId);
  const added = without(after, before).map(({ name }) => name);
  const removed = without(before, after).map(({ name }) => name);
  if (added.length + removed.length > 0) await recordKeyChange(key, "roles", { added, removed }, context);
  return after.map(toRoleOutput);
});
