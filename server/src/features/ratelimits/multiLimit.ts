import { z } from "zod";
import type { NamespaceRecord } from "../../../../engine/src/directory/records.ts";
import type { LimitDecision } from "../../../../engine/src/limits/counters.ts";
import type { MeteredAnswer, MeteredContext } from "../../platform/rpc/operation.ts";
import { exampleCount, exampleReset } from "../../platform/vocabulary/examples.ts";
import { metered, type Services } from "../services.ts";
import { type CountedEntry, charge, countEntry, ensureNamespaces, passes, resultMembers } from "./count.ts";
import { LimitInput, limitResult } from "./fields.ts";

/** Entries of one call. */
export const ENTRIES_MAX = 100;

type Entry = z.output<typeof LimitInput>;

export const multiLimit = metered("ratelimits.multiLimit", {
  aliases: ["ratelimit.multiLimit"],
  summary: "Limit several identifiers at once",
  description:
    "Charges all entries or none: if one entry is denied, no limit is charged, and each result gives the state of its " +
    "limit. Entries with the same identifier, namespace and window add up. Otherwise the same as `ratelimits.limit`.",
  idempotent: true,
  permissions: ["ratelimits.{namespaceId}.limit", "ratelimits.*.create_namespace"],
  input: z.array(LimitInput).min(1).max(ENTRIES_MAX),
  output: z.strictObject({
    passed: z.boolean().describe("Whether every entry passed."),
    limits: z
      .array(
        z.strictObject({
          namespace: z.string().describe("As in the request."),
          identifier: z.string(),
          passed: z.boolean().describe("Whether this entry alone would pass."),
          ...limitResult,
        }),
      )
      .describe("In the order of the request."),
  }),
  problems: [],
  examples: [
    {
      summary: "A limit per user and one for all users",
      input: [exampleCount, { namespace: "emails.all", identifier: "all", limit: 1_000, duration: 60_000, cost: 2 }],
      output: {
        passed: true,
        limits: [
          {
            namespace: exampleCount.namespace,
            identifier: exampleCount.identifier,
            passed: true,
            limit: 10,
            remaining: 8,
            reset: exampleReset,
            retryAfter: 0,
          },
          {
            namespace: "emails.all",
            identifier: "all",
            passed: true,
            limit: 1_000,
            remaining: 998,
            reset: exampleReset,
            retryAfter: 0,
          },
        ],
      },
    },
  ],
}).handle((input, services, context) => {
  const namespaces: NamespaceRecord[] = [];
  for (const { namespace } of input) {
    const record = services.namespaces.find(namespace, context.workspaceId);
    if (record === null || record instanceof Promise) {
      const names = input.map((entry) => entry.namespace);
      return ensureNamespaces("ratelimits.multiLimit", names, services, context).then((all) =>
        countLimits(input, all, services, context),
      );
    }
    namespaces.push(record);
  }
  return countLimits(input, namespaces, services, context);
});

/** Counts in namespaces that were found, one for each entry. */
export function countLimits(
  input: readonly Entry[],
  namespaces: readonly NamespaceRecord[],
  services: Pick<Services, "limiter" | "replays" | "recorder">,
  context: MeteredContext<never>,
): MeteredAnswer | Promise<MeteredAnswer> {
  for (const { limitRequirement } of namespaces) context.principal!.authorize(limitRequirement);
  const counted = input.map((entry, i) => countEntry(namespaces[i]!, entry, context.workspaceId));
  return charge(counted, services, context, (decided) => answer(input, counted, decided));
}

function answer(input: readonly Entry[], counted: readonly CountedEntry[], { allowed, limits }: LimitDecision): string {
  const entries = input.map(({ namespace, identifier }, i) => {
    const state = limits[i]!;
    const one = counted[i]!;
    const subject = `"namespace":${JSON.stringify(namespace)},"identifier":${JSON.stringify(identifier)}`;
    return `{${subject},"passed":${passes(one.charge, state)},${resultMembers(one, state)}}`;
  });
  return `{"passed":${allowed},"limits":[${entries.join(",")}]}`;
}
