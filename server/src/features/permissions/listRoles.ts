import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleRole } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { RoleOutput, toRoleOutput } from "./record.ts";
import { RoleReader } from "./statements/roles.ts";

const LIST = "permissions.listRoles";

export const listRoles = pagedQuery("permissions.listRoles", {
  summary: "List roles",
  description: "Ordered by creation time. Each role includes its permissions.",
  permissions: ["permissions.*.read_role"],
  input: z.strictObject({ ...pageInput(LIST, 100), search: search("ids, names and descriptions").optional() }),
  output: z.array(RoleOutput),
  problems: [],
  examples: [
    { summary: "The first page", input: {}, output: [exampleRole] },
    { summary: "Search", input: { search: "EDIT" }, output: [exampleRole] },
  ],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  principal.authorize("permissions.*.read_role");
  const rows = await store.of(RoleReader).page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  return pageOf(LIST, rows, limit, toRoleOutput);
});
