import { z } from "zod";
import { LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import type { WorkspaceRow } from "../../platform/store/schema.ts";
import { integer } from "../../platform/vocabulary/schema.ts";

export const RequestsPerMinute = integer(0, LIMIT_MAX).describe(
  "Maximum number of calls per minute of all its root keys together. 0: none.",
);

/** A workspace as the API operations return it. */
export const WorkspaceOutput = z
  .strictObject({
    workspaceId: z.string(),
    name: z.string(),
    enabled: z.boolean().describe("Whether its root keys are accepted and its keys can be valid."),
    default: z.boolean().describe("Whether it is the default workspace, which manages the others."),
    requestsPerMinute: z.int().optional().describe("Absent: unlimited."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
  })
  .meta({ id: "Workspace", description: "The resources of one tenant, isolated from all others." });

export function toWorkspaceOutput(workspace: WorkspaceRow): z.input<typeof WorkspaceOutput> {
  return {
    workspaceId: workspace.id,
    name: workspace.name,
    enabled: workspace.enabled === 1,
    default: workspace.is_default === 1,
    ...(workspace.requests_per_minute !== null && { requestsPerMinute: workspace.requests_per_minute }),
    createdAt: workspace.created_at,
    ...(workspace.updated_at !== null && { updatedAt: workspace.updated_at }),
  };
}

/** The error detail for a root key of any other workspace. */
export const NOT_DEFAULT =
  "Managing workspaces requires a root key of the default workspace. This root key belongs to another workspace.";
