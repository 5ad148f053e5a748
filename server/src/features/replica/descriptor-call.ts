import { z } from "zod";
import type { MeteredContext } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { answerKnown, readQuestion, shouldRateLimit } from "../ratelimits/envoy/should-rate-limit.ts";
import type { Services } from "../services.ts";
import { CallerAddress, CallerRootKey } from "./fields.ts";
import { contextOfCall } from "./limit-call.ts";

/** As base64. */
const MESSAGE_LENGTH_MAX = Math.ceil(shouldRateLimit.messageBytesMax / 3) * 4;

/** A question of the rate limit service of Envoy. */
export const DescriptorCall = z.strictObject({
  operation: z.literal(shouldRateLimit.name),
  namespaceId: text(1, 255).describe("The namespace in which the edge found that its caller may count."),
  message: text(1, MESSAGE_LENGTH_MAX, {
    regex: /^[\w+/-]+={0,2}$/,
    says: "must be the bytes of a RateLimitRequest as base64",
  }),
  address: CallerAddress,
  rootKey: CallerRootKey,
});

export type DescriptorCall = z.output<typeof DescriptorCall>;

export const DescriptorAnswer = z.strictObject({
  message: z.string().describe("The bytes of the RateLimitResponse as base64."),
});

/** Decides a call as the method does; undefined if its domain is no longer a namespace in which the edge may count. */
export async function decideDescriptors(
  { namespaceId, message, address }: DescriptorCall,
  principal: Principal,
  services: Services,
  context: MeteredContext<never>,
): Promise<z.output<typeof DescriptorAnswer> | undefined> {
  const request = readQuestion(Buffer.from(message, "base64"), context);
  const namespace = await services.namespaces.find(request.domain, principal.workspaceId);
  if (namespace?.namespaceId !== namespaceId || !principal.may(namespace.limitRequirement)) return undefined;
  const answer = await answerKnown(request, namespace, services, contextOfCall(principal, address, services, context));
  return { message: Buffer.from(answer).toString("base64") };
}
