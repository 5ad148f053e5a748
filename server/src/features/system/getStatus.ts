import { z } from "zod";
import { exampleTime } from "../../platform/vocabulary/examples.ts";
import { analysis } from "../services.ts";
import { AdministrationReader } from "../workspaces/statements.ts";
import { EDGES_LISTED_MAX, EdgesOutput, nodeStatus, ServiceOutput } from "./fields.ts";

export const getStatus = analysis("system.getStatus", {
  summary: "Get the status of the service",
  description:
    "The state of the node that answers. `service`, with version and configuration, is present for root keys of the " +
    "default workspace. No secret is in it.",
  permissions: ["system.*.read_status"],
  input: z.strictObject({}),
  output: z.strictObject({
    ...nodeStatus,
    edges: EdgesOutput.optional().describe(
      "The edges of the workspace that asked this node for changes within 10 seconds. Absent: there are none.",
    ),
    service: ServiceOutput.optional(),
  }),
  problems: [],
  examples: [
    {
      summary: "A healthy node without Redis",
      input: {},
      output: {
        status: "ok",
        startedAt: exampleTime,
        components: [
          { name: "database", status: "ok" },
          { name: "storage", status: "ok" },
          { name: "redis", status: "off" },
          { name: "analytics", status: "ok" },
        ],
      },
    },
  ],
})
  .authorize(async (_, { store, principal }) => {
    principal.authorize("system.*.read_status");
    return { withService: (await store.of(AdministrationReader).allWorkspaces()) !== undefined };
  })
  .answer(async ({ withService }, { node, replicas }, { workspaceId }) => ({
    ...(await node.status()),
    ...edgesMember(replicas.edges.list(workspaceId)),
    ...(withService && { service: await node.serviceStatus() }),
  }));

function edgesMember(edges: z.output<typeof EdgesOutput>["list"]) {
  return edges.length === 0 ? {} : { edges: { count: edges.length, list: edges.slice(0, EDGES_LISTED_MAX) } };
}
