import type { BlockList } from "node:net";
import { type Instant, instantAt } from "../clock/clock.ts";
import { addressList } from "../rules/address.ts";
import { type HashAlgorithm, hashVersions } from "../rules/imported-keys.ts";
import { compiledBytes, Overrides } from "../rules/override-patterns.ts";
import { compilePermissions, type Permissions } from "../rules/permissions.ts";
import type { StoredRootKey } from "../store/administration/root-keys.ts";
import type { StoredWorkspace } from "../store/administration/workspaces.ts";
import type { DeletedKey } from "../store/keys/lookup.ts";
import type { StoredKey, StoredRatelimit } from "../store/keys/stored-key.ts";
import type { StoredNamespace } from "../store/ratelimits/namespaces.ts";
import type { KeyMigrationRow } from "../store/schema.ts";
import type { LoadedRecord } from "./record-cache.ts";

/** A key as verification needs it: everything that can be decided beforehand is. */
export interface KeyRecord {
  readonly keyId: string;
  /** A deleted key is as absent as one that never was; it is known for the sake of whom its attempts are counted for. */
  readonly isDeleted: boolean;
  readonly workspaceId: string;
  readonly workspaceEnabled: boolean;
  readonly apiId: string;
  /** The root-key permission that verifying it takes. */
  readonly verifyRequirement: string;
  readonly poolId: string;
  readonly enabled: boolean;
  readonly expiresAt: Instant | null;
  /** Null: every address may use it. */
  readonly allowedIps: BlockList | null;
  readonly permissions: Permissions;
  /** Whether its pool has a balance. What it is, only the ledger knows. */
  readonly hasBalance: boolean;
  readonly identity: { readonly id: string; readonly externalId: string } | null;
  /** Its own limits and those of its identity. */
  readonly limits: readonly KeyLimit[];
  /** Whether it was imported and never verified since, so that nobody knows how its string begins. */
  readonly isUnused: boolean;
  /** Whether it is found by its long token and the migration through which it came. */
  readonly isTokenPending: boolean;
  /** JSON members of a verification's `data` after `code`, as a holder of a root key sees them, without braces. */
  readonly members: string;
  /** The same as a caller without a root key sees them: nothing that is "never shown to end users". */
  readonly anonymousMembers: string;
}

/** A stored limit as verification needs it. */
export interface KeyLimit {
  readonly name: string;
  readonly limit: number;
  /** Milliseconds. */
  readonly duration: number;
  readonly owner: "key" | "identity";
  /** Whether a verification is charged without naming it. Identity limits always apply. */
  readonly applies: boolean;
  /** What it counts under: the pool of its key, or its identity, and its name. */
  readonly counter: string;
  /** JSON members of its state before `exceeded`, without braces. */
  readonly members: string;
}

/** A root key as authentication needs it. */
export interface RootKeyRecord {
  readonly rootKeyId: string;
  readonly workspaceId: string;
  readonly workspaceEnabled: boolean;
  readonly enabled: boolean;
  readonly expiresAt: Instant | null;
  readonly grants: readonly string[];
  /** Calls a minute that its workspace may make; null: any number. */
  readonly requestsPerMinute: number | null;
}

/** A workspace as the hot path needs it. */
export interface WorkspaceRecord {
  readonly workspaceId: string;
  readonly enabled: boolean;
  /** Whether keys without a checksum may exist in it. */
  readonly hasImportedKeys: boolean;
  /** Whether some of those are to be looked for by SHA-512. */
  readonly hasSha512Keys: boolean;
}

/** A migration as the look-up of its keys needs it. */
export interface KeyMigrationRecord {
  readonly id: string;
  readonly algorithm: HashAlgorithm;
  /** What its HMACs are keyed with; null where there are none. */
  readonly pepper: Uint8Array | null;
}

/** A migration as it comes from the store, its pepper out of the vault. */
export type OpenedKeyMigration = Omit<KeyMigrationRow, "pepper"> & { pepper: Uint8Array | null };

/** A rate limit namespace as the limiter needs it. */
export interface NamespaceRecord {
  readonly namespaceId: string;
  /** The root-key permission that counting in it takes. */
  readonly limitRequirement: string;
  readonly overrides: Overrides;
}

export function keyRecord(key: StoredKey): LoadedRecord<KeyRecord> {
  const shared = {
    keyId: key.id,
    apiId: key.api_id,
    enabled: key.enabled === 1,
    meta: key.meta === null ? {} : JSON.parse(key.meta),
    ...(key.expires_at !== null && { expires: key.expires_at }),
    ...(key.identity && { identity: identityRecord(key.identity) }),
  };
  const record: KeyRecord = {
    keyId: key.id,
    isDeleted: false,
    workspaceId: key.workspace_id,
    workspaceEnabled: key.workspace_enabled === 1,
    apiId: key.api_id,
    verifyRequirement: `apis.${key.api_id}.verify_key`,
    poolId: key.pool_id,
    enabled: key.enabled === 1,
    expiresAt: key.expires_at === null ? null : instantAt(key.expires_at),
    allowedIps: key.api_allowed_ips === null ? null : addressList(JSON.parse(key.api_allowed_ips)),
    permissions: compilePermissions(key.permissions),
    hasBalance: key.balance !== null,
    identity: key.identity && { id: key.identity.id, externalId: key.identity.external_id },
    isUnused: key.start === "",
    isTokenPending: key.hash_version === hashVersions["prefixed-api-key"],
    limits: [
      ...key.ratelimits.map((limit) => keyLimit(limit, "key", key.pool_id)),
      ...(key.identity?.ratelimits ?? []).map((limit) => keyLimit(limit, "identity", key.identity!.id)),
    ],
    members: members({
      ...shared,
      ...(key.name !== null && { name: key.name }),
      ...(key.roles.length > 0 && { roles: key.roles }),
      ...(key.permissions.length > 0 && { permissions: key.permissions }),
    }),
    anonymousMembers: members(shared),
  };
  return {
    record,
    tags: [key.id, key.api_id, key.workspace_id, key.pool_id, ...(key.identity ? [key.identity.id] : [])],
    // Texts are one or two bytes a character; a permission stands in a text, in the set and in its own string.
    bytes:
      1_000 +
      2 * (record.members.length + record.anonymousMembers.length) +
      150 * key.permissions.length +
      500 * record.limits.length,
  };
}

/** A key that is not there any more. */
export function deletedKeyRecord(key: DeletedKey): LoadedRecord<KeyRecord> {
  const { id, workspace_id, api_id, identity_id } = key;
  return {
    record: {
      keyId: id,
      isDeleted: true,
      workspaceId: workspace_id,
      workspaceEnabled: false,
      apiId: api_id,
      verifyRequirement: `apis.${api_id}.verify_key`,
      poolId: "",
      enabled: false,
      expiresAt: null,
      allowedIps: null,
      permissions: compilePermissions([]),
      hasBalance: false,
      identity: identity_id === null ? null : { id: identity_id, externalId: "" },
      isUnused: false,
      isTokenPending: false,
      limits: [],
      members: "",
      anonymousMembers: "",
    },
    tags: [id, api_id, workspace_id],
    bytes: 1_000,
  };
}

export function rootKeyRecord(rootKey: StoredRootKey): LoadedRecord<RootKeyRecord> {
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

export function workspaceRecord(workspace: StoredWorkspace): LoadedRecord<WorkspaceRecord> {
  return {
    record: {
      workspaceId: workspace.id,
      enabled: workspace.enabled === 1,
      hasImportedKeys: workspace.has_imported_keys === 1,
      hasSha512Keys: workspace.sha512_migrations > 0,
    },
    tags: [],
    bytes: 500,
  };
}

export function keyMigrationRecord({ id, algorithm, pepper }: OpenedKeyMigration): LoadedRecord<KeyMigrationRecord> {
  return { record: { id, algorithm, pepper }, tags: [], bytes: 500 + (pepper?.length ?? 0) };
}

export function namespaceRecord({ id, workspace_id, overrides }: StoredNamespace): LoadedRecord<NamespaceRecord> {
  return {
    record: {
      namespaceId: id,
      limitRequirement: `ratelimits.${id}.limit`,
      overrides: new Overrides(overrides),
    },
    tags: [id, workspace_id],
    bytes: 1_000 + compiledBytes(overrides),
  };
}

/** An identity inside a key, with its limits; `meta` and `ratelimits` are always there. */
export function identityRecord(identity: NonNullable<StoredKey["identity"]>) {
  return {
    id: identity.id,
    externalId: identity.external_id,
    meta: (identity.meta === null ? {} : JSON.parse(identity.meta)) as Record<string, unknown>,
    ratelimits: identity.ratelimits.map((limit) => ({ ...ratelimitRecord(limit), autoApply: true })),
  };
}

function keyLimit(stored: StoredRatelimit, owner: KeyLimit["owner"], ownerId: string): KeyLimit {
  const { name, limit, duration, auto_apply } = stored;
  const shown = { ...ratelimitRecord(stored), ...(owner === "identity" && { autoApply: true }) };
  return {
    name,
    limit,
    duration,
    owner,
    applies: owner === "identity" || auto_apply === 1,
    counter: limitCounter(owner, ownerId, name),
    members: members(shown),
  };
}

/**
 * What a limit counts under. Those of a key count under its pool, which it shares with the keys that it was rerolled
 * into; those of an identity under the identity, for all its keys together.
 */
export function limitCounter(owner: KeyLimit["owner"], ownerId: string, name: string): string {
  return `${owner}\0${ownerId}\0${name}`;
}

/** A stored limit as it is shown. */
export function ratelimitRecord({ id, name, limit, duration, auto_apply }: StoredRatelimit) {
  return { id, name, limit, duration, autoApply: auto_apply === 1 };
}

function members(object: object): string {
  return JSON.stringify(object).slice(1, -1);
}
