import { z } from "zod";

const Component = z.strictObject({
  name: z.enum(["database", "storage", "claim", "redis", "analytics"]),
  status: z.enum(["ok", "degraded", "off"]),
  detail: z.string().optional().describe("What is wrong; of a Redis that answers, which servers count."),
});

const Setting = z.strictObject({
  name: z.string().describe("The name in the environment."),
  value: z
    .string()
    .describe("The effective value: times in milliseconds, sizes in bytes. Of a secret `set`. Empty: none."),
  isSecret: z.boolean(),
});

const Latencies = {
  since: z.int().describe("Unix time in milliseconds from which on calls are counted."),
  verifications: z.int().describe("Calls of `keys.verifyKey`. 0 with `LATCHKEY_METRICS=off`."),
  p50Ms: z.number().optional().describe("Half of them were answered in at most this time, in milliseconds."),
  p99Ms: z.number().optional().describe("99 % of them were answered in at most this time."),
};

/** What every caller with the permission may know of a node. */
export const nodeStatus = {
  status: z.enum(["ok", "degraded", "fail", "shutting down"]).describe("As `/health/ready` reports it."),
  startedAt: z.int().describe("Unix time in milliseconds at which the node started."),
  components: z.array(Component),
};

/** The edges of a workspace that a status lists. */
export const EDGES_LISTED_MAX = 100;

export const EdgesOutput = z.strictObject({
  count: z.int().describe("How many there are."),
  list: z
    .array(
      z.strictObject({
        id: z.string(),
        kind: z.enum(["process", "library"]).describe("`process`: `latchkey edge`; `library`: `LocalLatchkey`."),
        version: z.string(),
        name: z.string().optional().describe("Absent: it has none."),
        rootKeyId: z.string().describe("The root key of the edge."),
        address: z.string(),
        records: z.int().describe("Keys and root keys in its memory."),
        reports: z.int().describe("Counts of verifications that it has not delivered."),
        leases: z.int().optional().describe("Parts of limits that it holds. Absent: its release has none."),
        ageMs: z.int().describe("Milliseconds since it last asked for changes."),
      }),
    )
    .describe(`At most ${EDGES_LISTED_MAX}, in the order of their ids.`),
});

/** What only root keys of the default workspace may know. */
export const ServiceOutput = z.strictObject({
  version: z.string(),
  node: z.string().describe("Version of Node.js."),
  configuration: z.array(Setting),
  backups: z
    .strictObject({
      everyMs: z.int().describe("Milliseconds between two backups."),
      lastMadeAt: z.int().optional().describe("When the newest one was made. Absent: there is none."),
      bytes: z.int().optional().describe("Its size."),
      nextAt: z.int().describe("When the next one is due."),
      failures: z.int().describe("Attempts that failed since the start."),
      trouble: z.string().optional().describe("Why the last attempt failed. Absent: it succeeded."),
    })
    .optional()
    .describe("The scheduled backups of the embedded database. Absent: there is no schedule."),
  recent: z
    .strictObject({
      ...Latencies,
      lookupsRefused: z
        .int()
        .describe(
          "Look-ups that were refused, because the budget for unknown keys, root keys and sessions was used up.",
        ),
      minutes: z
        .array(z.strictObject(Latencies))
        .describe("The last 60 minutes one by one, the oldest first. The last one is in progress."),
    })
    .describe("The last 10 minutes of the node, for all workspaces; `minutes` covers an hour."),
});

const Status = z.strictObject(nodeStatus);
export type NodeStatus = z.input<typeof Status>;
export type ServiceStatus = z.input<typeof ServiceOutput>;
