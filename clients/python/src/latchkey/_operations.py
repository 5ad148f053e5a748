# Written by `npm run generate` from the declarations of the operations.
"""The operations of the service as methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from latchkey._call import AsyncCaller, CallOptions, Caller, Operation, Page, Result
from latchkey._secret import Secret
from latchkey._unset import UNSET, Unset
from latchkey.types import (
    Api,
    AuditEvent,
    Budget,
    CountKeysOutput,
    CreateApiInputPolicy,
    CreateApiOutput,
    CreateBudgetInputRefill,
    CreateBudgetOutput,
    CreateIdentityInputConcurrencyEntry,
    CreateIdentityInputRatelimitsEntry,
    CreateIdentityOutput,
    CreateKeyInputConcurrencyEntry,
    CreateKeyInputCredits,
    CreateKeyInputRatelimitsEntry,
    CreateKeyOutput,
    CreatePermissionOutput,
    CreatePlanInputBudget,
    CreatePlanInputConcurrencyEntry,
    CreatePlanInputCredits,
    CreatePlanInputRatelimitsEntry,
    CreatePlanOutput,
    CreateRoleOutput,
    CreateRootKeyOutput,
    CreateSessionInputKeys,
    CreateSessionInputPage,
    CreateSessionOutput,
    CreateWebhookOutput,
    CreateWorkspaceOutput,
    Credits,
    DeleteApiOutput,
    DeleteBudgetOutput,
    DeleteIdentityOutput,
    DeleteKeyOutput,
    DeleteKeysOutput,
    DeleteNamespaceOutput,
    DeleteOverrideOutput,
    DeletePermissionOutput,
    DeletePlanOutput,
    DeletePortalSessionsOutput,
    DeleteRoleOutput,
    DeleteRootKeyOutput,
    DeleteSessionsOutput,
    DeleteWebhookOutput,
    DeriveKeyInputCredits,
    DeriveKeyInputRatelimitsEntry,
    DeriveKeyOutput,
    DeriveOwnKeyInputCredits,
    DeriveOwnKeyInputRatelimitsEntry,
    DeriveOwnKeyOutput,
    DerivedKey,
    Event,
    ExplainLimitOutput,
    ExplainVerificationInputCredits,
    ExplainVerificationInputHold,
    ExplainVerificationInputRatelimitsEntry,
    ExplainVerificationOutput,
    ExtendHoldOutput,
    GetApiStatsOutput,
    GetBudgetStatsOutput,
    GetDescriptorsOutput,
    GetFindingsOutput,
    GetIdentityStatsOutput,
    GetKeyStatsOutput,
    GetLeakKitOutput,
    GetOwnKeyOutput,
    GetRatelimitStatsOutput,
    GetStatusOutput,
    Hold,
    Identity,
    Key,
    LimitOutput,
    ListNamespacesOutputEntry,
    ListOverridesOutput,
    ListTopIdentitiesOutput,
    ListTopKeysOutput,
    ListUsageOutput,
    LoggedDecision,
    MigrateKeysInputKeysEntry,
    MigrateKeysOutput,
    MultiLimitInputEntry,
    MultiLimitOutput,
    Override,
    Permission,
    Plan,
    PortalSession,
    PreviewUpdateInputBudget,
    PreviewUpdateInputConcurrencyEntry,
    PreviewUpdateInputCredits,
    PreviewUpdateInputRatelimitsEntry,
    PreviewUpdateOutput,
    RedeliverOutput,
    ReleaseHoldOutput,
    ReportLeakOutput,
    RerollKeyOutput,
    RerollRootKeyOutput,
    RestoreKeyOutput,
    Role,
    RootKey,
    RotateSecretOutput,
    SearchOutput,
    SendTestOutput,
    Session,
    SetDescriptorsOutput,
    SetOverrideOutput,
    SettleHoldInputRatelimitsEntry,
    SettleHoldOutput,
    SystemListDecisionsOutput,
    UpdateApiInputPolicy,
    UpdateApiInputPortal,
    UpdateApiInputUpstream,
    UpdateApiOutput,
    UpdateBudgetInputRefill,
    UpdateCreditsOutput,
    UpdateIdentityInputConcurrencyEntry,
    UpdateIdentityInputRatelimitsEntry,
    UpdateKeyInputConcurrencyEntry,
    UpdateKeyInputCredits,
    UpdateKeyInputRatelimitsEntry,
    UpdateKeyOutput,
    UpdateKeysOutput,
    UpdatePlanInputBudget,
    UpdatePlanInputConcurrencyEntry,
    UpdatePlanInputCredits,
    UpdatePlanInputRatelimitsEntry,
    UpdateRoleOutput,
    UpdateRootKeyOutput,
    UpdateWebhookOutput,
    UpdateWorkspaceOutput,
    VerifyKeyInputCredits,
    VerifyKeyInputHold,
    VerifyKeyInputRatelimitsEntry,
    VerifyKeyOutput,
    Webhook,
    WebhookDelivery,
    Workspace,
)

_APIS_COUNT_KEYS: Final = Operation("apis.countKeys", CountKeysOutput, repeatable="always")
_APIS_CREATE_API: Final = Operation("apis.createApi", CreateApiOutput, repeatable="idempotent")
_APIS_DELETE_API: Final = Operation("apis.deleteApi", DeleteApiOutput)
_APIS_GET_API: Final = Operation("apis.getApi", Api, repeatable="always")
_APIS_GET_LEAK_KIT: Final = Operation("apis.getLeakKit", GetLeakKitOutput, repeatable="always")
_APIS_LIST_APIS: Final = Operation("apis.listApis", list[Api], repeatable="always", is_paged=True)
_APIS_LIST_KEYS: Final = Operation("apis.listKeys", list[Key], repeatable="always", is_paged=True)
_APIS_UPDATE_API: Final = Operation("apis.updateApi", UpdateApiOutput)
_APIS_UPDATE_KEYS: Final = Operation("apis.updateKeys", UpdateKeysOutput, repeatable="idempotent")
_APIS_DELETE_KEYS: Final = Operation("apis.deleteKeys", DeleteKeysOutput)
_KEYS_ADD_PERMISSIONS: Final = Operation("keys.addPermissions", list[Permission])
_KEYS_ADD_ROLES: Final = Operation("keys.addRoles", list[Role])
_KEYS_CREATE_KEY: Final = Operation("keys.createKey", CreateKeyOutput, repeatable="idempotent")
_KEYS_DELETE_KEY: Final = Operation("keys.deleteKey", DeleteKeyOutput)
_KEYS_DERIVE_KEY: Final = Operation("keys.deriveKey", DeriveKeyOutput, repeatable="idempotent")
_KEYS_DERIVE_OWN_KEY: Final = Operation("keys.deriveOwnKey", DeriveOwnKeyOutput)
_KEYS_GET_KEY: Final = Operation("keys.getKey", Key, repeatable="always")
_KEYS_GET_OWN_KEY: Final = Operation("keys.getOwnKey", GetOwnKeyOutput, repeatable="always")
_KEYS_LIST_DERIVED_KEYS: Final = Operation("keys.listDerivedKeys", list[DerivedKey], repeatable="always", is_paged=True)
_KEYS_MIGRATE_KEYS: Final = Operation("keys.migrateKeys", MigrateKeysOutput)
_KEYS_REMOVE_PERMISSIONS: Final = Operation("keys.removePermissions", list[Permission])
_KEYS_REMOVE_ROLES: Final = Operation("keys.removeRoles", list[Role])
_KEYS_REPORT_LEAK: Final = Operation("keys.reportLeak", ReportLeakOutput)
_KEYS_REROLL_KEY: Final = Operation("keys.rerollKey", RerollKeyOutput, repeatable="idempotent")
_KEYS_RESTORE_KEY: Final = Operation("keys.restoreKey", RestoreKeyOutput)
_KEYS_SET_PERMISSIONS: Final = Operation("keys.setPermissions", list[Permission])
_KEYS_SET_ROLES: Final = Operation("keys.setRoles", list[Role])
_KEYS_UPDATE_CREDITS: Final = Operation("keys.updateCredits", UpdateCreditsOutput, repeatable="idempotent")
_KEYS_UPDATE_KEY: Final = Operation("keys.updateKey", UpdateKeyOutput)
_KEYS_VERIFY_KEY: Final = Operation("keys.verifyKey", VerifyKeyOutput, repeatable="charge")
_KEYS_EXPLAIN_VERIFICATION: Final = Operation("keys.explainVerification", ExplainVerificationOutput, repeatable="always")
_KEYS_WHOAMI: Final = Operation("keys.whoami", Key, repeatable="always")
_IDENTITIES_CREATE_IDENTITY: Final = Operation("identities.createIdentity", CreateIdentityOutput, repeatable="idempotent")
_IDENTITIES_DELETE_IDENTITY: Final = Operation("identities.deleteIdentity", DeleteIdentityOutput)
_IDENTITIES_GET_IDENTITY: Final = Operation("identities.getIdentity", Identity, repeatable="always")
_IDENTITIES_LIST_IDENTITIES: Final = Operation("identities.listIdentities", list[Identity], repeatable="always", is_paged=True)
_IDENTITIES_UPDATE_IDENTITY: Final = Operation("identities.updateIdentity", Identity)
_PLANS_CREATE_PLAN: Final = Operation("plans.createPlan", CreatePlanOutput, repeatable="idempotent")
_PLANS_DELETE_PLAN: Final = Operation("plans.deletePlan", DeletePlanOutput)
_PLANS_GET_PLAN: Final = Operation("plans.getPlan", Plan, repeatable="always")
_PLANS_LIST_PLANS: Final = Operation("plans.listPlans", list[Plan], repeatable="always", is_paged=True)
_PLANS_PREVIEW_UPDATE: Final = Operation("plans.previewUpdate", PreviewUpdateOutput, repeatable="always")
_PLANS_UPDATE_PLAN: Final = Operation("plans.updatePlan", Plan)
_BUDGETS_CREATE_BUDGET: Final = Operation("budgets.createBudget", CreateBudgetOutput, repeatable="idempotent")
_BUDGETS_DELETE_BUDGET: Final = Operation("budgets.deleteBudget", DeleteBudgetOutput)
_BUDGETS_GET_BUDGET: Final = Operation("budgets.getBudget", Budget, repeatable="always")
_BUDGETS_LIST_BUDGETS: Final = Operation("budgets.listBudgets", list[Budget], repeatable="always", is_paged=True)
_BUDGETS_UPDATE_BUDGET: Final = Operation("budgets.updateBudget", Budget)
_BUDGETS_UPDATE_CREDITS: Final = Operation("budgets.updateCredits", Credits, repeatable="idempotent")
_HOLDS_EXTEND_HOLD: Final = Operation("holds.extendHold", ExtendHoldOutput, repeatable="always")
_HOLDS_GET_HOLD: Final = Operation("holds.getHold", Hold, repeatable="always")
_HOLDS_LIST_HOLDS: Final = Operation("holds.listHolds", list[Hold], repeatable="always", is_paged=True)
_HOLDS_RELEASE_HOLD: Final = Operation("holds.releaseHold", ReleaseHoldOutput, repeatable="always")
_HOLDS_SETTLE_HOLD: Final = Operation("holds.settleHold", SettleHoldOutput, repeatable="always")
_ANALYTICS_GET_API_STATS: Final = Operation("analytics.getApiStats", GetApiStatsOutput, repeatable="always")
_ANALYTICS_GET_BUDGET_STATS: Final = Operation("analytics.getBudgetStats", GetBudgetStatsOutput, repeatable="always")
_ANALYTICS_GET_IDENTITY_STATS: Final = Operation("analytics.getIdentityStats", GetIdentityStatsOutput, repeatable="always")
_ANALYTICS_GET_KEY_STATS: Final = Operation("analytics.getKeyStats", GetKeyStatsOutput, repeatable="always")
_ANALYTICS_GET_RATELIMIT_STATS: Final = Operation("analytics.getRatelimitStats", GetRatelimitStatsOutput, repeatable="always")
_ANALYTICS_LIST_DECISIONS: Final = Operation("analytics.listDecisions", list[LoggedDecision], repeatable="always", is_paged=True)
_ANALYTICS_LIST_TOP_IDENTITIES: Final = Operation("analytics.listTopIdentities", ListTopIdentitiesOutput, repeatable="always")
_ANALYTICS_LIST_TOP_KEYS: Final = Operation("analytics.listTopKeys", ListTopKeysOutput, repeatable="always")
_ANALYTICS_LIST_USAGE: Final = Operation("analytics.listUsage", ListUsageOutput, repeatable="always")
_PERMISSIONS_CREATE_PERMISSION: Final = Operation("permissions.createPermission", CreatePermissionOutput, repeatable="idempotent")
_PERMISSIONS_CREATE_ROLE: Final = Operation("permissions.createRole", CreateRoleOutput, repeatable="idempotent")
_PERMISSIONS_DELETE_PERMISSION: Final = Operation("permissions.deletePermission", DeletePermissionOutput)
_PERMISSIONS_DELETE_ROLE: Final = Operation("permissions.deleteRole", DeleteRoleOutput)
_PERMISSIONS_GET_PERMISSION: Final = Operation("permissions.getPermission", Permission, repeatable="always")
_PERMISSIONS_GET_ROLE: Final = Operation("permissions.getRole", Role, repeatable="always")
_PERMISSIONS_LIST_PERMISSIONS: Final = Operation("permissions.listPermissions", list[Permission], repeatable="always", is_paged=True)
_PERMISSIONS_LIST_ROLES: Final = Operation("permissions.listRoles", list[Role], repeatable="always", is_paged=True)
_PERMISSIONS_SET_ROLE_PERMISSIONS: Final = Operation("permissions.setRolePermissions", list[Permission])
_PERMISSIONS_UPDATE_PERMISSION: Final = Operation("permissions.updatePermission", Permission)
_PERMISSIONS_UPDATE_ROLE: Final = Operation("permissions.updateRole", UpdateRoleOutput)
_RATELIMITS_LIMIT: Final = Operation("ratelimits.limit", LimitOutput, repeatable="charge")
_RATELIMITS_MULTI_LIMIT: Final = Operation("ratelimits.multiLimit", MultiLimitOutput, repeatable="charge")
_RATELIMITS_DELETE_NAMESPACE: Final = Operation("ratelimits.deleteNamespace", DeleteNamespaceOutput)
_RATELIMITS_DELETE_OVERRIDE: Final = Operation("ratelimits.deleteOverride", DeleteOverrideOutput)
_RATELIMITS_EXPLAIN_LIMIT: Final = Operation("ratelimits.explainLimit", ExplainLimitOutput, repeatable="always")
_RATELIMITS_GET_DESCRIPTORS: Final = Operation("ratelimits.getDescriptors", GetDescriptorsOutput, repeatable="always")
_RATELIMITS_GET_OVERRIDE: Final = Operation("ratelimits.getOverride", Override, repeatable="always")
_RATELIMITS_LIST_NAMESPACES: Final = Operation("ratelimits.listNamespaces", list[ListNamespacesOutputEntry], repeatable="always", is_paged=True)
_RATELIMITS_LIST_OVERRIDES: Final = Operation("ratelimits.listOverrides", ListOverridesOutput, repeatable="always", list_name="overrides", is_paged=True)
_RATELIMITS_SET_DESCRIPTORS: Final = Operation("ratelimits.setDescriptors", SetDescriptorsOutput)
_RATELIMITS_SET_OVERRIDE: Final = Operation("ratelimits.setOverride", SetOverrideOutput)
_PORTAL_CREATE_SESSION: Final = Operation("portal.createSession", CreateSessionOutput)
_PORTAL_DELETE_PORTAL_SESSIONS: Final = Operation("portal.deletePortalSessions", DeletePortalSessionsOutput)
_PORTAL_LIST_PORTAL_SESSIONS: Final = Operation("portal.listPortalSessions", list[PortalSession], repeatable="always", is_paged=True)
_ROOT_KEYS_CREATE_ROOT_KEY: Final = Operation("rootKeys.createRootKey", CreateRootKeyOutput, repeatable="idempotent")
_ROOT_KEYS_DELETE_ROOT_KEY: Final = Operation("rootKeys.deleteRootKey", DeleteRootKeyOutput)
_ROOT_KEYS_DELETE_SESSIONS: Final = Operation("rootKeys.deleteSessions", DeleteSessionsOutput)
_ROOT_KEYS_LIST_ROOT_KEYS: Final = Operation("rootKeys.listRootKeys", list[RootKey], repeatable="always", is_paged=True)
_ROOT_KEYS_LIST_SESSIONS: Final = Operation("rootKeys.listSessions", list[Session], repeatable="always", is_paged=True)
_ROOT_KEYS_REROLL_ROOT_KEY: Final = Operation("rootKeys.rerollRootKey", RerollRootKeyOutput, repeatable="idempotent")
_ROOT_KEYS_UPDATE_ROOT_KEY: Final = Operation("rootKeys.updateRootKey", UpdateRootKeyOutput)
_WORKSPACES_CREATE_WORKSPACE: Final = Operation("workspaces.createWorkspace", CreateWorkspaceOutput, repeatable="idempotent")
_WORKSPACES_LIST_WORKSPACES: Final = Operation("workspaces.listWorkspaces", list[Workspace], repeatable="always", is_paged=True)
_WORKSPACES_UPDATE_WORKSPACE: Final = Operation("workspaces.updateWorkspace", UpdateWorkspaceOutput)
_AUDIT_LIST_EVENTS: Final = Operation("audit.listEvents", list[AuditEvent], repeatable="always", is_paged=True)
_EVENTS_LIST_EVENTS: Final = Operation("events.listEvents", list[Event], repeatable="always", is_paged=True)
_WEBHOOKS_CREATE_WEBHOOK: Final = Operation("webhooks.createWebhook", CreateWebhookOutput, repeatable="idempotent")
_WEBHOOKS_DELETE_WEBHOOK: Final = Operation("webhooks.deleteWebhook", DeleteWebhookOutput)
_WEBHOOKS_GET_WEBHOOK: Final = Operation("webhooks.getWebhook", Webhook, repeatable="always")
_WEBHOOKS_LIST_DELIVERIES: Final = Operation("webhooks.listDeliveries", list[WebhookDelivery], repeatable="always", is_paged=True)
_WEBHOOKS_LIST_WEBHOOKS: Final = Operation("webhooks.listWebhooks", list[Webhook], repeatable="always", is_paged=True)
_WEBHOOKS_REDELIVER: Final = Operation("webhooks.redeliver", RedeliverOutput)
_WEBHOOKS_ROTATE_SECRET: Final = Operation("webhooks.rotateSecret", RotateSecretOutput, repeatable="idempotent")
_WEBHOOKS_SEND_TEST: Final = Operation("webhooks.sendTest", SendTestOutput, repeatable="idempotent")
_WEBHOOKS_UPDATE_WEBHOOK: Final = Operation("webhooks.updateWebhook", UpdateWebhookOutput)
_SYSTEM_GET_FINDINGS: Final = Operation("system.getFindings", GetFindingsOutput, repeatable="always")
_SYSTEM_GET_STATUS: Final = Operation("system.getStatus", GetStatusOutput, repeatable="always")
_SYSTEM_LIST_DECISIONS: Final = Operation("system.listDecisions", SystemListDecisionsOutput, repeatable="always")
_SYSTEM_SEARCH: Final = Operation("system.search", SearchOutput, repeatable="always")


class ListApis:
    """The operation `list_apis`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Api]]:
        """List APIs.

        Ordered by creation time.

        Permissions of the root key: `apis.*.read_api`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return self._caller.page(_APIS_LIST_APIS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Api]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_APIS_LIST_APIS, {"limit": limit, "cursor": cursor, "search": search}, options)


class ListKeys:
    """The operation `list_keys`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        api_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        order_by: Literal["createdAt", "name", "expires", "lastUsedAt"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        decrypt: bool | Unset = UNSET,
        revalidate_keys_cache: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Key]]:
        """List the keys of an API.

        Ordered by creation time, or by `order_by`. Includes disabled and expired keys, but not deleted ones: `deleted`
        lists those, with `deleted_at` and without `plaintext`. With a filter, one call examines at most 100,000 keys: a
        page can have fewer entries than `limit`, or none, although `has_more` is true. An API that the root key may not
        read looks like one that does not exist.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`, `apis.{apiId}.decrypt_key`

        Args:
            api_id: Identifier of the API.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            deleted: Only keys that were deleted without `permanent` and that `keys.restore_key` can restore,
                instead of those that are not deleted. Default: False.
            order_by: What the keys are in order by. Names are compared regardless of case. Any order but
                `created_at` needs an API with at most 100,000 keys, or an `external_id` or `budget_id` with at most as
                many. Default: "created_at".
            order: `desc`: the newest, the last name or the latest time first. Default: "asc".
            decrypt: Whether to return the `plaintext` of recoverable keys. Default: False.
            revalidate_keys_cache: Accepted for compatibility, without effect: the list is always current. Default:
                False.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.page(_APIS_LIST_KEYS, {
            "apiId": api_id,
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "deleted": deleted,
            "orderBy": order_by,
            "order": order,
            "decrypt": decrypt,
            "revalidateKeysCache": revalidate_keys_cache,
        }, options)

    def all(
        self,
        *,
        api_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        order_by: Literal["createdAt", "name", "expires", "lastUsedAt"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        decrypt: bool | Unset = UNSET,
        revalidate_keys_cache: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Key]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_APIS_LIST_KEYS, {
            "apiId": api_id,
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "deleted": deleted,
            "orderBy": order_by,
            "order": order,
            "decrypt": decrypt,
            "revalidateKeysCache": revalidate_keys_cache,
        }, options)


class ApisOperations:
    """An API is a namespace of keys."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_apis: Final = ListApis(caller)
        self.list_keys: Final = ListKeys(caller)

    def count_keys(
        self,
        *,
        api_id: str,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CountKeysOutput]:
        """Count the keys of an API.

        Counts what `apis.list_keys` lists with the same filters, in the first 100,000 keys. An API that the root key
        may not read looks like one that does not exist.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of the API.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            deleted: Only keys that were deleted without `permanent` and that `keys.restore_key` can restore,
                instead of those that are not deleted. Default: False.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_APIS_COUNT_KEYS, {
            "apiId": api_id,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "deleted": deleted,
        }, options)

    def create_api(
        self,
        *,
        name: str,
        own_key_access: bool | Unset = UNSET,
        own_key_derivation: bool | Unset = UNSET,
        policy: CreateApiInputPolicy | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateApiOutput]:
        """Create an API.

        An API is a namespace of keys. A key belongs to one API. Several APIs may have the same name.

        Permissions of the root key: `apis.*.create_api`

        Args:
            name: A label for you. End users never see it.
            own_key_access: Whether holders of its keys may read what is left of them, without a root key: see
                `keys.get_own_key`. Default: False.
            own_key_derivation: Whether holders of keys may derive keys from them with `keys.derive_own_key`,
                without a root key: short-lived keys that can do no more than their own. Default: False.
            policy: What new keys must have. It is set as a whole. Null: nothing.

        Raises:
            LatchkeyError: `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_APIS_CREATE_API, {
            "name": name,
            "ownKeyAccess": own_key_access,
            "ownKeyDerivation": own_key_derivation,
            "policy": policy,
        }, options)

    def delete_api(self, *, api_id: str, options: CallOptions | None = None) -> Result[DeleteApiOutput]:
        """Delete an API and its keys.

        The next verification of any of its keys on the same node answers NOT_FOUND. An API with delete protection
        cannot be deleted.

        Permissions of the root key: `apis.{apiId}.delete_api`

        Args:
            api_id: Identifier of an API, as create_api gave it.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return self._caller.call(_APIS_DELETE_API, {"apiId": api_id}, options)

    def get_api(self, *, api_id: str, options: CallOptions | None = None) -> Result[Api]:
        """Get an API.

        Includes the values that were set with `apis.update_api`. Fields without a value are omitted.

        Permissions of the root key: `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of an API, as create_api gave it.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_APIS_GET_API, {"apiId": api_id}, options)

    def get_leak_kit(
        self,
        *,
        api_id: str,
        prefixes: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetLeakKitOutput]:
        """Get what finds leaked keys of an API.

        For each prefix of its keys, a regular expression, and the same as a rule of gitleaks, as a detector of
        TruffleHog and for GitHub's secret scanning. A prefix belongs to the key, not to the API: without `prefixes`,
        the kit is for the default prefix of the API. Keys without a prefix cannot be told from other texts. Addresses
        in the kit begin with `LATCHKEY_PUBLIC_URL`, or with `https://keys.example.com` if the service has none.

        Permissions of the root key: `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            prefixes: The prefixes that your calls of `keys.create_key` set. Omitted: the default prefix of the API.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_APIS_GET_LEAK_KIT, {"apiId": api_id, "prefixes": prefixes}, options)

    def update_api(
        self,
        *,
        api_id: str,
        name: str | Unset = UNSET,
        prefix: str | None | Unset = UNSET,
        byte_length: int | None | Unset = UNSET,
        delete_protection: bool | Unset = UNSET,
        allowed_ips: Sequence[str] | None | Unset = UNSET,
        leak_action: Literal["mark", "disable"] | Unset = UNSET,
        expiry_notices: Sequence[Literal[1, 3, 7, 14, 30, 60, 90]] | None | Unset = UNSET,
        upstream: UpdateApiInputUpstream | None | Unset = UNSET,
        own_key_access: bool | Unset = UNSET,
        resources: Sequence[str] | None | Unset = UNSET,
        own_key_derivation: bool | Unset = UNSET,
        policy: UpdateApiInputPolicy | None | Unset = UNSET,
        portal: UpdateApiInputPortal | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateApiOutput]:
        """Update an API.

        Omitted fields do not change. Null removes a value. `prefix` and `byte_length` are defaults for keys that are
        created without these fields. If an API has `allowed_ips`, verifications from other addresses answer FORBIDDEN.

        Permissions of the root key: `apis.{apiId}.update_api`, `apis.{apiId}.create_key`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            name: A label for you. End users never see it.
            prefix: Default prefix of new keys; an underscore follows it.
            byte_length: Default number of random bytes in new keys. Null: 16.
            delete_protection: Whether to prevent `apis.delete_api`.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use its keys. Null: every address.
            leak_action: What happens to a key that is reported as leaked. `mark`, the default: it gets `leaked_at`
                and still verifies. `disable`: it is disabled too.
            expiry_notices: The days before the expiry of a key at which it has an event `key.expiring`. Null: 7 and
                1.
            upstream: An HTTP endpoint of another system that is asked once about each key that is unknown here. A
                key that it knows is created here. Needs `create_key` too. Null: none.
            own_key_access: Whether holders of its keys may read what is left of them, without a root key: see
                `keys.get_own_key`.
            resources: The absolute URIs for which its keys get access tokens at `/oauth/token`, if the service
                issues any: each is an audience.
            own_key_derivation: Whether holders of keys may derive keys from them with `keys.derive_own_key`,
                without a root key: short-lived keys that can do no more than their own.
            policy: What new keys must have. It is set as a whole. Null: nothing.
            portal: What sessions of the portal inherit unless they say otherwise. It is set as a whole. The root
                key needs the permission of each action. Null: nothing.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_APIS_UPDATE_API, {
            "apiId": api_id,
            "name": name,
            "prefix": prefix,
            "byteLength": byte_length,
            "deleteProtection": delete_protection,
            "allowedIps": allowed_ips,
            "leakAction": leak_action,
            "expiryNotices": expiry_notices,
            "upstream": upstream,
            "ownKeyAccess": own_key_access,
            "resources": resources,
            "ownKeyDerivation": own_key_derivation,
            "policy": policy,
            "portal": portal,
        }, options)

    def update_keys(
        self,
        *,
        api_id: str,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        expires: int | None | Unset = UNSET,
        allowed_ips: Sequence[str] | None | Unset = UNSET,
        set_plan: str | None | Unset = UNSET,
        add_roles: Sequence[str] | Unset = UNSET,
        add_permissions: Sequence[str] | Unset = UNSET,
        add_credits: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateKeysOutput]:
        """Update the keys of an API that match.

        Changes keys as `keys.update_key`, `keys.add_roles`, `keys.add_permissions` and `keys.update_credits` do. One
        call processes up to `limit` of the keys that `apis.list_keys` lists with the same filters, the newest first, in
        one transaction; fewer if they get more than 1,000 roles or permissions in all, or have more than 10,000
        permissions. Repeat it with `cursor` until the answer has none. Keys that are created meanwhile are not
        processed.

        Permissions of the root key: `apis.{apiId}.update_key`, `apis.{apiId}.read_key`, `apis.{apiId}.read_api`,
        `permissions.*.add_role_to_key`, `permissions.*.add_permission_to_key`, `permissions.*.create_permission`,
        `plans.{planId}.assign_plan`

        Args:
            api_id: Identifier of the API.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            limit: Maximum number of keys that one call processes. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            expires: Null: the keys never expire.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use the keys. Null: every address that the API
                allows.
            set_plan: The name of their plan, or its id. Null: none. Needs `assign_plan` on the former plans and on
                the new one.
            add_roles: Names of existing roles.
            add_permissions: Slugs. New ones are created.
            add_credits: Added to each balance: keys that share one after a reroll get it once, with the newest of
                them that matches. Keys with unlimited credits fail.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/plan_not_found`, `data/role_not_found`. Besides the errors of
                every operation.
        """
        return self._caller.call(_APIS_UPDATE_KEYS, {
            "apiId": api_id,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "limit": limit,
            "cursor": cursor,
            "enabled": enabled,
            "expires": expires,
            "allowedIps": allowed_ips,
            "setPlan": set_plan,
            "addRoles": add_roles,
            "addPermissions": add_permissions,
            "addCredits": add_credits,
        }, options)

    def delete_keys(
        self,
        *,
        api_id: str,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteKeysOutput]:
        """Delete the keys of an API that match.

        Deletes keys as `keys.delete_key` does. One call processes up to `limit` of the keys that `apis.list_keys` lists
        with the same filters, the newest first, in one transaction; fewer if they get more than 1,000 roles or
        permissions in all, or have more than 10,000 permissions. Repeat it with `cursor` until the answer has none.
        Keys that are created meanwhile are not processed.

        Permissions of the root key: `apis.{apiId}.delete_key`, `apis.{apiId}.read_key`, `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of the API.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            limit: Maximum number of keys that one call processes. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_APIS_DELETE_KEYS, {
            "apiId": api_id,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "limit": limit,
            "cursor": cursor,
        }, options)


class ListDerivedKeys:
    """The operation `list_derived_keys`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        key_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[DerivedKey]]:
        """List derived keys.

        The keys that were derived from a key, directly or not, ordered by creation time. Those that have expired or
        were ended are not in the list. With the id of a derived key: those that were derived from it.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.page(_KEYS_LIST_DERIVED_KEYS, {"keyId": key_id, "limit": limit, "cursor": cursor}, options)

    def all(
        self,
        *,
        key_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[DerivedKey]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_KEYS_LIST_DERIVED_KEYS, {"keyId": key_id, "limit": limit, "cursor": cursor}, options)


class KeysOperations:
    """Keys that you issue to your users and verify on their requests."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_derived_keys: Final = ListDerivedKeys(caller)

    def add_permissions(
        self,
        *,
        key_id: str,
        permissions: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Add permissions to a key.

        The key keeps its other permissions. Returns all direct permissions of the key, without those of its roles.
        Permissions that do not exist yet are created.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_permission_to_key`,
        `permissions.*.create_permission`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_ADD_PERMISSIONS, {"keyId": key_id, "permissions": permissions}, options)

    def add_roles(self, *, key_id: str, roles: Sequence[str], options: CallOptions | None = None) -> Result[list[Role]]:
        """Add roles to a key.

        The key keeps its other roles. Returns all roles of the key. Roles are given by name and must exist.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_role_to_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_ADD_ROLES, {"keyId": key_id, "roles": roles}, options)

    def create_key(
        self,
        *,
        api_id: str,
        prefix: str | Unset = UNSET,
        name: str | Unset = UNSET,
        byte_length: int | Unset = UNSET,
        external_id: str | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        roles: Sequence[str] | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        expires: int | Unset = UNSET,
        credits: CreateKeyInputCredits | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        ratelimits: Sequence[CreateKeyInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[CreateKeyInputConcurrencyEntry] | Unset = UNSET,
        allowed_ips: Sequence[str] | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        recoverable: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateKeyOutput]:
        """Create a key.

        Only this response contains the key string: the service stores a hash of it. Permissions and an identity that do
        not exist yet are created. Roles must exist. The key must obey the `policy` of its API.

        Permissions of the root key: `apis.{apiId}.create_key`, `apis.{apiId}.encrypt_key`,
        `budgets.{budgetId}.assign_budget`, `plans.{planId}.assign_plan`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            prefix: Beginning of the key string; an underscore follows it.
            name: A label. Of your end users, at most the owner of the key sees it.
            byte_length: Random bytes in the key string.
            external_id: Your own identifier of the owner of the key, such as a user id.
            meta: Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it.
            roles: Names of existing roles.
            permissions: Slugs. `documents.*` grants every permission that begins with `documents.`.
            expires: Unix time in milliseconds at which the key expires.
            credits: A balance of credits. Omitted: unlimited.
            budget_id: The budget that verifications spend from too, together with its ancestors. Needs
                `assign_budget` on it.
            plan: The name of the plan, or its id. Needs `assign_plan` on it.
            concurrency: How many calls may run at once. Each verification takes a slot of each of these limits with
                `hold`, until its hold ends; without `hold` it gets 400.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowed_ips`, both
                lists must contain the address. Omitted: every address that the API allows.
            enabled: Default: True.
            recoverable: Whether `keys.get_key` can return the key string. It is then stored encrypted. Default:
                False.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `data/role_not_found`, `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_CREATE_KEY, {
            "apiId": api_id,
            "prefix": prefix,
            "name": name,
            "byteLength": byte_length,
            "externalId": external_id,
            "meta": meta,
            "roles": roles,
            "permissions": permissions,
            "expires": expires,
            "credits": credits,
            "budgetId": budget_id,
            "plan": plan,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "allowedIps": allowed_ips,
            "enabled": enabled,
            "recoverable": recoverable,
        }, options)

    def delete_key(
        self,
        *,
        key_id: str,
        permanent: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteKeyOutput]:
        """Delete a key.

        The next verification on the same node answers NOT_FOUND. The key stays in the database for
        `LATCHKEY_RETENTION_DELETED`, by default 90 days, in which `keys.restore_key` restores it. With `permanent`, the
        key is erased together with its limits, roles, permissions, derived keys and encrypted key string. What was
        derived of a key ends with it. A derived key ends with all that was derived of it, and cannot be restored.

        Permissions of the root key: `apis.{apiId}.delete_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            permanent: Whether to erase the key. Default: False.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_DELETE_KEY, {"keyId": key_id, "permanent": permanent}, options)

    def derive_key(
        self,
        *,
        key_id: str,
        ttl: int,
        permissions: Sequence[str] | Unset = UNSET,
        ratelimits: Sequence[DeriveKeyInputRatelimitsEntry] | Unset = UNSET,
        credits: DeriveKeyInputCredits | Unset = UNSET,
        allowed_ips: Sequence[str] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeriveKeyOutput]:
        """Derive a key.

        Makes a short-lived key that can do less than its parent, for an agent, a job or a browser. Whatever its parent
        has is judged at each verification: the derived key is charged to the limits, credits and budgets of its parent,
        has no permission that its parent lacks, and ends with its parent. Derived keys can be derived from too, up to
        three levels. They are not in `apis.list_keys`: `keys.list_derived_keys` lists them, and `keys.delete_key` ends
        one.

        Permissions of the root key: `apis.{apiId}.create_key`

        Args:
            key_id: The key, or the derived key, to derive from.
            ttl: When the derived key ends at the latest, in milliseconds from now.
            permissions: Slugs. Of its parent's permissions at each verification, it has those that are also here.
                Omitted: all of them.
            ratelimits: Limits besides those of its parent. Every verification is charged to them, like those of an
                identity.
            credits: A bound besides the credits and budgets of its parent. Omitted: none.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use it. The lists of its parent and of the API
                must contain the address too.
            meta: Verifications answer it as `derived.meta`. Their `meta` is that of the key at the top, which its
                holder cannot choose.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_KEYS_DERIVE_KEY, {
            "keyId": key_id,
            "ttl": ttl,
            "permissions": permissions,
            "ratelimits": ratelimits,
            "credits": credits,
            "allowedIps": allowed_ips,
            "meta": meta,
        }, options)

    def derive_own_key(
        self,
        *,
        key: str | Secret,
        ttl: int,
        permissions: Sequence[str] | Unset = UNSET,
        ratelimits: Sequence[DeriveOwnKeyInputRatelimitsEntry] | Unset = UNSET,
        credits: DeriveOwnKeyInputCredits | Unset = UNSET,
        allowed_ips: Sequence[str] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeriveOwnKeyOutput]:
        """Derive a key from the key that you hold.

        For the holder of a key, without a root key: the same as `keys.derive_key`, with the key as the credential. It
        works only for valid keys of APIs with `own_key_derivation`; every other string is answered alike with 404.
        Without a root key, keys of the default workspace are found; a root key finds those of its workspace, and needs
        `create_key`.

        Permissions of the root key: `apis.{apiId}.create_key`

        Args:
            key: The key string: that of a key, or of a derived key.
            ttl: When the derived key ends at the latest, in milliseconds from now.
            permissions: Slugs. Of its parent's permissions at each verification, it has those that are also here.
                Omitted: all of them.
            ratelimits: Limits besides those of its parent. Every verification is charged to them, like those of an
                identity.
            credits: A bound besides the credits and budgets of its parent. Omitted: none.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use it. The lists of its parent and of the API
                must contain the address too.
            meta: Verifications answer it as `derived.meta`. Their `meta` is that of the key at the top, which its
                holder cannot choose.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_KEYS_DERIVE_OWN_KEY, {
            "key": key,
            "ttl": ttl,
            "permissions": permissions,
            "ratelimits": ratelimits,
            "credits": credits,
            "allowedIps": allowed_ips,
            "meta": meta,
        }, options)

    def get_key(
        self,
        *,
        key_id: str,
        decrypt: bool | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Key]:
        """Get a key.

        Returns the key without its key string. With `decrypt`, a recoverable key includes the key string. A key that
        was deleted without `permanent` is kept for a while (`LATCHKEY_RETENTION_DELETED`): `deleted` returns it, and
        `keys.restore_key` restores it.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.decrypt_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            decrypt: Whether to return the `plaintext` of a recoverable key. Default: False.
            deleted: Whether to return the key although it is deleted, then with `deleted_at` and without
                `plaintext`. Default: False.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_KEYS_GET_KEY, {"keyId": key_id, "decrypt": decrypt, "deleted": deleted}, options)

    def get_own_key(self, *, key: str | Secret, options: CallOptions | None = None) -> Result[GetOwnKeyOutput]:
        """Get the key that you hold.

        For the holder of a key, without a root key: what is left of its credits and limits, its expiry and its usage.
        It charges nothing. It works only for keys of APIs with `own_key_access`; every other string is answered alike
        with 404. Without a root key, keys of the default workspace are found; a root key finds those of its workspace,
        and needs `read_key`. A key can be read 30 times per minute.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            key: The key string.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_GET_OWN_KEY, {"key": key}, options)

    def migrate_keys(
        self,
        *,
        migration_id: str,
        api_id: str,
        keys: Sequence[MigrateKeysInputKeysEntry],
        algorithm: Literal["sha256", "sha512", "hmac-sha256", "prefixed-api-key"] | Unset = UNSET,
        pepper: str | Secret | Unset = UNSET,
        pepper_encoding: Literal["utf8", "hex", "base64"] | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[MigrateKeysOutput]:
        """Import keys from another system.

        Imports hashes, never key strings. The first call with a `migration_id` creates the migration and fixes its
        `algorithm`. Keys imported with `sha256` (the default) or `sha512` verify like any other key. Keys imported with
        `hmac-sha256` verify only with the `migration_id`. Keys imported with `prefixed-api-key` need the `migration_id`
        for their first verification only. `prefixed-api-key` is for tokens of the form `prefix_short_long`; send the
        SHA-256 of the long part.

        The status is 200 even if some keys could not be imported. `failed` lists their hashes: a key with the hash
        exists already, or the hash occurs earlier in the list. The list is imported in chunks of up to 500 keys, sized
        so that each takes some milliseconds. Each chunk is imported completely or not at all. The keys must obey the
        `policy` of the API: a chunk with one that does not is not imported, nor are those after it. `stopped` says why
        then. If the first chunk is refused, the call fails.

        Permissions of the root key: `apis.{apiId}.create_key`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            migration_id: A name of your choice for the source of the keys.
            api_id: Identifier of the API to import the keys into.
            algorithm: The algorithm of the hashes. Default: "sha256".
            pepper: With `hmac-sha256`: the secret of the HMAC, stored encrypted. Required in the first call only.
            pepper_encoding: Encoding of `pepper`. Default: "utf8".
            dry_run: Whether to import nothing. `migrated` is empty then, and `failed` has the hashes that would
                fail. Default: False.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_MIGRATE_KEYS, {
            "migrationId": migration_id,
            "apiId": api_id,
            "algorithm": algorithm,
            "pepper": pepper,
            "pepperEncoding": pepper_encoding,
            "dryRun": dry_run,
            "keys": keys,
        }, options)

    def remove_permissions(
        self,
        *,
        key_id: str,
        permissions: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Remove permissions from a key.

        Removes direct permissions only. The key keeps the permissions of its roles. Returns the remaining direct
        permissions. Every permission in the request must exist, but the key need not have it.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.remove_permission_from_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/permission_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_REMOVE_PERMISSIONS, {"keyId": key_id, "permissions": permissions}, options)

    def remove_roles(
        self,
        *,
        key_id: str,
        roles: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Role]]:
        """Remove roles from a key.

        Returns the remaining roles. Every role in the request must exist, but the key need not have it.

        Permissions of the root key: `apis.{apiId}.update_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_REMOVE_ROLES, {"keyId": key_id, "roles": roles}, options)

    def report_leak(
        self,
        *,
        key: str | Secret,
        location: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ReportLeakOutput]:
        """Report a leaked key.

        For everybody who finds a key where it should not be; a root key is not needed, whatever the configuration says.
        If a key with this string exists, in any workspace, it is marked as leaked or disabled, as `leak_action` of its
        API says, and the event `leak.reported` is sent. A root key has a `leak_action` of its own and the event
        `root_key.leaked`. The answer is the same for every key string and is sent before the key is looked up, so it
        does not tell whether the key exists.

        Permissions of the root key:

        Args:
            key: The key string.
            location: Where the key was found. The owner of the API sees it.
        """
        return self._caller.call(_KEYS_REPORT_LEAK, {"key": key, "location": location}, options)

    def reroll_key(
        self,
        *,
        key_id: str,
        expiration: int | None,
        options: CallOptions | None = None,
    ) -> Result[RerollKeyOutput]:
        """Reroll a key.

        Creates a key with a new key string and the settings of the old key. The old key expires after `expiration`
        milliseconds, rounded up to a whole minute, and is deleted when the retention of deleted keys has passed since.
        With 0 it expires at once; with null its expiry does not change, and it is not deleted. All keys of a reroll
        chain share one balance, one refill, the counters of their limits and the slots of their concurrency, so a
        reroll adds neither credits nor calls. If the API has a `policy`, the new key obeys it: it expires at the latest
        when that allows.

        Permissions of the root key: `apis.{apiId}.create_key`, `apis.{apiId}.encrypt_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            expiration: How long the old key stays valid, in milliseconds. Null: its expiry does not change.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_KEYS_REROLL_KEY, {"keyId": key_id, "expiration": expiration}, options)

    def restore_key(self, *, key_id: str, options: CallOptions | None = None) -> Result[RestoreKeyOutput]:
        """Restore a deleted key.

        Brings back a key that was deleted without `permanent`, until `LATCHKEY_RETENTION_DELETED` after its deletion:
        with its key string, name, credits, limits, permissions, and the roles and the identity that still exist. What
        was deleted meanwhile stays away from it: a role with its permissions, or the identity with its limits. A key
        whose API, plan or own budget was deleted cannot be restored. A key that was reported as leaked, before its
        deletion or after it, is restored disabled. A key that has expired stays expired. The key counts against the
        quota of the workspace again. The next verification on the same node finds it, and on other nodes within a
        second.

        Permissions of the root key: `apis.{apiId}.restore_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/api_not_found`, `data/budget_not_found`,
                `data/plan_not_found`, `data/key_not_deleted`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_RESTORE_KEY, {"keyId": key_id}, options)

    def set_permissions(
        self,
        *,
        key_id: str,
        permissions: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Set the permissions of a key.

        Replaces all direct permissions of the key. The key keeps the permissions of its roles. Permissions that do not
        exist yet are created.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_permission_to_key`,
        `permissions.*.remove_permission_from_key`, `permissions.*.create_permission`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_SET_PERMISSIONS, {"keyId": key_id, "permissions": permissions}, options)

    def set_roles(self, *, key_id: str, roles: Sequence[str], options: CallOptions | None = None) -> Result[list[Role]]:
        """Set the roles of a key.

        Replaces all roles of the key. Roles are given by name and must exist.

        Permissions of the root key: `apis.{apiId}.update_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_SET_ROLES, {"keyId": key_id, "roles": roles}, options)

    def update_credits(
        self,
        *,
        key_id: str,
        operation: Literal["set", "increment", "decrement"],
        value: int | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateCreditsOutput]:
        """Update the credits of a key.

        Sets, increments or decrements the balance. A decrement stops at 0. All keys of a reroll chain share one
        balance, so the change applies to each of them. Setting null makes usage unlimited and removes the refill.

        Permissions of the root key: `apis.{apiId}.update_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            value: The new balance, or the amount of the change. Null: unlimited.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_UPDATE_CREDITS, {"keyId": key_id, "operation": operation, "value": value}, options)

    def update_key(
        self,
        *,
        key_id: str,
        name: str | None | Unset = UNSET,
        external_id: str | None | Unset = UNSET,
        meta: Mapping[str, Any] | None | Unset = UNSET,
        expires: int | None | Unset = UNSET,
        credits: UpdateKeyInputCredits | None | Unset = UNSET,
        budget_id: str | None | Unset = UNSET,
        plan: str | None | Unset = UNSET,
        balances: Literal["keep", "reset"] | Unset = UNSET,
        ratelimits: Sequence[UpdateKeyInputRatelimitsEntry] | None | Unset = UNSET,
        concurrency: Sequence[UpdateKeyInputConcurrencyEntry] | None | Unset = UNSET,
        allowed_ips: Sequence[str] | None | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        roles: Sequence[str] | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateKeyOutput]:
        """Update a key.

        Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. The next
        verification on the same node uses the new values. No change takes a key out of the `policy` of its API.

        Permissions of the root key: `apis.{apiId}.update_key`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            name: A label. Of your end users, at most the owner of the key sees it.
            external_id: Null removes the key from its identity. The identity is not deleted. If the identity has a
                budget, a key that leaves it needs `assign_budget` on that, or `assign_plan` on the plan that gives it.
            meta: Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it.
            expires: Null: the key never expires.
            credits: Null: unlimited.
            budget_id: The budget that verifications spend from too, together with its ancestors. Null: none. Needs
                `assign_budget` on the former one and on the new one.
            plan: The plan whose limits, permissions and roles the key has besides its own. All keys of a reroll
                chain share it. Null: none. Needs `assign_plan` on the former one and on the new one.
            balances: With `plan`: what happens to the credits that plans gave. `keep`: what is left stays, until
                the next refill. `reset`: the amount of the new plan at once; only once in each period. Omitted: `keep`.
            ratelimits: All limits of the key. A limit with an existing name keeps its id.
            concurrency: How many calls may run at once: all limits of the key. Open holds count for a limit with an
                existing name, also where it is lower than their number.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowed_ips`, both
                lists must contain the address. Null: every address that the API allows.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `data/role_not_found`, `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_UPDATE_KEY, {
            "keyId": key_id,
            "name": name,
            "externalId": external_id,
            "meta": meta,
            "expires": expires,
            "credits": credits,
            "budgetId": budget_id,
            "plan": plan,
            "balances": balances,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "allowedIps": allowed_ips,
            "enabled": enabled,
            "roles": roles,
            "permissions": permissions,
        }, options)

    def verify_key(
        self,
        *,
        key: str | Secret,
        api_id: str | Unset = UNSET,
        keyspaces: Sequence[str] | Unset = UNSET,
        permissions: str | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        credits: VerifyKeyInputCredits | Unset = UNSET,
        hold: VerifyKeyInputHold | Unset = UNSET,
        ratelimits: Sequence[VerifyKeyInputRatelimitsEntry] | Unset = UNSET,
        migration_id: str | Unset = UNSET,
        client_ip: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[VerifyKeyOutput]:
        """Verify a key.

        Checks whether a key is valid. The status is 200 for an invalid key too: `valid` is then false and `code` gives
        the reason. Without a root key, if the service allows it, only keys of the default workspace are found, and the
        response omits the fields that end users must not see: `name`, `roles`, `permissions` and `plan`.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            key: The key string from the request of your user.
            api_id: Accept only a key of this API.
            keyspaces: Accept only a key of one of these APIs. Combines with `api_id`: the key must satisfy both.
            permissions: A permission query that the key must satisfy, such as `documents.read AND (admin OR
                billing.write)`.
            tags: Tags of this verification in the analytics.
            credits: Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without
                charging.
            hold: Holds the cost instead of spending it, for work whose cost is known afterwards:
                `holds.settle_hold` charges what it really was. The call can then charge up to 10 limits, whose names
                have up to 1000 characters together. Requires a root key.
            ratelimits: Limits to charge, by name. Limits with `auto_apply` that are not in the list are then
                checked but not charged. Omitted or empty: each limit with `auto_apply` is charged 1.
            migration_id: The migration that imported the key, for keys that need it: see `keys.migrate_keys`.
                Requires a root key.
            client_ip: The address of your user, for the allow-list of the API. Requires a root key.

        Raises:
            LatchkeyError: `user/bad_request/permissions_query_syntax_error`, `user/bad_request/hold_required`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_VERIFY_KEY, {
            "key": key,
            "apiId": api_id,
            "keyspaces": keyspaces,
            "permissions": permissions,
            "tags": tags,
            "credits": credits,
            "hold": hold,
            "ratelimits": ratelimits,
            "migrationId": migration_id,
            "clientIp": client_ip,
        }, options)

    def explain_verification(
        self,
        *,
        key: str | Secret | Unset = UNSET,
        key_id: str | Unset = UNSET,
        api_id: str | Unset = UNSET,
        keyspaces: Sequence[str] | Unset = UNSET,
        permissions: str | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        credits: ExplainVerificationInputCredits | Unset = UNSET,
        hold: ExplainVerificationInputHold | Unset = UNSET,
        ratelimits: Sequence[ExplainVerificationInputRatelimitsEntry] | Unset = UNSET,
        migration_id: str | Unset = UNSET,
        client_ip: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ExplainVerificationOutput]:
        """Explain a verification.

        Says how `keys.verify_key` would answer this body now, and why: each step in its order with what it compared,
        the permissions with where each comes from, the limits with their counters, the credits and the budgets. It
        charges nothing and is not in the analytics. Give `key` or `key_id`. A key that the root key may not read looks
        like one that does not exist. A root key without `verify_key` gets `NOT_FOUND` with that reason, as a
        verification gets `NOT_FOUND`. With `NOT_FOUND`, the explanation ends with that step.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.verify_key`

        Args:
            key: The key string from the request of your user.
            key_id: Instead of `key`: the id of the key. Its string is then not looked up.
            api_id: Accept only a key of this API.
            keyspaces: Accept only a key of one of these APIs. Combines with `api_id`: the key must satisfy both.
            permissions: A permission query that the key must satisfy, such as `documents.read AND (admin OR
                billing.write)`.
            tags: Tags of this verification in the analytics.
            credits: Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without
                charging.
            hold: Holds the cost instead of spending it, for work whose cost is known afterwards:
                `holds.settle_hold` charges what it really was. The call can then charge up to 10 limits, whose names
                have up to 1000 characters together. Requires a root key.
            ratelimits: Limits to charge, by name. Limits with `auto_apply` that are not in the list are then
                checked but not charged. Omitted or empty: each limit with `auto_apply` is charged 1.
            migration_id: The migration that imported the key, for keys that need it: see `keys.migrate_keys`.
                Requires a root key.
            client_ip: The address of your user, for the allow-list of the API. Requires a root key.

        Raises:
            LatchkeyError: `data/key_not_found`, `user/bad_request/permissions_query_syntax_error`,
                `user/bad_request/hold_required`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_KEYS_EXPLAIN_VERIFICATION, {
            "key": key,
            "keyId": key_id,
            "apiId": api_id,
            "keyspaces": keyspaces,
            "permissions": permissions,
            "tags": tags,
            "credits": credits,
            "hold": hold,
            "ratelimits": ratelimits,
            "migrationId": migration_id,
            "clientIp": client_ip,
        }, options)

    def whoami(self, *, key: str | Secret, options: CallOptions | None = None) -> Result[Key]:
        """Get a key by its key string.

        Finds a key without verifying it. Nothing is charged, and a disabled or expired key is returned too.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            key: The key string.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_KEYS_WHOAMI, {"key": key}, options)


class ListIdentities:
    """The operation `list_identities`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        order_by: Literal["createdAt", "externalId"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Identity]]:
        """List identities.

        Ordered by creation time, or by `order_by`. The root key must be allowed to read every identity on the page.

        Permissions of the root key: `identities.{identityId}.read_identity`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose ids and external ids contain this text, regardless of case. Blank: all.
            budget_id: Only identities with this budget.
            plan: Only identities with the plan of this name or id.
            order_by: What the identities are in order by. Default: "created_at".
            order: `desc`: the newest, or the last external id, first. Default: "asc".
        """
        return self._caller.page(_IDENTITIES_LIST_IDENTITIES, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "budgetId": budget_id,
            "plan": plan,
            "orderBy": order_by,
            "order": order,
        }, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        order_by: Literal["createdAt", "externalId"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Identity]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_IDENTITIES_LIST_IDENTITIES, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "budgetId": budget_id,
            "plan": plan,
            "orderBy": order_by,
            "order": order,
        }, options)


class IdentitiesOperations:
    """Owners of keys, such as users or organizations. The keys of an identity share its limits."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_identities: Final = ListIdentities(caller)

    def create_identity(
        self,
        *,
        external_id: str,
        meta: Mapping[str, Any] | Unset = UNSET,
        ratelimits: Sequence[CreateIdentityInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[CreateIdentityInputConcurrencyEntry] | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateIdentityOutput]:
        """Create an identity.

        An identity is an owner of keys, such as a user or an organization. All its keys share its limits. Creating or
        updating a key with a new external id creates an identity without limits.

        Permissions of the root key: `identities.*.create_identity`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            external_id: Your own identifier of the owner of the key, such as a user id.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.
            ratelimits: Limits that all keys of the identity share.
            concurrency: How many calls of all its keys together may run at once.
            budget_id: The budget that verifications spend from too, together with its ancestors. Needs
                `assign_budget` on it.
            plan: The name of the plan, or its id. Needs `assign_plan` on it.

        Raises:
            LatchkeyError: `data/identity_already_exists`, `data/budget_not_found`, `data/plan_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_IDENTITIES_CREATE_IDENTITY, {
            "externalId": external_id,
            "meta": meta,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "budgetId": budget_id,
            "plan": plan,
        }, options)

    def delete_identity(self, *, identity: str, options: CallOptions | None = None) -> Result[DeleteIdentityOutput]:
        """Delete an identity.

        Its keys remain valid, without the identity and its limits. The external id can be used again at once, by an
        identity with a new id. If the identity has a budget, its keys leave that; one that its plan gives ends.

        Permissions of the root key: `identities.*.delete_identity`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            identity: The identity's id, or your external id.

        Raises:
            LatchkeyError: `data/identity_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_IDENTITIES_DELETE_IDENTITY, {"identity": identity}, options)

    def get_identity(self, *, identity: str, options: CallOptions | None = None) -> Result[Identity]:
        """Get an identity.

        Finds an identity by its id or by your external id.

        Permissions of the root key: `identities.{identityId}.read_identity`

        Args:
            identity: The identity's id, or your external id.

        Raises:
            LatchkeyError: `data/identity_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_IDENTITIES_GET_IDENTITY, {"identity": identity}, options)

    def update_identity(
        self,
        *,
        identity: str,
        meta: Mapping[str, Any] | Unset = UNSET,
        ratelimits: Sequence[UpdateIdentityInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[UpdateIdentityInputConcurrencyEntry] | None | Unset = UNSET,
        plan: str | None | Unset = UNSET,
        balances: Literal["keep", "reset"] | Unset = UNSET,
        budget_id: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Identity]:
        """Update an identity.

        Omitted fields do not change. `meta`, `ratelimits` and `concurrency` are replaced as a whole. The next
        verification of any of its keys on the same node uses the new limits.

        Permissions of the root key: `identities.*.update_identity`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            identity: The identity's id, or your external id.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.
            ratelimits: All limits of the identity. A limit with an existing name keeps its id.
            concurrency: How many calls of all its keys together may run at once: all limits of the identity. Null:
                any number. Open holds count for a limit with an existing name, also where it is lower than their
                number.
            plan: The plan whose limits and budget all its keys share, besides the limits of the identity. Its
                permissions and roles are for keys only. Null: none. Needs `assign_plan` on the former one and on the
                new one.
            balances: With `plan`: what happens to the budget that plans gave. `keep`: what is left stays, until the
                next refill. `reset`: the amount of the new plan at once; only once in each period. Omitted: `keep`.
            budget_id: The budget that verifications of all its keys spend from too, together with its ancestors.
                Null: none. Needs `assign_budget` on the former one and on the new one.

        Raises:
            LatchkeyError: `data/identity_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_IDENTITIES_UPDATE_IDENTITY, {
            "identity": identity,
            "meta": meta,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "plan": plan,
            "balances": balances,
            "budgetId": budget_id,
        }, options)


class ListPlans:
    """The operation `list_plans`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Plan]]:
        """List plans.

        Ordered by creation time. The root key must be allowed to read every plan on the page.

        Permissions of the root key: `plans.{planId}.read_plan`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return self._caller.page(_PLANS_LIST_PLANS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Plan]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PLANS_LIST_PLANS, {"limit": limit, "cursor": cursor, "search": search}, options)


class PlansOperations:
    """What many keys and identities get from one place: limits, permissions and roles."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_plans: Final = ListPlans(caller)

    def create_plan(
        self,
        *,
        name: str,
        ratelimits: Sequence[CreatePlanInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[CreatePlanInputConcurrencyEntry] | Unset = UNSET,
        credits: CreatePlanInputCredits | Unset = UNSET,
        budget: CreatePlanInputBudget | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        roles: Sequence[str] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreatePlanOutput]:
        """Create a plan.

        A plan gives limits, credits, permissions and roles to many keys, and limits and a budget to identities: to
        those with its name as their `plan`. A change of it reaches all of them within a second.

        Permissions of the root key: `plans.*.create_plan`, `permissions.*.create_permission`

        Args:
            name: The name by which keys and identities refer to the plan. Unique in the workspace. Never changes.
                Not `plan_…`.
            ratelimits: Limits of each key with the plan, and of each identity with it, whose keys share them. A
                limit of the same name that a key or an identity has itself takes its place there. `auto_apply` is
                ignored for identities, as it is for their own limits.
            concurrency: How many calls of each key with the plan, and of the keys of each identity with it, may run
                at once. Verifications of such a key need `hold`.
            credits: A balance for each key with the plan, or for its reroll chain. Credits that a key has itself
                take its place. A plan with credits is for keys only.
            budget: A budget for each identity with the plan, which verifications of all its keys spend from. A
                `budget_id` of the identity takes its place. A plan with a budget is for identities only, and has no
                `credits`.
            permissions: Slugs that keys with the plan have besides their own. Those that do not exist yet are
                created.
            roles: Names of existing roles that keys with the plan have besides their own.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/plan_already_exists`, `data/role_not_found`, `application/precondition_failed`.
                Besides the errors of every operation.
        """
        return self._caller.call(_PLANS_CREATE_PLAN, {
            "name": name,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "credits": credits,
            "budget": budget,
            "permissions": permissions,
            "roles": roles,
            "meta": meta,
        }, options)

    def delete_plan(self, *, plan: str, options: CallOptions | None = None) -> Result[DeletePlanOutput]:
        """Delete a plan.

        Refused while keys or identities have it: they would have no limits. A deleted key that had it cannot be
        restored afterwards. Its name can be used again.

        Permissions of the root key: `plans.{planId}.delete_plan`

        Args:
            plan: The name of a plan, or its id.

        Raises:
            LatchkeyError: `data/plan_not_found`, `data/plan_in_use`. Besides the errors of every operation.
        """
        return self._caller.call(_PLANS_DELETE_PLAN, {"plan": plan}, options)

    def get_plan(self, *, plan: str, options: CallOptions | None = None) -> Result[Plan]:
        """Get a plan.

        A plan with what it gives.

        Permissions of the root key: `plans.{planId}.read_plan`

        Args:
            plan: The name of a plan, or its id.

        Raises:
            LatchkeyError: `data/plan_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PLANS_GET_PLAN, {"plan": plan}, options)

    def preview_update(
        self,
        *,
        plan: str,
        ratelimits: Sequence[PreviewUpdateInputRatelimitsEntry] | None | Unset = UNSET,
        concurrency: Sequence[PreviewUpdateInputConcurrencyEntry] | None | Unset = UNSET,
        credits: PreviewUpdateInputCredits | None | Unset = UNSET,
        budget: PreviewUpdateInputBudget | None | Unset = UNSET,
        permissions: Sequence[str] | None | Unset = UNSET,
        roles: Sequence[str] | None | Unset = UNSET,
        meta: Mapping[str, Any] | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[PreviewUpdateOutput]:
        """Preview an update of a plan.

        Takes the body of `plans.update_plan`, and says what it would change for how many keys and identities. It
        changes nothing. Without fields to change, it says who has the plan. The numbers are of keys and identities that
        are not deleted; one call examines at most 20000 of each.

        Permissions of the root key: `plans.{planId}.read_plan`

        Args:
            plan: The name of a plan, or its id.
            ratelimits: Limits of each key with the plan, and of each identity with it, whose keys share them. A
                limit of the same name that a key or an identity has itself takes its place there. `auto_apply` is
                ignored for identities, as it is for their own limits.
            concurrency: How many calls of each key with the plan, and of the keys of each identity with it, may run
                at once. Verifications of such a key need `hold`.
            credits: A balance for each key with the plan, or for its reroll chain. Credits that a key has itself
                take its place. A plan with credits is for keys only.
            budget: A budget for each identity with the plan, which verifications of all its keys spend from. A
                `budget_id` of the identity takes its place. A plan with a budget is for identities only, and has no
                `credits`.
            permissions: Slugs that keys with the plan have besides their own. Those that do not exist yet are
                created.
            roles: Names of existing roles that keys with the plan have besides their own.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/plan_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PLANS_PREVIEW_UPDATE, {
            "plan": plan,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "credits": credits,
            "budget": budget,
            "permissions": permissions,
            "roles": roles,
            "meta": meta,
        }, options)

    def update_plan(
        self,
        *,
        plan: str,
        ratelimits: Sequence[UpdatePlanInputRatelimitsEntry] | None | Unset = UNSET,
        concurrency: Sequence[UpdatePlanInputConcurrencyEntry] | None | Unset = UNSET,
        credits: UpdatePlanInputCredits | None | Unset = UNSET,
        budget: UpdatePlanInputBudget | None | Unset = UNSET,
        permissions: Sequence[str] | None | Unset = UNSET,
        roles: Sequence[str] | None | Unset = UNSET,
        meta: Mapping[str, Any] | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Plan]:
        """Update a plan.

        Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. Every key and
        identity with the plan has the new values with its next verification on the same node, and on other nodes within
        a second. A call sees a change whole or not at all. A limit with an existing name keeps its id and its counts; a
        changed `duration` or `mode` starts them at 0. `plans.preview_update` says what a change would do.

        Permissions of the root key: `plans.{planId}.update_plan`, `permissions.*.create_permission`

        Args:
            plan: The name of a plan, or its id.
            ratelimits: Limits of each key with the plan, and of each identity with it, whose keys share them. A
                limit of the same name that a key or an identity has itself takes its place there. `auto_apply` is
                ignored for identities, as it is for their own limits.
            concurrency: How many calls of each key with the plan, and of the keys of each identity with it, may run
                at once. Verifications of such a key need `hold`.
            credits: A balance for each key with the plan, or for its reroll chain. Credits that a key has itself
                take its place. A plan with credits is for keys only.
            budget: A budget for each identity with the plan, which verifications of all its keys spend from. A
                `budget_id` of the identity takes its place. A plan with a budget is for identities only, and has no
                `credits`.
            permissions: Slugs that keys with the plan have besides their own. Those that do not exist yet are
                created.
            roles: Names of existing roles that keys with the plan have besides their own.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/plan_not_found`, `data/role_not_found`, `application/precondition_failed`. Besides
                the errors of every operation.
        """
        return self._caller.call(_PLANS_UPDATE_PLAN, {
            "plan": plan,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "credits": credits,
            "budget": budget,
            "permissions": permissions,
            "roles": roles,
            "meta": meta,
        }, options)


class ListBudgets:
    """The operation `list_budgets`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        parent_id: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Budget]]:
        """List budgets.

        Ordered by creation time, without those that plans give to identities: `identities.get_identity` shows these.
        The root key must be allowed to read every budget on the page.

        Permissions of the root key: `budgets.{budgetId}.read_budget`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
            parent_id: Only the children of this budget. Null: only budgets without a parent.
        """
        return self._caller.page(_BUDGETS_LIST_BUDGETS, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "parentId": parent_id,
        }, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        parent_id: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Budget]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_BUDGETS_LIST_BUDGETS, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "parentId": parent_id,
        }, options)


class BudgetsOperations:
    """Credits that many keys share, in trees of up to four levels."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_budgets: Final = ListBudgets(caller)

    def create_budget(
        self,
        *,
        name: str,
        remaining: int,
        refill: CreateBudgetInputRefill | Unset = UNSET,
        parent_id: str | Unset = UNSET,
        on_empty: Literal["deny", "allow"] | Unset = UNSET,
        thresholds: Sequence[int] | Unset = UNSET,
        unit: str | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateBudgetOutput]:
        """Create a budget.

        A budget is a balance that many keys spend from: those with its `budget_id`, and those of identities with it. A
        call is charged to the budget and its ancestors together, or to none of them. A budget never gets another
        parent.

        Permissions of the root key: `budgets.*.create_budget`, `budgets.{parentId}.assign_budget`

        Args:
            name: The name of the budget. Verifications with a root key show it.
            remaining: The credits that it begins with.
            refill: Sets the balance to an amount at regular intervals.
            parent_id: The budget that its spends are charged to as well. A tree has at most 4 levels.
            on_empty: What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts
                them, and may fall below 0. Default: "deny".
            thresholds: Percentages of a period's credits. The event `budget.threshold_reached` is written with the
                spend that reaches one.
            unit: What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its
                parent.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/budget_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_BUDGETS_CREATE_BUDGET, {
            "name": name,
            "remaining": remaining,
            "refill": refill,
            "parentId": parent_id,
            "onEmpty": on_empty,
            "thresholds": thresholds,
            "unit": unit,
            "meta": meta,
        }, options)

    def delete_budget(self, *, budget_id: str, options: CallOptions | None = None) -> Result[DeleteBudgetOutput]:
        """Delete a budget.

        Its credits are lost. Refused while keys, identities, other budgets or open holds use it: they would have no
        cap. A deleted key that used it cannot be restored afterwards.

        Permissions of the root key: `budgets.{budgetId}.delete_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.

        Raises:
            LatchkeyError: `data/budget_not_found`, `data/budget_in_use`. Besides the errors of every operation.
        """
        return self._caller.call(_BUDGETS_DELETE_BUDGET, {"budgetId": budget_id}, options)

    def get_budget(self, *, budget_id: str, options: CallOptions | None = None) -> Result[Budget]:
        """Get a budget.

        A budget with its balance and its books, also one that a plan gives to an identity.

        Permissions of the root key: `budgets.{budgetId}.read_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_BUDGETS_GET_BUDGET, {"budgetId": budget_id}, options)

    def update_budget(
        self,
        *,
        budget_id: str,
        name: str | Unset = UNSET,
        refill: UpdateBudgetInputRefill | None | Unset = UNSET,
        on_empty: Literal["deny", "allow"] | Unset = UNSET,
        thresholds: Sequence[int] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Budget]:
        """Update a budget.

        Omitted fields do not change. `thresholds` and `meta` are replaced as a whole. The parent and the unit never
        change. With `on_empty: "deny"`, a balance below 0 becomes 0. To change the balance, use
        `budgets.update_credits`.

        Permissions of the root key: `budgets.{budgetId}.update_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.
            name: The name of the budget. Verifications with a root key show it.
            refill: The new refill. Null: no refill. The balance does not change.
            on_empty: What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts
                them, and may fall below 0.
            thresholds: Percentages of a period's credits. The event `budget.threshold_reached` is written with the
                spend that reaches one.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_BUDGETS_UPDATE_BUDGET, {
            "budgetId": budget_id,
            "name": name,
            "refill": refill,
            "onEmpty": on_empty,
            "thresholds": thresholds,
            "meta": meta,
        }, options)

    def update_credits(
        self,
        *,
        budget_id: str,
        operation: Literal["set", "increment", "decrement"],
        value: int,
        options: CallOptions | None = None,
    ) -> Result[Credits]:
        """Update the credits of a budget.

        Sets, increments or decrements the balance. A decrement stops at 0. What the balance really changes by counts as
        granted, also below 0. A budget that a plan gives to an identity is changed too; the plan does not change.

        Permissions of the root key: `budgets.{budgetId}.update_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.
            value: The new balance, or the amount of the change.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_BUDGETS_UPDATE_CREDITS, {
            "budgetId": budget_id,
            "operation": operation,
            "value": value,
        }, options)


class ListHolds:
    """The operation `list_holds`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        key_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        identity: str | Unset = UNSET,
        state: Literal["open", "settled", "released", "expired"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Hold]]:
        """List holds.

        Ordered by creation time. The root key must be allowed to read the keys of every hold on the page. With a
        filter, a page is what matches among up to 2000 holds: it can have fewer entries than `limit`, or none, and yet
        not be the last one.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            key_id: Only holds of this key.
            budget_id: Only holds that took credits from this budget.
            identity: Only holds whose key had this identity when they were made: its id, or your external id.
            state: Only holds in this state.
            order: `asc`: the oldest first. `desc`: the newest first. Default: "asc".
        """
        return self._caller.page(_HOLDS_LIST_HOLDS, {
            "limit": limit,
            "cursor": cursor,
            "keyId": key_id,
            "budgetId": budget_id,
            "identity": identity,
            "state": state,
            "order": order,
        }, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        key_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        identity: str | Unset = UNSET,
        state: Literal["open", "settled", "released", "expired"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Hold]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_HOLDS_LIST_HOLDS, {
            "limit": limit,
            "cursor": cursor,
            "keyId": key_id,
            "budgetId": budget_id,
            "identity": identity,
            "state": state,
            "order": order,
        }, options)


class HoldsOperations:
    """Credits that calls hold until their cost is known."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_holds: Final = ListHolds(caller)

    def extend_hold(self, *, hold_id: str, ttl: int, options: CallOptions | None = None) -> Result[ExtendHoldOutput]:
        """Extend a hold.

        Lets an open hold expire later, for work that lasts longer than expected. It never expires earlier by that, and
        at the latest 24 hours after it was made.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.
            ttl: Milliseconds from now until the hold expires.

        Raises:
            LatchkeyError: `data/hold_not_found`, `data/hold_closed`. Besides the errors of every operation.
        """
        return self._caller.call(_HOLDS_EXTEND_HOLD, {"holdId": hold_id, "ttl": ttl}, options)

    def get_hold(self, *, hold_id: str, options: CallOptions | None = None) -> Result[Hold]:
        """Get a hold.

        A hold with its state. Settled and released holds stay for an hour after their expiry, expired ones for a day.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.

        Raises:
            LatchkeyError: `data/hold_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_HOLDS_GET_HOLD, {"holdId": hold_id}, options)

    def release_hold(self, *, hold_id: str, options: CallOptions | None = None) -> Result[ReleaseHoldOutput]:
        """Release a hold.

        Gives back what was held and charges nothing, for work that was not done. A repetition has the same answer. A
        hold that expired cannot be released: settle it with 0 credits if its expiry charged it.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.

        Raises:
            LatchkeyError: `data/hold_not_found`, `data/hold_closed`. Besides the errors of every operation.
        """
        return self._caller.call(_HOLDS_RELEASE_HOLD, {"holdId": hold_id}, options)

    def settle_hold(
        self,
        *,
        hold_id: str,
        credits: int,
        ratelimits: Sequence[SettleHoldInputRatelimitsEntry] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SettleHoldOutput]:
        """Settle a hold.

        Charges what the work did cost, and gives back the rest of what was held. If it did cost more, every balance is
        charged as far as it has credits; `uncovered` says what was lacking. A repetition with the same amounts has the
        same answer and charges nothing. An expired hold can be settled for as long as it is stored: what its expiry
        charged is given back first. `ratelimits` corrects limits that the verification charged; the others stay
        charged.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.
            credits: What the work did cost. It can be more than was held.
            ratelimits: What the work did cost of limits that the verification charged, by name. Less is given back
                in the window of the charge. What is more is charged now, also beyond the limit. A limit that is counted
                elsewhere by now, as after an outage of Redis, stays as it is.
            tags: Tags of these credits in the analytics.

        Raises:
            LatchkeyError: `data/hold_not_found`, `data/hold_closed`, `application/precondition_failed`. Besides the
                errors of every operation.
        """
        return self._caller.call(_HOLDS_SETTLE_HOLD, {
            "holdId": hold_id,
            "credits": credits,
            "ratelimits": ratelimits,
            "tags": tags,
        }, options)


class ListDecisions:
    """The operation `list_decisions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        refused: bool | Unset = UNSET,
        codes: Sequence[Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED", "PASSED", "DENIED"]] | Unset = UNSET,
        key_id: str | Unset = UNSET,
        api_id: str | Unset = UNSET,
        identity_id: str | Unset = UNSET,
        namespace_id: str | Unset = UNSET,
        request_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[LoggedDecision]]:
        """List logged decisions.

        The log of refused verifications and rate limit decisions, with a sample of those that passed, the newest first.
        It contains decisions about APIs and namespaces whose analytics the root key may read. Of one key or namespace
        and one code, the first refusals of a minute are in the log one by one; the others of the minute are counted in
        `left_out` of the last one. A decision is in the log a few seconds later, the last one of a minute when it is
        over. `LATCHKEY_RETENTION_DECISIONS` and `LATCHKEY_DECISIONS_PER_WORKSPACE` bound the log.

        Permissions of the root key: `apis.{apiId}.read_analytics`, `ratelimits.{namespaceId}.read_analytics`

        Args:
            start: Only decisions at or after this Unix time in milliseconds.
            end: Only decisions before this Unix time in milliseconds.
            refused: Only refusals: every code but `VALID` and `PASSED`. Default: False.
            codes: Only decisions with these codes.
            key_id: Only verifications of this key.
            api_id: Only verifications of keys of this API.
            identity_id: Only verifications of keys of this identity.
            namespace_id: Only decisions in this rate limit namespace.
            request_id: Only decisions of this request: `meta.request_id` of its answer.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return self._caller.page(_ANALYTICS_LIST_DECISIONS, {
            "start": start,
            "end": end,
            "refused": refused,
            "codes": codes,
            "keyId": key_id,
            "apiId": api_id,
            "identityId": identity_id,
            "namespaceId": namespace_id,
            "requestId": request_id,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        refused: bool | Unset = UNSET,
        codes: Sequence[Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED", "PASSED", "DENIED"]] | Unset = UNSET,
        key_id: str | Unset = UNSET,
        api_id: str | Unset = UNSET,
        identity_id: str | Unset = UNSET,
        namespace_id: str | Unset = UNSET,
        request_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[LoggedDecision]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_ANALYTICS_LIST_DECISIONS, {
            "start": start,
            "end": end,
            "refused": refused,
            "codes": codes,
            "keyId": key_id,
            "apiId": api_id,
            "identityId": identity_id,
            "namespaceId": namespace_id,
            "requestId": request_id,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AnalyticsOperations:
    """Statistics of verifications and rate limits."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_decisions: Final = ListDecisions(caller)

    def get_api_stats(
        self,
        *,
        api_id: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetApiStatsOutput]:
        """Get the verification statistics of an API.

        The same as `analytics.get_key_stats`, for all keys of an API together, including deleted keys.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ANALYTICS_GET_API_STATS, {
            "apiId": api_id,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    def get_budget_stats(
        self,
        *,
        budget_id: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetBudgetStatsOutput]:
        """Get the verification statistics of a budget.

        The same as `analytics.get_key_stats`, for all keys that spent from the budget at the time of the verification:
        those with it, those of identities with it, and those that spend from a budget below it. `credits_spent` is what
        they spent from it. Of a settlement with `uncovered` it has what every balance covered, also where this budget
        was charged more. A verification counts for each budget that it spends from. Requires the permission to read the
        budget.

        Permissions of the root key: `budgets.{budgetId}.read_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ANALYTICS_GET_BUDGET_STATS, {
            "budgetId": budget_id,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    def get_identity_stats(
        self,
        *,
        identity: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetIdentityStatsOutput]:
        """Get the verification statistics of an identity.

        The same as `analytics.get_key_stats`, for all keys that belonged to the identity at the time of the
        verification. Requires the permission to read the identity.

        Permissions of the root key: `identities.{identityId}.read_identity`

        Args:
            identity: The identity's id, or your external id.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/identity_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ANALYTICS_GET_IDENTITY_STATS, {
            "identity": identity,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    def get_key_stats(
        self,
        *,
        key_id: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetKeyStatsOutput]:
        """Get the verification statistics of a key.

        Counts the verifications of a key by outcome and time. Counts are about one second old, and a few seconds under
        load. Verifications of a deleted key count as NOT_FOUND. The statistics of a deleted key remain available.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ANALYTICS_GET_KEY_STATS, {
            "keyId": key_id,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    def get_ratelimit_stats(
        self,
        *,
        namespace: str,
        start: int,
        end: int,
        identifier: str | Unset = UNSET,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetRatelimitStatsOutput]:
        """Get the statistics of a rate limit namespace.

        Counts the passed and denied decisions in a namespace by time and by identifier. Each entry of
        `ratelimits.multi_limit` is one decision. Counts are about one second old, and a few seconds under load.

        Permissions of the root key: `ratelimits.{namespaceId}.read_analytics`

        Args:
            namespace: Name or id of the namespace.
            identifier: Only decisions about this identifier.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ANALYTICS_GET_RATELIMIT_STATS, {
            "namespace": namespace,
            "identifier": identifier,
            "start": start,
            "end": end,
            "granularity": granularity,
        }, options)

    def list_top_identities(
        self,
        *,
        start: int,
        end: int,
        granularity: Literal["hour", "day"] | Unset = UNSET,
        api_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ListTopIdentitiesOutput]:
        """List the identities with the most verifications.

        The same as `analytics.list_top_keys`, by the identity that each key had at the time of the verification.
        Verifications of keys without an identity are in no entry. Requires the permission to read identities and, for
        one API, its analytics.

        Permissions of the root key: `identities.*.read_identity`, `apis.{apiId}.read_analytics`

        Args:
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Buckets that are counted, aligned to UTC. Omitted: hours for up to 7 days, else days.
            api_id: Only verifications of keys of this API.
            limit: Maximum number of entries. Default: 10.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ANALYTICS_LIST_TOP_IDENTITIES, {
            "start": start,
            "end": end,
            "granularity": granularity,
            "apiId": api_id,
            "limit": limit,
        }, options)

    def list_top_keys(
        self,
        *,
        start: int,
        end: int,
        granularity: Literal["hour", "day"] | Unset = UNSET,
        api_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ListTopKeysOutput]:
        """List the keys with the most verifications.

        The keys of the workspace, or of one API, with the most verifications in a range of time, the first one with the
        most. Verifications with unknown keys are in no entry. Counts are about one second old, and a few seconds under
        load.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Buckets that are counted, aligned to UTC. Omitted: hours for up to 7 days, else days.
            api_id: Only verifications of keys of this API.
            limit: Maximum number of entries. Default: 10.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ANALYTICS_LIST_TOP_KEYS, {
            "start": start,
            "end": end,
            "granularity": granularity,
            "apiId": api_id,
            "limit": limit,
        }, options)

    def list_usage(
        self,
        *,
        start: int,
        end: int,
        key_ids: Sequence[str] | Unset = UNSET,
        api_ids: Sequence[str] | Unset = UNSET,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ListUsageOutput]:
        """List the verifications of several keys and APIs.

        Counts the verifications of each of up to 100 keys and APIs over time, as `analytics.get_key_stats` and
        `analytics.get_api_stats` do, without codes and tags. Ids that do not exist have no entry. Deleted keys and APIs
        have one.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            key_ids: The keys. With `api_ids` at most 100. Default: [].
            api_ids: The APIs. Default: [].
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
        """
        return self._caller.call(_ANALYTICS_LIST_USAGE, {
            "keyIds": key_ids,
            "apiIds": api_ids,
            "start": start,
            "end": end,
            "granularity": granularity,
        }, options)


class ListPermissions:
    """The operation `list_permissions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Permission]]:
        """List permissions.

        Ordered by creation time.

        Permissions of the root key: `permissions.*.read_permission`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose ids, names, slugs and descriptions contain this text, regardless of case.
                Blank: all.
        """
        return self._caller.page(_PERMISSIONS_LIST_PERMISSIONS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Permission]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PERMISSIONS_LIST_PERMISSIONS, {"limit": limit, "cursor": cursor, "search": search}, options)


class ListRoles:
    """The operation `list_roles`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Role]]:
        """List roles.

        Ordered by creation time. Each role includes its permissions.

        Permissions of the root key: `permissions.*.read_role`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose ids, names and descriptions contain this text, regardless of case. Blank:
                all.
        """
        return self._caller.page(_PERMISSIONS_LIST_ROLES, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Role]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PERMISSIONS_LIST_ROLES, {"limit": limit, "cursor": cursor, "search": search}, options)


class PermissionsOperations:
    """Permissions of keys, and roles as named sets of permissions."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_permissions: Final = ListPermissions(caller)
        self.list_roles: Final = ListRoles(caller)

    def create_permission(
        self,
        *,
        name: str,
        slug: str,
        description: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreatePermissionOutput]:
        """Create a permission.

        Keys get permissions directly or through roles. Slugs are unique in the workspace, regardless of case. A
        verification compares slugs exactly.

        Permissions of the root key: `permissions.*.create_permission`

        Args:
            name: A label. Several permissions may have the same name.
            slug: The name that verifications use. Unique in the workspace, regardless of case.
            description: A description for you. Verifications do not return it.

        Raises:
            LatchkeyError: `data/permission_already_exists`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_CREATE_PERMISSION, {"name": name, "slug": slug, "description": description}, options)

    def create_role(
        self,
        *,
        name: str,
        description: str | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateRoleOutput]:
        """Create a role.

        A role is a named set of permissions. Names are unique in the workspace, regardless of case.

        Permissions of the root key: `permissions.*.create_role`, `permissions.*.add_permission_to_role`,
        `permissions.*.create_permission`

        Args:
            name: The name of the role.
            description: A description for you. Verifications do not return it.
            permissions: Slugs. Permissions that do not exist yet are created, with the slug as their name.

        Raises:
            LatchkeyError: `data/role_already_exists`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_CREATE_ROLE, {
            "name": name,
            "description": description,
            "permissions": permissions,
        }, options)

    def delete_permission(
        self,
        *,
        permission: str,
        options: CallOptions | None = None,
    ) -> Result[DeletePermissionOutput]:
        """Delete a permission.

        Removes the permission from all keys and roles. The next verification on the same node sees the change. The slug
        can be used again at once.

        Permissions of the root key: `permissions.*.delete_permission`

        Args:
            permission: The permission's id or its slug.

        Raises:
            LatchkeyError: `data/permission_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_DELETE_PERMISSION, {"permission": permission}, options)

    def delete_role(self, *, role: str, options: CallOptions | None = None) -> Result[DeleteRoleOutput]:
        """Delete a role.

        Removes the role from all keys. The next verification on the same node sees the change. The permissions of the
        role are not deleted. The name can be used again at once.

        Permissions of the root key: `permissions.*.delete_role`

        Args:
            role: The role's id or its name.

        Raises:
            LatchkeyError: `data/role_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_DELETE_ROLE, {"role": role}, options)

    def get_permission(self, *, permission: str, options: CallOptions | None = None) -> Result[Permission]:
        """Get a permission.

        Finds a permission by its id or its slug.

        Permissions of the root key: `permissions.*.read_permission`

        Args:
            permission: The permission's id or its slug.

        Raises:
            LatchkeyError: `data/permission_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_GET_PERMISSION, {"permission": permission}, options)

    def get_role(self, *, role: str, options: CallOptions | None = None) -> Result[Role]:
        """Get a role.

        Finds a role by its id or its name. Includes its permissions.

        Permissions of the root key: `permissions.*.read_role`

        Args:
            role: The role's id or its name.

        Raises:
            LatchkeyError: `data/role_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_GET_ROLE, {"role": role}, options)

    def set_role_permissions(
        self,
        *,
        permissions: Sequence[str],
        role: str | Unset = UNSET,
        role_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Set the permissions of a role.

        Replaces all permissions of the role. The next verification on the same node sees the change. Returns the
        permissions sorted by slug.

        Permissions of the root key: `permissions.*.add_permission_to_role`,
        `permissions.*.remove_permission_from_role`, `permissions.*.create_permission`

        Args:
            role: The role's id or its name.
            role_id: The same as `role`, for clients that use this name.
            permissions: Slugs. Permissions that do not exist yet are created, with the slug as their name.

        Raises:
            LatchkeyError: `data/role_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_SET_ROLE_PERMISSIONS, {
            "role": role,
            "roleId": role_id,
            "permissions": permissions,
        }, options)

    def update_permission(
        self,
        *,
        permission: str,
        name: str | Unset = UNSET,
        slug: str | Unset = UNSET,
        description: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Permission]:
        """Update a permission.

        Omitted fields do not change. Keys and roles keep the permission under its new slug. The next verification on
        the same node sees the change.

        Permissions of the root key: `permissions.*.update_permission`

        Args:
            permission: The permission's id or its slug.
            name: A label. Several permissions may have the same name.
            slug: The name that verifications use. Unique in the workspace, regardless of case.
            description: A description for you. Null or empty: none.

        Raises:
            LatchkeyError: `data/permission_not_found`, `data/permission_already_exists`. Besides the errors of
                every operation.
        """
        return self._caller.call(_PERMISSIONS_UPDATE_PERMISSION, {
            "permission": permission,
            "name": name,
            "slug": slug,
            "description": description,
        }, options)

    def update_role(
        self,
        *,
        role: str,
        name: str | Unset = UNSET,
        description: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateRoleOutput]:
        """Update a role.

        Omitted fields do not change. Keys keep the role under its new name. To change its permissions, use
        `permissions.set_role_permissions`.

        Permissions of the root key: `permissions.*.update_role`

        Args:
            role: The role's id or its name.
            name: The name of the role.
            description: A description for you. Null or empty: none.

        Raises:
            LatchkeyError: `data/role_not_found`, `data/role_already_exists`. Besides the errors of every operation.
        """
        return self._caller.call(_PERMISSIONS_UPDATE_ROLE, {"role": role, "name": name, "description": description}, options)


class ListNamespaces:
    """The operation `list_namespaces`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[ListNamespacesOutputEntry]]:
        """List rate limit namespaces.

        Ordered by creation time.

        Permissions of the root key: `ratelimits.*.read_namespace`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return self._caller.page(_RATELIMITS_LIST_NAMESPACES, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[ListNamespacesOutputEntry]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_RATELIMITS_LIST_NAMESPACES, {"limit": limit, "cursor": cursor, "search": search}, options)


class ListOverrides:
    """The operation `list_overrides`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        namespace: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[ListOverridesOutput]:
        """List the overrides of a rate limit namespace.

        Ordered by creation time.

        Permissions of the root key: `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.
            limit: Maximum number of entries per page. Default: 50.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return self._caller.page(_RATELIMITS_LIST_OVERRIDES, {"namespace": namespace, "limit": limit, "cursor": cursor}, options)

    def all(
        self,
        *,
        namespace: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Override]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_RATELIMITS_LIST_OVERRIDES, {"namespace": namespace, "limit": limit, "cursor": cursor}, options)


class RatelimitsOperations:
    """Rate limits for any identifier, independent of keys."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_namespaces: Final = ListNamespaces(caller)
        self.list_overrides: Final = ListOverrides(caller)

    def limit(
        self,
        *,
        namespace: str,
        identifier: str,
        limit: int,
        duration: int,
        mode: Literal["standard", "strict"] | Unset = UNSET,
        shadow: bool | Unset = UNSET,
        cost: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[LimitOutput]:
        """Limit an identifier.

        Checks a limit and charges it if the call passes. A denied call has status 200 and `success` false, and charges
        nothing. The limit is a sliding window: windows are aligned to the Unix epoch, and the previous window counts in
        proportion to its overlap with the last `duration`. An override of the namespace replaces `limit` and
        `duration`. The headers `RateLimit` and `RateLimit-Policy` carry the result in seconds. The first use of a
        namespace creates it, which also requires `create_namespace`.

        Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.*.create_namespace`

        Args:
            namespace: Name or id of the namespace. A new name creates a namespace.
            identifier: The identifier to count, such as a user id or an address.
            limit: Maximum cost per window.
            duration: Length of the window in milliseconds.
            mode: How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any
                trailing `duration`. Default: "standard".
            shadow: `true`: the limit is counted and reported, and never denies a call. What it would deny, it does
                not count. So you see what a limit would do before it is in force. Default: False.
            cost: Cost of this call. 0: check the limit without charging it. Default: 1.
        """
        return self._caller.call(_RATELIMITS_LIMIT, {
            "namespace": namespace,
            "identifier": identifier,
            "limit": limit,
            "duration": duration,
            "mode": mode,
            "shadow": shadow,
            "cost": cost,
        }, options)

    def multi_limit(self, entries: Sequence[MultiLimitInputEntry], *, options: CallOptions | None = None) -> Result[MultiLimitOutput]:
        """Limit several identifiers at once.

        Charges all entries or none: if one entry is denied, no limit is charged, and each result gives the state of its
        limit. Entries with the same identifier, namespace and window add up. Otherwise the same as `ratelimits.limit`.

        Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.*.create_namespace`
        """
        return self._caller.call(_RATELIMITS_MULTI_LIMIT, entries, options)

    def delete_namespace(self, *, namespace: str, options: CallOptions | None = None) -> Result[DeleteNamespaceOutput]:
        """Delete a rate limit namespace and its overrides.

        The name can be used again at once: the next call with it creates a new namespace with empty counters.

        Permissions of the root key: `ratelimits.{namespaceId}.delete_namespace`

        Args:
            namespace: Name or id of the namespace.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_RATELIMITS_DELETE_NAMESPACE, {"namespace": namespace}, options)

    def delete_override(
        self,
        *,
        namespace: str,
        identifier: str,
        options: CallOptions | None = None,
    ) -> Result[DeleteOverrideOutput]:
        """Delete an override.

        The next call uses its own `limit` and `duration` again. The identifier must equal that of the override. An
        identifier that only matches a pattern deletes nothing.

        Permissions of the root key: `ratelimits.{namespaceId}.delete_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: An identifier, or a pattern. In a pattern `*` matches any characters except line feeds.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `data/ratelimit_override_not_found`. Besides the
                errors of every operation.
        """
        return self._caller.call(_RATELIMITS_DELETE_OVERRIDE, {"namespace": namespace, "identifier": identifier}, options)

    def explain_limit(
        self,
        *,
        namespace: str,
        identifier: str,
        limit: int,
        duration: int,
        mode: Literal["standard", "strict"] | Unset = UNSET,
        shadow: bool | Unset = UNSET,
        cost: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ExplainLimitOutput]:
        """Explain a limit.

        Says how `ratelimits.limit` would answer this body now, and why: which override applies, which others match, and
        the counter. It charges nothing, creates no namespace and is not in the analytics.

        Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: The identifier to count, such as a user id or an address.
            limit: Maximum cost per window.
            duration: Length of the window in milliseconds.
            mode: How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any
                trailing `duration`. Default: "standard".
            shadow: `true`: the limit is counted and reported, and never denies a call. What it would deny, it does
                not count. So you see what a limit would do before it is in force. Default: False.
            cost: Cost of this call. 0: check the limit without charging it. Default: 1.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_RATELIMITS_EXPLAIN_LIMIT, {
            "namespace": namespace,
            "identifier": identifier,
            "limit": limit,
            "duration": duration,
            "mode": mode,
            "shadow": shadow,
            "cost": cost,
        }, options)

    def get_descriptors(self, *, namespace: str, options: CallOptions | None = None) -> Result[GetDescriptorsOutput]:
        """Get the descriptors of a namespace.

        Returns the tree of limits that Envoy's rate limit service applies in the namespace, without members that say
        nothing. A namespace without a tree has an empty list.

        Permissions of the root key: `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_RATELIMITS_GET_DESCRIPTORS, {"namespace": namespace}, options)

    def get_override(self, *, namespace: str, identifier: str, options: CallOptions | None = None) -> Result[Override]:
        """Get the override of an identifier.

        Returns the override that applies to calls with this identifier: one with the same identifier, or else a
        matching pattern. A pattern as identifier returns the override with this pattern.

        Permissions of the root key: `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: An identifier, or a pattern. In a pattern `*` matches any characters except line feeds.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `data/ratelimit_override_not_found`. Besides the
                errors of every operation.
        """
        return self._caller.call(_RATELIMITS_GET_OVERRIDE, {"namespace": namespace, "identifier": identifier}, options)

    def set_descriptors(
        self,
        *,
        namespace: str,
        descriptors: Sequence[Mapping[str, Any]],
        atomic: bool | Unset = UNSET,
        metadata: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SetDescriptorsOutput]:
        """Set the descriptors of a namespace.

        Replaces the tree of limits that Envoy's rate limit service applies in the namespace, in the form of the
        configuration of envoyproxy/ratelimit. A call's descriptor has the limit of the descriptor of the tree that
        matches all its entries, level by level: the one with the same value, else the first whose value ends with `*`
        and matches, else the one without a value. A limit that the call brings goes first; an override with exactly its
        identifier applies where the tree has no limit. An empty list removes the tree. `ratelimits.limit` does not use
        it.

        Permissions of the root key: `ratelimits.{namespaceId}.set_override`

        Args:
            namespace: Name or id of the namespace.
            descriptors: The tree, as the configuration of envoyproxy/ratelimit writes it. Each descriptor has a
                `key` and may have `value`, `rate_limit` (`requests_per_unit`, `unit`, `unlimited`, `name`, `replaces`),
                `shadow_mode`, `quota_mode`, `share_threshold`, `detailed_metric`, `value_to_metric` and `descriptors`,
                which are the next level. At most 10000 descriptors on 16 levels, of 1 MiB together.
            atomic: Whether a call charges all its descriptors or none. Otherwise each is charged, also when another
                one is over. Default: False.
            metadata: Whether answers have dynamic metadata with the domain, the descriptors and the quotas that are
                over. Default: False.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `application/precondition_failed`. Besides the
                errors of every operation.
        """
        return self._caller.call(_RATELIMITS_SET_DESCRIPTORS, {
            "namespace": namespace,
            "descriptors": descriptors,
            "atomic": atomic,
            "metadata": metadata,
        }, options)

    def set_override(
        self,
        *,
        namespace: str,
        identifier: str,
        limit: int,
        duration: int,
        mode: Literal["standard", "strict"] | Unset = UNSET,
        shadow: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SetOverrideOutput]:
        """Set an override.

        The `limit` and `duration` of the override, and its `mode` if it has one, replace those of the next and later
        calls. If several overrides match, the one with the same identifier applies, then the pattern with the most
        literal characters, then the oldest. Setting the same identifier or pattern again updates the override and keeps
        its id. A namespace has at most 10000 overrides, of which at most 100 have more than one `*`.

        Permissions of the root key: `ratelimits.{namespaceId}.set_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: An identifier, or a pattern. In a pattern `*` matches any characters except line feeds. A
                pattern has at most 8 asterisks.
            limit: Maximum cost per window. 0 denies every call.
            duration: Length of the window in milliseconds.
            mode: How the limit counts. Omitted: as the call says.
            shadow: Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the
                call says.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `data/ratelimit_override_limit_reached`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_RATELIMITS_SET_OVERRIDE, {
            "namespace": namespace,
            "identifier": identifier,
            "limit": limit,
            "duration": duration,
            "mode": mode,
            "shadow": shadow,
        }, options)


class ListPortalSessions:
    """The operation `list_portal_sessions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        api_id: str,
        identity: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[PortalSession]]:
        """List the sessions of the portal.

        The sessions of an API that have not ended, ordered by creation time.

        Permissions of the root key: `apis.{apiId}.read_portal_session`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            identity: Only sessions of this identity: its id, or your external id.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.page(_PORTAL_LIST_PORTAL_SESSIONS, {
            "apiId": api_id,
            "identity": identity,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        api_id: str,
        identity: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[PortalSession]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PORTAL_LIST_PORTAL_SESSIONS, {
            "apiId": api_id,
            "identity": identity,
            "limit": limit,
            "cursor": cursor,
        }, options)


class PortalOperations:
    """Sessions in which the owners of keys manage their own keys."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_portal_sessions: Final = ListPortalSessions(caller)

    def create_session(
        self,
        *,
        api_id: str,
        external_id: str | Unset = UNSET,
        identity: str | Unset = UNSET,
        actions: Sequence[Literal["list", "create", "reroll", "rename", "delete", "usage", "left"]] | Unset = UNSET,
        keys: CreateSessionInputKeys | Unset = UNSET,
        page: CreateSessionInputPage | Unset = UNSET,
        expires_in: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateSessionOutput]:
        """Create a session of the portal.

        In a session, the owner of keys manages them: on the page at `url`, or in your own page with the element
        `<latchkey-keys>`. Create one on your server for a user that has signed in there, and send the user to `url`.
        The session reaches only the keys of this owner in this API, and can do no more than its root key. It ends with
        the root key, the API or the owner, and 20 newer sessions of the same owner end it too.

        Permissions of the root key: `apis.{apiId}.create_portal_session`, `apis.{apiId}.read_key`,
        `apis.{apiId}.create_key`, `apis.{apiId}.update_key`, `apis.{apiId}.delete_key`, `apis.{apiId}.read_analytics`,
        `budgets.*.read_budget`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            external_id: Your own identifier of the owner. An identity that does not exist yet is created.
            identity: Instead of `external_id`: the id or external id of an existing identity.
            actions: What the holder of the session may do with the keys: `list` them, `create` new ones, `reroll`,
                `rename` and `delete` them, see their `usage`, and see what is `left` of their credits and budgets. The
                root key needs the permission for each action. Omitted: what the `portal` of the API says.
            keys: Limits on the keys.
            page: How the page looks. A member that is omitted is as the `portal` of the API says.
            expires_in: When the session ends, in milliseconds from now: at most one hour. Default: 900000.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/identity_not_found`, `data/role_not_found`. Besides the
                errors of every operation.
        """
        return self._caller.call(_PORTAL_CREATE_SESSION, {
            "apiId": api_id,
            "externalId": external_id,
            "identity": identity,
            "actions": actions,
            "keys": keys,
            "page": page,
            "expiresIn": expires_in,
        }, options)

    def delete_portal_sessions(
        self,
        *,
        api_id: str,
        identity: str | Unset = UNSET,
        session_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeletePortalSessionsOutput]:
        """End sessions of the portal.

        Ends all sessions of an API, those of one identity, or one session: on its node at once, on others within a
        second. A session that has ended already is no error.

        Permissions of the root key: `apis.{apiId}.delete_portal_session`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            identity: Only sessions of this identity: its id, or your external id.
            session_id: Only this session.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_PORTAL_DELETE_PORTAL_SESSIONS, {
            "apiId": api_id,
            "identity": identity,
            "sessionId": session_id,
        }, options)


class ListRootKeys:
    """The operation `list_root_keys`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[RootKey]]:
        """List root keys.

        Ordered by creation time. Includes disabled and expired root keys, but not deleted ones. The calling root key
        must be allowed to read every root key on the page.

        Permissions of the root key: `rootKeys.{rootKeyId}.read_root_key`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return self._caller.page(_ROOT_KEYS_LIST_ROOT_KEYS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[RootKey]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_ROOT_KEYS_LIST_ROOT_KEYS, {"limit": limit, "cursor": cursor, "search": search}, options)


class ListSessions:
    """The operation `list_sessions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        root_key_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Session]]:
        """List the sessions of the dashboard.

        Ordered by creation time. A session has the permissions of its root key, and ends when the root key is deleted,
        disabled or expires. The calling root key must be allowed to read every root key on the page.

        Permissions of the root key: `rootKeys.{rootKeyId}.read_root_key`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            root_key_id: Identifier of a root key; not the root key itself.
        """
        return self._caller.page(_ROOT_KEYS_LIST_SESSIONS, {"limit": limit, "cursor": cursor, "rootKeyId": root_key_id}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        root_key_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Session]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_ROOT_KEYS_LIST_SESSIONS, {"limit": limit, "cursor": cursor, "rootKeyId": root_key_id}, options)


class RootKeysOperations:
    """Root keys authenticate programs to this service."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_root_keys: Final = ListRootKeys(caller)
        self.list_sessions: Final = ListSessions(caller)

    def create_root_key(
        self,
        *,
        name: str,
        permissions: Sequence[str],
        expires: int | Unset = UNSET,
        leak_action: Literal["mark", "disable"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateRootKeyOutput]:
        """Create a root key.

        A root key authenticates a program to this service. Give each program a root key of its own, with only the
        permissions that it needs. The calling root key must have every permission of the new one.

        Permissions of the root key: `rootKeys.*.create_root_key`

        Args:
            name: A label for you. End users never see it.
            permissions: Permissions such as `apis.*.create_key`, or `*` for an administrator. Each of the three
                segments may be `*`. The calling root key must have all of them.
            expires: Unix time in milliseconds at which it expires. Omitted: never.
            leak_action: What happens if it is reported as leaked. `mark`, the default: it gets `leaked_at` and
                still works. `disable`: it is disabled too, unless it is the last administrator of its workspace.
        """
        return self._caller.call(_ROOT_KEYS_CREATE_ROOT_KEY, {
            "name": name,
            "permissions": permissions,
            "expires": expires,
            "leakAction": leak_action,
        }, options)

    def delete_root_key(
        self,
        *,
        root_key_id: str,
        descendants: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteRootKeyOutput]:
        """Delete a root key.

        The root key stops working at once. The calling root key must have every permission of the deleted ones. The
        last administrator of a workspace and the root key of the service's configuration cannot be deleted. Root keys
        that the deleted one created live on, unless `descendants` is true: after a leak, whoever had it may have
        created some. The calling root key, that of the configuration and those that these created are never deleted as
        descendants, nor are those of other workspaces.

        Permissions of the root key: `rootKeys.{rootKeyId}.delete_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            descendants: Whether to delete the root keys that it created too, and those that these created. A call
                deletes up to 200 of them, all or none; repeat it while `deleted_descendants` is 200. It also works
                after the root key itself was deleted.

        Raises:
            LatchkeyError: `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return self._caller.call(_ROOT_KEYS_DELETE_ROOT_KEY, {"rootKeyId": root_key_id, "descendants": descendants}, options)

    def delete_sessions(
        self,
        *,
        root_key_id: str,
        session_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteSessionsOutput]:
        """End sessions of the dashboard.

        Ends all sessions of a root key, or one of them: on its node at once, on others within a second. A session that
        has ended already is no error.

        Permissions of the root key: `rootKeys.{rootKeyId}.update_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            session_id: Only this session. Omitted: all sessions of the root key.

        Raises:
            LatchkeyError: `data/root_key_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_ROOT_KEYS_DELETE_SESSIONS, {"rootKeyId": root_key_id, "sessionId": session_id}, options)

    def reroll_root_key(
        self,
        *,
        root_key_id: str,
        expiration: int,
        options: CallOptions | None = None,
    ) -> Result[RerollRootKeyOutput]:
        """Reroll a root key.

        Creates a root key with the settings of the old one. The old root key expires after `expiration` milliseconds,
        rounded up to a whole minute. With 0 it expires at once. The calling root key must have every permission of the
        old one. The root key of the service's configuration can only be replaced there.

        Permissions of the root key: `rootKeys.{rootKeyId}.create_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            expiration: How long the old root key stays valid, in milliseconds.

        Raises:
            LatchkeyError: `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return self._caller.call(_ROOT_KEYS_REROLL_ROOT_KEY, {"rootKeyId": root_key_id, "expiration": expiration}, options)

    def update_root_key(
        self,
        *,
        root_key_id: str,
        name: str | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        expires: int | None | Unset = UNSET,
        leak_action: Literal["mark", "disable"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateRootKeyOutput]:
        """Update a root key.

        Omitted fields do not change. Permissions are replaced as a whole. The calling root key must have every
        permission that this one has before and after the change. The last administrator of a workspace must remain one.
        The root key of the service's configuration can only be changed there.

        Permissions of the root key: `rootKeys.{rootKeyId}.update_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            name: A label for you. End users never see it.
            permissions: Permissions such as `apis.*.create_key`, or `*` for an administrator. Each of the three
                segments may be `*`. The calling root key must have all of them.
            enabled: Whether the service accepts it.
            expires: Unix time in milliseconds at which it expires. Null: never.
            leak_action: What happens if it is reported as leaked. `mark`, the default: it gets `leaked_at` and
                still works. `disable`: it is disabled too, unless it is the last administrator of its workspace.

        Raises:
            LatchkeyError: `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return self._caller.call(_ROOT_KEYS_UPDATE_ROOT_KEY, {
            "rootKeyId": root_key_id,
            "name": name,
            "permissions": permissions,
            "enabled": enabled,
            "expires": expires,
            "leakAction": leak_action,
        }, options)


class ListWorkspaces:
    """The operation `list_workspaces`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Workspace]]:
        """List workspaces.

        Ordered by creation time. Requires a root key of the default workspace.

        Permissions of the root key: `workspaces.*.read_workspace`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return self._caller.page(_WORKSPACES_LIST_WORKSPACES, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Workspace]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_WORKSPACES_LIST_WORKSPACES, {"limit": limit, "cursor": cursor, "search": search}, options)


class WorkspacesOperations:
    """Isolated tenants of the service. The default workspace manages them."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_workspaces: Final = ListWorkspaces(caller)

    def create_workspace(
        self,
        *,
        name: str,
        requests_per_minute: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateWorkspaceOutput]:
        """Create a workspace and its administrator root key.

        Workspaces are isolated: for a root key, the resources of other workspaces do not exist. Requires a root key of
        the default workspace. Several workspaces may have the same name.

        Permissions of the root key: `workspaces.*.create_workspace`

        Args:
            name: A label for you. End users never see it.
            requests_per_minute: Maximum number of calls per minute of all its root keys together. 0: none.
        """
        return self._caller.call(_WORKSPACES_CREATE_WORKSPACE, {"name": name, "requestsPerMinute": requests_per_minute}, options)

    def update_workspace(
        self,
        *,
        workspace_id: str,
        name: str | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        requests_per_minute: int | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateWorkspaceOutput]:
        """Update a workspace.

        Omitted fields do not change. A disabled workspace rejects calls with its root keys, and none of its keys is
        valid. No data is deleted. `requests_per_minute` counts the calls of all its root keys. Their responses carry
        `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. Requires a root key of the default workspace,
        which cannot lock itself out.

        Permissions of the root key: `workspaces.*.update_workspace`

        Args:
            workspace_id: Identifier of a workspace, as create_workspace gave it.
            name: A label for you. End users never see it.
            requests_per_minute: Maximum number of calls per minute of all its root keys together. 0: none. Null:
                unlimited.

        Raises:
            LatchkeyError: `data/workspace_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return self._caller.call(_WORKSPACES_UPDATE_WORKSPACE, {
            "workspaceId": workspace_id,
            "name": name,
            "enabled": enabled,
            "requestsPerMinute": requests_per_minute,
        }, options)


class ListEvents:
    """The operation `list_events`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        actor: str | Unset = UNSET,
        action: str | Unset = UNSET,
        target: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[AuditEvent]]:
        """List audit events.

        Newest first. New events do not shift later pages. Every change, and every decryption of key strings, is
        recorded in the transaction that makes it. Changes to workspaces are in the audit log of the default workspace.

        Permissions of the root key: `audit.*.read_event`

        Args:
            start: Only events at or after this Unix time in milliseconds.
            end: Only events before this Unix time in milliseconds.
            actor: Only events of this actor: the id of a root key, `cli` or `system`.
            action: Only events of this operation, such as `keys.delete_key`.
            target: Only events that affected this resource: the id of a key, an API, a root key or any other
                resource.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return self._caller.page(_AUDIT_LIST_EVENTS, {
            "start": start,
            "end": end,
            "actor": actor,
            "action": action,
            "target": target,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        actor: str | Unset = UNSET,
        action: str | Unset = UNSET,
        target: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[AuditEvent]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_AUDIT_LIST_EVENTS, {
            "start": start,
            "end": end,
            "actor": actor,
            "action": action,
            "target": target,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AuditOperations:
    """The audit log of the workspace."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_events: Final = ListEvents(caller)


class EventsListEvents:
    """The operation `list_events`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        order: Literal["asc", "desc"] | Unset = UNSET,
        after: str | Unset = UNSET,
        types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | Unset = UNSET,
        object_id: str | Unset = UNSET,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Event]]:
        """List events.

        The oldest first, unless `order` is `desc`. Events are written in the transaction of the change that they
        report: each committed change has its events, and no other has. To follow them without webhooks, call again with
        `after`, the id of the last event that you have: no event is missed, and none comes twice. Events of one object
        are in the order in which they happened. Events are stored for `LATCHKEY_RETENTION_EVENTS`.

        Permissions of the root key: `events.*.read_event`

        Args:
            order: `asc`: the oldest first. `desc`: the newest first. Default: "asc".
            after: Only events after this one: the id of an event.
            types: Only events of these types.
            object_id: Only events of this object: the id of a key, an API, a root key or any other resource.
            start: Only events at or after this Unix time in milliseconds.
            end: Only events before this Unix time in milliseconds.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return self._caller.page(_EVENTS_LIST_EVENTS, {
            "order": order,
            "after": after,
            "types": types,
            "objectId": object_id,
            "start": start,
            "end": end,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        order: Literal["asc", "desc"] | Unset = UNSET,
        after: str | Unset = UNSET,
        types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | Unset = UNSET,
        object_id: str | Unset = UNSET,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Event]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_EVENTS_LIST_EVENTS, {
            "order": order,
            "after": after,
            "types": types,
            "objectId": object_id,
            "start": start,
            "end": end,
            "limit": limit,
            "cursor": cursor,
        }, options)


class EventsOperations:
    """What happened in the workspace, for programs that react to it."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_events: Final = EventsListEvents(caller)


class ListDeliveries:
    """The operation `list_deliveries`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        webhook_id: str,
        status: Literal["pending", "delivered", "dead"] | Unset = UNSET,
        event_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[WebhookDelivery]]:
        """List the deliveries of a webhook.

        Those of the newest events first. With `status` `dead` it is the list of dead letters, which
        `webhooks.redeliver` sends again. Deliveries are stored for `LATCHKEY_RETENTION_EVENTS`.

        Permissions of the root key: `webhooks.{webhookId}.read_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            status: Only deliveries in this state.
            event_id: Only the delivery of this event.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return self._caller.page(_WEBHOOKS_LIST_DELIVERIES, {
            "webhookId": webhook_id,
            "status": status,
            "eventId": event_id,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        webhook_id: str,
        status: Literal["pending", "delivered", "dead"] | Unset = UNSET,
        event_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[WebhookDelivery]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_WEBHOOKS_LIST_DELIVERIES, {
            "webhookId": webhook_id,
            "status": status,
            "eventId": event_id,
            "limit": limit,
            "cursor": cursor,
        }, options)


class ListWebhooks:
    """The operation `list_webhooks`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Webhook]]:
        """List webhooks.

        Ordered by creation time. Includes disabled webhooks, but not deleted ones. The root key must be allowed to read
        every webhook on the page.

        Permissions of the root key: `webhooks.{webhookId}.read_webhook`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return self._caller.page(_WEBHOOKS_LIST_WEBHOOKS, {"limit": limit, "cursor": cursor}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Iterator[Webhook]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_WEBHOOKS_LIST_WEBHOOKS, {"limit": limit, "cursor": cursor}, options)


class WebhooksOperations:
    """Endpoints to which events of the workspace are sent."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.list_deliveries: Final = ListDeliveries(caller)
        self.list_webhooks: Final = ListWebhooks(caller)

    def create_webhook(
        self,
        *,
        endpoint: str,
        name: str | None | Unset = UNSET,
        event_types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | None | Unset = UNSET,
        api_ids: Sequence[str] | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateWebhookOutput]:
        """Create a webhook.

        Events of the workspace are sent to its URL as the Standard Webhooks specification says: each at least once, and
        those of one object in their order. A delivery fails unless the endpoint answers with a status from 200 to 299
        within 15 seconds; redirects are not followed. It is tried again for three days. A workspace can have 50
        webhooks.

        Permissions of the root key: `webhooks.*.create_webhook`, `events.*.read_event`

        Args:
            endpoint: The URL to which events are sent. It must begin with `https://`, and its host must have public
                addresses only, unless the operator allows others.
            name: A label for you.
            event_types: The types of events that it gets. Null or omitted: all.
            api_ids: The APIs of whose keys it gets events, and of which it gets their own events. Events without an
                `api_id`, such as those of root keys, are left out. Null or omitted: all events.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/webhook_limit_reached`, `application/precondition_failed`.
                Besides the errors of every operation.
        """
        return self._caller.call(_WEBHOOKS_CREATE_WEBHOOK, {
            "endpoint": endpoint,
            "name": name,
            "eventTypes": event_types,
            "apiIds": api_ids,
        }, options)

    def delete_webhook(self, *, webhook_id: str, options: CallOptions | None = None) -> Result[DeleteWebhookOutput]:
        """Delete a webhook.

        It gets no further requests, and its secret is erased.

        Permissions of the root key: `webhooks.{webhookId}.delete_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_WEBHOOKS_DELETE_WEBHOOK, {"webhookId": webhook_id}, options)

    def get_webhook(self, *, webhook_id: str, options: CallOptions | None = None) -> Result[Webhook]:
        """Get a webhook.

        Its settings and its state, without its secret.

        Permissions of the root key: `webhooks.{webhookId}.read_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_WEBHOOKS_GET_WEBHOOK, {"webhookId": webhook_id}, options)

    def redeliver(
        self,
        *,
        webhook_id: str,
        event_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[RedeliverOutput]:
        """Deliver events to a webhook again.

        Of one event, whatever its state, or of the dead letters of the webhook: the oldest first, up to 1000 in one
        call. They are tried for three days again. Events of one object are sent in their order; the endpoint may have
        later ones already, and recognizes repeated ones by `webhook-id`.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            event_id: The event. Omitted: all dead letters.

        Raises:
            LatchkeyError: `data/webhook_not_found`, `data/webhook_delivery_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return self._caller.call(_WEBHOOKS_REDELIVER, {"webhookId": webhook_id, "eventId": event_id}, options)

    def rotate_secret(
        self,
        *,
        webhook_id: str,
        expiration: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[RotateSecretOutput]:
        """Rotate the secret of a webhook.

        Creates a new secret. For `expiration` milliseconds each message has two signatures, one by each secret, so that
        the endpoint can change to the new one at any moment. A secret from an earlier rotation ends at once.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            expiration: How long the former secret signs messages too, in milliseconds. 0: it ends at once. Default:
                86400000.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_WEBHOOKS_ROTATE_SECRET, {"webhookId": webhook_id, "expiration": expiration}, options)

    def send_test(self, *, webhook_id: str, options: CallOptions | None = None) -> Result[SendTestOutput]:
        """Send a test event to a webhook.

        Records an event of the type `webhook.test`, which this webhook gets whatever its filters are.
        `webhooks.list_deliveries` with the `event_id` shows what came of it, usually within a second.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.

        Raises:
            LatchkeyError: `data/webhook_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return self._caller.call(_WEBHOOKS_SEND_TEST, {"webhookId": webhook_id}, options)

    def update_webhook(
        self,
        *,
        webhook_id: str,
        endpoint: str | Unset = UNSET,
        name: str | None | Unset = UNSET,
        event_types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | None | Unset = UNSET,
        api_ids: Sequence[str] | None | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateWebhookOutput]:
        """Update a webhook.

        Omitted fields do not change. Null removes a value. A webhook that is disabled gets no requests: events that
        happen meanwhile are not sent later, and deliveries that were waiting continue when it is enabled again, at
        once.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`, `events.*.read_event`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            endpoint: The URL to which events are sent. It must begin with `https://`, and its host must have public
                addresses only, unless the operator allows others.
            name: A label for you.
            event_types: The types of events that it gets. Null or omitted: all.
            api_ids: The APIs of whose keys it gets events, and of which it gets their own events. Events without an
                `api_id`, such as those of root keys, are left out. Null or omitted: all events.
            enabled: Whether it gets events.

        Raises:
            LatchkeyError: `data/webhook_not_found`, `data/api_not_found`. Besides the errors of every operation.
        """
        return self._caller.call(_WEBHOOKS_UPDATE_WEBHOOK, {
            "webhookId": webhook_id,
            "endpoint": endpoint,
            "name": name,
            "eventTypes": event_types,
            "apiIds": api_ids,
            "enabled": enabled,
        }, options)


class SystemOperations:
    """The service itself, and what needs attention in the workspace."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get_findings(self, *, options: CallOptions | None = None) -> Result[GetFindingsOutput]:
        """Get what needs attention.

        Keys that expire, have almost no credits, have leaked or do not obey the policy of their API, root keys that
        should be deleted or restricted, and webhooks whose events do not arrive. A member is absent if the root key may
        not read its resources. `system.get_status` returns components that do not work.

        Permissions of the root key: `apis.*.read_key`, `rootKeys.*.read_root_key`, `webhooks.*.read_webhook`
        """
        return self._caller.call(_SYSTEM_GET_FINDINGS, {}, options)

    def get_status(self, *, options: CallOptions | None = None) -> Result[GetStatusOutput]:
        """Get the status of the service.

        The state of the node that answers. `service`, with version and configuration, is present for root keys of the
        default workspace. No secret is in it.

        Permissions of the root key: `system.*.read_status`
        """
        return self._caller.call(_SYSTEM_GET_STATUS, {}, options)

    def list_decisions(
        self,
        *,
        since: int | Unset = UNSET,
        api_id: str | Unset = UNSET,
        key_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SystemListDecisionsOutput]:
        """List recent decisions.

        A sample of the decisions of the last 10 minutes on the node that answers, the newest first: in each second the
        first decision of each key with each code and set of tags, and of each identifier, at most 20 of a workspace. It
        contains decisions about APIs and namespaces whose analytics the root key may read. A restart empties it. Counts
        are in `analytics.*`.

        Permissions of the root key: `apis.{apiId}.read_analytics`, `ratelimits.{namespaceId}.read_analytics`

        Args:
            since: Only decisions at or after this Unix time in milliseconds. Default: 0.
            api_id: Only verifications of keys of this API.
            key_id: Only verifications of this key.
            limit: Maximum number of decisions. Default: 100.
        """
        return self._caller.call(_SYSTEM_LIST_DECISIONS, {
            "since": since,
            "apiId": api_id,
            "keyId": key_id,
            "limit": limit,
        }, options)

    def search(
        self,
        *,
        query: str | Secret,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SearchOutput]:
        """Search keys, identities, APIs and everything else.

        Finds keys, identities, APIs, budgets, namespaces of rate limits, webhooks, roles, permissions and root keys of
        the workspace, as far as the root key may read them. Each word of the query must occur in what an object is
        called: in its name, its id, or the description of a role or permission; of a key also in its `start`, in the
        external id of its identity or, if another word occurs in the key, in the name of its API. Words may be in any
        order; case does not matter, and no character is a wildcard. Exact matches come first, then each kind with its
        newest objects first.

        A key string or root key is looked up by its hash. It is neither stored nor logged, and one with a valid
        checksum is not compared with anything else.

        One call examines the newest 100,000 keys and identities, the keys divided among the APIs, and the newest 10,000
        objects of each other kind. Of more than 8 words it compares the longest. An id, an external id, a whole name
        and a key string are found whatever their age. `apis.list_keys` searches all keys of an API, page by page.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`,
        `identities.{identityId}.read_identity`, `budgets.{budgetId}.read_budget`, `ratelimits.*.read_namespace`,
        `webhooks.{webhookId}.read_webhook`, `permissions.*.read_role`, `permissions.*.read_permission`,
        `rootKeys.{rootKeyId}.read_root_key`

        Args:
            query: Words, an id or a key string. Blank: no results.
            limit: Maximum number of results of each kind, exact matches not counted. Default: 5.
        """
        return self._caller.call(_SYSTEM_SEARCH, {"query": query, "limit": limit}, options)


class Operations:
    """The operations of the service, by namespace."""

    def __init__(self, caller: Caller) -> None:
        self.apis: Final = ApisOperations(caller)
        self.keys: Final = KeysOperations(caller)
        self.identities: Final = IdentitiesOperations(caller)
        self.plans: Final = PlansOperations(caller)
        self.budgets: Final = BudgetsOperations(caller)
        self.holds: Final = HoldsOperations(caller)
        self.analytics: Final = AnalyticsOperations(caller)
        self.permissions: Final = PermissionsOperations(caller)
        self.ratelimits: Final = RatelimitsOperations(caller)
        self.portal: Final = PortalOperations(caller)
        self.root_keys: Final = RootKeysOperations(caller)
        self.workspaces: Final = WorkspacesOperations(caller)
        self.audit: Final = AuditOperations(caller)
        self.events: Final = EventsOperations(caller)
        self.webhooks: Final = WebhooksOperations(caller)
        self.system: Final = SystemOperations(caller)


class AsyncListApis:
    """The operation `list_apis`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Api]]:
        """List APIs.

        Ordered by creation time.

        Permissions of the root key: `apis.*.read_api`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return await self._caller.page(_APIS_LIST_APIS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Api]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_APIS_LIST_APIS, {"limit": limit, "cursor": cursor, "search": search}, options)


class AsyncListKeys:
    """The operation `list_keys`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        api_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        order_by: Literal["createdAt", "name", "expires", "lastUsedAt"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        decrypt: bool | Unset = UNSET,
        revalidate_keys_cache: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Key]]:
        """List the keys of an API.

        Ordered by creation time, or by `order_by`. Includes disabled and expired keys, but not deleted ones: `deleted`
        lists those, with `deleted_at` and without `plaintext`. With a filter, one call examines at most 100,000 keys: a
        page can have fewer entries than `limit`, or none, although `has_more` is true. An API that the root key may not
        read looks like one that does not exist.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`, `apis.{apiId}.decrypt_key`

        Args:
            api_id: Identifier of the API.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            deleted: Only keys that were deleted without `permanent` and that `keys.restore_key` can restore,
                instead of those that are not deleted. Default: False.
            order_by: What the keys are in order by. Names are compared regardless of case. Any order but
                `created_at` needs an API with at most 100,000 keys, or an `external_id` or `budget_id` with at most as
                many. Default: "created_at".
            order: `desc`: the newest, the last name or the latest time first. Default: "asc".
            decrypt: Whether to return the `plaintext` of recoverable keys. Default: False.
            revalidate_keys_cache: Accepted for compatibility, without effect: the list is always current. Default:
                False.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.page(_APIS_LIST_KEYS, {
            "apiId": api_id,
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "deleted": deleted,
            "orderBy": order_by,
            "order": order,
            "decrypt": decrypt,
            "revalidateKeysCache": revalidate_keys_cache,
        }, options)

    def all(
        self,
        *,
        api_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        order_by: Literal["createdAt", "name", "expires", "lastUsedAt"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        decrypt: bool | Unset = UNSET,
        revalidate_keys_cache: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Key]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_APIS_LIST_KEYS, {
            "apiId": api_id,
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "deleted": deleted,
            "orderBy": order_by,
            "order": order,
            "decrypt": decrypt,
            "revalidateKeysCache": revalidate_keys_cache,
        }, options)


class AsyncApisOperations:
    """An API is a namespace of keys."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_apis: Final = AsyncListApis(caller)
        self.list_keys: Final = AsyncListKeys(caller)

    async def count_keys(
        self,
        *,
        api_id: str,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CountKeysOutput]:
        """Count the keys of an API.

        Counts what `apis.list_keys` lists with the same filters, in the first 100,000 keys. An API that the root key
        may not read looks like one that does not exist.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of the API.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            deleted: Only keys that were deleted without `permanent` and that `keys.restore_key` can restore,
                instead of those that are not deleted. Default: False.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_APIS_COUNT_KEYS, {
            "apiId": api_id,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "deleted": deleted,
        }, options)

    async def create_api(
        self,
        *,
        name: str,
        own_key_access: bool | Unset = UNSET,
        own_key_derivation: bool | Unset = UNSET,
        policy: CreateApiInputPolicy | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateApiOutput]:
        """Create an API.

        An API is a namespace of keys. A key belongs to one API. Several APIs may have the same name.

        Permissions of the root key: `apis.*.create_api`

        Args:
            name: A label for you. End users never see it.
            own_key_access: Whether holders of its keys may read what is left of them, without a root key: see
                `keys.get_own_key`. Default: False.
            own_key_derivation: Whether holders of keys may derive keys from them with `keys.derive_own_key`,
                without a root key: short-lived keys that can do no more than their own. Default: False.
            policy: What new keys must have. It is set as a whole. Null: nothing.

        Raises:
            LatchkeyError: `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_APIS_CREATE_API, {
            "name": name,
            "ownKeyAccess": own_key_access,
            "ownKeyDerivation": own_key_derivation,
            "policy": policy,
        }, options)

    async def delete_api(self, *, api_id: str, options: CallOptions | None = None) -> Result[DeleteApiOutput]:
        """Delete an API and its keys.

        The next verification of any of its keys on the same node answers NOT_FOUND. An API with delete protection
        cannot be deleted.

        Permissions of the root key: `apis.{apiId}.delete_api`

        Args:
            api_id: Identifier of an API, as create_api gave it.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_APIS_DELETE_API, {"apiId": api_id}, options)

    async def get_api(self, *, api_id: str, options: CallOptions | None = None) -> Result[Api]:
        """Get an API.

        Includes the values that were set with `apis.update_api`. Fields without a value are omitted.

        Permissions of the root key: `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of an API, as create_api gave it.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_APIS_GET_API, {"apiId": api_id}, options)

    async def get_leak_kit(
        self,
        *,
        api_id: str,
        prefixes: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetLeakKitOutput]:
        """Get what finds leaked keys of an API.

        For each prefix of its keys, a regular expression, and the same as a rule of gitleaks, as a detector of
        TruffleHog and for GitHub's secret scanning. A prefix belongs to the key, not to the API: without `prefixes`,
        the kit is for the default prefix of the API. Keys without a prefix cannot be told from other texts. Addresses
        in the kit begin with `LATCHKEY_PUBLIC_URL`, or with `https://keys.example.com` if the service has none.

        Permissions of the root key: `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            prefixes: The prefixes that your calls of `keys.create_key` set. Omitted: the default prefix of the API.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_APIS_GET_LEAK_KIT, {"apiId": api_id, "prefixes": prefixes}, options)

    async def update_api(
        self,
        *,
        api_id: str,
        name: str | Unset = UNSET,
        prefix: str | None | Unset = UNSET,
        byte_length: int | None | Unset = UNSET,
        delete_protection: bool | Unset = UNSET,
        allowed_ips: Sequence[str] | None | Unset = UNSET,
        leak_action: Literal["mark", "disable"] | Unset = UNSET,
        expiry_notices: Sequence[Literal[1, 3, 7, 14, 30, 60, 90]] | None | Unset = UNSET,
        upstream: UpdateApiInputUpstream | None | Unset = UNSET,
        own_key_access: bool | Unset = UNSET,
        resources: Sequence[str] | None | Unset = UNSET,
        own_key_derivation: bool | Unset = UNSET,
        policy: UpdateApiInputPolicy | None | Unset = UNSET,
        portal: UpdateApiInputPortal | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateApiOutput]:
        """Update an API.

        Omitted fields do not change. Null removes a value. `prefix` and `byte_length` are defaults for keys that are
        created without these fields. If an API has `allowed_ips`, verifications from other addresses answer FORBIDDEN.

        Permissions of the root key: `apis.{apiId}.update_api`, `apis.{apiId}.create_key`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            name: A label for you. End users never see it.
            prefix: Default prefix of new keys; an underscore follows it.
            byte_length: Default number of random bytes in new keys. Null: 16.
            delete_protection: Whether to prevent `apis.delete_api`.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use its keys. Null: every address.
            leak_action: What happens to a key that is reported as leaked. `mark`, the default: it gets `leaked_at`
                and still verifies. `disable`: it is disabled too.
            expiry_notices: The days before the expiry of a key at which it has an event `key.expiring`. Null: 7 and
                1.
            upstream: An HTTP endpoint of another system that is asked once about each key that is unknown here. A
                key that it knows is created here. Needs `create_key` too. Null: none.
            own_key_access: Whether holders of its keys may read what is left of them, without a root key: see
                `keys.get_own_key`.
            resources: The absolute URIs for which its keys get access tokens at `/oauth/token`, if the service
                issues any: each is an audience.
            own_key_derivation: Whether holders of keys may derive keys from them with `keys.derive_own_key`,
                without a root key: short-lived keys that can do no more than their own.
            policy: What new keys must have. It is set as a whole. Null: nothing.
            portal: What sessions of the portal inherit unless they say otherwise. It is set as a whole. The root
                key needs the permission of each action. Null: nothing.

        Raises:
            LatchkeyError: `data/api_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_APIS_UPDATE_API, {
            "apiId": api_id,
            "name": name,
            "prefix": prefix,
            "byteLength": byte_length,
            "deleteProtection": delete_protection,
            "allowedIps": allowed_ips,
            "leakAction": leak_action,
            "expiryNotices": expiry_notices,
            "upstream": upstream,
            "ownKeyAccess": own_key_access,
            "resources": resources,
            "ownKeyDerivation": own_key_derivation,
            "policy": policy,
            "portal": portal,
        }, options)

    async def update_keys(
        self,
        *,
        api_id: str,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        expires: int | None | Unset = UNSET,
        allowed_ips: Sequence[str] | None | Unset = UNSET,
        set_plan: str | None | Unset = UNSET,
        add_roles: Sequence[str] | Unset = UNSET,
        add_permissions: Sequence[str] | Unset = UNSET,
        add_credits: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateKeysOutput]:
        """Update the keys of an API that match.

        Changes keys as `keys.update_key`, `keys.add_roles`, `keys.add_permissions` and `keys.update_credits` do. One
        call processes up to `limit` of the keys that `apis.list_keys` lists with the same filters, the newest first, in
        one transaction; fewer if they get more than 1,000 roles or permissions in all, or have more than 10,000
        permissions. Repeat it with `cursor` until the answer has none. Keys that are created meanwhile are not
        processed.

        Permissions of the root key: `apis.{apiId}.update_key`, `apis.{apiId}.read_key`, `apis.{apiId}.read_api`,
        `permissions.*.add_role_to_key`, `permissions.*.add_permission_to_key`, `permissions.*.create_permission`,
        `plans.{planId}.assign_plan`

        Args:
            api_id: Identifier of the API.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            limit: Maximum number of keys that one call processes. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            expires: Null: the keys never expire.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use the keys. Null: every address that the API
                allows.
            set_plan: The name of their plan, or its id. Null: none. Needs `assign_plan` on the former plans and on
                the new one.
            add_roles: Names of existing roles.
            add_permissions: Slugs. New ones are created.
            add_credits: Added to each balance: keys that share one after a reroll get it once, with the newest of
                them that matches. Keys with unlimited credits fail.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/plan_not_found`, `data/role_not_found`. Besides the errors of
                every operation.
        """
        return await self._caller.call(_APIS_UPDATE_KEYS, {
            "apiId": api_id,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "limit": limit,
            "cursor": cursor,
            "enabled": enabled,
            "expires": expires,
            "allowedIps": allowed_ips,
            "setPlan": set_plan,
            "addRoles": add_roles,
            "addPermissions": add_permissions,
            "addCredits": add_credits,
        }, options)

    async def delete_keys(
        self,
        *,
        api_id: str,
        search: str | Unset = UNSET,
        external_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        state: Literal["active", "disabled", "expired"] | Unset = UNSET,
        expires_before: int | Unset = UNSET,
        prefix: str | Unset = UNSET,
        role: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteKeysOutput]:
        """Delete the keys of an API that match.

        Deletes keys as `keys.delete_key` does. One call processes up to `limit` of the keys that `apis.list_keys` lists
        with the same filters, the newest first, in one transaction; fewer if they get more than 1,000 roles or
        permissions in all, or have more than 10,000 permissions. Repeat it with `cursor` until the answer has none.
        Keys that are created meanwhile are not processed.

        Permissions of the root key: `apis.{apiId}.delete_key`, `apis.{apiId}.read_key`, `apis.{apiId}.read_api`

        Args:
            api_id: Identifier of the API.
            search: Only entries whose name, `key_id`, `start` or `external_id` contain this text, regardless of
                case. Blank: all.
            external_id: Only keys of the identity with this external id.
            budget_id: Only keys with this budget; not those that have it by their identity.
            plan: Only keys with the plan of this name or id; not those that have it by their identity.
            state: Only keys in this state. A disabled key that has expired counts as disabled.
            expires_before: Only keys that expire before this Unix time in milliseconds, including those that have
                expired.
            prefix: Only keys whose string begins with this prefix and an underscore.
            role: Only keys with the role of this name, regardless of case.
            limit: Maximum number of keys that one call processes. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_APIS_DELETE_KEYS, {
            "apiId": api_id,
            "search": search,
            "externalId": external_id,
            "budgetId": budget_id,
            "plan": plan,
            "state": state,
            "expiresBefore": expires_before,
            "prefix": prefix,
            "role": role,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AsyncListDerivedKeys:
    """The operation `list_derived_keys`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        key_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[DerivedKey]]:
        """List derived keys.

        The keys that were derived from a key, directly or not, ordered by creation time. Those that have expired or
        were ended are not in the list. With the id of a derived key: those that were derived from it.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.page(_KEYS_LIST_DERIVED_KEYS, {"keyId": key_id, "limit": limit, "cursor": cursor}, options)

    def all(
        self,
        *,
        key_id: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[DerivedKey]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_KEYS_LIST_DERIVED_KEYS, {"keyId": key_id, "limit": limit, "cursor": cursor}, options)


class AsyncKeysOperations:
    """Keys that you issue to your users and verify on their requests."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_derived_keys: Final = AsyncListDerivedKeys(caller)

    async def add_permissions(
        self,
        *,
        key_id: str,
        permissions: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Add permissions to a key.

        The key keeps its other permissions. Returns all direct permissions of the key, without those of its roles.
        Permissions that do not exist yet are created.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_permission_to_key`,
        `permissions.*.create_permission`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_ADD_PERMISSIONS, {"keyId": key_id, "permissions": permissions}, options)

    async def add_roles(
        self,
        *,
        key_id: str,
        roles: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Role]]:
        """Add roles to a key.

        The key keeps its other roles. Returns all roles of the key. Roles are given by name and must exist.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_role_to_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_ADD_ROLES, {"keyId": key_id, "roles": roles}, options)

    async def create_key(
        self,
        *,
        api_id: str,
        prefix: str | Unset = UNSET,
        name: str | Unset = UNSET,
        byte_length: int | Unset = UNSET,
        external_id: str | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        roles: Sequence[str] | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        expires: int | Unset = UNSET,
        credits: CreateKeyInputCredits | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        ratelimits: Sequence[CreateKeyInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[CreateKeyInputConcurrencyEntry] | Unset = UNSET,
        allowed_ips: Sequence[str] | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        recoverable: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateKeyOutput]:
        """Create a key.

        Only this response contains the key string: the service stores a hash of it. Permissions and an identity that do
        not exist yet are created. Roles must exist. The key must obey the `policy` of its API.

        Permissions of the root key: `apis.{apiId}.create_key`, `apis.{apiId}.encrypt_key`,
        `budgets.{budgetId}.assign_budget`, `plans.{planId}.assign_plan`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            prefix: Beginning of the key string; an underscore follows it.
            name: A label. Of your end users, at most the owner of the key sees it.
            byte_length: Random bytes in the key string.
            external_id: Your own identifier of the owner of the key, such as a user id.
            meta: Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it.
            roles: Names of existing roles.
            permissions: Slugs. `documents.*` grants every permission that begins with `documents.`.
            expires: Unix time in milliseconds at which the key expires.
            credits: A balance of credits. Omitted: unlimited.
            budget_id: The budget that verifications spend from too, together with its ancestors. Needs
                `assign_budget` on it.
            plan: The name of the plan, or its id. Needs `assign_plan` on it.
            concurrency: How many calls may run at once. Each verification takes a slot of each of these limits with
                `hold`, until its hold ends; without `hold` it gets 400.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowed_ips`, both
                lists must contain the address. Omitted: every address that the API allows.
            enabled: Default: True.
            recoverable: Whether `keys.get_key` can return the key string. It is then stored encrypted. Default:
                False.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `data/role_not_found`, `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_CREATE_KEY, {
            "apiId": api_id,
            "prefix": prefix,
            "name": name,
            "byteLength": byte_length,
            "externalId": external_id,
            "meta": meta,
            "roles": roles,
            "permissions": permissions,
            "expires": expires,
            "credits": credits,
            "budgetId": budget_id,
            "plan": plan,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "allowedIps": allowed_ips,
            "enabled": enabled,
            "recoverable": recoverable,
        }, options)

    async def delete_key(
        self,
        *,
        key_id: str,
        permanent: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteKeyOutput]:
        """Delete a key.

        The next verification on the same node answers NOT_FOUND. The key stays in the database for
        `LATCHKEY_RETENTION_DELETED`, by default 90 days, in which `keys.restore_key` restores it. With `permanent`, the
        key is erased together with its limits, roles, permissions, derived keys and encrypted key string. What was
        derived of a key ends with it. A derived key ends with all that was derived of it, and cannot be restored.

        Permissions of the root key: `apis.{apiId}.delete_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            permanent: Whether to erase the key. Default: False.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_DELETE_KEY, {"keyId": key_id, "permanent": permanent}, options)

    async def derive_key(
        self,
        *,
        key_id: str,
        ttl: int,
        permissions: Sequence[str] | Unset = UNSET,
        ratelimits: Sequence[DeriveKeyInputRatelimitsEntry] | Unset = UNSET,
        credits: DeriveKeyInputCredits | Unset = UNSET,
        allowed_ips: Sequence[str] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeriveKeyOutput]:
        """Derive a key.

        Makes a short-lived key that can do less than its parent, for an agent, a job or a browser. Whatever its parent
        has is judged at each verification: the derived key is charged to the limits, credits and budgets of its parent,
        has no permission that its parent lacks, and ends with its parent. Derived keys can be derived from too, up to
        three levels. They are not in `apis.list_keys`: `keys.list_derived_keys` lists them, and `keys.delete_key` ends
        one.

        Permissions of the root key: `apis.{apiId}.create_key`

        Args:
            key_id: The key, or the derived key, to derive from.
            ttl: When the derived key ends at the latest, in milliseconds from now.
            permissions: Slugs. Of its parent's permissions at each verification, it has those that are also here.
                Omitted: all of them.
            ratelimits: Limits besides those of its parent. Every verification is charged to them, like those of an
                identity.
            credits: A bound besides the credits and budgets of its parent. Omitted: none.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use it. The lists of its parent and of the API
                must contain the address too.
            meta: Verifications answer it as `derived.meta`. Their `meta` is that of the key at the top, which its
                holder cannot choose.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_KEYS_DERIVE_KEY, {
            "keyId": key_id,
            "ttl": ttl,
            "permissions": permissions,
            "ratelimits": ratelimits,
            "credits": credits,
            "allowedIps": allowed_ips,
            "meta": meta,
        }, options)

    async def derive_own_key(
        self,
        *,
        key: str | Secret,
        ttl: int,
        permissions: Sequence[str] | Unset = UNSET,
        ratelimits: Sequence[DeriveOwnKeyInputRatelimitsEntry] | Unset = UNSET,
        credits: DeriveOwnKeyInputCredits | Unset = UNSET,
        allowed_ips: Sequence[str] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeriveOwnKeyOutput]:
        """Derive a key from the key that you hold.

        For the holder of a key, without a root key: the same as `keys.derive_key`, with the key as the credential. It
        works only for valid keys of APIs with `own_key_derivation`; every other string is answered alike with 404.
        Without a root key, keys of the default workspace are found; a root key finds those of its workspace, and needs
        `create_key`.

        Permissions of the root key: `apis.{apiId}.create_key`

        Args:
            key: The key string: that of a key, or of a derived key.
            ttl: When the derived key ends at the latest, in milliseconds from now.
            permissions: Slugs. Of its parent's permissions at each verification, it has those that are also here.
                Omitted: all of them.
            ratelimits: Limits besides those of its parent. Every verification is charged to them, like those of an
                identity.
            credits: A bound besides the credits and budgets of its parent. Omitted: none.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use it. The lists of its parent and of the API
                must contain the address too.
            meta: Verifications answer it as `derived.meta`. Their `meta` is that of the key at the top, which its
                holder cannot choose.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_KEYS_DERIVE_OWN_KEY, {
            "key": key,
            "ttl": ttl,
            "permissions": permissions,
            "ratelimits": ratelimits,
            "credits": credits,
            "allowedIps": allowed_ips,
            "meta": meta,
        }, options)

    async def get_key(
        self,
        *,
        key_id: str,
        decrypt: bool | Unset = UNSET,
        deleted: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Key]:
        """Get a key.

        Returns the key without its key string. With `decrypt`, a recoverable key includes the key string. A key that
        was deleted without `permanent` is kept for a while (`LATCHKEY_RETENTION_DELETED`): `deleted` returns it, and
        `keys.restore_key` restores it.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.decrypt_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            decrypt: Whether to return the `plaintext` of a recoverable key. Default: False.
            deleted: Whether to return the key although it is deleted, then with `deleted_at` and without
                `plaintext`. Default: False.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_KEYS_GET_KEY, {"keyId": key_id, "decrypt": decrypt, "deleted": deleted}, options)

    async def get_own_key(self, *, key: str | Secret, options: CallOptions | None = None) -> Result[GetOwnKeyOutput]:
        """Get the key that you hold.

        For the holder of a key, without a root key: what is left of its credits and limits, its expiry and its usage.
        It charges nothing. It works only for keys of APIs with `own_key_access`; every other string is answered alike
        with 404. Without a root key, keys of the default workspace are found; a root key finds those of its workspace,
        and needs `read_key`. A key can be read 30 times per minute.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            key: The key string.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_GET_OWN_KEY, {"key": key}, options)

    async def migrate_keys(
        self,
        *,
        migration_id: str,
        api_id: str,
        keys: Sequence[MigrateKeysInputKeysEntry],
        algorithm: Literal["sha256", "sha512", "hmac-sha256", "prefixed-api-key"] | Unset = UNSET,
        pepper: str | Secret | Unset = UNSET,
        pepper_encoding: Literal["utf8", "hex", "base64"] | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[MigrateKeysOutput]:
        """Import keys from another system.

        Imports hashes, never key strings. The first call with a `migration_id` creates the migration and fixes its
        `algorithm`. Keys imported with `sha256` (the default) or `sha512` verify like any other key. Keys imported with
        `hmac-sha256` verify only with the `migration_id`. Keys imported with `prefixed-api-key` need the `migration_id`
        for their first verification only. `prefixed-api-key` is for tokens of the form `prefix_short_long`; send the
        SHA-256 of the long part.

        The status is 200 even if some keys could not be imported. `failed` lists their hashes: a key with the hash
        exists already, or the hash occurs earlier in the list. The list is imported in chunks of up to 500 keys, sized
        so that each takes some milliseconds. Each chunk is imported completely or not at all. The keys must obey the
        `policy` of the API: a chunk with one that does not is not imported, nor are those after it. `stopped` says why
        then. If the first chunk is refused, the call fails.

        Permissions of the root key: `apis.{apiId}.create_key`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            migration_id: A name of your choice for the source of the keys.
            api_id: Identifier of the API to import the keys into.
            algorithm: The algorithm of the hashes. Default: "sha256".
            pepper: With `hmac-sha256`: the secret of the HMAC, stored encrypted. Required in the first call only.
            pepper_encoding: Encoding of `pepper`. Default: "utf8".
            dry_run: Whether to import nothing. `migrated` is empty then, and `failed` has the hashes that would
                fail. Default: False.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_MIGRATE_KEYS, {
            "migrationId": migration_id,
            "apiId": api_id,
            "algorithm": algorithm,
            "pepper": pepper,
            "pepperEncoding": pepper_encoding,
            "dryRun": dry_run,
            "keys": keys,
        }, options)

    async def remove_permissions(
        self,
        *,
        key_id: str,
        permissions: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Remove permissions from a key.

        Removes direct permissions only. The key keeps the permissions of its roles. Returns the remaining direct
        permissions. Every permission in the request must exist, but the key need not have it.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.remove_permission_from_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/permission_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_REMOVE_PERMISSIONS, {"keyId": key_id, "permissions": permissions}, options)

    async def remove_roles(
        self,
        *,
        key_id: str,
        roles: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Role]]:
        """Remove roles from a key.

        Returns the remaining roles. Every role in the request must exist, but the key need not have it.

        Permissions of the root key: `apis.{apiId}.update_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_REMOVE_ROLES, {"keyId": key_id, "roles": roles}, options)

    async def report_leak(
        self,
        *,
        key: str | Secret,
        location: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ReportLeakOutput]:
        """Report a leaked key.

        For everybody who finds a key where it should not be; a root key is not needed, whatever the configuration says.
        If a key with this string exists, in any workspace, it is marked as leaked or disabled, as `leak_action` of its
        API says, and the event `leak.reported` is sent. A root key has a `leak_action` of its own and the event
        `root_key.leaked`. The answer is the same for every key string and is sent before the key is looked up, so it
        does not tell whether the key exists.

        Permissions of the root key:

        Args:
            key: The key string.
            location: Where the key was found. The owner of the API sees it.
        """
        return await self._caller.call(_KEYS_REPORT_LEAK, {"key": key, "location": location}, options)

    async def reroll_key(
        self,
        *,
        key_id: str,
        expiration: int | None,
        options: CallOptions | None = None,
    ) -> Result[RerollKeyOutput]:
        """Reroll a key.

        Creates a key with a new key string and the settings of the old key. The old key expires after `expiration`
        milliseconds, rounded up to a whole minute, and is deleted when the retention of deleted keys has passed since.
        With 0 it expires at once; with null its expiry does not change, and it is not deleted. All keys of a reroll
        chain share one balance, one refill, the counters of their limits and the slots of their concurrency, so a
        reroll adds neither credits nor calls. If the API has a `policy`, the new key obeys it: it expires at the latest
        when that allows.

        Permissions of the root key: `apis.{apiId}.create_key`, `apis.{apiId}.encrypt_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            expiration: How long the old key stays valid, in milliseconds. Null: its expiry does not change.

        Raises:
            LatchkeyError: `data/key_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_KEYS_REROLL_KEY, {"keyId": key_id, "expiration": expiration}, options)

    async def restore_key(self, *, key_id: str, options: CallOptions | None = None) -> Result[RestoreKeyOutput]:
        """Restore a deleted key.

        Brings back a key that was deleted without `permanent`, until `LATCHKEY_RETENTION_DELETED` after its deletion:
        with its key string, name, credits, limits, permissions, and the roles and the identity that still exist. What
        was deleted meanwhile stays away from it: a role with its permissions, or the identity with its limits. A key
        whose API, plan or own budget was deleted cannot be restored. A key that was reported as leaked, before its
        deletion or after it, is restored disabled. A key that has expired stays expired. The key counts against the
        quota of the workspace again. The next verification on the same node finds it, and on other nodes within a
        second.

        Permissions of the root key: `apis.{apiId}.restore_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/api_not_found`, `data/budget_not_found`,
                `data/plan_not_found`, `data/key_not_deleted`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_RESTORE_KEY, {"keyId": key_id}, options)

    async def set_permissions(
        self,
        *,
        key_id: str,
        permissions: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Set the permissions of a key.

        Replaces all direct permissions of the key. The key keeps the permissions of its roles. Permissions that do not
        exist yet are created.

        Permissions of the root key: `apis.{apiId}.update_key`, `permissions.*.add_permission_to_key`,
        `permissions.*.remove_permission_from_key`, `permissions.*.create_permission`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_SET_PERMISSIONS, {"keyId": key_id, "permissions": permissions}, options)

    async def set_roles(
        self,
        *,
        key_id: str,
        roles: Sequence[str],
        options: CallOptions | None = None,
    ) -> Result[list[Role]]:
        """Set the roles of a key.

        Replaces all roles of the key. Roles are given by name and must exist.

        Permissions of the root key: `apis.{apiId}.update_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/role_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_SET_ROLES, {"keyId": key_id, "roles": roles}, options)

    async def update_credits(
        self,
        *,
        key_id: str,
        operation: Literal["set", "increment", "decrement"],
        value: int | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateCreditsOutput]:
        """Update the credits of a key.

        Sets, increments or decrements the balance. A decrement stops at 0. All keys of a reroll chain share one
        balance, so the change applies to each of them. Setting null makes usage unlimited and removes the refill.

        Permissions of the root key: `apis.{apiId}.update_key`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            value: The new balance, or the amount of the change. Null: unlimited.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_UPDATE_CREDITS, {"keyId": key_id, "operation": operation, "value": value}, options)

    async def update_key(
        self,
        *,
        key_id: str,
        name: str | None | Unset = UNSET,
        external_id: str | None | Unset = UNSET,
        meta: Mapping[str, Any] | None | Unset = UNSET,
        expires: int | None | Unset = UNSET,
        credits: UpdateKeyInputCredits | None | Unset = UNSET,
        budget_id: str | None | Unset = UNSET,
        plan: str | None | Unset = UNSET,
        balances: Literal["keep", "reset"] | Unset = UNSET,
        ratelimits: Sequence[UpdateKeyInputRatelimitsEntry] | None | Unset = UNSET,
        concurrency: Sequence[UpdateKeyInputConcurrencyEntry] | None | Unset = UNSET,
        allowed_ips: Sequence[str] | None | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        roles: Sequence[str] | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateKeyOutput]:
        """Update a key.

        Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. The next
        verification on the same node uses the new values. No change takes a key out of the `policy` of its API.

        Permissions of the root key: `apis.{apiId}.update_key`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            name: A label. Of your end users, at most the owner of the key sees it.
            external_id: Null removes the key from its identity. The identity is not deleted. If the identity has a
                budget, a key that leaves it needs `assign_budget` on that, or `assign_plan` on the plan that gives it.
            meta: Any JSON object, up to 64 KiB as text and 100 levels deep. Do not store secrets in it.
            expires: Null: the key never expires.
            credits: Null: unlimited.
            budget_id: The budget that verifications spend from too, together with its ancestors. Null: none. Needs
                `assign_budget` on the former one and on the new one.
            plan: The plan whose limits, permissions and roles the key has besides its own. All keys of a reroll
                chain share it. Null: none. Needs `assign_plan` on the former one and on the new one.
            balances: With `plan`: what happens to the credits that plans gave. `keep`: what is left stays, until
                the next refill. `reset`: the amount of the new plan at once; only once in each period. Omitted: `keep`.
            ratelimits: All limits of the key. A limit with an existing name keeps its id.
            concurrency: How many calls may run at once: all limits of the key. Open holds count for a limit with an
                existing name, also where it is lower than their number.
            allowed_ips: IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowed_ips`, both
                lists must contain the address. Null: every address that the API allows.

        Raises:
            LatchkeyError: `data/key_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `data/role_not_found`, `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_UPDATE_KEY, {
            "keyId": key_id,
            "name": name,
            "externalId": external_id,
            "meta": meta,
            "expires": expires,
            "credits": credits,
            "budgetId": budget_id,
            "plan": plan,
            "balances": balances,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "allowedIps": allowed_ips,
            "enabled": enabled,
            "roles": roles,
            "permissions": permissions,
        }, options)

    async def verify_key(
        self,
        *,
        key: str | Secret,
        api_id: str | Unset = UNSET,
        keyspaces: Sequence[str] | Unset = UNSET,
        permissions: str | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        credits: VerifyKeyInputCredits | Unset = UNSET,
        hold: VerifyKeyInputHold | Unset = UNSET,
        ratelimits: Sequence[VerifyKeyInputRatelimitsEntry] | Unset = UNSET,
        migration_id: str | Unset = UNSET,
        client_ip: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[VerifyKeyOutput]:
        """Verify a key.

        Checks whether a key is valid. The status is 200 for an invalid key too: `valid` is then false and `code` gives
        the reason. Without a root key, if the service allows it, only keys of the default workspace are found, and the
        response omits the fields that end users must not see: `name`, `roles`, `permissions` and `plan`.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            key: The key string from the request of your user.
            api_id: Accept only a key of this API.
            keyspaces: Accept only a key of one of these APIs. Combines with `api_id`: the key must satisfy both.
            permissions: A permission query that the key must satisfy, such as `documents.read AND (admin OR
                billing.write)`.
            tags: Tags of this verification in the analytics.
            credits: Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without
                charging.
            hold: Holds the cost instead of spending it, for work whose cost is known afterwards:
                `holds.settle_hold` charges what it really was. The call can then charge up to 10 limits, whose names
                have up to 1000 characters together. Requires a root key.
            ratelimits: Limits to charge, by name. Limits with `auto_apply` that are not in the list are then
                checked but not charged. Omitted or empty: each limit with `auto_apply` is charged 1.
            migration_id: The migration that imported the key, for keys that need it: see `keys.migrate_keys`.
                Requires a root key.
            client_ip: The address of your user, for the allow-list of the API. Requires a root key.

        Raises:
            LatchkeyError: `user/bad_request/permissions_query_syntax_error`, `user/bad_request/hold_required`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_VERIFY_KEY, {
            "key": key,
            "apiId": api_id,
            "keyspaces": keyspaces,
            "permissions": permissions,
            "tags": tags,
            "credits": credits,
            "hold": hold,
            "ratelimits": ratelimits,
            "migrationId": migration_id,
            "clientIp": client_ip,
        }, options)

    async def explain_verification(
        self,
        *,
        key: str | Secret | Unset = UNSET,
        key_id: str | Unset = UNSET,
        api_id: str | Unset = UNSET,
        keyspaces: Sequence[str] | Unset = UNSET,
        permissions: str | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        credits: ExplainVerificationInputCredits | Unset = UNSET,
        hold: ExplainVerificationInputHold | Unset = UNSET,
        ratelimits: Sequence[ExplainVerificationInputRatelimitsEntry] | Unset = UNSET,
        migration_id: str | Unset = UNSET,
        client_ip: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ExplainVerificationOutput]:
        """Explain a verification.

        Says how `keys.verify_key` would answer this body now, and why: each step in its order with what it compared,
        the permissions with where each comes from, the limits with their counters, the credits and the budgets. It
        charges nothing and is not in the analytics. Give `key` or `key_id`. A key that the root key may not read looks
        like one that does not exist. A root key without `verify_key` gets `NOT_FOUND` with that reason, as a
        verification gets `NOT_FOUND`. With `NOT_FOUND`, the explanation ends with that step.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.verify_key`

        Args:
            key: The key string from the request of your user.
            key_id: Instead of `key`: the id of the key. Its string is then not looked up.
            api_id: Accept only a key of this API.
            keyspaces: Accept only a key of one of these APIs. Combines with `api_id`: the key must satisfy both.
            permissions: A permission query that the key must satisfy, such as `documents.read AND (admin OR
                billing.write)`.
            tags: Tags of this verification in the analytics.
            credits: Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without
                charging.
            hold: Holds the cost instead of spending it, for work whose cost is known afterwards:
                `holds.settle_hold` charges what it really was. The call can then charge up to 10 limits, whose names
                have up to 1000 characters together. Requires a root key.
            ratelimits: Limits to charge, by name. Limits with `auto_apply` that are not in the list are then
                checked but not charged. Omitted or empty: each limit with `auto_apply` is charged 1.
            migration_id: The migration that imported the key, for keys that need it: see `keys.migrate_keys`.
                Requires a root key.
            client_ip: The address of your user, for the allow-list of the API. Requires a root key.

        Raises:
            LatchkeyError: `data/key_not_found`, `user/bad_request/permissions_query_syntax_error`,
                `user/bad_request/hold_required`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_KEYS_EXPLAIN_VERIFICATION, {
            "key": key,
            "keyId": key_id,
            "apiId": api_id,
            "keyspaces": keyspaces,
            "permissions": permissions,
            "tags": tags,
            "credits": credits,
            "hold": hold,
            "ratelimits": ratelimits,
            "migrationId": migration_id,
            "clientIp": client_ip,
        }, options)

    async def whoami(self, *, key: str | Secret, options: CallOptions | None = None) -> Result[Key]:
        """Get a key by its key string.

        Finds a key without verifying it. Nothing is charged, and a disabled or expired key is returned too.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            key: The key string.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_KEYS_WHOAMI, {"key": key}, options)


class AsyncListIdentities:
    """The operation `list_identities`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        order_by: Literal["createdAt", "externalId"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Identity]]:
        """List identities.

        Ordered by creation time, or by `order_by`. The root key must be allowed to read every identity on the page.

        Permissions of the root key: `identities.{identityId}.read_identity`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose ids and external ids contain this text, regardless of case. Blank: all.
            budget_id: Only identities with this budget.
            plan: Only identities with the plan of this name or id.
            order_by: What the identities are in order by. Default: "created_at".
            order: `desc`: the newest, or the last external id, first. Default: "asc".
        """
        return await self._caller.page(_IDENTITIES_LIST_IDENTITIES, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "budgetId": budget_id,
            "plan": plan,
            "orderBy": order_by,
            "order": order,
        }, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        order_by: Literal["createdAt", "externalId"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Identity]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_IDENTITIES_LIST_IDENTITIES, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "budgetId": budget_id,
            "plan": plan,
            "orderBy": order_by,
            "order": order,
        }, options)


class AsyncIdentitiesOperations:
    """Owners of keys, such as users or organizations. The keys of an identity share its limits."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_identities: Final = AsyncListIdentities(caller)

    async def create_identity(
        self,
        *,
        external_id: str,
        meta: Mapping[str, Any] | Unset = UNSET,
        ratelimits: Sequence[CreateIdentityInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[CreateIdentityInputConcurrencyEntry] | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateIdentityOutput]:
        """Create an identity.

        An identity is an owner of keys, such as a user or an organization. All its keys share its limits. Creating or
        updating a key with a new external id creates an identity without limits.

        Permissions of the root key: `identities.*.create_identity`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            external_id: Your own identifier of the owner of the key, such as a user id.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.
            ratelimits: Limits that all keys of the identity share.
            concurrency: How many calls of all its keys together may run at once.
            budget_id: The budget that verifications spend from too, together with its ancestors. Needs
                `assign_budget` on it.
            plan: The name of the plan, or its id. Needs `assign_plan` on it.

        Raises:
            LatchkeyError: `data/identity_already_exists`, `data/budget_not_found`, `data/plan_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_IDENTITIES_CREATE_IDENTITY, {
            "externalId": external_id,
            "meta": meta,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "budgetId": budget_id,
            "plan": plan,
        }, options)

    async def delete_identity(
        self,
        *,
        identity: str,
        options: CallOptions | None = None,
    ) -> Result[DeleteIdentityOutput]:
        """Delete an identity.

        Its keys remain valid, without the identity and its limits. The external id can be used again at once, by an
        identity with a new id. If the identity has a budget, its keys leave that; one that its plan gives ends.

        Permissions of the root key: `identities.*.delete_identity`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            identity: The identity's id, or your external id.

        Raises:
            LatchkeyError: `data/identity_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_IDENTITIES_DELETE_IDENTITY, {"identity": identity}, options)

    async def get_identity(self, *, identity: str, options: CallOptions | None = None) -> Result[Identity]:
        """Get an identity.

        Finds an identity by its id or by your external id.

        Permissions of the root key: `identities.{identityId}.read_identity`

        Args:
            identity: The identity's id, or your external id.

        Raises:
            LatchkeyError: `data/identity_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_IDENTITIES_GET_IDENTITY, {"identity": identity}, options)

    async def update_identity(
        self,
        *,
        identity: str,
        meta: Mapping[str, Any] | Unset = UNSET,
        ratelimits: Sequence[UpdateIdentityInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[UpdateIdentityInputConcurrencyEntry] | None | Unset = UNSET,
        plan: str | None | Unset = UNSET,
        balances: Literal["keep", "reset"] | Unset = UNSET,
        budget_id: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Identity]:
        """Update an identity.

        Omitted fields do not change. `meta`, `ratelimits` and `concurrency` are replaced as a whole. The next
        verification of any of its keys on the same node uses the new limits.

        Permissions of the root key: `identities.*.update_identity`, `budgets.{budgetId}.assign_budget`,
        `plans.{planId}.assign_plan`

        Args:
            identity: The identity's id, or your external id.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.
            ratelimits: All limits of the identity. A limit with an existing name keeps its id.
            concurrency: How many calls of all its keys together may run at once: all limits of the identity. Null:
                any number. Open holds count for a limit with an existing name, also where it is lower than their
                number.
            plan: The plan whose limits and budget all its keys share, besides the limits of the identity. Its
                permissions and roles are for keys only. Null: none. Needs `assign_plan` on the former one and on the
                new one.
            balances: With `plan`: what happens to the budget that plans gave. `keep`: what is left stays, until the
                next refill. `reset`: the amount of the new plan at once; only once in each period. Omitted: `keep`.
            budget_id: The budget that verifications of all its keys spend from too, together with its ancestors.
                Null: none. Needs `assign_budget` on the former one and on the new one.

        Raises:
            LatchkeyError: `data/identity_not_found`, `data/budget_not_found`, `data/plan_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_IDENTITIES_UPDATE_IDENTITY, {
            "identity": identity,
            "meta": meta,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "plan": plan,
            "balances": balances,
            "budgetId": budget_id,
        }, options)


class AsyncListPlans:
    """The operation `list_plans`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Plan]]:
        """List plans.

        Ordered by creation time. The root key must be allowed to read every plan on the page.

        Permissions of the root key: `plans.{planId}.read_plan`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return await self._caller.page(_PLANS_LIST_PLANS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Plan]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PLANS_LIST_PLANS, {"limit": limit, "cursor": cursor, "search": search}, options)


class AsyncPlansOperations:
    """What many keys and identities get from one place: limits, permissions and roles."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_plans: Final = AsyncListPlans(caller)

    async def create_plan(
        self,
        *,
        name: str,
        ratelimits: Sequence[CreatePlanInputRatelimitsEntry] | Unset = UNSET,
        concurrency: Sequence[CreatePlanInputConcurrencyEntry] | Unset = UNSET,
        credits: CreatePlanInputCredits | Unset = UNSET,
        budget: CreatePlanInputBudget | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        roles: Sequence[str] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreatePlanOutput]:
        """Create a plan.

        A plan gives limits, credits, permissions and roles to many keys, and limits and a budget to identities: to
        those with its name as their `plan`. A change of it reaches all of them within a second.

        Permissions of the root key: `plans.*.create_plan`, `permissions.*.create_permission`

        Args:
            name: The name by which keys and identities refer to the plan. Unique in the workspace. Never changes.
                Not `plan_…`.
            ratelimits: Limits of each key with the plan, and of each identity with it, whose keys share them. A
                limit of the same name that a key or an identity has itself takes its place there. `auto_apply` is
                ignored for identities, as it is for their own limits.
            concurrency: How many calls of each key with the plan, and of the keys of each identity with it, may run
                at once. Verifications of such a key need `hold`.
            credits: A balance for each key with the plan, or for its reroll chain. Credits that a key has itself
                take its place. A plan with credits is for keys only.
            budget: A budget for each identity with the plan, which verifications of all its keys spend from. A
                `budget_id` of the identity takes its place. A plan with a budget is for identities only, and has no
                `credits`.
            permissions: Slugs that keys with the plan have besides their own. Those that do not exist yet are
                created.
            roles: Names of existing roles that keys with the plan have besides their own.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/plan_already_exists`, `data/role_not_found`, `application/precondition_failed`.
                Besides the errors of every operation.
        """
        return await self._caller.call(_PLANS_CREATE_PLAN, {
            "name": name,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "credits": credits,
            "budget": budget,
            "permissions": permissions,
            "roles": roles,
            "meta": meta,
        }, options)

    async def delete_plan(self, *, plan: str, options: CallOptions | None = None) -> Result[DeletePlanOutput]:
        """Delete a plan.

        Refused while keys or identities have it: they would have no limits. A deleted key that had it cannot be
        restored afterwards. Its name can be used again.

        Permissions of the root key: `plans.{planId}.delete_plan`

        Args:
            plan: The name of a plan, or its id.

        Raises:
            LatchkeyError: `data/plan_not_found`, `data/plan_in_use`. Besides the errors of every operation.
        """
        return await self._caller.call(_PLANS_DELETE_PLAN, {"plan": plan}, options)

    async def get_plan(self, *, plan: str, options: CallOptions | None = None) -> Result[Plan]:
        """Get a plan.

        A plan with what it gives.

        Permissions of the root key: `plans.{planId}.read_plan`

        Args:
            plan: The name of a plan, or its id.

        Raises:
            LatchkeyError: `data/plan_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PLANS_GET_PLAN, {"plan": plan}, options)

    async def preview_update(
        self,
        *,
        plan: str,
        ratelimits: Sequence[PreviewUpdateInputRatelimitsEntry] | None | Unset = UNSET,
        concurrency: Sequence[PreviewUpdateInputConcurrencyEntry] | None | Unset = UNSET,
        credits: PreviewUpdateInputCredits | None | Unset = UNSET,
        budget: PreviewUpdateInputBudget | None | Unset = UNSET,
        permissions: Sequence[str] | None | Unset = UNSET,
        roles: Sequence[str] | None | Unset = UNSET,
        meta: Mapping[str, Any] | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[PreviewUpdateOutput]:
        """Preview an update of a plan.

        Takes the body of `plans.update_plan`, and says what it would change for how many keys and identities. It
        changes nothing. Without fields to change, it says who has the plan. The numbers are of keys and identities that
        are not deleted; one call examines at most 20000 of each.

        Permissions of the root key: `plans.{planId}.read_plan`

        Args:
            plan: The name of a plan, or its id.
            ratelimits: Limits of each key with the plan, and of each identity with it, whose keys share them. A
                limit of the same name that a key or an identity has itself takes its place there. `auto_apply` is
                ignored for identities, as it is for their own limits.
            concurrency: How many calls of each key with the plan, and of the keys of each identity with it, may run
                at once. Verifications of such a key need `hold`.
            credits: A balance for each key with the plan, or for its reroll chain. Credits that a key has itself
                take its place. A plan with credits is for keys only.
            budget: A budget for each identity with the plan, which verifications of all its keys spend from. A
                `budget_id` of the identity takes its place. A plan with a budget is for identities only, and has no
                `credits`.
            permissions: Slugs that keys with the plan have besides their own. Those that do not exist yet are
                created.
            roles: Names of existing roles that keys with the plan have besides their own.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/plan_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PLANS_PREVIEW_UPDATE, {
            "plan": plan,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "credits": credits,
            "budget": budget,
            "permissions": permissions,
            "roles": roles,
            "meta": meta,
        }, options)

    async def update_plan(
        self,
        *,
        plan: str,
        ratelimits: Sequence[UpdatePlanInputRatelimitsEntry] | None | Unset = UNSET,
        concurrency: Sequence[UpdatePlanInputConcurrencyEntry] | None | Unset = UNSET,
        credits: UpdatePlanInputCredits | None | Unset = UNSET,
        budget: UpdatePlanInputBudget | None | Unset = UNSET,
        permissions: Sequence[str] | None | Unset = UNSET,
        roles: Sequence[str] | None | Unset = UNSET,
        meta: Mapping[str, Any] | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Plan]:
        """Update a plan.

        Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. Every key and
        identity with the plan has the new values with its next verification on the same node, and on other nodes within
        a second. A call sees a change whole or not at all. A limit with an existing name keeps its id and its counts; a
        changed `duration` or `mode` starts them at 0. `plans.preview_update` says what a change would do.

        Permissions of the root key: `plans.{planId}.update_plan`, `permissions.*.create_permission`

        Args:
            plan: The name of a plan, or its id.
            ratelimits: Limits of each key with the plan, and of each identity with it, whose keys share them. A
                limit of the same name that a key or an identity has itself takes its place there. `auto_apply` is
                ignored for identities, as it is for their own limits.
            concurrency: How many calls of each key with the plan, and of the keys of each identity with it, may run
                at once. Verifications of such a key need `hold`.
            credits: A balance for each key with the plan, or for its reroll chain. Credits that a key has itself
                take its place. A plan with credits is for keys only.
            budget: A budget for each identity with the plan, which verifications of all its keys spend from. A
                `budget_id` of the identity takes its place. A plan with a budget is for identities only, and has no
                `credits`.
            permissions: Slugs that keys with the plan have besides their own. Those that do not exist yet are
                created.
            roles: Names of existing roles that keys with the plan have besides their own.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/plan_not_found`, `data/role_not_found`, `application/precondition_failed`. Besides
                the errors of every operation.
        """
        return await self._caller.call(_PLANS_UPDATE_PLAN, {
            "plan": plan,
            "ratelimits": ratelimits,
            "concurrency": concurrency,
            "credits": credits,
            "budget": budget,
            "permissions": permissions,
            "roles": roles,
            "meta": meta,
        }, options)


class AsyncListBudgets:
    """The operation `list_budgets`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        parent_id: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Budget]]:
        """List budgets.

        Ordered by creation time, without those that plans give to identities: `identities.get_identity` shows these.
        The root key must be allowed to read every budget on the page.

        Permissions of the root key: `budgets.{budgetId}.read_budget`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
            parent_id: Only the children of this budget. Null: only budgets without a parent.
        """
        return await self._caller.page(_BUDGETS_LIST_BUDGETS, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "parentId": parent_id,
        }, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        parent_id: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Budget]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_BUDGETS_LIST_BUDGETS, {
            "limit": limit,
            "cursor": cursor,
            "search": search,
            "parentId": parent_id,
        }, options)


class AsyncBudgetsOperations:
    """Credits that many keys share, in trees of up to four levels."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_budgets: Final = AsyncListBudgets(caller)

    async def create_budget(
        self,
        *,
        name: str,
        remaining: int,
        refill: CreateBudgetInputRefill | Unset = UNSET,
        parent_id: str | Unset = UNSET,
        on_empty: Literal["deny", "allow"] | Unset = UNSET,
        thresholds: Sequence[int] | Unset = UNSET,
        unit: str | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateBudgetOutput]:
        """Create a budget.

        A budget is a balance that many keys spend from: those with its `budget_id`, and those of identities with it. A
        call is charged to the budget and its ancestors together, or to none of them. A budget never gets another
        parent.

        Permissions of the root key: `budgets.*.create_budget`, `budgets.{parentId}.assign_budget`

        Args:
            name: The name of the budget. Verifications with a root key show it.
            remaining: The credits that it begins with.
            refill: Sets the balance to an amount at regular intervals.
            parent_id: The budget that its spends are charged to as well. A tree has at most 4 levels.
            on_empty: What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts
                them, and may fall below 0. Default: "deny".
            thresholds: Percentages of a period's credits. The event `budget.threshold_reached` is written with the
                spend that reaches one.
            unit: What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its
                parent.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/budget_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_BUDGETS_CREATE_BUDGET, {
            "name": name,
            "remaining": remaining,
            "refill": refill,
            "parentId": parent_id,
            "onEmpty": on_empty,
            "thresholds": thresholds,
            "unit": unit,
            "meta": meta,
        }, options)

    async def delete_budget(self, *, budget_id: str, options: CallOptions | None = None) -> Result[DeleteBudgetOutput]:
        """Delete a budget.

        Its credits are lost. Refused while keys, identities, other budgets or open holds use it: they would have no
        cap. A deleted key that used it cannot be restored afterwards.

        Permissions of the root key: `budgets.{budgetId}.delete_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.

        Raises:
            LatchkeyError: `data/budget_not_found`, `data/budget_in_use`. Besides the errors of every operation.
        """
        return await self._caller.call(_BUDGETS_DELETE_BUDGET, {"budgetId": budget_id}, options)

    async def get_budget(self, *, budget_id: str, options: CallOptions | None = None) -> Result[Budget]:
        """Get a budget.

        A budget with its balance and its books, also one that a plan gives to an identity.

        Permissions of the root key: `budgets.{budgetId}.read_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_BUDGETS_GET_BUDGET, {"budgetId": budget_id}, options)

    async def update_budget(
        self,
        *,
        budget_id: str,
        name: str | Unset = UNSET,
        refill: UpdateBudgetInputRefill | None | Unset = UNSET,
        on_empty: Literal["deny", "allow"] | Unset = UNSET,
        thresholds: Sequence[int] | Unset = UNSET,
        meta: Mapping[str, Any] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Budget]:
        """Update a budget.

        Omitted fields do not change. `thresholds` and `meta` are replaced as a whole. The parent and the unit never
        change. With `on_empty: "deny"`, a balance below 0 becomes 0. To change the balance, use
        `budgets.update_credits`.

        Permissions of the root key: `budgets.{budgetId}.update_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.
            name: The name of the budget. Verifications with a root key show it.
            refill: The new refill. Null: no refill. The balance does not change.
            on_empty: What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts
                them, and may fall below 0.
            thresholds: Percentages of a period's credits. The event `budget.threshold_reached` is written with the
                spend that reaches one.
            meta: Any JSON object, up to 1024 KiB as text and 100 levels deep. Do not store secrets in it.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_BUDGETS_UPDATE_BUDGET, {
            "budgetId": budget_id,
            "name": name,
            "refill": refill,
            "onEmpty": on_empty,
            "thresholds": thresholds,
            "meta": meta,
        }, options)

    async def update_credits(
        self,
        *,
        budget_id: str,
        operation: Literal["set", "increment", "decrement"],
        value: int,
        options: CallOptions | None = None,
    ) -> Result[Credits]:
        """Update the credits of a budget.

        Sets, increments or decrements the balance. A decrement stops at 0. What the balance really changes by counts as
        granted, also below 0. A budget that a plan gives to an identity is changed too; the plan does not change.

        Permissions of the root key: `budgets.{budgetId}.update_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.
            value: The new balance, or the amount of the change.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_BUDGETS_UPDATE_CREDITS, {
            "budgetId": budget_id,
            "operation": operation,
            "value": value,
        }, options)


class AsyncListHolds:
    """The operation `list_holds`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        key_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        identity: str | Unset = UNSET,
        state: Literal["open", "settled", "released", "expired"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Hold]]:
        """List holds.

        Ordered by creation time. The root key must be allowed to read the keys of every hold on the page. With a
        filter, a page is what matches among up to 2000 holds: it can have fewer entries than `limit`, or none, and yet
        not be the last one.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            key_id: Only holds of this key.
            budget_id: Only holds that took credits from this budget.
            identity: Only holds whose key had this identity when they were made: its id, or your external id.
            state: Only holds in this state.
            order: `asc`: the oldest first. `desc`: the newest first. Default: "asc".
        """
        return await self._caller.page(_HOLDS_LIST_HOLDS, {
            "limit": limit,
            "cursor": cursor,
            "keyId": key_id,
            "budgetId": budget_id,
            "identity": identity,
            "state": state,
            "order": order,
        }, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        key_id: str | Unset = UNSET,
        budget_id: str | Unset = UNSET,
        identity: str | Unset = UNSET,
        state: Literal["open", "settled", "released", "expired"] | Unset = UNSET,
        order: Literal["asc", "desc"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Hold]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_HOLDS_LIST_HOLDS, {
            "limit": limit,
            "cursor": cursor,
            "keyId": key_id,
            "budgetId": budget_id,
            "identity": identity,
            "state": state,
            "order": order,
        }, options)


class AsyncHoldsOperations:
    """Credits that calls hold until their cost is known."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_holds: Final = AsyncListHolds(caller)

    async def extend_hold(
        self,
        *,
        hold_id: str,
        ttl: int,
        options: CallOptions | None = None,
    ) -> Result[ExtendHoldOutput]:
        """Extend a hold.

        Lets an open hold expire later, for work that lasts longer than expected. It never expires earlier by that, and
        at the latest 24 hours after it was made.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.
            ttl: Milliseconds from now until the hold expires.

        Raises:
            LatchkeyError: `data/hold_not_found`, `data/hold_closed`. Besides the errors of every operation.
        """
        return await self._caller.call(_HOLDS_EXTEND_HOLD, {"holdId": hold_id, "ttl": ttl}, options)

    async def get_hold(self, *, hold_id: str, options: CallOptions | None = None) -> Result[Hold]:
        """Get a hold.

        A hold with its state. Settled and released holds stay for an hour after their expiry, expired ones for a day.

        Permissions of the root key: `apis.{apiId}.read_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.

        Raises:
            LatchkeyError: `data/hold_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_HOLDS_GET_HOLD, {"holdId": hold_id}, options)

    async def release_hold(self, *, hold_id: str, options: CallOptions | None = None) -> Result[ReleaseHoldOutput]:
        """Release a hold.

        Gives back what was held and charges nothing, for work that was not done. A repetition has the same answer. A
        hold that expired cannot be released: settle it with 0 credits if its expiry charged it.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.

        Raises:
            LatchkeyError: `data/hold_not_found`, `data/hold_closed`. Besides the errors of every operation.
        """
        return await self._caller.call(_HOLDS_RELEASE_HOLD, {"holdId": hold_id}, options)

    async def settle_hold(
        self,
        *,
        hold_id: str,
        credits: int,
        ratelimits: Sequence[SettleHoldInputRatelimitsEntry] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SettleHoldOutput]:
        """Settle a hold.

        Charges what the work did cost, and gives back the rest of what was held. If it did cost more, every balance is
        charged as far as it has credits; `uncovered` says what was lacking. A repetition with the same amounts has the
        same answer and charges nothing. An expired hold can be settled for as long as it is stored: what its expiry
        charged is given back first. `ratelimits` corrects limits that the verification charged; the others stay
        charged.

        Permissions of the root key: `apis.{apiId}.verify_key`

        Args:
            hold_id: Identifier of a hold, as verify_key gave it.
            credits: What the work did cost. It can be more than was held.
            ratelimits: What the work did cost of limits that the verification charged, by name. Less is given back
                in the window of the charge. What is more is charged now, also beyond the limit. A limit that is counted
                elsewhere by now, as after an outage of Redis, stays as it is.
            tags: Tags of these credits in the analytics.

        Raises:
            LatchkeyError: `data/hold_not_found`, `data/hold_closed`, `application/precondition_failed`. Besides the
                errors of every operation.
        """
        return await self._caller.call(_HOLDS_SETTLE_HOLD, {
            "holdId": hold_id,
            "credits": credits,
            "ratelimits": ratelimits,
            "tags": tags,
        }, options)


class AsyncListDecisions:
    """The operation `list_decisions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        refused: bool | Unset = UNSET,
        codes: Sequence[Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED", "PASSED", "DENIED"]] | Unset = UNSET,
        key_id: str | Unset = UNSET,
        api_id: str | Unset = UNSET,
        identity_id: str | Unset = UNSET,
        namespace_id: str | Unset = UNSET,
        request_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[LoggedDecision]]:
        """List logged decisions.

        The log of refused verifications and rate limit decisions, with a sample of those that passed, the newest first.
        It contains decisions about APIs and namespaces whose analytics the root key may read. Of one key or namespace
        and one code, the first refusals of a minute are in the log one by one; the others of the minute are counted in
        `left_out` of the last one. A decision is in the log a few seconds later, the last one of a minute when it is
        over. `LATCHKEY_RETENTION_DECISIONS` and `LATCHKEY_DECISIONS_PER_WORKSPACE` bound the log.

        Permissions of the root key: `apis.{apiId}.read_analytics`, `ratelimits.{namespaceId}.read_analytics`

        Args:
            start: Only decisions at or after this Unix time in milliseconds.
            end: Only decisions before this Unix time in milliseconds.
            refused: Only refusals: every code but `VALID` and `PASSED`. Default: False.
            codes: Only decisions with these codes.
            key_id: Only verifications of this key.
            api_id: Only verifications of keys of this API.
            identity_id: Only verifications of keys of this identity.
            namespace_id: Only decisions in this rate limit namespace.
            request_id: Only decisions of this request: `meta.request_id` of its answer.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return await self._caller.page(_ANALYTICS_LIST_DECISIONS, {
            "start": start,
            "end": end,
            "refused": refused,
            "codes": codes,
            "keyId": key_id,
            "apiId": api_id,
            "identityId": identity_id,
            "namespaceId": namespace_id,
            "requestId": request_id,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        refused: bool | Unset = UNSET,
        codes: Sequence[Literal["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "EXPIRED", "PASSED", "DENIED"]] | Unset = UNSET,
        key_id: str | Unset = UNSET,
        api_id: str | Unset = UNSET,
        identity_id: str | Unset = UNSET,
        namespace_id: str | Unset = UNSET,
        request_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[LoggedDecision]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_ANALYTICS_LIST_DECISIONS, {
            "start": start,
            "end": end,
            "refused": refused,
            "codes": codes,
            "keyId": key_id,
            "apiId": api_id,
            "identityId": identity_id,
            "namespaceId": namespace_id,
            "requestId": request_id,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AsyncAnalyticsOperations:
    """Statistics of verifications and rate limits."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_decisions: Final = AsyncListDecisions(caller)

    async def get_api_stats(
        self,
        *,
        api_id: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetApiStatsOutput]:
        """Get the verification statistics of an API.

        The same as `analytics.get_key_stats`, for all keys of an API together, including deleted keys.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ANALYTICS_GET_API_STATS, {
            "apiId": api_id,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    async def get_budget_stats(
        self,
        *,
        budget_id: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetBudgetStatsOutput]:
        """Get the verification statistics of a budget.

        The same as `analytics.get_key_stats`, for all keys that spent from the budget at the time of the verification:
        those with it, those of identities with it, and those that spend from a budget below it. `credits_spent` is what
        they spent from it. Of a settlement with `uncovered` it has what every balance covered, also where this budget
        was charged more. A verification counts for each budget that it spends from. Requires the permission to read the
        budget.

        Permissions of the root key: `budgets.{budgetId}.read_budget`

        Args:
            budget_id: Identifier of a budget, as create_budget gave it.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/budget_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ANALYTICS_GET_BUDGET_STATS, {
            "budgetId": budget_id,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    async def get_identity_stats(
        self,
        *,
        identity: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetIdentityStatsOutput]:
        """Get the verification statistics of an identity.

        The same as `analytics.get_key_stats`, for all keys that belonged to the identity at the time of the
        verification. Requires the permission to read the identity.

        Permissions of the root key: `identities.{identityId}.read_identity`

        Args:
            identity: The identity's id, or your external id.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/identity_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ANALYTICS_GET_IDENTITY_STATS, {
            "identity": identity,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    async def get_key_stats(
        self,
        *,
        key_id: str,
        start: int,
        end: int,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetKeyStatsOutput]:
        """Get the verification statistics of a key.

        Counts the verifications of a key by outcome and time. Counts are about one second old, and a few seconds under
        load. Verifications of a deleted key count as NOT_FOUND. The statistics of a deleted key remain available.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            key_id: Identifier of a key, as create_key gave it; not the secret.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
            tags: Only verifications with all of these tags.

        Raises:
            LatchkeyError: `data/key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ANALYTICS_GET_KEY_STATS, {
            "keyId": key_id,
            "start": start,
            "end": end,
            "granularity": granularity,
            "tags": tags,
        }, options)

    async def get_ratelimit_stats(
        self,
        *,
        namespace: str,
        start: int,
        end: int,
        identifier: str | Unset = UNSET,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[GetRatelimitStatsOutput]:
        """Get the statistics of a rate limit namespace.

        Counts the passed and denied decisions in a namespace by time and by identifier. Each entry of
        `ratelimits.multi_limit` is one decision. Counts are about one second old, and a few seconds under load.

        Permissions of the root key: `ratelimits.{namespaceId}.read_analytics`

        Args:
            namespace: Name or id of the namespace.
            identifier: Only decisions about this identifier.
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ANALYTICS_GET_RATELIMIT_STATS, {
            "namespace": namespace,
            "identifier": identifier,
            "start": start,
            "end": end,
            "granularity": granularity,
        }, options)

    async def list_top_identities(
        self,
        *,
        start: int,
        end: int,
        granularity: Literal["hour", "day"] | Unset = UNSET,
        api_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ListTopIdentitiesOutput]:
        """List the identities with the most verifications.

        The same as `analytics.list_top_keys`, by the identity that each key had at the time of the verification.
        Verifications of keys without an identity are in no entry. Requires the permission to read identities and, for
        one API, its analytics.

        Permissions of the root key: `identities.*.read_identity`, `apis.{apiId}.read_analytics`

        Args:
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Buckets that are counted, aligned to UTC. Omitted: hours for up to 7 days, else days.
            api_id: Only verifications of keys of this API.
            limit: Maximum number of entries. Default: 10.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ANALYTICS_LIST_TOP_IDENTITIES, {
            "start": start,
            "end": end,
            "granularity": granularity,
            "apiId": api_id,
            "limit": limit,
        }, options)

    async def list_top_keys(
        self,
        *,
        start: int,
        end: int,
        granularity: Literal["hour", "day"] | Unset = UNSET,
        api_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ListTopKeysOutput]:
        """List the keys with the most verifications.

        The keys of the workspace, or of one API, with the most verifications in a range of time, the first one with the
        most. Verifications with unknown keys are in no entry. Counts are about one second old, and a few seconds under
        load.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Buckets that are counted, aligned to UTC. Omitted: hours for up to 7 days, else days.
            api_id: Only verifications of keys of this API.
            limit: Maximum number of entries. Default: 10.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ANALYTICS_LIST_TOP_KEYS, {
            "start": start,
            "end": end,
            "granularity": granularity,
            "apiId": api_id,
            "limit": limit,
        }, options)

    async def list_usage(
        self,
        *,
        start: int,
        end: int,
        key_ids: Sequence[str] | Unset = UNSET,
        api_ids: Sequence[str] | Unset = UNSET,
        granularity: Literal["minute", "hour", "day"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ListUsageOutput]:
        """List the verifications of several keys and APIs.

        Counts the verifications of each of up to 100 keys and APIs over time, as `analytics.get_key_stats` and
        `analytics.get_api_stats` do, without codes and tags. Ids that do not exist have no entry. Deleted keys and APIs
        have one.

        Permissions of the root key: `apis.{apiId}.read_analytics`

        Args:
            key_ids: The keys. With `api_ids` at most 100. Default: [].
            api_ids: The APIs. Default: [].
            start: Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket.
            end: End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket.
            granularity: Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7
                days, else days.
        """
        return await self._caller.call(_ANALYTICS_LIST_USAGE, {
            "keyIds": key_ids,
            "apiIds": api_ids,
            "start": start,
            "end": end,
            "granularity": granularity,
        }, options)


class AsyncListPermissions:
    """The operation `list_permissions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Permission]]:
        """List permissions.

        Ordered by creation time.

        Permissions of the root key: `permissions.*.read_permission`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose ids, names, slugs and descriptions contain this text, regardless of case.
                Blank: all.
        """
        return await self._caller.page(_PERMISSIONS_LIST_PERMISSIONS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Permission]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PERMISSIONS_LIST_PERMISSIONS, {"limit": limit, "cursor": cursor, "search": search}, options)


class AsyncListRoles:
    """The operation `list_roles`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Role]]:
        """List roles.

        Ordered by creation time. Each role includes its permissions.

        Permissions of the root key: `permissions.*.read_role`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose ids, names and descriptions contain this text, regardless of case. Blank:
                all.
        """
        return await self._caller.page(_PERMISSIONS_LIST_ROLES, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Role]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PERMISSIONS_LIST_ROLES, {"limit": limit, "cursor": cursor, "search": search}, options)


class AsyncPermissionsOperations:
    """Permissions of keys, and roles as named sets of permissions."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_permissions: Final = AsyncListPermissions(caller)
        self.list_roles: Final = AsyncListRoles(caller)

    async def create_permission(
        self,
        *,
        name: str,
        slug: str,
        description: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreatePermissionOutput]:
        """Create a permission.

        Keys get permissions directly or through roles. Slugs are unique in the workspace, regardless of case. A
        verification compares slugs exactly.

        Permissions of the root key: `permissions.*.create_permission`

        Args:
            name: A label. Several permissions may have the same name.
            slug: The name that verifications use. Unique in the workspace, regardless of case.
            description: A description for you. Verifications do not return it.

        Raises:
            LatchkeyError: `data/permission_already_exists`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_CREATE_PERMISSION, {"name": name, "slug": slug, "description": description}, options)

    async def create_role(
        self,
        *,
        name: str,
        description: str | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateRoleOutput]:
        """Create a role.

        A role is a named set of permissions. Names are unique in the workspace, regardless of case.

        Permissions of the root key: `permissions.*.create_role`, `permissions.*.add_permission_to_role`,
        `permissions.*.create_permission`

        Args:
            name: The name of the role.
            description: A description for you. Verifications do not return it.
            permissions: Slugs. Permissions that do not exist yet are created, with the slug as their name.

        Raises:
            LatchkeyError: `data/role_already_exists`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_CREATE_ROLE, {
            "name": name,
            "description": description,
            "permissions": permissions,
        }, options)

    async def delete_permission(
        self,
        *,
        permission: str,
        options: CallOptions | None = None,
    ) -> Result[DeletePermissionOutput]:
        """Delete a permission.

        Removes the permission from all keys and roles. The next verification on the same node sees the change. The slug
        can be used again at once.

        Permissions of the root key: `permissions.*.delete_permission`

        Args:
            permission: The permission's id or its slug.

        Raises:
            LatchkeyError: `data/permission_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_DELETE_PERMISSION, {"permission": permission}, options)

    async def delete_role(self, *, role: str, options: CallOptions | None = None) -> Result[DeleteRoleOutput]:
        """Delete a role.

        Removes the role from all keys. The next verification on the same node sees the change. The permissions of the
        role are not deleted. The name can be used again at once.

        Permissions of the root key: `permissions.*.delete_role`

        Args:
            role: The role's id or its name.

        Raises:
            LatchkeyError: `data/role_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_DELETE_ROLE, {"role": role}, options)

    async def get_permission(self, *, permission: str, options: CallOptions | None = None) -> Result[Permission]:
        """Get a permission.

        Finds a permission by its id or its slug.

        Permissions of the root key: `permissions.*.read_permission`

        Args:
            permission: The permission's id or its slug.

        Raises:
            LatchkeyError: `data/permission_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_GET_PERMISSION, {"permission": permission}, options)

    async def get_role(self, *, role: str, options: CallOptions | None = None) -> Result[Role]:
        """Get a role.

        Finds a role by its id or its name. Includes its permissions.

        Permissions of the root key: `permissions.*.read_role`

        Args:
            role: The role's id or its name.

        Raises:
            LatchkeyError: `data/role_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_GET_ROLE, {"role": role}, options)

    async def set_role_permissions(
        self,
        *,
        permissions: Sequence[str],
        role: str | Unset = UNSET,
        role_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[list[Permission]]:
        """Set the permissions of a role.

        Replaces all permissions of the role. The next verification on the same node sees the change. Returns the
        permissions sorted by slug.

        Permissions of the root key: `permissions.*.add_permission_to_role`,
        `permissions.*.remove_permission_from_role`, `permissions.*.create_permission`

        Args:
            role: The role's id or its name.
            role_id: The same as `role`, for clients that use this name.
            permissions: Slugs. Permissions that do not exist yet are created, with the slug as their name.

        Raises:
            LatchkeyError: `data/role_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_SET_ROLE_PERMISSIONS, {
            "role": role,
            "roleId": role_id,
            "permissions": permissions,
        }, options)

    async def update_permission(
        self,
        *,
        permission: str,
        name: str | Unset = UNSET,
        slug: str | Unset = UNSET,
        description: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[Permission]:
        """Update a permission.

        Omitted fields do not change. Keys and roles keep the permission under its new slug. The next verification on
        the same node sees the change.

        Permissions of the root key: `permissions.*.update_permission`

        Args:
            permission: The permission's id or its slug.
            name: A label. Several permissions may have the same name.
            slug: The name that verifications use. Unique in the workspace, regardless of case.
            description: A description for you. Null or empty: none.

        Raises:
            LatchkeyError: `data/permission_not_found`, `data/permission_already_exists`. Besides the errors of
                every operation.
        """
        return await self._caller.call(_PERMISSIONS_UPDATE_PERMISSION, {
            "permission": permission,
            "name": name,
            "slug": slug,
            "description": description,
        }, options)

    async def update_role(
        self,
        *,
        role: str,
        name: str | Unset = UNSET,
        description: str | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateRoleOutput]:
        """Update a role.

        Omitted fields do not change. Keys keep the role under its new name. To change its permissions, use
        `permissions.set_role_permissions`.

        Permissions of the root key: `permissions.*.update_role`

        Args:
            role: The role's id or its name.
            name: The name of the role.
            description: A description for you. Null or empty: none.

        Raises:
            LatchkeyError: `data/role_not_found`, `data/role_already_exists`. Besides the errors of every operation.
        """
        return await self._caller.call(_PERMISSIONS_UPDATE_ROLE, {"role": role, "name": name, "description": description}, options)


class AsyncListNamespaces:
    """The operation `list_namespaces`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[ListNamespacesOutputEntry]]:
        """List rate limit namespaces.

        Ordered by creation time.

        Permissions of the root key: `ratelimits.*.read_namespace`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return await self._caller.page(_RATELIMITS_LIST_NAMESPACES, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[ListNamespacesOutputEntry]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_RATELIMITS_LIST_NAMESPACES, {"limit": limit, "cursor": cursor, "search": search}, options)


class AsyncListOverrides:
    """The operation `list_overrides`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        namespace: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[ListOverridesOutput]:
        """List the overrides of a rate limit namespace.

        Ordered by creation time.

        Permissions of the root key: `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.
            limit: Maximum number of entries per page. Default: 50.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return await self._caller.page(_RATELIMITS_LIST_OVERRIDES, {"namespace": namespace, "limit": limit, "cursor": cursor}, options)

    def all(
        self,
        *,
        namespace: str,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Override]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_RATELIMITS_LIST_OVERRIDES, {"namespace": namespace, "limit": limit, "cursor": cursor}, options)


class AsyncRatelimitsOperations:
    """Rate limits for any identifier, independent of keys."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_namespaces: Final = AsyncListNamespaces(caller)
        self.list_overrides: Final = AsyncListOverrides(caller)

    async def limit(
        self,
        *,
        namespace: str,
        identifier: str,
        limit: int,
        duration: int,
        mode: Literal["standard", "strict"] | Unset = UNSET,
        shadow: bool | Unset = UNSET,
        cost: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[LimitOutput]:
        """Limit an identifier.

        Checks a limit and charges it if the call passes. A denied call has status 200 and `success` false, and charges
        nothing. The limit is a sliding window: windows are aligned to the Unix epoch, and the previous window counts in
        proportion to its overlap with the last `duration`. An override of the namespace replaces `limit` and
        `duration`. The headers `RateLimit` and `RateLimit-Policy` carry the result in seconds. The first use of a
        namespace creates it, which also requires `create_namespace`.

        Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.*.create_namespace`

        Args:
            namespace: Name or id of the namespace. A new name creates a namespace.
            identifier: The identifier to count, such as a user id or an address.
            limit: Maximum cost per window.
            duration: Length of the window in milliseconds.
            mode: How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any
                trailing `duration`. Default: "standard".
            shadow: `true`: the limit is counted and reported, and never denies a call. What it would deny, it does
                not count. So you see what a limit would do before it is in force. Default: False.
            cost: Cost of this call. 0: check the limit without charging it. Default: 1.
        """
        return await self._caller.call(_RATELIMITS_LIMIT, {
            "namespace": namespace,
            "identifier": identifier,
            "limit": limit,
            "duration": duration,
            "mode": mode,
            "shadow": shadow,
            "cost": cost,
        }, options)

    async def multi_limit(self, entries: Sequence[MultiLimitInputEntry], *, options: CallOptions | None = None) -> Result[MultiLimitOutput]:
        """Limit several identifiers at once.

        Charges all entries or none: if one entry is denied, no limit is charged, and each result gives the state of its
        limit. Entries with the same identifier, namespace and window add up. Otherwise the same as `ratelimits.limit`.

        Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.*.create_namespace`
        """
        return await self._caller.call(_RATELIMITS_MULTI_LIMIT, entries, options)

    async def delete_namespace(
        self,
        *,
        namespace: str,
        options: CallOptions | None = None,
    ) -> Result[DeleteNamespaceOutput]:
        """Delete a rate limit namespace and its overrides.

        The name can be used again at once: the next call with it creates a new namespace with empty counters.

        Permissions of the root key: `ratelimits.{namespaceId}.delete_namespace`

        Args:
            namespace: Name or id of the namespace.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_RATELIMITS_DELETE_NAMESPACE, {"namespace": namespace}, options)

    async def delete_override(
        self,
        *,
        namespace: str,
        identifier: str,
        options: CallOptions | None = None,
    ) -> Result[DeleteOverrideOutput]:
        """Delete an override.

        The next call uses its own `limit` and `duration` again. The identifier must equal that of the override. An
        identifier that only matches a pattern deletes nothing.

        Permissions of the root key: `ratelimits.{namespaceId}.delete_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: An identifier, or a pattern. In a pattern `*` matches any characters except line feeds.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `data/ratelimit_override_not_found`. Besides the
                errors of every operation.
        """
        return await self._caller.call(_RATELIMITS_DELETE_OVERRIDE, {"namespace": namespace, "identifier": identifier}, options)

    async def explain_limit(
        self,
        *,
        namespace: str,
        identifier: str,
        limit: int,
        duration: int,
        mode: Literal["standard", "strict"] | Unset = UNSET,
        shadow: bool | Unset = UNSET,
        cost: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[ExplainLimitOutput]:
        """Explain a limit.

        Says how `ratelimits.limit` would answer this body now, and why: which override applies, which others match, and
        the counter. It charges nothing, creates no namespace and is not in the analytics.

        Permissions of the root key: `ratelimits.{namespaceId}.limit`, `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: The identifier to count, such as a user id or an address.
            limit: Maximum cost per window.
            duration: Length of the window in milliseconds.
            mode: How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any
                trailing `duration`. Default: "standard".
            shadow: `true`: the limit is counted and reported, and never denies a call. What it would deny, it does
                not count. So you see what a limit would do before it is in force. Default: False.
            cost: Cost of this call. 0: check the limit without charging it. Default: 1.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_RATELIMITS_EXPLAIN_LIMIT, {
            "namespace": namespace,
            "identifier": identifier,
            "limit": limit,
            "duration": duration,
            "mode": mode,
            "shadow": shadow,
            "cost": cost,
        }, options)

    async def get_descriptors(
        self,
        *,
        namespace: str,
        options: CallOptions | None = None,
    ) -> Result[GetDescriptorsOutput]:
        """Get the descriptors of a namespace.

        Returns the tree of limits that Envoy's rate limit service applies in the namespace, without members that say
        nothing. A namespace without a tree has an empty list.

        Permissions of the root key: `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_RATELIMITS_GET_DESCRIPTORS, {"namespace": namespace}, options)

    async def get_override(
        self,
        *,
        namespace: str,
        identifier: str,
        options: CallOptions | None = None,
    ) -> Result[Override]:
        """Get the override of an identifier.

        Returns the override that applies to calls with this identifier: one with the same identifier, or else a
        matching pattern. A pattern as identifier returns the override with this pattern.

        Permissions of the root key: `ratelimits.{namespaceId}.read_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: An identifier, or a pattern. In a pattern `*` matches any characters except line feeds.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `data/ratelimit_override_not_found`. Besides the
                errors of every operation.
        """
        return await self._caller.call(_RATELIMITS_GET_OVERRIDE, {"namespace": namespace, "identifier": identifier}, options)

    async def set_descriptors(
        self,
        *,
        namespace: str,
        descriptors: Sequence[Mapping[str, Any]],
        atomic: bool | Unset = UNSET,
        metadata: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SetDescriptorsOutput]:
        """Set the descriptors of a namespace.

        Replaces the tree of limits that Envoy's rate limit service applies in the namespace, in the form of the
        configuration of envoyproxy/ratelimit. A call's descriptor has the limit of the descriptor of the tree that
        matches all its entries, level by level: the one with the same value, else the first whose value ends with `*`
        and matches, else the one without a value. A limit that the call brings goes first; an override with exactly its
        identifier applies where the tree has no limit. An empty list removes the tree. `ratelimits.limit` does not use
        it.

        Permissions of the root key: `ratelimits.{namespaceId}.set_override`

        Args:
            namespace: Name or id of the namespace.
            descriptors: The tree, as the configuration of envoyproxy/ratelimit writes it. Each descriptor has a
                `key` and may have `value`, `rate_limit` (`requests_per_unit`, `unit`, `unlimited`, `name`, `replaces`),
                `shadow_mode`, `quota_mode`, `share_threshold`, `detailed_metric`, `value_to_metric` and `descriptors`,
                which are the next level. At most 10000 descriptors on 16 levels, of 1 MiB together.
            atomic: Whether a call charges all its descriptors or none. Otherwise each is charged, also when another
                one is over. Default: False.
            metadata: Whether answers have dynamic metadata with the domain, the descriptors and the quotas that are
                over. Default: False.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `application/precondition_failed`. Besides the
                errors of every operation.
        """
        return await self._caller.call(_RATELIMITS_SET_DESCRIPTORS, {
            "namespace": namespace,
            "descriptors": descriptors,
            "atomic": atomic,
            "metadata": metadata,
        }, options)

    async def set_override(
        self,
        *,
        namespace: str,
        identifier: str,
        limit: int,
        duration: int,
        mode: Literal["standard", "strict"] | Unset = UNSET,
        shadow: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SetOverrideOutput]:
        """Set an override.

        The `limit` and `duration` of the override, and its `mode` if it has one, replace those of the next and later
        calls. If several overrides match, the one with the same identifier applies, then the pattern with the most
        literal characters, then the oldest. Setting the same identifier or pattern again updates the override and keeps
        its id. A namespace has at most 10000 overrides, of which at most 100 have more than one `*`.

        Permissions of the root key: `ratelimits.{namespaceId}.set_override`

        Args:
            namespace: Name or id of the namespace.
            identifier: An identifier, or a pattern. In a pattern `*` matches any characters except line feeds. A
                pattern has at most 8 asterisks.
            limit: Maximum cost per window. 0 denies every call.
            duration: Length of the window in milliseconds.
            mode: How the limit counts. Omitted: as the call says.
            shadow: Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the
                call says.

        Raises:
            LatchkeyError: `data/ratelimit_namespace_not_found`, `data/ratelimit_override_limit_reached`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_RATELIMITS_SET_OVERRIDE, {
            "namespace": namespace,
            "identifier": identifier,
            "limit": limit,
            "duration": duration,
            "mode": mode,
            "shadow": shadow,
        }, options)


class AsyncListPortalSessions:
    """The operation `list_portal_sessions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        api_id: str,
        identity: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[PortalSession]]:
        """List the sessions of the portal.

        The sessions of an API that have not ended, ordered by creation time.

        Permissions of the root key: `apis.{apiId}.read_portal_session`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            identity: Only sessions of this identity: its id, or your external id.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.page(_PORTAL_LIST_PORTAL_SESSIONS, {
            "apiId": api_id,
            "identity": identity,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        api_id: str,
        identity: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[PortalSession]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_PORTAL_LIST_PORTAL_SESSIONS, {
            "apiId": api_id,
            "identity": identity,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AsyncPortalOperations:
    """Sessions in which the owners of keys manage their own keys."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_portal_sessions: Final = AsyncListPortalSessions(caller)

    async def create_session(
        self,
        *,
        api_id: str,
        external_id: str | Unset = UNSET,
        identity: str | Unset = UNSET,
        actions: Sequence[Literal["list", "create", "reroll", "rename", "delete", "usage", "left"]] | Unset = UNSET,
        keys: CreateSessionInputKeys | Unset = UNSET,
        page: CreateSessionInputPage | Unset = UNSET,
        expires_in: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateSessionOutput]:
        """Create a session of the portal.

        In a session, the owner of keys manages them: on the page at `url`, or in your own page with the element
        `<latchkey-keys>`. Create one on your server for a user that has signed in there, and send the user to `url`.
        The session reaches only the keys of this owner in this API, and can do no more than its root key. It ends with
        the root key, the API or the owner, and 20 newer sessions of the same owner end it too.

        Permissions of the root key: `apis.{apiId}.create_portal_session`, `apis.{apiId}.read_key`,
        `apis.{apiId}.create_key`, `apis.{apiId}.update_key`, `apis.{apiId}.delete_key`, `apis.{apiId}.read_analytics`,
        `budgets.*.read_budget`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            external_id: Your own identifier of the owner. An identity that does not exist yet is created.
            identity: Instead of `external_id`: the id or external id of an existing identity.
            actions: What the holder of the session may do with the keys: `list` them, `create` new ones, `reroll`,
                `rename` and `delete` them, see their `usage`, and see what is `left` of their credits and budgets. The
                root key needs the permission for each action. Omitted: what the `portal` of the API says.
            keys: Limits on the keys.
            page: How the page looks. A member that is omitted is as the `portal` of the API says.
            expires_in: When the session ends, in milliseconds from now: at most one hour. Default: 900000.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/identity_not_found`, `data/role_not_found`. Besides the
                errors of every operation.
        """
        return await self._caller.call(_PORTAL_CREATE_SESSION, {
            "apiId": api_id,
            "externalId": external_id,
            "identity": identity,
            "actions": actions,
            "keys": keys,
            "page": page,
            "expiresIn": expires_in,
        }, options)

    async def delete_portal_sessions(
        self,
        *,
        api_id: str,
        identity: str | Unset = UNSET,
        session_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeletePortalSessionsOutput]:
        """End sessions of the portal.

        Ends all sessions of an API, those of one identity, or one session: on its node at once, on others within a
        second. A session that has ended already is no error.

        Permissions of the root key: `apis.{apiId}.delete_portal_session`

        Args:
            api_id: Identifier of an API, as create_api gave it.
            identity: Only sessions of this identity: its id, or your external id.
            session_id: Only this session.

        Raises:
            LatchkeyError: `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_PORTAL_DELETE_PORTAL_SESSIONS, {
            "apiId": api_id,
            "identity": identity,
            "sessionId": session_id,
        }, options)


class AsyncListRootKeys:
    """The operation `list_root_keys`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[RootKey]]:
        """List root keys.

        Ordered by creation time. Includes disabled and expired root keys, but not deleted ones. The calling root key
        must be allowed to read every root key on the page.

        Permissions of the root key: `root_keys.{rootKeyId}.read_root_key`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return await self._caller.page(_ROOT_KEYS_LIST_ROOT_KEYS, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[RootKey]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_ROOT_KEYS_LIST_ROOT_KEYS, {"limit": limit, "cursor": cursor, "search": search}, options)


class AsyncListSessions:
    """The operation `list_sessions`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        root_key_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Session]]:
        """List the sessions of the dashboard.

        Ordered by creation time. A session has the permissions of its root key, and ends when the root key is deleted,
        disabled or expires. The calling root key must be allowed to read every root key on the page.

        Permissions of the root key: `root_keys.{rootKeyId}.read_root_key`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            root_key_id: Identifier of a root key; not the root key itself.
        """
        return await self._caller.page(_ROOT_KEYS_LIST_SESSIONS, {"limit": limit, "cursor": cursor, "rootKeyId": root_key_id}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        root_key_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Session]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_ROOT_KEYS_LIST_SESSIONS, {"limit": limit, "cursor": cursor, "rootKeyId": root_key_id}, options)


class AsyncRootKeysOperations:
    """Root keys authenticate programs to this service."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_root_keys: Final = AsyncListRootKeys(caller)
        self.list_sessions: Final = AsyncListSessions(caller)

    async def create_root_key(
        self,
        *,
        name: str,
        permissions: Sequence[str],
        expires: int | Unset = UNSET,
        leak_action: Literal["mark", "disable"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateRootKeyOutput]:
        """Create a root key.

        A root key authenticates a program to this service. Give each program a root key of its own, with only the
        permissions that it needs. The calling root key must have every permission of the new one.

        Permissions of the root key: `root_keys.*.create_root_key`

        Args:
            name: A label for you. End users never see it.
            permissions: Permissions such as `apis.*.create_key`, or `*` for an administrator. Each of the three
                segments may be `*`. The calling root key must have all of them.
            expires: Unix time in milliseconds at which it expires. Omitted: never.
            leak_action: What happens if it is reported as leaked. `mark`, the default: it gets `leaked_at` and
                still works. `disable`: it is disabled too, unless it is the last administrator of its workspace.
        """
        return await self._caller.call(_ROOT_KEYS_CREATE_ROOT_KEY, {
            "name": name,
            "permissions": permissions,
            "expires": expires,
            "leakAction": leak_action,
        }, options)

    async def delete_root_key(
        self,
        *,
        root_key_id: str,
        descendants: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteRootKeyOutput]:
        """Delete a root key.

        The root key stops working at once. The calling root key must have every permission of the deleted ones. The
        last administrator of a workspace and the root key of the service's configuration cannot be deleted. Root keys
        that the deleted one created live on, unless `descendants` is true: after a leak, whoever had it may have
        created some. The calling root key, that of the configuration and those that these created are never deleted as
        descendants, nor are those of other workspaces.

        Permissions of the root key: `root_keys.{rootKeyId}.delete_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            descendants: Whether to delete the root keys that it created too, and those that these created. A call
                deletes up to 200 of them, all or none; repeat it while `deleted_descendants` is 200. It also works
                after the root key itself was deleted.

        Raises:
            LatchkeyError: `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_ROOT_KEYS_DELETE_ROOT_KEY, {"rootKeyId": root_key_id, "descendants": descendants}, options)

    async def delete_sessions(
        self,
        *,
        root_key_id: str,
        session_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[DeleteSessionsOutput]:
        """End sessions of the dashboard.

        Ends all sessions of a root key, or one of them: on its node at once, on others within a second. A session that
        has ended already is no error.

        Permissions of the root key: `root_keys.{rootKeyId}.update_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            session_id: Only this session. Omitted: all sessions of the root key.

        Raises:
            LatchkeyError: `data/root_key_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_ROOT_KEYS_DELETE_SESSIONS, {"rootKeyId": root_key_id, "sessionId": session_id}, options)

    async def reroll_root_key(
        self,
        *,
        root_key_id: str,
        expiration: int,
        options: CallOptions | None = None,
    ) -> Result[RerollRootKeyOutput]:
        """Reroll a root key.

        Creates a root key with the settings of the old one. The old root key expires after `expiration` milliseconds,
        rounded up to a whole minute. With 0 it expires at once. The calling root key must have every permission of the
        old one. The root key of the service's configuration can only be replaced there.

        Permissions of the root key: `root_keys.{rootKeyId}.create_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            expiration: How long the old root key stays valid, in milliseconds.

        Raises:
            LatchkeyError: `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_ROOT_KEYS_REROLL_ROOT_KEY, {"rootKeyId": root_key_id, "expiration": expiration}, options)

    async def update_root_key(
        self,
        *,
        root_key_id: str,
        name: str | Unset = UNSET,
        permissions: Sequence[str] | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        expires: int | None | Unset = UNSET,
        leak_action: Literal["mark", "disable"] | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateRootKeyOutput]:
        """Update a root key.

        Omitted fields do not change. Permissions are replaced as a whole. The calling root key must have every
        permission that this one has before and after the change. The last administrator of a workspace must remain one.
        The root key of the service's configuration can only be changed there.

        Permissions of the root key: `root_keys.{rootKeyId}.update_root_key`

        Args:
            root_key_id: Identifier of a root key; not the root key itself.
            name: A label for you. End users never see it.
            permissions: Permissions such as `apis.*.create_key`, or `*` for an administrator. Each of the three
                segments may be `*`. The calling root key must have all of them.
            enabled: Whether the service accepts it.
            expires: Unix time in milliseconds at which it expires. Null: never.
            leak_action: What happens if it is reported as leaked. `mark`, the default: it gets `leaked_at` and
                still works. `disable`: it is disabled too, unless it is the last administrator of its workspace.

        Raises:
            LatchkeyError: `data/root_key_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_ROOT_KEYS_UPDATE_ROOT_KEY, {
            "rootKeyId": root_key_id,
            "name": name,
            "permissions": permissions,
            "enabled": enabled,
            "expires": expires,
            "leakAction": leak_action,
        }, options)


class AsyncListWorkspaces:
    """The operation `list_workspaces`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Workspace]]:
        """List workspaces.

        Ordered by creation time. Requires a root key of the default workspace.

        Permissions of the root key: `workspaces.*.read_workspace`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
            search: Only entries whose names and ids contain this text, regardless of case. Blank: all.
        """
        return await self._caller.page(_WORKSPACES_LIST_WORKSPACES, {"limit": limit, "cursor": cursor, "search": search}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        search: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Workspace]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_WORKSPACES_LIST_WORKSPACES, {"limit": limit, "cursor": cursor, "search": search}, options)


class AsyncWorkspacesOperations:
    """Isolated tenants of the service. The default workspace manages them."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_workspaces: Final = AsyncListWorkspaces(caller)

    async def create_workspace(
        self,
        *,
        name: str,
        requests_per_minute: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateWorkspaceOutput]:
        """Create a workspace and its administrator root key.

        Workspaces are isolated: for a root key, the resources of other workspaces do not exist. Requires a root key of
        the default workspace. Several workspaces may have the same name.

        Permissions of the root key: `workspaces.*.create_workspace`

        Args:
            name: A label for you. End users never see it.
            requests_per_minute: Maximum number of calls per minute of all its root keys together. 0: none.
        """
        return await self._caller.call(_WORKSPACES_CREATE_WORKSPACE, {"name": name, "requestsPerMinute": requests_per_minute}, options)

    async def update_workspace(
        self,
        *,
        workspace_id: str,
        name: str | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        requests_per_minute: int | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateWorkspaceOutput]:
        """Update a workspace.

        Omitted fields do not change. A disabled workspace rejects calls with its root keys, and none of its keys is
        valid. No data is deleted. `requests_per_minute` counts the calls of all its root keys. Their responses carry
        `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. Requires a root key of the default workspace,
        which cannot lock itself out.

        Permissions of the root key: `workspaces.*.update_workspace`

        Args:
            workspace_id: Identifier of a workspace, as create_workspace gave it.
            name: A label for you. End users never see it.
            requests_per_minute: Maximum number of calls per minute of all its root keys together. 0: none. Null:
                unlimited.

        Raises:
            LatchkeyError: `data/workspace_not_found`, `application/protected_resource`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_WORKSPACES_UPDATE_WORKSPACE, {
            "workspaceId": workspace_id,
            "name": name,
            "enabled": enabled,
            "requestsPerMinute": requests_per_minute,
        }, options)


class AsyncListEvents:
    """The operation `list_events`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        actor: str | Unset = UNSET,
        action: str | Unset = UNSET,
        target: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[AuditEvent]]:
        """List audit events.

        Newest first. New events do not shift later pages. Every change, and every decryption of key strings, is
        recorded in the transaction that makes it. Changes to workspaces are in the audit log of the default workspace.

        Permissions of the root key: `audit.*.read_event`

        Args:
            start: Only events at or after this Unix time in milliseconds.
            end: Only events before this Unix time in milliseconds.
            actor: Only events of this actor: the id of a root key, `cli` or `system`.
            action: Only events of this operation, such as `keys.delete_key`.
            target: Only events that affected this resource: the id of a key, an API, a root key or any other
                resource.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return await self._caller.page(_AUDIT_LIST_EVENTS, {
            "start": start,
            "end": end,
            "actor": actor,
            "action": action,
            "target": target,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        actor: str | Unset = UNSET,
        action: str | Unset = UNSET,
        target: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[AuditEvent]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_AUDIT_LIST_EVENTS, {
            "start": start,
            "end": end,
            "actor": actor,
            "action": action,
            "target": target,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AsyncAuditOperations:
    """The audit log of the workspace."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_events: Final = AsyncListEvents(caller)


class AsyncEventsListEvents:
    """The operation `list_events`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        order: Literal["asc", "desc"] | Unset = UNSET,
        after: str | Unset = UNSET,
        types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | Unset = UNSET,
        object_id: str | Unset = UNSET,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Event]]:
        """List events.

        The oldest first, unless `order` is `desc`. Events are written in the transaction of the change that they
        report: each committed change has its events, and no other has. To follow them without webhooks, call again with
        `after`, the id of the last event that you have: no event is missed, and none comes twice. Events of one object
        are in the order in which they happened. Events are stored for `LATCHKEY_RETENTION_EVENTS`.

        Permissions of the root key: `events.*.read_event`

        Args:
            order: `asc`: the oldest first. `desc`: the newest first. Default: "asc".
            after: Only events after this one: the id of an event.
            types: Only events of these types.
            object_id: Only events of this object: the id of a key, an API, a root key or any other resource.
            start: Only events at or after this Unix time in milliseconds.
            end: Only events before this Unix time in milliseconds.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return await self._caller.page(_EVENTS_LIST_EVENTS, {
            "order": order,
            "after": after,
            "types": types,
            "objectId": object_id,
            "start": start,
            "end": end,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        order: Literal["asc", "desc"] | Unset = UNSET,
        after: str | Unset = UNSET,
        types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | Unset = UNSET,
        object_id: str | Unset = UNSET,
        start: int | Unset = UNSET,
        end: int | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Event]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_EVENTS_LIST_EVENTS, {
            "order": order,
            "after": after,
            "types": types,
            "objectId": object_id,
            "start": start,
            "end": end,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AsyncEventsOperations:
    """What happened in the workspace, for programs that react to it."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_events: Final = AsyncEventsListEvents(caller)


class AsyncListDeliveries:
    """The operation `list_deliveries`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        webhook_id: str,
        status: Literal["pending", "delivered", "dead"] | Unset = UNSET,
        event_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[WebhookDelivery]]:
        """List the deliveries of a webhook.

        Those of the newest events first. With `status` `dead` it is the list of dead letters, which
        `webhooks.redeliver` sends again. Deliveries are stored for `LATCHKEY_RETENTION_EVENTS`.

        Permissions of the root key: `webhooks.{webhookId}.read_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            status: Only deliveries in this state.
            event_id: Only the delivery of this event.
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return await self._caller.page(_WEBHOOKS_LIST_DELIVERIES, {
            "webhookId": webhook_id,
            "status": status,
            "eventId": event_id,
            "limit": limit,
            "cursor": cursor,
        }, options)

    def all(
        self,
        *,
        webhook_id: str,
        status: Literal["pending", "delivered", "dead"] | Unset = UNSET,
        event_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[WebhookDelivery]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_WEBHOOKS_LIST_DELIVERIES, {
            "webhookId": webhook_id,
            "status": status,
            "eventId": event_id,
            "limit": limit,
            "cursor": cursor,
        }, options)


class AsyncListWebhooks:
    """The operation `list_webhooks`: a call returns one page, `all` the entries of all pages."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def __call__(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Page[list[Webhook]]:
        """List webhooks.

        Ordered by creation time. Includes disabled webhooks, but not deleted ones. The root key must be allowed to read
        every webhook on the page.

        Permissions of the root key: `webhooks.{webhookId}.read_webhook`

        Args:
            limit: Maximum number of entries per page. Default: 100.
            cursor: Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page.
        """
        return await self._caller.page(_WEBHOOKS_LIST_WEBHOOKS, {"limit": limit, "cursor": cursor}, options)

    def all(
        self,
        *,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> AsyncIterator[Webhook]:
        """Every entry, from the page of `cursor` on. It gets the next page when the entries of one are used up."""
        return self._caller.all(_WEBHOOKS_LIST_WEBHOOKS, {"limit": limit, "cursor": cursor}, options)


class AsyncWebhooksOperations:
    """Endpoints to which events of the workspace are sent."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.list_deliveries: Final = AsyncListDeliveries(caller)
        self.list_webhooks: Final = AsyncListWebhooks(caller)

    async def create_webhook(
        self,
        *,
        endpoint: str,
        name: str | None | Unset = UNSET,
        event_types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | None | Unset = UNSET,
        api_ids: Sequence[str] | None | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[CreateWebhookOutput]:
        """Create a webhook.

        Events of the workspace are sent to its URL as the Standard Webhooks specification says: each at least once, and
        those of one object in their order. A delivery fails unless the endpoint answers with a status from 200 to 299
        within 15 seconds; redirects are not followed. It is tried again for three days. A workspace can have 50
        webhooks.

        Permissions of the root key: `webhooks.*.create_webhook`, `events.*.read_event`

        Args:
            endpoint: The URL to which events are sent. It must begin with `https://`, and its host must have public
                addresses only, unless the operator allows others.
            name: A label for you.
            event_types: The types of events that it gets. Null or omitted: all.
            api_ids: The APIs of whose keys it gets events, and of which it gets their own events. Events without an
                `api_id`, such as those of root keys, are left out. Null or omitted: all events.

        Raises:
            LatchkeyError: `data/api_not_found`, `data/webhook_limit_reached`, `application/precondition_failed`.
                Besides the errors of every operation.
        """
        return await self._caller.call(_WEBHOOKS_CREATE_WEBHOOK, {
            "endpoint": endpoint,
            "name": name,
            "eventTypes": event_types,
            "apiIds": api_ids,
        }, options)

    async def delete_webhook(
        self,
        *,
        webhook_id: str,
        options: CallOptions | None = None,
    ) -> Result[DeleteWebhookOutput]:
        """Delete a webhook.

        It gets no further requests, and its secret is erased.

        Permissions of the root key: `webhooks.{webhookId}.delete_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_WEBHOOKS_DELETE_WEBHOOK, {"webhookId": webhook_id}, options)

    async def get_webhook(self, *, webhook_id: str, options: CallOptions | None = None) -> Result[Webhook]:
        """Get a webhook.

        Its settings and its state, without its secret.

        Permissions of the root key: `webhooks.{webhookId}.read_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_WEBHOOKS_GET_WEBHOOK, {"webhookId": webhook_id}, options)

    async def redeliver(
        self,
        *,
        webhook_id: str,
        event_id: str | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[RedeliverOutput]:
        """Deliver events to a webhook again.

        Of one event, whatever its state, or of the dead letters of the webhook: the oldest first, up to 1000 in one
        call. They are tried for three days again. Events of one object are sent in their order; the endpoint may have
        later ones already, and recognizes repeated ones by `webhook-id`.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            event_id: The event. Omitted: all dead letters.

        Raises:
            LatchkeyError: `data/webhook_not_found`, `data/webhook_delivery_not_found`,
                `application/precondition_failed`. Besides the errors of every operation.
        """
        return await self._caller.call(_WEBHOOKS_REDELIVER, {"webhookId": webhook_id, "eventId": event_id}, options)

    async def rotate_secret(
        self,
        *,
        webhook_id: str,
        expiration: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[RotateSecretOutput]:
        """Rotate the secret of a webhook.

        Creates a new secret. For `expiration` milliseconds each message has two signatures, one by each secret, so that
        the endpoint can change to the new one at any moment. A secret from an earlier rotation ends at once.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            expiration: How long the former secret signs messages too, in milliseconds. 0: it ends at once. Default:
                86400000.

        Raises:
            LatchkeyError: `data/webhook_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_WEBHOOKS_ROTATE_SECRET, {"webhookId": webhook_id, "expiration": expiration}, options)

    async def send_test(self, *, webhook_id: str, options: CallOptions | None = None) -> Result[SendTestOutput]:
        """Send a test event to a webhook.

        Records an event of the type `webhook.test`, which this webhook gets whatever its filters are.
        `webhooks.list_deliveries` with the `event_id` shows what came of it, usually within a second.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.

        Raises:
            LatchkeyError: `data/webhook_not_found`, `application/precondition_failed`. Besides the errors of every
                operation.
        """
        return await self._caller.call(_WEBHOOKS_SEND_TEST, {"webhookId": webhook_id}, options)

    async def update_webhook(
        self,
        *,
        webhook_id: str,
        endpoint: str | Unset = UNSET,
        name: str | None | Unset = UNSET,
        event_types: Sequence[Literal["key.created", "key.updated", "key.disabled", "key.enabled", "key.deleted", "key.restored", "key.rerolled", "key.derived", "key.expiring", "key.expired", "key.first_used", "key.unused", "keys.imported", "credits.low", "credits.refilled", "plan.created", "plan.updated", "plan.deleted", "budget.created", "budget.updated", "budget.deleted", "budget.refilled", "budget.threshold_reached", "hold.expired", "hold.uncovered", "limit.exceeded", "root_key.created", "root_key.updated", "root_key.disabled", "root_key.enabled", "root_key.deleted", "root_key.leaked", "root_key.rerolled", "identity.created", "identity.updated", "identity.deleted", "role.created", "role.updated", "role.deleted", "permission.created", "permission.updated", "permission.deleted", "api.created", "api.updated", "api.deleted", "namespace.created", "namespace.deleted", "descriptors.set", "override.set", "override.deleted", "workspace.created", "workspace.updated", "quota.near", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.enabled", "webhook.deleted", "webhook.test", "leak.reported", "auth.failures"]] | None | Unset = UNSET,
        api_ids: Sequence[str] | None | Unset = UNSET,
        enabled: bool | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[UpdateWebhookOutput]:
        """Update a webhook.

        Omitted fields do not change. Null removes a value. A webhook that is disabled gets no requests: events that
        happen meanwhile are not sent later, and deliveries that were waiting continue when it is enabled again, at
        once.

        Permissions of the root key: `webhooks.{webhookId}.update_webhook`, `events.*.read_event`

        Args:
            webhook_id: Identifier of a webhook, as create_webhook gave it.
            endpoint: The URL to which events are sent. It must begin with `https://`, and its host must have public
                addresses only, unless the operator allows others.
            name: A label for you.
            event_types: The types of events that it gets. Null or omitted: all.
            api_ids: The APIs of whose keys it gets events, and of which it gets their own events. Events without an
                `api_id`, such as those of root keys, are left out. Null or omitted: all events.
            enabled: Whether it gets events.

        Raises:
            LatchkeyError: `data/webhook_not_found`, `data/api_not_found`. Besides the errors of every operation.
        """
        return await self._caller.call(_WEBHOOKS_UPDATE_WEBHOOK, {
            "webhookId": webhook_id,
            "endpoint": endpoint,
            "name": name,
            "eventTypes": event_types,
            "apiIds": api_ids,
            "enabled": enabled,
        }, options)


class AsyncSystemOperations:
    """The service itself, and what needs attention in the workspace."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get_findings(self, *, options: CallOptions | None = None) -> Result[GetFindingsOutput]:
        """Get what needs attention.

        Keys that expire, have almost no credits, have leaked or do not obey the policy of their API, root keys that
        should be deleted or restricted, and webhooks whose events do not arrive. A member is absent if the root key may
        not read its resources. `system.get_status` returns components that do not work.

        Permissions of the root key: `apis.*.read_key`, `root_keys.*.read_root_key`, `webhooks.*.read_webhook`
        """
        return await self._caller.call(_SYSTEM_GET_FINDINGS, {}, options)

    async def get_status(self, *, options: CallOptions | None = None) -> Result[GetStatusOutput]:
        """Get the status of the service.

        The state of the node that answers. `service`, with version and configuration, is present for root keys of the
        default workspace. No secret is in it.

        Permissions of the root key: `system.*.read_status`
        """
        return await self._caller.call(_SYSTEM_GET_STATUS, {}, options)

    async def list_decisions(
        self,
        *,
        since: int | Unset = UNSET,
        api_id: str | Unset = UNSET,
        key_id: str | Unset = UNSET,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SystemListDecisionsOutput]:
        """List recent decisions.

        A sample of the decisions of the last 10 minutes on the node that answers, the newest first: in each second the
        first decision of each key with each code and set of tags, and of each identifier, at most 20 of a workspace. It
        contains decisions about APIs and namespaces whose analytics the root key may read. A restart empties it. Counts
        are in `analytics.*`.

        Permissions of the root key: `apis.{apiId}.read_analytics`, `ratelimits.{namespaceId}.read_analytics`

        Args:
            since: Only decisions at or after this Unix time in milliseconds. Default: 0.
            api_id: Only verifications of keys of this API.
            key_id: Only verifications of this key.
            limit: Maximum number of decisions. Default: 100.
        """
        return await self._caller.call(_SYSTEM_LIST_DECISIONS, {
            "since": since,
            "apiId": api_id,
            "keyId": key_id,
            "limit": limit,
        }, options)

    async def search(
        self,
        *,
        query: str | Secret,
        limit: int | Unset = UNSET,
        options: CallOptions | None = None,
    ) -> Result[SearchOutput]:
        """Search keys, identities, APIs and everything else.

        Finds keys, identities, APIs, budgets, namespaces of rate limits, webhooks, roles, permissions and root keys of
        the workspace, as far as the root key may read them. Each word of the query must occur in what an object is
        called: in its name, its id, or the description of a role or permission; of a key also in its `start`, in the
        external id of its identity or, if another word occurs in the key, in the name of its API. Words may be in any
        order; case does not matter, and no character is a wildcard. Exact matches come first, then each kind with its
        newest objects first.

        A key string or root key is looked up by its hash. It is neither stored nor logged, and one with a valid
        checksum is not compared with anything else.

        One call examines the newest 100,000 keys and identities, the keys divided among the APIs, and the newest 10,000
        objects of each other kind. Of more than 8 words it compares the longest. An id, an external id, a whole name
        and a key string are found whatever their age. `apis.list_keys` searches all keys of an API, page by page.

        Permissions of the root key: `apis.{apiId}.read_key`, `apis.{apiId}.read_api`,
        `identities.{identityId}.read_identity`, `budgets.{budgetId}.read_budget`, `ratelimits.*.read_namespace`,
        `webhooks.{webhookId}.read_webhook`, `permissions.*.read_role`, `permissions.*.read_permission`,
        `root_keys.{rootKeyId}.read_root_key`

        Args:
            query: Words, an id or a key string. Blank: no results.
            limit: Maximum number of results of each kind, exact matches not counted. Default: 5.
        """
        return await self._caller.call(_SYSTEM_SEARCH, {"query": query, "limit": limit}, options)


class AsyncOperations:
    """The operations of the service, by namespace."""

    def __init__(self, caller: AsyncCaller) -> None:
        self.apis: Final = AsyncApisOperations(caller)
        self.keys: Final = AsyncKeysOperations(caller)
        self.identities: Final = AsyncIdentitiesOperations(caller)
        self.plans: Final = AsyncPlansOperations(caller)
        self.budgets: Final = AsyncBudgetsOperations(caller)
        self.holds: Final = AsyncHoldsOperations(caller)
        self.analytics: Final = AsyncAnalyticsOperations(caller)
        self.permissions: Final = AsyncPermissionsOperations(caller)
        self.ratelimits: Final = AsyncRatelimitsOperations(caller)
        self.portal: Final = AsyncPortalOperations(caller)
        self.root_keys: Final = AsyncRootKeysOperations(caller)
        self.workspaces: Final = AsyncWorkspacesOperations(caller)
        self.audit: Final = AsyncAuditOperations(caller)
        self.events: Final = AsyncEventsOperations(caller)
        self.webhooks: Final = AsyncWebhooksOperations(caller)
        self.system: Final = AsyncSystemOperations(caller)
