import { then } from "../../../../../engine/src/clock/then.ts";
import type { NamespaceRecord } from "../../../../../engine/src/directory/records.ts";
import type { LimitDecision } from "../../../../../engine/src/limits/counters.ts";
import { LIMIT_MAX } from "../../../../../engine/src/rules/window.ts";
import type { GrpcContext } from "../../../platform/grpc/method.ts";
import { grpcMethod, type Services } from "../../services.ts";
import { type CountedEntry, chargeEach, entryAgainst } from "../count.ts";
import { identifierOf } from "./identifier.ts";
import {
  CODE_OK,
  CODE_OVER_LIMIT,
  DESCRIPTORS_MAX,
  type DescriptorStatus,
  decodeRequest,
  ENTRIES_MAX,
  encodeResponse,
  type RateLimitDescriptor,
  type RateLimitRequest,
} from "./messages.ts";
import { durationOf, UNKNOWN_UNIT, unitOf } from "./units.ts";

const NAME = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const DOMAIN_LENGTH_MAX = 512;
const UINT32_MAX = 2 ** 32 - 1;

const unlimited: DescriptorStatus = { code: CODE_OK, limit: undefined };

/**
 * The rate limit service of Envoy. Its domain is a namespace. A descriptor is counted against the limit that it brings, or
 * else against the override of the namespace whose identifier is exactly that of the descriptor; without either it is not
 * counted. A domain that is no namespace limits nothing, and never becomes one.
 */
export const shouldRateLimit = grpcMethod(NAME, {
  messageBytesMax: 64 * 1_024,
}).handle((message, services, context) => {
  const request = decodeRequest(message);
  check(request, context);
  return then(services.namespaces.find(request.domain, context.workspaceId), (namespace) =>
    namespace === null ? answerUnknown(request, context) : count(request, namespace, services, context),
  );
});

function check({ domain, descriptors }: RateLimitRequest, { fail }: GrpcContext): void {
  if (domain === "") fail("invalid_input", "The domain is empty: it names the namespace whose limits apply.");
  if (domain.length > DOMAIN_LENGTH_MAX) {
    fail("invalid_input", `The domain has more than ${DOMAIN_LENGTH_MAX} characters.`);
  }
  if (descriptors.length === 0) fail("invalid_input", "There is no descriptor.");
  if (descriptors.length > DESCRIPTORS_MAX) {
    fail("invalid_input", `There are more than ${DESCRIPTORS_MAX} descriptors.`);
  }
  for (const { entries, limit } of descriptors) {
    if (entries.length === 0) fail("invalid_input", "A descriptor has no entry.");
    if (entries.length > ENTRIES_MAX) fail("invalid_input", `A descriptor has more than ${ENTRIES_MAX} entries.`);
    for (const { key } of entries) if (key === "") fail("invalid_input", "An entry has no key.");
    if (limit !== undefined && durationOf(limit.unit) === undefined) {
      fail("invalid_input", `A limit has the unit ${limit.unit}, which is not known.`);
    }
  }
}

/** The caller needs the permission for some namespace, so that a root key for something else is noticed. */
function answerUnknown({ descriptors }: RateLimitRequest, { principal }: GrpcContext): Uint8Array {
  principal.authorizeSome(["ratelimits.*.limit"]);
  return encodeResponse(descriptors.map(() => unlimited));
}

function count(
  { descriptors, hitsAddend }: RateLimitRequest,
  namespace: NamespaceRecord,
  services: Services,
  context: GrpcContext,
): Uint8Array | Promise<Uint8Array> {
  context.principal.authorize(namespace.limitRequirement);
  const hits = Math.max(1, hitsAddend);
  const entries = descriptors.map((descriptor) => countedEntry(descriptor, hits, namespace, context.workspaceId));
  const counted = entries.filter((entry) => entry !== undefined);
  return then(chargeEach(counted, services, context), (decisions) => {
    const decided = new Map(counted.map((entry, i) => [entry, decisions[i]]));
    const statuses = entries.map((entry) => (entry === undefined ? unlimited : statusOf(entry, decided.get(entry))));
    return encodeResponse(statuses);
  });
}

/** Undefined: no limit applies. */
function countedEntry(
  { entries, limit: own, hitsAddend }: RateLimitDescriptor,
  hits: number,
  { namespaceId, overrides }: NamespaceRecord,
  owner: string,
): CountedEntry | undefined {
  const identifier = identifierOf(entries);
  const override = own === undefined ? overrides.findExact(identifier) : undefined;
  const applied = own === undefined ? override : { limit: own.requestsPerUnit, duration: durationOf(own.unit) };
  if (applied?.duration === undefined) return undefined;
  const { limit, duration } = applied;
  const cost = Math.min(hitsAddend ?? hits, LIMIT_MAX);
  return entryAgainst(override, namespaceId, { identifier, limit, duration, mode: "standard", cost }, owner);
}

function statusOf(
  { charge: { limit, duration } }: CountedEntry,
  decision: LimitDecision | undefined,
): DescriptorStatus {
  const [state] = decision?.limits ?? [];
  if (decision === undefined || state === undefined) return unlimited;
  const { allowed, at } = decision;
  const { remaining, reset } = state;
  const unit = unitOf(duration);
  return {
    code: allowed ? CODE_OK : CODE_OVER_LIMIT,
    limit: {
      requestsPerUnit: Math.min(limit, UINT32_MAX),
      unit,
      name: unit === UNKNOWN_UNIT ? `${limit} per ${duration} ms` : "",
      remaining: allowed ? Math.min(remaining, UINT32_MAX) : 0,
      resetMs: Math.max(0, reset - at),
    },
  };
}
