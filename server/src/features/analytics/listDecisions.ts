import { z } from "zod";
import { verificationCodes } from "../../../../engine/src/verification/request.ts";
import { exampleKey, exampleTime } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { ApiId, KeyId, text, time } from "../../platform/vocabulary/schema.ts";
import { pagedAnalysis } from "../services.ts";
import { ratelimitCodes } from "./decision-log.ts";

const codes = [...verificationCodes, ...ratelimitCodes] as const;

const verification = (schema: z.ZodType, what: string) => schema.optional().describe(`Of a verification: ${what}`);
const ratelimit = (schema: z.ZodType, what: string) => schema.optional().describe(`Of a rate limit: ${what}`);

const LoggedDecisionOutput = z
  .strictObject({
    id: z.string(),
    at: z.int().describe("Unix time in milliseconds."),
    kind: z.enum(["verification", "ratelimit"]),
    code: z.enum(codes).describe("The code of the verification; of a rate limit, `PASSED` or `DENIED`."),
    requestId: z.string().describe("`meta.requestId` of the answer."),
    latencyUs: z.int().describe("Time that the decision took, in microseconds."),
    keyId: verification(z.string(), "the key. Absent if it does not exist, as are its API and identity."),
    apiId: verification(z.string(), "the API of the key."),
    identityId: verification(z.string(), "the identity of the key."),
    namespaceId: ratelimit(z.string(), "the namespace."),
    identifier: ratelimit(z.string(), "the identifier. Of an address it is the block, as in `network`."),
    limit: z
      .strictObject({
        name: z.string().optional().describe("Of a verification: the name of the limit."),
        limit: z.int().optional().describe("Of a rate limit: its limit, after overrides."),
        duration: z.int().optional().describe("Of a rate limit: its window in milliseconds, after overrides."),
      })
      .optional()
      .describe("The limit that decided. Absent for a verification that no limit rejected."),
    cost: z.int().describe("What the call asked for: credits of a verification, the cost of a rate limit."),
    creditsSpent: verification(z.int(), "the credits that it spent."),
    tags: verification(z.array(z.string()), "its tags."),
    network: z
      .string()
      .optional()
      .describe(
        "The block of the address that the decision was about: 24 bits of an IPv4 address, 48 of an IPv6 address. The log " +
          "has no full address.",
      ),
    leftOut: z
      .int()
      .optional()
      .describe(
        "Refusals before this one that are not in the log: of the same key or namespace, with the same code, in the same " +
          "minute. Absent: none.",
      ),
    leftOutOfOthers: z
      .int()
      .optional()
      .describe("The same of other keys and namespaces of the workspace, when too many had refusals. Absent: none."),
  })
  .meta({ id: "LoggedDecision", description: "A verification or a rate limit decision in the log." });

const LIST = "analytics.listDecisions";

const permissions = ["apis.{apiId}.read_analytics", "ratelimits.{namespaceId}.read_analytics"];

export const listDecisions = pagedAnalysis("analytics.listDecisions", {
  summary: "List logged decisions",
  description:
    "The log of refused verifications and rate limit decisions, with a sample of those that passed, the newest first. It " +
    "contains decisions about APIs and namespaces whose analytics the root key may read. Of one key or namespace and one " +
    "code, the first refusals of a minute are in the log one by one; the others of the minute are counted in `leftOut` of " +
    "the last one. A decision is in the log a few seconds later, the last one of a minute when it is over. " +
    "`LATCHKEY_RETENTION_DECISIONS` and `LATCHKEY_DECISIONS_PER_WORKSPACE` bound the log.",
  permissions,
  input: z.strictObject({
    start: time().optional().describe("Only decisions at or after this Unix time in milliseconds."),
    end: time().optional().describe("Only decisions before this Unix time in milliseconds."),
    refused: z.boolean().default(false).describe("Only refusals: every code but `VALID` and `PASSED`."),
    codes: z.array(z.enum(codes)).min(1).max(codes.length).optional().describe("Only decisions with these codes."),
    keyId: KeyId.optional().describe("Only verifications of this key."),
    apiId: ApiId.optional().describe("Only verifications of keys of this API."),
    identityId: text(1, 255).optional().describe("Only verifications of keys of this identity."),
    namespaceId: text(1, 255).optional().describe("Only decisions in this rate limit namespace."),
    requestId: text(1, 255).optional().describe("Only decisions of this request: `meta.requestId` of its answer."),
    ...pageInput(LIST, 100),
  }),
  output: z.array(LoggedDecisionOutput),
  problems: [],
  examples: [
    {
      summary: "The refusals of a key",
      input: { keyId: exampleKey.keyId, refused: true, start: exampleTime },
      output: [],
    },
    {
      summary: "What happened to a request",
      input: { requestId: "req_4gQm9VnXa" },
      output: [],
    },
    {
      summary: "An empty time range",
      input: { start: 1_767_225_600_000, end: 1_767_225_600_000 },
      problem: "invalid_input",
      detail: "`start` must be before `end`.",
    },
  ],
})
  .authorize(async (wanted, { principal, fail }) => {
    principal.authorizeSome(permissions);
    const { start, end } = wanted;
    if (start !== undefined && end !== undefined && start >= end)
      fail("invalid_input", "`start` must be before `end`.");
    const apiIds = principal.grantedIds("apis", "read_analytics");
    const namespaceIds = principal.grantedIds("ratelimits", "read_analytics");
    const isWhole = apiIds === undefined && namespaceIds === undefined;
    return { ...wanted, readable: isWhole ? undefined : { apiIds, namespaceIds } };
  })
  .page(async ({ limit, cursor, ...wanted }, { analytics }, { workspaceId }) => {
    const query = { ...wanted, workspaceId, from: placeOf(LIST, cursor), limit: limit + 1 };
    const found = await analytics.find(query);
    const items = found.slice(0, limit).map(({ id, answer }) => `{"id":"${id}",${answer.slice(1)}`);
    return pageUntil(LIST, items, found[limit]);
  });
