import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import { type DerivedLimit, LEVELS_MAX } from "../../../../engine/src/directory/derived-key.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { formatDerivedKey } from "../../../../engine/src/rules/key-string.ts";
import { LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { EventContent } from "../../platform/store/events/events.ts";
import type { DerivedKeyRow } from "../../platform/store/schema.ts";
import type { StoreWriter } from "../../platform/store/workspace-store.ts";
import { jsonColumn } from "../../platform/vocabulary/columns.ts";
import {
  AllowedIps,
  asSecret,
  BYTE_LENGTH_DEFAULT,
  CREDITS_MAX,
  DURATION_MIN,
  duration,
  integer,
  Mode,
  meta,
  PERMISSIONS_PER_KEY_MAX,
  rejectRepeatedNames,
  slug,
  text,
} from "../../platform/vocabulary/schema.ts";
import { type KeyPolicy, policyOf } from "../apis/record.ts";
import { refillColumns } from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { keyInEvents } from "./lock-key.ts";
import { requireNone, successorPrefix } from "./policy.ts";
import { DerivedKeyWriter } from "./statements/derived-keys.ts";
import { KeyPolicyReader } from "./statements/key-policy.ts";
import { KeyWriter } from "./statements/keys.ts";
import type { StoredKey } from "./statements/stored-key.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;

const TTL_MAX = 30 * DAY;
const LIMITS_MAX = 10;
const META_BYTES_MAX = 4 * 1024;

/** What the owner of keys may derive. */
export interface DerivationBounds {
  /** Living keys that were derived from one key, on all levels. */
  readonly perKey: number;
  /** Keys that are derived from the keys of one owner in a minute. */
  readonly perMinute: number;
}

/** The defaults of the settings. */
export const DERIVATION_BOUNDS: DerivationBounds = { perKey: 1_000, perMinute: 600 };

/** What a derived key has of its own. */
export const derivationFields = {
  ttl: duration(MINUTE, TTL_MAX).describe("When the derived key ends at the latest, in milliseconds from now."),
  permissions: z
    .array(slug(1, 100))
    .max(PERMISSIONS_PER_KEY_MAX)
    .optional()
    .describe(
      "Slugs. Of its parent's permissions at each verification, it has those that are also here. Omitted: all of them.",
    ),
  ratelimits: z
    .array(
      z.strictObject({
        name: text(1, 128).describe("Name of the limit."),
        limit: integer(1, LIMIT_MAX).describe("Maximum cost per window."),
        duration: duration(DURATION_MIN, DAY).describe("Length of the window in milliseconds, at most a day."),
        mode: Mode.default("standard"),
      }),
    )
    .max(LIMITS_MAX)
    .check(({ value, issues }) => rejectRepeatedNames(value, issues))
    .optional()
    .describe("Limits besides those of its parent. Every verification is charged to them, like those of an identity."),
  credits: z
    .strictObject({ max: integer(0, CREDITS_MAX).describe("The most that it may spend in its life.") })
    .optional()
    .describe("A bound besides the credits and budgets of its parent. Omitted: none."),
  allowedIps: AllowedIps.optional().describe(
    "IPv4 and IPv6 addresses and CIDRs that may use it. The lists of its parent and of the API must contain the address too.",
  ),
  meta: meta(META_BYTES_MAX)
    .optional()
    .describe(
      "Verifications answer it as `derived.meta`. Their `meta` is that of the key at the top, which its holder cannot choose.",
    ),
};

export const DerivedOutput = z.strictObject({
  keyId: z.string(),
  key: asSecret(z.string()).describe("The key string. Only this response contains it."),
  expires: z
    .int()
    .describe(
      "When it ends at the latest: the earliest of its own end and those of its parents, Unix time in milliseconds.",
    ),
});

type DerivationInput = z.output<z.ZodObject<typeof derivationFields>>;

/** A derivation to make. */
export interface Derivation extends DerivationInput {
  /** The key, or the derived key, to derive from. */
  keyId: string;
  byHolder: boolean;
}

export interface DerivationContext {
  store: StoreWriter;
  random: Random;
  secrets: SecretSource;
  now: Instant;
  /** Throws if the caller may not create keys of the API. */
  authorize(apiId: string): void;
  bounds: DerivationBounds;
}

/** A derived key, and what the audit log and the events say of it. */
export interface Derived {
  answer: z.output<typeof DerivedOutput>;
  targets: string[];
  meta: Readonly<Record<string, unknown>>;
  events: EventContent[];
}

/** What cannot be derived from, or not now. */
const refuse = (detail: string): never => {
  throw new Problem("precondition_failed", detail);
};

/** Why keys cannot be derived beside earlier releases. */
export const OLDER_PROGRAMS_OF_DERIVED_KEYS =
  "Another node runs an earlier release, which does not know derived keys, or is starting. " +
  "Upgrade every node, then send the request again.";

/** Derives a key. @throws {Problem} if there is none to derive from, or if that is not allowed now. */
export async function derive(wanted: Derivation, context: DerivationContext): Promise<Derived> {
  const { store, random, secrets, now, authorize, bounds } = context;
  const keys = store.of(DerivedKeyWriter);
  const { top, parent } = await lockParent(wanted.keyId, store);
  authorize(top.api_id);
  requireValid(top, parent, now);
  const level = (parent?.level ?? 0) + 1;
  if (level > LEVELS_MAX) {
    refuse(
      `${wanted.keyId} is ${LEVELS_MAX} levels below ${top.id}, which is the maximum. Derive from a key above it.`,
    );
  }
  const policy = policyOf({ policy: top.api_policy });
  requireNone(await policyFault(wanted, { policy, top, parent }, store));
  if (!(await keys.accepts())) refuse(OLDER_PROGRAMS_OF_DERIVED_KEYS);
  const { living, hadAny } = await keys.countOfTop(top.id, now);
  if (living >= bounds.perKey) {
    refuse(
      `There are ${bounds.perKey} derived keys of ${top.id}, which is the maximum (LATCHKEY_DERIVED_KEYS_PER_KEY). ` +
        "End some, or wait until some have expired.",
    );
  }
  const ownerId = top.identity?.id ?? top.id;
  await requireRate(keys, ownerId, bounds, now);

  const id = newId(random, "dkey");
  const bytes = secrets(top.api_byte_length ?? BYTE_LENGTH_DEFAULT);
  const { key, start } = formatDerivedKey(successorPrefix(policy, top.start, top.api_prefix), bytes);
  // Not later than a derived parent, which then cannot be forgotten before its children.
  const expiresAt = Math.min(now + wanted.ttl, parent?.expires_at ?? Number.POSITIVE_INFINITY);
  const { permissions, ratelimits, credits, allowedIps } = wanted;
  await keys.insert({
    id,
    parent_id: wanted.keyId,
    top_id: top.id,
    owner_id: ownerId,
    level,
    hash: hashSecret(key),
    start,
    permissions: jsonColumn(permissions),
    ratelimits: ratelimits?.length ? JSON.stringify(ratelimits.map((limit) => storedLimit(limit, random))) : null,
    allowed_ips: jsonColumn(allowedIps),
    credits_max: credits?.max ?? null,
    meta: jsonColumn(wanted.meta),
    by_holder: wanted.byHolder ? 1 : 0,
    created_at: now,
    expires_at: expiresAt,
  });
  if (credits) {
    // Without a threshold: a derived key has no events of its own.
    await store.of(BalanceWriter).put({ pool_id: id, remaining: credits.max, ...refillColumns(undefined, now) }, null);
  }
  const expires = Math.min(expiresAt, top.expires_at ?? Number.POSITIVE_INFINITY);
  const about = { ...keyInEvents(top), derivedKeyId: id, expires };
  return {
    answer: { keyId: id, key, expires },
    targets: [id, ...new Set([wanted.keyId, parent?.parent_id ?? top.id, top.id]), top.api_id],
    meta: { parentKeyId: wanted.keyId, topKeyId: top.id, level, start, expires, byHolder: wanted.byHolder },
    events: hadAny ? [] : [{ type: "key.derived", objectId: top.id, data: about }],
  };
}

function storedLimit(
  { name, limit, duration, mode }: NonNullable<DerivationInput["ratelimits"]>[number],
  random: Random,
): DerivedLimit {
  return { id: newId(random, "rl"), name, limit, duration, mode };
}

/** Locks the key at the top of what to derive from, and finds that itself if it is a derived key. */
async function lockParent(
  keyId: string,
  store: StoreWriter,
): Promise<{ top: StoredKey; parent: DerivedKeyRow | undefined }> {
  const derived = store.of(DerivedKeyWriter);
  const topId = (await derived.find(keyId))?.top_id;
  const top = await store.of(KeyWriter).findForUpdate(topId ?? keyId);
  // Again, after the lock: it can have been ended meanwhile.
  const parent = topId === undefined ? undefined : await derived.find(keyId);
  if (!top || (topId !== undefined && !parent)) throw new Problem("key_not_found");
  return { top, parent };
}

/** Why the policy of the API does not allow a derived key, which always ends with its parents; undefined if it does. */
async function policyFault(
  { ttl, ratelimits }: Derivation,
  { policy, top, parent }: { policy: KeyPolicy; top: StoredKey; parent: DerivedKeyRow | undefined },
  store: StoreWriter,
): Promise<string | undefined> {
  const max = policy.expiry?.max;
  if (max !== undefined && ttl > max) {
    return `The policy of the API lets keys live for at most ${max} milliseconds. Send a \`ttl\` of at most that.`;
  }
  if (!policy.limitsRequired || ratelimits?.length || parent?.ratelimits) return undefined;
  if ((await store.of(KeyPolicyReader).unlimited([top.id])).length === 0) return undefined;
  return `The policy of the API requires a limit for each key, and ${top.id} has none: send \`ratelimits\`.`;
}

function requireValid(top: StoredKey, parent: DerivedKeyRow | undefined, now: Instant): void {
  if (top.enabled !== 1) refuse(`The key ${top.id} is disabled.`);
  if (top.expires_at !== null && now >= top.expires_at) refuse(`The key ${top.id} has expired.`);
  if (parent && now >= parent.expires_at) refuse(`The derived key ${parent.id} has expired.`);
}

async function requireRate(
  keys: DerivedKeyWriter,
  ownerId: string,
  { perMinute }: DerivationBounds,
  now: Instant,
): Promise<void> {
  const oldest = await keys.oldestOfRate(ownerId, perMinute, (now - MINUTE) as Instant);
  if (oldest === undefined) return;
  const wait = Math.max(1, Math.ceil((oldest + MINUTE - now) / 1_000));
  throw new Problem("workspace_rate_limited", tooManyDerivations(perMinute), {
    headers: { "retry-after": String(wait) },
  });
}

export function tooManyDerivations(perMinute: number): string {
  return (
    `The owner of this key derived ${perMinute} keys within a minute, which is the maximum ` +
    "(LATCHKEY_DERIVED_KEYS_PER_MINUTE)."
  );
}
