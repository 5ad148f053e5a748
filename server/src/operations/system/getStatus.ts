import { z } from "zod";
import { analysis } from "../../rpc/operation.ts";
import { exampleTime } from "../examples.ts";

const Component = z.strictObject({
  name: z.enum(["database", "claim", "redis", "analytics"]),
  status: z.enum(["ok", "degraded", "off"]),
  detail: z.string().optional().describe("What is wrong."),
});

const Setting = z.strictObject({
  name: z.string().describe("The name in the environment."),
  value: z
    .string()
    .describe("The effective value: times in milliseconds, sizes in bytes. Of a secret `set`. Empty: none."),
  isSecret: z.boolean(),
});

export const getStatus = analysis("system.getStatus", {
  summary: "Get the status of the service",
  description:
    "The state of the node that answers. `service`, with version and configuration, is present for root keys of the " +
    "default workspace. No secret is in it.",
  permissions: ["system.*.read_status"],
  input: z.strictObject({}),
  output: z.strictObject({
    status: z.enum(["ok", "degraded", "fail", "shutting down"]).describe("As `/health/ready` reports it."),
    startedAt: z.int().describe("Unix time in milliseconds at which the node started."),
    components: z.array(Component),
    service: z
      .strictObject({
        version: z.string(),
        node: z.string().describe("Version of Node.js."),
        configuration: z.array(Setting),
      })
      .optional(),
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
          { name: "redis", status: "off" },
          { name: "analytics", status: "ok" },
        ],
      },
    },
  ],
}).handle(async (_, { store, principal }) => {
  principal.authorize("system.*.read_status");
  const withConfiguration = (await store.allWorkspaces()) !== undefined;
  return { echo: {}, question: { about: "service", withConfiguration } };
});
