import { z } from "zod";
import type { NamespaceRecord } from "../../../../engine/src/directory/records.ts";
import type { LimitState } from "../../../../engine/src/limits/counters.ts";
import { policyItem, stateItem } from "../../platform/rpc/limit-fields.ts";
import type { MeteredAnswer, MeteredContext } from "../../platform/rpc/operation.ts";
import { exampleCount, exampleNamespace, exampleReset } from "../../platform/vocabulary/examples.ts";
import { metered, type Services } from "../services.ts";
import { type CountedEntry, charge, countEntry, ensureNamespaces, passes, resultMembers } from "./count.ts";
import { LimitInput, limitResult } from "./fields.ts";

export const limit = metered("ratelimits.limit", {
  aliases: ["ratelimit.limit"],
  summary: "Limit an identifier",
  description:
    "Checks a limit and charges it if the call passes. A denied call has status 200 and `success` false, and charges " +
    "nothing. The limit is a sliding window: windows are aligned to the Unix epoch, and the previous window counts in " +
    "proportion to its overlap with the last `duration`. An override of the namespace replaces `limit` and `duration`. " +
    "The headers `RateLimit` and `RateLimit-Policy` carry the result in seconds. The first use of a namespace creates " +
    "it, which also requires `create_namespace`.",
  idempotent: true,
  permissions: ["ratelimits.{namespaceId}.limit", "ratelimits.*.create_namespace"],
  input: LimitInput,
  output: z.strictObject({ success: z.boolean().describe("Whether the call passed."), ...limitResult }),
  problems: [],
  examples: [
    {
      summary: "Ten emails a minute for each user",
      input: exampleCount,
      output: { success: true, limit: 10, remaining: 9, reset: exampleReset, retryAfter: 0 },
    },
    {
      summary: "Check without charging",
      input: { ...exampleCount, cost: 0 },
      output: { success: true, limit: 10, remaining: 10, reset: exampleReset, retryAfter: 0 },
    },
    {
      summary: "A cost above the limit",
      input: { ...exampleCount, namespace: exampleNamespace.name, cost: 11 },
      output: { success: false, limit: 10, remaining: 10, reset: exampleReset },
    },
  ],
}).handle((input, services, context) => {
  const namespace = services.namespaces.find(input.namespace, context.workspaceId);
  return namespace === null || namespace instanceof Promise
    ? ensureNamespaces("ratelimits.limit", [input.namespace], services, context).then(([made]) =>
        countLimit(input, made!, services, context),
      )
    : countLimit(input, namespace, services, context);
});

/** Counts in a namespace that was found. */
export function countLimit(
  input: z.output<typeof LimitInput>,
  namespace: NamespaceRecord,
  services: Pick<Services, "limiter" | "replays" | "recorder">,
  context: MeteredContext<never>,
): MeteredAnswer | Promise<MeteredAnswer> {
  context.principal!.authorize(namespace.limitRequirement);
  const counted = countEntry(namespace, input, context.workspaceId);
  return charge([counted], services, context, ({ limits, at }) => answer(namespace, counted, limits[0]!, at));
}

function answer(namespace: NamespaceRecord, counted: CountedEntry, state: LimitState, at: number): MeteredAnswer {
  const { limit, duration, shadow } = counted.charge;
  const { remaining, reset, retryAfter } = state;
  const data = `{"success":${passes(counted.charge, state)},${resultMembers(counted, state)}}`;
  // A limit that never denies is nothing that a client could obey.
  if (shadow) return data;
  return {
    data,
    // Without a partition: the caller named the identifier. The name needs no escape.
    headers: {
      "RateLimit-Policy": policyItem(namespace.namespaceId, { limit, duration }),
      RateLimit: stateItem(namespace.namespaceId, { remaining, reset, retryAfter, exceeded: !state.allowed }, at),
    },
  };
}
