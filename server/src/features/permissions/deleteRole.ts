import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleRole } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { RoleReference } from "./fields.ts";
import { RoleWriter } from "./statements/roles.ts";

export const deleteRole = mutation("permissions.deleteRole", {
  summary: "Delete a role",
  description:
    "Removes the role from all keys. The next verification on the same node sees the change. The permissions of " +
    "the role are not deleted. The name can be used again at once.",
  permissions: ["permissions.*.delete_role"],
  input: z.strictObject({ role: RoleReference }),
  output: Empty,
  problems: ["role_not_found"],
  examples: [
    { summary: "Delete a role", input: { role: exampleRole.name }, output: {} },
    { summary: "A role that does not exist", input: { role: "reader" }, problem: "role_not_found" },
  ],
}).handle(async ({ role: idOrName }, { store, principal, invalidate, audit, fail }) => {
  principal.authorize("permissions.*.delete_role");
  const roles = store.of(RoleWriter);
  const role = await roles.find(idOrName);
  if (!role || !(await roles.delete(role.id))) return fail("role_not_found");
  // Any key of the workspace may have had the role.
  invalidate.workspace(principal.workspaceId);
  const { id: roleId, name } = role;
  audit([roleId], { name }, [{ type: "role.deleted", objectId: roleId, data: { roleId, name } }]);
  return {};
});
