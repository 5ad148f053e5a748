import { mutation } from "../../platform/rpc/operation.ts";
import { exampleKey, exampleRole } from "../../platform/vocabulary/examples.ts";
import { ROLES_PER_KEY_MAX } from "../../platform/vocabulary/schema.ts";
import { idsOf, without } from "../permissions/ensure.ts";
import { RolesOutput, toRoleOutput } from "../permissions/record.ts";
import { RoleWriter } from "../permissions/statements/roles.ts";
import { lockKey } from "./lock-key.ts";
import {
  KeyRoles,
  lockRolesByNames,
  missingKey,
  missingRole,
  recordKeyChange,
  rolesInput,
} from "./permissions-and-roles.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";

export const addRoles = mutation("keys.addRoles", {
  summary: "Add roles to a key",
  description: "The key keeps its other roles. Returns all roles of the key. Roles are given by name and must exist.",
  permissions: ["apis.{apiId}.update_key", "permissions.*.add_role_to_key"],
  input: rolesInput(KeyRoles.min(1)),
  output: RolesOutput,
  problems: ["key_not_found", "role_not_found"],
  examples: [
    {
      summary: "Add a role to a key",
      input: { keyId: exampleKey.keyId, roles: [exampleRole.name] },
      output: [exampleRole],
    },
    missingRole(exampleRole.name),
    missingKey({ roles: [exampleRole.name] }),
  ],
}).handle(async ({ keyId, roles: names }, context) => {
  const { store, principal, fail } = context;
  const key = await lockKey(keyId, "update_key", context);
  principal.authorize("permissions.*.add_role_to_key");
  const named = await lockRolesByNames(store, names, fail);
  const before = await store.of(RoleWriter).listOfKey(keyId);
  const added = without(named, before);
  if (added.length === 0) return before.map(toRoleOutput);
  const count = before.length + added.length;
  if (count > ROLES_PER_KEY_MAX) {
    return fail("invalid_input", `A key has at most ${ROLES_PER_KEY_MAX} roles; this would make ${count}.`);
  }
  await store.of(KeyGrantWriter).roles.add(keyId, idsOf(added));
  await recordKeyChange(key, "roles", { added: added.map(({ name }) => name) }, context);
  return (await store.of(RoleWriter).listOfKey(keyId)).map(toRoleOutput);
});
