import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { examplePermission } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { PermissionReference } from "./fields.ts";
import { PermissionWriter } from "./statements/permissions.ts";

export const deletePermission = mutation("permissions.deletePermission", {
  summary: "Delete a permission",
  description:
    "Removes the permission from all keys and roles. The next verification on the same node sees the change. The slug " +
    "can be used again at once.",
  permissions: ["permissions.*.delete_permission"],
  input: z.strictObject({ permission: PermissionReference }),
  output: Empty,
  problems: ["permission_not_found"],
  examples: [
    { summary: "Delete a permission", input: { permission: examplePermission.slug }, output: {} },
    {
      summary: "A permission that does not exist",
      input: { permission: "documents.share" },
      problem: "permission_not_found",
    },
  ],
}).handle(async ({ permission: idOrSlug }, { store, principal, invalidate, audit, fail }) => {
  principal.authorize("permissions.*.delete_permission");
  const permissions = store.of(PermissionWriter);
  const permission = await permissions.find(idOrSlug);
  if (!permission || !(await permissions.delete(permission.id))) return fail("permission_not_found");
  // Any key of the workspace may have had the permission.
  invalidate.workspace(principal.workspaceId);
  const { id: permissionId, slug } = permission;
  audit([permissionId], { slug }, [
    { type: "permission.deleted", objectId: permissionId, data: { permissionId, slug } },
  ]);
  return {};
});
