import { decideByCall } from "../../../engine/src/errors/decided-elsewhere.ts";
import { chargeCaller, charged } from "../../../engine/src/replica/replica-verification.ts";
import { ELSEWHERE } from "../../../engine/src/replica/source.ts";
import {
  answerUnknown,
  shouldRateLimit as atHome,
  readQuestion,
} from "../features/ratelimits/envoy/should-rate-limit.ts";
import { grpcMethodsUsing } from "../platform/grpc/method.ts";
import { rejectCharge } from "./charge-problems.ts";
import type { EdgeLimitServices } from "./limits.ts";

/** The rate limit service of Envoy: the caller is judged here, and home counts, together with the other calls of a moment. */
export const shouldRateLimit = grpcMethodsUsing<EdgeLimitServices>()(atHome.name, {
  messageBytesMax: atHome.messageBytesMax,
}).handle(async (message, { namespaces, charges, workspaceId }, context) => {
  if (context.workspaceId !== workspaceId) decideByCall();
  const request = readQuestion(message, context);
  const namespace = await namespaces.find(request.domain, workspaceId);
  if (namespace === null) return answerUnknown(request, context);
  const { namespaceId, limitRequirement } = namespace;
  if (namespaceId === ELSEWHERE) decideByCall();
  context.principal.authorize(limitRequirement);
  try {
    const { address } = context;
    const operation = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    const result = await charges.charge({
      operation,
      namespaceId,
      message: message.toString("base64"),
      address,
      ...chargeCaller(context.principal),
    });
    if ("isElsewhere" in result) decideByCall();
    const { message: answer } = charged(result).data as { message: string };
    return Buffer.from(answer, "base64");
  } catch (error) {
    return rejectCharge(error);
  }
});
