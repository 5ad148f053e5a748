/** The policy of an API: what its new keys must have. Keys that are older than it are left alone, and are found. */
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { prefixOf } from "../../../../engine/src/rules/key-string.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { EXPIRES_MAX } from "../../platform/vocabulary/schema.ts";
import type { KeyPolicy } from "../apis/record.ts";

/** When a new key expires for which the caller named this time, or none. */
export function expiryOfNew({ expiry }: KeyPolicy, expires: number | undefined, now: Instant): number | null {
  if (expires !== undefined) return expires;
  return expiry?.default === undefined ? null : Math.min(now + expiry.default, EXPIRES_MAX);
}

/** Why a key may not expire then, as a sentence; undefined if it may. Null: never. */
export function expiryFault({ expiry }: KeyPolicy, expiresAt: number | null, createdAt: number): string | undefined {
  const max = expiry?.max;
  if (max === undefined || (expiresAt !== null && expiresAt <= createdAt + max)) return undefined;
  const latest = createdAt + max;
  return (
    `The policy of the API lets keys live for at most ${max} milliseconds from their creation. ` +
    `Send \`expires\` with ${latest} (${new Date(latest).toISOString()}) or an earlier time.`
  );
}

/** The latest time to which the policy lets a key live that is created now; infinite without a rule. */
export function latestExpiry({ expiry }: KeyPolicy, now: Instant): number {
  return expiry?.max === undefined ? Number.POSITIVE_INFINITY : now + expiry.max;
}

/** Why a key may not be created with this prefix, as a sentence; undefined if it may. Undefined: that of the API. */
export function prefixFault(
  { prefixFixed }: KeyPolicy,
  prefix: string | undefined,
  apiPrefix: string | null,
): string | undefined {
  if (!prefixFixed || prefix === undefined || prefix === apiPrefix) return undefined;
  const wanted = apiPrefix === null ? "none, as the API has none" : `'${apiPrefix}', that of the API`;
  return `The policy of the API fixes the prefix of keys: ${wanted}. Leave \`prefix\` out.`;
}

/** The prefix of a key that replaces one, or is derived from one, that begins like this. */
export function successorPrefix({ prefixFixed }: KeyPolicy, start: string, apiPrefix: string | null): string | null {
  return prefixFixed ? apiPrefix : (prefixOf(start) ?? apiPrefix);
}

/** Whether the beginning of a key string shows the prefix. `KeyPolicyReader.against` asks the same of the database. */
export function showsPrefix(start: string, prefix: string | null): boolean {
  if (prefix === null) return start !== "" && !start.includes("_");
  return start.startsWith(`${prefix}_`) && !start.slice(prefix.length + 1).includes("_");
}

/** Throws for a fault. */
export function requireNone(fault: string | undefined): void {
  if (fault !== undefined) throw new Problem("invalid_input", fault);
}

/** Why a key cannot be created. */
export const LIMIT_MISSING =
  "The policy of the API requires a limit for each key: send `ratelimits` or `concurrency`, or a plan or an identity that has one.";

/** Why a key cannot be changed. */
export const LAST_LIMIT =
  "The policy of the API requires a limit for each key, and this change takes the last one away, of this key or of one of its reroll chain. Send another limit with it, or a " +
  "plan or an identity that has one.";

/** Why a key cannot be rerolled. */
export const UNLIMITED_KEY =
  "The policy of the API requires a limit for each new key, and this key has none. Give it one with `keys.updateKey`, or a plan that has " +
  "one, then reroll it.";

/** Why keys cannot be imported by their hashes. */
export const PREFIX_UNKNOWN =
  "The policy of the API fixes the prefix of keys, and a hash does not show it. Set `policy.prefixFixed` to false while keys are " +
  "imported.";

/** Why a policy cannot be stored. */
export const OLDER_PROGRAMS_OF_POLICIES =
  "Another node runs an earlier release, which would create keys against the policy, or is starting. " +
  "Upgrade every node, then send the request again.";
