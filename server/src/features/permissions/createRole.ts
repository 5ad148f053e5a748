import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { boundedValue } from "../../platform/vocabulary/changed-values.ts";
import { exampleRole, exampleRoleInput } from "../../platform/vocabulary/examples.ts";
import { ensurePermissions, idsOf, slugsOf } from "./ensure.ts";
import { Description, RoleName, RolePermissions } from "./fields.ts";
import { RoleWriter } from "./statements/roles.ts";

export const createRole = mutation("permissions.createRole", {
  summary: "Create a role",
  description: "A role is a named set of permissions. Names are unique in the workspace, regardless of case.",
  idempotent: true,
  permissions: ["permissions.*.create_role", "permissions.*.add_permission_to_role", "permissions.*.create_permission"],
  input: z.strictObject({
    name: RoleName.describe("The name of the role."),
    description: Description.optional(),
    permissions: RolePermissions.optional(),
  }),
  output: z.strictObject({ roleId: z.string() }),
  problems: ["role_already_exists"],
  examples: [
    { summary: "Create a role", input: exampleRoleInput, output: { roleId: exampleRole.id } },
    { summary: "A role without permissions", input: { name: "guest" }, output: { roleId: "role_8JgNEx3zQqWkY1ZU" } },
  ],
}).handle(async ({ name, description, permissions: slugs = [] }, context) => {
  const { store, principal, random, now, invalidate, audit, fail } = context;
  principal.authorize("permissions.*.create_role");
  if (slugs.length > 0) principal.authorize("permissions.*.add_permission_to_role");
  const permissions = await ensurePermissions(slugs, context);
  const roles = store.of(RoleWriter);
  const roleId = await roles.insert({ name, description: description || null }, random, now);
  if (roleId === undefined) return fail("role_already_exists", `A role with the name '${name}' already exists.`);
  await roles.setPermissions(roleId, idsOf(permissions));
  invalidate.nothing("No key has the new role.");
  audit([roleId], { name, ...(slugs.length > 0 && { permissions: boundedValue(slugsOf(permissions)) }) }, [
    { type: "role.created", objectId: roleId, data: { roleId, name } },
  ]);
  return { roleId };
});
