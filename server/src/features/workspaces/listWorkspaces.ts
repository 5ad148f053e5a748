import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleWorkspace } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { NOT_DEFAULT, toWorkspaceOutput, WorkspaceOutput } from "./record.ts";
import { AdministrationReader } from "./statements.ts";

const LIST = "workspaces.listWorkspaces";

export const listWorkspaces = pagedQuery("workspaces.listWorkspaces", {
  summary: "List workspaces",
  description: "Ordered by creation time. Requires a root key of the default workspace.",
  permissions: ["workspaces.*.read_workspace"],
  input: z.strictObject({ ...pageInput(LIST, 100), search: search("names and ids").optional() }),
  output: z.array(WorkspaceOutput),
  problems: [],
  examples: [{ summary: "Search", input: { search: "INITECH", limit: 10 }, output: [exampleWorkspace] }],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal, fail }) => {
  principal.authorize("workspaces.*.read_workspace");
  const workspaces = await store.of(AdministrationReader).allWorkspaces();
  if (!workspaces) return fail("insufficient_permissions", NOT_DEFAULT);
  const rows = await workspaces.page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  return pageOf(LIST, rows, limit, toWorkspaceOutput);
});
