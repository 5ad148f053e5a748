import type { VerifyKeyOutput } from "./operations.ts";

/** A limit after a call. */
export interface LimitState {
  readonly name: string;
  readonly limit: number;
  /** Milliseconds; undefined: none, or unknown. */
  readonly duration?: number | undefined;
  /** What it counts. Undefined: requests. */
  readonly unit?: "concurrent-requests" | undefined;
  readonly exceeded: boolean;
  readonly remaining: number;
  /** When the window ends, Unix time in milliseconds; undefined: it has none. */
  readonly reset?: number | undefined;
  /** If it is exceeded: milliseconds until the call can pass. Undefined: unknown, or never. */
  readonly retryAfter?: number | undefined;
  /** What the limit counts for: the id of a key or of an identity, or an identifier. */
  readonly partition?: string | undefined;
}

const LENGTH_MAX = 1_024;
const PARTITION_BYTES = 9;
/** Digests that are remembered: each is made by another thread, which takes ten times as long as a verification in the process. */
const PARTITIONS_MAX = 10_000;
const PARTITION_LENGTH_MAX = 256;
const partitionKeys = new Map<string, string>();

/** The limits in the answer to a verification. Those in shadow mode deny nothing, and clients need not know them. */
export function limitsOf({ keyId, identity, ratelimits = [], concurrency = [] }: VerifyKeyOutput): LimitState[] {
  const partitionOf = (from: "key" | "identity" | undefined) => (from === "identity" ? identity?.id : keyId);
  return [
    ...ratelimits
      .filter(({ shadow }) => !shadow)
      .map(({ from, ...limit }) => ({ ...limit, partition: partitionOf(from) })),
    ...concurrency.map(({ inUse, from, ...slots }) => ({
      ...slots,
      unit: "concurrent-requests" as const,
      remaining: Math.max(0, slots.limit - inUse),
      partition: partitionOf(from),
    })),
  ];
}

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-10. The tightest limits come first, and those that do not fit are left
 * out.
 */
export async function limitHeaders(limits: readonly LimitState[], now = Date.now()): Promise<Record<string, string>> {
  const share = ({ exceeded, remaining, limit }: LimitState) => (exceeded ? -1 : remaining / Math.max(1, limit));
  const policies: string[] = [];
  const states: string[] = [];
  let length = 0;
  for (const { name, limit, duration, unit, partition, ...state } of [...limits].sort((a, b) => share(a) - share(b))) {
    const item = `"${encoded(name)}"`;
    const pk = partition === undefined ? "" : `;pk=${await partitionKey(partition)}`;
    const qu = unit === undefined ? "" : `;qu="${unit}"`;
    const w = duration === undefined ? "" : `;w=${Math.ceil(duration / 1_000)}`;
    const policy = `${item};q=${limit}${qu}${w}${pk}`;
    length += policy.length + 2;
    if (length > LENGTH_MAX && policies.length > 0) break;
    policies.push(policy);
    const seconds = secondsLeft(state, now);
    states.push(`${item};r=${state.remaining}${seconds === undefined ? "" : `;t=${seconds}`}${pk}`);
  }
  return policies.length === 0 ? {} : { "RateLimit-Policy": policies.join(", "), RateLimit: states.join(", ") };
}

/** Seconds until the limit admits more, rounded up; undefined if that is unknown. `Retry-After` must not be earlier. */
function secondsLeft(
  { exceeded, retryAfter, reset }: Pick<LimitState, "exceeded" | "retryAfter" | "reset">,
  now: number,
): number | undefined {
  const wait = exceeded ? retryAfter : undefined;
  if (reset === undefined && wait === undefined) return undefined;
  const left = Math.min(reset === undefined ? Number.POSITIVE_INFINITY : reset - now, wait ?? Number.POSITIVE_INFINITY);
  return Math.max(0, Math.ceil(left / 1_000));
}

/** The key of a partition as a Byte Sequence of RFC 9651. It is a digest, because identifiers can be addresses and names. */
async function partitionKey(partition: string): Promise<string> {
  const known = partitionKeys.get(partition);
  if (known !== undefined) return known;
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(partition)));
  const key = `:${btoa(String.fromCharCode(...sum.subarray(0, PARTITION_BYTES)))}:`;
  if (partition.length > PARTITION_LENGTH_MAX) return key;
  // The oldest one.
  if (partitionKeys.size >= PARTITIONS_MAX) partitionKeys.delete(partitionKeys.keys().next().value ?? "");
  partitionKeys.set(partition, key);
  return key;
}

/** Percent-encodes a text, so that no character of it has a meaning in a header. */
function encoded(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}
