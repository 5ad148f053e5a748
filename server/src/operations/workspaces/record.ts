import { z } from "zod";
import type { WorkspaceRow } from "../../store/schema.ts";
import { integer, LIMIT_MAX } from "../schema.ts";

export const RequestsPerMinute = integer(0, LIMIT_MAX).describe(
  "Calls that all its root keys together may make in a minute. 0: none.",
);

/** A workspace as it is shown. */
export const WorkspaceOutput = z
  .strictObject({
    workspaceId: z.string(),
    name: z.string(),
    enabled: z.boolean().describe("Whether calls with its root keys are answered, and its keys can be valid."),
    default: z.boolean().describe("Whether it is the one that manages the others."),
    requestsPerMinute: z.int().optional().describe("Absent: unlimited."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
  })
  .meta({ id: "Workspace", description: "What belongs to one tenant of the service, apart from all others." });

export function workspaceRecord(workspace: WorkspaceRow): z.input<typeof WorkspaceOutput> {
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

/** What an administrator of any other workspace is told. */
export const NOT_DEFAULT = "Workspaces are managed with root keys of the default workspace. This is one of another.";
