import { ROOT_KEY_PREFIX } from "../../../../engine/src/rules/key-string.ts";

/** One kind of error that a call can return, and its explanation. */
export interface ProblemKind {
  readonly status: number;
  /** The path under `/errors/` that identifies the problem. It never changes. */
  readonly type: string;
  readonly title: string;
  /** The detail if the operation gives no more specific one. */
  readonly detail: string;
  /** What the error means, for a reader without context. */
  readonly meaning: string;
  /** Usual causes, the most frequent first. */
  readonly causes: readonly string[];
  /** How to fix it. */
  readonly remedy: readonly string[];
}

const missing = (what: string) => `${what} does not exist or has been deleted.`;

// Meanings, causes and remedies are Markdown. The only markup is code in backticks.

/** All problems, ordered by status. */
export const problems = {
  invalid_input: {
    status: 400,
    type: "application/invalid_input",
    title: "Bad Request",
    detail: "The request is not valid.",
    meaning: "The request does not match the schema of the operation. Nothing was changed.",
    causes: [
      "A property is missing, misspelled, too long or of the wrong type. Unknown properties are rejected too.",
      "The body is not JSON, or the header `Content-Type: application/json` is missing.",
      "The body is not UTF-8, or the `Content-Type` header names another charset.",
      "The body contains a value that cannot be stored unchanged: a number with too many digits, `1e400`, an unpaired surrogate, a property named `__proto__`, or a duplicate property.",
      "Each property is valid but the combination is not, such as a refill without a balance.",
    ],
    remedy: [
      "Read `error.errors`. Each entry has a `location` and a `message`, and often a `fix`.",
      "Compare the body with the examples of the operation in the API reference.",
    ],
  },
  authentication_malformed: {
    status: 400,
    type: "authentication/malformed",
    title: "Bad Request",
    detail: "The Authorization header must carry a valid root key: `Authorization: Bearer <root key>`.",
    meaning: "The `Authorization` header is not of the form `Bearer <root key>`.",
    causes: [
      "The word `Bearer` is missing, or not followed by a space.",
      "The header uses another scheme, such as `Basic`.",
      "The variable with the root key is empty, so nothing follows `Bearer`.",
    ],
    remedy: ["Send `Authorization: Bearer <root key>`, with one space and without quotation marks."],
  },
  permissions_query_syntax_error: {
    status: 400,
    type: "user/bad_request/permissions_query_syntax_error",
    title: "Bad Request",
    detail: "The permission query cannot be read.",
    meaning: "The value of `permissions` is not a valid permission query. The key was not verified.",
    causes: [
      "An operator or an operand is missing: `documents.read AND`.",
      "A parenthesis is not closed, or closed twice.",
      "A slug contains an invalid character, such as a blank or a comma.",
    ],
    remedy: [
      "Check the query at the position in `error.detail`.",
      "Join slugs with `AND` and `OR`, and group them with parentheses: `documents.read AND (admin OR billing.write)`.",
    ],
  },
  hold_required: {
    status: 400,
    type: "user/bad_request/hold_required",
    title: "Bad Request",
    detail:
      "The key or its identity limits how many calls run at once, so a verification must take a slot: send `hold`, and settle " +
      "or release the hold when the work has ended.",
    meaning:
      "The key or its identity has `concurrency`. A verification without `hold` would not be counted, so it is refused. Nothing " +
      "was charged.",
    causes: [
      "The limit was added before the program that verifies the key makes holds.",
      "The key is verified by something that cannot make holds: `/auth/verify`, or a call without a root key.",
    ],
    remedy: [
      "Send `hold` with a `ttl`, and call `holds.settleHold` or `holds.releaseHold` when the work has ended. The middleware of the clients does both.",
      "Or remove `concurrency` with `keys.updateKey` or `identities.updateIdentity`.",
    ],
  },
  request_body_unreadable: {
    status: 400,
    type: "user/bad_request/request_body_unreadable",
    title: "Bad Request",
    detail: "The request body ended before it was complete. Send it again.",
    meaning: "The length of the body differs from the `Content-Length` header. Nothing was changed.",
    causes: [
      "The connection broke while the body was sent.",
      "The client or a proxy changes the body but not `Content-Length`.",
    ],
    remedy: [
      "Send the request again.",
      "If it happens every time, let the HTTP library of the client compute `Content-Length`. It counts bytes, not characters.",
    ],
  },
  authentication_missing: {
    status: 401,
    type: "authentication/missing",
    title: "Unauthorized",
    detail: "This operation needs a root key. Send it as `Authorization: Bearer <root key>`.",
    meaning: "The call has no root key, and this operation requires one.",
    causes: [
      "The `Authorization` header is missing, or a proxy removes it.",
      "`keys.verifyKey` is called without a root key, but the operator requires one, or the call has a field that requires one, such as `clientIp`.",
    ],
    remedy: ["Send `Authorization: Bearer <root key>`. `latchkey root-key create` creates a root key."],
  },
  authentication_failed: {
    status: 401,
    type: "authentication/key_not_found",
    title: "Unauthorized",
    // Clients compare the text.
    detail: "The provided root key is invalid. We could not find the requested key.",
    meaning: "The root key does not exist in this service.",
    causes: [
      "It was copied incompletely, or with a blank or a line break.",
      "It belongs to another installation, such as production instead of staging.",
      `It is a key from \`keys.createKey\`. Those keys are for your users. Operations require a root key; those that the service made begin with \`${ROOT_KEY_PREFIX}_\`.`,
      "It was deleted.",
    ],
    remedy: [
      "Check which root key the program uses, and where it reads it.",
      "Create a new one with `latchkey root-key create`.",
    ],
  },
  insufficient_permissions: {
    status: 403,
    type: "authorization/insufficient_permissions",
    title: "Insufficient Permissions",
    detail: "The root key does not have the permission that this operation needs.",
    meaning: "The root key is valid, but it lacks a permission that this call requires.",
    causes: [
      "Its permissions are for other actions, such as `read_key` instead of `update_key`.",
      "Its permissions are for another resource: `apis.api_1.update_key` does not apply to `api_2`.",
      "The call creates, updates or deletes a root key with a permission that the calling root key lacks.",
      "The call manages workspaces, which requires a root key of the default workspace.",
    ],
    remedy: [
      "Use a root key with one of the permissions in `error.detail`.",
      "Give a new root key only the permissions that its program needs. Prefer a permission for one resource to one for all.",
    ],
  },
  cross_origin_request: {
    status: 403,
    type: "authorization/cross_origin_request",
    title: "Forbidden",
    detail: "A page of another origin made this request. The dashboard accepts requests of its own pages only.",
    meaning: "The request uses a session of the dashboard, but a page of the dashboard did not make it.",
    causes: [
      "Another web site tried to act in the name of the signed-in user.",
      "A program called `/dashboard/…`. Programs call `/v2/…` with a root key.",
      "A proxy in front of the service changes the `Host` header.",
    ],
    remedy: [
      "Open the dashboard at the address of the service.",
      "Let the proxy pass on `Host`, or set `LATCHKEY_PUBLIC_URL` to the address that browsers use.",
    ],
  },
  root_key_disabled: {
    status: 403,
    type: "authorization/key_disabled",
    title: "Key is disabled",
    detail: "The root key is disabled.",
    meaning: "The root key exists, but it is disabled.",
    causes: ["It was disabled, often because it may have leaked."],
    remedy: ["Use another root key, or ask an administrator of the workspace to enable this one."],
  },
  root_key_expired: {
    status: 403,
    type: "authorization/forbidden",
    title: "Forbidden",
    detail: "The root key has expired.",
    meaning: "The root key exists, but its expiry has passed.",
    causes: ["It was created with an expiry, or replaced by a reroll."],
    remedy: ["Create a new one with `latchkey root-key create`, and configure the program to use it."],
  },
  workspace_disabled: {
    status: 403,
    type: "authorization/workspace_disabled",
    title: "Workspace is disabled",
    detail: "The workspace of this root key is disabled. Ask the operator of the service to enable it.",
    meaning: "No resource of this workspace can be read or changed, and none of its keys is valid.",
    causes: ["The operator of the service disabled the workspace."],
    remedy: ["Ask the operator of the service to enable it. No data of the workspace was deleted."],
  },
  route_not_found: {
    status: 404,
    type: "application/not_found",
    title: "Not Found",
    detail: "There is nothing at this address.",
    meaning: "The service has no resource at this path.",
    causes: [
      "The operation is misspelled. Names are case-sensitive: `keys.verifyKey`, not `keys.verifykey`.",
      "`/v2/` is missing, or occurs twice because the base URL of the client ends in it.",
      "A proxy in front of the service adds or removes a part of the path.",
    ],
    remedy: ["Compare the path with the API reference. Every operation is `POST /v2/<namespace>.<operation>`."],
  },
  key_not_found: {
    status: 404,
    type: "data/key_not_found",
    title: "Not Found",
    detail: "The specified key was not found.",
    meaning: "The key does not exist in the workspace of the root key.",
    causes: [
      "It was deleted.",
      "The call has the key string instead of the key id, or the other way round.",
      "The key belongs to another workspace.",
      "With `keys.whoami`: the root key may not read keys of this API.",
    ],
    remedy: [
      "Use the `keyId` from the response of `keys.createKey`, or find it with `apis.listKeys`.",
      "Check that the root key belongs to the right workspace.",
    ],
  },
  api_not_found: {
    status: 404,
    type: "data/api_not_found",
    title: "Not Found",
    detail: missing("The requested API"),
    meaning: "The API does not exist in the workspace of the root key.",
    causes: [
      "It was deleted, together with its keys.",
      "The API belongs to another workspace.",
      "With `keys.createKey` and `apis.listKeys`: the root key lacks a permission for this API.",
    ],
    remedy: [
      "Use the `apiId` from the response of `apis.createApi`.",
      "Check the workspace and the permissions of the root key.",
    ],
  },
  root_key_not_found: {
    status: 404,
    type: "data/root_key_not_found",
    title: "Not Found",
    detail: missing("The root key"),
    meaning: "The root key in the request does not exist in the workspace of the calling root key.",
    causes: [
      "It was deleted.",
      "The call has the root key itself instead of its id. Ids begin with `rk_`.",
      "It belongs to another workspace.",
    ],
    remedy: ["Find its `rootKeyId` with `rootKeys.listRootKeys`."],
  },
  webhook_not_found: {
    status: 404,
    type: "data/webhook_not_found",
    title: "Not Found",
    detail: missing("The webhook"),
    meaning: "The webhook in the request does not exist in the workspace of the root key.",
    causes: ["It was deleted.", "It belongs to another workspace.", "The id is misspelled. Ids begin with `wh_`."],
    remedy: ["Find its `webhookId` with `webhooks.listWebhooks`."],
  },
  delivery_not_found: {
    status: 404,
    type: "data/webhook_delivery_not_found",
    title: "Not Found",
    detail: "The webhook has no delivery of this event.",
    meaning: "The event was not delivered to this webhook, so it cannot be delivered again.",
    causes: [
      "The event is older than the webhook, or its type or API is not among those of the webhook.",
      "The webhook was disabled when the event happened.",
      "The event is older than the retention of events.",
    ],
    remedy: ["Find the deliveries with `webhooks.listDeliveries`, and the event with `events.listEvents`."],
  },
  workspace_not_found: {
    status: 404,
    type: "data/workspace_not_found",
    title: "Not Found",
    detail: missing("The workspace"),
    meaning: "No workspace has this id.",
    causes: ["The id is misspelled. Ids are case-sensitive.", "The workspace belongs to another installation."],
    remedy: ["Find its `workspaceId` with `workspaces.listWorkspaces`."],
  },
  role_not_found: {
    status: 404,
    type: "data/role_not_found",
    title: "Not Found",
    detail: missing("The role"),
    meaning: "A role in the request does not exist. Nothing was changed.",
    causes: [
      "The name is misspelled.",
      "The role was deleted.",
      "The call has an id, but the operation accepts only names, as `keys.addRoles` does.",
      "The role belongs to another workspace.",
    ],
    remedy: [
      "Find it with `permissions.listRoles`, or create it with `permissions.createRole`.",
      "Remove it from the request. Missing permissions are created, but missing roles are not.",
    ],
  },
  permission_not_found: {
    status: 404,
    type: "data/permission_not_found",
    title: "Not Found",
    detail: missing("The permission"),
    meaning: "A permission in the request does not exist. Nothing was changed.",
    causes: [
      "The slug is misspelled.",
      "The permission was deleted.",
      "With `keys.removePermissions`: the call has an id instead of a slug.",
      "The permission belongs to another workspace.",
    ],
    remedy: ["Find it with `permissions.listPermissions`, or create it with `permissions.createPermission`."],
  },
  identity_not_found: {
    status: 404,
    type: "data/identity_not_found",
    title: "Not Found",
    detail: "This identity does not exist.",
    meaning: "The identity does not exist in the workspace of the root key.",
    causes: [
      "The id or external id is misspelled. Both are case-sensitive.",
      "It was deleted. An identity that was created later with the same external id has a new id.",
      "The identity belongs to another workspace.",
    ],
    remedy: [
      "Find it with `identities.listIdentities`, or create it with `identities.createIdentity`.",
      "Check that the root key belongs to the right workspace.",
    ],
  },
  namespace_not_found: {
    status: 404,
    type: "data/ratelimit_namespace_not_found",
    title: "Not Found",
    detail: "This namespace does not exist.",
    meaning: "The rate limit namespace does not exist in the workspace of the root key.",
    causes: [
      "It was never used. The first `ratelimits.limit` creates a namespace; setting an override does not.",
      "The name is misspelled. Case, blanks and control characters matter.",
      "It was deleted, together with its overrides.",
    ],
    remedy: [
      "Compare the name with `ratelimits.listNamespaces`.",
      "Call `ratelimits.limit` once, then set the override.",
    ],
  },
  budget_not_found: {
    status: 404,
    type: "data/budget_not_found",
    title: "Not Found",
    detail: missing("This budget"),
    meaning: "The workspace has no budget with this id. Nothing was changed.",
    causes: ["It was deleted.", "The id is that of another workspace, or of another kind of object."],
    remedy: ["Compare the id with `budgets.listBudgets`."],
  },
  plan_not_found: {
    status: 404,
    type: "data/plan_not_found",
    title: "Not Found",
    detail: missing("This plan"),
    meaning: "The workspace has no plan with this name or id. Nothing was changed.",
    causes: ["It was deleted.", "The name is misspelled. Names are compared with regard to case."],
    remedy: ["Compare the name with `plans.listPlans`.", "Create the plan first, with `plans.createPlan`."],
  },
  hold_not_found: {
    status: 404,
    type: "data/hold_not_found",
    title: "Not Found",
    detail: "This hold does not exist, or not any more.",
    meaning: "The workspace has no hold with this id. Nothing was charged.",
    causes: [
      "It expired some time ago: a settled or released hold stays for an hour after its expiry, an expired one for a day.",
      "The id is that of another workspace, or of another kind of object.",
    ],
    remedy: ["Use `hold.holdId` of the verification, and settle before the hold expires, or soon after."],
  },
  override_not_found: {
    status: 404,
    type: "data/ratelimit_override_not_found",
    title: "Not Found",
    detail: "This override does not exist.",
    meaning: "The namespace exists, but the override does not.",
    causes: [
      "With `ratelimits.getOverride`: no override applies to the identifier, or the root key may not read overrides of this namespace.",
      "With `ratelimits.deleteOverride`: the identifier only matches a pattern. Send the pattern itself.",
      "It was deleted.",
    ],
    remedy: ["Use the exact `identifier` of the override from `ratelimits.listOverrides`."],
  },
  method_not_allowed: {
    status: 405,
    type: "application/method_not_allowed",
    title: "Method Not Allowed",
    detail: "This address does not answer to this method.",
    meaning: "The address exists, but it does not support this HTTP method.",
    causes: ["An operation was called with `GET`, or opened in a browser. Operations support only `POST`."],
    remedy: ["Use a method from the `Allow` header of the response."],
  },
  request_timeout: {
    status: 408,
    type: "user/bad_request/request_timeout",
    title: "Request Timeout",
    detail: "The request did not arrive in time. Send it again.",
    meaning: "The request was not complete before the timeout of the service. Nothing was changed.",
    causes: [
      "The network is slow, or the client stopped sending.",
      "The client sends fewer bytes than `Content-Length` says.",
    ],
    remedy: ["Send the request again, on a new connection."],
  },
  key_not_deleted: {
    status: 409,
    type: "data/key_not_deleted",
    title: "Conflicting Resource",
    detail: "The key is not deleted.",
    meaning: "Only a deleted key can be restored. Nothing was changed.",
    causes: ["The same request was sent twice.", "Somebody else restored the key before."],
    remedy: ["Use the key. `keys.getKey` returns its state: it can be disabled or expired."],
  },
  identity_already_exists: {
    status: 409,
    type: "data/identity_already_exists",
    title: "Conflicting Resource",
    detail: "An identity with this external id already exists.",
    meaning: "Two identities of one workspace cannot have the same external id. Nothing was changed.",
    causes: [
      "The same request was sent twice.",
      "The identity was created together with a key: `keys.createKey` and `keys.updateKey` create missing identities.",
    ],
    remedy: ["Update the existing identity with `identities.updateIdentity`."],
  },
  permission_already_exists: {
    status: 409,
    type: "data/permission_already_exists",
    title: "Conflicting Resource",
    detail: "A permission with this slug already exists.",
    meaning: "Two permissions of one workspace cannot have the same slug. Nothing was changed.",
    causes: [
      "The same request was sent twice.",
      "The slug exists with different case. Slugs are unique regardless of case.",
      "The permission was created together with a key or a role, which create missing permissions.",
    ],
    remedy: ["Use the existing permission. `permissions.getPermission` finds it by its slug."],
  },
  hold_closed: {
    status: 409,
    type: "data/hold_closed",
    title: "Conflicting Resource",
    detail: "The hold has ended in another way.",
    meaning:
      "A hold ends once: it is settled, released, or expires. Only an expired hold can still be settled. Nothing was charged.",
    causes: [
      "It was settled before, with other amounts. The same amounts get the same answer again.",
      "It was released before, or expired.",
    ],
    remedy: [
      "Read its state with `holds.getHold`.",
      "Extend holds of long calls with `holds.extendHold` before they expire.",
    ],
  },
  budget_in_use: {
    status: 409,
    type: "data/budget_in_use",
    title: "Conflicting Resource",
    detail: "Keys, identities, other budgets or open holds use this budget.",
    meaning: "A budget that is in use cannot be deleted: what uses it would have no cap. Nothing was changed.",
    causes: [
      "Keys or identities have its `budgetId`.",
      "Other budgets have it as their parent.",
      "Holds of calls in progress have taken credits from it.",
    ],
    remedy: [
      "Give its keys and identities another budget, or none, with `keys.updateKey` and `identities.updateIdentity`.",
      "Delete its children first: `budgets.listBudgets` lists them by `parentId`.",
    ],
  },
  plan_in_use: {
    status: 409,
    type: "data/plan_in_use",
    title: "Conflicting Resource",
    detail: "Keys or identities have this plan.",
    meaning: "A plan that is in use cannot be deleted: what has it would have no limits. Nothing was changed.",
    causes: ["Keys have it as their `plan`.", "Identities have it as their `plan`."],
    remedy: [
      "Give them another plan, or none, with `keys.updateKey` and `identities.updateIdentity`.",
      "`apis.listKeys` and `identities.listIdentities` list them by `plan`.",
    ],
  },
  plan_already_exists: {
    status: 409,
    type: "data/plan_already_exists",
    title: "Conflicting Resource",
    detail: "A plan with this name already exists.",
    meaning: "Two plans of one workspace cannot have the same name. Nothing was changed.",
    causes: ["The same request was sent twice."],
    remedy: ["Use the existing plan, and change it with `plans.updatePlan`."],
  },
  role_already_exists: {
    status: 409,
    type: "data/role_already_exists",
    title: "Conflicting Resource",
    detail: "A role with this name already exists.",
    meaning: "Two roles of one workspace cannot have the same name. Nothing was changed.",
    causes: [
      "The same request was sent twice.",
      "The name exists with different case. Names are unique regardless of case.",
    ],
    remedy: [
      "Use the existing role. `permissions.getRole` finds it by its name.",
      "Change its permissions with `permissions.setRolePermissions`.",
    ],
  },
  override_limit_reached: {
    status: 409,
    type: "data/ratelimit_override_limit_reached",
    title: "Conflicting Resource",
    detail: "The namespace has the maximum number of overrides.",
    meaning:
      "Every decision in a namespace searches its overrides, so their number is limited: 10,000 overrides, and 100 " +
      "patterns with more than one `*`. The override was not set.",
    causes: [
      "Each of many users has an override of its own where one pattern is enough.",
      "Overrides of former users are not deleted.",
    ],
    remedy: [
      "Replace many overrides by one pattern with one `*`, such as `customer_*`.",
      "Delete unused overrides with `ratelimits.deleteOverride`, or use another namespace.",
    ],
  },
  webhook_limit_reached: {
    status: 409,
    type: "data/webhook_limit_reached",
    title: "Conflicting Resource",
    detail: "The workspace has the maximum number of webhooks, 50.",
    meaning: "Every event is compared with every webhook of its workspace, so their number is limited to 50.",
    causes: ["Each of many users has a webhook of its own.", "Webhooks that nobody needs are not deleted."],
    remedy: [
      "Delete unused webhooks with `webhooks.deleteWebhook`.",
      "Let one endpoint distribute the events, or read them with `events.listEvents`.",
    ],
  },
  precondition_failed: {
    status: 412,
    type: "application/precondition_failed",
    title: "Precondition Failed",
    detail: "A precondition of this operation is not met.",
    meaning: "The request is valid, but a precondition outside of it is not met. Nothing was changed.",
    causes: [
      "The call creates or decrypts a recoverable key, or creates the secret of a webhook, but the service has no master key for its vault.",
      "The call sends something to a webhook that is disabled.",
      "The settlement of a hold names a limit that its verification did not charge.",
      "The call stores a refill, a budget or a hold that an earlier release, which still runs on a node, would misread.",
    ],
    remedy: ["`error.detail` names the precondition. Meet it, then send the same request again."],
  },
  maximum_reached: {
    status: 412,
    type: "application/maximum_reached",
    title: "Precondition Failed",
    detail: "There are as many as there can be.",
    meaning: "The owner of keys has as many as the session of the portal allows. Nothing was changed.",
    causes: [
      "The owner has `keys.max` keys of the API that have not expired. It was set with `portal.createSession`, or is 10.",
      "The owner replaces a key that stays valid for a while, and has more keys than the maximum already.",
    ],
    remedy: [
      "Owner: delete a key that is not used, or let the old key end at once.",
      "Operator: make sessions with a higher `keys.max`.",
    ],
  },
  misdirected_request: {
    status: 421,
    type: "application/misdirected_request",
    title: "Misdirected Request",
    detail: "The dashboard and the portal are at another host name.",
    meaning:
      "The `Host` header names another host than `LATCHKEY_PUBLIC_URL`. The dashboard and the portal answer under that name, `localhost` and IP addresses only, so that no other site can pass for them. Operations at `/v2/…` and health checks answer under every name.",
    causes: [
      "The address in the browser is not the public address of the service.",
      "A proxy in front of the service changes the `Host` header.",
      "Another web site made its name lead to this service (DNS rebinding).",
    ],
    remedy: [
      "Open the address in `LATCHKEY_PUBLIC_URL`.",
      "Let the proxy pass on `Host`, such as with `proxy_set_header Host $host` in nginx.",
    ],
  },
  idempotency_mismatch: {
    status: 422,
    type: "application/idempotency_mismatch",
    title: "Unprocessable Entity",
    detail: "This Idempotency-Key was used for a call with another body.",
    meaning:
      "An Idempotency-Key identifies one call. This one identifies a call with another body. Nothing was changed.",
    causes: [
      "The client sends the same Idempotency-Key with different calls.",
      "The body changed between the first attempt and the retry.",
    ],
    remedy: ["Send a new Idempotency-Key with each new call, and retry a call with the same body."],
  },
  idempotency_in_progress: {
    status: 409,
    type: "application/idempotency_in_progress",
    title: "Conflicting Resource",
    detail: "A call with this Idempotency-Key is still in progress.",
    meaning: "The first attempt of this call has no result yet, so the service cannot answer the retry.",
    causes: ["The client timed out too early and retried the call.", "Two processes share an Idempotency-Key."],
    remedy: [
      "Wait a moment, then retry with the same Idempotency-Key. The response is then that of the first attempt.",
    ],
  },
  protected_resource: {
    status: 412,
    type: "application/protected_resource",
    title: "Resource is protected",
    detail: "The resource is protected against this change.",
    meaning: "The resource is protected against accidental loss, of itself or of access to it. Nothing was changed.",
    causes: [
      "The API has delete protection.",
      "The call would remove the last administrator of the workspace.",
      "The root key comes from the service's configuration.",
      "The call would lock out the default workspace, which manages the service.",
    ],
    remedy: [
      "API: make sure that it is the right one. Then set `deleteProtection` to false with `apis.updateApi`.",
      "Last administrator: first create another one, with the permission `*` and without an expiry.",
      "Root key of the configuration: change the configuration.",
    ],
  },
  request_body_too_large: {
    status: 413,
    type: "user/bad_request/request_body_too_large",
    title: "Request Entity Too Large",
    detail: "The request body is too large.",
    meaning: "The body exceeds the maximum size of this operation. Nothing was changed.",
    causes: ["`meta` is too large.", "The request contains too many changes."],
    remedy: [
      "Split the request. `error.detail` contains the maximum size.",
      "Store large data in your own database, and only its id in `meta`.",
    ],
  },
  unsupported_content_encoding: {
    status: 415,
    type: "application/unsupported_content_encoding",
    title: "Unsupported Media Type",
    detail: "Compressed request bodies are not supported. Send the body without the Content-Encoding header.",
    meaning:
      "The header `Content-Encoding` says that the body is compressed. Operations accept only uncompressed bodies. Nothing was changed.",
    causes: ["The client or a proxy compresses requests."],
    remedy: ["Disable the compression of requests. Bodies are small: at most 64 KiB on metered operations."],
  },
  expectation_failed: {
    status: 417,
    type: "application/expectation_failed",
    title: "Expectation Failed",
    detail: "The only value of the Expect header that is supported is `100-continue`.",
    meaning: "The service does not support the value of the `Expect` header. Nothing was changed.",
    causes: ["The client or a proxy sends another value in the `Expect` header."],
    remedy: ["Remove the `Expect` header."],
  },
  workspace_busy: {
    status: 429,
    type: "application/workspace_busy",
    title: "Too Many Requests",
    detail: "Too many calls of this workspace are waiting for the database. Nothing was done. Try again shortly.",
    meaning:
      "Each workspace has a queue of calls that wait for the database, so that no workspace delays the others. The queue " +
      "of this workspace is full. Nothing was changed.",
    causes: ["A program makes hundreds of changes at the same time.", "The database is slower than usual."],
    remedy: [
      "Wait for the number of seconds in the `Retry-After` header, then retry.",
      "Send fewer calls at the same time. 20 concurrent calls are enough for full throughput.",
    ],
  },
  workspace_quota_exceeded: {
    status: 429,
    type: "application/workspace_quota_exceeded",
    title: "Too Many Requests",
    detail: "This workspace has its maximum number of records of this kind. Nothing was done.",
    meaning:
      "A workspace has a maximum number of keys, APIs, identities, permissions, roles, root keys, rate limit namespaces, " +
      "overrides, sessions of the portal, open holds, stored calls with an `Idempotency-Key`, and bytes that its changes store. `error.detail` names the one that was " +
      "reached, and its setting. Nothing was changed or charged.",
    causes: [
      "A program creates keys, identities or namespaces for every request or every visitor.",
      "A program sends an `Idempotency-Key` with calls that do not need one, such as every verification.",
      "The workspace has outgrown its quota.",
    ],
    remedy: [
      "Delete what is not used, and settle or release holds. Sessions of the portal are deleted when they end, stored calls after a day, " +
        "entries of the audit log and events after their retention.",
      "Use one namespace per kind of limit, and an identifier per visitor.",
      "Ask the operator of the service for a higher quota. It is a setting of the service.",
    ],
  },
  too_many_counters: {
    status: 429,
    type: "application/too_many_counters",
    title: "Too Many Requests",
    detail:
      "This workspace counts more things at the same time than its share of the memory allows. Nothing was charged.",
    meaning:
      "Each limited identifier has a counter, which uses memory for two windows. Workspaces share the memory. Existing " +
      "counters still work, but this call needs a new one. Nothing was charged.",
    causes: [
      "A program uses a new identifier in each call, such as a request id.",
      "The windows are long and there are many identifiers.",
      "The memory for counters is too small for the load.",
    ],
    remedy: [
      "Wait for the number of seconds in the `Retry-After` header, then retry. Counters expire with their windows.",
      "Use shorter windows, or fewer identifiers.",
      "Ask the operator to raise `LATCHKEY_COUNTER_BYTES`.",
    ],
  },
  workspace_rate_limited: {
    status: 429,
    type: "user/too_many_requests/workspace_rate_limited",
    title: "Too Many Requests",
    detail: "This workspace has reached its limit of requests per minute.",
    meaning:
      "A workspace has a maximum number of requests per minute, for all its root keys together. This request was not processed.",
    causes: [
      "A program calls too often, perhaps in a loop.",
      "The workspace has outgrown its limit.",
      "The limit is 0: the operator stopped the workspace.",
    ],
    remedy: [
      "Wait for the number of seconds in the `Retry-After` header. `RateLimit-Remaining` contains the remaining requests.",
      "Ask the operator of the service for a higher limit. `workspaces.updateWorkspace` sets it.",
    ],
  },
  request_headers_too_large: {
    status: 431,
    type: "application/request_headers_too_large",
    title: "Request Header Fields Too Large",
    detail: "The headers of the request are too large: at most 16 KiB together.",
    meaning: "The address and the headers exceed the maximum size. Nothing was changed.",
    causes: ["The client sends a cookie or a token of another service.", "A proxy adds the same header repeatedly."],
    remedy: ["Send only the headers that operations use: `Authorization`, `Content-Type`, `Idempotency-Key`."],
  },
  unexpected_error: {
    status: 500,
    type: "application/unexpected_error",
    title: "Internal Server Error",
    detail: "Something went wrong on our side. Send the request id along when you report it.",
    meaning: "The service has a bug. The log of the service has the details.",
    causes: ["A bug."],
    remedy: [
      "Give the operator `meta.requestId`: the log has an entry with the same id.",
      "Before you retry a change, check whether it was made.",
    ],
  },
  lookups_exhausted: {
    status: 503,
    type: "application/lookups_exhausted",
    title: "Service Unavailable",
    detail: "Too many unknown keys are being looked up at the moment; nothing was charged. Try again shortly.",
    meaning:
      "The key, root key or session is not cached, and unknown ones from the same workspace or address have used up its " +
      "look-ups of this second.",
    causes: [
      "Somebody tries invented keys.",
      "A program calls again and again with a key that does not exist any more.",
    ],
    remedy: [
      "Wait for the number of seconds in the `Retry-After` header, then retry.",
      "Do not accept the key: a caller who sends many unknown keys can cause this answer.",
    ],
  },
  service_unavailable: {
    status: 503,
    type: "application/service_unavailable",
    title: "Service Unavailable",
    detail: "The service cannot answer this right now; nothing was changed. Try again shortly.",
    meaning: "The service runs, but a dependency that it needs for this call is unavailable.",
    causes: [
      "The database is unavailable. Cached keys can still be verified for a while.",
      "The service is starting, stopping or overloaded.",
      "The call needs the vault, and the node lacks the master key to which the vault was changed: the detail says so.",
    ],
    remedy: [
      "Wait for the number of seconds in the `Retry-After` header, then retry.",
      "If the error persists, the operator finds the reason at `/health/ready` and in the log.",
    ],
  },
} as const satisfies Record<string, ProblemKind>;

/** Every status of an answer, once. */
export const answerStatuses: readonly number[] = [200, ...new Set(Object.values(problems).map(({ status }) => status))];

export type ProblemCode = keyof typeof problems;

/** Problems of every operation. An operation declares only its additional ones. */
export const commonProblems = [
  "invalid_input",
  "authentication_malformed",
  "authentication_missing",
  "authentication_failed",
  "insufficient_permissions",
  "root_key_disabled",
  "root_key_expired",
  "workspace_disabled",
  "request_body_unreadable",
  "request_timeout",
  "request_body_too_large",
  "unsupported_content_encoding",
  "workspace_rate_limited",
  "workspace_busy",
  "workspace_quota_exceeded",
  "too_many_counters",
  "unexpected_error",
  "lookups_exhausted",
  "service_unavailable",
] as const satisfies readonly ProblemCode[];

/** Problems of a call with an Idempotency-Key. */
export const idempotencyProblems = [
  "idempotency_mismatch",
  "idempotency_in_progress",
] as const satisfies readonly ProblemCode[];

/** One error in an input. */
export interface InputError {
  /** Path in the schema of the operation: `/properties/name/maxLength`. */
  location: string;
  message: string;
  /** How to fix it. */
  fix?: string;
}

/** An error for the caller. Handlers throw it, and the server turns it into a response in one place. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly InputError[];
  /** Headers of the response, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The workspace of the root key that was refused, which callers are not told. */
  readonly workspaceId: string | undefined;

  constructor(
    code: ProblemCode,
    detail: string = problems[code].detail,
    extra: {
      errors?: readonly InputError[];
      headers?: Readonly<Record<string, string>>;
      workspaceId?: string | undefined;
    } = {},
  ) {
    super(detail);
    this.name = "Problem";
    this.code = code;
    this.errors = extra.errors ?? [];
    this.headers = extra.headers ?? {};
    this.workspaceId = extra.workspaceId;
  }
}

const codesByType: ReadonlyMap<string, ProblemCode> = new Map(
  Object.entries(problems).map(([code, { type }]) => [type, code as ProblemCode]),
);

/** The code of a problem by its type in an answer of the API; undefined: this release does not know it. */
export function problemCodeOf(type: string): ProblemCode | undefined {
  return codesByType.get(type.slice(type.indexOf(ERRORS_PATH) + ERRORS_PATH.length));
}

const ERRORS_PATH = "/errors/";

/** A problem as a plain object, for messages between threads. */
export interface PlainProblem {
  code: ProblemCode;
  detail: string;
  errors: readonly InputError[];
  headers: Readonly<Record<string, string>>;
}

export function plainProblem(problem: Problem): PlainProblem {
  return { code: problem.code, detail: problem.message, errors: problem.errors, headers: problem.headers };
}

export function problemFrom(plain: PlainProblem): Problem {
  return new Problem(plain.code, plain.detail, { errors: plain.errors, headers: plain.headers });
}
