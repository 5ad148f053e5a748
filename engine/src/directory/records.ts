import { type Instant, instantAt, type Milliseconds } from "../clock/clock.ts";
import type { AllowedAddresses } from "../rules/address.ts";
import { DescriptorTree, descriptorsBytes } from "../rules/descriptor-tree.ts";
import type { HashAlgorithm } from "../rules/imported-keys.ts";
import { compiledBytes, Overrides } from "../rules/override-patterns.ts";
import type { Permissions } from "../rules/permissions.ts";
import { type ConcurrencyLimit, concurrencyOf, slotsId } from "../rules/slots.ts";
import type { LimitMode } from "../rules/strict-window.ts";
import type { LoadedRecord } from "./record-cache.ts";
import type {
  DerivedLevel,
  DirectoryIdentity,
  DirectoryKeyMigration,
  DirectoryLimit,
  DirectoryNamespace,
  DirectoryPortalSession,
  DirectoryRootKey,
  DirectorySession,
  DirectoryWorkspace,
  StoredDescriptors,
} from "./stored.ts";

/** A key as verification needs it, with everything precomputed that does not depend on the call. */
export interface KeyRecord {
  readonly keyId: string;
  /** Deleted keys look missing. They stay cached so that attempts are attributed to their owner. */
  readonly isDeleted: boolean;
  readonly workspaceId: string;
  readonly workspaceEnabled: boolean;
  readonly apiId: string;
  /** The root-key permission that is required to verify the key. */
  readonly verifyRequirement: string;
  readonly poolId: string;
  readonly enabled: boolean;
  readonly expiresAt: Instant | null;
  /** Null: all addresses may use the key. */
  readonly allowedIps: AllowedAddresses | null;
  /** Whether its holder may read it. */
  readonly hasOwnAccess: boolean;
  /** Whether its holder may derive keys from it. */
  readonly hasOwnDerivation: boolean;
  readonly permissions: Permissions;
  /** Whether its pool has a balance of its own. The balance itself is in the ledger. */
  readonly hasBalance: boolean;
  /**
   * The budget of the key with its ancestors, then that of its identity with its ancestors, each once; last, that which the plan
   * of its identity gives.
   */
  readonly budgets: readonly KeyBudget[];
  readonly identity: KeyIdentity | null;
  /** The plan of the key. What it gives is in `plan` if the call has joined it: see `PlannedKey`. */
  readonly planId: string | null;
  /** The limits of the key and of its identity. */
  readonly limits: readonly KeyLimit[];
  /** The limits of concurrency of the key and of its identity. */
  readonly concurrency: readonly KeyConcurrency[];
  /** Whether the key was imported and never verified since, so that the start of its string is unknown. */
  readonly isUnused: boolean;
  /** Clears `isUnused` until the record is read again, or the returned function is called. */
  markUsed(): () => void;
  /** Whether the key is looked up by its long token and its migration. */
  readonly isTokenPending: boolean;
  /** JSON members of a verification's `data` after `code`, without braces, for a caller with a root key. */
  readonly members: string;
  /** The same for a caller without a root key: without the members that end users must not see. */
  readonly anonymousMembers: string;
  /** The same as values, as an object of the caller's own: `members`, or `anonymousMembers`. */
  memberValues(seesAll: boolean): object;
  /** Those of `members` that say what the key is granted, with a comma before them. */
  readonly grantMembers: string;
  /** `members` of a key with another id, expiry and other `grantMembers`; null: those for a caller without a root key. */
  membersOf(other: Pick<KeyRecord, "keyId" | "expiresAt">, grantMembers: string | null): string;
  /** The issued key that calls are charged to and counted for: itself, or the one that it was derived from. */
  readonly top: KeyRecord;
  /** What a derived key has of its own; null: it was issued. */
  readonly derivation: Derivation | null;
}

/** The owner of a key as verification needs it. */
export interface KeyIdentity {
  readonly id: string;
  readonly externalId: string;
  /** The plan of the identity. */
  readonly planId: string | null;
  /** Whether it has a budget of its own, which takes the place of that of its plan. */
  readonly hasBudget: boolean;
}

/** What a derived key has besides what it has of the key at the top. */
export interface Derivation {
  /** Ids of the derived key and of its parents that are derived keys, itself first. */
  readonly ids: readonly string[];
  /** The balances of what they may spend at most. */
  readonly balanceIds: readonly string[];
  readonly levels: readonly DerivedLevel[];
}

/** A budget as verification needs it. Its balance is in the ledger. */
export interface KeyBudget {
  readonly budgetId: string;
  readonly name: string;
  readonly unit: string | null;
  /** The name of the plan that gives it to the identity. Absent: none does. */
  readonly plan?: string;
}

/** A stored limit as verification needs it. */
export interface KeyLimit {
  readonly name: string;
  readonly limit: number;
  /** Milliseconds. */
  readonly duration: number;
  readonly mode: LimitMode;
  readonly owner: "key" | "identity" | "derived";
  /** Whether it is counted and never denies. */
  readonly shadow: boolean;
  /** Whether a verification is charged without naming the limit. Those of identities and of derived keys always apply. */
  readonly applies: boolean;
  /** The name of its counter: the pool of the key, the identity or the derived key, and the name of the limit. */
  readonly counter: string;
  /** JSON members of the state of the limit before `exceeded`, without braces. */
  readonly members: string;
  /** The name of the plan that it comes from. Absent: it is one of its owner. */
  readonly plan?: string;
}

/** A limit of concurrency as verification needs it. Its slots are in the ledger. */
export interface KeyConcurrency extends ConcurrencyLimit {
  readonly owner: "key" | "identity";
  /** The balance of its slots: that of the pool of the key, or of the identity. */
  readonly balanceId: string;
  /** The name of the plan that it comes from. Absent: it is one of its owner. */
  readonly plan?: string;
}

/** A root key as authentication needs it. */
export interface RootKeyRecord {
  readonly rootKeyId: string;
  readonly workspaceId: string;
  readonly workspaceEnabled: boolean;
  readonly enabled: boolean;
  readonly expiresAt: Instant | null;
  readonly grants: readonly string[];
  /** The calls per minute that its workspace may make; null: unlimited. */
  readonly requestsPerMinute: number | null;
}

/** A session of the dashboard or of the portal. */
interface ReadRecord<S> {
  readonly stored: S;
  /** Monotonic time before which its query began. */
  readonly readAt: Milliseconds;
}

/** A session of the dashboard. */
export interface SessionRecord extends ReadRecord<DirectorySession> {
  /** The latest use that was written. */
  touchedAt: number;
}

/** A session of the portal. */
export type PortalSessionRecord = ReadRecord<DirectoryPortalSession>;

/** A workspace as the hot path needs it. */
export interface WorkspaceRecord {
  readonly workspaceId: string;
  readonly enabled: boolean;
  /** Whether the workspace may have keys without a checksum. */
  readonly hasImportedKeys: boolean;
  /** Whether some of those keys are stored as SHA-512. */
  readonly hasSha512Keys: boolean;
  /** Its APIs with an upstream verifier. */
  readonly upstreamApis: readonly string[];
}

/** A migration as the look-up of its keys needs it. */
export interface KeyMigrationRecord {
  readonly id: string;
  readonly algorithm: HashAlgorithm;
  /** The key of its HMACs; null for algorithms without one. */
  readonly pepper: Uint8Array | null;
}

/** A rate limit namespace as the limiter needs it. */
export interface NamespaceRecord {
  readonly namespaceId: string;
  /** The root-key permission that is required to count in the namespace. */
  readonly limitRequirement: string;
  readonly overrides: Overrides;
  /** The limits of descriptors; null: there are none. */
  readonly descriptors: NamespaceDescriptors | null;
}

/** The limits of descriptors of a namespace. */
export interface NamespaceDescriptors extends Omit<StoredDescriptors, "tree"> {
  readonly tree: DescriptorTree;
}

export function rootKeyRecord(rootKey: DirectoryRootKey): LoadedRecord<RootKeyRecord> {
  return {
    record: {
      rootKeyId: rootKey.id,
      workspaceId: rootKey.workspace_id,
      workspaceEnabled: rootKey.workspace_enabled === 1,
      enabled: rootKey.enabled === 1,
      expiresAt: rootKey.expires_at === null ? null : instantAt(rootKey.expires_at),
      grants: JSON.parse(rootKey.grants),
      requestsPerMinute: rootKey.workspace_requests_per_minute,
    },
    tags: [rootKey.id, rootKey.workspace_id],
    bytes: 1_000 + 3 * rootKey.grants.length,
  };
}

export function sessionRecord(stored: DirectorySession, readAt: Milliseconds): LoadedRecord<SessionRecord> {
  const { session, rootKey } = stored;
  return {
    record: { stored, readAt, touchedAt: session.last_used_at },
    tags: [session.id, rootKey.id, session.workspace_id],
    bytes: 2_000 + 3 * rootKey.grants.length,
  };
}

export function portalSessionRecord(
  stored: DirectoryPortalSession,
  readAt: Milliseconds,
): LoadedRecord<PortalSessionRecord> {
  const { session, rootKey } = stored;
  const { id, api_id, identity_id, workspace_id, terms, page } = session;
  return {
    record: { stored, readAt },
    tags: [
      id,
      rootKey.id,
      workspace_id,
      api_id,
      identity_id,
      portalSessionsTag(api_id),
      portalSessionsTag(identity_id),
    ],
    bytes: 2_000 + 3 * rootKey.grants.length + 2 * (terms.length + page.length),
  };
}

/** The tag of all sessions of the portal in an API, or of an identity. Keys do not have it, so that they stay cached. */
export function portalSessionsTag(id: string): string {
  return `portal sessions of ${id}`;
}

export function workspaceRecord(workspace: DirectoryWorkspace): LoadedRecord<WorkspaceRecord> {
  return {
    record: {
      workspaceId: workspace.id,
      enabled: workspace.enabled === 1,
      hasImportedKeys: workspace.has_imported_keys === 1,
      hasSha512Keys: workspace.sha512_migrations > 0,
      upstreamApis: workspace.upstream_apis,
    },
    tags: [],
    bytes: 500,
  };
}

export function keyMigrationRecord({ id, algorithm, pepper }: DirectoryKeyMigration): LoadedRecord<KeyMigrationRecord> {
  return { record: { id, algorithm, pepper }, tags: [], bytes: 500 + (pepper?.length ?? 0) };
}

export function namespaceRecord(namespace: DirectoryNamespace): LoadedRecord<NamespaceRecord> {
  const { id, workspace_id, overrides, descriptors } = namespace;
  return {
    record: {
      namespaceId: id,
      limitRequirement: `ratelimits.${id}.limit`,
      overrides: new Overrides(overrides),
      descriptors: descriptors && { ...descriptors, tree: new DescriptorTree(descriptors.tree) },
    },
    tags: [id, workspace_id],
    bytes: 1_000 + compiledBytes(overrides) + (descriptors === null ? 0 : descriptorsBytes(descriptors.tree)),
  };
}

/** An identity within a KEY, with its limits. `meta` and `ratelimits` are always present. */
export function identityRecord(identity: DirectoryIdentity) {
  const concurrency = concurrencyOf(identity.concurrency);
  return {
    id: identity.id,
    externalId: identity.external_id,
    meta: (identity.meta === null ? {} : JSON.parse(identity.meta)) as Record<string, unknown>,
    ratelimits: identity.ratelimits.map((limit) => ({ ...ratelimitRecord(limit), autoApply: true })),
    ...(concurrency.length > 0 && { concurrency }),
    ...(identity.plan && { plan: identity.plan.name }),
  };
}

/** The limits of concurrency of the key or the identity with this id: for a key, that of its pool. */
export function keyConcurrency(
  column: string | null,
  owner: KeyConcurrency["owner"],
  ownerId: string,
): KeyConcurrency[] {
  return concurrencyOf(column).map(({ name, limit }) => ({ name, limit, owner, balanceId: slotsId(ownerId, name) }));
}

/** A limit of the key or the identity with this id: for a key, that of its pool. */
export function keyLimit(stored: DirectoryLimit, owner: KeyLimit["owner"], ownerId: string): KeyLimit {
  const { name, limit, duration, mode, auto_apply, shadow } = stored;
  const shown = { ...ratelimitRecord(stored), ...(owner === "identity" && { autoApply: true, from: owner }) };
  return {
    name,
    limit,
    duration,
    mode,
    owner,
    shadow: shadow === 1,
    applies: owner !== "key" || auto_apply === 1,
    counter: limitCounter(owner, ownerId, name),
    members: members(shown),
  };
}

/**
 * The name of the counter of a limit. A limit of a key counts under the key's pool, which rerolled keys share. A limit of
 * an identity counts under the identity, for all its keys together. A limit of a derived key counts under that key, for all
 * that were derived of it as well.
 */
export function limitCounter(owner: KeyLimit["owner"], ownerId: string, name: string): string {
  return `${owner}\0${ownerId}\0${name}`;
}

/** The name of the limit of such a counter. */
export function limitNameOf(counter: string): string {
  return counter.split("\0").slice(2).join("\0");
}

/** A stored limit as the API returns it. */
export function ratelimitRecord({ id, name, limit, duration, mode, auto_apply, shadow }: DirectoryLimit) {
  return {
    id,
    name,
    limit,
    duration,
    ...(mode === "strict" && { mode }),
    autoApply: auto_apply === 1,
    ...(shadow === 1 && { shadow: true as const }),
  };
}

/** Values of JSON members, for records that do not have them in another form. */
export function valuesOf({ members: all, anonymousMembers }: KeyRecord, seesAll: boolean): object {
  return JSON.parse(`{${seesAll ? all : anonymousMembers}}`);
}

/** JSON members of an object, without braces. */
export function members(object: object): string {
  return JSON.stringify(object).slice(1, -1);
}
