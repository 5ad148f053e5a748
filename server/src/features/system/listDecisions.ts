import { z } from "zod";
import { verificationCodes } from "../../../../engine/src/verification/request.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { ApiId, integer, KeyId, time } from "../../platform/vocabulary/schema.ts";
import { DECISION_LIFE, type Decision } from "../analytics/decisions.ts";
import { analysis } from "../services.ts";

const verification = (schema: z.ZodType, what: string) => schema.optional().describe(`Of a verification: ${what}`);
const ratelimit = (schema: z.ZodType, what: string) => schema.optional().describe(`Of a rate limit: ${what}`);

const DecisionOutput = z.strictObject({
  id: z.string().describe("Unique among the decisions of all nodes."),
  at: z.int().describe("Unix time in milliseconds."),
  latencyUs: z.int().describe("Time that the decision took, in microseconds."),
  kind: z.enum(["verification", "ratelimit"]),
  code: verification(z.enum(verificationCodes), "its code."),
  tags: verification(z.array(z.string()), "its tags."),
  creditsSpent: verification(z.int(), "the credits that it spent."),
  keyId: verification(z.string(), "the key. Absent if it does not exist, as are its API and identity."),
  apiId: verification(z.string(), "the API of the key."),
  identityId: verification(z.string(), "the identity of the key."),
  namespaceId: ratelimit(z.string(), "the namespace."),
  identifier: ratelimit(z.string(), "the identifier."),
  passed: ratelimit(z.boolean(), "whether it was allowed."),
  cost: ratelimit(z.int(), "the cost that was charged."),
});

const permissions = ["apis.{apiId}.read_analytics", "ratelimits.{namespaceId}.read_analytics"];

export const listDecisions = analysis("system.listDecisions", {
  summary: "List recent decisions",
  description:
    `A sample of the decisions of the last ${DECISION_LIFE / 60_000} minutes on the node that answers, the newest ` +
    "first: in each second the first decision of each key with each code and set of tags, and of each identifier, at " +
    "most 20 of a workspace. It contains decisions about APIs and namespaces whose analytics the root key may read. A " +
    "restart empties it. Counts are in `analytics.*`.",
  permissions,
  input: z.strictObject({
    since: time().default(0).describe("Only decisions at or after this Unix time in milliseconds."),
    apiId: ApiId.optional().describe("Only verifications of keys of this API."),
    keyId: KeyId.optional().describe("Only verifications of this key."),
    limit: integer(1, 500).default(100).describe("Maximum number of decisions."),
  }),
  output: z.strictObject({ decisions: z.array(DecisionOutput) }),
  problems: [],
  examples: [
    {
      summary: "Verifications of an unknown key",
      input: { keyId: "key_03yhWPSEYjF9lWCM" },
      output: { decisions: [] },
    },
  ],
})
  .authorize(async (wanted, { principal }) => {
    principal.authorizeSome(permissions);
    return wanted;
  })
  .answer(async ({ since, apiId, keyId, limit }, { node }, { principal, workspaceId, now }) => {
    const decisions: z.input<typeof DecisionOutput>[] = [];
    for (const decision of await node.decisions(workspaceId, since, now)) {
      if (decisions.length === limit) break;
      const key = decision.kind === "verification" ? decision.key : null;
      if (apiId !== undefined && key?.apiId !== apiId) continue;
      if (keyId !== undefined && key?.keyId !== keyId) continue;
      if (mayRead(principal, decision)) decisions.push(toOutput(`${node.id}-${decision.number}`, decision));
    }
    return { decisions };
  });

function mayRead(caller: Principal, decision: Decision): boolean {
  return decision.kind === "verification"
    ? caller.may(`apis.${decision.key?.apiId ?? "*"}.read_analytics`)
    : caller.may(`ratelimits.${decision.namespaceId}.read_analytics`);
}

function toOutput(id: string, decision: Decision): z.input<typeof DecisionOutput> {
  const { at, latencyUs, kind } = decision;
  if (kind === "ratelimit") {
    const { namespaceId, identifier, passed, cost } = decision;
    return { id, at, kind, latencyUs, namespaceId, identifier, passed, cost };
  }
  const { key, code, tags, creditsSpent } = decision;
  return {
    id,
    at,
    kind,
    latencyUs,
    code,
    tags,
    creditsSpent,
    ...(key && { keyId: key.keyId, apiId: key.apiId, ...(key.identityId !== null && { identityId: key.identityId }) }),
  };
}
