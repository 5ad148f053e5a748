import { z } from "zod";
import { pagedQuery } from "../../rpc/operation.ts";
import { examplePermission } from "../examples.ts";
import { pageInput, search } from "../schema.ts";
import { PermissionOutput, permissionRecord } from "./record.ts";

export const listPermissions = pagedQuery("permissions.listPermissions", {
  summary: "List permissions",
  description: "In the order of their ids.",
  permissions: ["permissions.*.read_permission"],
  input: z.strictObject({
    ...pageInput(100),
    search: search("ids, names, slugs and descriptions").optional(),
  }),
  output: z.array(PermissionOutput),
  problems: [],
  examples: [
    { summary: "Search", input: { search: "DELETE" }, output: [examplePermission] },
    { summary: "Search for something else", input: { search: "reports", limit: 10 }, output: [] },
  ],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  principal.authorize("permissions.*.read_permission");
  const rows = await store.permissions.page({ search: part.trim(), cursor, limit: limit + 1 });
  const next = rows[limit];
  return {
    items: rows.slice(0, limit).map(permissionRecord),
    hasMore: next !== undefined,
    ...(next && { cursor: next.id }),
  };
});
