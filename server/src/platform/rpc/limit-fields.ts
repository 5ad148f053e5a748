import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { sha256 } from "../../../../engine/src/crypto/digest.ts";

/** A limit after a call. */
export interface LimitField {
  /** The name of the policy. */
  readonly name: string;
  readonly limit: number;
  readonly duration: Milliseconds;
  readonly exceeded: boolean;
  readonly remaining: number;
  /** When the window ends. */
  readonly reset: Instant | number;
  /** If it is exceeded: the time until the call can pass. Undefined: unknown, or never. */
  readonly retryAfter?: Milliseconds | undefined;
  /** What the limit counts for: an id, or the identifier of the call. Undefined: the caller named it. */
  readonly partition?: string | undefined;
}

const LENGTH_MAX = 1_024;
const PARTITION_BYTES = 9;

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-10. The tightest limits come first, and those that do not fit are left
 * out. The clients answer in the same way: `sdk/test/limit-headers.json` has the cases of all.
 */
export function limitHeaders(limits: readonly LimitField[], now: Instant | number): Record<string, string> {
  const policies: string[] = [];
  const states: string[] = [];
  let length = 0;
  for (const limit of byTightness(limits)) {
    const name = encoded(limit.name);
    const pk = limit.partition === undefined ? "" : `;pk=${partitionKey(limit.partition)}`;
    const policy = policyItem(name, limit) + pk;
    length += policy.length + 2;
    if (length > LENGTH_MAX && policies.length > 0) break;
    policies.push(policy);
    states.push(stateItem(name, limit, now) + pk);
  }
  return policies.length === 0 ? {} : { "RateLimit-Policy": policies.join(", "), RateLimit: states.join(", ") };
}

/** The limits with the smallest part left come first, exceeded ones before all others. */
export function byTightness<T extends Pick<LimitField, "exceeded" | "remaining" | "limit">>(limits: readonly T[]): T[] {
  const share = ({ exceeded, remaining, limit }: T) => (exceeded ? -1 : remaining / Math.max(1, limit));
  return [...limits].sort((a, b) => share(a) - share(b));
}

/**
 * One item of the header `RateLimit-Policy`, without a partition.
 *
 * @param name without characters that need an escape in a quoted string.
 */
export function policyItem(name: string, { limit, duration }: Pick<LimitField, "limit" | "duration">): string {
  return `"${name}";q=${limit};w=${Math.ceil(duration / 1_000)}`;
}

/** One item of the header `RateLimit`, without a partition. Its seconds are rounded up, so that clients do not retry too early. */
export function stateItem(
  name: string,
  { remaining, reset, exceeded, retryAfter }: LimitStateField,
  now: number,
): string {
  // `Retry-After` must not be earlier than the reset.
  const left = exceeded && retryAfter !== undefined ? Math.min(reset - now, retryAfter) : reset - now;
  return `"${name}";r=${remaining};t=${Math.max(0, Math.ceil(left / 1_000))}`;
}

type LimitStateField = Pick<LimitField, "remaining" | "reset" | "exceeded" | "retryAfter">;

/** The key of a partition as a Byte Sequence of RFC 9651. It is a digest, because identifiers can be addresses and names. */
function partitionKey(partition: string): string {
  return `:${sha256(partition).subarray(0, PARTITION_BYTES).toString("base64")}:`;
}

/** Percent-encodes a text, so that no character of it has a meaning in a header. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
