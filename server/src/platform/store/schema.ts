import type { Generated } from "kysely";
import type { HoldState, OnExpiry } from "../../../../engine/src/credits/hold.ts";
import type { HashAlgorithm } from "../../../../engine/src/rules/imported-keys.ts";
import type { RefillInterval } from "../../../../engine/src/rules/refill.ts";
import type { LimitMode } from "../../../../engine/src/rules/strict-window.ts";

/**
 * All tables, the same in both dialects. Times are epoch milliseconds; flags are 0 and 1; `meta` and other free
 * structures are JSON text. Every row names its workspace.
 */
export interface Schema {
  workspaces: WorkspaceRow;
  root_keys: RootKeyRow;
  root_key_usage: { root_key_id: string; last_used_at: number };
  sessions: SessionRow;
  portal_sessions: PortalSessionRow;
  token_key: { id: 1; key: string };
  sign_in_links: { hash: string; root_key_id: string; expires_at: number };
  apis: ApiRow;
  identities: IdentityRow;
  budgets: BudgetRow;
  plans: PlanRow;
  plans_permissions: { workspace_id: string; plan_id: string; permission_id: string };
  plans_roles: { workspace_id: string; plan_id: string; role_id: string };
  plan_assignments: PlanAssignmentRow;
  plan_credits: PlanCreditsRow;
  plan_grants: PlanGrantRow;
  plan_budgets: PlanBudgetRow;
  balances: BalanceRow;
  holds: HoldRow;
  keys: KeyRow;
  derived_keys: DerivedKeyRow;
  key_migrations: KeyMigrationRow;
  key_usage: KeyUsageRow;
  ratelimits: RatelimitRow;
  ratelimit_namespaces: RatelimitNamespaceRow;
  ratelimit_overrides: RatelimitOverrideRow;
  ratelimit_descriptors: RatelimitDescriptorsRow;
  permissions: PermissionRow;
  roles: RoleRow;
  roles_permissions: { workspace_id: string; role_id: string; permission_id: string };
  keys_permissions: { workspace_id: string; key_id: string; permission_id: string };
  keys_roles: { workspace_id: string; key_id: string; role_id: string };
  vault: VaultRow;
  vault_data_keys: VaultDataKeyRow;
  vault_secrets: VaultSecretRow;
  signing_keys: SigningKeyRow;
  idempotency_records: IdempotencyRecordRow;
  audit_events: AuditEventRow;
  audit_targets: { workspace_id: string; target: string; occurred_at: number; event_id: string };
  events: EventRow;
  event_outbox: { number: number };
  webhooks: WebhookRow;
  webhook_deliveries: WebhookDeliveryRow;
  event_sweeps: { name: string; state: string };
  changes: ChangeRow;
  claim: ClaimRow;
  leases: { name: string; holder: string; token: number; expires_at: number };
  purged_keys: { hash: string; workspace_id: string; purged_at: number };
  redis_epochs: RedisEpochRow;
  moves: MoveRow;
  redis_partitions: RedisPartitionRow;
  workspace_usage: WorkspaceUsageRow;
  workspace_bytes: { workspace_id: string; kind: string; day: number; bytes: number };
}

/** The tables whose rows have at least these columns. */
export type TablesWith<Columns> = {
  [Table in keyof Schema]: Schema[Table] extends Columns ? Table : never;
}[keyof Schema];

export type SqlBoolean = 0 | 1;

export interface WorkspaceRow {
  id: string;
  name: string;
  /** The name in lower case, for searching. */
  name_folded: string;
  enabled: SqlBoolean;
  /** 1 after a key was imported: imported keys have no checksum, so a failed checksum proves nothing. */
  has_imported_keys: SqlBoolean;
  /** The workspace of callers without a root key. Its administrators manage the others. */
  is_default: SqlBoolean;
  /** The limit on calls with root keys of the workspace; null: none. */
  requests_per_minute: number | null;
  created_at: number;
  updated_at: number | null;
}

/** How many rows of one kind a workspace has: those of the last count, and those added since. */
export interface WorkspaceUsageRow {
  workspace_id: string;
  quota: string;
  /** Rows that were added, less those that were deleted at once, since the workspace is counted. */
  total: number;
  /** The rows at the last count; null: not counted yet. */
  counted: number | null;
  /** The total when the last count began. */
  counted_total: number;
  counted_at: number;
  /** Since when the workspace has most of what it may have; null: it has not. */
  near_at: number | null;
}

export interface RootKeyRow {
  id: string;
  workspace_id: string;
  name: string;
  /** The name in lower case, for searching. */
  name_folded: string;
  hash: string;
  hash_version: number;
  start: string;
  /** JSON array of grants in canonical spelling. */
  grants: string;
  /** `environment`: set by configuration and updated at every start. `issued`: created by the service. */
  source: "environment" | "issued";
  enabled: SqlBoolean;
  expires_at: number | null;
  /** The root key that created it; null: the command line, the configuration, or unknown. */
  created_by: string | null;
  /** What happens to it if it is reported as leaked; null: it is marked. */
  leak_action: LeakAction | null;
  /** When it was first reported as leaked. */
  leaked_at: number | null;
  created_at: number;
  updated_at: number | null;
  deleted_at: number | null;
}

/** A session of the dashboard, which stands for a root key. */
export interface SessionRow {
  id: string;
  workspace_id: string;
  root_key_id: string;
  /** SHA-256 of its token. */
  hash: string;
  /** The address that signed in. */
  address: string;
  /** The program that signed in, as it names itself. */
  user_agent: string;
  created_at: number;
  /** To the minute. */
  last_used_at: number;
  /** When it ends at the latest. */
  expires_at: number;
}

/** A session of the portal, in which the owner of keys manages them. */
export interface PortalSessionRow {
  id: string;
  workspace_id: string;
  /** The root key that created it. */
  root_key_id: string;
  api_id: string;
  identity_id: string;
  /** SHA-256 of its token. */
  hash: string;
  /** What it may do: `PortalTerms` as JSON. */
  terms: string;
  /** How its page looks: `PortalPage` as JSON. */
  page: string;
  created_at: number;
  expires_at: number;
}

/** `mark`: the key gets the time of the report. `disable`: it is disabled too. */
export type LeakAction = "mark" | "disable";

export interface ApiRow {
  id: string;
  workspace_id: string;
  name: string;
  /** The name in lower case, for searching. */
  name_folded: string;
  prefix: string | null;
  byte_length: number | null;
  delete_protection: SqlBoolean;
  /** JSON array of CIDRs, or null: every address may verify. */
  allowed_ips: string | null;
  /** Whether the holder of a key may read it. */
  own_key_access: SqlBoolean;
  /** Whether the holder of a key may derive keys from it. Null: no. */
  own_key_derivation: SqlBoolean | null;
  /** JSON array of the days before their expiry at which keys have an event; null: the default. */
  expiry_notices: string | null;
  /** What happens to keys that are reported as leaked; null: `mark`. */
  leak_action: LeakAction | null;
  /** JSON of its upstream verifier, with sealed headers; null: it has none. */
  upstream: string | null;
  /** JSON of what sessions of the portal inherit; null: nothing. */
  portal: string | null;
  /** JSON of the policy that its new keys obey; null: none. */
  policy: string | null;
  /** JSON array of the resources for which its keys get access tokens; null: they get none. */
  resources: string | null;
  created_at: number;
  updated_at: number | null;
  deleted_at: number | null;
}

/** A key that somebody derived from a key, or from another derived key. It never changes; it can be ended. */
export interface DerivedKeyRow {
  id: string;
  workspace_id: string;
  /** The key or derived key that it was derived from. */
  parent_id: string;
  /** The key at the top. */
  top_id: string;
  /** The identity of that key, or that key itself if it has none: whose rate its creation counted for. */
  owner_id: string;
  /** How many levels it is below that key. */
  level: number;
  hash: string;
  start: string;
  /** JSON array of slugs; null: everything that its parent may. */
  permissions: string | null;
  /** JSON array of limits; null: none. */
  ratelimits: string | null;
  /** JSON array of CIDRs; null: every address that its parent allows. */
  allowed_ips: string | null;
  /** The most credits that it may spend, which are a balance with its id; null: as many as its parent. */
  credits_max: number | null;
  meta: string | null;
  /** Whether the holder of its parent made it. */
  by_holder: SqlBoolean;
  created_at: number;
  /** Never later than that of its parent, if that is a derived key. Of one that was ended: when. */
  expires_at: number;
  /** When it was ended; null: it was not. */
  deleted_at: number | null;
}

export interface IdentityRow {
  id: string;
  workspace_id: string;
  external_id: string;
  meta: string | null;
  /** The budget that verifications of all its keys spend from too; null: none. */
  budget_id: string | null;
  /** JSON array of the limits of concurrency that its keys share, `{name, limit}`; null: none. */
  concurrency: string | null;
  created_at: number;
  updated_at: number | null;
  deleted_at: number | null;
}

export interface PlanRow {
  id: string;
  workspace_id: string;
  /** Never changes. */
  name: string;
  /** The name in lower case, for searching. */
  name_folded: string;
  /** JSON array of its limits in the order of their names, each with the columns of `DirectoryLimit`. */
  ratelimits: string;
  /** JSON array of its limits of concurrency, `{name, limit}`; null: none. */
  concurrency: string | null;
  /** JSON of its credits, as `PlanCredits`; null: none. */
  credits: string | null;
  /** JSON of the budget that it gives to identities, as `PlanBudget`; null: none. A plan has credits or a budget. */
  budget: string | null;
  /** Increases with each change of the credits or of the budget. Null: it never had any. */
  credits_version: number | null;
  meta: string | null;
  /** Increases with each change. */
  version: number;
  created_at: number;
  updated_at: number | null;
}

/** The credits or the budget of a plan since a time, until the next version. Kept while a balance has an earlier one. */
export interface PlanCreditsRow {
  plan_id: string;
  workspace_id: string;
  version: number;
  since: number;
  /** JSON as in `plans`; null: none since then. */
  credits: string | null;
}

/** A budget that plans give to an identity. Its balance has its id as `pool_id`, keeps books, and names the plan. */
export interface PlanBudgetRow {
  /** As `planBudgetId` makes it of the identity and the unit. */
  id: string;
  workspace_id: string;
  identity_id: string;
  unit: string | null;
  created_at: number;
}

/** What plans have given to a pool of keys or to a budget of an identity, so that nothing is given twice. */
export interface PlanGrantRow {
  /** The id of the pool or of the budget. */
  pool_id: string;
  workspace_id: string;
  /** What was left when the pool lost the balance of its plan; null: it has it. */
  kept: number | null;
  /** Until when that was given; null: there is no next period. */
  granted_until: number | null;
  /** Until when the balance is not reset again; null: it may be. */
  reset_until: number | null;
}

/** What a plan is given to: a pool of keys, or an identity. */
export type PlanOwner = "key" | "identity";

/** The plan of a pool of keys or of an identity. Without a row it has none. */
export interface PlanAssignmentRow {
  /** The id of the pool, which rerolled keys share, or of the identity. */
  owner_id: string;
  workspace_id: string;
  owner: PlanOwner;
  /** If the plan does not exist, the keys or the identity are deleted. */
  plan_id: string;
}

/** What a spend does not change of a budget. Its balance has its id as `pool_id`. */
export interface BudgetRow {
  id: string;
  workspace_id: string;
  name: string;
  /** The name in lower case, for searching. */
  name_folded: string;
  /** The budget that its spends are charged to as well; null: it is a root. Never changes. */
  parent_id: string | null;
  /** What a credit is, as a label; null: not said. */
  unit: string | null;
  /** JSON array of the percentages at which it has an event, in ascending order; null: none. */
  thresholds: string | null;
  meta: string | null;
  created_at: number;
  updated_at: number | null;
}

/**
 * The credits of a pool of keys, or of a budget. Without a row a pool is unlimited. Narrow, because every spend rewrites the
 * row.
 *
 * Budgets keep books: granted = spent + held + remaining + lapsed. The columns of the books are null for pools of keys,
 * except `held` and `period`.
 */
export interface BalanceRow {
  /** The id of the pool, of the budget or of the slots. */
  pool_id: string;
  workspace_id: string;
  /** Below 0 only if it is watched. */
  remaining: number;
  refill_interval: RefillInterval | null;
  refill_amount: number | null;
  refill_day: number | null;
  refill_month: number | null;
  /** The name of a time zone; null: UTC. */
  refill_zone: string | null;
  refill_rollover: number | null;
  /** The first refill not yet applied; null without a refill. */
  refill_due_at: number | null;
  /** What a clock that ran ahead did to the schedule: see `withDueRefill`. */
  refill_mark: number | null;
  /**
   * Of a pool: the balance at which the event `credits.low` is due, besides 0. Of a budget: the balance at which its next
   * threshold is reached. Null: none.
   */
  low_at: number | null;
  granted: number | null;
  spent: number | null;
  /** What refills have replaced. */
  lapsed: number | null;
  /** Increases with each refill. Null: 0. */
  period: number | null;
  /** What was spent before that from which thresholds count: the last refill, or without one, when credits were last added. */
  spent_before: number | null;
  /** 1: it counts, and never denies. */
  watched: SqlBoolean | null;
  /** The plan that gave it; null: it is one of the keys, or of a budget that was created, or of slots. */
  plan_id: string | null;
  /** The version of the credits of the plan that it has. */
  plan_version: number | null;
  /** The credits of open holds. Null: 0. */
  held: number | null;
  /** No open hold ends earlier. Null: it has none. */
  next_expiry_at: number | null;
  /** Of slots: the pool or the identity whose limit they are for, and the name of the limit. */
  slots_of: string | null;
  slots_name: string | null;
}

/** Credits that a call has taken and that are settled when its cost is known. */
export interface HoldRow {
  id: string;
  workspace_id: string;
  key_id: string;
  api_id: string;
  /** What it takes from each of its balances. */
  cost: number;
  /**
   * JSON array of `{id, period}`: its balances, with the period in which each was charged. They only become fewer. With
   * `slot: true` it has a slot of the balance, and not its cost.
   */
  balances: string;
  on_expiry: OnExpiry;
  state: HoldState;
  /** What its end has charged; null while it is open. */
  charged: number | null;
  /** The largest of `lacks`; null while it is open. */
  uncovered: number | null;
  /** JSON array of `{balanceId, lack}`: how much of the charge a balance did not have; null: every one had all. */
  lacks: string | null;
  /** JSON of the receipts of the limits that were charged with it; null: none. */
  limits: string | null;
  /** The amounts that settled it, as JSON; null: it was not settled. */
  settlement: string | null;
  /** JSON of what the record of its settlement needs to name; null: nothing. */
  subject: string | null;
  created_at: number;
  expires_at: number;
  /** When it was last closed; null while it is open. */
  closed_at: number | null;
}

export interface KeyRow {
  id: string;
  workspace_id: string;
  api_id: string;
  identity_id: string | null;
  /** The budget that its verifications spend from too; null: none. */
  budget_id: string | null;
  /** JSON array of its limits of concurrency, `{name, limit}`; null: none. */
  concurrency: string | null;
  /** JSON array of CIDRs that may use the key, or null: every address that its API allows. */
  allowed_ips: string | null;
  /** Keys of one reroll chain share a pool: its balance and the counters of its limits. */
  pool_id: string;
  hash: string;
  hash_version: number;
  /** The beginning of the key string; empty until a key that was imported is first verified. */
  start: string;
  name: string | null;
  /** The name in lower case, for searching. */
  name_folded: string | null;
  meta: string | null;
  enabled: SqlBoolean;
  recoverable: SqlBoolean;
  expires_at: number | null;
  created_at: number;
  updated_at: number | null;
  deleted_at: number | null;
  /** Set if the key is found only by calls that name its migration. */
  migration_id: string | null;
  /** When the key was first reported as leaked. */
  leaked_at: number | null;
  /** Whether it is deleted some time after it expired: it was replaced, or its owner made it in the portal. */
  deleted_once_expired: SqlBoolean;
}

/** A source of imported keys. */
export interface KeyMigrationRow {
  id: string;
  workspace_id: string;
  /** The `migrationId` of the API. */
  name: string;
  /** The algorithm of its hashes. */
  algorithm: HashAlgorithm;
  /** The key of its HMACs, sealed under the workspace's data key; null for other algorithms. */
  pepper: string | null;
  created_at: number;
}

/** Last use. A separate row, so that an update does not rewrite the key. */
export interface KeyUsageRow {
  key_id: string;
  workspace_id: string;
  last_used_at: number;
}

/** A stored limit of a key or of an identity: exactly one of the two is set. */
export interface RatelimitRow {
  id: string;
  workspace_id: string;
  key_id: string | null;
  identity_id: string | null;
  name: string;
  limit: number;
  duration: number;
  mode: LimitMode;
  auto_apply: SqlBoolean;
  /** Whether it is counted and never denies. */
  shadow: SqlBoolean;
  created_at: number;
  updated_at: number | null;
}

/** A namespace of identifiers, created at first use. Names are unique among namespaces that are not deleted. */
export interface RatelimitNamespaceRow {
  id: string;
  workspace_id: string;
  name: string;
  /** The name in lower case, for searching. */
  name_folded: string;
  created_at: number;
  deleted_at: number | null;
}

/** A limit for some identifiers of a namespace that replaces the limit in the call. */
export interface RatelimitOverrideRow {
  id: string;
  workspace_id: string;
  namespace_id: string;
  /** An identifier, or a pattern in which `*` matches any characters. */
  identifier: string;
  limit: number;
  duration: number;
  /** Null: the mode of the call. */
  mode: LimitMode | null;
  /** Whether it is counted and never denies. Null: as the call says. */
  shadow: SqlBoolean | null;
  created_at: number;
  updated_at: number | null;
}

/** The tree of descriptors of a namespace. */
export interface RatelimitDescriptorsRow {
  namespace_id: string;
  workspace_id: string;
  /** The tree, as JSON text. */
  descriptors: string;
  /** Whether a call charges all of its descriptors or none. */
  atomic: SqlBoolean;
  /** Whether answers have dynamic metadata. */
  metadata: SqlBoolean;
  updated_at: number;
}

export interface PermissionRow {
  id: string;
  workspace_id: string;
  slug: string;
  /** The slug in lower case: slugs are unique without regard to case. */
  slug_folded: string;
  name: string;
  /** The name in lower case, for searching. */
  name_folded: string;
  description: string | null;
  /** The description in lower case, for searching. */
  description_folded: string | null;
  created_at: number;
}

export interface RoleRow {
  id: string;
  workspace_id: string;
  name: string;
  /** The name in lower case: names are unique without regard to case. */
  name_folded: string;
  description: string | null;
  /** The description in lower case, for searching. */
  description_folded: string | null;
  created_at: number;
}

/** The only row: the current master key of the vault. */
export interface VaultRow {
  id: 1;
  /** Fingerprint of the master key that wraps new data keys. */
  fingerprint: string;
}

/** A workspace's data key, sealed under a master key. */
export interface VaultDataKeyRow {
  workspace_id: string;
  /** Fingerprint of the master key that it is sealed under. */
  fingerprint: string;
  sealed: string;
  created_at: number;
}

/** A recoverable key's string, sealed under its workspace's data key and bound to key and workspace. */
export interface VaultSecretRow {
  key_id: string;
  workspace_id: string;
  sealed: string;
  created_at: number;
}

/** A key that signs the access tokens of a workspace. Its id is its thumbprint. */
export interface SigningKeyRow {
  id: string;
  workspace_id: string;
  algorithm: SigningAlgorithm;
  /** A JWK as JSON. */
  public_key: string;
  /** The private key, sealed under the data key of the workspace and bound to key and workspace. */
  sealed: string;
  /** It signs from then on, until the next one does. */
  active_from: number;
  created_at: number;
}

/** The algorithm of a signature of access tokens: RFC 7518, section 3.1. */
export type SigningAlgorithm = "RS256" | "ES256";

export interface AuditEventRow {
  id: string;
  workspace_id: string;
  occurred_at: number;
  /** A root key's id, `system` or `cli`. */
  actor: string;
  action: string;
  /** JSON array of the ids of the changed objects. */
  targets: string;
  /** JSON object with what changed; never a secret. */
  meta: string;
}

/** A change of state, or a moment that it led to, as `events.listEvents` and webhooks report it. */
export interface EventRow {
  /** Ascends in the order of commits among the events of one object, because its row is locked when a number is drawn. */
  number: Generated<number>;
  id: string;
  workspace_id: string;
  type: string;
  /** The version of the schema of `data`. */
  version: number;
  object_id: string;
  created_at: number;
  /** JSON object in the schema of the type. */
  data: string;
}

/** An endpoint that gets events of its workspace. */
export interface WebhookRow {
  id: string;
  workspace_id: string;
  name: string | null;
  url: string;
  /** JSON array of the types of the events that it gets; null: all. */
  event_types: string | null;
  /** JSON array of the ids of the APIs of whose objects it gets events; null: of all objects. */
  api_ids: string | null;
  enabled: SqlBoolean;
  disabled_at: number | null;
  disabled_reason: "requested" | "failing" | "gone" | null;
  /** The time of the first failed attempt after the last successful one. */
  failing_since: number | null;
  /** The number of its deliveries with the status `pending`. */
  pending: number;
  /** It gets events with higher numbers: those after its creation. */
  after_number: number;
  /** JSON array of the ranges of numbers of events that wait without deliveries; null: none do. */
  behind: string | null;
  /** Since when events wait without deliveries. */
  behind_since: number | null;
  /** When it last got a delivery to make. */
  handed_at: number | null;
  /** When it last accepted one. */
  delivered_at: number | null;
  /** Sealed under the data key of the workspace. */
  secret: string;
  /** The former secret, which signs messages too until `previous_until`. */
  previous_secret: string | null;
  previous_until: number | null;
  created_at: number;
  updated_at: number | null;
  deleted_at: number | null;
}

/** The delivery of one event to one webhook. */
export interface WebhookDeliveryRow {
  webhook_id: string;
  event_number: number;
  workspace_id: string;
  object_id: string;
  status: "pending" | "delivered" | "dead";
  attempts: number;
  /** The time of the last attempt, if all fail. */
  deadline: number;
  /** Null if it has ended, or waits for an earlier event of the same object. */
  next_attempt_at: number | null;
  created_at: number;
  completed_at: number | null;
  /** The end of the last attempt. */
  attempted_at: number | null;
  /** The status of the last answer; null if there was none. */
  answer_status: number | null;
  /** What was wrong at the last attempt, in one line. */
  error: string | null;
  /** The duration of the last attempt. */
  duration: number | null;
}

/** The outcome of a call with an Idempotency-Key. */
export interface IdempotencyRecordRow {
  sequence: Generated<number>;
  scope: string;
  workspace_id: string;
  fingerprint: string;
  outcome: string;
  key_id: string | null;
  created_at: number;
}

/** A change, which makes every node invalidate its cached records. */
export interface ChangeRow {
  sequence: Generated<number>;
  /** JSON array of directory tags. */
  tags: string;
  /** Whose records it concerns. Null: those of any workspace; programs of earlier releases write that. */
  workspace_id: string | null;
  created_at: number;
}

/** The only row: the process or group of processes that counts limits; see store/postgres/claim.ts. */
export interface ClaimRow {
  id: 1;
  holder: string;
  shared: SqlBoolean;
  lease_ms: number;
}

/** The state of one partition of the counters in a Redis Cluster, as nodes last saw it. */
export interface RedisPartitionRow {
  number: number;
  epoch: string;
  lost_at: number;
  seen_at: number;
}

/** The only row: the state of Redis as nodes last saw it. */
export interface RedisEpochRow {
  id: 1;
  epoch: string;
  lost_at: number;
  seen_at: number;
}

/** The only row: the move that the database takes part in; see store/move/. */
export interface MoveRow {
  id: 1;
  move_id: string;
  role: "source" | "target";
  /** The other database, without its password. */
  other: string;
  started_at: number;
  /** The source accepts no writes until then. */
  closed_until: number | null;
  ended_at: number | null;
}
