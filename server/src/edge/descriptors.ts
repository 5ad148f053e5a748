import { decideByCall } from "../../../engine/src/errors/decided-elsewhere.ts";
import { chargeCaller } from "../../../engine/src/replica/replica-verification.ts";
import { ELSEWHERE } from "../../../engine/src/replica/source.ts";
import {
  answerUnknown,
  shouldRateLimit as atHome,
  readQuestion,
} from "../features/ratelimits/envoy/should-rate-limit.ts";
import { grpcMethodsUsing } from "../platform/grpc/method.ts";
import { chargeLimits } from "./charge-problems.ts";
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
  const { data } = await chargeLimits(charges, {
    operation: "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    namespaceId,
    message: message.toString("base64"),
    address: context.address,
    ...chargeCaller(context.principal),
  });
  const { message: answer } = data as { message: string };
  return Buffer.from(answer, "base64");
});
