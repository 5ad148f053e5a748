import { z } from "zod";
import { then } from "../../../../engine/src/clock/then.ts";
import type { NamespaceRecord } from "../../../../engine/src/directory/records.ts";
import { readingOf, usedIn } from "../../../../engine/src/verification/limits.ts";
import type { MeteredContext } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { exampleCount, exampleNamespace, exampleReset } from "../../platform/vocabulary/examples.ts";
import { ModeOutput, ShadowOutput, WindowOutput } from "../../platform/vocabulary/schema.ts";
import { metered, type Services } from "../services.ts";
import { countEntry } from "./count.ts";
import { LimitInput, OverrideMode, OverrideShadow } from "./fields.ts";
import { overrideMembers } from "./record.ts";

/** The number of overrides that an explanation lists. */
const OVERRIDES_LISTED_MAX = 100;

const MatchingOverride = z.strictObject({
  overrideId: z.string(),
  identifier: z.string().describe("An identifier, or a pattern."),
  limit: z.int(),
  duration: z.int().describe("Length of the window in milliseconds."),
  mode: OverrideMode.optional(),
  shadow: OverrideShadow.optional(),
});

export const explainLimit = metered("ratelimits.explainLimit", {
  summary: "Explain a limit",
  description:
    "Says how `ratelimits.limit` would answer this body now, and why: which override applies, which others match, and the " +
    "counter. It charges nothing, creates no namespace and is not in the analytics.",
  repeatable: true,
  permissions: ["ratelimits.{namespaceId}.limit", "ratelimits.{namespaceId}.read_override"],
  input: LimitInput.extend({ namespace: LimitInput.shape.namespace.describe("Name or id of the namespace.") }),
  output: z.strictObject({
    success: z.boolean().describe("Whether the call would pass."),
    detail: z.string().describe("What was compared, as a sentence."),
    namespaceId: z.string(),
    limit: z.int().describe("The limit that applies: that of the override, if there is one."),
    duration: z.int().describe("Length of its window in milliseconds."),
    mode: ModeOutput.optional(),
    shadow: ShadowOutput.optional(),
    cost: z.int().describe("What the call costs."),
    used: z.int().describe("The counter: what was charged in the sliding window that ends now."),
    remaining: z.int().describe("What remains, without this call."),
    retryAfter: z
      .int()
      .optional()
      .describe(
        "Milliseconds until this cost would pass without other calls. 0 if it passes. Absent: it never passes.",
      ),
    window: WindowOutput,
    override: MatchingOverride.optional().describe("The override that applies. Absent: none matches."),
    others: z
      .array(MatchingOverride)
      .describe(`Further overrides that match, in the order of precedence. At most ${OVERRIDES_LISTED_MAX}.`),
  }),
  problems: ["namespace_not_found"],
  examples: [
    {
      summary: "A limit without an override",
      input: { ...exampleCount, identifier: "user_2" },
      output: {
        success: true,
        detail: "No override matches, so the limit of the call applies: 0 of 10 are used, and the call costs 1.",
        namespaceId: exampleNamespace.id,
        limit: 10,
        duration: 60_000,
        cost: 1,
        used: 0,
        remaining: 10,
        retryAfter: 0,
        window: { startAt: exampleReset - 60_000, endAt: exampleReset },
        others: [],
      },
    },
    {
      summary: "A namespace that does not exist",
      input: { ...exampleCount, namespace: "letters" },
      problem: "namespace_not_found",
    },
  ],
}).handle((input, services, context) =>
  then(services.namespaces.find(input.namespace, context.workspaceId), (namespace) =>
    namespace === null ? context.fail("namespace_not_found") : explain(input, namespace, services, context),
  ),
);

async function explain(
  input: z.output<typeof LimitInput>,
  namespace: NamespaceRecord,
  { limiter }: Pick<Services, "limiter">,
  { principal, workspaceId, clock }: MeteredContext<never>,
): Promise<string> {
  const caller = principal!;
  const authorize = (current: Principal) => {
    current.authorize(namespace.limitRequirement);
    current.authorize(`ratelimits.${namespace.namespaceId}.read_override`);
  };
  authorize(caller);
  const { charge, override } = countEntry(namespace, input, workspaceId);
  const [{ limits, allowed }, read] = await Promise.all([limiter.peek([charge]), limiter.peek([readingOf(charge)])]);
  authorize(await caller.atPresent(clock.now()));
  const { allowed: hasRoom, remaining, reset, retryAfter } = limits[0]!;
  const { limit, duration, mode, shadow, cost } = charge;
  const note = shadow ? ` It is in shadow mode and ${hasRoom ? "denies nothing" : "would deny the call"}.` : "";
  const used = usedIn(read.limits[0]!);
  const applies = override
    ? `The override '${override.identifier}' applies`
    : "No override matches, so the limit of the call applies";
  const others = namespace.overrides.matching(input.identifier).filter(({ id }) => id !== override?.id);
  return JSON.stringify({
    success: allowed,
    detail: `${applies}: ${used} of ${limit} are used, and the call costs ${cost}.${note}`,
    namespaceId: namespace.namespaceId,
    limit,
    duration,
    mode: mode === "strict" ? mode : undefined,
    shadow,
    cost,
    used,
    remaining,
    retryAfter,
    window: { startAt: reset - duration, endAt: reset },
    override: override && overrideMembers(override),
    others: others.slice(0, OVERRIDES_LISTED_MAX).map(overrideMembers),
  });
}
