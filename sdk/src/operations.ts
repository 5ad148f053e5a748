// Written by `npm run generate` from the declarations of the operations.
import type { Args, List, MakeMethod, Result } from "./call.ts";
import type { Secret } from "./secret.ts";

/** The errors of the service. Each has a page at `/errors/<type>` of the service. */
export type ProblemType =
  | "application/invalid_input"
  | "authentication/malformed"
  | "user/bad_request/permissions_query_syntax_error"
  | "user/bad_request/hold_required"
  | "user/bad_request/request_body_unreadable"
  | "authentication/missing"
  | "authentication/key_not_found"
  | "authorization/insufficient_permissions"
  | "authorization/cross_origin_request"
  | "authorization/key_disabled"
  | "authorization/forbidden"
  | "authorization/workspace_disabled"
  | "application/not_found"
  | "data/key_not_found"
  | "data/api_not_found"
  | "data/root_key_not_found"
  | "data/webhook_not_found"
  | "data/webhook_delivery_not_found"
  | "data/workspace_not_found"
  | "data/role_not_found"
  | "data/permission_not_found"
  | "data/identity_not_found"
  | "data/ratelimit_namespace_not_found"
  | "data/budget_not_found"
  | "data/plan_not_found"
  | "data/hold_not_found"
  | "data/ratelimit_override_not_found"
  | "application/method_not_allowed"
  | "user/bad_request/request_timeout"
  | "data/key_not_deleted"
  | "data/identity_already_exists"
  | "data/permission_already_exists"
  | "data/hold_closed"
  | "data/budget_in_use"
  | "data/plan_in_use"
  | "data/plan_already_exists"
  | "data/role_already_exists"
  | "data/ratelimit_override_limit_reached"
  | "data/webhook_limit_reached"
  | "application/precondition_failed"
  | "application/maximum_reached"
  | "application/misdirected_request"
  | "application/idempotency_mismatch"
  | "application/idempotency_in_progress"
  | "application/protected_resource"
  | "user/bad_request/request_body_too_large"
  | "application/unsupported_content_encoding"
  | "application/expectation_failed"
  | "application/workspace_busy"
  | "application/workspace_quota_exceeded"
  | "application/too_many_counters"
  | "user/too_many_requests/workspace_rate_limited"
  | "application/request_headers_too_large"
  | "application/unexpected_error"
  | "application/lookups_exhausted"
  | "application/service_unavailable";

/** A namespace of keys. `id` and `apiId` are equal. */
export type Api = {
  id: string;
  apiId: string;
  name: string;
  /** Default prefix of new keys. */
  prefix?: string;
  /** Default number of random bytes in new keys. */
  byteLength?: number;
  /** Present and true if the API cannot be deleted. */
  deleteProtection?: boolean;
  /** Addresses and CIDRs that may use its keys. Absent: every address. */
  allowedIps?: string[];
  /** What happens to its keys that are reported as leaked. Absent: `mark`. */
  leakAction?: "mark" | "disable";
  /** The days before the expiry of a key at which it has an event. Absent: 7 and 1. */
  expiryNotices?: number[];
  /** The endpoint that is asked about unknown keys. Absent: none. */
  upstream?: {
    url: string;
    /** The names of the headers. */
    headers: string[];
    /** Milliseconds. */
    timeout: number;
    onOutage: "unavailable" | "not_found";
  };
  /** Present and true if holders of its keys may read them with `keys.getOwnKey`. */
  ownKeyAccess?: boolean;
  /** The resources for which its keys get access tokens. Absent: they get none. */
  resources?: string[];
  /** Present and true if holders of its keys may derive keys from them with `keys.deriveOwnKey`. */
  ownKeyDerivation?: boolean;
  /** What new keys must have. Absent: nothing. */
  policy?: {
    expiry?: {
      /** Milliseconds. */
      default?: number;
      /** Milliseconds. */
      max?: number;
    };
    limitsRequired?: boolean;
    prefixFixed?: boolean;
  };
  /** What sessions of the portal inherit unless they say otherwise. Absent: nothing. */
  portal?: {
    actions?: ("list" | "create" | "reroll" | "rename" | "delete" | "usage" | "left")[];
    page?: {
      name?: string;
      logoUrl?: string;
      color?: string;
      language?: "en" | "de" | "fr" | "es" | "pt" | "ja" | "ar";
      returnUrl?: string;
    };
  };
};

/** A key. Fields without a value are omitted. */
export type Key = {
  keyId: string;
  apiId: string;
  /** The readable beginning of the key string. Empty for an imported key until its first verification. */
  start: string;
  enabled: boolean;
  /** Unix time in milliseconds. */
  createdAt: number;
  updatedAt?: number;
  /** Time of a recent verification, Unix time in milliseconds. */
  lastUsedAt?: number;
  /** When the key was first reported as leaked, Unix time in milliseconds. Absent: never. */
  leakedAt?: number;
  /**
   * When the key was deleted, Unix time in milliseconds. Only `keys.getKey` and `apis.listKeys` with `deleted` return
   * such keys.
   */
  deletedAt?: number;
  name?: string;
  meta?: { [name: string]: unknown };
  /** Unix time in milliseconds. Absent: never. */
  expires?: number;
  /** Direct permissions and those of its roles, without duplicates. */
  permissions?: string[];
  roles?: string[];
  /** Absent: unlimited. */
  credits?: Credits;
  /** The budget that its verifications spend from too. */
  budgetId?: string;
  /** The name of its plan: see `plans.getPlan` for what that gives it. */
  plan?: string;
  identity?: Identity;
  /** The key's own limits. */
  ratelimits?: Ratelimit[];
  /** How many calls of the key may run at once. Absent: any number. */
  concurrency?: ConcurrencyLimit[];
  /** Addresses and CIDRs that may use it. Absent: every address that its API allows. */
  allowedIps?: string[];
  /** The key string. Present if the key is recoverable and `decrypt` is true. */
  plaintext?: Secret;
};

/** A balance of credits. */
export type Credits = {
  remaining: number;
  refill?: {
    interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
    amount: number;
    refillDay?: number;
    refillMonth?: number;
    timeZone?: string;
    rollover?: number;
  };
};

/** An owner of keys, such as a user or an organization. */
export type Identity = {
  id: string;
  /** Your own identifier. */
  externalId: string;
  meta: { [name: string]: unknown };
  /** Limits that all keys of the identity share. */
  ratelimits: Ratelimit[];
  /** How many calls of all its keys together may run at once. Absent: any number. */
  concurrency?: ConcurrencyLimit[];
  /** The budget that verifications of all its keys spend from too. */
  budgetId?: string;
  /** The name of its plan, whose limits and budget all its keys share. */
  plan?: string;
  /** Only of `identities.getIdentity`: what is left of the budget that its plan gives it. */
  budget?: {
    remaining: number;
    refill?: {
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      amount: number;
      refillDay?: number;
      refillMonth?: number;
      timeZone?: string;
      rollover?: number;
      /** When the next refill is due, Unix time in milliseconds. */
      nextAt: number;
    };
    budgetId: string;
    held: number;
  };
};

/** A limit of a key or of an identity. */
export type Ratelimit = {
  id: string;
  name: string;
  limit: number;
  /** Length of the window in milliseconds. */
  duration: number;
  /** Present if the limit is strict. */
  mode?: "strict";
  autoApply: boolean;
  /** Present if the limit is in shadow mode: it never denies. */
  shadow?: true;
};

/** How many calls of a key, or of the keys of an identity, may run at once. */
export type ConcurrencyLimit = {
  name: string;
  limit: number;
  /** How many holds are open. `keys.getKey` and `identities.getIdentity` return it. */
  inUse?: number;
};

/** A permission that keys can have directly or through a role. */
export type Permission = {
  id: string;
  name: string;
  /** The name that verifications use. */
  slug: string;
  description?: string;
};

/** A named set of permissions. Fields without a value are omitted. */
export type Role = {
  id: string;
  name: string;
  description?: string;
  /** The permissions of the role, sorted by slug. */
  permissions?: Permission[];
};

/** A key that was derived from another one. */
export type DerivedKey = {
  keyId: string;
  /** The key, or the derived key, that it was derived from. */
  parentKeyId: string;
  /** How many levels it is below the key at the top: 1 to 3. */
  level: number;
  /** The readable beginning of the key string. */
  start: string;
  /** Unix time in milliseconds. */
  createdAt: number;
  /** When it ends, unless one of its parents ends before. Unix time in milliseconds. */
  expires: number;
  /** Present and true if the holder of its parent derived it. */
  byHolder?: boolean;
  /** It has those permissions of its parent that are also here. Absent: all of them. */
  permissions?: string[];
  /** Limits besides those of its parent. */
  ratelimits?: {
      name: string;
      limit: number;
      duration: number;
      /** Present if the limit is strict. */
      mode?: "strict";
    }[];
  /** A bound besides the credits and budgets of its parent. Absent: none. */
  credits?: {
    max: number;
    /** What it may still spend. */
    remaining: number;
  };
  /** Addresses and CIDRs that may use it. Absent: those of its parent. */
  allowedIps?: string[];
  meta?: { [name: string]: unknown };
};

/** Credits that many keys share. Fields without a value are omitted. */
export type Budget = {
  budgetId: string;
  name: string;
  /** The name of the plan that gives it to an identity. Absent: it was created. */
  plan?: string;
  /** The identity that has it from its plan. */
  identity?: {
    id: string;
    externalId: string;
  };
  /** The budget that its spends are charged to as well. */
  parentId?: string;
  unit?: string;
  /**
   * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
   * below 0.
   */
  onEmpty: "deny" | "allow";
  /** Its credits. Below 0 only with `onEmpty: "allow"`. */
  remaining: number;
  /** What open holds have taken from it. */
  held: number;
  refill?: {
    interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
    amount: number;
    refillDay?: number;
    refillMonth?: number;
    timeZone?: string;
    rollover?: number;
  };
  /** What was spent since the last refill; without a refill, since credits were last added. */
  spent: number;
  /**
   * Since its creation: `granted` = `spent` + `held` + `remaining` + `lapsed`. They begin again with the present
   * period when `granted` exceeds 4 × 10^15.
   */
  totals: {
    granted: number;
    spent: number;
    /** What refills have replaced, and what holds gave back after them. */
    lapsed: number;
  };
  /** In ascending order. */
  thresholds: number[];
  meta?: { [name: string]: unknown };
  /** Unix time in milliseconds. */
  createdAt: number;
  updatedAt?: number;
};

/** Credits that a call holds until its cost is known. */
export type Hold = {
  holdId: string;
  keyId: string;
  apiId: string;
  /** `open` becomes one of the others. Of these, only `expired` becomes `settled`: by a late settlement. */
  state: "open" | "settled" | "released" | "expired";
  /** The credits that it takes from each balance until it ends. */
  credits: number;
  /**
   * What happens to the credits if nobody settles or releases the hold in time. `release`: they are given back.
   * `charge`: they are spent.
   */
  onExpiry: "release" | "charge";
  /** Unix time in milliseconds. */
  createdAt: number;
  /** When it expires, or would have expired. */
  expiresAt: number;
  /** When it was settled or released, or its expiry was noticed. */
  closedAt?: number;
  /** The credits that its end charged. Absent while it is open. */
  charged?: number;
  /** What its settlement asked for besides. Absent while it is open. */
  uncovered?: number;
};

/** What many keys and identities get from one place. Fields without a value are omitted. */
export type Plan = {
  planId: string;
  name: string;
  /** In the order of their names. */
  ratelimits: Ratelimit[];
  concurrency?: ConcurrencyLimit[];
  credits?: {
    amount: number;
    refill?: {
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      refillDay?: number;
      refillMonth?: number;
      timeZone?: string;
      rollover?: number;
    };
  };
  budget?: {
    amount: number;
    refill?: {
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      refillDay?: number;
      refillMonth?: number;
      timeZone?: string;
      rollover?: number;
    };
    /**
     * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
     * below 0.
     */
    onEmpty: "deny" | "allow";
    /** In ascending order. */
    thresholds: number[];
    unit?: string;
  };
  /** Without those of its roles. */
  permissions: string[];
  roles: string[];
  meta?: { [name: string]: unknown };
  /** 1 for a new plan. Each change adds 1. */
  version: number;
  /** Unix time in milliseconds. */
  createdAt: number;
  updatedAt?: number;
};

/** What a change of a plan would do. */
export type PlanChange = {
  field: "ratelimits" | "concurrency" | "credits" | "budget" | "permissions" | "roles";
  /** That of the limit. */
  name?: string;
  change: "added" | "removed" | "changed";
  /** Of a limit, of credits or of a budget, unless it is added. */
  before?: {
    limit?: number;
    duration?: number;
    /** Present if the limit is strict. */
    mode?: "strict";
    autoApply?: boolean;
    /** Present if the limit is in shadow mode: it never denies. */
    shadow?: true;
    amount?: number;
    refill?: {
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      refillDay?: number;
      refillMonth?: number;
      timeZone?: string;
      rollover?: number;
    };
    /**
     * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
     * below 0.
     */
    onEmpty?: "deny" | "allow";
    thresholds?: number[];
    unit?: string;
  };
  /** Of a limit, of credits or of a budget, unless it is removed. */
  after?: {
    limit?: number;
    duration?: number;
    /** Present if the limit is strict. */
    mode?: "strict";
    autoApply?: boolean;
    /** Present if the limit is in shadow mode: it never denies. */
    shadow?: true;
    amount?: number;
    refill?: {
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      refillDay?: number;
      refillMonth?: number;
      timeZone?: string;
      rollover?: number;
    };
    /**
     * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
     * below 0.
     */
    onEmpty?: "deny" | "allow";
    thresholds?: number[];
    unit?: string;
  };
  /** Of permissions and roles: those that keys get. */
  added?: string[];
  /** Those that keys lose, unless they have them otherwise. */
  removed?: string[];
  /** Keys that get the change. */
  keys: number;
  /** Keys that have a limit of this name or credits themselves, which stay. */
  keysKeeping: number;
  /** Identities that get the change. Permissions and roles are those of keys only. */
  identities: number;
  /** Identities that have a limit of this name or a budget themselves, which stay. */
  identitiesKeeping: number;
  /** Whether what was counted so far no longer counts: the `duration` or `mode` differs. */
  startsAtZero: boolean;
};

/** A limit that replaces the limit of calls for an identifier or a pattern. */
export type Override = {
  overrideId: string;
  /** Name of the namespace. */
  namespace: string;
  /** An identifier, or a pattern. */
  identifier: string;
  limit: number;
  /** Length of the window in milliseconds. */
  duration: number;
  /** How the limit counts. Omitted: as the call says. */
  mode?: "standard" | "strict";
  /** Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says. */
  shadow?: boolean;
};

/** A session in which an owner of keys manages them. */
export type PortalSession = {
  sessionId: string;
  /** The root key that created it. */
  rootKeyId: string;
  apiId: string;
  identityId: string;
  externalId: string;
  actions: ("list" | "create" | "reroll" | "rename" | "delete" | "usage" | "left")[];
  /** Unix time in milliseconds. */
  createdAt: number;
  /** When it ends. */
  expiresAt: number;
};

/** A root key, which authenticates a program to the service. */
export type RootKey = {
  rootKeyId: string;
  name: string;
  /** The readable beginning of the root key. Empty for the root key of the service's configuration. */
  start: string;
  permissions: string[];
  enabled: boolean;
  /** `environment`: the root key of the service's configuration. */
  source: "issued" | "environment";
  /** Unix time in milliseconds. */
  createdAt: number;
  updatedAt?: number;
  /** Time of a recent call, within about a minute. Absent: never used. */
  lastUsedAt?: number;
  /** Unix time in milliseconds. Absent: never. */
  expires?: number;
  /** What happens if it is reported as leaked. Absent: `mark`. */
  leakAction?: "mark" | "disable";
  /** When it was first reported as leaked, as Unix time in milliseconds. Absent: never. */
  leakedAt?: number;
  /** The id of the root key that created it. Absent: the command line, the configuration, or unknown. */
  createdBy?: string;
};

/** A session of the dashboard, which stands for a root key. */
export type Session = {
  sessionId: string;
  rootKeyId: string;
  /** The address that signed in. */
  address: string;
  /** The browser that signed in, as it names itself. */
  userAgent: string;
  /** Unix time in milliseconds. */
  createdAt: number;
  /** Time of a recent call, within about a minute. */
  lastUsedAt: number;
  /** When the session ends if it is not used again. */
  expiresAt: number;
};

/** The resources of one tenant, isolated from all others. */
export type Workspace = {
  workspaceId: string;
  name: string;
  /** Whether its root keys are accepted and its keys can be valid. */
  enabled: boolean;
  /** Whether it is the default workspace, which manages the others. */
  default: boolean;
  /** Absent: unlimited. */
  requestsPerMinute?: number;
  /** Unix time in milliseconds. */
  createdAt: number;
  updatedAt?: number;
};

/** One change in the workspace: actor, operation, resources and time. */
export type AuditEvent = {
  id: string;
  /** Unix time in milliseconds. */
  occurredAt: number;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** The operation, such as `keys.createKey`. */
  action: string;
  /** Ids of the affected resources. */
  targets: string[];
  /**
   * What changed. Never contains a secret. Of an update, `before` and `after` have the former and the new values of
   * the members that differ; a value of more than 1,000 characters of JSON is its `beginning` with its `length`. Of
   * `keys.updateCredits`, they are balances. Of `apis.updateKeys` and `apis.deleteKeys`, `change` is what each key was
   * to get, and `changes` what each of the `keys` that changed got, its beginning beyond 200 characters.
   */
  meta: { [name: string]: unknown };
};

/** A change of state, or a moment that it led to. */
export type Event = {
  id: string;
  type: "key.created" | "key.updated" | "key.disabled" | "key.enabled" | "key.deleted" | "key.restored" | "key.rerolled" | "key.derived" | "key.expiring" | "key.expired" | "key.first_used" | "key.unused" | "keys.imported" | "credits.low" | "credits.refilled" | "plan.created" | "plan.updated" | "plan.deleted" | "budget.created" | "budget.updated" | "budget.deleted" | "budget.refilled" | "budget.threshold_reached" | "hold.expired" | "hold.uncovered" | "limit.exceeded" | "root_key.created" | "root_key.updated" | "root_key.disabled" | "root_key.enabled" | "root_key.deleted" | "root_key.leaked" | "root_key.rerolled" | "identity.created" | "identity.updated" | "identity.deleted" | "role.created" | "role.updated" | "role.deleted" | "permission.created" | "permission.updated" | "permission.deleted" | "api.created" | "api.updated" | "api.deleted" | "namespace.created" | "namespace.deleted" | "descriptors.set" | "override.set" | "override.deleted" | "workspace.created" | "workspace.updated" | "quota.near" | "webhook.created" | "webhook.updated" | "webhook.disabled" | "webhook.enabled" | "webhook.deleted" | "webhook.test" | "leak.reported" | "auth.failures";
  /** The version of the schema of `data`, among those of the type. */
  version: number;
  /** Unix time in milliseconds. */
  createdAt: number;
  /** What the event is about, in the schema of its type: see the webhooks of this document. */
  data: { [name: string]: unknown };
};

/** An endpoint to which events of the workspace are sent. */
export type Webhook = {
  webhookId: string;
  name?: string;
  /** The URL to which events are sent. */
  endpoint: string;
  /** The types of events that it gets. Absent: all. */
  eventTypes?: string[];
  /** The APIs of which it gets events. Absent: all events. */
  apiIds?: string[];
  enabled: boolean;
  /** Since when and why it is disabled. Absent: it is enabled. */
  disabled?: {
    /** Unix time in milliseconds. */
    at: number;
    /**
     * `requested`: a call disabled it. `failing`: the service gave a delivery up, and none had succeeded for two days.
     * `gone`: the endpoint answered 410.
     */
    reason: "requested" | "failing" | "gone";
  };
  /** The first failed attempt since the last successful one. Absent: the last attempt succeeded. */
  failingSince?: number;
  /** Deliveries that wait for their first or next attempt. */
  pending: number;
  /**
   * Since when further events wait without a delivery, because too many deliveries wait. They get one as these end.
   * Absent: every event has its delivery.
   */
  behindSince?: number;
  /** Deliveries that were given up, and can be delivered again. At most 1,000 are counted. */
  dead: number;
  /** When the newest event that it has was delivered, as Unix time in milliseconds. Absent: it has none. */
  lastDeliveredAt?: number;
  /** Until when messages are signed with the former secret too. Absent: they are not. */
  previousSecretExpires?: number;
  /** Unix time in milliseconds. */
  createdAt: number;
  updatedAt?: number;
};

/** The delivery of one event to one webhook. */
export type WebhookDelivery = {
  /** Absent: the event is older than the retention of events. */
  eventId?: string;
  /** The type of the event. */
  type?: string;
  /** The object of the event. Its events are delivered in their order. */
  objectId: string;
  /**
   * `pending`: it waits for its first or next attempt. `delivered`: the endpoint has it. `dead`: it was given up, and
   * can be delivered again.
   */
  status: "pending" | "delivered" | "dead";
  /** Attempts that were made, since the last call of `webhooks.redeliver` if there was one. */
  attempts: number;
  /** Unix time in milliseconds. */
  createdAt: number;
  /** When it is attempted. Absent if it is not pending, or waits for an earlier event of its object. */
  nextAttemptAt?: number;
  /** When it was delivered or given up. */
  completedAt?: number;
  lastAttempt?: {
    /** When it ended, as Unix time in milliseconds. */
    at: number;
    /** In milliseconds. */
    duration: number;
    /** The status of the answer. Absent: there was none. */
    status?: number;
    /** What was wrong. Absent: nothing. */
    error?: string;
  };
  /** Why it was given up without an attempt. */
  error?: string;
};

/** A verification or a rate limit decision in the log. */
export type LoggedDecision = {
  id: string;
  /** Unix time in milliseconds. */
  at: number;
  kind: "verification" | "ratelimit";
  /** The code of the verification; of a rate limit, `PASSED` or `DENIED`. */
  code: "VALID" | "NOT_FOUND" | "FORBIDDEN" | "INSUFFICIENT_PERMISSIONS" | "USAGE_EXCEEDED" | "RATE_LIMITED" | "DISABLED" | "EXPIRED" | "PASSED" | "DENIED";
  /** `meta.requestId` of the answer. */
  requestId: string;
  /** Time that the decision took, in microseconds. */
  latencyUs: number;
  /** Of a verification: the key. Absent if it does not exist, as are its API and identity. */
  keyId?: string;
  /** Of a verification: the API of the key. */
  apiId?: string;
  /** Of a verification: the identity of the key. */
  identityId?: string;
  /** Of a rate limit: the namespace. */
  namespaceId?: string;
  /** Of a rate limit: the identifier. Of an address it is the block, as in `network`. */
  identifier?: string;
  /** The limit that decided. Absent for a verification that no limit rejected. */
  limit?: {
    /** Of a verification: the name of the limit. */
    name?: string;
    /** Of a rate limit: its limit, after overrides. */
    limit?: number;
    /** Of a rate limit: its window in milliseconds, after overrides. */
    duration?: number;
  };
  /** What the call asked for: credits of a verification, the cost of a rate limit. */
  cost: number;
  /** Of a verification: the credits that it spent. */
  creditsSpent?: number;
  /** Of a verification: its tags. */
  tags?: string[];
  /**
   * The block of the address that the decision was about: 24 bits of an IPv4 address, 48 of an IPv6 address. The log
   * has no full address.
   */
  network?: string;
  /**
   * Refusals before this one that are not in the log: of the same key or namespace, with the same code, in the same
   * minute. Absent: none.
   */
  leftOut?: number;
  /** The same of other keys and namespaces of the workspace, when too many had refusals. Absent: none. */
  leftOutOfOthers?: number;
};

/** An object that a search found. */
export type SearchResult = {
  kind: "key" | "identity" | "api" | "budget" | "namespace" | "webhook" | "role" | "permission" | "rootKey";
  id: string;
  /** Its name; of an identity the external id, of a permission the slug, of a webhook its name or URL. */
  name?: string;
  /** Whether the query is its id, its whole name or its key string. */
  isExact: boolean;
  /** Of a key: its API. */
  apiId?: string;
  /** Of a key: the beginning of the key string. */
  start?: string;
  /** Of a key: the external id of its identity. */
  externalId?: string;
  /** Unix time in milliseconds. */
  createdAt: number;
};

/** The input of `apis.countKeys`. */
export type CountKeysInput = {
  /** Identifier of the API. */
  apiId: string;
  /** Only entries whose name, `keyId`, `start` or `externalId` contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
  /** Only keys of the identity with this external id. */
  externalId?: string | undefined;
  /** Only keys with this budget; not those that have it by their identity. */
  budgetId?: string | undefined;
  /** Only keys with the plan of this name or id; not those that have it by their identity. */
  plan?: string | undefined;
  /** Only keys in this state. A disabled key that has expired counts as disabled. */
  state?: "active" | "disabled" | "expired" | undefined;
  /** Only keys that expire before this Unix time in milliseconds, including those that have expired. */
  expiresBefore?: number | undefined;
  /** Only keys whose string begins with this prefix and an underscore. */
  prefix?: string | undefined;
  /** Only keys with the role of this name, regardless of case. */
  role?: string | undefined;
  /**
   * Only keys that were deleted without `permanent` and that `keys.restoreKey` can restore, instead of those that are
   * not deleted. Default: false.
   */
  deleted?: boolean | undefined;
};

/** The `data` of an answer of `apis.countKeys`. */
export type CountKeysOutput = {
  count: number;
  /** Whether all keys were examined. If not, there may be more. */
  isComplete: boolean;
};

/** The input of `apis.createApi`. */
export type CreateApiInput = {
  /** A label for you. End users never see it. */
  name: string;
  /**
   * Whether holders of its keys may read what is left of them, without a root key: see `keys.getOwnKey`. Default:
   * false.
   */
  ownKeyAccess?: boolean | undefined;
  /**
   * Whether holders of keys may derive keys from them with `keys.deriveOwnKey`, without a root key: short-lived keys
   * that can do no more than their own. Default: false.
   */
  ownKeyDerivation?: boolean | undefined;
  /** What new keys must have. It is set as a whole. Null: nothing. */
  policy?: {
    expiry?: {
      /** The life of a new key that is created without `expires`, in milliseconds. */
      default?: number | undefined;
      /**
       * The longest life of a key, in milliseconds from its creation. Without `default`, each key must be created with
       * `expires`.
       */
      max?: number | undefined;
    } | undefined;
    /**
     * Whether each key needs a limit: in `ratelimits` or `concurrency` of the key, of its plan, of its identity, or of
     * the plan of that. Credits, budgets and limits in shadow mode are none.
     */
    limitsRequired?: boolean | undefined;
    /** Whether each key has the `prefix` of the API, and none if the API has none. */
    prefixFixed?: boolean | undefined;
  } | undefined;
};

/** The `data` of an answer of `apis.createApi`. */
export type CreateApiOutput = {
  apiId: string;
};

/** The input of `apis.deleteApi`. */
export type DeleteApiInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
};

/** The `data` of an answer of `apis.deleteApi`. */
export type DeleteApiOutput = Record<string, never>;

/** The input of `apis.getApi`. */
export type GetApiInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
};

/** The `data` of an answer of `apis.getApi`. */
export type GetApiOutput = Api;

/** The input of `apis.getLeakKit`. */
export type GetLeakKitInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
  /** The prefixes that your calls of `keys.createKey` set. Omitted: the default prefix of the API. */
  prefixes?: readonly string[] | undefined;
};

/** The `data` of an answer of `apis.getLeakKit`. */
export type GetLeakKitOutput = {
  apiId: string;
  kits: {
      prefix: string;
      /** Matches every key with the prefix. For RE2, Hyperscan, PCRE and JavaScript; needs linear time. */
      regex: string;
      /** A rule of gitleaks, in TOML. */
      gitleaks: string;
      /** A custom detector of TruffleHog with the address that verifies, in YAML. */
      trufflehog: string;
      /** What GitHub's secret scanning partner program needs. */
      github: {
        /** A name of the secret type. */
        type: string;
        regex: string;
        /** Where GitHub sends its reports. */
        endpoint: string;
        /** A text that matches. It is no key. */
        sample: string;
      };
    }[];
};

/** The input of `apis.listApis`. */
export type ListApisInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose names and ids contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
};

/** The `data` of an answer of `apis.listApis`. */
export type ListApisOutput = Api[];

/** The input of `apis.listKeys`. */
export type ListKeysInput = {
  /** Identifier of the API. */
  apiId: string;
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose name, `keyId`, `start` or `externalId` contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
  /** Only keys of the identity with this external id. */
  externalId?: string | undefined;
  /** Only keys with this budget; not those that have it by their identity. */
  budgetId?: string | undefined;
  /** Only keys with the plan of this name or id; not those that have it by their identity. */
  plan?: string | undefined;
  /** Only keys in this state. A disabled key that has expired counts as disabled. */
  state?: "active" | "disabled" | "expired" | undefined;
  /** Only keys that expire before this Unix time in milliseconds, including those that have expired. */
  expiresBefore?: number | undefined;
  /** Only keys whose string begins with this prefix and an underscore. */
  prefix?: string | undefined;
  /** Only keys with the role of this name, regardless of case. */
  role?: string | undefined;
  /**
   * Only keys that were deleted without `permanent` and that `keys.restoreKey` can restore, instead of those that are
   * not deleted. Default: false.
   */
  deleted?: boolean | undefined;
  /**
   * What the keys are in order by. Names are compared regardless of case. Any order but `createdAt` needs an API with
   * at most 100,000 keys, or an `externalId` or `budgetId` with at most as many. Default: "createdAt".
   */
  orderBy?: "createdAt" | "name" | "expires" | "lastUsedAt" | undefined;
  /** `desc`: the newest, the last name or the latest time first. Default: "asc". */
  order?: "asc" | "desc" | undefined;
  /** Whether to return the `plaintext` of recoverable keys. Default: false. */
  decrypt?: boolean | undefined;
  /** Accepted for compatibility, without effect: the list is always current. Default: false. */
  revalidateKeysCache?: boolean | undefined;
};

/** The `data` of an answer of `apis.listKeys`. */
export type ListKeysOutput = Key[];

/** The input of `apis.updateApi`. */
export type UpdateApiInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
  /** A label for you. End users never see it. */
  name?: string | undefined;
  /** Default prefix of new keys; an underscore follows it. */
  prefix?: string | null | undefined;
  /** Default number of random bytes in new keys. Null: 16. */
  byteLength?: number | null | undefined;
  /** Whether to prevent `apis.deleteApi`. */
  deleteProtection?: boolean | undefined;
  /** IPv4 and IPv6 addresses and CIDRs that may use its keys. Null: every address. */
  allowedIps?: readonly string[] | null | undefined;
  /**
   * What happens to a key that is reported as leaked. `mark`, the default: it gets `leakedAt` and still verifies.
   * `disable`: it is disabled too.
   */
  leakAction?: "mark" | "disable" | undefined;
  /** The days before the expiry of a key at which it has an event `key.expiring`. Null: 7 and 1. */
  expiryNotices?: readonly (1 | 3 | 7 | 14 | 30 | 60 | 90)[] | null | undefined;
  /**
   * An HTTP endpoint of another system that is asked once about each key that is unknown here. A key that it knows is
   * created here. Needs `create_key` too. Null: none.
   */
  upstream?: {
    /** The endpoint. `http://` and private addresses need `LATCHKEY_UPSTREAM_ALLOW_PRIVATE=yes`. */
    url: string;
    /**
     * Headers of each question, such as `Authorization`. Their values are stored encrypted and never returned.
     * Default: [].
     */
    headers?: readonly {
        name: string;
        value: string;
      }[] | undefined;
    /** Milliseconds that a verification waits for an answer. Default: 2000. */
    timeout?: number | undefined;
    /**
     * The answer to a verification whose question gets none: status 503, or NOT_FOUND. Known keys are not affected.
     * Default: "unavailable".
     */
    onOutage?: "unavailable" | "not_found" | undefined;
  } | null | undefined;
  /** Whether holders of its keys may read what is left of them, without a root key: see `keys.getOwnKey`. */
  ownKeyAccess?: boolean | undefined;
  /**
   * The absolute URIs for which its keys get access tokens at `/oauth/token`, if the service issues any: each is an
   * audience.
   */
  resources?: readonly string[] | null | undefined;
  /**
   * Whether holders of keys may derive keys from them with `keys.deriveOwnKey`, without a root key: short-lived keys
   * that can do no more than their own.
   */
  ownKeyDerivation?: boolean | undefined;
  /** What new keys must have. It is set as a whole. Null: nothing. */
  policy?: {
    expiry?: {
      /** The life of a new key that is created without `expires`, in milliseconds. */
      default?: number | undefined;
      /**
       * The longest life of a key, in milliseconds from its creation. Without `default`, each key must be created with
       * `expires`.
       */
      max?: number | undefined;
    } | undefined;
    /**
     * Whether each key needs a limit: in `ratelimits` or `concurrency` of the key, of its plan, of its identity, or of
     * the plan of that. Credits, budgets and limits in shadow mode are none.
     */
    limitsRequired?: boolean | undefined;
    /** Whether each key has the `prefix` of the API, and none if the API has none. */
    prefixFixed?: boolean | undefined;
  } | null | undefined;
  /**
   * What sessions of the portal inherit unless they say otherwise. It is set as a whole. The root key needs the
   * permission of each action. Null: nothing.
   */
  portal?: {
    /**
     * What the holder of the session may do with the keys: `list` them, `create` new ones, `reroll`, `rename` and
     * `delete` them, see their `usage`, and see what is `left` of their credits and budgets. The root key needs the
     * permission for each action.
     */
    actions?: readonly ("list" | "create" | "reroll" | "rename" | "delete" | "usage" | "left")[] | undefined;
    /** How the page looks. */
    page?: {
      /** Your name, in the title. */
      name?: string | undefined;
      /** Your logo: an https address that every browser can load. It is shown 32 pixels high. */
      logoUrl?: string | undefined;
      /** The color of buttons and links, such as `#246bce`. It is made lighter or darker where it could not be read. */
      color?: string | undefined;
      /** The language of the page. Omitted: the first of the browser's languages that is available, or English. */
      language?: "en" | "de" | "fr" | "es" | "pt" | "ja" | "ar" | undefined;
      /** Where the link back leads. Omitted: there is none. */
      returnUrl?: string | undefined;
    } | undefined;
  } | null | undefined;
};

/** The `data` of an answer of `apis.updateApi`. */
export type UpdateApiOutput = Record<string, never>;

/** The input of `apis.updateKeys`. */
export type UpdateKeysInput = {
  /** Identifier of the API. */
  apiId: string;
  /** Only entries whose name, `keyId`, `start` or `externalId` contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
  /** Only keys of the identity with this external id. */
  externalId?: string | undefined;
  /** Only keys with this budget; not those that have it by their identity. */
  budgetId?: string | undefined;
  /** Only keys with the plan of this name or id; not those that have it by their identity. */
  plan?: string | undefined;
  /** Only keys in this state. A disabled key that has expired counts as disabled. */
  state?: "active" | "disabled" | "expired" | undefined;
  /** Only keys that expire before this Unix time in milliseconds, including those that have expired. */
  expiresBefore?: number | undefined;
  /** Only keys whose string begins with this prefix and an underscore. */
  prefix?: string | undefined;
  /** Only keys with the role of this name, regardless of case. */
  role?: string | undefined;
  /** Maximum number of keys that one call processes. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  enabled?: boolean | undefined;
  /** Null: the keys never expire. */
  expires?: number | null | undefined;
  /** IPv4 and IPv6 addresses and CIDRs that may use the keys. Null: every address that the API allows. */
  allowedIps?: readonly string[] | null | undefined;
  /** The name of their plan, or its id. Null: none. Needs `assign_plan` on the former plans and on the new one. */
  setPlan?: string | null | undefined;
  /** Names of existing roles. */
  addRoles?: readonly string[] | undefined;
  /** Slugs. New ones are created. */
  addPermissions?: readonly string[] | undefined;
  /**
   * Added to each balance: keys that share one after a reroll get it once, with the newest of them that matches. Keys
   * with unlimited credits fail.
   */
  addCredits?: number | undefined;
};

/** The `data` of an answer of `apis.updateKeys`. */
export type UpdateKeysOutput = {
  /** Number of keys that changed. Those that had the value, the roles or the permissions are not counted. */
  changed: number;
  /** Keys that could not be changed. The others were. */
  failed: {
      keyId: string;
      detail: string;
    }[];
  /** Continues with the next keys. Absent: every key that matches was processed. */
  cursor?: string;
};

/** The input of `apis.deleteKeys`. */
export type DeleteKeysInput = {
  /** Identifier of the API. */
  apiId: string;
  /** Only entries whose name, `keyId`, `start` or `externalId` contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
  /** Only keys of the identity with this external id. */
  externalId?: string | undefined;
  /** Only keys with this budget; not those that have it by their identity. */
  budgetId?: string | undefined;
  /** Only keys with the plan of this name or id; not those that have it by their identity. */
  plan?: string | undefined;
  /** Only keys in this state. A disabled key that has expired counts as disabled. */
  state?: "active" | "disabled" | "expired" | undefined;
  /** Only keys that expire before this Unix time in milliseconds, including those that have expired. */
  expiresBefore?: number | undefined;
  /** Only keys whose string begins with this prefix and an underscore. */
  prefix?: string | undefined;
  /** Only keys with the role of this name, regardless of case. */
  role?: string | undefined;
  /** Maximum number of keys that one call processes. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `apis.deleteKeys`. */
export type DeleteKeysOutput = {
  /** Number of keys that changed. Those that had the value, the roles or the permissions are not counted. */
  changed: number;
  /** Keys that could not be changed. The others were. */
  failed: {
      keyId: string;
      detail: string;
    }[];
  /** Continues with the next keys. Absent: every key that matches was processed. */
  cursor?: string;
};

/** The input of `keys.addPermissions`. */
export type AddPermissionsInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  permissions: readonly string[];
};

/** The `data` of an answer of `keys.addPermissions`. */
export type AddPermissionsOutput = Permission[];

/** The input of `keys.addRoles`. */
export type AddRolesInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  roles: readonly string[];
};

/** The `data` of an answer of `keys.addRoles`. */
export type AddRolesOutput = Role[];

/** The input of `keys.createKey`. */
export type CreateKeyInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
  /** Beginning of the key string; an underscore follows it. */
  prefix?: string | undefined;
  /** A label. Of your end users, at most the owner of the key sees it. */
  name?: string | undefined;
  /** Random bytes in the key string. */
  byteLength?: number | undefined;
  /** Your own identifier of the owner of the key, such as a user id. */
  externalId?: string | undefined;
  /** Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | undefined;
  /** Names of existing roles. */
  roles?: readonly string[] | undefined;
  /** Slugs. `documents.*` grants every permission that begins with `documents.`. */
  permissions?: readonly string[] | undefined;
  /** Unix time in milliseconds at which the key expires. */
  expires?: number | undefined;
  /** A balance of credits. Omitted: unlimited. */
  credits?: {
    /** Remaining credits. Null: unlimited. */
    remaining: number | null;
    /** Sets the balance to an amount at regular intervals. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /** The balance after a refill. */
      amount: number;
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | null | undefined;
  } | undefined;
  /** The budget that verifications spend from too, together with its ancestors. Needs `assign_budget` on it. */
  budgetId?: string | undefined;
  /** The name of the plan, or its id. Needs `assign_plan` on it. */
  plan?: string | undefined;
  ratelimits?: readonly {
      /** Name of the limit, for verifications. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
      /** Whether every verification that does not name the limit is charged 1. Default: false. */
      autoApply?: boolean | undefined;
      /**
       * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
       * you see what a limit would do before it is in force. Default: false.
       */
      shadow?: boolean | undefined;
    }[] | undefined;
  /**
   * How many calls may run at once. Each verification takes a slot of each of these limits with `hold`, until its hold
   * ends; without `hold` it gets 400.
   */
  concurrency?: readonly {
      /** Name of the limit, for answers. */
      name: string;
      /** How many holds may be open at once. */
      limit: number;
    }[] | undefined;
  /**
   * IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowedIps`, both lists must contain the
   * address. Omitted: every address that the API allows.
   */
  allowedIps?: readonly string[] | undefined;
  /** Default: true. */
  enabled?: boolean | undefined;
  /** Whether `keys.getKey` can return the key string. It is then stored encrypted. Default: false. */
  recoverable?: boolean | undefined;
};

/** The `data` of an answer of `keys.createKey`. */
export type CreateKeyOutput = {
  keyId: string;
  /** The key string. Give it to your user and do not store it. */
  key: Secret;
};

/** The input of `keys.deleteKey`. */
export type DeleteKeyInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  /** Whether to erase the key. Default: false. */
  permanent?: boolean | undefined;
};

/** The `data` of an answer of `keys.deleteKey`. */
export type DeleteKeyOutput = Record<string, never>;

/** The input of `keys.deriveKey`. */
export type DeriveKeyInput = {
  /** The key, or the derived key, to derive from. */
  keyId: string;
  /** When the derived key ends at the latest, in milliseconds from now. */
  ttl: number;
  /** Slugs. Of its parent's permissions at each verification, it has those that are also here. Omitted: all of them. */
  permissions?: readonly string[] | undefined;
  /** Limits besides those of its parent. Every verification is charged to them, like those of an identity. */
  ratelimits?: readonly {
      /** Name of the limit. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds, at most a day. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
    }[] | undefined;
  /** A bound besides the credits and budgets of its parent. Omitted: none. */
  credits?: {
    /** The most that it may spend in its life. */
    max: number;
  } | undefined;
  /**
   * IPv4 and IPv6 addresses and CIDRs that may use it. The lists of its parent and of the API must contain the address
   * too.
   */
  allowedIps?: readonly string[] | undefined;
  /**
   * Verifications answer it as `derived.meta`. Their `meta` is that of the key at the top, which its holder cannot
   * choose.
   */
  meta?: { [name: string]: unknown } | undefined;
};

/** The `data` of an answer of `keys.deriveKey`. */
export type DeriveKeyOutput = {
  keyId: string;
  /** The key string. Only this response contains it. */
  key: Secret;
  /** When it ends at the latest: the earliest of its own end and those of its parents, Unix time in milliseconds. */
  expires: number;
};

/** The input of `keys.deriveOwnKey`. */
export type DeriveOwnKeyInput = {
  /** The key string: that of a key, or of a derived key. */
  key: string | Secret;
  /** When the derived key ends at the latest, in milliseconds from now. */
  ttl: number;
  /** Slugs. Of its parent's permissions at each verification, it has those that are also here. Omitted: all of them. */
  permissions?: readonly string[] | undefined;
  /** Limits besides those of its parent. Every verification is charged to them, like those of an identity. */
  ratelimits?: readonly {
      /** Name of the limit. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds, at most a day. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
    }[] | undefined;
  /** A bound besides the credits and budgets of its parent. Omitted: none. */
  credits?: {
    /** The most that it may spend in its life. */
    max: number;
  } | undefined;
  /**
   * IPv4 and IPv6 addresses and CIDRs that may use it. The lists of its parent and of the API must contain the address
   * too.
   */
  allowedIps?: readonly string[] | undefined;
  /**
   * Verifications answer it as `derived.meta`. Their `meta` is that of the key at the top, which its holder cannot
   * choose.
   */
  meta?: { [name: string]: unknown } | undefined;
};

/** The `data` of an answer of `keys.deriveOwnKey`. */
export type DeriveOwnKeyOutput = {
  keyId: string;
  /** The key string. Only this response contains it. */
  key: Secret;
  /** When it ends at the latest: the earliest of its own end and those of its parents, Unix time in milliseconds. */
  expires: number;
};

/** The input of `keys.getKey`. */
export type GetKeyInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  /** Whether to return the `plaintext` of a recoverable key. Default: false. */
  decrypt?: boolean | undefined;
  /**
   * Whether to return the key although it is deleted, then with `deletedAt` and without `plaintext`. Default: false.
   */
  deleted?: boolean | undefined;
};

/** The `data` of an answer of `keys.getKey`. */
export type GetKeyOutput = Key;

/** The input of `keys.getOwnKey`. */
export type GetOwnKeyInput = {
  /** The key string. */
  key: string | Secret;
};

/** The `data` of an answer of `keys.getOwnKey`. */
export type GetOwnKeyOutput = {
  keyId: string;
  enabled: boolean;
  /** Unix time in milliseconds. Absent: never. */
  expires?: number;
  /** Absent: unlimited. */
  credits?: {
    remaining: number;
    refill?: {
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      amount: number;
      refillDay?: number;
      refillMonth?: number;
      timeZone?: string;
      rollover?: number;
      /** When the next refill is due, Unix time in milliseconds. */
      nextAt: number;
    };
  };
  ratelimits: {
      name: string;
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /** Present if the limit is strict. */
      mode?: "strict";
      /** What was charged in the sliding window that ends now. */
      used: number;
      remaining: number;
      /**
       * End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops
       * counting, or would if it were made now.
       */
      resetAt: number;
      /** Whether all keys of the owner share the limit. */
      shared: boolean;
    }[];
  /**
   * Verifications of the last 30 days in UTC, with today. Absent if the service keeps no analytics, and of a derived
   * key, whose calls count for the key at the top.
   */
  usage?: {
    startAt: number;
    endAt: number;
    total: number;
    valid: number;
    creditsSpent: number;
    /** The days with verifications, the oldest first. */
    days: {
        startAt: number;
        total: number;
        valid: number;
        creditsSpent: number;
      }[];
  };
};

/** The input of `keys.listDerivedKeys`. */
export type ListDerivedKeysInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `keys.listDerivedKeys`. */
export type ListDerivedKeysOutput = DerivedKey[];

/** The input of `keys.migrateKeys`. */
export type MigrateKeysInput = {
  /** A name of your choice for the source of the keys. */
  migrationId: string;
  /** Identifier of the API to import the keys into. */
  apiId: string;
  /** The algorithm of the hashes. Default: "sha256". */
  algorithm?: "sha256" | "sha512" | "hmac-sha256" | "prefixed-api-key" | undefined;
  /** With `hmac-sha256`: the secret of the HMAC, stored encrypted. Required in the first call only. */
  pepper?: string | Secret | undefined;
  /** Encoding of `pepper`. Default: "utf8". */
  pepperEncoding?: "utf8" | "hex" | "base64" | undefined;
  /**
   * Whether to import nothing. `migrated` is empty then, and `failed` has the hashes that would fail. Default: false.
   */
  dryRun?: boolean | undefined;
  keys: readonly {
      /** The hash of the key string as hex, base64 or base64url, in the length of the algorithm. */
      hash: string;
      /** A label. Of your end users, at most the owner of the key sees it. */
      name?: string | undefined;
      /** Your own identifier of the owner of the key. */
      externalId?: string | undefined;
      /** Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it. */
      meta?: { [name: string]: unknown } | undefined;
      /** Names. Roles that do not exist yet are created. */
      roles?: readonly string[] | undefined;
      /** Slugs. Permissions that do not exist yet are created. */
      permissions?: readonly string[] | undefined;
      /** Unix time in milliseconds at which the key expires. */
      expires?: number | undefined;
      /** Default: true. */
      enabled?: boolean | undefined;
      /** A balance of credits. Omitted: unlimited. */
      credits?: {
        /** Remaining credits. Null: unlimited. */
        remaining: number | null;
        /** Sets the balance to an amount at regular intervals. */
        refill?: {
          /** At the start of each hour, or of a day at midnight. */
          interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
          /** The balance after a refill. */
          amount: number;
          /**
           * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in
           * a shorter month, the last day. Omitted: 1.
           */
          refillDay?: number | undefined;
          /** With `yearly`: the month. Omitted: January. */
          refillMonth?: number | undefined;
          /**
           * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
           * `hourly`. Omitted: UTC.
           */
          timeZone?: string | undefined;
          /**
           * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts.
           * Omitted: nothing is kept.
           */
          rollover?: number | undefined;
        } | null | undefined;
      } | undefined;
      ratelimits?: readonly {
          /** Name of the limit, for verifications. */
          name: string;
          /** Maximum cost per window. */
          limit: number;
          /** Length of the window in milliseconds. */
          duration: number;
          /**
           * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
           * `duration`. Default: "standard".
           */
          mode?: "standard" | "strict" | undefined;
          /** Whether every verification that does not name the limit is charged 1. Default: false. */
          autoApply?: boolean | undefined;
          /**
           * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count.
           * So you see what a limit would do before it is in force. Default: false.
           */
          shadow?: boolean | undefined;
        }[] | undefined;
      /**
       * How many calls may run at once. Each verification takes a slot of each of these limits with `hold`, until its
       * hold ends; without `hold` it gets 400.
       */
      concurrency?: readonly {
          /** Name of the limit, for answers. */
          name: string;
          /** How many holds may be open at once. */
          limit: number;
        }[] | undefined;
      /**
       * IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowedIps`, both lists must contain
       * the address. Omitted: every address that the API allows.
       */
      allowedIps?: readonly string[] | undefined;
      /** The name of the plan, or its id. Needs `assign_plan` on it. */
      plan?: string | undefined;
      /** The budget that verifications spend from too, together with its ancestors. Needs `assign_budget` on it. */
      budgetId?: string | undefined;
    }[];
};

/** The `data` of an answer of `keys.migrateKeys`. */
export type MigrateKeysOutput = {
  /** The hashes as sent, with the ids of the new keys. */
  migrated: {
      hash: string;
      keyId: string;
    }[];
  /** Hashes that were not imported. */
  failed: string[];
  /**
   * Why the import ended before its end. Correct what `detail` names, or wait if `status` is 503, and send the last
   * `count` keys of the list again.
   */
  stopped?: {
    /** How many hashes at the end of `failed` were not imported for this reason. Those before them exist. */
    count: number;
    /** The status that a call with these keys alone would have. */
    status: number;
    title: string;
    /** The page about the problem, with its causes and remedies. */
    type: string;
    /** The reason. It names the key, if one of them is the reason. */
    detail: string;
  };
};

/** The input of `keys.removePermissions`. */
export type RemovePermissionsInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  permissions: readonly string[];
};

/** The `data` of an answer of `keys.removePermissions`. */
export type RemovePermissionsOutput = Permission[];

/** The input of `keys.removeRoles`. */
export type RemoveRolesInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  roles: readonly string[];
};

/** The `data` of an answer of `keys.removeRoles`. */
export type RemoveRolesOutput = Role[];

/** The input of `keys.reportLeak`. */
export type ReportLeakInput = {
  /** The key string. */
  key: string | Secret;
  /** Where the key was found. The owner of the API sees it. */
  location?: string | undefined;
};

/** The `data` of an answer of `keys.reportLeak`. */
export type ReportLeakOutput = Record<string, never>;

/** The input of `keys.rerollKey`. */
export type RerollKeyInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  /** How long the old key stays valid, in milliseconds. Null: its expiry does not change. */
  expiration: number | null;
};

/** The `data` of an answer of `keys.rerollKey`. */
export type RerollKeyOutput = {
  keyId: string;
  /** The new key string. */
  key: Secret;
};

/** The input of `keys.restoreKey`. */
export type RestoreKeyInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
};

/** The `data` of an answer of `keys.restoreKey`. */
export type RestoreKeyOutput = {
  /** False if the key was disabled when it was deleted, or was reported as leaked. */
  enabled: boolean;
};

/** The input of `keys.setPermissions`. */
export type SetPermissionsInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  permissions: readonly string[];
};

/** The `data` of an answer of `keys.setPermissions`. */
export type SetPermissionsOutput = Permission[];

/** The input of `keys.setRoles`. */
export type SetRolesInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  roles: readonly string[];
};

/** The `data` of an answer of `keys.setRoles`. */
export type SetRolesOutput = Role[];

/** The input of `keys.updateCredits`. */
export type UpdateCreditsInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  operation: "set" | "increment" | "decrement";
  /** The new balance, or the amount of the change. Null: unlimited. */
  value?: number | null | undefined;
};

/** The `data` of an answer of `keys.updateCredits`. */
export type UpdateCreditsOutput = {
  /** The balance. Null: unlimited. */
  remaining: number | null;
  refill?: {
    interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
    amount: number;
    refillDay?: number;
    refillMonth?: number;
    timeZone?: string;
    rollover?: number;
  };
};

/** The input of `keys.updateKey`. */
export type UpdateKeyInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  /** A label. Of your end users, at most the owner of the key sees it. */
  name?: string | null | undefined;
  /**
   * Null removes the key from its identity. The identity is not deleted. If the identity has a budget, a key that
   * leaves it needs `assign_budget` on that, or `assign_plan` on the plan that gives it.
   */
  externalId?: string | null | undefined;
  /** Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | null | undefined;
  /** Null: the key never expires. */
  expires?: number | null | undefined;
  /** Null: unlimited. */
  credits?: {
    /** The new balance. Null: unlimited, without a refill. */
    remaining?: number | null | undefined;
    /** The new refill. Null: no refill. The balance does not change. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /** The balance after a refill. */
      amount: number;
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | null | undefined;
  } | null | undefined;
  /**
   * The budget that verifications spend from too, together with its ancestors. Null: none. Needs `assign_budget` on
   * the former one and on the new one.
   */
  budgetId?: string | null | undefined;
  /**
   * The plan whose limits, permissions and roles the key has besides its own. All keys of a reroll chain share it.
   * Null: none. Needs `assign_plan` on the former one and on the new one.
   */
  plan?: string | null | undefined;
  /**
   * With `plan`: what happens to the credits that plans gave. `keep`: what is left stays, until the next refill.
   * `reset`: the amount of the new plan at once; only once in each period. Omitted: `keep`.
   */
  balances?: "keep" | "reset" | undefined;
  /** All limits of the key. A limit with an existing name keeps its id. */
  ratelimits?: readonly {
      /** Name of the limit, for verifications. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
      /** Whether every verification that does not name the limit is charged 1. Default: false. */
      autoApply?: boolean | undefined;
      /**
       * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
       * you see what a limit would do before it is in force. Default: false.
       */
      shadow?: boolean | undefined;
    }[] | null | undefined;
  /**
   * How many calls may run at once: all limits of the key. Open holds count for a limit with an existing name, also
   * where it is lower than their number.
   */
  concurrency?: readonly {
      /** Name of the limit, for answers. */
      name: string;
      /** How many holds may be open at once. */
      limit: number;
    }[] | null | undefined;
  /**
   * IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowedIps`, both lists must contain the
   * address. Null: every address that the API allows.
   */
  allowedIps?: readonly string[] | null | undefined;
  enabled?: boolean | undefined;
  roles?: readonly string[] | undefined;
  permissions?: readonly string[] | undefined;
};

/** The `data` of an answer of `keys.updateKey`. */
export type UpdateKeyOutput = Record<string, never>;

/** The input of `keys.verifyKey`. */
export type VerifyKeyInput = {
  /** The key string from the request of your user. */
  key: string | Secret;
  /** Accept only a key of this API. */
  apiId?: string | undefined;
  /** Accept only a key of one of these APIs. Combines with `apiId`: the key must satisfy both. */
  keyspaces?: readonly string[] | undefined;
  /** A permission query that the key must satisfy, such as `documents.read AND (admin OR billing.write)`. */
  permissions?: string | undefined;
  /** Tags of this verification in the analytics. */
  tags?: readonly string[] | undefined;
  /** Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without charging. */
  credits?: {
    cost: number;
  } | undefined;
  /**
   * Holds the cost instead of spending it, for work whose cost is known afterwards: `holds.settleHold` charges what it
   * really was. The call can then charge up to 10 limits, whose names have up to 1000 characters together. Requires a
   * root key.
   */
  hold?: {
    /** Milliseconds until the hold expires. */
    ttl: number;
    /**
     * What happens to the credits if nobody settles or releases the hold in time. `release`: they are given back.
     * `charge`: they are spent. Default: "release".
     */
    onExpiry?: "release" | "charge" | undefined;
  } | undefined;
  /**
   * Limits to charge, by name. Limits with `autoApply` that are not in the list are then checked but not charged.
   * Omitted or empty: each limit with `autoApply` is charged 1.
   */
  ratelimits?: readonly {
      name: string;
      /** Cost of this call. 0: check the limit without charging it. Default: 1. */
      cost?: number | undefined;
      /** With `duration`: a limit for this call only, instead of a stored one. */
      limit?: number | undefined;
      /** With `limit`: the length of its window in milliseconds. */
      duration?: number | undefined;
      /** With `limit` and `duration`: how the limit counts. Omitted: `standard`. */
      mode?: "standard" | "strict" | undefined;
      /** With `limit` and `duration`: whether the limit only counts, and never denies. Omitted: `false`. */
      shadow?: boolean | undefined;
    }[] | undefined;
  /** The migration that imported the key, for keys that need it: see `keys.migrateKeys`. Requires a root key. */
  migrationId?: string | undefined;
  /** The address of your user, for the allow-list of the API. Requires a root key. */
  clientIp?: string | undefined;
};

/** The `data` of an answer of `keys.verifyKey`. */
export type VerifyKeyOutput = {
  valid: boolean;
  code: "VALID" | "NOT_FOUND" | "FORBIDDEN" | "INSUFFICIENT_PERMISSIONS" | "USAGE_EXCEEDED" | "RATE_LIMITED" | "DISABLED" | "EXPIRED";
  keyId?: string;
  apiId?: string;
  enabled?: boolean;
  name?: string;
  meta?: { [name: string]: unknown };
  expires?: number;
  permissions?: string[];
  roles?: string[];
  /** The name of the plan of the key, with a root key. */
  plan?: string;
  /** The balance after this verification. Absent: unlimited. */
  credits?: number;
  /** The budgets that the call is charged to, with a root key. */
  budgets?: {
      budgetId: string;
      name: string;
      /** Its credits after this verification. */
      remaining: number;
      /** What open holds have taken from it, with this one. */
      held: number;
      /** Whether it does not cover the call. */
      exceeded: boolean;
      /** If it is exceeded: milliseconds until its next refill. Absent: it has none. */
      retryAfter?: number;
    }[];
  /** The hold that this verification made. Present if it is valid and asked for one. */
  hold?: {
    holdId: string;
    /** Unix time in milliseconds. */
    expiresAt: number;
  };
  identity?: Identity;
  /** Present if it is a derived key. Then `name`, `meta` and `identity` are those of the key at the top. */
  derived?: {
    /** The key, or the derived key, that it was derived from. */
    parentKeyId: string;
    /** Its own. The holder of a key may have chosen it. */
    meta: { [name: string]: unknown };
  };
  /** Every limit of concurrency, with `hold`. Absent if the key has none, or if the call failed before. */
  concurrency?: {
      name: string;
      limit: number;
      /** How many holds are open, with that of this call. */
      inUse: number;
      /** Where the limit comes from. All keys of an identity share its slots. */
      from: "key" | "identity";
      /** Whether it denies the call. */
      exceeded: boolean;
      /** If it is exceeded: milliseconds until the first of these holds expires, or less. Any can end earlier. */
      retryAfter?: number;
    }[];
  /** Every limit that was checked. */
  ratelimits?: {
      id: string;
      name: string;
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /** Present if the limit is strict. */
      mode?: "strict";
      autoApply: boolean;
      /** Present if the limit is in shadow mode: it never denies. */
      shadow?: true;
      /** Present if it is a limit of the identity, which all its keys share. */
      from?: "identity";
      exceeded: boolean;
      /** What remains in the window after this call. A denied call charges nothing. */
      remaining: number;
      /**
       * End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops
       * counting, or would if it were made now.
       */
      reset: number;
      /** Milliseconds until this cost would pass. 0 if it passed. Absent: it can never pass. */
      retryAfter?: number;
    }[];
  /**
   * With RATE_LIMITED: milliseconds until the call would pass without other calls. Absent: it can never pass. Where
   * slots of `concurrency` are lacking, one can be free sooner, or still be taken then if its hold was extended.
   */
  retryAfter?: number;
};

/** The input of `keys.explainVerification`. */
export type ExplainVerificationInput = {
  /** The key string from the request of your user. */
  key?: string | Secret | undefined;
  /** Instead of `key`: the id of the key. Its string is then not looked up. */
  keyId?: string | undefined;
  /** Accept only a key of this API. */
  apiId?: string | undefined;
  /** Accept only a key of one of these APIs. Combines with `apiId`: the key must satisfy both. */
  keyspaces?: readonly string[] | undefined;
  /** A permission query that the key must satisfy, such as `documents.read AND (admin OR billing.write)`. */
  permissions?: string | undefined;
  /** Tags of this verification in the analytics. */
  tags?: readonly string[] | undefined;
  /** Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without charging. */
  credits?: {
    cost: number;
  } | undefined;
  /**
   * Holds the cost instead of spending it, for work whose cost is known afterwards: `holds.settleHold` charges what it
   * really was. The call can then charge up to 10 limits, whose names have up to 1000 characters together. Requires a
   * root key.
   */
  hold?: {
    /** Milliseconds until the hold expires. */
    ttl: number;
    /**
     * What happens to the credits if nobody settles or releases the hold in time. `release`: they are given back.
     * `charge`: they are spent. Default: "release".
     */
    onExpiry?: "release" | "charge" | undefined;
  } | undefined;
  /**
   * Limits to charge, by name. Limits with `autoApply` that are not in the list are then checked but not charged.
   * Omitted or empty: each limit with `autoApply` is charged 1.
   */
  ratelimits?: readonly {
      name: string;
      /** Cost of this call. 0: check the limit without charging it. Default: 1. */
      cost?: number | undefined;
      /** With `duration`: a limit for this call only, instead of a stored one. */
      limit?: number | undefined;
      /** With `limit`: the length of its window in milliseconds. */
      duration?: number | undefined;
      /** With `limit` and `duration`: how the limit counts. Omitted: `standard`. */
      mode?: "standard" | "strict" | undefined;
      /** With `limit` and `duration`: whether the limit only counts, and never denies. Omitted: `false`. */
      shadow?: boolean | undefined;
    }[] | undefined;
  /** The migration that imported the key, for keys that need it: see `keys.migrateKeys`. Requires a root key. */
  migrationId?: string | undefined;
  /** The address of your user, for the allow-list of the API. Requires a root key. */
  clientIp?: string | undefined;
};

/** The `data` of an answer of `keys.explainVerification`. */
export type ExplainVerificationOutput = {
  valid: boolean;
  /** The code that `keys.verifyKey` would answer. */
  code: "VALID" | "NOT_FOUND" | "FORBIDDEN" | "INSUFFICIENT_PERMISSIONS" | "USAGE_EXCEEDED" | "RATE_LIMITED" | "DISABLED" | "EXPIRED";
  /** The time of the decision, Unix time in milliseconds. */
  at: number;
  steps: {
      /** What was checked. */
      step: "lookup" | "deletion" | "api" | "rootKey" | "workspace" | "enabled" | "expiry" | "address" | "permissions" | "concurrency" | "limits" | "credits";
      /** The code of a verification that fails here. */
      code: "VALID" | "NOT_FOUND" | "FORBIDDEN" | "INSUFFICIENT_PERMISSIONS" | "USAGE_EXCEEDED" | "RATE_LIMITED" | "DISABLED" | "EXPIRED";
      /** `decided`: it failed, and its code is the answer. The steps after it are not reached. */
      result: "passed" | "decided" | "notReached";
      /** What was compared, as a sentence. */
      detail: string;
    }[];
  /** Absent if no key was found. */
  key?: {
    keyId: string;
    apiId: string;
    /** The name of its plan. */
    plan?: string;
    identity?: {
      id: string;
      externalId: string;
      /** The name of its plan. */
      plan?: string;
    };
  };
  /** Where the node that answers had the record of the key from. */
  record?: {
    source: "cache" | "database";
    /** The record includes every change that was made before this Unix time in milliseconds. */
    currentAt: number;
  };
  permissions?: {
    /** Absent if the call asks for no permission. */
    query?: {
      /** The query, with its operators in capitals. */
      text: string;
      satisfied: boolean;
      /** The parts that must all be satisfied: the operands of the outermost `AND`. */
      parts: {
          text: string;
          satisfied: boolean;
        }[];
      /** Each permission that the query names. */
      slugs: {
          slug: string;
          /** The permission of the key that includes it: itself or a wildcard. Absent: there is none. */
          grantedBy?: string;
        }[];
    };
    /** At most 1000, first those that the query needs. */
    effective: {
        slug: string;
        /** Whether the key has it itself. */
        direct: boolean;
        /** Names of the roles of the key that have it. */
        roles: string[];
        /** The name of the plan of the key, if that gives it too. */
        plan?: string;
      }[];
    /** The number of permissions of the key. */
    count: number;
  };
  /** Every limit of concurrency of the key and of its identity. Absent: none. */
  concurrency?: {
      name: string;
      limit: number;
      /** How many holds are open, with that of this call. */
      inUse: number;
      /** Where the limit comes from. All keys of an identity share its slots. */
      from: "key" | "identity";
      /** Whether it denies the call. */
      exceeded: boolean;
      /** If it is exceeded: milliseconds until the first of these holds expires, or less. Any can end earlier. */
      retryAfter?: number;
      /** The name of the plan that gives it. */
      plan?: string;
    }[];
  /** Every limit of the key, of its identity and of the call. */
  ratelimits?: {
      /** Empty if the call gives the limit. */
      id: string;
      name: string;
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /** Present if the limit is strict. */
      mode?: "strict";
      /** Present if the limit is in shadow mode: it never denies. */
      shadow?: true;
      /**
       * Where the limit comes from. All keys of an identity share the counters of its limits. `derived`: a derived
       * key, or one that it was derived from.
       */
      from: "key" | "identity" | "derived" | "call";
      /** The name of the plan that gives it to the key or to the identity. Absent: it is one of their own. */
      plan?: string;
      /**
       * What a verification does with it: `charged`; `checked`, without a charge, because the call names other limits;
       * `replaced` by the limit of the same name that the call gives; `unused`, because the call does not name it and
       * it has no `autoApply`.
       */
      use: "charged" | "checked" | "replaced" | "unused";
      /** What the call costs. Absent if the limit is replaced or unused. */
      cost?: number;
      /** Whether the limit denies the call, or would if it were not in shadow mode. Absent like `cost`. */
      exceeded?: boolean;
      /** Milliseconds until this cost would pass without other calls. Absent: never, or like `cost`. */
      retryAfter?: number;
      /** The counter: what was charged in the sliding window that ends now. */
      used: number;
      /**
       * The current window, Unix times in milliseconds. Of a strict limit: from its oldest charge until that stops
       * counting.
       */
      window: {
        startAt: number;
        endAt: number;
      };
    }[];
  /** Absent: unlimited. */
  credits?: {
    remaining: number;
    refill?: {
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      amount: number;
      refillDay?: number;
      refillMonth?: number;
      timeZone?: string;
      rollover?: number;
      /** When the next refill is due, Unix time in milliseconds. */
      nextAt: number;
    };
    /** What open holds have taken from it. */
    held: number;
    /** What the call costs. */
    cost: number;
    /** The name of the plan that gives it. Absent: it is one of the key. */
    plan?: string;
  };
  /** The budgets that the call is charged to. Absent: none. */
  budgets?: {
      remaining: number;
      refill?: {
        interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
        amount: number;
        refillDay?: number;
        refillMonth?: number;
        timeZone?: string;
        rollover?: number;
        /** When the next refill is due, Unix time in milliseconds. */
        nextAt: number;
      };
      budgetId: string;
      name: string;
      unit?: string;
      /**
       * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
       * below 0.
       */
      onEmpty: "deny" | "allow";
      /** What open holds have taken from it. */
      held: number;
      /** What the call costs. */
      cost: number;
      /** Whether it does not cover the call. */
      exceeded: boolean;
      /** The plan of the identity, if that gives it. */
      plan?: string;
    }[];
  /** The derived key, and each one that it was derived from. Absent: it is no derived key. */
  derived?: {
      keyId: string;
      parentKeyId: string;
      /** Unix time in milliseconds. */
      expires: number;
      /** Whether it was ended before. */
      ended: boolean;
      /** It has those permissions of its parent that are also here. Absent: all of them. */
      permissions?: string[];
      /** What it may spend at most. */
      credits?: {
        max: number;
        remaining: number;
      };
    }[];
  /**
   * The edge that has passed on the call, with what it would decide a verification by: `latchkey edge` or
   * `LocalLatchkey`. Everything else is the service's. Absent: there was none.
   */
  edge?: {
    id: string;
    /** Absent: it has none. */
    name?: string;
    /** Its record of the key. Absent: it has none that it may use, or the call has `keyId`. */
    record?: {
      /**
       * The record includes every change that was made before this Unix time in milliseconds, by the clock of the
       * edge.
       */
      currentAt: number;
    };
    /** What it holds of the limits of the key. Empty without its record. */
    leases: {
        /** The name of the limit. */
        name: string;
        /** Where the limit comes from. */
        from: "key" | "identity";
        /** What is left of the lease. The counter of the limit has all of it already. */
        remaining: number;
        /** Unix time in milliseconds, by the clock of the edge. */
        expiresAt: number;
      }[];
  };
};

/** The input of `keys.whoami`. */
export type WhoamiInput = {
  /** The key string. */
  key: string | Secret;
};

/** The `data` of an answer of `keys.whoami`. */
export type WhoamiOutput = Key;

/** The input of `identities.createIdentity`. */
export type CreateIdentityInput = {
  /** Your own identifier of the owner of the key, such as a user id. */
  externalId: string;
  /** Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | undefined;
  /** Limits that all keys of the identity share. */
  ratelimits?: readonly {
      /** Name of the limit, for verifications. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
      /** Whether every verification that does not name the limit is charged 1. Default: false. */
      autoApply?: boolean | undefined;
      /**
       * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
       * you see what a limit would do before it is in force. Default: false.
       */
      shadow?: boolean | undefined;
    }[] | undefined;
  /** How many calls of all its keys together may run at once. */
  concurrency?: readonly {
      /** Name of the limit, for answers. */
      name: string;
      /** How many holds may be open at once. */
      limit: number;
    }[] | undefined;
  /** The budget that verifications spend from too, together with its ancestors. Needs `assign_budget` on it. */
  budgetId?: string | undefined;
  /** The name of the plan, or its id. Needs `assign_plan` on it. */
  plan?: string | undefined;
};

/** The `data` of an answer of `identities.createIdentity`. */
export type CreateIdentityOutput = {
  identityId: string;
};

/** The input of `identities.deleteIdentity`. */
export type DeleteIdentityInput = {
  /** The identity's id, or your external id. */
  identity: string;
};

/** The `data` of an answer of `identities.deleteIdentity`. */
export type DeleteIdentityOutput = Record<string, never>;

/** The input of `identities.getIdentity`. */
export type GetIdentityInput = {
  /** The identity's id, or your external id. */
  identity: string;
};

/** The `data` of an answer of `identities.getIdentity`. */
export type GetIdentityOutput = Identity;

/** The input of `identities.listIdentities`. */
export type ListIdentitiesInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose ids and external ids contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
  /** Only identities with this budget. */
  budgetId?: string | undefined;
  /** Only identities with the plan of this name or id. */
  plan?: string | undefined;
  /** What the identities are in order by. Default: "createdAt". */
  orderBy?: "createdAt" | "externalId" | undefined;
  /** `desc`: the newest, or the last external id, first. Default: "asc". */
  order?: "asc" | "desc" | undefined;
};

/** The `data` of an answer of `identities.listIdentities`. */
export type ListIdentitiesOutput = Identity[];

/** The input of `identities.updateIdentity`. */
export type UpdateIdentityInput = {
  /** The identity's id, or your external id. */
  identity: string;
  /** Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | undefined;
  /** All limits of the identity. A limit with an existing name keeps its id. */
  ratelimits?: readonly {
      /** Name of the limit, for verifications. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
      /** Whether every verification that does not name the limit is charged 1. Default: false. */
      autoApply?: boolean | undefined;
      /**
       * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
       * you see what a limit would do before it is in force. Default: false.
       */
      shadow?: boolean | undefined;
    }[] | undefined;
  /**
   * How many calls of all its keys together may run at once: all limits of the identity. Null: any number. Open holds
   * count for a limit with an existing name, also where it is lower than their number.
   */
  concurrency?: readonly {
      /** Name of the limit, for answers. */
      name: string;
      /** How many holds may be open at once. */
      limit: number;
    }[] | null | undefined;
  /**
   * The plan whose limits and budget all its keys share, besides the limits of the identity. Its permissions and roles
   * are for keys only. Null: none. Needs `assign_plan` on the former one and on the new one.
   */
  plan?: string | null | undefined;
  /**
   * With `plan`: what happens to the budget that plans gave. `keep`: what is left stays, until the next refill.
   * `reset`: the amount of the new plan at once; only once in each period. Omitted: `keep`.
   */
  balances?: "keep" | "reset" | undefined;
  /**
   * The budget that verifications of all its keys spend from too, together with its ancestors. Null: none. Needs
   * `assign_budget` on the former one and on the new one.
   */
  budgetId?: string | null | undefined;
};

/** The `data` of an answer of `identities.updateIdentity`. */
export type UpdateIdentityOutput = Identity;

/** The input of `plans.createPlan`. */
export type CreatePlanInput = {
  /** The name by which keys and identities refer to the plan. Unique in the workspace. Never changes. Not `plan_…`. */
  name: string;
  /**
   * Limits of each key with the plan, and of each identity with it, whose keys share them. A limit of the same name
   * that a key or an identity has itself takes its place there. `autoApply` is ignored for identities, as it is for
   * their own limits.
   */
  ratelimits?: readonly {
      /** Name of the limit, for verifications. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
      /** Whether every verification that does not name the limit is charged 1. Default: false. */
      autoApply?: boolean | undefined;
      /**
       * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
       * you see what a limit would do before it is in force. Default: false.
       */
      shadow?: boolean | undefined;
    }[] | undefined;
  /**
   * How many calls of each key with the plan, and of the keys of each identity with it, may run at once. Verifications
   * of such a key need `hold`.
   */
  concurrency?: readonly {
      /** Name of the limit, for answers. */
      name: string;
      /** How many holds may be open at once. */
      limit: number;
    }[] | undefined;
  /**
   * A balance for each key with the plan, or for its reroll chain. Credits that a key has itself take its place. A
   * plan with credits is for keys only.
   */
  credits?: {
    /** What each period has. A new amount counts from the next refill. */
    amount: number;
    /** When the next period begins. Omitted: never. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | undefined;
  } | undefined;
  /**
   * A budget for each identity with the plan, which verifications of all its keys spend from. A `budgetId` of the
   * identity takes its place. A plan with a budget is for identities only, and has no `credits`.
   */
  budget?: {
    /** What each period has. A new amount counts from the next refill. */
    amount: number;
    /** When the next period begins. Omitted: never. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | undefined;
    /**
     * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
     * below 0. Default: "deny".
     */
    onEmpty?: "deny" | "allow" | undefined;
    /**
     * Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
     * one. Default: [].
     */
    thresholds?: readonly number[] | undefined;
    /** What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent. */
    unit?: string | undefined;
  } | undefined;
  /** Slugs that keys with the plan have besides their own. Those that do not exist yet are created. */
  permissions?: readonly string[] | undefined;
  /** Names of existing roles that keys with the plan have besides their own. */
  roles?: readonly string[] | undefined;
  /** Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | undefined;
};

/** The `data` of an answer of `plans.createPlan`. */
export type CreatePlanOutput = {
  planId: string;
};

/** The input of `plans.deletePlan`. */
export type DeletePlanInput = {
  /** The name of a plan, or its id. */
  plan: string;
};

/** The `data` of an answer of `plans.deletePlan`. */
export type DeletePlanOutput = Record<string, never>;

/** The input of `plans.getPlan`. */
export type GetPlanInput = {
  /** The name of a plan, or its id. */
  plan: string;
};

/** The `data` of an answer of `plans.getPlan`. */
export type GetPlanOutput = Plan;

/** The input of `plans.listPlans`. */
export type ListPlansInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose names and ids contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
};

/** The `data` of an answer of `plans.listPlans`. */
export type ListPlansOutput = Plan[];

/** The input of `plans.previewUpdate`. */
export type PreviewUpdateInput = {
  /** The name of a plan, or its id. */
  plan: string;
  /**
   * Limits of each key with the plan, and of each identity with it, whose keys share them. A limit of the same name
   * that a key or an identity has itself takes its place there. `autoApply` is ignored for identities, as it is for
   * their own limits.
   */
  ratelimits?: readonly {
      /** Name of the limit, for verifications. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
      /** Whether every verification that does not name the limit is charged 1. Default: false. */
      autoApply?: boolean | undefined;
      /**
       * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
       * you see what a limit would do before it is in force. Default: false.
       */
      shadow?: boolean | undefined;
    }[] | null | undefined;
  /**
   * How many calls of each key with the plan, and of the keys of each identity with it, may run at once. Verifications
   * of such a key need `hold`.
   */
  concurrency?: readonly {
      /** Name of the limit, for answers. */
      name: string;
      /** How many holds may be open at once. */
      limit: number;
    }[] | null | undefined;
  /**
   * A balance for each key with the plan, or for its reroll chain. Credits that a key has itself take its place. A
   * plan with credits is for keys only.
   */
  credits?: {
    /** What each period has. A new amount counts from the next refill. */
    amount: number;
    /** When the next period begins. Omitted: never. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | undefined;
  } | null | undefined;
  /**
   * A budget for each identity with the plan, which verifications of all its keys spend from. A `budgetId` of the
   * identity takes its place. A plan with a budget is for identities only, and has no `credits`.
   */
  budget?: {
    /** What each period has. A new amount counts from the next refill. */
    amount: number;
    /** When the next period begins. Omitted: never. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | undefined;
    /**
     * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
     * below 0. Default: "deny".
     */
    onEmpty?: "deny" | "allow" | undefined;
    /**
     * Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
     * one. Default: [].
     */
    thresholds?: readonly number[] | undefined;
    /** What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent. */
    unit?: string | undefined;
  } | null | undefined;
  /** Slugs that keys with the plan have besides their own. Those that do not exist yet are created. */
  permissions?: readonly string[] | null | undefined;
  /** Names of existing roles that keys with the plan have besides their own. */
  roles?: readonly string[] | null | undefined;
  /** Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | null | undefined;
};

/** The `data` of an answer of `plans.previewUpdate`. */
export type PreviewUpdateOutput = {
  /** Those that have the plan themselves. */
  keys: {
    count: number;
    /** False if there are more than the 20000 that a call examines. */
    isComplete: boolean;
  };
  identities: {
    count: number;
    /** False if there are more than the 20000 that a call examines. */
    isComplete: boolean;
  };
  /** In the order of the fields and of the names of limits. */
  changes: PlanChange[];
};

/** The input of `plans.updatePlan`. */
export type UpdatePlanInput = {
  /** The name of a plan, or its id. */
  plan: string;
  /**
   * Limits of each key with the plan, and of each identity with it, whose keys share them. A limit of the same name
   * that a key or an identity has itself takes its place there. `autoApply` is ignored for identities, as it is for
   * their own limits.
   */
  ratelimits?: readonly {
      /** Name of the limit, for verifications. */
      name: string;
      /** Maximum cost per window. */
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /**
       * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
       * `duration`. Default: "standard".
       */
      mode?: "standard" | "strict" | undefined;
      /** Whether every verification that does not name the limit is charged 1. Default: false. */
      autoApply?: boolean | undefined;
      /**
       * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
       * you see what a limit would do before it is in force. Default: false.
       */
      shadow?: boolean | undefined;
    }[] | null | undefined;
  /**
   * How many calls of each key with the plan, and of the keys of each identity with it, may run at once. Verifications
   * of such a key need `hold`.
   */
  concurrency?: readonly {
      /** Name of the limit, for answers. */
      name: string;
      /** How many holds may be open at once. */
      limit: number;
    }[] | null | undefined;
  /**
   * A balance for each key with the plan, or for its reroll chain. Credits that a key has itself take its place. A
   * plan with credits is for keys only.
   */
  credits?: {
    /** What each period has. A new amount counts from the next refill. */
    amount: number;
    /** When the next period begins. Omitted: never. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | undefined;
  } | null | undefined;
  /**
   * A budget for each identity with the plan, which verifications of all its keys spend from. A `budgetId` of the
   * identity takes its place. A plan with a budget is for identities only, and has no `credits`.
   */
  budget?: {
    /** What each period has. A new amount counts from the next refill. */
    amount: number;
    /** When the next period begins. Omitted: never. */
    refill?: {
      /** At the start of each hour, or of a day at midnight. */
      interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      /**
       * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
       * shorter month, the last day. Omitted: 1.
       */
      refillDay?: number | undefined;
      /** With `yearly`: the month. Omitted: January. */
      refillMonth?: number | undefined;
      /**
       * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
       * `hourly`. Omitted: UTC.
       */
      timeZone?: string | undefined;
      /**
       * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
       * nothing is kept.
       */
      rollover?: number | undefined;
    } | undefined;
    /**
     * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
     * below 0. Default: "deny".
     */
    onEmpty?: "deny" | "allow" | undefined;
    /**
     * Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
     * one. Default: [].
     */
    thresholds?: readonly number[] | undefined;
    /** What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent. */
    unit?: string | undefined;
  } | null | undefined;
  /** Slugs that keys with the plan have besides their own. Those that do not exist yet are created. */
  permissions?: readonly string[] | null | undefined;
  /** Names of existing roles that keys with the plan have besides their own. */
  roles?: readonly string[] | null | undefined;
  /** Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | null | undefined;
};

/** The `data` of an answer of `plans.updatePlan`. */
export type UpdatePlanOutput = Plan;

/** The input of `budgets.createBudget`. */
export type CreateBudgetInput = {
  /** The name of the budget. Verifications with a root key show it. */
  name: string;
  /** The credits that it begins with. */
  remaining: number;
  /** Sets the balance to an amount at regular intervals. */
  refill?: {
    /** At the start of each hour, or of a day at midnight. */
    interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
    /** The balance after a refill. */
    amount: number;
    /**
     * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
     * shorter month, the last day. Omitted: 1.
     */
    refillDay?: number | undefined;
    /** With `yearly`: the month. Omitted: January. */
    refillMonth?: number | undefined;
    /**
     * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
     * `hourly`. Omitted: UTC.
     */
    timeZone?: string | undefined;
    /**
     * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
     * nothing is kept.
     */
    rollover?: number | undefined;
  } | undefined;
  /** The budget that its spends are charged to as well. A tree has at most 4 levels. */
  parentId?: string | undefined;
  /**
   * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
   * below 0. Default: "deny".
   */
  onEmpty?: "deny" | "allow" | undefined;
  /**
   * Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
   * one.
   */
  thresholds?: readonly number[] | undefined;
  /** What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent. */
  unit?: string | undefined;
  /** Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | undefined;
};

/** The `data` of an answer of `budgets.createBudget`. */
export type CreateBudgetOutput = {
  budgetId: string;
};

/** The input of `budgets.deleteBudget`. */
export type DeleteBudgetInput = {
  /** Identifier of a budget, as createBudget gave it. */
  budgetId: string;
};

/** The `data` of an answer of `budgets.deleteBudget`. */
export type DeleteBudgetOutput = Record<string, never>;

/** The input of `budgets.getBudget`. */
export type GetBudgetInput = {
  /** Identifier of a budget, as createBudget gave it. */
  budgetId: string;
};

/** The `data` of an answer of `budgets.getBudget`. */
export type GetBudgetOutput = Budget;

/** The input of `budgets.listBudgets`. */
export type ListBudgetsInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose names and ids contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
  /** Only the children of this budget. Null: only budgets without a parent. */
  parentId?: string | null | undefined;
};

/** The `data` of an answer of `budgets.listBudgets`. */
export type ListBudgetsOutput = Budget[];

/** The input of `budgets.updateBudget`. */
export type UpdateBudgetInput = {
  /** Identifier of a budget, as createBudget gave it. */
  budgetId: string;
  /** The name of the budget. Verifications with a root key show it. */
  name?: string | undefined;
  /** The new refill. Null: no refill. The balance does not change. */
  refill?: {
    /** At the start of each hour, or of a day at midnight. */
    interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
    /** The balance after a refill. */
    amount: number;
    /**
     * With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
     * shorter month, the last day. Omitted: 1.
     */
    refillDay?: number | undefined;
    /** With `yearly`: the month. Omitted: January. */
    refillMonth?: number | undefined;
    /**
     * The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
     * `hourly`. Omitted: UTC.
     */
    timeZone?: string | undefined;
    /**
     * The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
     * nothing is kept.
     */
    rollover?: number | undefined;
  } | null | undefined;
  /**
   * What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
   * below 0.
   */
  onEmpty?: "deny" | "allow" | undefined;
  /**
   * Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
   * one.
   */
  thresholds?: readonly number[] | undefined;
  /** Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it. */
  meta?: { [name: string]: unknown } | undefined;
};

/** The `data` of an answer of `budgets.updateBudget`. */
export type UpdateBudgetOutput = Budget;

/** The input of `budgets.updateCredits`. */
export type BudgetsUpdateCreditsInput = {
  /** Identifier of a budget, as createBudget gave it. */
  budgetId: string;
  operation: "set" | "increment" | "decrement";
  /** The new balance, or the amount of the change. */
  value: number;
};

/** The `data` of an answer of `budgets.updateCredits`. */
export type BudgetsUpdateCreditsOutput = Credits;

/** The input of `holds.extendHold`. */
export type ExtendHoldInput = {
  /** Identifier of a hold, as verifyKey gave it. */
  holdId: string;
  /** Milliseconds from now until the hold expires. */
  ttl: number;
};

/** The `data` of an answer of `holds.extendHold`. */
export type ExtendHoldOutput = {
  holdId: string;
  /** Unix time in milliseconds. */
  expiresAt: number;
};

/** The input of `holds.getHold`. */
export type GetHoldInput = {
  /** Identifier of a hold, as verifyKey gave it. */
  holdId: string;
};

/** The `data` of an answer of `holds.getHold`. */
export type GetHoldOutput = Hold;

/** The input of `holds.listHolds`. */
export type ListHoldsInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only holds of this key. */
  keyId?: string | undefined;
  /** Only holds that took credits from this budget. */
  budgetId?: string | undefined;
  /** Only holds whose key had this identity when they were made: its id, or your external id. */
  identity?: string | undefined;
  /** Only holds in this state. */
  state?: "open" | "settled" | "released" | "expired" | undefined;
  /** `asc`: the oldest first. `desc`: the newest first. Default: "asc". */
  order?: "asc" | "desc" | undefined;
};

/** The `data` of an answer of `holds.listHolds`. */
export type ListHoldsOutput = Hold[];

/** The input of `holds.releaseHold`. */
export type ReleaseHoldInput = {
  /** Identifier of a hold, as verifyKey gave it. */
  holdId: string;
};

/** The `data` of an answer of `holds.releaseHold`. */
export type ReleaseHoldOutput = {
  holdId: string;
  /** `open` becomes one of the others. Of these, only `expired` becomes `settled`: by a late settlement. */
  state: "open" | "settled" | "released" | "expired";
  /** The credits that were charged: what every balance covered. 0 for a key without credits and budgets. */
  charged: number;
  /** What the work did cost besides: the most that a balance did not cover. 0 if nothing was lacking. */
  uncovered: number;
  /** The budgets that did not cover all of it, and what each did not cover. */
  budgets: {
      budgetId: string;
      uncovered: number;
    }[];
};

/** The input of `holds.settleHold`. */
export type SettleHoldInput = {
  /** Identifier of a hold, as verifyKey gave it. */
  holdId: string;
  /** What the work did cost. It can be more than was held. */
  credits: number;
  /**
   * What the work did cost of limits that the verification charged, by name. Less is given back in the window of the
   * charge. What is more is charged now, also beyond the limit. A limit that is counted elsewhere by now, as after an
   * outage of Redis, stays as it is.
   */
  ratelimits?: readonly {
      name: string;
      /** What the work did cost of this limit. It can be more than was charged. */
      cost: number;
    }[] | undefined;
  /** Tags of these credits in the analytics. */
  tags?: readonly string[] | undefined;
};

/** The `data` of an answer of `holds.settleHold`. */
export type SettleHoldOutput = {
  holdId: string;
  /** `open` becomes one of the others. Of these, only `expired` becomes `settled`: by a late settlement. */
  state: "open" | "settled" | "released" | "expired";
  /** The credits that were charged: what every balance covered. 0 for a key without credits and budgets. */
  charged: number;
  /** What the work did cost besides: the most that a balance did not cover. 0 if nothing was lacking. */
  uncovered: number;
  /** The budgets that did not cover all of it, and what each did not cover. */
  budgets: {
      budgetId: string;
      uncovered: number;
    }[];
};

/** The input of `analytics.getApiStats`. */
export type GetApiStatsInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7 days, else days. */
  granularity?: "minute" | "hour" | "day" | undefined;
  /** Only verifications with all of these tags. */
  tags?: readonly string[] | undefined;
};

/** The `data` of an answer of `analytics.getApiStats`. */
export type GetApiStatsOutput = {
  apiId: string;
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "minute" | "hour" | "day";
  /** Number of verifications. */
  total: number;
  /** Number of valid ones. */
  valid: number;
  /** Verifications by code. Codes that did not occur are omitted. */
  outcomes: { [name: string]: number };
  creditsSpent: number;
  /** Every bucket of the range in order, including empty ones. */
  series: {
      /** Start of the bucket. */
      time: number;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** Verifications by code. Codes that did not occur are omitted. */
      outcomes: { [name: string]: number };
      creditsSpent: number;
    }[];
  /** The 100 most frequent tags. */
  tags: {
      tag: string;
      total: number;
      valid: number;
    }[];
  /** Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none. */
  tagsUntold?: number;
};

/** The input of `analytics.getBudgetStats`. */
export type GetBudgetStatsInput = {
  /** Identifier of a budget, as createBudget gave it. */
  budgetId: string;
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7 days, else days. */
  granularity?: "minute" | "hour" | "day" | undefined;
  /** Only verifications with all of these tags. */
  tags?: readonly string[] | undefined;
};

/** The `data` of an answer of `analytics.getBudgetStats`. */
export type GetBudgetStatsOutput = {
  budgetId: string;
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "minute" | "hour" | "day";
  /** Number of verifications. */
  total: number;
  /** Number of valid ones. */
  valid: number;
  /** Verifications by code. Codes that did not occur are omitted. */
  outcomes: { [name: string]: number };
  creditsSpent: number;
  /** Every bucket of the range in order, including empty ones. */
  series: {
      /** Start of the bucket. */
      time: number;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** Verifications by code. Codes that did not occur are omitted. */
      outcomes: { [name: string]: number };
      creditsSpent: number;
    }[];
  /** The 100 most frequent tags. */
  tags: {
      tag: string;
      total: number;
      valid: number;
    }[];
  /** Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none. */
  tagsUntold?: number;
};

/** The input of `analytics.getIdentityStats`. */
export type GetIdentityStatsInput = {
  /** The identity's id, or your external id. */
  identity: string;
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7 days, else days. */
  granularity?: "minute" | "hour" | "day" | undefined;
  /** Only verifications with all of these tags. */
  tags?: readonly string[] | undefined;
};

/** The `data` of an answer of `analytics.getIdentityStats`. */
export type GetIdentityStatsOutput = {
  /** As in the request. */
  identity: string;
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "minute" | "hour" | "day";
  /** Number of verifications. */
  total: number;
  /** Number of valid ones. */
  valid: number;
  /** Verifications by code. Codes that did not occur are omitted. */
  outcomes: { [name: string]: number };
  creditsSpent: number;
  /** Every bucket of the range in order, including empty ones. */
  series: {
      /** Start of the bucket. */
      time: number;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** Verifications by code. Codes that did not occur are omitted. */
      outcomes: { [name: string]: number };
      creditsSpent: number;
    }[];
  /** The 100 most frequent tags. */
  tags: {
      tag: string;
      total: number;
      valid: number;
    }[];
  /** Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none. */
  tagsUntold?: number;
};

/** The input of `analytics.getKeyStats`. */
export type GetKeyStatsInput = {
  /** Identifier of a key, as createKey gave it; not the secret. */
  keyId: string;
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7 days, else days. */
  granularity?: "minute" | "hour" | "day" | undefined;
  /** Only verifications with all of these tags. */
  tags?: readonly string[] | undefined;
};

/** The `data` of an answer of `analytics.getKeyStats`. */
export type GetKeyStatsOutput = {
  keyId: string;
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "minute" | "hour" | "day";
  /** Number of verifications. */
  total: number;
  /** Number of valid ones. */
  valid: number;
  /** Verifications by code. Codes that did not occur are omitted. */
  outcomes: { [name: string]: number };
  creditsSpent: number;
  /** Every bucket of the range in order, including empty ones. */
  series: {
      /** Start of the bucket. */
      time: number;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** Verifications by code. Codes that did not occur are omitted. */
      outcomes: { [name: string]: number };
      creditsSpent: number;
    }[];
  /** The 100 most frequent tags. */
  tags: {
      tag: string;
      total: number;
      valid: number;
    }[];
  /** Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none. */
  tagsUntold?: number;
};

/** The input of `analytics.getRatelimitStats`. */
export type GetRatelimitStatsInput = {
  /** Name or id of the namespace. */
  namespace: string;
  /** Only decisions about this identifier. */
  identifier?: string | undefined;
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7 days, else days. */
  granularity?: "minute" | "hour" | "day" | undefined;
};

/** The `data` of an answer of `analytics.getRatelimitStats`. */
export type GetRatelimitStatsOutput = {
  /** As in the request. */
  namespace: string;
  identifier?: string;
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "minute" | "hour" | "day";
  /** Number of decisions. */
  total: number;
  passed: number;
  denied: number;
  /** Total cost that was charged. */
  cost: number;
  /** Every bucket of the range in order, including empty ones. */
  series: {
      /** Start of the bucket. */
      time: number;
      /** Number of decisions. */
      total: number;
      passed: number;
      denied: number;
      /** Total cost that was charged. */
      cost: number;
    }[];
  /** The 100 identifiers with the most denied decisions. */
  identifiers: {
      identifier: string;
      denied: number;
      total: number;
    }[];
  /** Decisions whose identifier is not counted, because a bucket holds at most 1,000 identifiers. Absent: none. */
  identifiersUntold?: number;
};

/** The input of `analytics.listDecisions`. */
export type ListDecisionsInput = {
  /** Only decisions at or after this Unix time in milliseconds. */
  start?: number | undefined;
  /** Only decisions before this Unix time in milliseconds. */
  end?: number | undefined;
  /** Only refusals: every code but `VALID` and `PASSED`. Default: false. */
  refused?: boolean | undefined;
  /** Only decisions with these codes. */
  codes?: readonly ("VALID" | "NOT_FOUND" | "FORBIDDEN" | "INSUFFICIENT_PERMISSIONS" | "USAGE_EXCEEDED" | "RATE_LIMITED" | "DISABLED" | "EXPIRED" | "PASSED" | "DENIED")[] | undefined;
  /** Only verifications of this key. */
  keyId?: string | undefined;
  /** Only verifications of keys of this API. */
  apiId?: string | undefined;
  /** Only verifications of keys of this identity. */
  identityId?: string | undefined;
  /** Only decisions in this rate limit namespace. */
  namespaceId?: string | undefined;
  /** Only decisions of this request: `meta.requestId` of its answer. */
  requestId?: string | undefined;
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `analytics.listDecisions`. */
export type ListDecisionsOutput = LoggedDecision[];

/** The input of `analytics.listTopIdentities`. */
export type ListTopIdentitiesInput = {
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Buckets that are counted, aligned to UTC. Omitted: hours for up to 7 days, else days. */
  granularity?: "hour" | "day" | undefined;
  /** Only verifications of keys of this API. */
  apiId?: string | undefined;
  /** Maximum number of entries. Default: 10. */
  limit?: number | undefined;
};

/** The `data` of an answer of `analytics.listTopIdentities`. */
export type ListTopIdentitiesOutput = {
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "hour" | "day";
  /**
   * Counts before this Unix time in milliseconds are missing, because a ranking examines a limited number of keys,
   * those of the newest buckets first. Ask for a shorter range or a coarser granularity. Absent: all are counted.
   */
  incompleteBefore?: number;
  identities: {
      identityId: string;
      /** Absent if the identity is deleted. */
      externalId?: string;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** Verifications by code. Codes that did not occur are omitted. */
      outcomes: { [name: string]: number };
      creditsSpent: number;
    }[];
};

/** The input of `analytics.listTopKeys`. */
export type ListTopKeysInput = {
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Buckets that are counted, aligned to UTC. Omitted: hours for up to 7 days, else days. */
  granularity?: "hour" | "day" | undefined;
  /** Only verifications of keys of this API. */
  apiId?: string | undefined;
  /** Maximum number of entries. Default: 10. */
  limit?: number | undefined;
};

/** The `data` of an answer of `analytics.listTopKeys`. */
export type ListTopKeysOutput = {
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "hour" | "day";
  /**
   * Counts before this Unix time in milliseconds are missing, because a ranking examines a limited number of keys,
   * those of the newest buckets first. Ask for a shorter range or a coarser granularity. Absent: all are counted.
   */
  incompleteBefore?: number;
  keys: {
      keyId: string;
      /** The API of the key. Absent if the key is deleted, or if the root key may not read all these keys. */
      apiId?: string;
      /**
       * The first characters of the key. Absent if the key is deleted, or if the root key may not read all these keys.
       */
      start?: string;
      /**
       * The name of the key, if it has one. Absent if the key is deleted, or if the root key may not read all these
       * keys.
       */
      name?: string;
      /**
       * The owner of the key, if it has one. Absent if the key is deleted, or if the root key may not read all these
       * keys.
       */
      externalId?: string;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** Verifications by code. Codes that did not occur are omitted. */
      outcomes: { [name: string]: number };
      creditsSpent: number;
    }[];
};

/** The input of `analytics.listUsage`. */
export type ListUsageInput = {
  /** The keys. With `apiIds` at most 100. Default: []. */
  keyIds?: readonly string[] | undefined;
  /** The APIs. Default: []. */
  apiIds?: readonly string[] | undefined;
  /** Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket. */
  start: number;
  /** End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket. */
  end: number;
  /** Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7 days, else days. */
  granularity?: "minute" | "hour" | "day" | undefined;
};

/** The `data` of an answer of `analytics.listUsage`. */
export type ListUsageOutput = {
  /** Start of the first bucket. */
  start: number;
  /** End of the last bucket. */
  end: number;
  granularity: "minute" | "hour" | "day";
  /** In the order of `keyIds`. */
  keys: {
      keyId: string;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** The buckets with verifications, in order. */
      series: {
          /** Start of the bucket. */
          time: number;
          total: number;
          valid: number;
        }[];
    }[];
  /** In the order of `apiIds`. */
  apis: {
      apiId: string;
      /** Number of verifications. */
      total: number;
      /** Number of valid ones. */
      valid: number;
      /** The buckets with verifications, in order. */
      series: {
          /** Start of the bucket. */
          time: number;
          total: number;
          valid: number;
        }[];
    }[];
};

/** The input of `permissions.createPermission`. */
export type CreatePermissionInput = {
  /** A label. Several permissions may have the same name. */
  name: string;
  /** The name that verifications use. Unique in the workspace, regardless of case. */
  slug: string;
  /** A description for you. Verifications do not return it. */
  description?: string | undefined;
};

/** The `data` of an answer of `permissions.createPermission`. */
export type CreatePermissionOutput = {
  permissionId: string;
};

/** The input of `permissions.createRole`. */
export type CreateRoleInput = {
  /** The name of the role. */
  name: string;
  /** A description for you. Verifications do not return it. */
  description?: string | undefined;
  /** Slugs. Permissions that do not exist yet are created, with the slug as their name. */
  permissions?: readonly string[] | undefined;
};

/** The `data` of an answer of `permissions.createRole`. */
export type CreateRoleOutput = {
  roleId: string;
};

/** The input of `permissions.deletePermission`. */
export type DeletePermissionInput = {
  /** The permission's id or its slug. */
  permission: string;
};

/** The `data` of an answer of `permissions.deletePermission`. */
export type DeletePermissionOutput = Record<string, never>;

/** The input of `permissions.deleteRole`. */
export type DeleteRoleInput = {
  /** The role's id or its name. */
  role: string;
};

/** The `data` of an answer of `permissions.deleteRole`. */
export type DeleteRoleOutput = Record<string, never>;

/** The input of `permissions.getPermission`. */
export type GetPermissionInput = {
  /** The permission's id or its slug. */
  permission: string;
};

/** The `data` of an answer of `permissions.getPermission`. */
export type GetPermissionOutput = Permission;

/** The input of `permissions.getRole`. */
export type GetRoleInput = {
  /** The role's id or its name. */
  role: string;
};

/** The `data` of an answer of `permissions.getRole`. */
export type GetRoleOutput = Role;

/** The input of `permissions.listPermissions`. */
export type ListPermissionsInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose ids, names, slugs and descriptions contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
};

/** The `data` of an answer of `permissions.listPermissions`. */
export type ListPermissionsOutput = Permission[];

/** The input of `permissions.listRoles`. */
export type ListRolesInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose ids, names and descriptions contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
};

/** The `data` of an answer of `permissions.listRoles`. */
export type ListRolesOutput = Role[];

/** The input of `permissions.setRolePermissions`. */
export type SetRolePermissionsInput = {
  /** The role's id or its name. */
  role?: string | undefined;
  /** The same as `role`, for clients that use this name. */
  roleId?: string | undefined;
  /** Slugs. Permissions that do not exist yet are created, with the slug as their name. */
  permissions: readonly string[];
};

/** The `data` of an answer of `permissions.setRolePermissions`. */
export type SetRolePermissionsOutput = Permission[];

/** The input of `permissions.updatePermission`. */
export type UpdatePermissionInput = {
  /** The permission's id or its slug. */
  permission: string;
  /** A label. Several permissions may have the same name. */
  name?: string | undefined;
  /** The name that verifications use. Unique in the workspace, regardless of case. */
  slug?: string | undefined;
  /** A description for you. Null or empty: none. */
  description?: string | null | undefined;
};

/** The `data` of an answer of `permissions.updatePermission`. */
export type UpdatePermissionOutput = Permission;

/** The input of `permissions.updateRole`. */
export type UpdateRoleInput = {
  /** The role's id or its name. */
  role: string;
  /** The name of the role. */
  name?: string | undefined;
  /** A description for you. Null or empty: none. */
  description?: string | null | undefined;
};

/** The `data` of an answer of `permissions.updateRole`. */
export type UpdateRoleOutput = {
  id: string;
  name: string;
  description?: string;
};

/** The input of `ratelimits.limit`. */
export type LimitInput = {
  /** Name or id of the namespace. A new name creates a namespace. */
  namespace: string;
  /** The identifier to count, such as a user id or an address. */
  identifier: string;
  /** Maximum cost per window. */
  limit: number;
  /** Length of the window in milliseconds. */
  duration: number;
  /**
   * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
   * `duration`. Default: "standard".
   */
  mode?: "standard" | "strict" | undefined;
  /**
   * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
   * see what a limit would do before it is in force. Default: false.
   */
  shadow?: boolean | undefined;
  /** Cost of this call. 0: check the limit without charging it. Default: 1. */
  cost?: number | undefined;
};

/** The `data` of an answer of `ratelimits.limit`. */
export type LimitOutput = {
  /** Whether the call passed. */
  success: boolean;
  /** The limit that applies: that of the override, if there is one. */
  limit: number;
  /** What remains in the window after this call. A denied call charges nothing. */
  remaining: number;
  /**
   * End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops counting, or
   * would if it were made now.
   */
  reset: number;
  /** Milliseconds until this cost would pass without other calls. 0 if it passed. Absent: it can never pass. */
  retryAfter?: number;
  /** The override that applies, if there is one. */
  overrideId?: string;
  /** Present if the limit is in shadow mode: it never denies. */
  shadow?: true;
  /** With `shadow`: whether the limit would have denied the call. */
  exceeded?: boolean;
};

/** The input of `ratelimits.multiLimit`. */
export type MultiLimitInput = readonly {
    /** Name or id of the namespace. A new name creates a namespace. */
    namespace: string;
    /** The identifier to count, such as a user id or an address. */
    identifier: string;
    /** Maximum cost per window. */
    limit: number;
    /** Length of the window in milliseconds. */
    duration: number;
    /**
     * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
     * `duration`. Default: "standard".
     */
    mode?: "standard" | "strict" | undefined;
    /**
     * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So
     * you see what a limit would do before it is in force. Default: false.
     */
    shadow?: boolean | undefined;
    /** Cost of this call. 0: check the limit without charging it. Default: 1. */
    cost?: number | undefined;
  }[];

/** The `data` of an answer of `ratelimits.multiLimit`. */
export type MultiLimitOutput = {
  /** Whether every entry passed. */
  passed: boolean;
  /** In the order of the request. */
  limits: {
      /** As in the request. */
      namespace: string;
      identifier: string;
      /** Whether this entry alone would pass. */
      passed: boolean;
      /** The limit that applies: that of the override, if there is one. */
      limit: number;
      /** What remains in the window after this call. A denied call charges nothing. */
      remaining: number;
      /**
       * End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops
       * counting, or would if it were made now.
       */
      reset: number;
      /** Milliseconds until this cost would pass without other calls. 0 if it passed. Absent: it can never pass. */
      retryAfter?: number;
      /** The override that applies, if there is one. */
      overrideId?: string;
      /** Present if the limit is in shadow mode: it never denies. */
      shadow?: true;
      /** With `shadow`: whether the limit would have denied the call. */
      exceeded?: boolean;
    }[];
};

/** The input of `ratelimits.deleteNamespace`. */
export type DeleteNamespaceInput = {
  /** Name or id of the namespace. */
  namespace: string;
};

/** The `data` of an answer of `ratelimits.deleteNamespace`. */
export type DeleteNamespaceOutput = Record<string, never>;

/** The input of `ratelimits.deleteOverride`. */
export type DeleteOverrideInput = {
  /** Name or id of the namespace. */
  namespace: string;
  /** An identifier, or a pattern. In a pattern `*` matches any characters except line feeds. */
  identifier: string;
};

/** The `data` of an answer of `ratelimits.deleteOverride`. */
export type DeleteOverrideOutput = Record<string, never>;

/** The input of `ratelimits.explainLimit`. */
export type ExplainLimitInput = {
  /** Name or id of the namespace. */
  namespace: string;
  /** The identifier to count, such as a user id or an address. */
  identifier: string;
  /** Maximum cost per window. */
  limit: number;
  /** Length of the window in milliseconds. */
  duration: number;
  /**
   * How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
   * `duration`. Default: "standard".
   */
  mode?: "standard" | "strict" | undefined;
  /**
   * `true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
   * see what a limit would do before it is in force. Default: false.
   */
  shadow?: boolean | undefined;
  /** Cost of this call. 0: check the limit without charging it. Default: 1. */
  cost?: number | undefined;
};

/** The `data` of an answer of `ratelimits.explainLimit`. */
export type ExplainLimitOutput = {
  /** Whether the call would pass. */
  success: boolean;
  /** What was compared, as a sentence. */
  detail: string;
  namespaceId: string;
  /** The limit that applies: that of the override, if there is one. */
  limit: number;
  /** Length of its window in milliseconds. */
  duration: number;
  /** Present if the limit is strict. */
  mode?: "strict";
  /** Present if the limit is in shadow mode: it never denies. */
  shadow?: true;
  /** What the call costs. */
  cost: number;
  /** The counter: what was charged in the sliding window that ends now. */
  used: number;
  /** What remains, without this call. */
  remaining: number;
  /** Milliseconds until this cost would pass without other calls. 0 if it passes. Absent: it never passes. */
  retryAfter?: number;
  /**
   * The current window, Unix times in milliseconds. Of a strict limit: from its oldest charge until that stops
   * counting.
   */
  window: {
    startAt: number;
    endAt: number;
  };
  /** The override that applies. Absent: none matches. */
  override?: {
    overrideId: string;
    /** An identifier, or a pattern. */
    identifier: string;
    limit: number;
    /** Length of the window in milliseconds. */
    duration: number;
    /** How the limit counts. Omitted: as the call says. */
    mode?: "standard" | "strict";
    /** Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says. */
    shadow?: boolean;
  };
  /** Further overrides that match, in the order of precedence. At most 100. */
  others: {
      overrideId: string;
      /** An identifier, or a pattern. */
      identifier: string;
      limit: number;
      /** Length of the window in milliseconds. */
      duration: number;
      /** How the limit counts. Omitted: as the call says. */
      mode?: "standard" | "strict";
      /** Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says. */
      shadow?: boolean;
    }[];
};

/** The input of `ratelimits.getDescriptors`. */
export type GetDescriptorsInput = {
  /** Name or id of the namespace. */
  namespace: string;
};

/** The `data` of an answer of `ratelimits.getDescriptors`. */
export type GetDescriptorsOutput = {
  namespaceId: string;
  /** Name of the namespace. */
  namespace: string;
  /** The tree, as the configuration of envoyproxy/ratelimit writes it. */
  descriptors: { [name: string]: unknown }[];
  /** Whether a call charges all its descriptors or none. */
  atomic: boolean;
  /** Whether answers have dynamic metadata. */
  metadata: boolean;
  /** Time of its last change, Unix time in milliseconds. Absent: there is no tree. */
  updatedAt?: number;
};

/** The input of `ratelimits.getOverride`. */
export type GetOverrideInput = {
  /** Name or id of the namespace. */
  namespace: string;
  /** An identifier, or a pattern. In a pattern `*` matches any characters except line feeds. */
  identifier: string;
};

/** The `data` of an answer of `ratelimits.getOverride`. */
export type GetOverrideOutput = Override;

/** The input of `ratelimits.listNamespaces`. */
export type ListNamespacesInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose names and ids contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
};

/** The `data` of an answer of `ratelimits.listNamespaces`. */
export type ListNamespacesOutput = {
    id: string;
    name: string;
    /** Time of its first use, Unix time in milliseconds. */
    createdAt: number;
  }[];

/** The input of `ratelimits.listOverrides`. */
export type ListOverridesInput = {
  /** Name or id of the namespace. */
  namespace: string;
  /** Maximum number of entries per page. Default: 50. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `ratelimits.listOverrides`. */
export type ListOverridesOutput = {
  overrides: Override[];
  /** The same as `pagination.cursor`. */
  cursor?: string;
};

/** The input of `ratelimits.setDescriptors`. */
export type SetDescriptorsInput = {
  /** Name or id of the namespace. */
  namespace: string;
  /**
   * The tree, as the configuration of envoyproxy/ratelimit writes it. Each descriptor has a `key` and may have
   * `value`, `rate_limit` (`requests_per_unit`, `unit`, `unlimited`, `name`, `replaces`), `shadow_mode`, `quota_mode`,
   * `share_threshold`, `detailed_metric`, `value_to_metric` and `descriptors`, which are the next level. At most 10000
   * descriptors on 16 levels, of 1 MiB together.
   */
  descriptors: readonly { [name: string]: unknown }[];
  /**
   * Whether a call charges all its descriptors or none. Otherwise each is charged, also when another one is over.
   * Default: false.
   */
  atomic?: boolean | undefined;
  /**
   * Whether answers have dynamic metadata with the domain, the descriptors and the quotas that are over. Default:
   * false.
   */
  metadata?: boolean | undefined;
};

/** The `data` of an answer of `ratelimits.setDescriptors`. */
export type SetDescriptorsOutput = Record<string, never>;

/** The input of `ratelimits.setOverride`. */
export type SetOverrideInput = {
  /** Name or id of the namespace. */
  namespace: string;
  /**
   * An identifier, or a pattern. In a pattern `*` matches any characters except line feeds. A pattern has at most 8
   * asterisks.
   */
  identifier: string;
  /** Maximum cost per window. 0 denies every call. */
  limit: number;
  /** Length of the window in milliseconds. */
  duration: number;
  /** How the limit counts. Omitted: as the call says. */
  mode?: "standard" | "strict" | undefined;
  /** Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says. */
  shadow?: boolean | undefined;
};

/** The `data` of an answer of `ratelimits.setOverride`. */
export type SetOverrideOutput = {
  overrideId: string;
};

/** The input of `portal.createSession`. */
export type CreateSessionInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
  /** Your own identifier of the owner. An identity that does not exist yet is created. */
  externalId?: string | undefined;
  /** Instead of `externalId`: the id or external id of an existing identity. */
  identity?: string | undefined;
  /**
   * What the holder of the session may do with the keys: `list` them, `create` new ones, `reroll`, `rename` and
   * `delete` them, see their `usage`, and see what is `left` of their credits and budgets. The root key needs the
   * permission for each action. Omitted: what the `portal` of the API says.
   */
  actions?: readonly ("list" | "create" | "reroll" | "rename" | "delete" | "usage" | "left")[] | undefined;
  /** Limits on the keys. */
  keys?: {
    /** The most keys that the owner can have in the API. Expired keys do not count. Default: 10. */
    max?: number | undefined;
    /** Prefixes of new keys, the default first. Omitted: only the prefix of the API. */
    prefixes?: readonly string[] | undefined;
    /** The longest life of a new key, in milliseconds. Omitted: a new key needs no expiry. */
    expiresInMax?: number | undefined;
    /** Names of existing roles that a new key may have. It has all of them by default. */
    roles?: readonly string[] | undefined;
  } | undefined;
  /** How the page looks. A member that is omitted is as the `portal` of the API says. */
  page?: {
    /** Your name, in the title. */
    name?: string | undefined;
    /** Your logo: an https address that every browser can load. It is shown 32 pixels high. */
    logoUrl?: string | undefined;
    /** The color of buttons and links, such as `#246bce`. It is made lighter or darker where it could not be read. */
    color?: string | undefined;
    /** The language of the page. Omitted: the first of the browser's languages that is available, or English. */
    language?: "en" | "de" | "fr" | "es" | "pt" | "ja" | "ar" | undefined;
    /** Where the link back leads. Omitted: there is none. */
    returnUrl?: string | undefined;
  } | undefined;
  /** When the session ends, in milliseconds from now: at most one hour. Default: 900000. */
  expiresIn?: number | undefined;
};

/** The `data` of an answer of `portal.createSession`. */
export type CreateSessionOutput = {
  sessionId: string;
  /** The token of the session. Only this response contains it. */
  token: Secret;
  /** The address of the page, with the token. Absolute if the service has `LATCHKEY_PUBLIC_URL`; otherwise the path. */
  url: Secret;
  /** Unix time in milliseconds at which the session ends. */
  expiresAt: number;
};

/** The input of `portal.deletePortalSessions`. */
export type DeletePortalSessionsInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
  /** Only sessions of this identity: its id, or your external id. */
  identity?: string | undefined;
  /** Only this session. */
  sessionId?: string | undefined;
};

/** The `data` of an answer of `portal.deletePortalSessions`. */
export type DeletePortalSessionsOutput = {
  /** Number of sessions that this call ended. */
  deleted: number;
};

/** The input of `portal.listPortalSessions`. */
export type ListPortalSessionsInput = {
  /** Identifier of an API, as createApi gave it. */
  apiId: string;
  /** Only sessions of this identity: its id, or your external id. */
  identity?: string | undefined;
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `portal.listPortalSessions`. */
export type ListPortalSessionsOutput = PortalSession[];

/** The input of `rootKeys.createRootKey`. */
export type CreateRootKeyInput = {
  /** A label for you. End users never see it. */
  name: string;
  /**
   * Permissions such as `apis.*.create_key`, or `*` for an administrator. Each of the three segments may be `*`. The
   * calling root key must have all of them.
   */
  permissions: readonly string[];
  /** Unix time in milliseconds at which it expires. Omitted: never. */
  expires?: number | undefined;
  /**
   * What happens if it is reported as leaked. `mark`, the default: it gets `leakedAt` and still works. `disable`: it
   * is disabled too, unless it is the last administrator of its workspace.
   */
  leakAction?: "mark" | "disable" | undefined;
};

/** The `data` of an answer of `rootKeys.createRootKey`. */
export type CreateRootKeyOutput = {
  rootKeyId: string;
  /** The root key. Only this response contains it: the service stores a hash. */
  key: Secret;
};

/** The input of `rootKeys.deleteRootKey`. */
export type DeleteRootKeyInput = {
  /** Identifier of a root key; not the root key itself. */
  rootKeyId: string;
  /**
   * Whether to delete the root keys that it created too, and those that these created. A call deletes up to 200 of
   * them, all or none; repeat it while `deletedDescendants` is 200. It also works after the root key itself was
   * deleted.
   */
  descendants?: boolean | undefined;
};

/** The `data` of an answer of `rootKeys.deleteRootKey`. */
export type DeleteRootKeyOutput = {
  /** How many root keys that it created were deleted, directly or indirectly. */
  deletedDescendants: number;
  /** How many root keys that it created, directly or indirectly, are not deleted, in all workspaces. */
  livingDescendants: number;
};

/** The input of `rootKeys.deleteSessions`. */
export type DeleteSessionsInput = {
  /** Identifier of a root key; not the root key itself. */
  rootKeyId: string;
  /** Only this session. Omitted: all sessions of the root key. */
  sessionId?: string | undefined;
};

/** The `data` of an answer of `rootKeys.deleteSessions`. */
export type DeleteSessionsOutput = {
  /** Number of sessions that this call ended. */
  deleted: number;
};

/** The input of `rootKeys.listRootKeys`. */
export type ListRootKeysInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose names and ids contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
};

/** The `data` of an answer of `rootKeys.listRootKeys`. */
export type ListRootKeysOutput = RootKey[];

/** The input of `rootKeys.listSessions`. */
export type ListSessionsInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Identifier of a root key; not the root key itself. */
  rootKeyId?: string | undefined;
};

/** The `data` of an answer of `rootKeys.listSessions`. */
export type ListSessionsOutput = Session[];

/** The input of `rootKeys.rerollRootKey`. */
export type RerollRootKeyInput = {
  /** Identifier of a root key; not the root key itself. */
  rootKeyId: string;
  /** How long the old root key stays valid, in milliseconds. */
  expiration: number;
};

/** The `data` of an answer of `rootKeys.rerollRootKey`. */
export type RerollRootKeyOutput = {
  rootKeyId: string;
  /** The root key. Only this response contains it: the service stores a hash. */
  key: Secret;
};

/** The input of `rootKeys.updateRootKey`. */
export type UpdateRootKeyInput = {
  /** Identifier of a root key; not the root key itself. */
  rootKeyId: string;
  /** A label for you. End users never see it. */
  name?: string | undefined;
  /**
   * Permissions such as `apis.*.create_key`, or `*` for an administrator. Each of the three segments may be `*`. The
   * calling root key must have all of them.
   */
  permissions?: readonly string[] | undefined;
  /** Whether the service accepts it. */
  enabled?: boolean | undefined;
  /** Unix time in milliseconds at which it expires. Null: never. */
  expires?: number | null | undefined;
  /**
   * What happens if it is reported as leaked. `mark`, the default: it gets `leakedAt` and still works. `disable`: it
   * is disabled too, unless it is the last administrator of its workspace.
   */
  leakAction?: "mark" | "disable" | undefined;
};

/** The `data` of an answer of `rootKeys.updateRootKey`. */
export type UpdateRootKeyOutput = Record<string, never>;

/** The input of `workspaces.createWorkspace`. */
export type CreateWorkspaceInput = {
  /** A label for you. End users never see it. */
  name: string;
  /** Maximum number of calls per minute of all its root keys together. 0: none. */
  requestsPerMinute?: number | undefined;
};

/** The `data` of an answer of `workspaces.createWorkspace`. */
export type CreateWorkspaceOutput = {
  workspaceId: string;
  rootKeyId: string;
  /** The root key. Only this response contains it: the service stores a hash. */
  key: Secret;
};

/** The input of `workspaces.listWorkspaces`. */
export type ListWorkspacesInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
  /** Only entries whose names and ids contain this text, regardless of case. Blank: all. */
  search?: string | undefined;
};

/** The `data` of an answer of `workspaces.listWorkspaces`. */
export type ListWorkspacesOutput = Workspace[];

/** The input of `workspaces.updateWorkspace`. */
export type UpdateWorkspaceInput = {
  /** Identifier of a workspace, as createWorkspace gave it. */
  workspaceId: string;
  /** A label for you. End users never see it. */
  name?: string | undefined;
  enabled?: boolean | undefined;
  /** Maximum number of calls per minute of all its root keys together. 0: none. Null: unlimited. */
  requestsPerMinute?: number | null | undefined;
};

/** The `data` of an answer of `workspaces.updateWorkspace`. */
export type UpdateWorkspaceOutput = Record<string, never>;

/** The input of `audit.listEvents`. */
export type ListEventsInput = {
  /** Only events at or after this Unix time in milliseconds. */
  start?: number | undefined;
  /** Only events before this Unix time in milliseconds. */
  end?: number | undefined;
  /** Only events of this actor: the id of a root key, `cli` or `system`. */
  actor?: string | undefined;
  /** Only events of this operation, such as `keys.deleteKey`. */
  action?: string | undefined;
  /** Only events that affected this resource: the id of a key, an API, a root key or any other resource. */
  target?: string | undefined;
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `audit.listEvents`. */
export type ListEventsOutput = AuditEvent[];

/** The input of `events.listEvents`. */
export type EventsListEventsInput = {
  /** `asc`: the oldest first. `desc`: the newest first. Default: "asc". */
  order?: "asc" | "desc" | undefined;
  /** Only events after this one: the id of an event. */
  after?: string | undefined;
  /** Only events of these types. */
  types?: readonly ("key.created" | "key.updated" | "key.disabled" | "key.enabled" | "key.deleted" | "key.restored" | "key.rerolled" | "key.derived" | "key.expiring" | "key.expired" | "key.first_used" | "key.unused" | "keys.imported" | "credits.low" | "credits.refilled" | "plan.created" | "plan.updated" | "plan.deleted" | "budget.created" | "budget.updated" | "budget.deleted" | "budget.refilled" | "budget.threshold_reached" | "hold.expired" | "hold.uncovered" | "limit.exceeded" | "root_key.created" | "root_key.updated" | "root_key.disabled" | "root_key.enabled" | "root_key.deleted" | "root_key.leaked" | "root_key.rerolled" | "identity.created" | "identity.updated" | "identity.deleted" | "role.created" | "role.updated" | "role.deleted" | "permission.created" | "permission.updated" | "permission.deleted" | "api.created" | "api.updated" | "api.deleted" | "namespace.created" | "namespace.deleted" | "descriptors.set" | "override.set" | "override.deleted" | "workspace.created" | "workspace.updated" | "quota.near" | "webhook.created" | "webhook.updated" | "webhook.disabled" | "webhook.enabled" | "webhook.deleted" | "webhook.test" | "leak.reported" | "auth.failures")[] | undefined;
  /** Only events of this object: the id of a key, an API, a root key or any other resource. */
  objectId?: string | undefined;
  /** Only events at or after this Unix time in milliseconds. */
  start?: number | undefined;
  /** Only events before this Unix time in milliseconds. */
  end?: number | undefined;
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `events.listEvents`. */
export type EventsListEventsOutput = Event[];

/** The input of `webhooks.createWebhook`. */
export type CreateWebhookInput = {
  /**
   * The URL to which events are sent. It must begin with `https://`, and its host must have public addresses only,
   * unless the operator allows others.
   */
  endpoint: string;
  /** A label for you. */
  name?: string | null | undefined;
  /** The types of events that it gets. Null or omitted: all. */
  eventTypes?: readonly ("key.created" | "key.updated" | "key.disabled" | "key.enabled" | "key.deleted" | "key.restored" | "key.rerolled" | "key.derived" | "key.expiring" | "key.expired" | "key.first_used" | "key.unused" | "keys.imported" | "credits.low" | "credits.refilled" | "plan.created" | "plan.updated" | "plan.deleted" | "budget.created" | "budget.updated" | "budget.deleted" | "budget.refilled" | "budget.threshold_reached" | "hold.expired" | "hold.uncovered" | "limit.exceeded" | "root_key.created" | "root_key.updated" | "root_key.disabled" | "root_key.enabled" | "root_key.deleted" | "root_key.leaked" | "root_key.rerolled" | "identity.created" | "identity.updated" | "identity.deleted" | "role.created" | "role.updated" | "role.deleted" | "permission.created" | "permission.updated" | "permission.deleted" | "api.created" | "api.updated" | "api.deleted" | "namespace.created" | "namespace.deleted" | "descriptors.set" | "override.set" | "override.deleted" | "workspace.created" | "workspace.updated" | "quota.near" | "webhook.created" | "webhook.updated" | "webhook.disabled" | "webhook.enabled" | "webhook.deleted" | "webhook.test" | "leak.reported" | "auth.failures")[] | null | undefined;
  /**
   * The APIs of whose keys it gets events, and of which it gets their own events. Events without an `apiId`, such as
   * those of root keys, are left out. Null or omitted: all events.
   */
  apiIds?: readonly string[] | null | undefined;
};

/** The `data` of an answer of `webhooks.createWebhook`. */
export type CreateWebhookOutput = {
  webhookId: string;
  /** The secret that signs messages: `whsec_` and Base64. Only this response contains it. */
  secret: Secret;
};

/** The input of `webhooks.deleteWebhook`. */
export type DeleteWebhookInput = {
  /** Identifier of a webhook, as createWebhook gave it. */
  webhookId: string;
};

/** The `data` of an answer of `webhooks.deleteWebhook`. */
export type DeleteWebhookOutput = Record<string, never>;

/** The input of `webhooks.getWebhook`. */
export type GetWebhookInput = {
  /** Identifier of a webhook, as createWebhook gave it. */
  webhookId: string;
};

/** The `data` of an answer of `webhooks.getWebhook`. */
export type GetWebhookOutput = Webhook;

/** The input of `webhooks.listDeliveries`. */
export type ListDeliveriesInput = {
  /** Identifier of a webhook, as createWebhook gave it. */
  webhookId: string;
  /** Only deliveries in this state. */
  status?: "pending" | "delivered" | "dead" | undefined;
  /** Only the delivery of this event. */
  eventId?: string | undefined;
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `webhooks.listDeliveries`. */
export type ListDeliveriesOutput = WebhookDelivery[];

/** The input of `webhooks.listWebhooks`. */
export type ListWebhooksInput = {
  /** Maximum number of entries per page. Default: 100. */
  limit?: number | undefined;
  /** Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page. */
  cursor?: string | undefined;
};

/** The `data` of an answer of `webhooks.listWebhooks`. */
export type ListWebhooksOutput = Webhook[];

/** The input of `webhooks.redeliver`. */
export type RedeliverInput = {
  /** Identifier of a webhook, as createWebhook gave it. */
  webhookId: string;
  /** The event. Omitted: all dead letters. */
  eventId?: string | undefined;
};

/** The `data` of an answer of `webhooks.redeliver`. */
export type RedeliverOutput = {
  /** Deliveries that were started. */
  count: number;
  /** Whether there may be further dead letters: call again. */
  hasMore: boolean;
};

/** The input of `webhooks.rotateSecret`. */
export type RotateSecretInput = {
  /** Identifier of a webhook, as createWebhook gave it. */
  webhookId: string;
  /** How long the former secret signs messages too, in milliseconds. 0: it ends at once. Default: 86400000. */
  expiration?: number | undefined;
};

/** The `data` of an answer of `webhooks.rotateSecret`. */
export type RotateSecretOutput = {
  webhookId: string;
  /** The secret that signs messages: `whsec_` and Base64. Only this response contains it. */
  secret: Secret;
};

/** The input of `webhooks.sendTest`. */
export type SendTestInput = {
  /** Identifier of a webhook, as createWebhook gave it. */
  webhookId: string;
};

/** The `data` of an answer of `webhooks.sendTest`. */
export type SendTestOutput = {
  eventId: string;
};

/** The input of `webhooks.updateWebhook`. */
export type UpdateWebhookInput = {
  /** Identifier of a webhook, as createWebhook gave it. */
  webhookId: string;
  /**
   * The URL to which events are sent. It must begin with `https://`, and its host must have public addresses only,
   * unless the operator allows others.
   */
  endpoint?: string | undefined;
  /** A label for you. */
  name?: string | null | undefined;
  /** The types of events that it gets. Null or omitted: all. */
  eventTypes?: readonly ("key.created" | "key.updated" | "key.disabled" | "key.enabled" | "key.deleted" | "key.restored" | "key.rerolled" | "key.derived" | "key.expiring" | "key.expired" | "key.first_used" | "key.unused" | "keys.imported" | "credits.low" | "credits.refilled" | "plan.created" | "plan.updated" | "plan.deleted" | "budget.created" | "budget.updated" | "budget.deleted" | "budget.refilled" | "budget.threshold_reached" | "hold.expired" | "hold.uncovered" | "limit.exceeded" | "root_key.created" | "root_key.updated" | "root_key.disabled" | "root_key.enabled" | "root_key.deleted" | "root_key.leaked" | "root_key.rerolled" | "identity.created" | "identity.updated" | "identity.deleted" | "role.created" | "role.updated" | "role.deleted" | "permission.created" | "permission.updated" | "permission.deleted" | "api.created" | "api.updated" | "api.deleted" | "namespace.created" | "namespace.deleted" | "descriptors.set" | "override.set" | "override.deleted" | "workspace.created" | "workspace.updated" | "quota.near" | "webhook.created" | "webhook.updated" | "webhook.disabled" | "webhook.enabled" | "webhook.deleted" | "webhook.test" | "leak.reported" | "auth.failures")[] | null | undefined;
  /**
   * The APIs of whose keys it gets events, and of which it gets their own events. Events without an `apiId`, such as
   * those of root keys, are left out. Null or omitted: all events.
   */
  apiIds?: readonly string[] | null | undefined;
  /** Whether it gets events. */
  enabled?: boolean | undefined;
};

/** The `data` of an answer of `webhooks.updateWebhook`. */
export type UpdateWebhookOutput = Record<string, never>;

/** The input of `system.getFindings`. */
export type GetFindingsInput = Record<string, never>;

/** The `data` of an answer of `system.getFindings`. */
export type GetFindingsOutput = {
  /** Active keys that expire within 14 days. Absent without `apis.*.read_key`. */
  keysExpiring?: {
    /** At most 1,000: then there may be more. */
    count: number;
    /** The first 20. */
    keys: {
        keyId: string;
        apiId: string;
        start: string;
        name?: string;
        expires: number;
      }[];
  };
  /**
   * Active keys with at most a tenth of their refill left, or at most 10 credits without a refill. Absent without
   * `apis.*.read_key`.
   */
  creditsLow?: {
    /** At most 1,000: then there may be more. */
    count: number;
    /** The first 20. */
    keys: {
        keyId: string;
        apiId: string;
        start: string;
        name?: string;
        remaining: number;
        refillAmount?: number;
      }[];
  };
  /**
   * Active keys that were reported as leaked, as long as the audit log has the report. Absent without
   * `apis.*.read_key`.
   */
  keysLeaked?: {
    /** At most 1,000: then there may be more. */
    count: number;
    /** The first 20. */
    keys: {
        keyId: string;
        apiId: string;
        start: string;
        name?: string;
        /** When it was first reported, as Unix time in milliseconds. */
        leakedAt: number;
      }[];
  };
  /**
   * The first 20 APIs with active keys that do not obey its policy: keys that are older than it, and those whose plan
   * or identity has lost its limits. Absent without `apis.*.read_key`.
   */
  keysAgainstPolicy?: {
      apiId: string;
      name: string;
      /** At most 1,000: then there may be more. */
      count: number;
      /** The first 20, the oldest first. */
      keys: {
          keyId: string;
          apiId: string;
          start: string;
          name?: string;
          expires?: number;
          /** The members of the policy that it does not obey. */
          against: ("expiry" | "limitsRequired" | "prefixFixed")[];
        }[];
    }[];
  /** The first 20 enabled root keys that made no call for 90 days. Absent without `rootKeys.*.read_root_key`. */
  rootKeysUnused?: {
      rootKeyId: string;
      name: string;
      createdAt: number;
      lastUsedAt?: number;
    }[];
  /** The first 20 enabled root keys with the permission `*`. Absent without `rootKeys.*.read_root_key`. */
  rootKeysUnrestricted?: {
      rootKeyId: string;
      name: string;
      createdAt: number;
      lastUsedAt?: number;
    }[];
  /** The first 20 enabled root keys that were reported as leaked. Absent without `rootKeys.*.read_root_key`. */
  rootKeysLeaked?: {
      rootKeyId: string;
      name: string;
      createdAt: number;
      lastUsedAt?: number;
      /** When it was first reported, as Unix time in milliseconds. */
      leakedAt: number;
    }[];
  /**
   * Webhooks that the service disabled, because their endpoint failed for too long or answered 410. Absent without
   * `webhooks.*.read_webhook`.
   */
  webhooksDisabled?: {
      webhookId: string;
      name?: string;
      endpoint: string;
      /** Unix time in milliseconds. */
      disabledAt: number;
      /** As in `disabled` of `webhooks.getWebhook`. */
      reason: "failing" | "gone";
    }[];
  /**
   * Webhooks with deliveries that were given up. `webhooks.redeliver` sends them again. Absent without
   * `webhooks.*.read_webhook`.
   */
  webhooksDead?: {
      webhookId: string;
      name?: string;
      endpoint: string;
      /** As `dead` of `webhooks.getWebhook`. */
      dead: number;
    }[];
};

/** The input of `system.getStatus`. */
export type GetStatusInput = Record<string, never>;

/** The `data` of an answer of `system.getStatus`. */
export type GetStatusOutput = {
  /** As `/health/ready` reports it. */
  status: "ok" | "degraded" | "fail" | "shutting down";
  /** Unix time in milliseconds at which the node started. */
  startedAt: number;
  components: {
      name: "database" | "storage" | "claim" | "redis" | "analytics";
      status: "ok" | "degraded" | "off";
      /** What is wrong; of a Redis that answers, which servers count. */
      detail?: string;
    }[];
  /** The edges of the workspace that asked this node for changes within 10 seconds. Absent: there are none. */
  edges?: {
    /** How many there are. */
    count: number;
    /** At most 100, in the order of their ids. */
    list: {
        id: string;
        /** `process`: `latchkey edge`; `library`: `LocalLatchkey`. */
        kind: "process" | "library";
        version: string;
        /** Absent: it has none. */
        name?: string;
        /** The root key of the edge. */
        rootKeyId: string;
        address: string;
        /** Keys and root keys in its memory. */
        records: number;
        /** Counts of verifications that it has not delivered. */
        reports: number;
        /** Parts of limits that it holds. Absent: its release has none. */
        leases?: number;
        /** Milliseconds since it last asked for changes. */
        ageMs: number;
      }[];
  };
  service?: {
    version: string;
    /** Version of Node.js. */
    node: string;
    configuration: {
        /** The name in the environment. */
        name: string;
        /** The effective value: times in milliseconds, sizes in bytes. Of a secret `set`. Empty: none. */
        value: string;
        isSecret: boolean;
      }[];
    /** The scheduled backups of the embedded database. Absent: there is no schedule. */
    backups?: {
      /** Milliseconds between two backups. */
      everyMs: number;
      /** When the newest one was made. Absent: there is none. */
      lastMadeAt?: number;
      /** Its size. */
      bytes?: number;
      /** When the next one is due. */
      nextAt: number;
      /** Attempts that failed since the start. */
      failures: number;
      /** Why the last attempt failed. Absent: it succeeded. */
      trouble?: string;
    };
    /** The last 10 minutes of the node, for all workspaces; `minutes` covers an hour. */
    recent: {
      /** Unix time in milliseconds from which on calls are counted. */
      since: number;
      /** Calls of `keys.verifyKey`. 0 with `LATCHKEY_METRICS=off`. */
      verifications: number;
      /** Half of them were answered in at most this time, in milliseconds. */
      p50Ms?: number;
      /** 99 % of them were answered in at most this time. */
      p99Ms?: number;
      /** Look-ups that were refused, because the budget for unknown keys, root keys and sessions was used up. */
      lookupsRefused: number;
      /** The last 60 minutes one by one, the oldest first. The last one is in progress. */
      minutes: {
          /** Unix time in milliseconds from which on calls are counted. */
          since: number;
          /** Calls of `keys.verifyKey`. 0 with `LATCHKEY_METRICS=off`. */
          verifications: number;
          /** Half of them were answered in at most this time, in milliseconds. */
          p50Ms?: number;
          /** 99 % of them were answered in at most this time. */
          p99Ms?: number;
        }[];
    };
  };
};

/** The input of `system.listDecisions`. */
export type SystemListDecisionsInput = {
  /** Only decisions at or after this Unix time in milliseconds. Default: 0. */
  since?: number | undefined;
  /** Only verifications of keys of this API. */
  apiId?: string | undefined;
  /** Only verifications of this key. */
  keyId?: string | undefined;
  /** Maximum number of decisions. Default: 100. */
  limit?: number | undefined;
};

/** The `data` of an answer of `system.listDecisions`. */
export type SystemListDecisionsOutput = {
  decisions: {
      /** Unique among the decisions of all nodes. */
      id: string;
      /** Unix time in milliseconds. */
      at: number;
      /** Time that the decision took, in microseconds. */
      latencyUs: number;
      kind: "verification" | "ratelimit";
      /** Of a verification: its code. */
      code?: "VALID" | "NOT_FOUND" | "FORBIDDEN" | "INSUFFICIENT_PERMISSIONS" | "USAGE_EXCEEDED" | "RATE_LIMITED" | "DISABLED" | "EXPIRED";
      /** Of a verification: its tags. */
      tags?: string[];
      /** Of a verification: the credits that it spent. */
      creditsSpent?: number;
      /** Of a verification: the key. Absent if it does not exist, as are its API and identity. */
      keyId?: string;
      /** Of a verification: the API of the key. */
      apiId?: string;
      /** Of a verification: the identity of the key. */
      identityId?: string;
      /** Of a rate limit: the namespace. */
      namespaceId?: string;
      /** Of a rate limit: the identifier. */
      identifier?: string;
      /** Of a rate limit: whether it was allowed. */
      passed?: boolean;
      /** Of a rate limit: the cost that was charged. */
      cost?: number;
    }[];
};

/** The input of `system.search`. */
export type SearchInput = {
  /** Words, an id or a key string. Blank: no results. */
  query: string | Secret;
  /** Maximum number of results of each kind, exact matches not counted. Default: 5. */
  limit?: number | undefined;
};

/** The `data` of an answer of `system.search`. */
export type SearchOutput = {
  results: SearchResult[];
  /** Whether everything was examined. If not, older objects may match too. */
  isComplete: boolean;
};

/** The `data` of `key.created`. A key was created. */
export type KeyCreatedEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  name?: string;
  /** The beginning of the key string. */
  start?: string;
  expires?: number;
  /** The key that it replaces. */
  rerolledFrom?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `key.updated`. Settings of a key changed. */
export type KeyUpdatedEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** Names of the members that changed. */
  changed: string[];
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `key.disabled`. A key was disabled. */
export type KeyDisabledEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `key.enabled`. A key was enabled again. */
export type KeyEnabledEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `key.deleted`. A key was deleted. */
export type KeyDeletedEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** Whether the key was erased from the database. */
  permanent: boolean;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `key.restored`. A deleted key was restored. */
export type KeyRestoredEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** Whether it is enabled. A key that was reported as leaked is restored disabled. */
  enabled: boolean;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `key.rerolled`. A key was replaced by another one. */
export type KeyRerolledEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  newKeyId: string;
  /** When the old key expires, as Unix time in milliseconds. Null: never. */
  expires: number | null;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/**
 * The `data` of `key.derived`. A key was derived from a key of which no derived key is stored: its first one, or the
 * first after a while.
 */
export type KeyDerivedEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  derivedKeyId: string;
  /** When the derived key ends at the latest, as Unix time in milliseconds. */
  expires: number;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `key.expiring`. A key expires soon. */
export type KeyExpiringEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** When it expires, as Unix time in milliseconds. */
  expires: number;
  /** The days before its expiry for which the event was due. */
  days: number;
};

/** The `data` of `key.expired`. A key expired. */
export type KeyExpiredEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** When it expired, as Unix time in milliseconds. */
  expires: number;
};

/** The `data` of `key.first_used`. A key was verified for the first time. */
export type KeyFirstUsedEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** When it was verified, as Unix time in milliseconds. */
  usedAt: number;
};

/** The `data` of `key.unused`. A key was not verified for 90 days. */
export type KeyUnusedEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** Its last verification, as Unix time in milliseconds. Null: none. */
  lastUsedAt: number | null;
  days: number;
};

/** The `data` of `keys.imported`. Keys were imported from another system. Such keys have no `key.created`. */
export type KeysImportedEvent = {
  apiId: string;
  /** The name of the migration. */
  migrationId: string;
  /** 500 at most. A longer import has several events. */
  keyIds: string[];
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/**
 * The `data` of `credits.low`. A balance fell to 20 % of its refill, or to 0. Without a refill: to 20 % of what it was
 * last set or raised to.
 */
export type CreditsLowEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** The keys that share the balance, the newest first, 20 at most. */
  keyIds: string[];
  /** The balance. */
  remaining: number;
  /** The balance at or below which the event was due. */
  threshold: number;
};

/** The `data` of `credits.refilled`. A balance was refilled. */
export type CreditsRefilledEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** The keys that share the balance, the newest first, 20 at most. */
  keyIds: string[];
  /** The balance. */
  remaining: number;
  /** The balance before. */
  before: number;
};

/** The `data` of `plan.created`. A plan was created. */
export type PlanCreatedEvent = {
  planId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `plan.updated`. What a plan gives changed, for all keys and identities that have it. */
export type PlanUpdatedEvent = {
  planId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
  /** That of the plan after the change. Each change adds 1. */
  version: number;
};

/** The `data` of `plan.deleted`. A plan was deleted. */
export type PlanDeletedEvent = {
  planId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `budget.created`. A budget was created. */
export type BudgetCreatedEvent = {
  budgetId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `budget.updated`. Settings or credits of a budget changed. */
export type BudgetUpdatedEvent = {
  budgetId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/** The `data` of `budget.deleted`. A budget was deleted. */
export type BudgetDeletedEvent = {
  budgetId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `budget.refilled`. A budget was refilled. */
export type BudgetRefilledEvent = {
  budgetId: string;
  name: string;
  /** Its credits. */
  remaining: number;
  /** Its credits before. */
  before: number;
};

/**
 * The `data` of `budget.threshold_reached`. A part of a budget is spent. Once a period for each threshold, unless
 * credits were added.
 */
export type BudgetThresholdReachedEvent = {
  budgetId: string;
  name: string;
  unit?: string;
  /** The part, as a percentage of what the period had. */
  threshold: number;
  /** Its credits. */
  remaining: number;
  /** What was spent in the period. */
  spent: number;
};

/** The `data` of `hold.expired`. Nobody settled or released a hold before its expiry. */
export type HoldExpiredEvent = {
  holdId: string;
  keyId: string;
  apiId: string;
  /** The credits that it held. */
  credits: number;
  /** When it expired, as Unix time in milliseconds. */
  expiresAt: number;
  /** What was charged: `credits` or 0, as its `onExpiry` says. */
  charged: number;
};

/**
 * The `data` of `hold.uncovered`. A hold was settled for more than it held, and the balances did not cover all of it.
 */
export type HoldUncoveredEvent = {
  holdId: string;
  keyId: string;
  apiId: string;
  /** The credits that it held. */
  credits: number;
  /** What every balance covered. */
  charged: number;
  /** What the settlement asked for besides: the most that a balance did not cover. */
  uncovered: number;
  /** The budgets among these balances, and what each did not cover. */
  budgets: {
      budgetId: string;
      uncovered: number;
    }[];
};

/**
 * The `data` of `limit.exceeded`. The first call in a window was rejected by a limit, or would have been by one in
 * shadow mode.
 */
export type LimitExceededEvent = {
  keyId?: string;
  apiId?: string;
  /** The identity to which the limit belongs, if it does not belong to the key. */
  identityId?: string;
  externalId?: string;
  /** The namespace of the identifier, for `ratelimits.limit`. */
  namespaceId?: string;
  identifier?: string;
  /** The name of the limit. */
  name?: string;
  limit: number;
  duration: number;
  /** Present if the limit is in shadow mode: it rejected nothing. */
  shadow?: true;
  /** The end of the window, as Unix time in milliseconds. */
  windowEnd: number;
};

/** The `data` of `root_key.created`. A root key was created. */
export type RootKeyCreatedEvent = {
  rootKeyId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  rerolledFrom?: string;
};

/** The `data` of `root_key.updated`. Settings of a root key changed. */
export type RootKeyUpdatedEvent = {
  rootKeyId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/** The `data` of `root_key.disabled`. A root key was disabled. */
export type RootKeyDisabledEvent = {
  rootKeyId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `root_key.enabled`. A root key was enabled again. */
export type RootKeyEnabledEvent = {
  rootKeyId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `root_key.deleted`. A root key was deleted. */
export type RootKeyDeletedEvent = {
  rootKeyId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `root_key.leaked`. A root key was reported as leaked. */
export type RootKeyLeakedEvent = {
  rootKeyId: string;
  name: string;
  /** Which kind of report it was, such as `github`. */
  source: string;
  /** Where the root key was found, as the report says. */
  url?: string;
  /** Whether the report disabled the root key. */
  disabled: boolean;
};

/** The `data` of `root_key.rerolled`. A root key was replaced by another one. */
export type RootKeyRerolledEvent = {
  rootKeyId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  newRootKeyId: string;
  /** When the old root key expires, as Unix time in milliseconds. */
  expires: number;
};

/** The `data` of `identity.created`. An identity was created. */
export type IdentityCreatedEvent = {
  identityId: string;
  externalId: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `identity.updated`. An identity changed. */
export type IdentityUpdatedEvent = {
  identityId: string;
  externalId: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/** The `data` of `identity.deleted`. An identity was deleted. */
export type IdentityDeletedEvent = {
  identityId: string;
  externalId: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `role.created`. A role was created. */
export type RoleCreatedEvent = {
  roleId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `role.updated`. A role or its permissions changed. */
export type RoleUpdatedEvent = {
  roleId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/** The `data` of `role.deleted`. A role was deleted. */
export type RoleDeletedEvent = {
  roleId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `permission.created`. A permission was created. */
export type PermissionCreatedEvent = {
  permissionId: string;
  slug: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `permission.updated`. A permission changed. */
export type PermissionUpdatedEvent = {
  permissionId: string;
  slug: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/** The `data` of `permission.deleted`. A permission was deleted. */
export type PermissionDeletedEvent = {
  permissionId: string;
  slug: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `api.created`. An API was created. */
export type ApiCreatedEvent = {
  apiId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `api.updated`. Settings of an API changed. */
export type ApiUpdatedEvent = {
  apiId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/** The `data` of `api.deleted`. An API was deleted. Its keys stop working; they have no events of their own. */
export type ApiDeletedEvent = {
  apiId: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `namespace.created`. A rate limit namespace was created. */
export type NamespaceCreatedEvent = {
  namespaceId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `namespace.deleted`. A rate limit namespace was deleted. */
export type NamespaceDeletedEvent = {
  namespaceId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `descriptors.set`. The descriptors of a rate limit namespace were set. */
export type DescriptorsSetEvent = {
  namespaceId: string;
  name: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `override.set`. A rate limit override was set. */
export type OverrideSetEvent = {
  overrideId: string;
  namespaceId: string;
  identifier: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `override.deleted`. A rate limit override was deleted. */
export type OverrideDeletedEvent = {
  overrideId: string;
  namespaceId: string;
  identifier: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `workspace.created`. A workspace was created. */
export type WorkspaceCreatedEvent = {
  workspaceId: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `workspace.updated`. Settings of a workspace changed. */
export type WorkspaceUpdatedEvent = {
  workspaceId: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/** The `data` of `quota.near`. A workspace has more than 80 % of what it may have of one kind. */
export type QuotaNearEvent = {
  /** `bytes`, or the kind of rows: `keys`, `apis` and so on. */
  quota: string;
  /** Bytes or rows. */
  used: number;
  /** The largest number of them. */
  max: number;
  /** The setting of the service that has the maximum. */
  setting: string;
};

/** The `data` of `webhook.created`. A webhook was created. */
export type WebhookCreatedEvent = {
  webhookId: string;
  endpoint: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `webhook.updated`. Settings of a webhook changed. */
export type WebhookUpdatedEvent = {
  webhookId: string;
  endpoint: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Names of the members that changed. */
  changed: string[];
};

/**
 * The `data` of `webhook.disabled`. A webhook was disabled: by a call, or by the service because its deliveries failed
 * for too long.
 */
export type WebhookDisabledEvent = {
  webhookId: string;
  endpoint: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
  /** Why the service disabled it. `gone`: it answered 410. Absent: a call disabled it. */
  reason?: "failing" | "gone";
};

/** The `data` of `webhook.enabled`. A webhook was enabled again. */
export type WebhookEnabledEvent = {
  webhookId: string;
  endpoint: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `webhook.deleted`. A webhook was deleted. */
export type WebhookDeletedEvent = {
  webhookId: string;
  endpoint: string;
  name?: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `webhook.test`. A test of a webhook. Only this webhook gets it. */
export type WebhookTestEvent = {
  webhookId: string;
  /** Id of the root key, `cli` for an operator, or `system` for the service itself. */
  actor: string;
};

/** The `data` of `leak.reported`. A key was reported as leaked. */
export type LeakReportedEvent = {
  keyId: string;
  apiId: string;
  /** Your own identifier of the owner of the key, if it has one. */
  externalId?: string;
  /** Which kind of report it was, such as `github`. */
  source: string;
  /** Where the key was found, as the report says. */
  url?: string;
  /** Whether the report disabled the key. */
  disabled: boolean;
};

/**
 * The `data` of `auth.failures`. At least 20 requests in ten minutes had a root key or token that does not exist or
 * may not be used. In the workspace of a disabled or expired root key; otherwise in the default workspace.
 */
export type AuthFailuresEvent = {
  /** Requests until the event was written, at the node that noticed the burst. */
  failures: number;
  /** The beginning of the ten minutes, as Unix time in milliseconds. */
  since: number;
  /** The addresses with the most failures, 5 at most. */
  addresses: {
      address: string;
      failures: number;
    }[];
};

/** The `data` of the events that webhooks get, by the type of the event. */
export type EventData = {
  "key.created": KeyCreatedEvent;
  "key.updated": KeyUpdatedEvent;
  "key.disabled": KeyDisabledEvent;
  "key.enabled": KeyEnabledEvent;
  "key.deleted": KeyDeletedEvent;
  "key.restored": KeyRestoredEvent;
  "key.rerolled": KeyRerolledEvent;
  "key.derived": KeyDerivedEvent;
  "key.expiring": KeyExpiringEvent;
  "key.expired": KeyExpiredEvent;
  "key.first_used": KeyFirstUsedEvent;
  "key.unused": KeyUnusedEvent;
  "keys.imported": KeysImportedEvent;
  "credits.low": CreditsLowEvent;
  "credits.refilled": CreditsRefilledEvent;
  "plan.created": PlanCreatedEvent;
  "plan.updated": PlanUpdatedEvent;
  "plan.deleted": PlanDeletedEvent;
  "budget.created": BudgetCreatedEvent;
  "budget.updated": BudgetUpdatedEvent;
  "budget.deleted": BudgetDeletedEvent;
  "budget.refilled": BudgetRefilledEvent;
  "budget.threshold_reached": BudgetThresholdReachedEvent;
  "hold.expired": HoldExpiredEvent;
  "hold.uncovered": HoldUncoveredEvent;
  "limit.exceeded": LimitExceededEvent;
  "root_key.created": RootKeyCreatedEvent;
  "root_key.updated": RootKeyUpdatedEvent;
  "root_key.disabled": RootKeyDisabledEvent;
  "root_key.enabled": RootKeyEnabledEvent;
  "root_key.deleted": RootKeyDeletedEvent;
  "root_key.leaked": RootKeyLeakedEvent;
  "root_key.rerolled": RootKeyRerolledEvent;
  "identity.created": IdentityCreatedEvent;
  "identity.updated": IdentityUpdatedEvent;
  "identity.deleted": IdentityDeletedEvent;
  "role.created": RoleCreatedEvent;
  "role.updated": RoleUpdatedEvent;
  "role.deleted": RoleDeletedEvent;
  "permission.created": PermissionCreatedEvent;
  "permission.updated": PermissionUpdatedEvent;
  "permission.deleted": PermissionDeletedEvent;
  "api.created": ApiCreatedEvent;
  "api.updated": ApiUpdatedEvent;
  "api.deleted": ApiDeletedEvent;
  "namespace.created": NamespaceCreatedEvent;
  "namespace.deleted": NamespaceDeletedEvent;
  "descriptors.set": DescriptorsSetEvent;
  "override.set": OverrideSetEvent;
  "override.deleted": OverrideDeletedEvent;
  "workspace.created": WorkspaceCreatedEvent;
  "workspace.updated": WorkspaceUpdatedEvent;
  "quota.near": QuotaNearEvent;
  "webhook.created": WebhookCreatedEvent;
  "webhook.updated": WebhookUpdatedEvent;
  "webhook.disabled": WebhookDisabledEvent;
  "webhook.enabled": WebhookEnabledEvent;
  "webhook.deleted": WebhookDeletedEvent;
  "webhook.test": WebhookTestEvent;
  "leak.reported": LeakReportedEvent;
  "auth.failures": AuthFailuresEvent;
};

/** An API is a namespace of keys. */
export interface ApisOperations {
  /**
   * Count the keys of an API.
   *
   * Counts what `apis.listKeys` lists with the same filters, in the first 100,000 keys. An API that the root key may
   * not read looks like one that does not exist.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  countKeys(...args: Args<CountKeysInput>): Promise<Result<CountKeysOutput>>;
  /**
   * Create an API.
   *
   * An API is a namespace of keys. A key belongs to one API. Several APIs may have the same name.
   *
   * Permissions of the root key: `apis.*.create_api`
   *
   * @throws {LatchkeyError} `application/precondition_failed`. Besides the errors of every operation.
   */
  createApi(...args: Args<CreateApiInput>): Promise<Result<CreateApiOutput>>;
  /**
   * Delete an API and its keys.
   *
   * The next verification of any of its keys on the same node answers NOT_FOUND. An API with delete protection cannot
   * be deleted.
   *
   * Permissions of the root key: `apis.{apiId}.delete_api`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `application/protected_resource`. Besides the errors of every
   * operation.
   */
  deleteApi(...args: Args<DeleteApiInput>): Promise<Result<DeleteApiOutput>>;
  /**
   * Get an API.
   *
   * Includes the values that were set with `apis.updateApi`. Fields without a value are omitted.
   *
   * Permissions of the root key: `apis.{apiId}.read_api`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  getApi(...args: Args<GetApiInput>): Promise<Result<GetApiOutput>>;
  /**
   * Get what finds leaked keys of an API.
   *
   * For each prefix of its keys, a regular expression, and the same as a rule of gitleaks, as a detector of TruffleHog
   * and for GitHub's secret scanning. A prefix belongs to the key, not to the API: without `prefixes`, the kit is for
   * the default prefix of the API. Keys without a prefix cannot be told from other texts. Addresses in the kit begin
   * with `LATCHKEY_PUBLIC_URL`, or with `https://keys.example.com` if the service has none.
   *
   * Permissions of the root key: `apis.{apiId}.read_api`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  getLeakKit(...args: Args<GetLeakKitInput>): Promise<Result<GetLeakKitOutput>>;
  /**
   * List APIs.
   *
   * Ordered by creation time.
   *
   * Permissions of the root key: `apis.*.read_api`
   */
  listApis: List<ListApisInput, ListApisOutput, ListApisOutput[number]>;
  /**
   * List the keys of an API.
   *
   * Ordered by creation time, or by `orderBy`. Includes disabled and expired keys, but not deleted ones: `deleted`
   * lists those, with `deletedAt` and without `plaintext`. With a filter, one call examines at most 100,000 keys: a
   * page can have fewer entries than `limit`, or none, although `hasMore` is true. An API that the root key may not
   * read looks like one that does not exist.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`, `apis.{apiId}.decrypt_key`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  listKeys: List<ListKeysInput, ListKeysOutput, ListKeysOutput[number]>;
  /**
   * Update an API.
   *
   * Omitted fields do not change. Null removes a value. `prefix` and `byteLength` are defaults for keys that are
   * created without these fields. If an API has `allowedIps`, verifications from other addresses answer FORBIDDEN.
   *
   * Permissions of the root key: `apis.{apiId}.update_api`, `apis.{apiId}.create_key`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  updateApi(...args: Args<UpdateApiInput>): Promise<Result<UpdateApiOutput>>;
  /**
   * Update the keys of an API that match.
   *
   * Changes keys as `keys.updateKey`, `keys.addRoles`, `keys.addPermissions` and `keys.updateCredits` do. One call
   * processes up to `limit` of the keys that `apis.listKeys` lists with the same filters, the newest first, in one
   * transaction; fewer if they get more than 1,000 roles or permissions in all, or have more than 10,000 permissions.
   * Repeat it with `cursor` until the answer has none. Keys that are created meanwhile are not processed.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`, `apis.{apiId}.read_key`, `apis.{apiId}.read_api`,
   * `permissions.*.add_role_to_key`, `permissions.*.add_permission_to_key`, `permissions.*.create_permission`,
   * `plans.{planId}.assign_plan`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `data/plan_not_found`, `data/role_not_found`. Besides the errors of
   * every operation.
   */
  updateKeys(...args: Args<UpdateKeysInput>): Promise<Result<UpdateKeysOutput>>;
  /**
   * Delete the keys of an API that match.
   *
   * Deletes keys as `keys.deleteKey` does. One call processes up to `limit` of the keys that `apis.listKeys` lists
   * with the same filters, the newest first, in one transaction; fewer if they get more than 1,000 roles or
   * permissions in all, or have more than 10,000 permissions. Repeat it with `cursor` until the answer has none. Keys
   * that are created meanwhile are not processed.
   *
   * Permissions of the root key: `apis.{apiId}.delete_key`, `apis.{apiId}.read_key`, `apis.{apiId}.read_api`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  deleteKeys(...args: Args<DeleteKeysInput>): Promise<Result<DeleteKeysOutput>>;
}

/** Keys that you issue to your users and verify on their requests. */
export interface KeysOperations {
  /**
   * Add permissions to a key.
   *
   * The key keeps its other permissions. Returns all direct permissions of the key, without those of its roles.
   * Permissions that do not exist yet are created.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_permission_to_key`,
   * `permissions.*.create_permission`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  addPermissions(...args: Args<AddPermissionsInput>): Promise<Result<AddPermissionsOutput>>;
  /**
   * Add roles to a key.
   *
   * The key keeps its other roles. Returns all roles of the key. Roles are given by name and must exist.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_role_to_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
   */
  addRoles(...args: Args<AddRolesInput>): Promise<Result<AddRolesOutput>>;
  /**
   * Create a key.
   *
   * Only this response contains the key string: the service stores a hash of it. Permissions and an identity that do
   * not exist yet are created. Roles must exist. The key must obey the `policy` of its API.
   *
   * Permissions of the root key: `apis.{apiId}.create_key`, `apis.{apiId}.encrypt_key`,
   * `budgets.{budgetId}.assign_budget`, `plans.{planId}.assign_plan`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `data/budget_not_found`, `data/plan_not_found`,
   * `data/role_not_found`, `application/precondition_failed`. Besides the errors of every operation.
   */
  createKey(...args: Args<CreateKeyInput>): Promise<Result<CreateKeyOutput>>;
  /**
   * Delete a key.
   *
   * The next verification on the same node answers NOT_FOUND. The key stays in the database for
   * `LATCHKEY_RETENTION_DELETED`, by default 90 days, in which `keys.restoreKey` restores it. With `permanent`, the
   * key is erased together with its limits, roles, permissions, derived keys and encrypted key string. What was
   * derived of a key ends with it. A derived key ends with all that was derived of it, and cannot be restored.
   *
   * Permissions of the root key: `apis.{apiId}.delete_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  deleteKey(...args: Args<DeleteKeyInput>): Promise<Result<DeleteKeyOutput>>;
  /**
   * Derive a key.
   *
   * Makes a short-lived key that can do less than its parent, for an agent, a job or a browser. Whatever its parent
   * has is judged at each verification: the derived key is charged to the limits, credits and budgets of its parent,
   * has no permission that its parent lacks, and ends with its parent. Derived keys can be derived from too, up to
   * three levels. They are not in `apis.listKeys`: `keys.listDerivedKeys` lists them, and `keys.deleteKey` ends one.
   *
   * Permissions of the root key: `apis.{apiId}.create_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  deriveKey(...args: Args<DeriveKeyInput>): Promise<Result<DeriveKeyOutput>>;
  /**
   * Derive a key from the key that you hold.
   *
   * For the holder of a key, without a root key: the same as `keys.deriveKey`, with the key as the credential. It
   * works only for valid keys of APIs with `ownKeyDerivation`; every other string is answered alike with 404. Without
   * a root key, keys of the default workspace are found; a root key finds those of its workspace, and needs
   * `create_key`.
   *
   * Permissions of the root key: `apis.{apiId}.create_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  deriveOwnKey(...args: Args<DeriveOwnKeyInput>): Promise<Result<DeriveOwnKeyOutput>>;
  /**
   * Get a key.
   *
   * Returns the key without its key string. With `decrypt`, a recoverable key includes the key string. A key that was
   * deleted without `permanent` is kept for a while (`LATCHKEY_RETENTION_DELETED`): `deleted` returns it, and
   * `keys.restoreKey` restores it.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.decrypt_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  getKey(...args: Args<GetKeyInput>): Promise<Result<GetKeyOutput>>;
  /**
   * Get the key that you hold.
   *
   * For the holder of a key, without a root key: what is left of its credits and limits, its expiry and its usage. It
   * charges nothing. It works only for keys of APIs with `ownKeyAccess`; every other string is answered alike with
   * 404. Without a root key, keys of the default workspace are found; a root key finds those of its workspace, and
   * needs `read_key`. A key can be read 30 times per minute.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  getOwnKey(...args: Args<GetOwnKeyInput>): Promise<Result<GetOwnKeyOutput>>;
  /**
   * List derived keys.
   *
   * The keys that were derived from a key, directly or not, ordered by creation time. Those that have expired or were
   * ended are not in the list. With the id of a derived key: those that were derived from it.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  listDerivedKeys: List<ListDerivedKeysInput, ListDerivedKeysOutput, ListDerivedKeysOutput[number]>;
  /**
   * Import keys from another system.
   *
   * Imports hashes, never key strings. The first call with a `migrationId` creates the migration and fixes its
   * `algorithm`. Keys imported with `sha256` (the default) or `sha512` verify like any other key. Keys imported with
   * `hmac-sha256` verify only with the `migrationId`. Keys imported with `prefixed-api-key` need the `migrationId` for
   * their first verification only. `prefixed-api-key` is for tokens of the form `prefix_short_long`; send the SHA-256
   * of the long part.
   *
   * The status is 200 even if some keys could not be imported. `failed` lists their hashes: a key with the hash exists
   * already, or the hash occurs earlier in the list. The list is imported in chunks of up to 500 keys, sized so that
   * each takes some milliseconds. Each chunk is imported completely or not at all. The keys must obey the `policy` of
   * the API: a chunk with one that does not is not imported, nor are those after it. `stopped` says why then. If the
   * first chunk is refused, the call fails.
   *
   * Permissions of the root key: `apis.{apiId}.create_key`, `budgets.{budgetId}.assign_budget`,
   * `plans.{planId}.assign_plan`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `data/budget_not_found`, `data/plan_not_found`,
   * `application/precondition_failed`. Besides the errors of every operation.
   */
  migrateKeys(...args: Args<MigrateKeysInput>): Promise<Result<MigrateKeysOutput>>;
  /**
   * Remove permissions from a key.
   *
   * Removes direct permissions only. The key keeps the permissions of its roles. Returns the remaining direct
   * permissions. Every permission in the request must exist, but the key need not have it.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.remove_permission_from_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `data/permission_not_found`. Besides the errors of every operation.
   */
  removePermissions(...args: Args<RemovePermissionsInput>): Promise<Result<RemovePermissionsOutput>>;
  /**
   * Remove roles from a key.
   *
   * Returns the remaining roles. Every role in the request must exist, but the key need not have it.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
   */
  removeRoles(...args: Args<RemoveRolesInput>): Promise<Result<RemoveRolesOutput>>;
  /**
   * Report a leaked key.
   *
   * For everybody who finds a key where it should not be; a root key is not needed, whatever the configuration says.
   * If a key with this string exists, in any workspace, it is marked as leaked or disabled, as `leakAction` of its API
   * says, and the event `leak.reported` is sent. A root key has a `leakAction` of its own and the event
   * `root_key.leaked`. The answer is the same for every key string and is sent before the key is looked up, so it does
   * not tell whether the key exists.
   *
   * Permissions of the root key:
   */
  reportLeak(...args: Args<ReportLeakInput>): Promise<Result<ReportLeakOutput>>;
  /**
   * Reroll a key.
   *
   * Creates a key with a new key string and the settings of the old key. The old key expires after `expiration`
   * milliseconds, rounded up to a whole minute, and is deleted when the retention of deleted keys has passed since.
   * With 0 it expires at once; with null its expiry does not change, and it is not deleted. All keys of a reroll chain
   * share one balance, one refill, the counters of their limits and the slots of their concurrency, so a reroll adds
   * neither credits nor calls. If the API has a `policy`, the new key obeys it: it expires at the latest when that
   * allows.
   *
   * Permissions of the root key: `apis.{apiId}.create_key`, `apis.{apiId}.encrypt_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  rerollKey(...args: Args<RerollKeyInput>): Promise<Result<RerollKeyOutput>>;
  /**
   * Restore a deleted key.
   *
   * Brings back a key that was deleted without `permanent`, until `LATCHKEY_RETENTION_DELETED` after its deletion:
   * with its key string, name, credits, limits, permissions, and the roles and the identity that still exist. What was
   * deleted meanwhile stays away from it: a role with its permissions, or the identity with its limits. A key whose
   * API, plan or own budget was deleted cannot be restored. A key that was reported as leaked, before its deletion or
   * after it, is restored disabled. A key that has expired stays expired. The key counts against the quota of the
   * workspace again. The next verification on the same node finds it, and on other nodes within a second.
   *
   * Permissions of the root key: `apis.{apiId}.restore_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `data/api_not_found`, `data/budget_not_found`,
   * `data/plan_not_found`, `data/key_not_deleted`. Besides the errors of every operation.
   */
  restoreKey(...args: Args<RestoreKeyInput>): Promise<Result<RestoreKeyOutput>>;
  /**
   * Set the permissions of a key.
   *
   * Replaces all direct permissions of the key. The key keeps the permissions of its roles. Permissions that do not
   * exist yet are created.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_permission_to_key`,
   * `permissions.*.remove_permission_from_key`, `permissions.*.create_permission`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  setPermissions(...args: Args<SetPermissionsInput>): Promise<Result<SetPermissionsOutput>>;
  /**
   * Set the roles of a key.
   *
   * Replaces all roles of the key. Roles are given by name and must exist.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
   */
  setRoles(...args: Args<SetRolesInput>): Promise<Result<SetRolesOutput>>;
  /**
   * Update the credits of a key.
   *
   * Sets, increments or decrements the balance. A decrement stops at 0. All keys of a reroll chain share one balance,
   * so the change applies to each of them. Setting null makes usage unlimited and removes the refill.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  updateCredits(...args: Args<UpdateCreditsInput>): Promise<Result<UpdateCreditsOutput>>;
  /**
   * Update a key.
   *
   * Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. The next
   * verification on the same node uses the new values. No change takes a key out of the `policy` of its API.
   *
   * Permissions of the root key: `apis.{apiId}.update_key`, `budgets.{budgetId}.assign_budget`,
   * `plans.{planId}.assign_plan`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `data/budget_not_found`, `data/plan_not_found`,
   * `data/role_not_found`, `application/precondition_failed`. Besides the errors of every operation.
   */
  updateKey(...args: Args<UpdateKeyInput>): Promise<Result<UpdateKeyOutput>>;
  /**
   * Verify a key.
   *
   * Checks whether a key is valid. The status is 200 for an invalid key too: `valid` is then false and `code` gives
   * the reason. Without a root key, if the service allows it, only keys of the default workspace are found, and the
   * response omits the fields that end users must not see: `name`, `roles`, `permissions` and `plan`.
   *
   * Permissions of the root key: `apis.{apiId}.verify_key`
   *
   * @throws {LatchkeyError} `user/bad_request/permissions_query_syntax_error`, `user/bad_request/hold_required`,
   * `application/precondition_failed`. Besides the errors of every operation.
   */
  verifyKey(...args: Args<VerifyKeyInput>): Promise<Result<VerifyKeyOutput>>;
  /**
   * Explain a verification.
   *
   * Says how `keys.verifyKey` would answer this body now, and why: each step in its order with what it compared, the
   * permissions with where each comes from, the limits with their counters, the credits and the budgets. It charges
   * nothing and is not in the analytics. Give `key` or `keyId`. A key that the root key may not read looks like one
   * that does not exist. A root key without `verify_key` gets `NOT_FOUND` with that reason, as a verification gets
   * `NOT_FOUND`. With `NOT_FOUND`, the explanation ends with that step.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.verify_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`, `user/bad_request/permissions_query_syntax_error`,
   * `user/bad_request/hold_required`, `application/precondition_failed`. Besides the errors of every operation.
   */
  explainVerification(...args: Args<ExplainVerificationInput>): Promise<Result<ExplainVerificationOutput>>;
  /**
   * Get a key by its key string.
   *
   * Finds a key without verifying it. Nothing is charged, and a disabled or expired key is returned too.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  whoami(...args: Args<WhoamiInput>): Promise<Result<WhoamiOutput>>;
}

/** Owners of keys, such as users or organizations. The keys of an identity share its limits. */
export interface IdentitiesOperations {
  /**
   * Create an identity.
   *
   * An identity is an owner of keys, such as a user or an organization. All its keys share its limits. Creating or
   * updating a key with a new external id creates an identity without limits.
   *
   * Permissions of the root key: `identities.*.create_identity`, `budgets.{budgetId}.assign_budget`,
   * `plans.{planId}.assign_plan`
   *
   * @throws {LatchkeyError} `data/identity_already_exists`, `data/budget_not_found`, `data/plan_not_found`,
   * `application/precondition_failed`. Besides the errors of every operation.
   */
  createIdentity(...args: Args<CreateIdentityInput>): Promise<Result<CreateIdentityOutput>>;
  /**
   * Delete an identity.
   *
   * Its keys remain valid, without the identity and its limits. The external id can be used again at once, by an
   * identity with a new id. If the identity has a budget, its keys leave that; one that its plan gives ends.
   *
   * Permissions of the root key: `identities.*.delete_identity`, `budgets.{budgetId}.assign_budget`,
   * `plans.{planId}.assign_plan`
   *
   * @throws {LatchkeyError} `data/identity_not_found`. Besides the errors of every operation.
   */
  deleteIdentity(...args: Args<DeleteIdentityInput>): Promise<Result<DeleteIdentityOutput>>;
  /**
   * Get an identity.
   *
   * Finds an identity by its id or by your external id.
   *
   * Permissions of the root key: `identities.{identityId}.read_identity`
   *
   * @throws {LatchkeyError} `data/identity_not_found`. Besides the errors of every operation.
   */
  getIdentity(...args: Args<GetIdentityInput>): Promise<Result<GetIdentityOutput>>;
  /**
   * List identities.
   *
   * Ordered by creation time, or by `orderBy`. The root key must be allowed to read every identity on the page.
   *
   * Permissions of the root key: `identities.{identityId}.read_identity`
   */
  listIdentities: List<ListIdentitiesInput, ListIdentitiesOutput, ListIdentitiesOutput[number]>;
  /**
   * Update an identity.
   *
   * Omitted fields do not change. `meta`, `ratelimits` and `concurrency` are replaced as a whole. The next
   * verification of any of its keys on the same node uses the new limits.
   *
   * Permissions of the root key: `identities.*.update_identity`, `budgets.{budgetId}.assign_budget`,
   * `plans.{planId}.assign_plan`
   *
   * @throws {LatchkeyError} `data/identity_not_found`, `data/budget_not_found`, `data/plan_not_found`,
   * `application/precondition_failed`. Besides the errors of every operation.
   */
  updateIdentity(...args: Args<UpdateIdentityInput>): Promise<Result<UpdateIdentityOutput>>;
}

/** What many keys and identities get from one place: limits, permissions and roles. */
export interface PlansOperations {
  /**
   * Create a plan.
   *
   * A plan gives limits, credits, permissions and roles to many keys, and limits and a budget to identities: to those
   * with its name as their `plan`. A change of it reaches all of them within a second.
   *
   * Permissions of the root key: `plans.*.create_plan`, `permissions.*.create_permission`
   *
   * @throws {LatchkeyError} `data/plan_already_exists`, `data/role_not_found`, `application/precondition_failed`.
   * Besides the errors of every operation.
   */
  createPlan(...args: Args<CreatePlanInput>): Promise<Result<CreatePlanOutput>>;
  /**
   * Delete a plan.
   *
   * Refused while keys or identities have it: they would have no limits. A deleted key that had it cannot be restored
   * afterwards. Its name can be used again.
   *
   * Permissions of the root key: `plans.{planId}.delete_plan`
   *
   * @throws {LatchkeyError} `data/plan_not_found`, `data/plan_in_use`. Besides the errors of every operation.
   */
  deletePlan(...args: Args<DeletePlanInput>): Promise<Result<DeletePlanOutput>>;
  /**
   * Get a plan.
   *
   * A plan with what it gives.
   *
   * Permissions of the root key: `plans.{planId}.read_plan`
   *
   * @throws {LatchkeyError} `data/plan_not_found`. Besides the errors of every operation.
   */
  getPlan(...args: Args<GetPlanInput>): Promise<Result<GetPlanOutput>>;
  /**
   * List plans.
   *
   * Ordered by creation time. The root key must be allowed to read every plan on the page.
   *
   * Permissions of the root key: `plans.{planId}.read_plan`
   */
  listPlans: List<ListPlansInput, ListPlansOutput, ListPlansOutput[number]>;
  /**
   * Preview an update of a plan.
   *
   * Takes the body of `plans.updatePlan`, and says what it would change for how many keys and identities. It changes
   * nothing. Without fields to change, it says who has the plan. The numbers are of keys and identities that are not
   * deleted; one call examines at most 20000 of each.
   *
   * Permissions of the root key: `plans.{planId}.read_plan`
   *
   * @throws {LatchkeyError} `data/plan_not_found`. Besides the errors of every operation.
   */
  previewUpdate(...args: Args<PreviewUpdateInput>): Promise<Result<PreviewUpdateOutput>>;
  /**
   * Update a plan.
   *
   * Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. Every key and
   * identity with the plan has the new values with its next verification on the same node, and on other nodes within a
   * second. A call sees a change whole or not at all. A limit with an existing name keeps its id and its counts; a
   * changed `duration` or `mode` starts them at 0. `plans.previewUpdate` says what a change would do.
   *
   * Permissions of the root key: `plans.{planId}.update_plan`, `permissions.*.create_permission`
   *
   * @throws {LatchkeyError} `data/plan_not_found`, `data/role_not_found`, `application/precondition_failed`. Besides
   * the errors of every operation.
   */
  updatePlan(...args: Args<UpdatePlanInput>): Promise<Result<UpdatePlanOutput>>;
}

/** Credits that many keys share, in trees of up to four levels. */
export interface BudgetsOperations {
  /**
   * Create a budget.
   *
   * A budget is a balance that many keys spend from: those with its `budgetId`, and those of identities with it. A
   * call is charged to the budget and its ancestors together, or to none of them. A budget never gets another parent.
   *
   * Permissions of the root key: `budgets.*.create_budget`, `budgets.{parentId}.assign_budget`
   *
   * @throws {LatchkeyError} `data/budget_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  createBudget(...args: Args<CreateBudgetInput>): Promise<Result<CreateBudgetOutput>>;
  /**
   * Delete a budget.
   *
   * Its credits are lost. Refused while keys, identities, other budgets or open holds use it: they would have no cap.
   * A deleted key that used it cannot be restored afterwards.
   *
   * Permissions of the root key: `budgets.{budgetId}.delete_budget`
   *
   * @throws {LatchkeyError} `data/budget_not_found`, `data/budget_in_use`. Besides the errors of every operation.
   */
  deleteBudget(...args: Args<DeleteBudgetInput>): Promise<Result<DeleteBudgetOutput>>;
  /**
   * Get a budget.
   *
   * A budget with its balance and its books, also one that a plan gives to an identity.
   *
   * Permissions of the root key: `budgets.{budgetId}.read_budget`
   *
   * @throws {LatchkeyError} `data/budget_not_found`. Besides the errors of every operation.
   */
  getBudget(...args: Args<GetBudgetInput>): Promise<Result<GetBudgetOutput>>;
  /**
   * List budgets.
   *
   * Ordered by creation time, without those that plans give to identities: `identities.getIdentity` shows these. The
   * root key must be allowed to read every budget on the page.
   *
   * Permissions of the root key: `budgets.{budgetId}.read_budget`
   */
  listBudgets: List<ListBudgetsInput, ListBudgetsOutput, ListBudgetsOutput[number]>;
  /**
   * Update a budget.
   *
   * Omitted fields do not change. `thresholds` and `meta` are replaced as a whole. The parent and the unit never
   * change. With `onEmpty: "deny"`, a balance below 0 becomes 0. To change the balance, use `budgets.updateCredits`.
   *
   * Permissions of the root key: `budgets.{budgetId}.update_budget`
   *
   * @throws {LatchkeyError} `data/budget_not_found`. Besides the errors of every operation.
   */
  updateBudget(...args: Args<UpdateBudgetInput>): Promise<Result<UpdateBudgetOutput>>;
  /**
   * Update the credits of a budget.
   *
   * Sets, increments or decrements the balance. A decrement stops at 0. What the balance really changes by counts as
   * granted, also below 0. A budget that a plan gives to an identity is changed too; the plan does not change.
   *
   * Permissions of the root key: `budgets.{budgetId}.update_budget`
   *
   * @throws {LatchkeyError} `data/budget_not_found`. Besides the errors of every operation.
   */
  updateCredits(...args: Args<BudgetsUpdateCreditsInput>): Promise<Result<BudgetsUpdateCreditsOutput>>;
}

/** Credits that calls hold until their cost is known. */
export interface HoldsOperations {
  /**
   * Extend a hold.
   *
   * Lets an open hold expire later, for work that lasts longer than expected. It never expires earlier by that, and at
   * the latest 24 hours after it was made.
   *
   * Permissions of the root key: `apis.{apiId}.verify_key`
   *
   * @throws {LatchkeyError} `data/hold_not_found`, `data/hold_closed`. Besides the errors of every operation.
   */
  extendHold(...args: Args<ExtendHoldInput>): Promise<Result<ExtendHoldOutput>>;
  /**
   * Get a hold.
   *
   * A hold with its state. Settled and released holds stay for an hour after their expiry, expired ones for a day.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`
   *
   * @throws {LatchkeyError} `data/hold_not_found`. Besides the errors of every operation.
   */
  getHold(...args: Args<GetHoldInput>): Promise<Result<GetHoldOutput>>;
  /**
   * List holds.
   *
   * Ordered by creation time. The root key must be allowed to read the keys of every hold on the page. With a filter,
   * a page is what matches among up to 2000 holds: it can have fewer entries than `limit`, or none, and yet not be the
   * last one.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`
   */
  listHolds: List<ListHoldsInput, ListHoldsOutput, ListHoldsOutput[number]>;
  /**
   * Release a hold.
   *
   * Gives back what was held and charges nothing, for work that was not done. A repetition has the same answer. A hold
   * that expired cannot be released: settle it with 0 credits if its expiry charged it.
   *
   * Permissions of the root key: `apis.{apiId}.verify_key`
   *
   * @throws {LatchkeyError} `data/hold_not_found`, `data/hold_closed`. Besides the errors of every operation.
   */
  releaseHold(...args: Args<ReleaseHoldInput>): Promise<Result<ReleaseHoldOutput>>;
  /**
   * Settle a hold.
   *
   * Charges what the work did cost, and gives back the rest of what was held. If it did cost more, every balance is
   * charged as far as it has credits; `uncovered` says what was lacking. A repetition with the same amounts has the
   * same answer and charges nothing. An expired hold can be settled for as long as it is stored: what its expiry
   * charged is given back first. `ratelimits` corrects limits that the verification charged; the others stay charged.
   *
   * Permissions of the root key: `apis.{apiId}.verify_key`
   *
   * @throws {LatchkeyError} `data/hold_not_found`, `data/hold_closed`, `application/precondition_failed`. Besides the
   * errors of every operation.
   */
  settleHold(...args: Args<SettleHoldInput>): Promise<Result<SettleHoldOutput>>;
}

/** Statistics of verifications and rate limits. */
export interface AnalyticsOperations {
  /**
   * Get the verification statistics of an API.
   *
   * The same as `analytics.getKeyStats`, for all keys of an API together, including deleted keys.
   *
   * Permissions of the root key: `apis.{apiId}.read_analytics`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  getApiStats(...args: Args<GetApiStatsInput>): Promise<Result<GetApiStatsOutput>>;
  /**
   * Get the verification statistics of a budget.
   *
   * The same as `analytics.getKeyStats`, for all keys that spent from the budget at the time of the verification:
   * those with it, those of identities with it, and those that spend from a budget below it. `creditsSpent` is what
   * they spent from it. Of a settlement with `uncovered` it has what every balance covered, also where this budget was
   * charged more. A verification counts for each budget that it spends from. Requires the permission to read the
   * budget.
   *
   * Permissions of the root key: `budgets.{budgetId}.read_budget`
   *
   * @throws {LatchkeyError} `data/budget_not_found`. Besides the errors of every operation.
   */
  getBudgetStats(...args: Args<GetBudgetStatsInput>): Promise<Result<GetBudgetStatsOutput>>;
  /**
   * Get the verification statistics of an identity.
   *
   * The same as `analytics.getKeyStats`, for all keys that belonged to the identity at the time of the verification.
   * Requires the permission to read the identity.
   *
   * Permissions of the root key: `identities.{identityId}.read_identity`
   *
   * @throws {LatchkeyError} `data/identity_not_found`. Besides the errors of every operation.
   */
  getIdentityStats(...args: Args<GetIdentityStatsInput>): Promise<Result<GetIdentityStatsOutput>>;
  /**
   * Get the verification statistics of a key.
   *
   * Counts the verifications of a key by outcome and time. Counts are about one second old, and a few seconds under
   * load. Verifications of a deleted key count as NOT_FOUND. The statistics of a deleted key remain available.
   *
   * Permissions of the root key: `apis.{apiId}.read_analytics`
   *
   * @throws {LatchkeyError} `data/key_not_found`. Besides the errors of every operation.
   */
  getKeyStats(...args: Args<GetKeyStatsInput>): Promise<Result<GetKeyStatsOutput>>;
  /**
   * Get the statistics of a rate limit namespace.
   *
   * Counts the passed and denied decisions in a namespace by time and by identifier. Each entry of
   * `ratelimits.multiLimit` is one decision. Counts are about one second old, and a few seconds under load.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.read_analytics`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
   */
  getRatelimitStats(...args: Args<GetRatelimitStatsInput>): Promise<Result<GetRatelimitStatsOutput>>;
  /**
   * List logged decisions.
   *
   * The log of refused verifications and rate limit decisions, with a sample of those that passed, the newest first.
   * It contains decisions about APIs and namespaces whose analytics the root key may read. Of one key or namespace and
   * one code, the first refusals of a minute are in the log one by one; the others of the minute are counted in
   * `leftOut` of the last one. A decision is in the log a few seconds later, the last one of a minute when it is over.
   * `LATCHKEY_RETENTION_DECISIONS` and `LATCHKEY_DECISIONS_PER_WORKSPACE` bound the log.
   *
   * Permissions of the root key: `apis.{apiId}.read_analytics`, `ratelimits.{namespaceId}.read_analytics`
   */
  listDecisions: List<ListDecisionsInput, ListDecisionsOutput, ListDecisionsOutput[number]>;
  /**
   * List the identities with the most verifications.
   *
   * The same as `analytics.listTopKeys`, by the identity that each key had at the time of the verification.
   * Verifications of keys without an identity are in no entry. Requires the permission to read identities and, for one
   * API, its analytics.
   *
   * Permissions of the root key: `identities.*.read_identity`, `apis.{apiId}.read_analytics`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  listTopIdentities(...args: Args<ListTopIdentitiesInput>): Promise<Result<ListTopIdentitiesOutput>>;
  /**
   * List the keys with the most verifications.
   *
   * The keys of the workspace, or of one API, with the most verifications in a range of time, the first one with the
   * most. Verifications with unknown keys are in no entry. Counts are about one second old, and a few seconds under
   * load.
   *
   * Permissions of the root key: `apis.{apiId}.read_analytics`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  listTopKeys(...args: Args<ListTopKeysInput>): Promise<Result<ListTopKeysOutput>>;
  /**
   * List the verifications of several keys and APIs.
   *
   * Counts the verifications of each of up to 100 keys and APIs over time, as `analytics.getKeyStats` and
   * `analytics.getApiStats` do, without codes and tags. Ids that do not exist have no entry. Deleted keys and APIs
   * have one.
   *
   * Permissions of the root key: `apis.{apiId}.read_analytics`
   */
  listUsage(...args: Args<ListUsageInput>): Promise<Result<ListUsageOutput>>;
}

/** Permissions of keys, and roles as named sets of permissions. */
export interface PermissionsOperations {
  /**
   * Create a permission.
   *
   * Keys get permissions directly or through roles. Slugs are unique in the workspace, regardless of case. A
   * verification compares slugs exactly.
   *
   * Permissions of the root key: `permissions.*.create_permission`
   *
   * @throws {LatchkeyError} `data/permission_already_exists`. Besides the errors of every operation.
   */
  createPermission(...args: Args<CreatePermissionInput>): Promise<Result<CreatePermissionOutput>>;
  /**
   * Create a role.
   *
   * A role is a named set of permissions. Names are unique in the workspace, regardless of case.
   *
   * Permissions of the root key: `permissions.*.create_role`, `permissions.*.add_permission_to_role`,
   * `permissions.*.create_permission`
   *
   * @throws {LatchkeyError} `data/role_already_exists`. Besides the errors of every operation.
   */
  createRole(...args: Args<CreateRoleInput>): Promise<Result<CreateRoleOutput>>;
  /**
   * Delete a permission.
   *
   * Removes the permission from all keys and roles. The next verification on the same node sees the change. The slug
   * can be used again at once.
   *
   * Permissions of the root key: `permissions.*.delete_permission`
   *
   * @throws {LatchkeyError} `data/permission_not_found`. Besides the errors of every operation.
   */
  deletePermission(...args: Args<DeletePermissionInput>): Promise<Result<DeletePermissionOutput>>;
  /**
   * Delete a role.
   *
   * Removes the role from all keys. The next verification on the same node sees the change. The permissions of the
   * role are not deleted. The name can be used again at once.
   *
   * Permissions of the root key: `permissions.*.delete_role`
   *
   * @throws {LatchkeyError} `data/role_not_found`. Besides the errors of every operation.
   */
  deleteRole(...args: Args<DeleteRoleInput>): Promise<Result<DeleteRoleOutput>>;
  /**
   * Get a permission.
   *
   * Finds a permission by its id or its slug.
   *
   * Permissions of the root key: `permissions.*.read_permission`
   *
   * @throws {LatchkeyError} `data/permission_not_found`. Besides the errors of every operation.
   */
  getPermission(...args: Args<GetPermissionInput>): Promise<Result<GetPermissionOutput>>;
  /**
   * Get a role.
   *
   * Finds a role by its id or its name. Includes its permissions.
   *
   * Permissions of the root key: `permissions.*.read_role`
   *
   * @throws {LatchkeyError} `data/role_not_found`. Besides the errors of every operation.
   */
  getRole(...args: Args<GetRoleInput>): Promise<Result<GetRoleOutput>>;
  /**
   * List permissions.
   *
   * Ordered by creation time.
   *
   * Permissions of the root key: `permissions.*.read_permission`
   */
  listPermissions: List<ListPermissionsInput, ListPermissionsOutput, ListPermissionsOutput[number]>;
  /**
   * List roles.
   *
   * Ordered by creation time. Each role includes its permissions.
   *
   * Permissions of the root key: `permissions.*.read_role`
   */
  listRoles: List<ListRolesInput, ListRolesOutput, ListRolesOutput[number]>;
  /**
   * Set the permissions of a role.
   *
   * Replaces all permissions of the role. The next verification on the same node sees the change. Returns the
   * permissions sorted by slug.
   *
   * Permissions of the root key: `permissions.*.add_permission_to_role`, `permissions.*.remove_permission_from_role`,
   * `permissions.*.create_permission`
   *
   * @throws {LatchkeyError} `data/role_not_found`. Besides the errors of every operation.
   */
  setRolePermissions(...args: Args<SetRolePermissionsInput>): Promise<Result<SetRolePermissionsOutput>>;
  /**
   * Update a permission.
   *
   * Omitted fields do not change. Keys and roles keep the permission under its new slug. The next verification on the
   * same node sees the change.
   *
   * Permissions of the root key: `permissions.*.update_permission`
   *
   * @throws {LatchkeyError} `data/permission_not_found`, `data/permission_already_exists`. Besides the errors of every
   * operation.
   */
  updatePermission(...args: Args<UpdatePermissionInput>): Promise<Result<UpdatePermissionOutput>>;
  /**
   * Update a role.
   *
   * Omitted fields do not change. Keys keep the role under its new name. To change its permissions, use
   * `permissions.setRolePermissions`.
   *
   * Permissions of the root key: `permissions.*.update_role`
   *
   * @throws {LatchkeyError} `data/role_not_found`, `data/role_already_exists`. Besides the errors of every operation.
   */
  updateRole(...args: Args<UpdateRoleInput>): Promise<Result<UpdateRoleOutput>>;
}

/** Rate limits for any identifier, independent of keys. */
export interface RatelimitsOperations {
  /**
   * Limit an identifier.
   *
   * Checks a limit and charges it if the call passes. A denied call has status 200 and `success` false, and charges
   * nothing. The limit is a sliding window: windows are aligned to the Unix epoch, and the previous window counts in
   * proportion to its overlap with the last `duration`. An override of the namespace replaces `limit` and `duration`.
   * The headers `RateLimit` and `RateLimit-Policy` carry the result in seconds. The first use of a namespace creates
   * it, which also requires `create_namespace`.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.*.create_namespace`
   */
  limit(...args: Args<LimitInput>): Promise<Result<LimitOutput>>;
  /**
   * Limit several identifiers at once.
   *
   * Charges all entries or none: if one entry is denied, no limit is charged, and each result gives the state of its
   * limit. Entries with the same identifier, namespace and window add up. Otherwise the same as `ratelimits.limit`.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.*.create_namespace`
   */
  multiLimit(...args: Args<MultiLimitInput>): Promise<Result<MultiLimitOutput>>;
  /**
   * Delete a rate limit namespace and its overrides.
   *
   * The name can be used again at once: the next call with it creates a new namespace with empty counters.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.delete_namespace`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
   */
  deleteNamespace(...args: Args<DeleteNamespaceInput>): Promise<Result<DeleteNamespaceOutput>>;
  /**
   * Delete an override.
   *
   * The next call uses its own `limit` and `duration` again. The identifier must equal that of the override. An
   * identifier that only matches a pattern deletes nothing.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.delete_override`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`, `data/ratelimit_override_not_found`. Besides the
   * errors of every operation.
   */
  deleteOverride(...args: Args<DeleteOverrideInput>): Promise<Result<DeleteOverrideOutput>>;
  /**
   * Explain a limit.
   *
   * Says how `ratelimits.limit` would answer this body now, and why: which override applies, which others match, and
   * the counter. It charges nothing, creates no namespace and is not in the analytics.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.{namespaceId}.read_override`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
   */
  explainLimit(...args: Args<ExplainLimitInput>): Promise<Result<ExplainLimitOutput>>;
  /**
   * Get the descriptors of a namespace.
   *
   * Returns the tree of limits that Envoy's rate limit service applies in the namespace, without members that say
   * nothing. A namespace without a tree has an empty list.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.read_override`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
   */
  getDescriptors(...args: Args<GetDescriptorsInput>): Promise<Result<GetDescriptorsOutput>>;
  /**
   * Get the override of an identifier.
   *
   * Returns the override that applies to calls with this identifier: one with the same identifier, or else a matching
   * pattern. A pattern as identifier returns the override with this pattern.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.read_override`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`, `data/ratelimit_override_not_found`. Besides the
   * errors of every operation.
   */
  getOverride(...args: Args<GetOverrideInput>): Promise<Result<GetOverrideOutput>>;
  /**
   * List rate limit namespaces.
   *
   * Ordered by creation time.
   *
   * Permissions of the root key: `ratelimits.*.read_namespace`
   */
  listNamespaces: List<ListNamespacesInput, ListNamespacesOutput, ListNamespacesOutput[number]>;
  /**
   * List the overrides of a rate limit namespace.
   *
   * Ordered by creation time.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.read_override`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
   */
  listOverrides: List<ListOverridesInput, ListOverridesOutput, ListOverridesOutput["overrides"][number]>;
  /**
   * Set the descriptors of a namespace.
   *
   * Replaces the tree of limits that Envoy's rate limit service applies in the namespace, in the form of the
   * configuration of envoyproxy/ratelimit. A call's descriptor has the limit of the descriptor of the tree that
   * matches all its entries, level by level: the one with the same value, else the first whose value ends with `*` and
   * matches, else the one without a value. A limit that the call brings goes first; an override with exactly its
   * identifier applies where the tree has no limit. An empty list removes the tree. `ratelimits.limit` does not use
   * it.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.set_override`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`, `application/precondition_failed`. Besides the
   * errors of every operation.
   */
  setDescriptors(...args: Args<SetDescriptorsInput>): Promise<Result<SetDescriptorsOutput>>;
  /**
   * Set an override.
   *
   * The `limit` and `duration` of the override, and its `mode` if it has one, replace those of the next and later
   * calls. If several overrides match, the one with the same identifier applies, then the pattern with the most
   * literal characters, then the oldest. Setting the same identifier or pattern again updates the override and keeps
   * its id. A namespace has at most 10000 overrides, of which at most 100 have more than one `*`.
   *
   * Permissions of the root key: `ratelimits.{namespaceId}.set_override`
   *
   * @throws {LatchkeyError} `data/ratelimit_namespace_not_found`, `data/ratelimit_override_limit_reached`,
   * `application/precondition_failed`. Besides the errors of every operation.
   */
  setOverride(...args: Args<SetOverrideInput>): Promise<Result<SetOverrideOutput>>;
}

/** Sessions in which the owners of keys manage their own keys. */
export interface PortalOperations {
  /**
   * Create a session of the portal.
   *
   * In a session, the owner of keys manages them: on the page at `url`, or in your own page with the element
   * `<latchkey-keys>`. Create one on your server for a user that has signed in there, and send the user to `url`. The
   * session reaches only the keys of this owner in this API, and can do no more than its root key. It ends with the
   * root key, the API or the owner, and 20 newer sessions of the same owner end it too.
   *
   * Permissions of the root key: `apis.{apiId}.create_portal_session`, `apis.{apiId}.read_key`,
   * `apis.{apiId}.create_key`, `apis.{apiId}.update_key`, `apis.{apiId}.delete_key`, `apis.{apiId}.read_analytics`,
   * `budgets.*.read_budget`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `data/identity_not_found`, `data/role_not_found`. Besides the errors
   * of every operation.
   */
  createSession(...args: Args<CreateSessionInput>): Promise<Result<CreateSessionOutput>>;
  /**
   * End sessions of the portal.
   *
   * Ends all sessions of an API, those of one identity, or one session: on its node at once, on others within a
   * second. A session that has ended already is no error.
   *
   * Permissions of the root key: `apis.{apiId}.delete_portal_session`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  deletePortalSessions(...args: Args<DeletePortalSessionsInput>): Promise<Result<DeletePortalSessionsOutput>>;
  /**
   * List the sessions of the portal.
   *
   * The sessions of an API that have not ended, ordered by creation time.
   *
   * Permissions of the root key: `apis.{apiId}.read_portal_session`
   *
   * @throws {LatchkeyError} `data/api_not_found`. Besides the errors of every operation.
   */
  listPortalSessions: List<ListPortalSessionsInput, ListPortalSessionsOutput, ListPortalSessionsOutput[number]>;
}

/** Root keys authenticate programs to this service. */
export interface RootKeysOperations {
  /**
   * Create a root key.
   *
   * A root key authenticates a program to this service. Give each program a root key of its own, with only the
   * permissions that it needs. The calling root key must have every permission of the new one.
   *
   * Permissions of the root key: `rootKeys.*.create_root_key`
   */
  createRootKey(...args: Args<CreateRootKeyInput>): Promise<Result<CreateRootKeyOutput>>;
  /**
   * Delete a root key.
   *
   * The root key stops working at once. The calling root key must have every permission of the deleted ones. The last
   * administrator of a workspace and the root key of the service's configuration cannot be deleted. Root keys that the
   * deleted one created live on, unless `descendants` is true: after a leak, whoever had it may have created some. The
   * calling root key, that of the configuration and those that these created are never deleted as descendants, nor are
   * those of other workspaces.
   *
   * Permissions of the root key: `rootKeys.{rootKeyId}.delete_root_key`
   *
   * @throws {LatchkeyError} `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
   * operation.
   */
  deleteRootKey(...args: Args<DeleteRootKeyInput>): Promise<Result<DeleteRootKeyOutput>>;
  /**
   * End sessions of the dashboard.
   *
   * Ends all sessions of a root key, or one of them: on its node at once, on others within a second. A session that
   * has ended already is no error.
   *
   * Permissions of the root key: `rootKeys.{rootKeyId}.update_root_key`
   *
   * @throws {LatchkeyError} `data/root_key_not_found`. Besides the errors of every operation.
   */
  deleteSessions(...args: Args<DeleteSessionsInput>): Promise<Result<DeleteSessionsOutput>>;
  /**
   * List root keys.
   *
   * Ordered by creation time. Includes disabled and expired root keys, but not deleted ones. The calling root key must
   * be allowed to read every root key on the page.
   *
   * Permissions of the root key: `rootKeys.{rootKeyId}.read_root_key`
   */
  listRootKeys: List<ListRootKeysInput, ListRootKeysOutput, ListRootKeysOutput[number]>;
  /**
   * List the sessions of the dashboard.
   *
   * Ordered by creation time. A session has the permissions of its root key, and ends when the root key is deleted,
   * disabled or expires. The calling root key must be allowed to read every root key on the page.
   *
   * Permissions of the root key: `rootKeys.{rootKeyId}.read_root_key`
   */
  listSessions: List<ListSessionsInput, ListSessionsOutput, ListSessionsOutput[number]>;
  /**
   * Reroll a root key.
   *
   * Creates a root key with the settings of the old one. The old root key expires after `expiration` milliseconds,
   * rounded up to a whole minute. With 0 it expires at once. The calling root key must have every permission of the
   * old one. The root key of the service's configuration can only be replaced there.
   *
   * Permissions of the root key: `rootKeys.{rootKeyId}.create_root_key`
   *
   * @throws {LatchkeyError} `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
   * operation.
   */
  rerollRootKey(...args: Args<RerollRootKeyInput>): Promise<Result<RerollRootKeyOutput>>;
  /**
   * Update a root key.
   *
   * Omitted fields do not change. Permissions are replaced as a whole. The calling root key must have every permission
   * that this one has before and after the change. The last administrator of a workspace must remain one. The root key
   * of the service's configuration can only be changed there.
   *
   * Permissions of the root key: `rootKeys.{rootKeyId}.update_root_key`
   *
   * @throws {LatchkeyError} `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
   * operation.
   */
  updateRootKey(...args: Args<UpdateRootKeyInput>): Promise<Result<UpdateRootKeyOutput>>;
}

/** Isolated tenants of the service. The default workspace manages them. */
export interface WorkspacesOperations {
  /**
   * Create a workspace and its administrator root key.
   *
   * Workspaces are isolated: for a root key, the resources of other workspaces do not exist. Requires a root key of
   * the default workspace. Several workspaces may have the same name.
   *
   * Permissions of the root key: `workspaces.*.create_workspace`
   */
  createWorkspace(...args: Args<CreateWorkspaceInput>): Promise<Result<CreateWorkspaceOutput>>;
  /**
   * List workspaces.
   *
   * Ordered by creation time. Requires a root key of the default workspace.
   *
   * Permissions of the root key: `workspaces.*.read_workspace`
   */
  listWorkspaces: List<ListWorkspacesInput, ListWorkspacesOutput, ListWorkspacesOutput[number]>;
  /**
   * Update a workspace.
   *
   * Omitted fields do not change. A disabled workspace rejects calls with its root keys, and none of its keys is
   * valid. No data is deleted. `requestsPerMinute` counts the calls of all its root keys. Their responses carry
   * `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. Requires a root key of the default workspace,
   * which cannot lock itself out.
   *
   * Permissions of the root key: `workspaces.*.update_workspace`
   *
   * @throws {LatchkeyError} `data/workspace_not_found`, `application/protected_resource`. Besides the errors of every
   * operation.
   */
  updateWorkspace(...args: Args<UpdateWorkspaceInput>): Promise<Result<UpdateWorkspaceOutput>>;
}

/** The audit log of the workspace. */
export interface AuditOperations {
  /**
   * List audit events.
   *
   * Newest first. New events do not shift later pages. Every change, and every decryption of key strings, is recorded
   * in the transaction that makes it. Changes to workspaces are in the audit log of the default workspace.
   *
   * Permissions of the root key: `audit.*.read_event`
   */
  listEvents: List<ListEventsInput, ListEventsOutput, ListEventsOutput[number]>;
}

/** What happened in the workspace, for programs that react to it. */
export interface EventsOperations {
  /**
   * List events.
   *
   * The oldest first, unless `order` is `desc`. Events are written in the transaction of the change that they report:
   * each committed change has its events, and no other has. To follow them without webhooks, call again with `after`,
   * the id of the last event that you have: no event is missed, and none comes twice. Events of one object are in the
   * order in which they happened. Events are stored for `LATCHKEY_RETENTION_EVENTS`.
   *
   * Permissions of the root key: `events.*.read_event`
   */
  listEvents: List<EventsListEventsInput, EventsListEventsOutput, EventsListEventsOutput[number]>;
}

/** Endpoints to which events of the workspace are sent. */
export interface WebhooksOperations {
  /**
   * Create a webhook.
   *
   * Events of the workspace are sent to its URL as the Standard Webhooks specification says: each at least once, and
   * those of one object in their order. A delivery fails unless the endpoint answers with a status from 200 to 299
   * within 15 seconds; redirects are not followed. It is tried again for three days. A workspace can have 50 webhooks.
   *
   * Permissions of the root key: `webhooks.*.create_webhook`, `events.*.read_event`
   *
   * @throws {LatchkeyError} `data/api_not_found`, `data/webhook_limit_reached`, `application/precondition_failed`.
   * Besides the errors of every operation.
   */
  createWebhook(...args: Args<CreateWebhookInput>): Promise<Result<CreateWebhookOutput>>;
  /**
   * Delete a webhook.
   *
   * It gets no further requests, and its secret is erased.
   *
   * Permissions of the root key: `webhooks.{webhookId}.delete_webhook`
   *
   * @throws {LatchkeyError} `data/webhook_not_found`. Besides the errors of every operation.
   */
  deleteWebhook(...args: Args<DeleteWebhookInput>): Promise<Result<DeleteWebhookOutput>>;
  /**
   * Get a webhook.
   *
   * Its settings and its state, without its secret.
   *
   * Permissions of the root key: `webhooks.{webhookId}.read_webhook`
   *
   * @throws {LatchkeyError} `data/webhook_not_found`. Besides the errors of every operation.
   */
  getWebhook(...args: Args<GetWebhookInput>): Promise<Result<GetWebhookOutput>>;
  /**
   * List the deliveries of a webhook.
   *
   * Those of the newest events first. With `status` `dead` it is the list of dead letters, which `webhooks.redeliver`
   * sends again. Deliveries are stored for `LATCHKEY_RETENTION_EVENTS`.
   *
   * Permissions of the root key: `webhooks.{webhookId}.read_webhook`
   *
   * @throws {LatchkeyError} `data/webhook_not_found`. Besides the errors of every operation.
   */
  listDeliveries: List<ListDeliveriesInput, ListDeliveriesOutput, ListDeliveriesOutput[number]>;
  /**
   * List webhooks.
   *
   * Ordered by creation time. Includes disabled webhooks, but not deleted ones. The root key must be allowed to read
   * every webhook on the page.
   *
   * Permissions of the root key: `webhooks.{webhookId}.read_webhook`
   */
  listWebhooks: List<ListWebhooksInput, ListWebhooksOutput, ListWebhooksOutput[number]>;
  /**
   * Deliver events to a webhook again.
   *
   * Of one event, whatever its state, or of the dead letters of the webhook: the oldest first, up to 1000 in one call.
   * They are tried for three days again. Events of one object are sent in their order; the endpoint may have later
   * ones already, and recognizes repeated ones by `webhook-id`.
   *
   * Permissions of the root key: `webhooks.{webhookId}.update_webhook`
   *
   * @throws {LatchkeyError} `data/webhook_not_found`, `data/webhook_delivery_not_found`,
   * `application/precondition_failed`. Besides the errors of every operation.
   */
  redeliver(...args: Args<RedeliverInput>): Promise<Result<RedeliverOutput>>;
  /**
   * Rotate the secret of a webhook.
   *
   * Creates a new secret. For `expiration` milliseconds each message has two signatures, one by each secret, so that
   * the endpoint can change to the new one at any moment. A secret from an earlier rotation ends at once.
   *
   * Permissions of the root key: `webhooks.{webhookId}.update_webhook`
   *
   * @throws {LatchkeyError} `data/webhook_not_found`. Besides the errors of every operation.
   */
  rotateSecret(...args: Args<RotateSecretInput>): Promise<Result<RotateSecretOutput>>;
  /**
   * Send a test event to a webhook.
   *
   * Records an event of the type `webhook.test`, which this webhook gets whatever its filters are.
   * `webhooks.listDeliveries` with the `eventId` shows what came of it, usually within a second.
   *
   * Permissions of the root key: `webhooks.{webhookId}.update_webhook`
   *
   * @throws {LatchkeyError} `data/webhook_not_found`, `application/precondition_failed`. Besides the errors of every
   * operation.
   */
  sendTest(...args: Args<SendTestInput>): Promise<Result<SendTestOutput>>;
  /**
   * Update a webhook.
   *
   * Omitted fields do not change. Null removes a value. A webhook that is disabled gets no requests: events that
   * happen meanwhile are not sent later, and deliveries that were waiting continue when it is enabled again, at once.
   *
   * Permissions of the root key: `webhooks.{webhookId}.update_webhook`, `events.*.read_event`
   *
   * @throws {LatchkeyError} `data/webhook_not_found`, `data/api_not_found`. Besides the errors of every operation.
   */
  updateWebhook(...args: Args<UpdateWebhookInput>): Promise<Result<UpdateWebhookOutput>>;
}

/** The service itself, and what needs attention in the workspace. */
export interface SystemOperations {
  /**
   * Get what needs attention.
   *
   * Keys that expire, have almost no credits, have leaked or do not obey the policy of their API, root keys that
   * should be deleted or restricted, and webhooks whose events do not arrive. A member is absent if the root key may
   * not read its resources. `system.getStatus` returns components that do not work.
   *
   * Permissions of the root key: `apis.*.read_key`, `rootKeys.*.read_root_key`, `webhooks.*.read_webhook`
   */
  getFindings(...args: Args<GetFindingsInput>): Promise<Result<GetFindingsOutput>>;
  /**
   * Get the status of the service.
   *
   * The state of the node that answers. `service`, with version and configuration, is present for root keys of the
   * default workspace. No secret is in it.
   *
   * Permissions of the root key: `system.*.read_status`
   */
  getStatus(...args: Args<GetStatusInput>): Promise<Result<GetStatusOutput>>;
  /**
   * List recent decisions.
   *
   * A sample of the decisions of the last 10 minutes on the node that answers, the newest first: in each second the
   * first decision of each key with each code and set of tags, and of each identifier, at most 20 of a workspace. It
   * contains decisions about APIs and namespaces whose analytics the root key may read. A restart empties it. Counts
   * are in `analytics.*`.
   *
   * Permissions of the root key: `apis.{apiId}.read_analytics`, `ratelimits.{namespaceId}.read_analytics`
   */
  listDecisions(...args: Args<SystemListDecisionsInput>): Promise<Result<SystemListDecisionsOutput>>;
  /**
   * Search keys, identities, APIs and everything else.
   *
   * Finds keys, identities, APIs, budgets, namespaces of rate limits, webhooks, roles, permissions and root keys of
   * the workspace, as far as the root key may read them. Each word of the query must occur in what an object is
   * called: in its name, its id, or the description of a role or permission; of a key also in its `start`, in the
   * external id of its identity or, if another word occurs in the key, in the name of its API. Words may be in any
   * order; case does not matter, and no character is a wildcard. Exact matches come first, then each kind with its
   * newest objects first.
   *
   * A key string or root key is looked up by its hash. It is neither stored nor logged, and one with a valid checksum
   * is not compared with anything else.
   *
   * One call examines the newest 100,000 keys and identities, the keys divided among the APIs, and the newest 10,000
   * objects of each other kind. Of more than 8 words it compares the longest. An id, an external id, a whole name and
   * a key string are found whatever their age. `apis.listKeys` searches all keys of an API, page by page.
   *
   * Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`,
   * `identities.{identityId}.read_identity`, `budgets.{budgetId}.read_budget`, `ratelimits.*.read_namespace`,
   * `webhooks.{webhookId}.read_webhook`, `permissions.*.read_role`, `permissions.*.read_permission`,
   * `rootKeys.{rootKeyId}.read_root_key`
   */
  search(...args: Args<SearchInput>): Promise<Result<SearchOutput>>;
}

/** The operations of the service, by namespace. */
export class Operations {
  readonly apis: ApisOperations;
  readonly keys: KeysOperations;
  readonly identities: IdentitiesOperations;
  readonly plans: PlansOperations;
  readonly budgets: BudgetsOperations;
  readonly holds: HoldsOperations;
  readonly analytics: AnalyticsOperations;
  readonly permissions: PermissionsOperations;
  readonly ratelimits: RatelimitsOperations;
  readonly portal: PortalOperations;
  readonly rootKeys: RootKeysOperations;
  readonly workspaces: WorkspacesOperations;
  readonly audit: AuditOperations;
  readonly events: EventsOperations;
  readonly webhooks: WebhooksOperations;
  readonly system: SystemOperations;

  constructor(make: MakeMethod) {
    this.apis = {
      countKeys: make("apis.countKeys", { repeatable: "always" }),
      createApi: make("apis.createApi", { repeatable: "idempotent" }),
      deleteApi: make("apis.deleteApi", {}),
      getApi: make("apis.getApi", { repeatable: "always" }),
      getLeakKit: make("apis.getLeakKit", { repeatable: "always" }),
      listApis: make("apis.listApis", { repeatable: "always" }),
      listKeys: make("apis.listKeys", { repeatable: "always", secrets: ["plaintext"] }),
      updateApi: make("apis.updateApi", {}),
      updateKeys: make("apis.updateKeys", { repeatable: "idempotent" }),
      deleteKeys: make("apis.deleteKeys", {}),
    };
    this.keys = {
      addPermissions: make("keys.addPermissions", {}),
      addRoles: make("keys.addRoles", {}),
      createKey: make("keys.createKey", { repeatable: "idempotent", secrets: ["key"] }),
      deleteKey: make("keys.deleteKey", {}),
      deriveKey: make("keys.deriveKey", { repeatable: "idempotent", secrets: ["key"] }),
      deriveOwnKey: make("keys.deriveOwnKey", { secrets: ["key"] }),
      getKey: make("keys.getKey", { repeatable: "always", secrets: ["plaintext"] }),
      getOwnKey: make("keys.getOwnKey", { repeatable: "always" }),
      listDerivedKeys: make("keys.listDerivedKeys", { repeatable: "always" }),
      migrateKeys: make("keys.migrateKeys", {}),
      removePermissions: make("keys.removePermissions", {}),
      removeRoles: make("keys.removeRoles", {}),
      reportLeak: make("keys.reportLeak", {}),
      rerollKey: make("keys.rerollKey", { repeatable: "idempotent", secrets: ["key"] }),
      restoreKey: make("keys.restoreKey", {}),
      setPermissions: make("keys.setPermissions", {}),
      setRoles: make("keys.setRoles", {}),
      updateCredits: make("keys.updateCredits", { repeatable: "idempotent" }),
      updateKey: make("keys.updateKey", {}),
      verifyKey: make("keys.verifyKey", { repeatable: "charge" }),
      explainVerification: make("keys.explainVerification", { repeatable: "always" }),
      whoami: make("keys.whoami", { repeatable: "always", secrets: ["plaintext"] }),
    };
    this.identities = {
      createIdentity: make("identities.createIdentity", { repeatable: "idempotent" }),
      deleteIdentity: make("identities.deleteIdentity", {}),
      getIdentity: make("identities.getIdentity", { repeatable: "always" }),
      listIdentities: make("identities.listIdentities", { repeatable: "always" }),
      updateIdentity: make("identities.updateIdentity", {}),
    };
    this.plans = {
      createPlan: make("plans.createPlan", { repeatable: "idempotent" }),
      deletePlan: make("plans.deletePlan", {}),
      getPlan: make("plans.getPlan", { repeatable: "always" }),
      listPlans: make("plans.listPlans", { repeatable: "always" }),
      previewUpdate: make("plans.previewUpdate", { repeatable: "always" }),
      updatePlan: make("plans.updatePlan", {}),
    };
    this.budgets = {
      createBudget: make("budgets.createBudget", { repeatable: "idempotent" }),
      deleteBudget: make("budgets.deleteBudget", {}),
      getBudget: make("budgets.getBudget", { repeatable: "always" }),
      listBudgets: make("budgets.listBudgets", { repeatable: "always" }),
      updateBudget: make("budgets.updateBudget", {}),
      updateCredits: make("budgets.updateCredits", { repeatable: "idempotent" }),
    };
    this.holds = {
      extendHold: make("holds.extendHold", { repeatable: "always" }),
      getHold: make("holds.getHold", { repeatable: "always" }),
      listHolds: make("holds.listHolds", { repeatable: "always" }),
      releaseHold: make("holds.releaseHold", { repeatable: "always" }),
      settleHold: make("holds.settleHold", { repeatable: "always" }),
    };
    this.analytics = {
      getApiStats: make("analytics.getApiStats", { repeatable: "always" }),
      getBudgetStats: make("analytics.getBudgetStats", { repeatable: "always" }),
      getIdentityStats: make("analytics.getIdentityStats", { repeatable: "always" }),
      getKeyStats: make("analytics.getKeyStats", { repeatable: "always" }),
      getRatelimitStats: make("analytics.getRatelimitStats", { repeatable: "always" }),
      listDecisions: make("analytics.listDecisions", { repeatable: "always" }),
      listTopIdentities: make("analytics.listTopIdentities", { repeatable: "always" }),
      listTopKeys: make("analytics.listTopKeys", { repeatable: "always" }),
      listUsage: make("analytics.listUsage", { repeatable: "always" }),
    };
    this.permissions = {
      createPermission: make("permissions.createPermission", { repeatable: "idempotent" }),
      createRole: make("permissions.createRole", { repeatable: "idempotent" }),
      deletePermission: make("permissions.deletePermission", {}),
      deleteRole: make("permissions.deleteRole", {}),
      getPermission: make("permissions.getPermission", { repeatable: "always" }),
      getRole: make("permissions.getRole", { repeatable: "always" }),
      listPermissions: make("permissions.listPermissions", { repeatable: "always" }),
      listRoles: make("permissions.listRoles", { repeatable: "always" }),
      setRolePermissions: make("permissions.setRolePermissions", {}),
      updatePermission: make("permissions.updatePermission", {}),
      updateRole: make("permissions.updateRole", {}),
    };
    this.ratelimits = {
      limit: make("ratelimits.limit", { repeatable: "charge" }),
      multiLimit: make("ratelimits.multiLimit", { repeatable: "charge" }),
      deleteNamespace: make("ratelimits.deleteNamespace", {}),
      deleteOverride: make("ratelimits.deleteOverride", {}),
      explainLimit: make("ratelimits.explainLimit", { repeatable: "always" }),
      getDescriptors: make("ratelimits.getDescriptors", { repeatable: "always" }),
      getOverride: make("ratelimits.getOverride", { repeatable: "always" }),
      listNamespaces: make("ratelimits.listNamespaces", { repeatable: "always" }),
      listOverrides: make("ratelimits.listOverrides", { repeatable: "always", list: "overrides" }),
      setDescriptors: make("ratelimits.setDescriptors", {}),
      setOverride: make("ratelimits.setOverride", {}),
    };
    this.portal = {
      createSession: make("portal.createSession", { secrets: ["token", "url"] }),
      deletePortalSessions: make("portal.deletePortalSessions", {}),
      listPortalSessions: make("portal.listPortalSessions", { repeatable: "always" }),
    };
    this.rootKeys = {
      createRootKey: make("rootKeys.createRootKey", { repeatable: "idempotent", secrets: ["key"] }),
      deleteRootKey: make("rootKeys.deleteRootKey", {}),
      deleteSessions: make("rootKeys.deleteSessions", {}),
      listRootKeys: make("rootKeys.listRootKeys", { repeatable: "always" }),
      listSessions: make("rootKeys.listSessions", { repeatable: "always" }),
      rerollRootKey: make("rootKeys.rerollRootKey", { repeatable: "idempotent", secrets: ["key"] }),
      updateRootKey: make("rootKeys.updateRootKey", {}),
    };
    this.workspaces = {
      createWorkspace: make("workspaces.createWorkspace", { repeatable: "idempotent", secrets: ["key"] }),
      listWorkspaces: make("workspaces.listWorkspaces", { repeatable: "always" }),
      updateWorkspace: make("workspaces.updateWorkspace", {}),
    };
    this.audit = {
      listEvents: make("audit.listEvents", { repeatable: "always" }),
    };
    this.events = {
      listEvents: make("events.listEvents", { repeatable: "always" }),
    };
    this.webhooks = {
      createWebhook: make("webhooks.createWebhook", { repeatable: "idempotent", secrets: ["secret"] }),
      deleteWebhook: make("webhooks.deleteWebhook", {}),
      getWebhook: make("webhooks.getWebhook", { repeatable: "always" }),
      listDeliveries: make("webhooks.listDeliveries", { repeatable: "always" }),
      listWebhooks: make("webhooks.listWebhooks", { repeatable: "always" }),
      redeliver: make("webhooks.redeliver", {}),
      rotateSecret: make("webhooks.rotateSecret", { repeatable: "idempotent", secrets: ["secret"] }),
      sendTest: make("webhooks.sendTest", { repeatable: "idempotent" }),
      updateWebhook: make("webhooks.updateWebhook", {}),
    };
    this.system = {
      getFindings: make("system.getFindings", { repeatable: "always" }),
      getStatus: make("system.getStatus", { repeatable: "always" }),
      listDecisions: make("system.listDecisions", { repeatable: "always" }),
      search: make("system.search", { repeatable: "always" }),
    };
  }
}
