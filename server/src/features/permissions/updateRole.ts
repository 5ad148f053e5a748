import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf } from "../../platform/vocabulary/columns.ts";
import { exampleRole } from "../../platform/vocabulary/examples.ts";
import { Description, RoleName, RoleReference } from "./fields.ts";
import { RoleWriter, type StoredRole } from "./statements/roles.ts";

const updated = { id: exampleRole.id, name: "author", description: exampleRole.description };

export const updateRole = mutation("permissions.updateRole", {
  summary: "Update a role",
  description:
    "Omitted fields do not change. Keys keep the role under its new name. To change its permissions, use " +
    "`permissions.setRolePermissions`.",
  permissions: ["permissions.*.update_role"],
  input: z.strictObject({
    role: RoleReference,
    name: RoleName.optional().describe("The name of the role."),
    description: Description.nullish().describe("A description for you. Null or empty: none."),
  }),
  output: z.strictObject({ id: z.string(), name: z.string(), description: z.string().optional() }),
  problems: ["role_not_found", "role_already_exists"],
  examples: [
    { summary: "Rename a role", input: { role: exampleRole.name, name: "author" }, output: updated },
    {
      summary: "Remove a description",
      input: { role: exampleRole.id, description: null },
      output: { id: exampleRole.id, name: exampleRole.name },
    },
    { summary: "A role that does not exist", input: { role: "reader", name: "author" }, problem: "role_not_found" },
  ],
}).handle(async (input, { store, principal, random, now, invalidate, audit, fail }) => {
  principal.authorize("permissions.*.update_role");
  const roles = store.of(RoleWriter);
  const role = await roles.find(input.role);
  if (!role) return fail("role_not_found");
  const { role: _, ...given } = input;
  const changes = columnsOf(given, {
    name: (name) => ({ name }),
    description: (description) => ({ description: description || null }),
  } satisfies ColumnsFor<typeof given>);
  if (Object.keys(changes).length === 0) return toRoleSummary(role);
  const updated = await roles.update(role, changes, random, now);
  if (updated === "missing") return fail("role_not_found");
  if (updated === "taken") return fail("role_already_exists", `A role with the name '${given.name}' already exists.`);
  // Any key of the workspace may have the role.
  if (updated.name !== role.name) invalidate.workspace(principal.workspaceId);
  else invalidate.nothing("Cached keys hold names of roles only.");
  const differing = changedValues(changes, role);
  const { id: roleId, name } = updated;
  audit(
    [roleId],
    { ...given, former: role.name, ...differing },
    updateEvents("role", roleId, { roleId, name }, differing.after),
  );
  return toRoleSummary(updated);
});

function toRoleSummary({ id, name, description }: Omit<StoredRole, "permissions">) {
  return { id, name, ...(description && { description }) };
}
