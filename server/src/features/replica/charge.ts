import { z } from "zod";
import type { VerificationAnswer } from "../../../../engine/src/verification/request.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { Problem, type ProblemCode, problems } from "../../platform/rpc/problems.ts";
import { admit } from "../../platform/rpc/workspace-limit.ts";
import { mistakeProblems } from "../keys/mistakes.ts";
import { verificationFields } from "../keys/verification-fields.ts";
import { verifyKey } from "../keys/verifyKey.ts";
import { metered, type Services } from "../services.ts";
import { EDGE_BODY_BYTES_MAX, Hash, OPEN_PERMISSION, openingCaller, openRequirement, Position } from "./fields.ts";

const CALLS_MAX = 256;

const { apiId, keyspaces, permissions, ratelimits, credits, tags } = verificationFields;

const Call = z.strictObject({
  hash: Hash,
  isAnonymous: z.boolean().describe("Whether the caller of the edge sent no root key."),
  apiId,
  keyspaces,
  permissions,
  ratelimits,
  credits,
  tags,
  address: z.union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or an IPv6 address" }),
});

type ChargedCall = z.output<typeof Call>;

const ProblemOutput = z.strictObject({
  code: z.enum(Object.keys(problems) as [ProblemCode, ...ProblemCode[]]),
  type: z.string().describe("Its type in errors, such as `data/key_not_found`."),
  status: z.int(),
  detail: z.string(),
  headers: z.record(z.string(), z.string()).optional().describe("Headers of the answer, such as `retry-after`."),
});

export const charge = metered("replica.charge", {
  summary: "Verify keys for an edge",
  description:
    "Verifies keys by their hashes, each call alone and as `keys.verifyKey` does: for calls that an edge cannot decide, because " +
    "they charge limits or credits. Each counts as a request of the workspace.",
  bodyBytesMax: EDGE_BODY_BYTES_MAX,
  permissions: [OPEN_PERMISSION],
  input: z.strictObject({ position: Position.optional(), calls: z.array(Call).min(1).max(CALLS_MAX) }),
  output: z.strictObject({
    results: z.array(
      z.union([z.strictObject({ data: verifyKey.declaration.output }), z.strictObject({ problem: ProblemOutput })]),
    ),
  }),
  problems: [],
  examples: [],
}).handle(async ({ position, calls }, services, context) => {
  const caller = openingCaller(context);
  const { workspaceId, clock, requestId } = context;
  const { replicas } = services;
  const results = await replicas.charging.run(workspaceId, async () => {
    await replicas.stream.reach(position);
    const now = clock.now();
    // The batch waited, and the root key is the authority of all its calls.
    const current = caller.isCurrent(now) ? caller : await caller.renew(now);
    current.authorizeSome([OPEN_PERMISSION]);
    // The request itself is counted already: for its first call.
    return Promise.all(calls.map((call, i) => result(call, current, i === 0, services, requestId)));
  });
  return `{"results":[${results.join(",")}]}`;
});

/** The result of one call as JSON. A call that fails does not concern the others. */
async function result(
  call: ChargedCall,
  caller: Principal,
  isCounted: boolean,
  services: Services,
  requestId: string,
): Promise<string> {
  try {
    if (!isCounted && caller.requestsPerMinute !== null) {
      const { rejection } = await admit(caller, caller.requestsPerMinute, services.limiter);
      if (rejection) throw rejection;
    }
    const answer = await decide(call, caller, services);
    if (typeof answer === "string") return `{"data":${answer}}`;
    throw new Problem(mistakeProblems[answer.kind], answer.message);
  } catch (error) {
    const { code, message, headers } = services.replicas.problemOf(error, requestId);
    const more = Object.keys(headers).length > 0 && { headers };
    const { status, type } = problems[code];
    return JSON.stringify({ problem: { code, type, status, detail: message, ...more } });
  }
}

function decide(
  { hash, isAnonymous, address, ...asked }: ChargedCall,
  caller: Principal,
  { replicas, verification, clock }: Services,
): VerificationAnswer | Promise<VerificationAnswer> {
  if (isAnonymous && (replicas.verifyAuth === "required" || hasOwnLimit(asked))) {
    throw new Problem("authentication_missing");
  }
  const { workspaceId, rootKeyId } = caller;
  // Callers without a root key find keys of the default workspace only.
  const findsNothing = isAnonymous && workspaceId !== replicas.defaultWorkspaceId;
  return verification.verify({
    ...asked,
    key: "",
    sought: {
      hash,
      opens: (api) => !findsNothing && caller.may(openRequirement(api)),
      lookUp: (load) => replicas.lookups.spend(rootKeyId, load),
    },
    workspaceId,
    principal: isAnonymous ? null : caller,
    address,
    requestId: replicas.newRequestId(),
    now: clock.now(),
    startedAt: clock.monotonic(),
  });
}

/** Whether a call brings a limit of its own, which needs a root key. */
function hasOwnLimit({ ratelimits = [] }: Pick<ChargedCall, "ratelimits">): boolean {
  return ratelimits.some(({ limit, duration }) => limit !== undefined || duration !== undefined);
}
