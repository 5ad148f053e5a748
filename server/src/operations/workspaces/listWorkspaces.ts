import { z } from "zod";
import { pagedQuery } from "../../rpc/operation.ts";
import { exampleWorkspace } from "../examples.ts";
import { pageInput, search } from "../schema.ts";
import { NOT_DEFAULT, WorkspaceOutput, workspaceRecord } from "./record.ts";

export const listWorkspaces = pagedQuery("workspaces.listWorkspaces", {
  summary: "List workspaces",
  description: "In the order of their identifiers. Only for root keys of the default workspace.",
  permissions: ["workspaces.*.read_workspace"],
  input: z.strictObject({ ...pageInput(100), search: search("names and ids").optional() }),
  output: z.array(WorkspaceOutput),
  problems: [],
  examples: [{ summary: "Search", input: { search: "INITECH", limit: 10 }, output: [exampleWorkspace] }],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal, fail }) => {
  principal.authorize("workspaces.*.read_workspace");
  const workspaces = await store.allWorkspaces();
  if (!workspaces) return fail("insufficient_permissions", NOT_DEFAULT);
  const rows = await workspaces.page({ search: part.trim(), cursor, limit: limit + 1 });
  const next = rows[limit];
  return {
    items: rows.slice(0, limit).map(workspaceRecord),
    hasMore: next !== undefined,
    ...(next && { cursor: next.id }),
  };
});
