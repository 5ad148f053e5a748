import { z } from "zod";
import type { NamespaceRecord } from "../../directory/records.ts";
import type { LimitDecision } from "../../limits/counters.ts";
import { type MeteredAnswer, type MeteredContext, metered } from "../../rpc/operation.ts";
import { exampleCount } from "../examples.ts";
import { type Counted, charge, countedIn, obtainNamespaces, resultMembers } from "./count.ts";
import { LimitInput, limitResult } from "./fields.ts";

type Entry = z.output<typeof LimitInput>;

export const multiLimit = metered("ratelimits.multiLimit", {
  aliases: ["ratelimit.multiLimit"],
  summary: "Count against several limits at once",
  description:
    "All or nothing: where one of them denies, none takes anything, and each says how it stands. Entries that count " +
    "the same thing in the same window add up. Otherwise as `ratelimits.limit`.",
  idempotent: true,
  permissions: ["ratelimits.{namespaceId}.limit", "ratelimits.*.create_namespace"],
  input: z.array(LimitInput).min(1).max(100),
  output: z.strictObject({
    passed: z.boolean().describe("Whether every entry passed."),
    limits: z
      .array(
        z.strictObject({
          namespace: z.string().describe("As it was asked for."),
          identifier: z.string(),
          passed: z.boolean().describe("Whether this entry by itself would have passed."),
          ...limitResult,
        }),
      )
      .describe("In the order of the request."),
  }),
  problems: [],
  examples: [
    {
      summary: "A limit for the user and one for all",
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
            reset: 1_768_478_460_000,
            retryAfter: 0,
          },
          {
            namespace: "emails.all",
            identifier: "all",
            passed: true,
            limit: 1_000,
            remaining: 998,
            reset: 1_768_478_460_000,
            retryAfter: 0,
          },
        ],
      },
    },
  ],
}).handle((input, context) => {
  const namespaces: NamespaceRecord[] = [];
  for (const { namespace } of input) {
    const known = context.namespaces.find(namespace, context.workspaceId);
    if (known === null || known instanceof Promise) {
      const names = input.map((entry) => entry.namespace);
      return obtainNamespaces("ratelimits.multiLimit", names, context).then((all) => count(input, all, context));
    }
    namespaces.push(known);
  }
  return count(input, namespaces, context);
});

function count(
  input: readonly Entry[],
  namespaces: readonly NamespaceRecord[],
  context: MeteredContext<never>,
): MeteredAnswer | Promise<MeteredAnswer> {
  for (const { limitRequirement } of namespaces) context.principal!.authorize(limitRequirement);
  const counted = input.map((entry, i) => countedIn(namespaces[i]!, entry, context.workspaceId));
  return charge(counted, context, (decided) => answer(input, counted, decided));
}

function answer(input: readonly Entry[], counted: readonly Counted[], { allowed, limits }: LimitDecision): string {
  const entries = input.map(({ namespace, identifier }, i) => {
    const state = limits[i]!;
    const echo = `"namespace":${JSON.stringify(namespace)},"identifier":${JSON.stringify(identifier)}`;
    return `{${echo},"passed":${state.allowed},${resultMembers(counted[i]!, state)}}`;
  });
  return `{"passed":${allowed},"limits":[${entries.join(",")}]}`;
}
