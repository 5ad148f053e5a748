import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleRole } from "../examples.ts";
import { text } from "../schema.ts";
import { ensurePermissions, idsOf, slugsOf, without } from "./ensure.ts";
import { RolePermissions } from "./fields.ts";
import { PermissionOutput, permissionRecord } from "./record.ts";

export const setRolePermissions = mutation("permissions.setRolePermissions", {
  summary: "Set the permissions of a role",
  description:
    "It has these and no others, and so has every key with this role, from the next verification on. The answer is in " +
    "the order of the slugs.",
  permissions: [
    "permissions.*.add_permission_to_role",
    "permissions.*.remove_permission_from_role",
    "permissions.*.create_permission",
  ],
  input: z.strictObject({
    roleId: text(3, 255, {
      regex: /^[a-zA-Z0-9_-]+$/,
      says: "may hold letters, digits, underscores and hyphens",
    }).describe("The role's id; not its name."),
    permissions: RolePermissions,
  }),
  output: z.array(PermissionOutput),
  problems: ["role_not_found"],
  examples: [
    {
      summary: "Leave one",
      input: { roleId: exampleRole.id, permissions: [exampleRole.permissions[0]!.slug] },
      output: [exampleRole.permissions[0]!],
    },
    { summary: "Take all", input: { roleId: exampleRole.id, permissions: [] }, output: [] },
    {
      summary: "A role that is not there",
      input: { roleId: "role_8JgNEx3zQqWkY1ZU", permissions: [] },
      problem: "role_not_found",
    },
  ],
}).handle(async ({ roleId, permissions: slugs }, context) => {
  const { store, principal, announce, audit, fail } = context;
  principal.authorize("permissions.*.add_permission_to_role");
  principal.authorize("permissions.*.remove_permission_from_role");
  const role = await store.permissions.holdRole(roleId);
  if (!role) return fail("role_not_found");
  const permissions = await ensurePermissions(slugs, context);
  const added = without(permissions, role.permissions);
  const removed = without(role.permissions, permissions);
  if (added.length + removed.length > 0) {
    await store.permissions.setRolePermissions(roleId, idsOf(permissions));
    // Any key may have the role.
    announce(principal.workspaceId);
    audit([roleId], { added: slugsOf(added), removed: slugsOf(removed) });
  }
  return permissions.map(permissionRecord);
});
