import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { examplePermission } from "../examples.ts";
import { Empty } from "../schema.ts";
import { PermissionReference } from "./fields.ts";

export const deletePermission = mutation("permissions.deletePermission", {
  summary: "Delete a permission",
  description: "No key and no role has it any more, from the next verification on. Its slug is free at once.",
  permissions: ["permissions.*.delete_permission"],
  input: z.strictObject({ permission: PermissionReference }),
  output: Empty,
  problems: ["permission_not_found"],
  examples: [
    { summary: "Delete a permission", input: { permission: examplePermission.slug }, output: {} },
    {
      summary: "A permission that is not there",
      input: { permission: "documents.share" },
      problem: "permission_not_found",
    },
  ],
}).handle(async ({ permission: idOrSlug }, { store, principal, invalidate, audit, fail }) => {
  principal.authorize("permissions.*.delete_permission");
  const permission = await store.permissions.find(idOrSlug);
  if (!permission || !(await store.permissions.delete(permission.id))) return fail("permission_not_found");
  // Any key may have had it.
  invalidate.workspace(principal.workspaceId);
  audit([permission.id], { slug: permission.slug });
  return {};
});
