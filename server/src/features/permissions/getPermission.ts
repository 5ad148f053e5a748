import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { examplePermission } from "../../platform/vocabulary/examples.ts";
import { PermissionReference } from "./fields.ts";
import { PermissionOutput, toPermissionOutput } from "./record.ts";
import { PermissionReader } from "./statements/permissions.ts";

export const getPermission = query("permissions.getPermission", {
  summary: "Get a permission",
  description: "Finds a permission by its id or its slug.",
  permissions: ["permissions.*.read_permission"],
  input: z.strictObject({ permission: PermissionReference }),
  output: PermissionOutput,
  problems: ["permission_not_found"],
  examples: [
    { summary: "By slug", input: { permission: examplePermission.slug }, output: examplePermission },
    { summary: "By id", input: { permission: examplePermission.id }, output: examplePermission },
    {
      summary: "A permission that does not exist",
      input: { permission: "documents.share" },
      problem: "permission_not_found",
    },
  ],
}).handle(async ({ permission: idOrSlug }, { store, principal, fail }) => {
  principal.authorize("permissions.*.read_permission");
  const permission = await store.of(PermissionReader).find(idOrSlug);
  if (!permission) return fail("permission_not_found");
  return toPermissionOutput(permission);
});
