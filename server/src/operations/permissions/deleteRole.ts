import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleRole } from "../examples.ts";
import { Empty } from "../schema.ts";
import { RoleReference } from "./fields.ts";

export const deleteRole = mutation("permissions.deleteRole", {
  summary: "Delete a role",
  description:
    "No key has it any more, from the next verification on. Its permissions stay, and its name is free at once.",
  permissions: ["permissions.*.delete_role"],
  input: z.strictObject({ role: RoleReference }),
  output: Empty,
  problems: ["role_not_found"],
  examples: [
    { summary: "Delete a role", input: { role: exampleRole.name }, output: {} },
    { summary: "A role that is not there", input: { role: "reader" }, problem: "role_not_found" },
  ],
}).handle(async ({ role: idOrName }, { store, principal, invalidate, audit, fail }) => {
  principal.authorize("permissions.*.delete_role");
  const role = await store.roles.find(idOrName);
  if (!role || !(await store.roles.delete(role.id))) return fail("role_not_found");
  // Any key may have had it.
  invalidate.workspace(principal.workspaceId);
  audit([role.id], { name: role.name });
  return {};
});
