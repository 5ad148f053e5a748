# Written by `npm run generate` from the declarations of the operations.
"""The types of inputs and answers.

Inputs are dictionaries, answers are immutable objects. Durations are in milliseconds, times are Unix times in milliseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from latchkey._secret import Secret

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

ProblemType = Literal[
    "application/invalid_input",
    "authentication/malformed",
    "user/bad_request/permissions_query_syntax_error",
    "user/bad_request/hold_required",
    "user/bad_request/request_body_unreadable",
    "authentication/missing",
    "authentication/key_not_found",
    "authorization/insufficient_permissions",
    "authorization/cross_origin_request",
    "authorization/key_disabled",
    "authorization/forbidden",
    "authorization/workspace_disabled",
    "application/not_found",
    "data/key_not_found",
    "data/api_not_found",
    "data/root_key_not_found",
    "data/webhook_not_found",
    "data/webhook_delivery_not_found",
    "data/workspace_not_found",
    "data/role_not_found",
    "data/permission_not_found",
    "data/identity_not_found",
    "data/ratelimit_namespace_not_found",
    "data/budget_not_found",
    "data/plan_not_found",
    "data/hold_not_found",
    "data/ratelimit_override_not_found",
    "application/method_not_allowed",
    "user/bad_request/request_timeout",
    "data/key_not_deleted",
    "data/identity_already_exists",
    "data/permission_already_exists",
    "data/hold_closed",
    "data/budget_in_use",
    "data/plan_in_use",
    "data/plan_already_exists",
    "data/role_already_exists",
    "data/ratelimit_override_limit_reached",
    "data/webhook_limit_reached",
    "application/precondition_failed",
    "application/maximum_reached",
    "application/misdirected_request",
    "application/idempotency_mismatch",
    "application/idempotency_in_progress",
    "application/protected_resource",
    "user/bad_request/request_body_too_large",
    "application/unsupported_content_encoding",
    "application/expectation_failed",
    "application/workspace_busy",
    "application/workspace_quota_exceeded",
    "application/too_many_counters",
    "user/too_many_requests/workspace_rate_limited",
    "application/request_headers_too_large",
    "application/unexpected_error",
    "application/lookups_exhausted",
    "application/service_unavailable",
]
"""The errors of the service. Each has a page at `/errors/<type>` of the service."""

_ANY_JSON = frozenset({"meta"})
"""Members of inputs whose value is any JSON object."""


@dataclass(frozen=True, kw_only=True)
class ApiUpstream:
    """The endpoint that is asked about unknown keys. Absent: none."""

    url: str
    headers: list[str]
    """The names of the headers."""
    timeout: int
    """Milliseconds."""
    on_outage: Literal["unavailable", "not_found"]


@dataclass(frozen=True, kw_only=True)
class ApiPolicyExpiry:
    default: int | None = None
    """Milliseconds."""
    max: int | None = None
    """Milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ApiPolicy:
    """What new keys must have. Absent: nothing."""

    expiry: ApiPolicyExpiry | None = None
    limits_required: bool | None = None
    prefix_fixed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ApiPortalPage:
    name: str | None = None
    logo_url: str | None = None
    color: str | None = None
    language: Literal["en", "de", "fr", "es", "pt", "ja", "ar"] | None = None
    return_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class ApiPortal:
    """What sessions of the portal inherit unless they say otherwise. Absent: nothing."""

    actions: list[Literal["list", "create", "reroll", "rename", "delete", "usage", "left"]] | None = None
    page: ApiPortalPage | None = None


@dataclass(frozen=True, kw_only=True)
class Api:
    """A namespace of keys. `id` and `api_id` are equal."""

    id: str
    api_id: str
    name: str
    prefix: str | None = None
    """Default prefix of new keys."""
    byte_length: int | None = None
    """Default number of random bytes in new keys."""
    delete_protection: bool | None = None
    """Present and true if the API cannot be deleted."""
    allowed_ips: list[str] | None = None
    """Addresses and CIDRs that may use its keys. Absent: every address."""
    leak_action: Literal["mark", "disable"] | None = None
    """What happens to its keys that are reported as leaked. Absent: `mark`."""
    expiry_notices: list[int] | None = None
    """The days before the expiry of a key at which it has an event. Absent: 7 and 1."""
    upstream: ApiUpstream | None = None
    """The endpoint that is asked about unknown keys. Absent: none."""
    own_key_access: bool | None = None
    """Present and true if holders of its keys may read them with `keys.get_own_key`."""
    resources: list[str] | None = None
    """The resources for which its keys get access tokens. Absent: they get none."""
    own_key_derivation: bool | None = None
    """Present and true if holders of its keys may derive keys from them with `keys.derive_own_key`."""
    policy: ApiPolicy | None = None
    """What new keys must have. Absent: nothing."""
    portal: ApiPortal | None = None
    """What sessions of the portal inherit unless they say otherwise. Absent: nothing."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key. Fields without a value are omitted."""

    key_id: str
    api_id: str
    start: str
    """The readable beginning of the key string. Empty for an imported key until its first verification."""
    enabled: bool
    created_at: int
    """Unix time in milliseconds."""
    updated_at: int | None = None
    last_used_at: int | None = None
    """Time of a recent verification, Unix time in milliseconds."""
    leaked_at: int | None = None
    """When the key was first reported as leaked, Unix time in milliseconds. Absent: never."""
    deleted_at: int | None = None
    """When the key was deleted, Unix time in milliseconds. Only `keys.get_key` and `apis.list_keys` with `deleted`
    return such keys.
    """
    name: str | None = None
    meta: dict[str, Any] | None = None
    expires: int | None = None
    """Unix time in milliseconds. Absent: never."""
    permissions: list[str] | None = None
    """Direct permissions and those of its roles, without duplicates."""
    roles: list[str] | None = None
    credits: Credits | None = None
    """Absent: unlimited."""
    budget_id: str | None = None
    """The budget that its verifications spend from too."""
    plan: str | None = None
    """The name of its plan: see `plans.get_plan` for what that gives it."""
    identity: Identity | None = None
    ratelimits: list[Ratelimit] | None = None
    """The key's own limits."""
    concurrency: list[ConcurrencyLimit] | None = None
    """How many calls of the key may run at once. Absent: any number."""
    allowed_ips: list[str] | None = None
    """Addresses and CIDRs that may use it. Absent: every address that its API allows."""
    plaintext: Secret | None = None
    """The key string. Present if the key is recoverable and `decrypt` is true."""


@dataclass(frozen=True, kw_only=True)
class CreditsRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    amount: int
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None


@dataclass(frozen=True, kw_only=True)
class Credits:
    """A balance of credits."""

    remaining: int
    refill: CreditsRefill | None = None


@dataclass(frozen=True, kw_only=True)
class IdentityBudgetRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    amount: int
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None
    next_at: int
    """When the next refill is due, Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class IdentityBudget:
    """Only of `identities.get_identity`: what is left of the budget that its plan gives it."""

    remaining: int
    refill: IdentityBudgetRefill | None = None
    budget_id: str
    held: int


@dataclass(frozen=True, kw_only=True)
class Identity:
    """An owner of keys, such as a user or an organization."""

    id: str
    external_id: str
    """Your own identifier."""
    meta: dict[str, Any]
    ratelimits: list[Ratelimit]
    """Limits that all keys of the identity share."""
    concurrency: list[ConcurrencyLimit] | None = None
    """How many calls of all its keys together may run at once. Absent: any number."""
    budget_id: str | None = None
    """The budget that verifications of all its keys spend from too."""
    plan: str | None = None
    """The name of its plan, whose limits and budget all its keys share."""
    budget: IdentityBudget | None = None
    """Only of `identities.get_identity`: what is left of the budget that its plan gives it."""


@dataclass(frozen=True, kw_only=True)
class Ratelimit:
    """A limit of a key or of an identity."""

    id: str
    name: str
    limit: int
    duration: int
    """Length of the window in milliseconds."""
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""
    auto_apply: bool
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""


@dataclass(frozen=True, kw_only=True)
class ConcurrencyLimit:
    """How many calls of a key, or of the keys of an identity, may run at once."""

    name: str
    limit: int
    in_use: int | None = None
    """How many holds are open. `keys.get_key` and `identities.get_identity` return it."""


@dataclass(frozen=True, kw_only=True)
class Permission:
    """A permission that keys can have directly or through a role."""

    id: str
    name: str
    slug: str
    """The name that verifications use."""
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class Role:
    """A named set of permissions. Fields without a value are omitted."""

    id: str
    name: str
    description: str | None = None
    permissions: list[Permission] | None = None
    """The permissions of the role, sorted by slug."""


@dataclass(frozen=True, kw_only=True)
class DerivedKeyRatelimitsEntry:
    name: str
    limit: int
    duration: int
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""


@dataclass(frozen=True, kw_only=True)
class DerivedKeyCredits:
    """A bound besides the credits and budgets of its parent. Absent: none."""

    max: int
    remaining: int
    """What it may still spend."""


@dataclass(frozen=True, kw_only=True)
class DerivedKey:
    """A key that was derived from another one."""

    key_id: str
    parent_key_id: str
    """The key, or the derived key, that it was derived from."""
    level: int
    """How many levels it is below the key at the top: 1 to 3."""
    start: str
    """The readable beginning of the key string."""
    created_at: int
    """Unix time in milliseconds."""
    expires: int
    """When it ends, unless one of its parents ends before. Unix time in milliseconds."""
    by_holder: bool | None = None
    """Present and true if the holder of its parent derived it."""
    permissions: list[str] | None = None
    """It has those permissions of its parent that are also here. Absent: all of them."""
    ratelimits: list[DerivedKeyRatelimitsEntry] | None = None
    """Limits besides those of its parent."""
    credits: DerivedKeyCredits | None = None
    """A bound besides the credits and budgets of its parent. Absent: none."""
    allowed_ips: list[str] | None = None
    """Addresses and CIDRs that may use it. Absent: those of its parent."""
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class BudgetIdentity:
    """The identity that has it from its plan."""

    id: str
    external_id: str


@dataclass(frozen=True, kw_only=True)
class BudgetRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    amount: int
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None


@dataclass(frozen=True, kw_only=True)
class BudgetTotals:
    """Since its creation: `granted` = `spent` + `held` + `remaining` + `lapsed`. They begin again with the present
    period when `granted` exceeds 4 × 10^15.
    """

    granted: int
    spent: int
    lapsed: int
    """What refills have replaced, and what holds gave back after them."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Credits that many keys share. Fields without a value are omitted."""

    budget_id: str
    name: str
    plan: str | None = None
    """The name of the plan that gives it to an identity. Absent: it was created."""
    identity: BudgetIdentity | None = None
    """The identity that has it from its plan."""
    parent_id: str | None = None
    """The budget that its spends are charged to as well."""
    unit: str | None = None
    on_empty: Literal["deny", "allow"]
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0.
    """
    remaining: int
    """Its credits. Below 0 only with `on_empty: "allow"`."""
    held: int
    """What open holds have taken from it."""
    refill: BudgetRefill | None = None
    spent: int
    """What was spent since the last refill; without a refill, since credits were last added."""
    totals: BudgetTotals
    """Since its creation: `granted` = `spent` + `held` + `remaining` + `lapsed`. They begin again with the present
    period when `granted` exceeds 4 × 10^15.
    """
    thresholds: list[int]
    """In ascending order."""
    meta: dict[str, Any] | None = None
    created_at: int
    """Unix time in milliseconds."""
    updated_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class Hold:
    """Credits that a call holds until its cost is known."""

    hold_id: str
    key_id: str
    api_id: str
    state: Literal["open", "settled", "released", "expired"]
    """`open` becomes one of the others. Of these, only `expired` becomes `settled`: by a late settlement."""
    credits: int
    """The credits that it takes from each balance until it ends."""
    on_expiry: Literal["release", "charge"]
    """What happens to the credits if nobody settles or releases the hold in time. `release`: they are given back.
    `charge`: they are spent.
    """
    created_at: int
    """Unix time in milliseconds."""
    expires_at: int
    """When it expires, or would have expired."""
    closed_at: int | None = None
    """When it was settled or released, or its expiry was noticed."""
    charged: int | None = None
    """The credits that its end charged. Absent while it is open."""
    uncovered: int | None = None
    """What its settlement asked for besides. Absent while it is open."""


@dataclass(frozen=True, kw_only=True)
class PlanCreditsRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlanCredits:
    amount: int
    refill: PlanCreditsRefill | None = None


@dataclass(frozen=True, kw_only=True)
class PlanBudgetRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlanBudget:
    amount: int
    refill: PlanBudgetRefill | None = None
    on_empty: Literal["deny", "allow"]
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0.
    """
    thresholds: list[int]
    """In ascending order."""
    unit: str | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What many keys and identities get from one place. Fields without a value are omitted."""

    plan_id: str
    name: str
    ratelimits: list[Ratelimit]
    """In the order of their names."""
    concurrency: list[ConcurrencyLimit] | None = None
    credits: PlanCredits | None = None
    budget: PlanBudget | None = None
    permissions: list[str]
    """Without those of its roles."""
    roles: list[str]
    meta: dict[str, Any] | None = None
    version: int
    """1 for a new plan. Each change adds 1."""
    created_at: int
    """Unix time in milliseconds."""
    updated_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlanChangeBeforeRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlanChangeBefore:
    """Of a limit, of credits or of a budget, unless it is added."""

    limit: int | None = None
    duration: int | None = None
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""
    auto_apply: bool | None = None
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""
    amount: int | None = None
    refill: PlanChangeBeforeRefill | None = None
    on_empty: Literal["deny", "allow"] | None = None
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0.
    """
    thresholds: list[int] | None = None
    unit: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanChangeAfterRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlanChangeAfter:
    """Of a limit, of credits or of a budget, unless it is removed."""

    limit: int | None = None
    duration: int | None = None
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""
    auto_apply: bool | None = None
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""
    amount: int | None = None
    refill: PlanChangeAfterRefill | None = None
    on_empty: Literal["deny", "allow"] | None = None
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0.
    """
    thresholds: list[int] | None = None
    unit: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanChange:
    """What a change of a plan would do."""

    field: Literal["ratelimits", "concurrency", "credits", "budget", "permissions", "roles"]
    name: str | None = None
    """That of the limit."""
    change: Literal["added", "removed", "changed"]
    before: PlanChangeBefore | None = None
    """Of a limit, of credits or of a budget, unless it is added."""
    after: PlanChangeAfter | None = None
    """Of a limit, of credits or of a budget, unless it is removed."""
    added: list[str] | None = None
    """Of permissions and roles: those that keys get."""
    removed: list[str] | None = None
    """Those that keys lose, unless they have them otherwise."""
    keys: int
    """Keys that get the change."""
    keys_keeping: int
    """Keys that have a limit of this name or credits themselves, which stay."""
    identities: int
    """Identities that get the change. Permissions and roles are those of keys only."""
    identities_keeping: int
    """Identities that have a limit of this name or a budget themselves, which stay."""
    starts_at_zero: bool
    """Whether what was counted so far no longer counts: the `duration` or `mode` differs."""


@dataclass(frozen=True, kw_only=True)
class Override:
    """A limit that replaces the limit of calls for an identifier or a pattern."""

    override_id: str
    namespace: str
    """Name of the namespace."""
    identifier: str
    """An identifier, or a pattern."""
    limit: int
    duration: int
    """Length of the window in milliseconds."""
    mode: Literal["standard", "strict"] | None = None
    """How the limit counts. Omitted: as the call says."""
    shadow: bool | None = None
    """Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says."""


@dataclass(frozen=True, kw_only=True)
class PortalSession:
    """A session in which an owner of keys manages them."""

    session_id: str
    root_key_id: str
    """The root key that created it."""
    api_id: str
    identity_id: str
    external_id: str
    actions: list[Literal["list", "create", "reroll", "rename", "delete", "usage", "left"]]
    created_at: int
    """Unix time in milliseconds."""
    expires_at: int
    """When it ends."""


@dataclass(frozen=True, kw_only=True)
class RootKey:
    """A root key, which authenticates a program to the service."""

    root_key_id: str
    name: str
    start: str
    """The readable beginning of the root key. Empty for the root key of the service's configuration."""
    permissions: list[str]
    enabled: bool
    source: Literal["issued", "environment"]
    """`environment`: the root key of the service's configuration."""
    created_at: int
    """Unix time in milliseconds."""
    updated_at: int | None = None
    last_used_at: int | None = None
    """Time of a recent call, within about a minute. Absent: never used."""
    expires: int | None = None
    """Unix time in milliseconds. Absent: never."""
    leak_action: Literal["mark", "disable"] | None = None
    """What happens if it is reported as leaked. Absent: `mark`."""
    leaked_at: int | None = None
    """When it was first reported as leaked, as Unix time in milliseconds. Absent: never."""
    created_by: str | None = None
    """The id of the root key that created it. Absent: the command line, the configuration, or unknown."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session of the dashboard, which stands for a root key."""

    session_id: str
    root_key_id: str
    address: str
    """The address that signed in."""
    user_agent: str
    """The browser that signed in, as it names itself."""
    created_at: int
    """Unix time in milliseconds."""
    last_used_at: int
    """Time of a recent call, within about a minute."""
    expires_at: int
    """When the session ends if it is not used again."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The resources of one tenant, isolated from all others."""

    workspace_id: str
    name: str
    enabled: bool
    """Whether its root keys are accepted and its keys can be valid."""
    default: bool
    """Whether it is the default workspace, which manages the others."""
    requests_per_minute: int | None = None
    """Absent: unlimited."""
    created_at: int
    """Unix time in milliseconds."""
    updated_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class AuditEvent:
    """One change in the workspace: actor, operation, resources and time."""

    id: str
    occurred_at: int
    """Unix time in milliseconds."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    action: str
    """The operation, such as `keys.create_key`."""
    targets: list[str]
    """Ids of the affected resources."""
    meta: dict[str, Any]
    """What changed. Never contains a secret. Of an update, `before` and `after` have the former and the new values of
    the members that differ; a value of more than 1,000 characters of JSON is its `beginning` with its `length`. Of
    `keys.update_credits`, they are balances. Of `apis.update_keys` and `apis.delete_keys`, `change` is what each key
    was to get, and `changes` what each of the `keys` that changed got, its beginning beyond 200 characters.
    """


@dataclass(frozen=True, kw_only=True)
class Event:
    """A change of state, or a moment that it led to."""

    id: str
    type: Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]
    version: int
    """The version of the schema of `data`, among those of the type."""
    created_at: int
    """Unix time in milliseconds."""
    data: dict[str, Any]
    """What the event is about, in the schema of its type: see the webhooks of this document."""


@dataclass(frozen=True, kw_only=True)
class WebhookDisabled:
    """Since when and why it is disabled. Absent: it is enabled."""

    at: int
    """Unix time in milliseconds."""
    reason: Literal["requested", "failing", "gone"]
    """`requested`: a call disabled it. `failing`: the service gave a delivery up, and none had succeeded for two days.
    `gone`: the endpoint answered 410.
    """


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """An endpoint to which events of the workspace are sent."""

    webhook_id: str
    name: str | None = None
    endpoint: str
    """The URL to which events are sent."""
    event_types: list[str] | None = None
    """The types of events that it gets. Absent: all."""
    api_ids: list[str] | None = None
    """The APIs of which it gets events. Absent: all events."""
    enabled: bool
    disabled: WebhookDisabled | None = None
    """Since when and why it is disabled. Absent: it is enabled."""
    failing_since: int | None = None
    """The first failed attempt since the last successful one. Absent: the last attempt succeeded."""
    pending: int
    """Deliveries that wait for their first or next attempt."""
    behind_since: int | None = None
    """Since when further events wait without a delivery, because too many deliveries wait. They get one as these end.
    Absent: every event has its delivery.
    """
    dead: int
    """Deliveries that were given up, and can be delivered again. At most 1,000 are counted."""
    last_delivered_at: int | None = None
    """When the newest event that it has was delivered, as Unix time in milliseconds. Absent: it has none."""
    previous_secret_expires: int | None = None
    """Until when messages are signed with the former secret too. Absent: they are not."""
    created_at: int
    """Unix time in milliseconds."""
    updated_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class WebhookDeliveryLastAttempt:
    at: int
    """When it ended, as Unix time in milliseconds."""
    duration: int
    """In milliseconds."""
    status: int | None = None
    """The status of the answer. Absent: there was none."""
    error: str | None = None
    """What was wrong. Absent: nothing."""


@dataclass(frozen=True, kw_only=True)
class WebhookDelivery:
    """The delivery of one event to one webhook."""

    event_id: str | None = None
    """Absent: the event is older than the retention of events."""
    type: str | None = None
    """The type of the event."""
    object_id: str
    """The object of the event. Its events are delivered in their order."""
    status: Literal["pending", "delivered", "dead"]
    """`pending`: it waits for its first or next attempt. `delivered`: the endpoint has it. `dead`: it was given up, and
    can be delivered again.
    """
    attempts: int
    """Attempts that were made, since the last call of `webhooks.redeliver` if there was one."""
    created_at: int
    """Unix time in milliseconds."""
    next_attempt_at: int | None = None
    """When it is attempted. Absent if it is not pending, or waits for an earlier event of its object."""
    completed_at: int | None = None
    """When it was delivered or given up."""
    last_attempt: WebhookDeliveryLastAttempt | None = None
    error: str | None = None
    """Why it was given up without an attempt."""


@dataclass(frozen=True, kw_only=True)
class LoggedDecisionLimit:
    """The limit that decided. Absent for a verification that no limit rejected."""

    name: str | None = None
    """Of a verification: the name of the limit."""
    limit: int | None = None
    """Of a rate limit: its limit, after overrides."""
    duration: int | None = None
    """Of a rate limit: its window in milliseconds, after overrides."""


@dataclass(frozen=True, kw_only=True)
class LoggedDecision:
    """A verification or a rate limit decision in the log."""

    id: str
    at: int
    """Unix time in milliseconds."""
    kind: Literal["verification", "ratelimit"]
    code: Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED", "PASSED", "DENIED"]
    """The code of the verification; of a rate limit, `PASSED` or `DENIED`."""
    request_id: str
    """`meta.request_id` of the answer."""
    latency_us: int
    """Time that the decision took, in microseconds."""
    key_id: str | None = None
    """Of a verification: the key. Absent if it does not exist, as are its API and identity."""
    api_id: str | None = None
    """Of a verification: the API of the key."""
    identity_id: str | None = None
    """Of a verification: the identity of the key."""
    namespace_id: str | None = None
    """Of a rate limit: the namespace."""
    identifier: str | None = None
    """Of a rate limit: the identifier. Of an address it is the block, as in `network`."""
    limit: LoggedDecisionLimit | None = None
    """The limit that decided. Absent for a verification that no limit rejected."""
    cost: int
    """What the call asked for: credits of a verification, the cost of a rate limit."""
    credits_spent: int | None = None
    """Of a verification: the credits that it spent."""
    tags: list[str] | None = None
    """Of a verification: its tags."""
    network: str | None = None
    """The block of the address that the decision was about: 24 bits of an IPv4 address, 48 of an IPv6 address. The log
    has no full address.
    """
    left_out: int | None = None
    """Refusals before this one that are not in the log: of the same key or namespace, with the same code, in the same
    minute. Absent: none.
    """
    left_out_of_others: int | None = None
    """The same of other keys and namespaces of the workspace, when too many had refusals. Absent: none."""


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """An object that a search found."""

    kind: Literal["key", "identity", "api", "budget", "namespace", "webhook", "role", "permission", "rootKey"]
    id: str
    name: str | None = None
    """Its name; of an identity the external id, of a permission the slug, of a webhook its name or URL."""
    is_exact: bool
    """Whether the query is its id, its whole name or its key string."""
    api_id: str | None = None
    """Of a key: its API."""
    start: str | None = None
    """Of a key: the beginning of the key string."""
    external_id: str | None = None
    """Of a key: the external id of its identity."""
    created_at: int
    """Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class CountKeysOutput:
    count: int
    is_complete: bool
    """Whether all keys were examined. If not, there may be more."""


class CreateApiInputPolicyExpiry(TypedDict):
    default: NotRequired[int]
    """The life of a new key that is created without `expires`, in milliseconds."""
    max: NotRequired[int]
    """The longest life of a key, in milliseconds from its creation. Without `default`, each key must be created with
    `expires`.
    """


class CreateApiInputPolicy(TypedDict):
    """What new keys must have. It is set as a whole. Null: nothing."""

    expiry: NotRequired[CreateApiInputPolicyExpiry]
    limits_required: NotRequired[bool]
    """Whether each key needs a limit: in `ratelimits` or `concurrency` of the key, of its plan, of its identity, or of
    the plan of that. Credits, budgets and limits in shadow mode are none.
    """
    prefix_fixed: NotRequired[bool]
    """Whether each key has the `prefix` of the API, and none if the API has none."""


@dataclass(frozen=True, kw_only=True)
class CreateApiOutput:
    api_id: str


@dataclass(frozen=True, kw_only=True)
class DeleteApiOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class GetLeakKitOutputKitsEntryGithub:
    """What GitHub's secret scanning partner program needs."""

    type: str
    """A name of the secret type."""
    regex: str
    endpoint: str
    """Where GitHub sends its reports."""
    sample: str
    """A text that matches. It is no key."""


@dataclass(frozen=True, kw_only=True)
class GetLeakKitOutputKitsEntry:
    prefix: str
    regex: str
    """Matches every key with the prefix. For RE2, Hyperscan, PCRE and JavaScript; needs linear time."""
    gitleaks: str
    """A rule of gitleaks, in TOML."""
    trufflehog: str
    """A custom detector of TruffleHog with the address that verifies, in YAML."""
    github: GetLeakKitOutputKitsEntryGithub
    """What GitHub's secret scanning partner program needs."""


@dataclass(frozen=True, kw_only=True)
class GetLeakKitOutput:
    api_id: str
    kits: list[GetLeakKitOutputKitsEntry]


class UpdateApiInputUpstreamHeadersEntry(TypedDict):
    name: str
    value: str


class UpdateApiInputUpstream(TypedDict):
    """An HTTP endpoint of another system that is asked once about each key that is unknown here. A key that it knows is
    created here. Needs `create_key` too. Null: none.
    """

    url: str
    """The endpoint. `http://` and private addresses need `LATCHKEY_UPSTREAM_ALLOW_PRIVATE=yes`."""
    headers: NotRequired[Sequence[UpdateApiInputUpstreamHeadersEntry]]
    """Headers of each question, such as `Authorization`. Their values are stored encrypted and never returned. Default:
    [].
    """
    timeout: NotRequired[int]
    """Milliseconds that a verification waits for an answer. Default: 2000."""
    on_outage: NotRequired[Literal["unavailable", "not_found"]]
    """The answer to a verification whose question gets none: status 503, or NOT_FOUND. Known keys are not affected.
    Default: "unavailable".
    """


class UpdateApiInputPolicyExpiry(TypedDict):
    default: NotRequired[int]
    """The life of a new key that is created without `expires`, in milliseconds."""
    max: NotRequired[int]
    """The longest life of a key, in milliseconds from its creation. Without `default`, each key must be created with
    `expires`.
    """


class UpdateApiInputPolicy(TypedDict):
    """What new keys must have. It is set as a whole. Null: nothing."""

    expiry: NotRequired[UpdateApiInputPolicyExpiry]
    limits_required: NotRequired[bool]
    """Whether each key needs a limit: in `ratelimits` or `concurrency` of the key, of its plan, of its identity, or of
    the plan of that. Credits, budgets and limits in shadow mode are none.
    """
    prefix_fixed: NotRequired[bool]
    """Whether each key has the `prefix` of the API, and none if the API has none."""


class UpdateApiInputPortalPage(TypedDict):
    """How the page looks."""

    name: NotRequired[str]
    """Your name, in the title."""
    logo_url: NotRequired[str]
    """Your logo: an https address that every browser can load. It is shown 32 pixels high."""
    color: NotRequired[str]
    """The color of buttons and links, such as `#246bce`. It is made lighter or darker where it could not be read."""
    language: NotRequired[Literal["en", "de", "fr", "es", "pt", "ja", "ar"]]
    """The language of the page. Omitted: the first of the browser's languages that is available, or English."""
    return_url: NotRequired[str]
    """Where the link back leads. Omitted: there is none."""


class UpdateApiInputPortal(TypedDict):
    """What sessions of the portal inherit unless they say otherwise. It is set as a whole. The root key needs the
    permission of each action. Null: nothing.
    """

    actions: NotRequired[Sequence[Literal["list", "create", "reroll", "rename", "delete", "usage", "left"]]]
    """What the holder of the session may do with the keys: `list` them, `create` new ones, `reroll`, `rename` and
    `delete` them, see their `usage`, and see what is `left` of their credits and budgets. The root key needs the
    permission for each action.
    """
    page: NotRequired[UpdateApiInputPortalPage]
    """How the page looks."""


@dataclass(frozen=True, kw_only=True)
class UpdateApiOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class UpdateKeysOutputFailedEntry:
    key_id: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class UpdateKeysOutput:
    changed: int
    """Number of keys that changed. Those that had the value, the roles or the permissions are not counted."""
    failed: list[UpdateKeysOutputFailedEntry]
    """Keys that could not be changed. The others were."""
    cursor: str | None = None
    """Continues with the next keys. Absent: every key that matches was processed."""


@dataclass(frozen=True, kw_only=True)
class DeleteKeysOutputFailedEntry:
    key_id: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class DeleteKeysOutput:
    changed: int
    """Number of keys that changed. Those that had the value, the roles or the permissions are not counted."""
    failed: list[DeleteKeysOutputFailedEntry]
    """Keys that could not be changed. The others were."""
    cursor: str | None = None
    """Continues with the next keys. Absent: every key that matches was processed."""


class CreateKeyInputCreditsRefill(TypedDict):
    """Sets the balance to an amount at regular intervals."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    amount: int
    """The balance after a refill."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class CreateKeyInputCredits(TypedDict):
    """A balance of credits. Omitted: unlimited."""

    remaining: int | None
    """Remaining credits. Null: unlimited."""
    refill: NotRequired[CreateKeyInputCreditsRefill | None]
    """Sets the balance to an amount at regular intervals."""


class CreateKeyInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class CreateKeyInputConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


@dataclass(frozen=True, kw_only=True)
class CreateKeyOutput:
    key_id: str
    key: Secret
    """The key string. Give it to your user and do not store it."""


@dataclass(frozen=True, kw_only=True)
class DeleteKeyOutput:
    pass


class DeriveKeyInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds, at most a day."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """


class DeriveKeyInputCredits(TypedDict):
    """A bound besides the credits and budgets of its parent. Omitted: none."""

    max: int
    """The most that it may spend in its life."""


@dataclass(frozen=True, kw_only=True)
class DeriveKeyOutput:
    key_id: str
    key: Secret
    """The key string. Only this response contains it."""
    expires: int
    """When it ends at the latest: the earliest of its own end and those of its parents, Unix time in milliseconds."""


class DeriveOwnKeyInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds, at most a day."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """


class DeriveOwnKeyInputCredits(TypedDict):
    """A bound besides the credits and budgets of its parent. Omitted: none."""

    max: int
    """The most that it may spend in its life."""


@dataclass(frozen=True, kw_only=True)
class DeriveOwnKeyOutput:
    key_id: str
    key: Secret
    """The key string. Only this response contains it."""
    expires: int
    """When it ends at the latest: the earliest of its own end and those of its parents, Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class GetOwnKeyOutputCreditsRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    amount: int
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None
    next_at: int
    """When the next refill is due, Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class GetOwnKeyOutputCredits:
    """Absent: unlimited."""

    remaining: int
    refill: GetOwnKeyOutputCreditsRefill | None = None


@dataclass(frozen=True, kw_only=True)
class GetOwnKeyOutputRatelimitsEntry:
    name: str
    limit: int
    duration: int
    """Length of the window in milliseconds."""
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""
    used: int
    """What was charged in the sliding window that ends now."""
    remaining: int
    reset_at: int
    """End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops counting,
    or would if it were made now.
    """
    shared: bool
    """Whether all keys of the owner share the limit."""


@dataclass(frozen=True, kw_only=True)
class GetOwnKeyOutputUsageDaysEntry:
    start_at: int
    total: int
    valid: int
    credits_spent: int


@dataclass(frozen=True, kw_only=True)
class GetOwnKeyOutputUsage:
    """Verifications of the last 30 days in UTC, with today. Absent if the service keeps no analytics, and of a derived
    key, whose calls count for the key at the top.
    """

    start_at: int
    end_at: int
    total: int
    valid: int
    credits_spent: int
    days: list[GetOwnKeyOutputUsageDaysEntry]
    """The days with verifications, the oldest first."""


@dataclass(frozen=True, kw_only=True)
class GetOwnKeyOutput:
    key_id: str
    enabled: bool
    expires: int | None = None
    """Unix time in milliseconds. Absent: never."""
    credits: GetOwnKeyOutputCredits | None = None
    """Absent: unlimited."""
    ratelimits: list[GetOwnKeyOutputRatelimitsEntry]
    usage: GetOwnKeyOutputUsage | None = None
    """Verifications of the last 30 days in UTC, with today. Absent if the service keeps no analytics, and of a derived
    key, whose calls count for the key at the top.
    """


class MigrateKeysInputKeysEntryCreditsRefill(TypedDict):
    """Sets the balance to an amount at regular intervals."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    amount: int
    """The balance after a refill."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class MigrateKeysInputKeysEntryCredits(TypedDict):
    """A balance of credits. Omitted: unlimited."""

    remaining: int | None
    """Remaining credits. Null: unlimited."""
    refill: NotRequired[MigrateKeysInputKeysEntryCreditsRefill | None]
    """Sets the balance to an amount at regular intervals."""


class MigrateKeysInputKeysEntryRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class MigrateKeysInputKeysEntryConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


class MigrateKeysInputKeysEntry(TypedDict):
    hash: str
    """The hash of the key string as hex, base64 or base64url, in the length of the algorithm."""
    name: NotRequired[str]
    """A label. Of your end users, at most the owner of the key sees it."""
    external_id: NotRequired[str]
    """Your own identifier of the owner of the key."""
    meta: NotRequired[Mapping[str, Any]]
    """Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it."""
    roles: NotRequired[Sequence[str]]
    """Names. Roles that do not exist yet are created."""
    permissions: NotRequired[Sequence[str]]
    """Slugs. Permissions that do not exist yet are created."""
    expires: NotRequired[int]
    """Unix time in milliseconds at which the key expires."""
    enabled: NotRequired[bool]
    """Default: True."""
    credits: NotRequired[MigrateKeysInputKeysEntryCredits]
    """A balance of credits. Omitted: unlimited."""
    ratelimits: NotRequired[Sequence[MigrateKeysInputKeysEntryRatelimitsEntry]]
    concurrency: NotRequired[Sequence[MigrateKeysInputKeysEntryConcurrencyEntry]]
    """How many calls may run at once. Each verification takes a slot of each of these limits with `hold`, until its
    hold ends; without `hold` it gets 400.
    """
    allowed_ips: NotRequired[Sequence[str]]
    """IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowed_ips`, both lists must contain the
    address. Omitted: every address that the API allows.
    """
    plan: NotRequired[str]
    """The name of the plan, or its id. Needs `assign_plan` on it."""
    budget_id: NotRequired[str]
    """The budget that verifications spend from too, together with its ancestors. Needs `assign_budget` on it."""


@dataclass(frozen=True, kw_only=True)
class MigrateKeysOutputMigratedEntry:
    hash: str
    key_id: str


@dataclass(frozen=True, kw_only=True)
class MigrateKeysOutputStopped:
    """Why the import ended before its end. Correct what `detail` names, or wait if `status` is 503, and send the last
    `count` keys of the list again.
    """

    count: int
    """How many hashes at the end of `failed` were not imported for this reason. Those before them exist."""
    status: int
    """The status that a call with these keys alone would have."""
    title: str
    type: str
    """The page about the problem, with its causes and remedies."""
    detail: str
    """The reason. It names the key, if one of them is the reason."""


@dataclass(frozen=True, kw_only=True)
class MigrateKeysOutput:
    migrated: list[MigrateKeysOutputMigratedEntry]
    """The hashes as sent, with the ids of the new keys."""
    failed: list[str]
    """Hashes that were not imported."""
    stopped: MigrateKeysOutputStopped | None = None
    """Why the import ended before its end. Correct what `detail` names, or wait if `status` is 503, and send the last
    `count` keys of the list again.
    """


@dataclass(frozen=True, kw_only=True)
class ReportLeakOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class RerollKeyOutput:
    key_id: str
    key: Secret
    """The new key string."""


@dataclass(frozen=True, kw_only=True)
class RestoreKeyOutput:
    enabled: bool
    """False if the key was disabled when it was deleted, or was reported as leaked."""


@dataclass(frozen=True, kw_only=True)
class UpdateCreditsOutputRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    amount: int
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None


@dataclass(frozen=True, kw_only=True)
class UpdateCreditsOutput:
    remaining: int | None
    """The balance. Null: unlimited."""
    refill: UpdateCreditsOutputRefill | None = None


class UpdateKeyInputCreditsRefill(TypedDict):
    """The new refill. Null: no refill. The balance does not change."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    amount: int
    """The balance after a refill."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class UpdateKeyInputCredits(TypedDict):
    """Null: unlimited."""

    remaining: NotRequired[int | None]
    """The new balance. Null: unlimited, without a refill."""
    refill: NotRequired[UpdateKeyInputCreditsRefill | None]
    """The new refill. Null: no refill. The balance does not change."""


class UpdateKeyInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class UpdateKeyInputConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


@dataclass(frozen=True, kw_only=True)
class UpdateKeyOutput:
    pass


class VerifyKeyInputCredits(TypedDict):
    """Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without charging."""

    cost: int


class VerifyKeyInputHold(TypedDict):
    """Holds the cost instead of spending it, for work whose cost is known afterwards: `holds.settle_hold` charges what
    it really was. The call can then charge up to 10 limits, whose names have up to 1000 characters together.
    Requires a root key.
    """

    ttl: int
    """Milliseconds until the hold expires."""
    on_expiry: NotRequired[Literal["release", "charge"]]
    """What happens to the credits if nobody settles or releases the hold in time. `release`: they are given back.
    `charge`: they are spent. Default: "release".
    """


class VerifyKeyInputRatelimitsEntry(TypedDict):
    name: str
    cost: NotRequired[int]
    """Cost of this call. 0: check the limit without charging it. Default: 1."""
    limit: NotRequired[int]
    """With `duration`: a limit for this call only, instead of a stored one."""
    duration: NotRequired[int]
    """With `limit`: the length of its window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """With `limit` and `duration`: how the limit counts. Omitted: `standard`."""
    shadow: NotRequired[bool]
    """With `limit` and `duration`: whether the limit only counts, and never denies. Omitted: `false`."""


@dataclass(frozen=True, kw_only=True)
class VerifyKeyOutputBudgetsEntry:
    budget_id: str
    name: str
    remaining: int
    """Its credits after this verification."""
    held: int
    """What open holds have taken from it, with this one."""
    exceeded: bool
    """Whether it does not cover the call."""
    retry_after: int | None = None
    """If it is exceeded: milliseconds until its next refill. Absent: it has none."""


@dataclass(frozen=True, kw_only=True)
class VerifyKeyOutputHold:
    """The hold that this verification made. Present if it is valid and asked for one."""

    hold_id: str
    expires_at: int
    """Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class VerifyKeyOutputDerived:
    """Present if it is a derived key. Then `name`, `meta` and `identity` are those of the key at the top."""

    parent_key_id: str
    """The key, or the derived key, that it was derived from."""
    meta: dict[str, Any]
    """Its own. The holder of a key may have chosen it."""


@dataclass(frozen=True, kw_only=True)
class VerifyKeyOutputConcurrencyEntry:
    name: str
    limit: int
    in_use: int
    """How many holds are open, with that of this call."""
    from_: Literal["key", "identity"]
    """Where the limit comes from. All keys of an identity share its slots."""
    exceeded: bool
    """Whether it denies the call."""
    retry_after: int | None = None
    """If it is exceeded: milliseconds until the first of these holds expires, or less. Any can end earlier."""


@dataclass(frozen=True, kw_only=True)
class VerifyKeyOutputRatelimitsEntry:
    id: str
    name: str
    limit: int
    duration: int
    """Length of the window in milliseconds."""
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""
    auto_apply: bool
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""
    from_: Literal["identity"] | None = None
    """Present if it is a limit of the identity, which all its keys share."""
    exceeded: bool
    remaining: int
    """What remains in the window after this call. A denied call charges nothing."""
    reset: int
    """End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops counting,
    or would if it were made now.
    """
    retry_after: int | None = None
    """Milliseconds until this cost would pass. 0 if it passed. Absent: it can never pass."""


@dataclass(frozen=True, kw_only=True)
class VerifyKeyOutput:
    valid: bool
    code: Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED"]
    key_id: str | None = None
    api_id: str | None = None
    enabled: bool | None = None
    name: str | None = None
    meta: dict[str, Any] | None = None
    expires: int | None = None
    permissions: list[str] | None = None
    roles: list[str] | None = None
    plan: str | None = None
    """The name of the plan of the key, with a root key."""
    credits: int | None = None
    """The balance after this verification. Absent: unlimited."""
    budgets: list[VerifyKeyOutputBudgetsEntry] | None = None
    """The budgets that the call is charged to, with a root key."""
    hold: VerifyKeyOutputHold | None = None
    """The hold that this verification made. Present if it is valid and asked for one."""
    identity: Identity | None = None
    derived: VerifyKeyOutputDerived | None = None
    """Present if it is a derived key. Then `name`, `meta` and `identity` are those of the key at the top."""
    concurrency: list[VerifyKeyOutputConcurrencyEntry] | None = None
    """Every limit of concurrency, with `hold`. Absent if the key has none, or if the call failed before."""
    ratelimits: list[VerifyKeyOutputRatelimitsEntry] | None = None
    """Every limit that was checked."""
    retry_after: int | None = None
    """With RATE_LIMITED: milliseconds until the call would pass without other calls. Absent: it can never pass. Where
    slots of `concurrency` are lacking, one can be free sooner, or still be taken then if its hold was extended.
    """


class ExplainVerificationInputCredits(TypedDict):
    """Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without charging."""

    cost: int


class ExplainVerificationInputHold(TypedDict):
    """Holds the cost instead of spending it, for work whose cost is known afterwards: `holds.settle_hold` charges what
    it really was. The call can then charge up to 10 limits, whose names have up to 1000 characters together.
    Requires a root key.
    """

    ttl: int
    """Milliseconds until the hold expires."""
    on_expiry: NotRequired[Literal["release", "charge"]]
    """What happens to the credits if nobody settles or releases the hold in time. `release`: they are given back.
    `charge`: they are spent. Default: "release".
    """


class ExplainVerificationInputRatelimitsEntry(TypedDict):
    name: str
    cost: NotRequired[int]
    """Cost of this call. 0: check the limit without charging it. Default: 1."""
    limit: NotRequired[int]
    """With `duration`: a limit for this call only, instead of a stored one."""
    duration: NotRequired[int]
    """With `limit`: the length of its window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """With `limit` and `duration`: how the limit counts. Omitted: `standard`."""
    shadow: NotRequired[bool]
    """With `limit` and `duration`: whether the limit only counts, and never denies. Omitted: `false`."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputStepsEntry:
    step: Literal["lookup", "deletion", "api", "rootKey", "workspace", "enabled", "expiry", "address", "permissions", "concurrency", "limits", "credits"]
    """What was checked."""
    code: Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED"]
    """The code of a verification that fails here."""
    result: Literal["passed", "decided", "notReached"]
    """`decided`: it failed, and its code is the answer. The steps after it are not reached."""
    detail: str
    """What was compared, as a sentence."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputKeyIdentity:
    id: str
    external_id: str
    plan: str | None = None
    """The name of its plan."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputKey:
    """Absent if no key was found."""

    key_id: str
    api_id: str
    plan: str | None = None
    """The name of its plan."""
    identity: ExplainVerificationOutputKeyIdentity | None = None


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputRecord:
    """Where the node that answers had the record of the key from."""

    source: Literal["cache", "database"]
    current_at: int
    """The record includes every change that was made before this Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputPermissionsQueryPartsEntry:
    text: str
    satisfied: bool


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputPermissionsQuerySlugsEntry:
    slug: str
    granted_by: str | None = None
    """The permission of the key that includes it: itself or a wildcard. Absent: there is none."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputPermissionsQuery:
    """Absent if the call asks for no permission."""

    text: str
    """The query, with its operators in capitals."""
    satisfied: bool
    parts: list[ExplainVerificationOutputPermissionsQueryPartsEntry]
    """The parts that must all be satisfied: the operands of the outermost `AND`."""
    slugs: list[ExplainVerificationOutputPermissionsQuerySlugsEntry]
    """Each permission that the query names."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputPermissionsEffectiveEntry:
    slug: str
    direct: bool
    """Whether the key has it itself."""
    roles: list[str]
    """Names of the roles of the key that have it."""
    plan: str | None = None
    """The name of the plan of the key, if that gives it too."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputPermissions:
    query: ExplainVerificationOutputPermissionsQuery | None = None
    """Absent if the call asks for no permission."""
    effective: list[ExplainVerificationOutputPermissionsEffectiveEntry]
    """At most 1000, first those that the query needs."""
    count: int
    """The number of permissions of the key."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputConcurrencyEntry:
    name: str
    limit: int
    in_use: int
    """How many holds are open, with that of this call."""
    from_: Literal["key", "identity"]
    """Where the limit comes from. All keys of an identity share its slots."""
    exceeded: bool
    """Whether it denies the call."""
    retry_after: int | None = None
    """If it is exceeded: milliseconds until the first of these holds expires, or less. Any can end earlier."""
    plan: str | None = None
    """The name of the plan that gives it."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputRatelimitsEntryWindow:
    """The current window, Unix times in milliseconds. Of a strict limit: from its oldest charge until that stops
    counting.
    """

    start_at: int
    end_at: int


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputRatelimitsEntry:
    id: str
    """Empty if the call gives the limit."""
    name: str
    limit: int
    duration: int
    """Length of the window in milliseconds."""
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""
    from_: Literal["key", "identity", "derived", "call"]
    """Where the limit comes from. All keys of an identity share the counters of its limits. `derived`: a derived key,
    or one that it was derived from.
    """
    plan: str | None = None
    """The name of the plan that gives it to the key or to the identity. Absent: it is one of their own."""
    use: Literal["charged", "checked", "replaced", "unused"]
    """What a verification does with it: `charged`; `checked`, without a charge, because the call names other limits;
    `replaced` by the limit of the same name that the call gives; `unused`, because the call does not name it and it
    has no `auto_apply`.
    """
    cost: int | None = None
    """What the call costs. Absent if the limit is replaced or unused."""
    exceeded: bool | None = None
    """Whether the limit denies the call, or would if it were not in shadow mode. Absent like `cost`."""
    retry_after: int | None = None
    """Milliseconds until this cost would pass without other calls. Absent: never, or like `cost`."""
    used: int
    """The counter: what was charged in the sliding window that ends now."""
    window: ExplainVerificationOutputRatelimitsEntryWindow
    """The current window, Unix times in milliseconds. Of a strict limit: from its oldest charge until that stops
    counting.
    """


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputCreditsRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    amount: int
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None
    next_at: int
    """When the next refill is due, Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputCredits:
    """Absent: unlimited."""

    remaining: int
    refill: ExplainVerificationOutputCreditsRefill | None = None
    held: int
    """What open holds have taken from it."""
    cost: int
    """What the call costs."""
    plan: str | None = None
    """The name of the plan that gives it. Absent: it is one of the key."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputBudgetsEntryRefill:
    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    amount: int
    refill_day: int | None = None
    refill_month: int | None = None
    time_zone: str | None = None
    rollover: int | None = None
    next_at: int
    """When the next refill is due, Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputBudgetsEntry:
    remaining: int
    refill: ExplainVerificationOutputBudgetsEntryRefill | None = None
    budget_id: str
    name: str
    unit: str | None = None
    on_empty: Literal["deny", "allow"]
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0.
    """
    held: int
    """What open holds have taken from it."""
    cost: int
    """What the call costs."""
    exceeded: bool
    """Whether it does not cover the call."""
    plan: str | None = None
    """The plan of the identity, if that gives it."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputDerivedEntryCredits:
    """What it may spend at most."""

    max: int
    remaining: int


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputDerivedEntry:
    key_id: str
    parent_key_id: str
    expires: int
    """Unix time in milliseconds."""
    ended: bool
    """Whether it was ended before."""
    permissions: list[str] | None = None
    """It has those permissions of its parent that are also here. Absent: all of them."""
    credits: ExplainVerificationOutputDerivedEntryCredits | None = None
    """What it may spend at most."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputEdgeRecord:
    """Its record of the key. Absent: it has none that it may use, or the call has `key_id`."""

    current_at: int
    """The record includes every change that was made before this Unix time in milliseconds, by the clock of the edge.
    """


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputEdgeLeasesEntry:
    name: str
    """The name of the limit."""
    from_: Literal["key", "identity"]
    """Where the limit comes from."""
    remaining: int
    """What is left of the lease. The counter of the limit has all of it already."""
    expires_at: int
    """Unix time in milliseconds, by the clock of the edge."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutputEdge:
    """The edge that has passed on the call, with what it would decide a verification by: `latchkey edge` or
    `LocalLatchkey`. Everything else is the service's. Absent: there was none.
    """

    id: str
    name: str | None = None
    """Absent: it has none."""
    record: ExplainVerificationOutputEdgeRecord | None = None
    """Its record of the key. Absent: it has none that it may use, or the call has `key_id`."""
    leases: list[ExplainVerificationOutputEdgeLeasesEntry]
    """What it holds of the limits of the key. Empty without its record."""


@dataclass(frozen=True, kw_only=True)
class ExplainVerificationOutput:
    valid: bool
    code: Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED"]
    """The code that `keys.verify_key` would answer."""
    at: int
    """The time of the decision, Unix time in milliseconds."""
    steps: list[ExplainVerificationOutputStepsEntry]
    key: ExplainVerificationOutputKey | None = None
    """Absent if no key was found."""
    record: ExplainVerificationOutputRecord | None = None
    """Where the node that answers had the record of the key from."""
    permissions: ExplainVerificationOutputPermissions | None = None
    concurrency: list[ExplainVerificationOutputConcurrencyEntry] | None = None
    """Every limit of concurrency of the key and of its identity. Absent: none."""
    ratelimits: list[ExplainVerificationOutputRatelimitsEntry] | None = None
    """Every limit of the key, of its identity and of the call."""
    credits: ExplainVerificationOutputCredits | None = None
    """Absent: unlimited."""
    budgets: list[ExplainVerificationOutputBudgetsEntry] | None = None
    """The budgets that the call is charged to. Absent: none."""
    derived: list[ExplainVerificationOutputDerivedEntry] | None = None
    """The derived key, and each one that it was derived from. Absent: it is no derived key."""
    edge: ExplainVerificationOutputEdge | None = None
    """The edge that has passed on the call, with what it would decide a verification by: `latchkey edge` or
    `LocalLatchkey`. Everything else is the service's. Absent: there was none.
    """


class CreateIdentityInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class CreateIdentityInputConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


@dataclass(frozen=True, kw_only=True)
class CreateIdentityOutput:
    identity_id: str


@dataclass(frozen=True, kw_only=True)
class DeleteIdentityOutput:
    pass


class UpdateIdentityInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class UpdateIdentityInputConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


class CreatePlanInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class CreatePlanInputConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


class CreatePlanInputCreditsRefill(TypedDict):
    """When the next period begins. Omitted: never."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class CreatePlanInputCredits(TypedDict):
    """A balance for each key with the plan, or for its reroll chain. Credits that a key has itself take its place. A
    plan with credits is for keys only.
    """

    amount: int
    """What each period has. A new amount counts from the next refill."""
    refill: NotRequired[CreatePlanInputCreditsRefill]
    """When the next period begins. Omitted: never."""


class CreatePlanInputBudgetRefill(TypedDict):
    """When the next period begins. Omitted: never."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class CreatePlanInputBudget(TypedDict):
    """A budget for each identity with the plan, which verifications of all its keys spend from. A `budget_id` of the
    identity takes its place. A plan with a budget is for identities only, and has no `credits`.
    """

    amount: int
    """What each period has. A new amount counts from the next refill."""
    refill: NotRequired[CreatePlanInputBudgetRefill]
    """When the next period begins. Omitted: never."""
    on_empty: NotRequired[Literal["deny", "allow"]]
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0. Default: "deny".
    """
    thresholds: NotRequired[Sequence[int]]
    """Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
    one. Default: [].
    """
    unit: NotRequired[str]
    """What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent."""


@dataclass(frozen=True, kw_only=True)
class CreatePlanOutput:
    plan_id: str


@dataclass(frozen=True, kw_only=True)
class DeletePlanOutput:
    pass


class PreviewUpdateInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class PreviewUpdateInputConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


class PreviewUpdateInputCreditsRefill(TypedDict):
    """When the next period begins. Omitted: never."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class PreviewUpdateInputCredits(TypedDict):
    """A balance for each key with the plan, or for its reroll chain. Credits that a key has itself take its place. A
    plan with credits is for keys only.
    """

    amount: int
    """What each period has. A new amount counts from the next refill."""
    refill: NotRequired[PreviewUpdateInputCreditsRefill]
    """When the next period begins. Omitted: never."""


class PreviewUpdateInputBudgetRefill(TypedDict):
    """When the next period begins. Omitted: never."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class PreviewUpdateInputBudget(TypedDict):
    """A budget for each identity with the plan, which verifications of all its keys spend from. A `budget_id` of the
    identity takes its place. A plan with a budget is for identities only, and has no `credits`.
    """

    amount: int
    """What each period has. A new amount counts from the next refill."""
    refill: NotRequired[PreviewUpdateInputBudgetRefill]
    """When the next period begins. Omitted: never."""
    on_empty: NotRequired[Literal["deny", "allow"]]
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0. Default: "deny".
    """
    thresholds: NotRequired[Sequence[int]]
    """Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
    one. Default: [].
    """
    unit: NotRequired[str]
    """What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent."""


@dataclass(frozen=True, kw_only=True)
class PreviewUpdateOutputKeys:
    """Those that have the plan themselves."""

    count: int
    is_complete: bool
    """False if there are more than the 20000 that a call examines."""


@dataclass(frozen=True, kw_only=True)
class PreviewUpdateOutputIdentities:
    count: int
    is_complete: bool
    """False if there are more than the 20000 that a call examines."""


@dataclass(frozen=True, kw_only=True)
class PreviewUpdateOutput:
    keys: PreviewUpdateOutputKeys
    """Those that have the plan themselves."""
    identities: PreviewUpdateOutputIdentities
    changes: list[PlanChange]
    """In the order of the fields and of the names of limits."""


class UpdatePlanInputRatelimitsEntry(TypedDict):
    name: str
    """Name of the limit, for verifications."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    auto_apply: NotRequired[bool]
    """Whether every verification that does not name the limit is charged 1. Default: False."""
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """


class UpdatePlanInputConcurrencyEntry(TypedDict):
    name: str
    """Name of the limit, for answers."""
    limit: int
    """How many holds may be open at once."""


class UpdatePlanInputCreditsRefill(TypedDict):
    """When the next period begins. Omitted: never."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class UpdatePlanInputCredits(TypedDict):
    """A balance for each key with the plan, or for its reroll chain. Credits that a key has itself take its place. A
    plan with credits is for keys only.
    """

    amount: int
    """What each period has. A new amount counts from the next refill."""
    refill: NotRequired[UpdatePlanInputCreditsRefill]
    """When the next period begins. Omitted: never."""


class UpdatePlanInputBudgetRefill(TypedDict):
    """When the next period begins. Omitted: never."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


class UpdatePlanInputBudget(TypedDict):
    """A budget for each identity with the plan, which verifications of all its keys spend from. A `budget_id` of the
    identity takes its place. A plan with a budget is for identities only, and has no `credits`.
    """

    amount: int
    """What each period has. A new amount counts from the next refill."""
    refill: NotRequired[UpdatePlanInputBudgetRefill]
    """When the next period begins. Omitted: never."""
    on_empty: NotRequired[Literal["deny", "allow"]]
    """What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall
    below 0. Default: "deny".
    """
    thresholds: NotRequired[Sequence[int]]
    """Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches
    one. Default: [].
    """
    unit: NotRequired[str]
    """What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent."""


class CreateBudgetInputRefill(TypedDict):
    """Sets the balance to an amount at regular intervals."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    amount: int
    """The balance after a refill."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


@dataclass(frozen=True, kw_only=True)
class CreateBudgetOutput:
    budget_id: str


@dataclass(frozen=True, kw_only=True)
class DeleteBudgetOutput:
    pass


class UpdateBudgetInputRefill(TypedDict):
    """The new refill. Null: no refill. The balance does not change."""

    interval: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    """At the start of each hour, or of a day at midnight."""
    amount: int
    """The balance after a refill."""
    refill_day: NotRequired[int]
    """With `weekly`: the day of the week, 1 (Monday) to 7. With `monthly` and `yearly`: the day of the month; in a
    shorter month, the last day. Omitted: 1.
    """
    refill_month: NotRequired[int]
    """With `yearly`: the month. Omitted: January."""
    time_zone: NotRequired[str]
    """The time zone whose midnight counts, by its name in the IANA database, such as `Europe/Berlin`. Not with
    `hourly`. Omitted: UTC.
    """
    rollover: NotRequired[int]
    """The most of the balance that is kept: a refill adds `amount` to it, and each missed refill counts. Omitted:
    nothing is kept.
    """


@dataclass(frozen=True, kw_only=True)
class ExtendHoldOutput:
    hold_id: str
    expires_at: int
    """Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ReleaseHoldOutputBudgetsEntry:
    budget_id: str
    uncovered: int


@dataclass(frozen=True, kw_only=True)
class ReleaseHoldOutput:
    hold_id: str
    state: Literal["open", "settled", "released", "expired"]
    """`open` becomes one of the others. Of these, only `expired` becomes `settled`: by a late settlement."""
    charged: int
    """The credits that were charged: what every balance covered. 0 for a key without credits and budgets."""
    uncovered: int
    """What the work did cost besides: the most that a balance did not cover. 0 if nothing was lacking."""
    budgets: list[ReleaseHoldOutputBudgetsEntry]
    """The budgets that did not cover all of it, and what each did not cover."""


class SettleHoldInputRatelimitsEntry(TypedDict):
    name: str
    cost: int
    """What the work did cost of this limit. It can be more than was charged."""


@dataclass(frozen=True, kw_only=True)
class SettleHoldOutputBudgetsEntry:
    budget_id: str
    uncovered: int


@dataclass(frozen=True, kw_only=True)
class SettleHoldOutput:
    hold_id: str
    state: Literal["open", "settled", "released", "expired"]
    """`open` becomes one of the others. Of these, only `expired` becomes `settled`: by a late settlement."""
    charged: int
    """The credits that were charged: what every balance covered. 0 for a key without credits and budgets."""
    uncovered: int
    """What the work did cost besides: the most that a balance did not cover. 0 if nothing was lacking."""
    budgets: list[SettleHoldOutputBudgetsEntry]
    """The budgets that did not cover all of it, and what each did not cover."""


@dataclass(frozen=True, kw_only=True)
class GetApiStatsOutputSeriesEntry:
    time: int
    """Start of the bucket."""
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int


@dataclass(frozen=True, kw_only=True)
class GetApiStatsOutputTagsEntry:
    tag: str
    total: int
    valid: int


@dataclass(frozen=True, kw_only=True)
class GetApiStatsOutput:
    api_id: str
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["minute", "hour", "day"]
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int
    series: list[GetApiStatsOutputSeriesEntry]
    """Every bucket of the range in order, including empty ones."""
    tags: list[GetApiStatsOutputTagsEntry]
    """The 100 most frequent tags."""
    tags_untold: int | None = None
    """Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none."""


@dataclass(frozen=True, kw_only=True)
class GetBudgetStatsOutputSeriesEntry:
    time: int
    """Start of the bucket."""
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int


@dataclass(frozen=True, kw_only=True)
class GetBudgetStatsOutputTagsEntry:
    tag: str
    total: int
    valid: int


@dataclass(frozen=True, kw_only=True)
class GetBudgetStatsOutput:
    budget_id: str
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["minute", "hour", "day"]
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int
    series: list[GetBudgetStatsOutputSeriesEntry]
    """Every bucket of the range in order, including empty ones."""
    tags: list[GetBudgetStatsOutputTagsEntry]
    """The 100 most frequent tags."""
    tags_untold: int | None = None
    """Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none."""


@dataclass(frozen=True, kw_only=True)
class GetIdentityStatsOutputSeriesEntry:
    time: int
    """Start of the bucket."""
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int


@dataclass(frozen=True, kw_only=True)
class GetIdentityStatsOutputTagsEntry:
    tag: str
    total: int
    valid: int


@dataclass(frozen=True, kw_only=True)
class GetIdentityStatsOutput:
    identity: str
    """As in the request."""
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["minute", "hour", "day"]
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int
    series: list[GetIdentityStatsOutputSeriesEntry]
    """Every bucket of the range in order, including empty ones."""
    tags: list[GetIdentityStatsOutputTagsEntry]
    """The 100 most frequent tags."""
    tags_untold: int | None = None
    """Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none."""


@dataclass(frozen=True, kw_only=True)
class GetKeyStatsOutputSeriesEntry:
    time: int
    """Start of the bucket."""
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int


@dataclass(frozen=True, kw_only=True)
class GetKeyStatsOutputTagsEntry:
    tag: str
    total: int
    valid: int


@dataclass(frozen=True, kw_only=True)
class GetKeyStatsOutput:
    key_id: str
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["minute", "hour", "day"]
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int
    series: list[GetKeyStatsOutputSeriesEntry]
    """Every bucket of the range in order, including empty ones."""
    tags: list[GetKeyStatsOutputTagsEntry]
    """The 100 most frequent tags."""
    tags_untold: int | None = None
    """Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none."""


@dataclass(frozen=True, kw_only=True)
class GetRatelimitStatsOutputSeriesEntry:
    time: int
    """Start of the bucket."""
    total: int
    """Number of decisions."""
    passed: int
    denied: int
    cost: int
    """Total cost that was charged."""


@dataclass(frozen=True, kw_only=True)
class GetRatelimitStatsOutputIdentifiersEntry:
    identifier: str
    denied: int
    total: int


@dataclass(frozen=True, kw_only=True)
class GetRatelimitStatsOutput:
    namespace: str
    """As in the request."""
    identifier: str | None = None
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["minute", "hour", "day"]
    total: int
    """Number of decisions."""
    passed: int
    denied: int
    cost: int
    """Total cost that was charged."""
    series: list[GetRatelimitStatsOutputSeriesEntry]
    """Every bucket of the range in order, including empty ones."""
    identifiers: list[GetRatelimitStatsOutputIdentifiersEntry]
    """The 100 identifiers with the most denied decisions."""
    identifiers_untold: int | None = None
    """Decisions whose identifier is not counted, because a bucket holds at most 1,000 identifiers. Absent: none."""


@dataclass(frozen=True, kw_only=True)
class ListTopIdentitiesOutputIdentitiesEntry:
    identity_id: str
    external_id: str | None = None
    """Absent if the identity is deleted."""
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int


@dataclass(frozen=True, kw_only=True)
class ListTopIdentitiesOutput:
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["hour", "day"]
    incomplete_before: int | None = None
    """Counts before this Unix time in milliseconds are missing, because a ranking examines a limited number of keys,
    those of the newest buckets first. Ask for a shorter range or a coarser granularity. Absent: all are counted.
    """
    identities: list[ListTopIdentitiesOutputIdentitiesEntry]


@dataclass(frozen=True, kw_only=True)
class ListTopKeysOutputKeysEntry:
    key_id: str
    api_id: str | None = None
    """The API of the key. Absent if the key is deleted, or if the root key may not read all these keys."""
    start: str | None = None
    """The first characters of the key. Absent if the key is deleted, or if the root key may not read all these keys."""
    name: str | None = None
    """The name of the key, if it has one. Absent if the key is deleted, or if the root key may not read all these keys.
    """
    external_id: str | None = None
    """The owner of the key, if it has one. Absent if the key is deleted, or if the root key may not read all these
    keys.
    """
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    outcomes: dict[str, int]
    """Verifications by code. Codes that did not occur are omitted."""
    credits_spent: int


@dataclass(frozen=True, kw_only=True)
class ListTopKeysOutput:
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["hour", "day"]
    incomplete_before: int | None = None
    """Counts before this Unix time in milliseconds are missing, because a ranking examines a limited number of keys,
    those of the newest buckets first. Ask for a shorter range or a coarser granularity. Absent: all are counted.
    """
    keys: list[ListTopKeysOutputKeysEntry]


@dataclass(frozen=True, kw_only=True)
class ListUsageOutputKeysEntrySeriesEntry:
    time: int
    """Start of the bucket."""
    total: int
    valid: int


@dataclass(frozen=True, kw_only=True)
class ListUsageOutputKeysEntry:
    key_id: str
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    series: list[ListUsageOutputKeysEntrySeriesEntry]
    """The buckets with verifications, in order."""


@dataclass(frozen=True, kw_only=True)
class ListUsageOutputApisEntrySeriesEntry:
    time: int
    """Start of the bucket."""
    total: int
    valid: int


@dataclass(frozen=True, kw_only=True)
class ListUsageOutputApisEntry:
    api_id: str
    total: int
    """Number of verifications."""
    valid: int
    """Number of valid ones."""
    series: list[ListUsageOutputApisEntrySeriesEntry]
    """The buckets with verifications, in order."""


@dataclass(frozen=True, kw_only=True)
class ListUsageOutput:
    start: int
    """Start of the first bucket."""
    end: int
    """End of the last bucket."""
    granularity: Literal["minute", "hour", "day"]
    keys: list[ListUsageOutputKeysEntry]
    """In the order of `key_ids`."""
    apis: list[ListUsageOutputApisEntry]
    """In the order of `api_ids`."""


@dataclass(frozen=True, kw_only=True)
class CreatePermissionOutput:
    permission_id: str


@dataclass(frozen=True, kw_only=True)
class CreateRoleOutput:
    role_id: str


@dataclass(frozen=True, kw_only=True)
class DeletePermissionOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class DeleteRoleOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class UpdateRoleOutput:
    id: str
    name: str
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class LimitOutput:
    success: bool
    """Whether the call passed."""
    limit: int
    """The limit that applies: that of the override, if there is one."""
    remaining: int
    """What remains in the window after this call. A denied call charges nothing."""
    reset: int
    """End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops counting,
    or would if it were made now.
    """
    retry_after: int | None = None
    """Milliseconds until this cost would pass without other calls. 0 if it passed. Absent: it can never pass."""
    override_id: str | None = None
    """The override that applies, if there is one."""
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""
    exceeded: bool | None = None
    """With `shadow`: whether the limit would have denied the call."""


class MultiLimitInputEntry(TypedDict):
    namespace: str
    """Name or id of the namespace. A new name creates a namespace."""
    identifier: str
    """The identifier to count, such as a user id or an address."""
    limit: int
    """Maximum cost per window."""
    duration: int
    """Length of the window in milliseconds."""
    mode: NotRequired[Literal["standard", "strict"]]
    """How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing
    `duration`. Default: "standard".
    """
    shadow: NotRequired[bool]
    """`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you
    see what a limit would do before it is in force. Default: False.
    """
    cost: NotRequired[int]
    """Cost of this call. 0: check the limit without charging it. Default: 1."""


@dataclass(frozen=True, kw_only=True)
class MultiLimitOutputLimitsEntry:
    namespace: str
    """As in the request."""
    identifier: str
    passed: bool
    """Whether this entry alone would pass."""
    limit: int
    """The limit that applies: that of the override, if there is one."""
    remaining: int
    """What remains in the window after this call. A denied call charges nothing."""
    reset: int
    """End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops counting,
    or would if it were made now.
    """
    retry_after: int | None = None
    """Milliseconds until this cost would pass without other calls. 0 if it passed. Absent: it can never pass."""
    override_id: str | None = None
    """The override that applies, if there is one."""
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""
    exceeded: bool | None = None
    """With `shadow`: whether the limit would have denied the call."""


@dataclass(frozen=True, kw_only=True)
class MultiLimitOutput:
    passed: bool
    """Whether every entry passed."""
    limits: list[MultiLimitOutputLimitsEntry]
    """In the order of the request."""


@dataclass(frozen=True, kw_only=True)
class DeleteNamespaceOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class DeleteOverrideOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class ExplainLimitOutputWindow:
    """The current window, Unix times in milliseconds. Of a strict limit: from its oldest charge until that stops
    counting.
    """

    start_at: int
    end_at: int


@dataclass(frozen=True, kw_only=True)
class ExplainLimitOutputOverride:
    """The override that applies. Absent: none matches."""

    override_id: str
    identifier: str
    """An identifier, or a pattern."""
    limit: int
    duration: int
    """Length of the window in milliseconds."""
    mode: Literal["standard", "strict"] | None = None
    """How the limit counts. Omitted: as the call says."""
    shadow: bool | None = None
    """Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says."""


@dataclass(frozen=True, kw_only=True)
class ExplainLimitOutputOthersEntry:
    override_id: str
    identifier: str
    """An identifier, or a pattern."""
    limit: int
    duration: int
    """Length of the window in milliseconds."""
    mode: Literal["standard", "strict"] | None = None
    """How the limit counts. Omitted: as the call says."""
    shadow: bool | None = None
    """Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says."""


@dataclass(frozen=True, kw_only=True)
class ExplainLimitOutput:
    success: bool
    """Whether the call would pass."""
    detail: str
    """What was compared, as a sentence."""
    namespace_id: str
    limit: int
    """The limit that applies: that of the override, if there is one."""
    duration: int
    """Length of its window in milliseconds."""
    mode: Literal["strict"] | None = None
    """Present if the limit is strict."""
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it never denies."""
    cost: int
    """What the call costs."""
    used: int
    """The counter: what was charged in the sliding window that ends now."""
    remaining: int
    """What remains, without this call."""
    retry_after: int | None = None
    """Milliseconds until this cost would pass without other calls. 0 if it passes. Absent: it never passes."""
    window: ExplainLimitOutputWindow
    """The current window, Unix times in milliseconds. Of a strict limit: from its oldest charge until that stops
    counting.
    """
    override: ExplainLimitOutputOverride | None = None
    """The override that applies. Absent: none matches."""
    others: list[ExplainLimitOutputOthersEntry]
    """Further overrides that match, in the order of precedence. At most 100."""


@dataclass(frozen=True, kw_only=True)
class GetDescriptorsOutput:
    namespace_id: str
    namespace: str
    """Name of the namespace."""
    descriptors: list[dict[str, Any]]
    """The tree, as the configuration of envoyproxy/ratelimit writes it."""
    atomic: bool
    """Whether a call charges all its descriptors or none."""
    metadata: bool
    """Whether answers have dynamic metadata."""
    updated_at: int | None = None
    """Time of its last change, Unix time in milliseconds. Absent: there is no tree."""


@dataclass(frozen=True, kw_only=True)
class ListNamespacesOutputEntry:
    id: str
    name: str
    created_at: int
    """Time of its first use, Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ListOverridesOutput:
    overrides: list[Override]
    cursor: str | None = None
    """The same as `pagination.cursor`."""


@dataclass(frozen=True, kw_only=True)
class SetDescriptorsOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class SetOverrideOutput:
    override_id: str


class CreateSessionInputKeys(TypedDict):
    """Limits on the keys."""

    max: NotRequired[int]
    """The most keys that the owner can have in the API. Expired keys do not count. Default: 10."""
    prefixes: NotRequired[Sequence[str]]
    """Prefixes of new keys, the default first. Omitted: only the prefix of the API."""
    expires_in_max: NotRequired[int]
    """The longest life of a new key, in milliseconds. Omitted: a new key needs no expiry."""
    roles: NotRequired[Sequence[str]]
    """Names of existing roles that a new key may have. It has all of them by default."""


class CreateSessionInputPage(TypedDict):
    """How the page looks. A member that is omitted is as the `portal` of the API says."""

    name: NotRequired[str]
    """Your name, in the title."""
    logo_url: NotRequired[str]
    """Your logo: an https address that every browser can load. It is shown 32 pixels high."""
    color: NotRequired[str]
    """The color of buttons and links, such as `#246bce`. It is made lighter or darker where it could not be read."""
    language: NotRequired[Literal["en", "de", "fr", "es", "pt", "ja", "ar"]]
    """The language of the page. Omitted: the first of the browser's languages that is available, or English."""
    return_url: NotRequired[str]
    """Where the link back leads. Omitted: there is none."""


@dataclass(frozen=True, kw_only=True)
class CreateSessionOutput:
    session_id: str
    token: Secret
    """The token of the session. Only this response contains it."""
    url: Secret
    """The address of the page, with the token. Absolute if the service has `LATCHKEY_PUBLIC_URL`; otherwise the path.
    """
    expires_at: int
    """Unix time in milliseconds at which the session ends."""


@dataclass(frozen=True, kw_only=True)
class DeletePortalSessionsOutput:
    deleted: int
    """Number of sessions that this call ended."""


@dataclass(frozen=True, kw_only=True)
class CreateRootKeyOutput:
    root_key_id: str
    key: Secret
    """The root key. Only this response contains it: the service stores a hash."""


@dataclass(frozen=True, kw_only=True)
class DeleteRootKeyOutput:
    deleted_descendants: int
    """How many root keys that it created were deleted, directly or indirectly."""
    living_descendants: int
    """How many root keys that it created, directly or indirectly, are not deleted, in all workspaces."""


@dataclass(frozen=True, kw_only=True)
class DeleteSessionsOutput:
    deleted: int
    """Number of sessions that this call ended."""


@dataclass(frozen=True, kw_only=True)
class RerollRootKeyOutput:
    root_key_id: str
    key: Secret
    """The root key. Only this response contains it: the service stores a hash."""


@dataclass(frozen=True, kw_only=True)
class UpdateRootKeyOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class CreateWorkspaceOutput:
    workspace_id: str
    root_key_id: str
    key: Secret
    """The root key. Only this response contains it: the service stores a hash."""


@dataclass(frozen=True, kw_only=True)
class UpdateWorkspaceOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class CreateWebhookOutput:
    webhook_id: str
    secret: Secret
    """The secret that signs messages: `whsec_` and Base64. Only this response contains it."""


@dataclass(frozen=True, kw_only=True)
class DeleteWebhookOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class RedeliverOutput:
    count: int
    """Deliveries that were started."""
    has_more: bool
    """Whether there may be further dead letters: call again."""


@dataclass(frozen=True, kw_only=True)
class RotateSecretOutput:
    webhook_id: str
    secret: Secret
    """The secret that signs messages: `whsec_` and Base64. Only this response contains it."""


@dataclass(frozen=True, kw_only=True)
class SendTestOutput:
    event_id: str


@dataclass(frozen=True, kw_only=True)
class UpdateWebhookOutput:
    pass


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputKeysExpiringKeysEntry:
    key_id: str
    api_id: str
    start: str
    name: str | None = None
    expires: int


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputKeysExpiring:
    """Active keys that expire within 14 days. Absent without `apis.*.read_key`."""

    count: int
    """At most 1,000: then there may be more."""
    keys: list[GetFindingsOutputKeysExpiringKeysEntry]
    """The first 20."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputCreditsLowKeysEntry:
    key_id: str
    api_id: str
    start: str
    name: str | None = None
    remaining: int
    refill_amount: int | None = None


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputCreditsLow:
    """Active keys with at most a tenth of their refill left, or at most 10 credits without a refill. Absent without
    `apis.*.read_key`.
    """

    count: int
    """At most 1,000: then there may be more."""
    keys: list[GetFindingsOutputCreditsLowKeysEntry]
    """The first 20."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputKeysLeakedKeysEntry:
    key_id: str
    api_id: str
    start: str
    name: str | None = None
    leaked_at: int
    """When it was first reported, as Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputKeysLeaked:
    """Active keys that were reported as leaked, as long as the audit log has the report. Absent without
    `apis.*.read_key`.
    """

    count: int
    """At most 1,000: then there may be more."""
    keys: list[GetFindingsOutputKeysLeakedKeysEntry]
    """The first 20."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputKeysAgainstPolicyEntryKeysEntry:
    key_id: str
    api_id: str
    start: str
    name: str | None = None
    expires: int | None = None
    against: list[Literal["expiry", "limitsRequired", "prefixFixed"]]
    """The members of the policy that it does not obey."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputKeysAgainstPolicyEntry:
    api_id: str
    name: str
    count: int
    """At most 1,000: then there may be more."""
    keys: list[GetFindingsOutputKeysAgainstPolicyEntryKeysEntry]
    """The first 20, the oldest first."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputRootKeysUnusedEntry:
    root_key_id: str
    name: str
    created_at: int
    last_used_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputRootKeysUnrestrictedEntry:
    root_key_id: str
    name: str
    created_at: int
    last_used_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputRootKeysLeakedEntry:
    root_key_id: str
    name: str
    created_at: int
    last_used_at: int | None = None
    leaked_at: int
    """When it was first reported, as Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputWebhooksDisabledEntry:
    webhook_id: str
    name: str | None = None
    endpoint: str
    disabled_at: int
    """Unix time in milliseconds."""
    reason: Literal["failing", "gone"]
    """As in `disabled` of `webhooks.get_webhook`."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutputWebhooksDeadEntry:
    webhook_id: str
    name: str | None = None
    endpoint: str
    dead: int
    """As `dead` of `webhooks.get_webhook`."""


@dataclass(frozen=True, kw_only=True)
class GetFindingsOutput:
    keys_expiring: GetFindingsOutputKeysExpiring | None = None
    """Active keys that expire within 14 days. Absent without `apis.*.read_key`."""
    credits_low: GetFindingsOutputCreditsLow | None = None
    """Active keys with at most a tenth of their refill left, or at most 10 credits without a refill. Absent without
    `apis.*.read_key`.
    """
    keys_leaked: GetFindingsOutputKeysLeaked | None = None
    """Active keys that were reported as leaked, as long as the audit log has the report. Absent without
    `apis.*.read_key`.
    """
    keys_against_policy: list[GetFindingsOutputKeysAgainstPolicyEntry] | None = None
    """The first 20 APIs with active keys that do not obey its policy: keys that are older than it, and those whose plan
    or identity has lost its limits. Absent without `apis.*.read_key`.
    """
    root_keys_unused: list[GetFindingsOutputRootKeysUnusedEntry] | None = None
    """The first 20 enabled root keys that made no call for 90 days. Absent without `rootKeys.*.read_root_key`."""
    root_keys_unrestricted: list[GetFindingsOutputRootKeysUnrestrictedEntry] | None = None
    """The first 20 enabled root keys with the permission `*`. Absent without `rootKeys.*.read_root_key`."""
    root_keys_leaked: list[GetFindingsOutputRootKeysLeakedEntry] | None = None
    """The first 20 enabled root keys that were reported as leaked. Absent without `rootKeys.*.read_root_key`."""
    webhooks_disabled: list[GetFindingsOutputWebhooksDisabledEntry] | None = None
    """Webhooks that the service disabled, because their endpoint failed for too long or answered 410. Absent without
    `webhooks.*.read_webhook`.
    """
    webhooks_dead: list[GetFindingsOutputWebhooksDeadEntry] | None = None
    """Webhooks with deliveries that were given up. `webhooks.redeliver` sends them again. Absent without
    `webhooks.*.read_webhook`.
    """


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputComponentsEntry:
    name: Literal["database", "storage", "claim", "redis", "analytics"]
    status: Literal["ok", "degraded", "off"]
    detail: str | None = None
    """What is wrong; of a Redis that answers, which servers count."""


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputEdgesListEntry:
    id: str
    kind: Literal["process", "library"]
    """`process`: `latchkey edge`; `library`: `LocalLatchkey`."""
    version: str
    name: str | None = None
    """Absent: it has none."""
    root_key_id: str
    """The root key of the edge."""
    address: str
    records: int
    """Keys and root keys in its memory."""
    reports: int
    """Counts of verifications that it has not delivered."""
    leases: int | None = None
    """Parts of limits that it holds. Absent: its release has none."""
    age_ms: int
    """Milliseconds since it last asked for changes."""


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputEdges:
    """The edges of the workspace that asked this node for changes within 10 seconds. Absent: there are none."""

    count: int
    """How many there are."""
    list: list[GetStatusOutputEdgesListEntry]
    """At most 100, in the order of their ids."""


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputServiceConfigurationEntry:
    name: str
    """The name in the environment."""
    value: str
    """The effective value: times in milliseconds, sizes in bytes. Of a secret `set`. Empty: none."""
    is_secret: bool


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputServiceBackups:
    """The scheduled backups of the embedded database. Absent: there is no schedule."""

    every_ms: int
    """Milliseconds between two backups."""
    last_made_at: int | None = None
    """When the newest one was made. Absent: there is none."""
    bytes: int | None = None
    """Its size."""
    next_at: int
    """When the next one is due."""
    failures: int
    """Attempts that failed since the start."""
    trouble: str | None = None
    """Why the last attempt failed. Absent: it succeeded."""


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputServiceRecentMinutesEntry:
    since: int
    """Unix time in milliseconds from which on calls are counted."""
    verifications: int
    """Calls of `keys.verify_key`. 0 with `LATCHKEY_METRICS=off`."""
    p50_ms: float | None = None
    """Half of them were answered in at most this time, in milliseconds."""
    p99_ms: float | None = None
    """99 % of them were answered in at most this time."""


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputServiceRecent:
    """The last 10 minutes of the node, for all workspaces; `minutes` covers an hour."""

    since: int
    """Unix time in milliseconds from which on calls are counted."""
    verifications: int
    """Calls of `keys.verify_key`. 0 with `LATCHKEY_METRICS=off`."""
    p50_ms: float | None = None
    """Half of them were answered in at most this time, in milliseconds."""
    p99_ms: float | None = None
    """99 % of them were answered in at most this time."""
    lookups_refused: int
    """Look-ups that were refused, because the budget for unknown keys, root keys and sessions was used up."""
    minutes: list[GetStatusOutputServiceRecentMinutesEntry]
    """The last 60 minutes one by one, the oldest first. The last one is in progress."""


@dataclass(frozen=True, kw_only=True)
class GetStatusOutputService:
    version: str
    node: str
    """Version of Node.js."""
    configuration: list[GetStatusOutputServiceConfigurationEntry]
    backups: GetStatusOutputServiceBackups | None = None
    """The scheduled backups of the embedded database. Absent: there is no schedule."""
    recent: GetStatusOutputServiceRecent
    """The last 10 minutes of the node, for all workspaces; `minutes` covers an hour."""


@dataclass(frozen=True, kw_only=True)
class GetStatusOutput:
    status: Literal["ok", "degraded", "fail", "shutting down"]
    """As `/health/ready` reports it."""
    started_at: int
    """Unix time in milliseconds at which the node started."""
    components: list[GetStatusOutputComponentsEntry]
    edges: GetStatusOutputEdges | None = None
    """The edges of the workspace that asked this node for changes within 10 seconds. Absent: there are none."""
    service: GetStatusOutputService | None = None


@dataclass(frozen=True, kw_only=True)
class SystemListDecisionsOutputDecisionsEntry:
    id: str
    """Unique among the decisions of all nodes."""
    at: int
    """Unix time in milliseconds."""
    latency_us: int
    """Time that the decision took, in microseconds."""
    kind: Literal["verification", "ratelimit"]
    code: Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED"] | None = None
    """Of a verification: its code."""
    tags: list[str] | None = None
    """Of a verification: its tags."""
    credits_spent: int | None = None
    """Of a verification: the credits that it spent."""
    key_id: str | None = None
    """Of a verification: the key. Absent if it does not exist, as are its API and identity."""
    api_id: str | None = None
    """Of a verification: the API of the key."""
    identity_id: str | None = None
    """Of a verification: the identity of the key."""
    namespace_id: str | None = None
    """Of a rate limit: the namespace."""
    identifier: str | None = None
    """Of a rate limit: the identifier."""
    passed: bool | None = None
    """Of a rate limit: whether it was allowed."""
    cost: int | None = None
    """Of a rate limit: the cost that was charged."""


@dataclass(frozen=True, kw_only=True)
class SystemListDecisionsOutput:
    decisions: list[SystemListDecisionsOutputDecisionsEntry]


@dataclass(frozen=True, kw_only=True)
class SearchOutput:
    results: list[SearchResult]
    is_complete: bool
    """Whether everything was examined. If not, older objects may match too."""


@dataclass(frozen=True, kw_only=True)
class KeyCreatedEvent:
    """The data of `key.created`. A key was created."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    name: str | None = None
    start: str | None = None
    """The beginning of the key string."""
    expires: int | None = None
    rerolled_from: str | None = None
    """The key that it replaces."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyUpdatedEvent:
    """The data of `key.updated`. Settings of a key changed."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    changed: list[str]
    """Names of the members that changed."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyDisabledEvent:
    """The data of `key.disabled`. A key was disabled."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyEnabledEvent:
    """The data of `key.enabled`. A key was enabled again."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyDeletedEvent:
    """The data of `key.deleted`. A key was deleted."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    permanent: bool
    """Whether the key was erased from the database."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyRestoredEvent:
    """The data of `key.restored`. A deleted key was restored."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    enabled: bool
    """Whether it is enabled. A key that was reported as leaked is restored disabled."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyRerolledEvent:
    """The data of `key.rerolled`. A key was replaced by another one."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    new_key_id: str
    expires: int | None
    """When the old key expires, as Unix time in milliseconds. Null: never."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyDerivedEvent:
    """The data of `key.derived`. A key was derived from a key of which no derived key is stored: its first one, or the
    first after a while.
    """

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    derived_key_id: str
    expires: int
    """When the derived key ends at the latest, as Unix time in milliseconds."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class KeyExpiringEvent:
    """The data of `key.expiring`. A key expires soon."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    expires: int
    """When it expires, as Unix time in milliseconds."""
    days: int
    """The days before its expiry for which the event was due."""


@dataclass(frozen=True, kw_only=True)
class KeyExpiredEvent:
    """The data of `key.expired`. A key expired."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    expires: int
    """When it expired, as Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class KeyFirstUsedEvent:
    """The data of `key.first_used`. A key was verified for the first time."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    used_at: int
    """When it was verified, as Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class KeyUnusedEvent:
    """The data of `key.unused`. A key was not verified for 90 days."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    last_used_at: int | None
    """Its last verification, as Unix time in milliseconds. Null: none."""
    days: int


@dataclass(frozen=True, kw_only=True)
class KeysImportedEvent:
    """The data of `keys.imported`. Keys were imported from another system. Such keys have no `key.created`."""

    api_id: str
    migration_id: str
    """The name of the migration."""
    key_ids: list[str]
    """500 at most. A longer import has several events."""
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class CreditsLowEvent:
    """The data of `credits.low`. A balance fell to 20 % of its refill, or to 0. Without a refill: to 20 % of what it
    was last set or raised to.
    """

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    key_ids: list[str]
    """The keys that share the balance, the newest first, 20 at most."""
    remaining: int
    """The balance."""
    threshold: int
    """The balance at or below which the event was due."""


@dataclass(frozen=True, kw_only=True)
class CreditsRefilledEvent:
    """The data of `credits.refilled`. A balance was refilled."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    key_ids: list[str]
    """The keys that share the balance, the newest first, 20 at most."""
    remaining: int
    """The balance."""
    before: int
    """The balance before."""


@dataclass(frozen=True, kw_only=True)
class PlanCreatedEvent:
    """The data of `plan.created`. A plan was created."""

    plan_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class PlanUpdatedEvent:
    """The data of `plan.updated`. What a plan gives changed, for all keys and identities that have it."""

    plan_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""
    version: int
    """That of the plan after the change. Each change adds 1."""


@dataclass(frozen=True, kw_only=True)
class PlanDeletedEvent:
    """The data of `plan.deleted`. A plan was deleted."""

    plan_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class BudgetCreatedEvent:
    """The data of `budget.created`. A budget was created."""

    budget_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class BudgetUpdatedEvent:
    """The data of `budget.updated`. Settings or credits of a budget changed."""

    budget_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class BudgetDeletedEvent:
    """The data of `budget.deleted`. A budget was deleted."""

    budget_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class BudgetRefilledEvent:
    """The data of `budget.refilled`. A budget was refilled."""

    budget_id: str
    name: str
    remaining: int
    """Its credits."""
    before: int
    """Its credits before."""


@dataclass(frozen=True, kw_only=True)
class BudgetThresholdReachedEvent:
    """The data of `budget.threshold_reached`. A part of a budget is spent. Once a period for each threshold, unless
    credits were added.
    """

    budget_id: str
    name: str
    unit: str | None = None
    threshold: int
    """The part, as a percentage of what the period had."""
    remaining: int
    """Its credits."""
    spent: int
    """What was spent in the period."""


@dataclass(frozen=True, kw_only=True)
class HoldExpiredEvent:
    """The data of `hold.expired`. Nobody settled or released a hold before its expiry."""

    hold_id: str
    key_id: str
    api_id: str
    credits: int
    """The credits that it held."""
    expires_at: int
    """When it expired, as Unix time in milliseconds."""
    charged: int
    """What was charged: `credits` or 0, as its `on_expiry` says."""


@dataclass(frozen=True, kw_only=True)
class HoldUncoveredEventBudgetsEntry:
    budget_id: str
    uncovered: int


@dataclass(frozen=True, kw_only=True)
class HoldUncoveredEvent:
    """The data of `hold.uncovered`. A hold was settled for more than it held, and the balances did not cover all of it.
    """

    hold_id: str
    key_id: str
    api_id: str
    credits: int
    """The credits that it held."""
    charged: int
    """What every balance covered."""
    uncovered: int
    """What the settlement asked for besides: the most that a balance did not cover."""
    budgets: list[HoldUncoveredEventBudgetsEntry]
    """The budgets among these balances, and what each did not cover."""


@dataclass(frozen=True, kw_only=True)
class LimitExceededEvent:
    """The data of `limit.exceeded`. The first call in a window was rejected by a limit, or would have been by one in
    shadow mode.
    """

    key_id: str | None = None
    api_id: str | None = None
    identity_id: str | None = None
    """The identity to which the limit belongs, if it does not belong to the key."""
    external_id: str | None = None
    namespace_id: str | None = None
    """The namespace of the identifier, for `ratelimits.limit`."""
    identifier: str | None = None
    name: str | None = None
    """The name of the limit."""
    limit: int
    duration: int
    shadow: Literal[True] | None = None
    """Present if the limit is in shadow mode: it rejected nothing."""
    window_end: int
    """The end of the window, as Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class RootKeyCreatedEvent:
    """The data of `root_key.created`. A root key was created."""

    root_key_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    rerolled_from: str | None = None


@dataclass(frozen=True, kw_only=True)
class RootKeyUpdatedEvent:
    """The data of `root_key.updated`. Settings of a root key changed."""

    root_key_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class RootKeyDisabledEvent:
    """The data of `root_key.disabled`. A root key was disabled."""

    root_key_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class RootKeyEnabledEvent:
    """The data of `root_key.enabled`. A root key was enabled again."""

    root_key_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class RootKeyDeletedEvent:
    """The data of `root_key.deleted`. A root key was deleted."""

    root_key_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class RootKeyLeakedEvent:
    """The data of `root_key.leaked`. A root key was reported as leaked."""

    root_key_id: str
    name: str
    source: str
    """Which kind of report it was, such as `github`."""
    url: str | None = None
    """Where the root key was found, as the report says."""
    disabled: bool
    """Whether the report disabled the root key."""


@dataclass(frozen=True, kw_only=True)
class RootKeyRerolledEvent:
    """The data of `root_key.rerolled`. A root key was replaced by another one."""

    root_key_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    new_root_key_id: str
    expires: int
    """When the old root key expires, as Unix time in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class IdentityCreatedEvent:
    """The data of `identity.created`. An identity was created."""

    identity_id: str
    external_id: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class IdentityUpdatedEvent:
    """The data of `identity.updated`. An identity changed."""

    identity_id: str
    external_id: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class IdentityDeletedEvent:
    """The data of `identity.deleted`. An identity was deleted."""

    identity_id: str
    external_id: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class RoleCreatedEvent:
    """The data of `role.created`. A role was created."""

    role_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class RoleUpdatedEvent:
    """The data of `role.updated`. A role or its permissions changed."""

    role_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class RoleDeletedEvent:
    """The data of `role.deleted`. A role was deleted."""

    role_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class PermissionCreatedEvent:
    """The data of `permission.created`. A permission was created."""

    permission_id: str
    slug: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class PermissionUpdatedEvent:
    """The data of `permission.updated`. A permission changed."""

    permission_id: str
    slug: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class PermissionDeletedEvent:
    """The data of `permission.deleted`. A permission was deleted."""

    permission_id: str
    slug: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class ApiCreatedEvent:
    """The data of `api.created`. An API was created."""

    api_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class ApiUpdatedEvent:
    """The data of `api.updated`. Settings of an API changed."""

    api_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class ApiDeletedEvent:
    """The data of `api.deleted`. An API was deleted. Its keys stop working; they have no events of their own."""

    api_id: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class NamespaceCreatedEvent:
    """The data of `namespace.created`. A rate limit namespace was created."""

    namespace_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class NamespaceDeletedEvent:
    """The data of `namespace.deleted`. A rate limit namespace was deleted."""

    namespace_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class DescriptorsSetEvent:
    """The data of `descriptors.set`. The descriptors of a rate limit namespace were set."""

    namespace_id: str
    name: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class OverrideSetEvent:
    """The data of `override.set`. A rate limit override was set."""

    override_id: str
    namespace_id: str
    identifier: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class OverrideDeletedEvent:
    """The data of `override.deleted`. A rate limit override was deleted."""

    override_id: str
    namespace_id: str
    identifier: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class WorkspaceCreatedEvent:
    """The data of `workspace.created`. A workspace was created."""

    workspace_id: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class WorkspaceUpdatedEvent:
    """The data of `workspace.updated`. Settings of a workspace changed."""

    workspace_id: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class QuotaNearEvent:
    """The data of `quota.near`. A workspace has more than 80 % of what it may have of one kind."""

    quota: str
    """`bytes`, or the kind of rows: `keys`, `apis` and so on."""
    used: int
    """Bytes or rows."""
    max: int
    """The largest number of them."""
    setting: str
    """The setting of the service that has the maximum."""


@dataclass(frozen=True, kw_only=True)
class WebhookCreatedEvent:
    """The data of `webhook.created`. A webhook was created."""

    webhook_id: str
    endpoint: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class WebhookUpdatedEvent:
    """The data of `webhook.updated`. Settings of a webhook changed."""

    webhook_id: str
    endpoint: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    changed: list[str]
    """Names of the members that changed."""


@dataclass(frozen=True, kw_only=True)
class WebhookDisabledEvent:
    """The data of `webhook.disabled`. A webhook was disabled: by a call, or by the service because its deliveries
    failed for too long.
    """

    webhook_id: str
    endpoint: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""
    reason: Literal["failing", "gone"] | None = None
    """Why the service disabled it. `gone`: it answered 410. Absent: a call disabled it."""


@dataclass(frozen=True, kw_only=True)
class WebhookEnabledEvent:
    """The data of `webhook.enabled`. A webhook was enabled again."""

    webhook_id: str
    endpoint: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class WebhookDeletedEvent:
    """The data of `webhook.deleted`. A webhook was deleted."""

    webhook_id: str
    endpoint: str
    name: str | None = None
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class WebhookTestEvent:
    """The data of `webhook.test`. A test of a webhook. Only this webhook gets it."""

    webhook_id: str
    actor: str
    """Id of the root key, `cli` for an operator, or `system` for the service itself."""


@dataclass(frozen=True, kw_only=True)
class LeakReportedEvent:
    """The data of `leak.reported`. A key was reported as leaked."""

    key_id: str
    api_id: str
    external_id: str | None = None
    """Your own identifier of the owner of the key, if it has one."""
    source: str
    """Which kind of report it was, such as `github`."""
    url: str | None = None
    """Where the key was found, as the report says."""
    disabled: bool
    """Whether the report disabled the key."""


@dataclass(frozen=True, kw_only=True)
class AuthFailuresEventAddressesEntry:
    address: str
    failures: int


@dataclass(frozen=True, kw_only=True)
class AuthFailuresEvent:
    """The data of `auth.failures`. At least 20 requests in ten minutes had a root key or token that does not exist or
    may not be used. In the workspace of a disabled or expired root key; otherwise in the default workspace.
    """

    failures: int
    """Requests until the event was written, at the node that noticed the burst."""
    since: int
    """The beginning of the ten minutes, as Unix time in milliseconds."""
    addresses: list[AuthFailuresEventAddressesEntry]
    """The addresses with the most failures, 5 at most."""


EventData = (
    KeyCreatedEvent
    | KeyUpdatedEvent
    | KeyDisabledEvent
    | KeyEnabledEvent
    | KeyDeletedEvent
    | KeyRestoredEvent
    | KeyRerolledEvent
    | KeyDerivedEvent
    | KeyExpiringEvent
    | KeyExpiredEvent
    | KeyFirstUsedEvent
    | KeyUnusedEvent
    | KeysImportedEvent
    | CreditsLowEvent
    | CreditsRefilledEvent
    | PlanCreatedEvent
    | PlanUpdatedEvent
    | PlanDeletedEvent
    | BudgetCreatedEvent
    | BudgetUpdatedEvent
    | BudgetDeletedEvent
    | BudgetRefilledEvent
    | BudgetThresholdReachedEvent
    | HoldExpiredEvent
    | HoldUncoveredEvent
    | LimitExceededEvent
    | RootKeyCreatedEvent
    | RootKeyUpdatedEvent
    | RootKeyDisabledEvent
    | RootKeyEnabledEvent
    | RootKeyDeletedEvent
    | RootKeyLeakedEvent
    | RootKeyRerolledEvent
    | IdentityCreatedEvent
    | IdentityUpdatedEvent
    | IdentityDeletedEvent
    | RoleCreatedEvent
    | RoleUpdatedEvent
    | RoleDeletedEvent
    | PermissionCreatedEvent
    | PermissionUpdatedEvent
    | PermissionDeletedEvent
    | ApiCreatedEvent
    | ApiUpdatedEvent
    | ApiDeletedEvent
    | NamespaceCreatedEvent
    | NamespaceDeletedEvent
    | DescriptorsSetEvent
    | OverrideSetEvent
    | OverrideDeletedEvent
    | WorkspaceCreatedEvent
    | WorkspaceUpdatedEvent
    | QuotaNearEvent
    | WebhookCreatedEvent
    | WebhookUpdatedEvent
    | WebhookDisabledEvent
    | WebhookEnabledEvent
    | WebhookDeletedEvent
    | WebhookTestEvent
    | LeakReportedEvent
    | AuthFailuresEvent
)
"""The data of an event that a webhook gets."""

_EVENTS: Mapping[str, type[EventData]] = {
    "key.created": KeyCreatedEvent,
    "key.updated": KeyUpdatedEvent,
    "key.disabled": KeyDisabledEvent,
    "key.enabled": KeyEnabledEvent,
    "key.deleted": KeyDeletedEvent,
    "key.restored": KeyRestoredEvent,
    "key.rerolled": KeyRerolledEvent,
    "key.derived": KeyDerivedEvent,
    "key.expiring": KeyExpiringEvent,
    "key.expired": KeyExpiredEvent,
    "key.first_used": KeyFirstUsedEvent,
    "key.unused": KeyUnusedEvent,
    "keys.imported": KeysImportedEvent,
    "credits.low": CreditsLowEvent,
    "credits.refilled": CreditsRefilledEvent,
    "plan.created": PlanCreatedEvent,
    "plan.updated": PlanUpdatedEvent,
    "plan.deleted": PlanDeletedEvent,
    "budget.created": BudgetCreatedEvent,
    "budget.updated": BudgetUpdatedEvent,
    "budget.deleted": BudgetDeletedEvent,
    "budget.refilled": BudgetRefilledEvent,
    "budget.threshold_reached": BudgetThresholdReachedEvent,
    "hold.expired": HoldExpiredEvent,
    "hold.uncovered": HoldUncoveredEvent,
    "limit.exceeded": LimitExceededEvent,
    "root_key.created": RootKeyCreatedEvent,
    "root_key.updated": RootKeyUpdatedEvent,
    "root_key.disabled": RootKeyDisabledEvent,
    "root_key.enabled": RootKeyEnabledEvent,
    "root_key.deleted": RootKeyDeletedEvent,
    "root_key.leaked": RootKeyLeakedEvent,
    "root_key.rerolled": RootKeyRerolledEvent,
    "identity.created": IdentityCreatedEvent,
    "identity.updated": IdentityUpdatedEvent,
    "identity.deleted": IdentityDeletedEvent,
    "role.created": RoleCreatedEvent,
    "role.updated": RoleUpdatedEvent,
    "role.deleted": RoleDeletedEvent,
    "permission.created": PermissionCreatedEvent,
    "permission.updated": PermissionUpdatedEvent,
    "permission.deleted": PermissionDeletedEvent,
    "api.created": ApiCreatedEvent,
    "api.updated": ApiUpdatedEvent,
    "api.deleted": ApiDeletedEvent,
    "namespace.created": NamespaceCreatedEvent,
    "namespace.deleted": NamespaceDeletedEvent,
    "descriptors.set": DescriptorsSetEvent,
    "override.set": OverrideSetEvent,
    "override.deleted": OverrideDeletedEvent,
    "workspace.created": WorkspaceCreatedEvent,
    "workspace.updated": WorkspaceUpdatedEvent,
    "quota.near": QuotaNearEvent,
    "webhook.created": WebhookCreatedEvent,
    "webhook.updated": WebhookUpdatedEvent,
    "webhook.disabled": WebhookDisabledEvent,
    "webhook.enabled": WebhookEnabledEvent,
    "webhook.deleted": WebhookDeletedEvent,
    "webhook.test": WebhookTestEvent,
    "leak.reported": LeakReportedEvent,
    "auth.failures": AuthFailuresEvent,
}
