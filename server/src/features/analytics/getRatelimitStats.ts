import { z } from "zod";
import { exampleNamespace, exampleRange } from "../../platform/vocabulary/examples.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { Namespace } from "../ratelimits/fields.ts";
import { NamespaceReader } from "../ratelimits/statements/namespaces.ts";
import { analysis } from "../services.ts";
import { answerCounts, type Counted } from "./counts.ts";
import { bucketsOf, rangeInput, rangeOutput, ratelimitStats } from "./range.ts";

const once = { total: 1, passed: 1, denied: 0, cost: 1 };
const never = { total: 0, passed: 0, denied: 0, cost: 0 };

export const getRatelimitStats = analysis("analytics.getRatelimitStats", {
  summary: "Get the statistics of a rate limit namespace",
  description:
    "Counts the passed and denied decisions in a namespace by time and by identifier. Each entry of " +
    "`ratelimits.multiLimit` is one decision. Counts are about one second old, and a few seconds under load.",
  permissions: ["ratelimits.{namespaceId}.read_analytics"],
  input: z.strictObject({
    namespace: Namespace,
    identifier: text(1, 512).optional().describe("Only decisions about this identifier."),
    ...rangeInput,
  }),
  output: z.strictObject({
    namespace: z.string().describe("As in the request."),
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
      summary: "A namespace that does not exist",
      input: { namespace: "letters", ...exampleRange },
      problem: "namespace_not_found",
    },
  ],
})
  .authorize(async ({ namespace: nameOrId, identifier, ...range }, { store, principal, fail }): Promise<Counted> => {
    const namespace = await store.of(NamespaceReader).find(nameOrId);
    if (!namespace) return fail("namespace_not_found");
    principal.authorize(`ratelimits.${namespace.id}.read_analytics`);
    const { level, start, end } = bucketsOf(range, fail);
    return {
      members: {
        namespace: nameOrId,
        ...(identifier !== undefined && { identifier }),
        start,
        end,
        granularity: level,
      },
      query: { about: "ratelimits", subject: namespace.id, level, start, end, tags: [], identifier },
    };
  })
  .answer(answerCounts);
