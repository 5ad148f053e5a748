import { then } from "../../../../../engine/src/clock/then.ts";
import type { NamespaceRecord } from "../../../../../engine/src/directory/records.ts";
import type { LimitDecision } from "../../../../../engine/src/limits/counters.ts";
import type { DescriptorLimit } from "../../../../../engine/src/rules/descriptor-tree.ts";
import { LIMIT_MAX } from "../../../../../engine/src/rules/window.ts";
import type { GrpcContext } from "../../../platform/grpc/method.ts";
import type { StructObject } from "../../../platform/grpc/struct.ts";
import { grpcMethod, type Services } from "../../services.ts";
import { type CountedEntry, chargeEach, chargeTogether, type Decisions, entryAgainst } from "../count.ts";
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

const unmatched: DescriptorStatus = { code: CODE_OK, limit: undefined, remaining: 0 };
const unlimited: DescriptorStatus = { code: CODE_OK, limit: undefined, remaining: UINT32_MAX };

/**
 * The rate limit service of Envoy. Its domain is a namespace. A descriptor is counted against the limit that it brings, or
 * else against that of the descriptor of the namespace's tree that matches it, or else against the override whose identifier
 * is exactly that of the descriptor; without any it is not counted. A domain that is no namespace limits nothing, and never
 * becomes one.
 */
export const shouldRateLimit = grpcMethod(NAME, {
  messageBytesMax: 64 * 1_024,
}).handle((message, services, context) => {
  const request = readQuestion(message, context);
  return then(services.namespaces.find(request.domain, context.workspaceId), (namespace) =>
    namespace === null ? answerUnknown(request, context) : answerKnown(request, namespace, services, context),
  );
});

/** @throws {Problem} if a gateway may not ask this. */
export function readQuestion(message: Buffer, { fail }: Pick<GrpcContext, "fail">): RateLimitRequest {
  const request = decodeRequest(message);
  const { domain, descriptors } = request;
  if (domain === "") fail("invalid_input", "The domain is empty: it names the namespace whose limits apply.");
  if (domain.length > DOMAIN_LENGTH_MAX && [...domain].length > DOMAIN_LENGTH_MAX) {
    fail("invalid_input", `The domain has more than ${DOMAIN_LENGTH_MAX} characters.`);
  }
  // PostgreSQL looks no such text up, and refuses the names with it that other callers wait for.
  if (domain.includes("\0")) fail("invalid_input", "The domain holds U+0000, which no namespace has in its name.");
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
  return request;
}

/**
 * Answers for a domain that is no namespace. The caller needs the permission for some namespace, so that a root key for
 * something else is noticed.
 */
export function answerUnknown({ descriptors }: RateLimitRequest, { principal }: GrpcContext): Uint8Array {
  principal.authorizeSome(["ratelimits.*.limit"]);
  return encodeResponse(descriptors.map(() => unmatched));
}

/** A descriptor of the request, with what applies to it. */
interface Asked {
  /** Undefined: nothing is counted. */
  entry: CountedEntry | undefined;
  /** The limit of the tree that applies. */
  readonly limit: DescriptorLimit | undefined;
}

/** Counts in the namespace of the domain. */
export function answerKnown(
  request: RateLimitRequest,
  namespace: NamespaceRecord,
  services: Services,
  context: GrpcContext,
): Uint8Array | Promise<Uint8Array> {
  context.principal.authorize(namespace.limitRequirement);
  const hits = Math.max(1, request.hitsAddend);
  const asked = request.descriptors.map((one) => askedOf(one, hits, namespace, context.workspaceId));
  leaveOutReplaced(asked);
  return then(decide(asked, namespace, services, context), (decisions) => {
    const over = overOf(asked, decisions);
    const statuses = asked.map((one) => statusOf(one, decisions, over));
    return encodeResponse(statuses, namespace.descriptors?.hasMetadata ? metadataOf(request, asked, over) : undefined);
  });
}

function askedOf(
  { entries, limit: own, hitsAddend }: RateLimitDescriptor,
  hits: number,
  { namespaceId, overrides, descriptors }: NamespaceRecord,
  owner: string,
): Asked {
  const limit = own === undefined ? descriptors?.tree.find(entries) : undefined;
  if (limit?.isUnlimited) return { entry: undefined, limit };
  const identifier = identifierOf(entries, limit?.shared);
  const override = own === undefined && limit === undefined ? overrides.findExact(identifier) : undefined;
  const stated = own ?? limit;
  const applied = stated ? { limit: stated.requestsPerUnit, duration: durationOf(stated.unit) } : override;
  if (applied?.duration === undefined) return { entry: undefined, limit };
  const cost = Math.min(hitsAddend ?? hits, LIMIT_MAX);
  const input = {
    identifier,
    limit: applied.limit,
    duration: applied.duration,
    mode: "standard",
    shadow: limit?.isShadow === true,
    cost,
  } as const;
  return { entry: entryAgainst(override, namespaceId, input, owner), limit };
}

/** A limit that another one of the request replaces does not apply. Also one without a bound replaces others. */
function leaveOutReplaced(asked: readonly Asked[]): void {
  const replaced = new Set<string>();
  for (const { limit } of asked) for (const name of limit?.replaces ?? []) replaced.add(name);
  if (replaced.size === 0) return;
  for (const one of asked) if (one.limit?.name && replaced.has(one.limit.name)) one.entry = undefined;
}

/** Decides on each descriptor alone; with `atomic`, on those that can reject the request together. */
function decide(
  asked: readonly Asked[],
  { descriptors }: NamespaceRecord,
  services: Services,
  context: GrpcContext,
): Decisions | Promise<Decisions> {
  const counted = asked.flatMap(({ entry }) => (entry === undefined ? [] : [entry]));
  if (!descriptors?.isAtomic) return chargeEach(counted, services, context);
  const free = asked.flatMap(({ entry, limit }) => (entry && limit?.isQuota ? [entry] : []));
  const bound = counted.filter((entry) => !free.includes(entry));
  if (bound.length === 0) return chargeEach(counted, services, context);
  return then(chargeTogether(bound, services, context), (decision) => {
    const decisions = new Map<CountedEntry, LimitDecision>();
    for (const [i, entry] of bound.entries()) {
      decisions.set(entry, { ...decision, limits: decision.limits.slice(i, i + 1) });
    }
    // What a rejected request would have cost is not counted anywhere.
    const others = new Map(free.map((entry) => [decision.allowed ? entry : withoutCost(entry), entry]));
    return then(chargeEach([...others.keys()], services, context), (rest) => {
      for (const [charged, entry] of others) {
        const decided = rest.get(charged);
        if (decided !== undefined) decisions.set(entry, decided);
      }
      return decisions;
    });
  });
}

function withoutCost(entry: CountedEntry): CountedEntry {
  return { ...entry, charge: { ...entry.charge, cost: 0 } };
}

/** The entries that make the request over its limit, and those in shadow or quota mode that only would. */
interface Over {
  readonly rejecting: ReadonlySet<CountedEntry>;
  readonly quotas: ReadonlySet<CountedEntry>;
}

/** Limits in quota mode are over only when all of the request are. Those in shadow mode never are. */
function overOf(asked: readonly Asked[], decisions: Decisions): Over {
  const rejecting = new Set<CountedEntry>();
  const quotas = new Set<CountedEntry>();
  let allQuotas = 0;
  for (const { entry, limit } of asked) {
    if (entry === undefined || entry.charge.shadow) continue;
    if (limit?.isQuota) allQuotas++;
    if (isAllowed(decisions.get(entry))) continue;
    (limit?.isQuota ? quotas : rejecting).add(entry);
  }
  if (quotas.size === allQuotas) for (const entry of quotas) rejecting.add(entry);
  return { rejecting, quotas };
}

function isAllowed(decision: LimitDecision | undefined): boolean {
  return decision?.limits[0]?.allowed === true;
}

function statusOf({ entry, limit: stated }: Asked, decisions: Decisions, { rejecting }: Over): DescriptorStatus {
  const decision = entry && decisions.get(entry);
  const [state] = decision?.limits ?? [];
  if (entry === undefined || decision === undefined || state === undefined) {
    return stated?.isUnlimited ? unlimited : unmatched;
  }
  const { remaining, reset } = state;
  const { limit, duration } = entry.charge;
  const unit = unitOf(duration);
  return {
    code: rejecting.has(entry) ? CODE_OVER_LIMIT : CODE_OK,
    limit: {
      requestsPerUnit: Math.min(limit, UINT32_MAX),
      unit,
      name: stated?.name || (unit === UNKNOWN_UNIT ? `${limit} per ${duration} ms` : ""),
      resetMs: Math.max(0, reset - decision.at),
    },
    remaining: isAllowed(decision) ? Math.min(remaining, UINT32_MAX) : 0,
  };
}

/** What Envoy makes available to its log and to other filters, with the names that envoyproxy/ratelimit gives them. */
function metadataOf(
  { domain, descriptors, hitsAddend }: RateLimitRequest,
  asked: readonly Asked[],
  { quotas }: Over,
): StructObject {
  const violations = asked.flatMap(({ entry }, i) => (entry && quotas.has(entry) ? [i] : []));
  return {
    domain,
    descriptors: descriptors.map(({ entries, hitsAddend: own }) => ({
      entries: entries.map(({ key, value }) => `${key}=${value}`),
      hitsAddend: own,
    })),
    hitsAddend: hitsAddend === 0 ? undefined : hitsAddend,
    quotaModeViolations: violations.length > 0 ? violations : undefined,
    quotaModeEnabled: asked.some(({ entry, limit }) => entry && limit?.isQuota),
  };
}
