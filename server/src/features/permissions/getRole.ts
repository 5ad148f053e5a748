import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleRole } from "../../platform/vocabulary/examples.ts";
import { RoleReference } from "./fields.ts";
import { RoleOutput, toRoleOutput } from "./record.ts";
import { RoleReader } from "./statements/roles.ts";

export const getRole = query("permissions.getRole", {
  summary: "Get a role",
  description: "Finds a role by its id or its name. Includes its permissions.",
  permissions: ["permissions.*.read_role"],
  input: z.strictObject({ role: RoleReference }),
  output: RoleOutput,
  problems: ["role_not_found"],
  examples: [
    { summary: "By name", input: { role: exampleRole.name }, output: exampleRole },
    { summary: "By id", input: { role: exampleRole.id }, output: exampleRole },
    { summary: "A role that does not exist", input: { role: "reader" }, problem: "role_not_found" },
  ],
}).handle(async ({ role: idOrName }, { store, principal, fail }) => {
  principal.authorize("permissions.*.read_role");
  const role = await store.of(RoleReader).find(idOrName);
  if (!role) return fail("role_not_found");
  return toRoleOutput(role);
});
