import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf, flag } from "../../platform/vocabulary/columns.ts";
import { exampleWorkspace } from "../../platform/vocabulary/examples.ts";
import { Empty, Name, WorkspaceId } from "../../platform/vocabulary/schema.ts";
import { NOT_DEFAULT, RequestsPerMinute } from "./record.ts";
import { AdministrationWriter } from "./statements.ts";

const LOCKS_OUT =
  "The default workspace manages all workspaces. This change would lock out every root key that could revert it. " +
  "To disable the default workspace, an operator uses `latchkey workspace disable`.";

export const updateWorkspace = mutation("workspaces.updateWorkspace", {
  summary: "Update a workspace",
  description:
    "Omitted fields do not change. A disabled workspace rejects calls with its root keys, and none of its keys is " +
    "valid. No data is deleted. `requestsPerMinute` counts the calls of all its root keys. Their responses carry " +
    "`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. Requires a root key of the default workspace, which " +
    "cannot lock itself out.",
  narrowsAccess: true,
  permissions: ["workspaces.*.update_workspace"],
  input: z.strictObject({
    workspaceId: WorkspaceId,
    name: Name.optional(),
    enabled: z.boolean().optional(),
    requestsPerMinute: RequestsPerMinute.nullable()
      .optional()
      .describe("Maximum number of calls per minute of all its root keys together. 0: none. Null: unlimited."),
  }),
  output: Empty,
  problems: ["workspace_not_found", "protected_resource"],
  examples: [
    {
      summary: "Disable a workspace",
      input: { workspaceId: exampleWorkspace.workspaceId, enabled: false },
      output: {},
    },
    {
      summary: "Remove the limit on requests",
      input: { workspaceId: exampleWorkspace.workspaceId, requestsPerMinute: null },
      output: {},
    },
    {
      summary: "A workspace that does not exist",
      input: { workspaceId: "ws_T0gRm5xEiCw8UqPk", enabled: true },
      problem: "workspace_not_found",
    },
  ],
}).handle(async ({ workspaceId, ...changed }, { store, principal, now, invalidate, audit, fail }) => {
  principal.authorize("workspaces.*.update_workspace");
  const workspaces = await store.of(AdministrationWriter).allWorkspaces();
  if (!workspaces) return fail("insufficient_permissions", NOT_DEFAULT);
  const workspace = await workspaces.find(workspaceId);
  if (!workspace) return fail("workspace_not_found");
  const { enabled, requestsPerMinute } = changed;
  if (workspace.is_default === 1 && (enabled === false || requestsPerMinute === 0)) {
    return fail("protected_resource", LOCKS_OUT);
  }
  if (Object.keys(changed).length === 0) return {};

  const columns = columnsOf(changed, {
    name: (name) => ({ name }),
    enabled: (isEnabled) => ({ enabled: flag(isEnabled) }),
    requestsPerMinute: (limit) => ({ requests_per_minute: limit }),
  } satisfies ColumnsFor<typeof changed>);
  await workspaces.update(workspaceId, columns, now);
  invalidate.workspace(workspaceId);
  const former = {
    name: workspace.name,
    enabled: workspace.enabled === 1,
    requestsPerMinute: workspace.requests_per_minute,
  };
  const differing = changedValues(changed, former);
  audit(
    [workspaceId],
    { ...changed, ...differing },
    updateEvents("workspace", workspaceId, { workspaceId }, differing.after),
  );
  return {};
});
