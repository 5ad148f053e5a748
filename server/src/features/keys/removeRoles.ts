import { mutation } from "../../platform/rpc/operation.ts";
import { exampleKey, exampleRole } from "../../platform/vocabulary/examples.ts";
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

export const removeRoles = mutation("keys.removeRoles", {
  summary: "Remove roles from a key",
  description: "Returns the remaining roles. Every role in the request must exist, but the key need not have it.",
  permissions: ["apis.{apiId}.update_key"],
  input: rolesInput(KeyRoles.min(1)),
  output: RolesOutput,
  problems: ["key_not_found", "role_not_found"],
  examples: [
    {
      summary: "Remove a role from a key",
      input: { keyId: exampleKey.keyId, roles: [exampleRole.name] },
      output: [],
    },
    missingRole(),
    missingKey({ roles: [exampleRole.name] }),
  ],
}).handle(async ({ keyId, roles: names }, context) => {
  const { store, fail } = context;
  const key = await lockKey(keyId, "update_key", context);
  const named = await lockRolesByNames(store, names, fail);
  const before = await store.of(RoleWriter).listOfKey(keyId);
  const after = without(before, named);
  if (after.length < before.length) {
    await store.of(KeyGrantWriter).roles.remove(keyId, idsOf(named));
    await recordKeyChange(key, "roles", { removed: without(before, after).map(({ name }) => name) }, context);
  }
  return after.map(toRoleOutput);
});
