import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { examplePermission } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { PermissionOutput, toPermissionOutput } from "./record.ts";
import { PermissionReader } from "./statements/permissions.ts";

const LIST = "permissions.listPermissions";

export const listPermissions = pagedQuery("permissions.listPermissions", {
  summary: "List permissions",
  description: "Ordered by creation time.",
  permissions: ["permissions.*.read_permission"],
  input: z.strictObject({
    ...pageInput(LIST, 100),
    search: search("ids, names, slugs and descriptions").optional(),
  }),
  output: z.array(PermissionOutput),
  problems: [],
  examples: [
    { summary: "Search", input: { search: "DELETE" }, output: [examplePermission] },
    { summary: "Search without a match", input: { search: "reports", limit: 10 }, output: [] },
  ],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  principal.authorize("permissions.*.read_permission");
  const permissions = store.of(PermissionReader);
  const rows = await permissions.page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  return pageOf(LIST, rows, limit, toPermissionOutput);
});
