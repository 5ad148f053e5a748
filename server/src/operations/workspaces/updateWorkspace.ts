import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleWorkspace } from "../examples.ts";
import { Empty, Name, WorkspaceId } from "../schema.ts";
import { NOT_DEFAULT, RequestsPerMinute } from "./record.ts";

const SHUTS_OUT =
  "This would shut out every root key that could undo it: the default workspace manages the others and itself. " +
  "An operator disables it with `latchkey workspace disable`.";

export const updateWorkspace = mutation("workspaces.updateWorkspace", {
  summary: "Change a workspace",
  description:
    "What is omitted stays as it is. Disabled, calls with its root keys are refused and none of its keys is valid; " +
    "nothing is lost. `requestsPerMinute` counts the calls that carry any of its root keys; their answers say in " +
    "`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` how it stands. Only root keys of the default " +
    "workspace manage workspaces, and they cannot shut themselves out.",
  narrowsAccess: true,
  permissions: ["workspaces.*.update_workspace"],
  input: z.strictObject({
    workspaceId: WorkspaceId,
    name: Name.optional(),
    enabled: z.boolean().optional(),
    requestsPerMinute: RequestsPerMinute.nullable()
      .optional()
      .describe("Calls that all its root keys together may make in a minute. 0: none; null: any number."),
  }),
  output: Empty,
  problems: ["workspace_not_found", "protected_resource"],
  examples: [
    { summary: "Disable", input: { workspaceId: exampleWorkspace.workspaceId, enabled: false }, output: {} },
    {
      summary: "As many requests as it likes",
      input: { workspaceId: exampleWorkspace.workspaceId, requestsPerMinute: null },
      output: {},
    },
    {
      summary: "A workspace that is not there",
      input: { workspaceId: "ws_T0gRm5xEiCw8UqPk", enabled: true },
      problem: "workspace_not_found",
    },
  ],
}).handle(async ({ workspaceId, ...changed }, { store, principal, now, invalidate, audit, fail }) => {
  principal.authorize("workspaces.*.update_workspace");
  const workspaces = await store.allWorkspaces();
  if (!workspaces) return fail("insufficient_permissions", NOT_DEFAULT);
  const workspace = await workspaces.find(workspaceId);
  if (!workspace) return fail("workspace_not_found");
  const { name, enabled, requestsPerMinute } = changed;
  if (workspace.is_default === 1 && (enabled === false || requestsPerMinute === 0)) {
    return fail("protected_resource", SHUTS_OUT);
  }
  if (Object.keys(changed).length === 0) return {};

  await workspaces.update(
    workspaceId,
    {
      ...(name !== undefined && { name }),
      ...(enabled !== undefined && { enabled: enabled ? 1 : 0 }),
      ...(requestsPerMinute !== undefined && { requests_per_minute: requestsPerMinute }),
    },
    now,
  );
  invalidate.workspace(workspaceId);
  audit([workspaceId], changed);
  return {};
});
