import { z } from "zod";
import { pagedQuery } from "../../rpc/operation.ts";
import { exampleRole } from "../examples.ts";
import { pageInput, search } from "../schema.ts";
import { RoleOutput, roleRecord } from "./record.ts";

export const listRoles = pagedQuery("permissions.listRoles", {
  summary: "List roles",
  description: "In the order of their ids, each with its permissions.",
  permissions: ["permissions.*.read_role"],
  input: z.strictObject({ ...pageInput(100), search: search("ids, names and descriptions").optional() }),
  output: z.array(RoleOutput),
  problems: [],
  examples: [
    { summary: "The first page", input: {}, output: [exampleRole] },
    { summary: "Search", input: { search: "EDIT" }, output: [exampleRole] },
  ],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  principal.authorize("permissions.*.read_role");
  const rows = await store.permissions.rolePage({ search: part.trim(), cursor, limit: limit + 1 });
  const next = rows[limit];
  return {
    items: rows.slice(0, limit).map(roleRecord),
    hasMore: next !== undefined,
    ...(next && { cursor: next.id }),
  };
});
