/**
 * What the directory reads of the store: the columns of which it makes records. The store's rows have more columns.
 * Times are epoch milliseconds.
 */

import type { CompiledDescriptors } from "../rules/descriptor-tree.ts";
import type { HashAlgorithm } from "../rules/imported-keys.ts";
import type { CompiledOverrides } from "../rules/override-patterns.ts";
import type { LimitMode } from "../rules/strict-window.ts";

/** A boolean as both databases store it. */
type StoredBoolean = 0 | 1;

/** A limit of a key or of an identity. */
export interface DirectoryLimit {
  id: string;
  name: string;
  limit: number;
  /** Milliseconds. */
  duration: number;
  mode: LimitMode;
  auto_apply: StoredBoolean;
  /** 1: it is counted and never denies. Absent: as 0. */
  shadow?: StoredBoolean;
}

/** The plan of a key or of an identity. What it gives is in a record of its own. */
export interface DirectoryPlanUse {
  id: string;
  /** Never changes. */
  name: string;
  /** JSON of its credits, or null. */
  credits: string | null;
  /** JSON of the budget that it gives to identities, or null. */
  budget: string | null;
}

/** A plan: what it gives to each key and to each identity that has it. */
export interface DirectoryPlan {
  id: string;
  workspace_id: string;
  name: string;
  /** Increases with each change. */
  version: number;
  /** In the order of their names. */
  ratelimits: readonly DirectoryLimit[];
  /** JSON array of its limits of concurrency, or null. */
  concurrency: string | null;
  /** JSON of its credits, or null. */
  credits: string | null;
  /** JSON of the budget that it gives to each identity, or null. */
  budget: string | null;
  /** Role names in order. */
  roles: readonly string[];
  /** Slugs of its permissions, direct and through roles, distinct and in order. */
  permissions: readonly string[];
}

/** The owner of a key. */
export interface DirectoryIdentity {
  id: string;
  external_id: string;
  /** JSON, or null. */
  meta: string | null;
  /** JSON array of its limits of concurrency, or null. */
  concurrency: string | null;
  ratelimits: readonly DirectoryLimit[];
  plan: DirectoryPlanUse | null;
  /** A budget of its own, in whose place no plan gives one. */
  budget_id: string | null;
}

/** A budget of a key or of an identity, or one of its ancestors. */
export interface DirectoryBudget {
  id: string;
  name: string;
  unit: string | null;
}

/** What a key is looked up by. */
export interface KeyLocation {
  hash: string;
  workspace_id: string;
}

/** A key that is not deleted, with all related rows. */
export interface DirectoryKey extends KeyLocation {
  id: string;
  api_id: string;
  pool_id: string;
  hash_version: number;
  /** Whether the key was imported and never verified since. */
  is_unused: StoredBoolean;
  name: string | null;
  /** JSON, or null. */
  meta: string | null;
  enabled: StoredBoolean;
  expires_at: number | null;
  /** Set if the key is found only by calls that name its migration. */
  migration_id: string | null;
  /** JSON array of CIDRs that may use the key, or null. */
  allowed_ips: string | null;
  /** The same of its API. Both must contain the address. */
  api_allowed_ips: string | null;
  api_own_key_access: StoredBoolean;
  api_own_key_derivation: StoredBoolean;
  workspace_enabled: StoredBoolean;
  /** Its own one, or one that a plan gave or has given. Null: none. */
  balance: { plan_id: string | null } | null;
  /** The budget of the key with its ancestors, then that of its identity with its ancestors; each once. */
  budgets: readonly DirectoryBudget[];
  identity: DirectoryIdentity | null;
  /** That of its pool. */
  plan: DirectoryPlanUse | null;
  /** JSON array of its limits of concurrency, or null. */
  concurrency: string | null;
  ratelimits: readonly DirectoryLimit[];
  /** Role names in order. */
  roles: readonly string[];
  /** Slugs of effective permissions, direct and through roles, distinct and in order. */
  permissions: readonly string[];
}

/** A deleted key, or a key of a deleted API. Its verifications are attributed to its owner. */
export interface DeletedKey extends KeyLocation {
  id: string;
  api_id: string;
  identity_id: string | null;
  migration_id: string | null;
  deleted: true;
}

/** What a derived key, or one that it was derived from, narrows down. */
export interface DerivedLevel {
  id: string;
  /** The key or derived key that it was derived from. */
  parent_id: string;
  expires_at: number;
  /** When it was ended; null: it was not. */
  deleted_at: number | null;
  /** JSON array of slugs; null: everything that its parent may. */
  permissions: string | null;
  /** JSON array of limits; null: none. */
  ratelimits: string | null;
  /** JSON array of CIDRs; null: every address that its parent allows. */
  allowed_ips: string | null;
  /** JSON, or null. */
  meta: string | null;
  /** The most credits that it may spend; null: as many as its parent. */
  credits_max: number | null;
}

/** A derived key with those that it was derived from, up to the key at the top, which is none of them. */
export interface DirectoryDerivedKey extends KeyLocation {
  /** The key at the top. */
  top_id: string;
  /** Itself first. One that is missing was deleted. */
  levels: readonly DerivedLevel[];
  /** How many levels there are, if none is missing. */
  level: number;
}

/** A root key with the settings of its workspace that apply to its calls. */
export interface DirectoryRootKey {
  id: string;
  workspace_id: string;
  hash: string;
  name: string;
  /** JSON array of grants in canonical spelling. */
  grants: string;
  enabled: StoredBoolean;
  expires_at: number | null;
  workspace_enabled: StoredBoolean;
  workspace_requests_per_minute: number | null;
}

/** A workspace. */
export interface DirectoryWorkspace {
  id: string;
  enabled: StoredBoolean;
  has_imported_keys: StoredBoolean;
  /** The number of its migrations whose hashes are SHA-512. */
  sha512_migrations: number;
  /** Ids of its APIs with an upstream verifier. */
  upstream_apis: string[];
}

/** How a caller identifies a migration. */
export interface KeyMigrationReference {
  workspace_id: string;
  name: string;
}

/** A source of imported keys, with its pepper decrypted. */
export interface DirectoryKeyMigration extends KeyMigrationReference {
  id: string;
  algorithm: HashAlgorithm;
  /** The key of its HMACs; null for algorithms without one. */
  pepper: Uint8Array | null;
}

/** How a caller identifies a namespace: by name or by id. */
export interface NamespaceReference {
  workspace_id: string;
  name_or_id: string;
}

/** A namespace with its overrides and its descriptors, and the reference by which it was looked up. */
export interface DirectoryNamespace extends NamespaceReference {
  id: string;
  overrides: CompiledOverrides;
  /** Null: it has no tree of descriptors. */
  descriptors: StoredDescriptors | null;
}

/** The tree of descriptors of a namespace, and how calls are counted with it. */
export interface StoredDescriptors {
  readonly tree: CompiledDescriptors;
  /** Whether a call charges all of its descriptors or none. */
  readonly isAtomic: boolean;
  /** Whether answers have dynamic metadata. */
  readonly hasMetadata: boolean;
}

/** A session of the dashboard, with its root key. */
export interface DirectorySession {
  session: {
    id: string;
    workspace_id: string;
    root_key_id: string;
    /** SHA-256 of its token. */
    hash: string;
    created_at: number;
    last_used_at: number;
    /** When it ends at the latest. */
    expires_at: number;
  };
  rootKey: DirectoryRootKey;
  workspaceName: string;
}

/** A session of the portal, with the root key that created it. */
export interface DirectoryPortalSession {
  session: {
    id: string;
    workspace_id: string;
    api_id: string;
    identity_id: string;
    /** SHA-256 of its token. */
    hash: string;
    /** What it may do, as JSON. */
    terms: string;
    /** How its page looks, as JSON. */
    page: string;
    expires_at: number;
  };
  rootKey: DirectoryRootKey;
  externalId: string;
}
