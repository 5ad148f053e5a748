import { z } from "zod";
import type { NamespaceRecord } from "../../directory/records.ts";
import type { LimitState } from "../../limits/counters.ts";
import { type MeteredAnswer, type MeteredContext, metered } from "../../rpc/operation.ts";
import { exampleCount, exampleNamespace } from "../examples.ts";
import { type Counted, charge, countedIn, obtainNamespaces, resultMembers } from "./count.ts";
import { LimitInput, limitResult } from "./fields.ts";

export const limit = metered("ratelimits.limit", {
  aliases: ["ratelimit.limit"],
  summary: "Count something against a limit",
  description:
    "Whether something may happen now. A denial is an answer with status 200 and `success` false, and takes nothing. " +
    "Windows are aligned to the Unix epoch, and the window before counts for the part of it that still lies within " +
    "one duration. An override of the namespace holds instead of `limit` and `duration`. The headers `RateLimit` and " +
    "`RateLimit-Policy` say the same to an HTTP client, in seconds. A namespace is made when it is first used, which " +
    "also needs `create_namespace`.",
  idempotent: true,
  permissions: ["ratelimits.{namespaceId}.limit", "ratelimits.*.create_namespace"],
  input: LimitInput,
  output: z.strictObject({ success: z.boolean().describe("Whether it may happen."), ...limitResult }),
  problems: [],
  examples: [
    {
      summary: "Ten emails a minute for each user",
      input: exampleCount,
      output: { success: true, limit: 10, remaining: 9, reset: 1_768_478_460_000, retryAfter: 0 },
    },
    {
      summary: "Only look",
      input: { ...exampleCount, cost: 0 },
      output: { success: true, limit: 10, remaining: 10, reset: 1_768_478_460_000, retryAfter: 0 },
    },
    {
      summary: "More than can ever pass",
      input: { ...exampleCount, namespace: exampleNamespace.name, cost: 11 },
      output: { success: false, limit: 10, remaining: 10, reset: 1_768_478_460_000 },
    },
  ],
}).handle((input, context) => {
  const namespace = context.namespaces.find(input.namespace, context.workspaceId);
  return namespace === null || namespace instanceof Promise
    ? obtainNamespaces("ratelimits.limit", [input.namespace], context).then(([made]) => count(input, made!, context))
    : count(input, namespace, context);
});

function count(
  input: z.output<typeof LimitInput>,
  namespace: NamespaceRecord,
  context: MeteredContext<never>,
): MeteredAnswer | Promise<MeteredAnswer> {
  context.principal!.authorize(namespace.limitRequirement);
  const counted = countedIn(namespace, input, context.workspaceId);
  return charge([counted], context, ({ limits, at }) => answer(namespace, counted, limits[0]!, at));
}

function answer(namespace: NamespaceRecord, counted: Counted, state: LimitState, at: number): MeteredAnswer {
  const { limit, duration } = counted.charge;
  const policy = `"${namespace.namespaceId}"`;
  // Seconds are whole; a window that is announced too short would invite callers to come too early.
  const window = Math.ceil(duration / 1_000);
  const untilReset = Math.max(0, Math.ceil((state.reset - at) / 1_000));
  return {
    data: `{"success":${state.allowed},${resultMembers(counted, state)}}`,
    headers: {
      // draft-ietf-httpapi-ratelimit-headers-10.
      "RateLimit-Policy": `${policy};q=${limit};w=${window}`,
      RateLimit: `${policy};r=${state.remaining};t=${untilReset}`,
    },
  };
}
