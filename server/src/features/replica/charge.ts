import { z } from "zod";
import type { VerificationAnswer } from "../../../../engine/src/verification/request.ts";
import type { MeteredAnswer, MeteredContext } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { Problem, type ProblemCode, problems } from "../../platform/rpc/problems.ts";
import { admit } from "../../platform/rpc/workspace-limit.ts";
import { mistakeProblems } from "../keys/mistakes.ts";
import { verificationFields } from "../keys/verification-fields.ts";
import { verifyKey } from "../keys/verifyKey.ts";
import { metered, type Services } from "../services.ts";
import { afterWait, authorityFor, soughtBy } from "./authority.ts";
import { DescriptorAnswer, DescriptorCall, decideDescriptors } from "./descriptor-call.ts";
import {
  CallerAddress,
  CallerRootKey,
  EDGE_BODY_BYTES_MAX,
  Elsewhere,
  Hash,
  OPEN_PERMISSION,
  openingCaller,
  Position,
} from "./fields.ts";
import { decideLimits, LimitCall, limitOutputs } from "./limit-call.ts";

const CALLS_MAX = 256;

const { apiId, keyspaces, permissions, ratelimits, credits, tags } = verificationFields;

const Verification = z.strictObject({
  hash: Hash,
  isAnonymous: z.boolean().describe("Whether the caller of the edge sent no root key."),
  apiId,
  keyspaces,
  permissions,
  ratelimits,
  credits,
  tags,
  address: CallerAddress,
  rootKey: CallerRootKey,
});

type VerifyCall = z.output<typeof Verification>;

const ProblemOutput = z.strictObject({
  code: z.enum(Object.keys(problems) as [ProblemCode, ...ProblemCode[]]),
  type: z.string().describe("Its type in errors, such as `data/key_not_found`."),
  status: z.int(),
  detail: z.string(),
  headers: z.record(z.string(), z.string()).optional().describe("Headers of the answer, such as `retry-after`."),
});

export const charge = metered("replica.charge", {
  summary: "Charge calls for an edge",
  description:
    "Verifies keys by their hashes and charges limits of namespaces, each call alone and as `keys.verifyKey`, `ratelimits.limit`, " +
    "`ratelimits.multiLimit` and `ShouldRateLimit` over gRPC do: for calls that an edge cannot decide. Each counts as a request of the workspace.",
  bodyBytesMax: EDGE_BODY_BYTES_MAX,
  permissions: [OPEN_PERMISSION],
  input: z.strictObject({
    position: Position.optional(),
    calls: z.array(Verification).min(1).max(CALLS_MAX).optional().describe("Verifications."),
    limits: z
      .array(z.discriminatedUnion("operation", [LimitCall, DescriptorCall]))
      .min(1)
      .max(CALLS_MAX)
      .optional()
      .describe("Calls of limits of namespaces."),
  }),
  output: z.strictObject({
    results: z.array(
      z.union([z.strictObject({ data: verifyKey.declaration.output }), z.strictObject({ problem: ProblemOutput })]),
    ),
    limits: z.array(
      z.union([
        z.strictObject({
          data: z.union([...limitOutputs, DescriptorAnswer]),
          headers: z.record(z.string(), z.string()).optional().describe("Headers of the answer, such as `RateLimit`."),
        }),
        Elsewhere,
        z.strictObject({ problem: ProblemOutput }),
      ]),
    ),
  }),
  problems: [],
  examples: [],
}).handle(async ({ position, calls = [], limits = [] }, services, context) => {
  const caller = openingCaller(context);
  const { workspaceId, clock } = context;
  const { replicas } = services;
  const results = await replicas.charging.run(workspaceId, async () => {
    await replicas.stream.reach(position);
    const current = await afterWait(caller, clock.now());
    // The request itself is counted already: for its first call.
    const all = [...calls, ...limits];
    return Promise.all(all.map((call, i) => result(call, current, i === 0, services, context)));
  });
  const [verified, limited] = [results.slice(0, calls.length), results.slice(calls.length)];
  return `{"results":[${verified.join(",")}],"limits":[${limited.join(",")}]}`;
});

/** The result of one call as JSON. A call that fails does not concern the others. */
async function result(
  call: VerifyCall | LimitCall | DescriptorCall,
  caller: Principal,
  isCounted: boolean,
  services: Services,
  context: MeteredContext<never>,
): Promise<string> {
  try {
    if (!isCounted && caller.requestsPerMinute !== null) {
      const { rejection } = await admit(caller, caller.requestsPerMinute, services.limiter);
      if (rejection) throw rejection;
    }
    const authority = await authorityFor(call.rootKey, caller, services.clock.now(), services.replicas);
    if ("message" in call) {
      const data = await decideDescriptors(call, authority, services, context);
      return limitResult(data && JSON.stringify(data));
    }
    if ("operation" in call) return limitResult(await decideLimits(call, authority, services, context));
    const answer = await decide(call, caller, authority, services);
    if (typeof answer === "string") return `{"data":${answer}}`;
    throw new Problem(mistakeProblems[answer.kind], answer.message);
  } catch (error) {
    const { code, message, headers } = services.replicas.problemOf(error, context.requestId);
    const more = Object.keys(headers).length > 0 && { headers };
    const { status, type } = problems[code];
    return JSON.stringify({ problem: { code, type, status, detail: message, ...more } });
  }
}

function limitResult(answer: MeteredAnswer | undefined): string {
  if (answer === undefined) return '{"isElsewhere":true}';
  if (typeof answer === "string") return `{"data":${answer}}`;
  return `{"data":${answer.data},"headers":${JSON.stringify(answer.headers)}}`;
}

function decide(
  { hash, isAnonymous, address, rootKey: _, ...asked }: VerifyCall,
  edge: Principal,
  authority: Principal,
  { replicas, verification, clock }: Services,
): VerificationAnswer | Promise<VerificationAnswer> {
  if (isAnonymous && (replicas.verifyAuth === "required" || hasOwnLimit(asked))) {
    throw new Problem("authentication_missing");
  }
  const { workspaceId } = edge;
  const sought = soughtBy(edge, hash, replicas);
  // Callers without a root key find keys of the default workspace only.
  const findsNothing = isAnonymous && workspaceId !== replicas.defaultWorkspaceId;
  return verification.verify({
    ...asked,
    key: "",
    sought: findsNothing ? { ...sought, opens: () => false } : sought,
    workspaceId,
    principal: isAnonymous ? null : authority,
    address,
    requestId: replicas.newRequestId(),
    now: clock.now(),
    startedAt: clock.monotonic(),
  });
}

/** Whether a call brings a limit of its own, which needs a root key. */
function hasOwnLimit({ ratelimits = [] }: Pick<VerifyCall, "ratelimits">): boolean {
  return ratelimits.some(({ limit, duration }) => limit !== undefined || duration !== undefined);
}
