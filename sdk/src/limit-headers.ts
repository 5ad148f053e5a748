import { type Awaitable, isPending } from "./at-once.ts";
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

const NONE: readonly LimitState[] = [];
/** Of an answer without limits. */
export const NO_HEADERS: Readonly<Record<string, string>> = {};
/** What needs no encoding. */
const PLAIN = /^[\w.~-]+$/;
const LENGTH_MAX = 1_024;
const PARTITION_BYTES = 9;
/** Digests that are remembered: each is made by another thread, which takes ten times as long as a verification in the process. */
const PARTITIONS_MAX = 10_000;
const PARTITION_LENGTH_MAX = 256;
const partitionKeys = new Map<string, string>();

/** The limits in the answer to a verification. Those in shadow mode deny nothing, and clients need not know them. */
export function limitsOf({
  keyId,
  identity,
  ratelimits = [],
  concurrency = [],
}: VerifyKeyOutput): readonly LimitState[] {
  if (ratelimits.length === 0 && concurrency.length === 0) return NONE;
  const partitionOf = (from: "key" | "identity" | undefined) => (from === "identity" ? identity?.id : keyId);
  const limits: LimitState[] = [];
  for (const { shadow, name, limit, duration, exceeded, remaining, reset, retryAfter, from } of ratelimits) {
    const partition = partitionOf(from);
    if (!shadow) limits.push({ name, limit, duration, exceeded, remaining, reset, retryAfter, partition });
  }
  for (const { name, limit, inUse, exceeded, retryAfter, from } of concurrency) {
    const remaining = Math.max(0, limit - inUse);
    const partition = partitionOf(from);
    limits.push({ name, limit, unit: "concurrent-requests", exceeded, remaining, retryAfter, partition });
  }
  return limits;
}

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-10. The tightest limits come first, and those that do not fit are left
 * out.
 */
export function limitHeaders(limits: readonly LimitState[], now?: number): Awaitable<Readonly<Record<string, string>>> {
  if (limits.length === 0) return NO_HEADERS;
  const sorted = limits.length === 1 ? limits : [...limits].sort((a, b) => shareOf(a) - shareOf(b));
  const keys = sorted.map(({ partition }) => (partition === undefined ? undefined : partitionKey(partition)));
  return keys.some(isPending)
    ? Promise.all(keys).then((known) => fieldsOf(sorted, known, now))
    : fieldsOf(sorted, keys as (string | undefined)[], now);
}

function shareOf({ exceeded, remaining, limit }: LimitState): number {
  return exceeded ? -1 : remaining / Math.max(1, limit);
}

function fieldsOf(
  limits: readonly LimitState[],
  keys: readonly (string | undefined)[],
  now = Date.now(),
): Record<string, string> {
  let [policies, states, length] = ["", "", 0];
  for (const [i, state] of limits.entries()) {
    const { name, limit, duration, unit, remaining } = state;
    const separator = i === 0 ? "" : ", ";
    const item = `"${encoded(name)}"`;
    const pk = keys[i] === undefined ? "" : `;pk=${keys[i]}`;
    const qu = unit === undefined ? "" : `;qu="${unit}"`;
    const w = duration === undefined ? "" : `;w=${Math.ceil(duration / 1_000)}`;
    const policy = `${item};q=${limit}${qu}${w}${pk}`;
    length += policy.length + 2;
    if (length > LENGTH_MAX && i > 0) break;
    const seconds = secondsLeft(state, now);
    policies += separator + policy;
    states += `${separator}${item};r=${remaining}${seconds === undefined ? "" : `;t=${seconds}`}${pk}`;
  }
  return { "RateLimit-Policy": policies, RateLimit: states };
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
function partitionKey(partition: string): Awaitable<string> {
  return partitionKeys.get(partition) ?? digest(partition);
}

async function digest(partition: string): Promise<string> {
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
  return text.search(PLAIN) === 0 ? text : encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}

/** Whether a value is in a header, which joins several by commas. */
export function has(list: string | null, value: string): boolean {
  return `, ${list}, `.includes(`, ${value}, `);
}
