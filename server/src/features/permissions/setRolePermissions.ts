import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { boundedValue } from "../../platform/vocabulary/changed-values.ts";
import { exampleRole } from "../../platform/vocabulary/examples.ts";
import { ensurePermissions, idsOf, slugsOf, without } from "./ensure.ts";
import { RolePermissions, RoleReference } from "./fields.ts";
import { PermissionOutput, toPermissionOutput } from "./record.ts";
import { RoleWriter } from "./statements/roles.ts";

export const setRolePermissions = mutation("permissions.setRolePermissions", {
  summary: "Set the permissions of a role",
  description:
    "Replaces all permissions of the role. The next verification on the same node sees the change. Returns " +
    "the permissions sorted by slug.",
  permissions: [
    "permissions.*.add_permission_to_role",
    "permissions.*.remove_permission_from_role",
    "permissions.*.create_permission",
  ],
  input: z
    .strictObject({
      role: RoleReference.optional(),
      roleId: RoleReference.optional().describe("The same as `role`, for clients that use this name."),
      permissions: RolePermissions,
    })
    .check(({ value, issues }) => {
      if ((value.role === undefined) === (value.roleId === undefined)) {
        issues.push({
          code: "custom",
          input: value,
          message: "must have exactly one of 'role' and 'roleId'",
          params: { keyword: "oneOf", fix: "Send the role's id or name as 'role'." },
        });
      }
    })
    .meta({ oneOf: [{ required: ["role"] }, { required: ["roleId"] }] }),
  output: z.array(PermissionOutput),
  problems: ["role_not_found"],
  examples: [
    {
      summary: "Set the permissions of a role",
      input: { role: exampleRole.name, permissions: [exampleRole.permissions[0].slug] },
      output: [exampleRole.permissions[0]],
    },
    { summary: "Remove all permissions", input: { role: exampleRole.id, permissions: [] }, output: [] },
    {
      summary: "A role that does not exist",
      input: { role: "reader", permissions: [] },
      problem: "role_not_found",
    },
  ],
}).handle(async (input, context) => {
  const { store, principal, invalidate, audit, fail } = context;
  principal.authorize("permissions.*.add_permission_to_role");
  principal.authorize("permissions.*.remove_permission_from_role");
  const roles = store.of(RoleWriter);
  const found = await roles.find((input.role ?? input.roleId)!);
  const role = found && (await roles.findForUpdate(found.id));
  if (!role) return fail("role_not_found");
  const permissions = await ensurePermissions(input.permissions, context);
  const added = without(permissions, role.permissions);
  const removed = without(role.permissions, permissions);
  if (added.length + removed.length > 0) {
    await roles.setPermissions(role.id, idsOf(permissions));
    // Each key of the workspace may have the role.
    invalidate.workspace(principal.workspaceId);
    audit([role.id], { added: boundedValue(slugsOf(added)), removed: boundedValue(slugsOf(removed)) }, [
      {
        type: "role.updated",
        objectId: role.id,
        data: { roleId: role.id, name: role.name, changed: ["permissions"] },
      },
    ]);
  }
  return permissions.map(toPermissionOutput);
});
