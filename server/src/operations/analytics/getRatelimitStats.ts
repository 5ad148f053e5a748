import { z } from "zod";
import { analysis } from "../../rpc/operation.ts";
import { exampleNamespace, exampleRange } from "../examples.ts";
import { Namespace } from "../ratelimits/fields.ts";
import { text } from "../schema.ts";
import { bucketsOf, rangeInput, rangeOutput, ratelimitStats } from "./range.ts";

const once = { total: 1, passed: 1, denied: 0, cost: 1 };
const never = { total: 0, passed: 0, denied: 0, cost: 0 };

export const getRatelimitStats = analysis("analytics.getRatelimitStats", {
  summary: "Count the decisions of a rate limit namespace",
  description:
    "How often something passed in a namespace and how often it was denied, of whom most, and when. Each entry of a " +
    "`ratelimits.multiLimit` is a decision. Counts are a second behind, a few under load.",
  permissions: ["ratelimits.{namespaceId}.read_analytics"],
  input: z.strictObject({
    namespace: Namespace,
    identifier: text(1, 512).optional().describe("Only what was counted for this one."),
    ...rangeInput,
  }),
  output: z.strictObject({
    namespace: z.string().describe("As it was asked for."),
    identifier: z.string().optional(),
    ...rangeOutput,
    ...ratelimitStats,
  }),
  problems: ["namespace_not_found"],
  examples: [
    {
      summary: "Two minutes of a namespace",
      input: { namespace: exampleNamespace.name, ...exampleRange },
      output: {
        namespace: exampleNamespace.name,
        ...exampleRange,
        granularity: "minute",
        ...once,
        series: [
          { time: exampleRange.start, ...once },
          { time: exampleRange.start + 60_000, ...never },
        ],
        identifiers: [],
      },
    },
    {
      summary: "A namespace that is not there",
      input: { namespace: "letters", ...exampleRange },
      problem: "namespace_not_found",
    },
  ],
}).handle(async ({ namespace: nameOrId, identifier, ...range }, { store, principal, fail }) => {
  const namespace = await store.namespaces.find(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  principal.authorize(`ratelimits.${namespace.id}.read_analytics`);
  const { level, start, end } = bucketsOf(range, fail);
  return {
    echo: {
      namespace: nameOrId,
      ...(identifier !== undefined && { identifier }),
      ...{ start, end, granularity: level },
    },
    question: { about: "ratelimits", subject: namespace.id, level, start, end, tags: [], identifier },
  };
});
