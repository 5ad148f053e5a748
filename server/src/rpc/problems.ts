/** One failure that a caller hears about: how it travels and how it is explained. Titles and types. */
export interface ProblemKind {
  readonly status: number;
  /** The path under `/errors/` that names the problem for good. */
  readonly type: string;
  readonly title: string;
  /** What it says when the operation has nothing more precise to say. */
  readonly detail: string;
  /** What it says about the call, for somebody who meets it for the first time. */
  readonly meaning: string;
  /** What usually leads to it, the most frequent first. */
  readonly causes: readonly string[];
  /** What to do about it. */
  readonly remedy: readonly string[];
}

const missing = (what: string) => `${what} does not exist or has been deleted.`;

// Meanings, causes and cures are Markdown with nothing in it but code in backticks.

/** Every problem there is, in the order of their statuses. */
export const problems = {
  invalid_input: {
    status: 400,
    type: "application/invalid_input",
    title: "Bad Request",
    detail: "The request is not valid.",
    meaning: "The request is not what the operation asks for. Nothing was done.",
    causes: [
      "A property is missing, misspelt, too long or of another type. Unknown properties are refused too.",
      "The body is no JSON, or is sent without `Content-Type: application/json`.",
      "The bytes are not UTF-8, or the `Content-Type` header names another charset.",
      "The body holds something that cannot be kept as it was sent: a number with too many digits, `1e400`, half of a surrogate pair, a property named `__proto__`, or the same property twice.",
      "Each property is fine and together they are not: a refill without a balance, for example.",
    ],
    remedy: [
      "Read `error.errors`: each entry names the place in `location`, says what is wrong, and often how to mend it in `fix`.",
      "Compare the body with the operation's examples in the reference.",
    ],
  },
  authentication_malformed: {
    status: 400,
    type: "authentication/malformed",
    title: "Bad Request",
    detail: "The Authorization header must carry a valid root key: `Authorization: Bearer <root key>`.",
    meaning: "There is an `Authorization` header, and it does not have the form in which a root key is sent.",
    causes: [
      "The word `Bearer` is missing, or not followed by a space.",
      "Another scheme is used, such as `Basic`.",
      "The variable that should hold the root key is empty, so that nothing follows `Bearer`.",
    ],
    remedy: ["Send `Authorization: Bearer <root key>`, with one space and without quotation marks."],
  },
  permissions_query_syntax_error: {
    status: 400,
    type: "user/bad_request/permissions_query_syntax_error",
    title: "Bad Request",
    detail: "The permission query cannot be read.",
    meaning: "`permissions` of the verification is no query. The key was not verified.",
    causes: [
      "An operator or an operand is missing: `documents.read AND`.",
      "A parenthesis is not closed, or closed twice.",
      "A slug holds a character that slugs do not have, such as a blank or a comma.",
    ],
    remedy: [
      "Go to the position that `error.detail` names.",
      "Join slugs with `AND` and `OR`, and group them with parentheses: `documents.read AND (admin OR billing.write)`.",
    ],
  },
  request_body_unreadable: {
    status: 400,
    type: "user/bad_request/request_body_unreadable",
    title: "Bad Request",
    detail: "The request body ended before it was complete. Send it again.",
    meaning: "The connection gave less, or more, than the `Content-Length` header announced. Nothing was done.",
    causes: [
      "The connection broke while the body was on its way.",
      "The client, or a proxy in between, changes the body and leaves `Content-Length` as it was.",
    ],
    remedy: [
      "Send the request again.",
      "If it happens every time, let the client's library work out `Content-Length`, in bytes and not in characters.",
    ],
  },
  authentication_missing: {
    status: 401,
    type: "authentication/missing",
    title: "Unauthorized",
    detail: "This operation needs a root key. Send it as `Authorization: Bearer <root key>`.",
    meaning: "The call says nothing about who makes it, and this operation is not for everybody.",
    causes: [
      "The `Authorization` header is missing, or a proxy removed it.",
      "`keys.verifyKey` is called without a root key where the operator asks for one, or with `clientIp`.",
    ],
    remedy: ["Send `Authorization: Bearer <root key>`. A root key is made with `latchkey root-key create`."],
  },
  authentication_failed: {
    status: 401,
    type: "authentication/key_not_found",
    title: "Unauthorized",
    detail: "The provided root key is invalid. We could not find the requested key.",
    meaning: "The root key is none that this service knows.",
    causes: [
      "It was copied incompletely, or with a blank or a line break in it.",
      "It is a root key of another installation: of production, when staging is called.",
      "It is a key that was made with `keys.createKey`. Those are for your users; operations need a root key.",
      "It was deleted.",
    ],
    remedy: [
      "Check which root key the program reads, and from where.",
      "Make a new one with `latchkey root-key create`.",
    ],
  },
  insufficient_permissions: {
    status: 403,
    type: "authorization/insufficient_permissions",
    title: "Insufficient Permissions",
    detail: "The root key does not have the permission that this operation needs.",
    meaning: "The root key is known and valid, and it may not do this.",
    causes: [
      "Its permissions name other actions: `read_key` where `update_key` is needed.",
      "They name another resource: `apis.api_1.update_key` says nothing about `api_2`.",
      "The call makes, changes or deletes a root key that has a permission which the calling one lacks.",
      "Workspaces are managed with root keys of the default workspace, and this one is of another.",
    ],
    remedy: [
      "`error.detail` names the permissions, of which one is enough. Use a root key that has it.",
      "Give a new root key no more than its program needs: a permission for one resource before one for all.",
    ],
  },
  root_key_disabled: {
    status: 403,
    type: "authorization/key_disabled",
    title: "Key is disabled",
    detail: "The root key is disabled.",
    meaning: "The root key is known, and somebody has switched it off.",
    causes: ["An operator disabled it, often because it may have leaked."],
    remedy: ["Ask the operator why. Use another root key, or have this one enabled again."],
  },
  root_key_expired: {
    status: 403,
    type: "authorization/forbidden",
    title: "Forbidden",
    detail: "The root key has expired.",
    meaning: "The root key is known, and the time for which it was made is over.",
    causes: ["It was made with an expiry, and that moment has passed."],
    remedy: ["Make a new one with `latchkey root-key create` and give it to the program."],
  },
  workspace_disabled: {
    status: 403,
    type: "authorization/workspace_disabled",
    title: "Workspace is disabled",
    detail: "The workspace of this root key is disabled. Ask the operator of the service to enable it.",
    meaning: "Nothing in this workspace can be read or changed, and none of its keys passes a verification.",
    causes: ["The operator of the service disabled the workspace."],
    remedy: ["Ask the operator of the service to enable it. Everything in it is as it was."],
  },
  route_not_found: {
    status: 404,
    type: "application/not_found",
    title: "Not Found",
    detail: "There is nothing at this address.",
    meaning: "The service answers, and it has nothing at this path.",
    causes: [
      "The operation is misspelt; capitals count: `keys.verifyKey`, not `keys.verifykey`.",
      "`/v2/` is missing, or there twice because the client's base URL already ends in it.",
      "A proxy in front of the service adds or removes a part of the path.",
    ],
    remedy: ["Compare the path with the reference: every operation is `POST /v2/<namespace>.<operation>`."],
  },
  key_not_found: {
    status: 404,
    type: "data/key_not_found",
    title: "Not Found",
    detail: "The specified key was not found.",
    meaning: "There is no such key, for this caller: what another workspace owns does not exist here.",
    causes: [
      "It was deleted.",
      "The key string was sent where the key's id is expected, or the other way round.",
      "The key belongs to another workspace than the root key.",
      "With `keys.whoami`: the root key may not read keys of this API.",
    ],
    remedy: [
      "Take the `keyId` from the answer of `keys.createKey`, or find it with `apis.listKeys`.",
      "Check that the root key is one of the right workspace.",
    ],
  },
  api_not_found: {
    status: 404,
    type: "data/api_not_found",
    title: "Not Found",
    detail: missing("The requested API"),
    meaning: "There is no such API, for this caller: what another workspace owns does not exist here.",
    causes: [
      "It was deleted, and all of its keys with it.",
      "The API belongs to another workspace than the root key.",
      "With `keys.createKey` and `apis.listKeys`: the root key lacks a permission for this API, and is not told more.",
    ],
    remedy: [
      "Take the `apiId` from the answer of `apis.createApi`.",
      "Check the root key's workspace and its permissions for this API.",
    ],
  },
  root_key_not_found: {
    status: 404,
    type: "data/root_key_not_found",
    title: "Not Found",
    detail: missing("The root key"),
    meaning: "There is no such root key, for this caller: what another workspace owns does not exist here.",
    causes: [
      "It was deleted.",
      "The root key itself was sent where its id is expected. Ids begin with `rk_`.",
      "It belongs to another workspace than the root key of the call.",
    ],
    remedy: ["Find its `rootKeyId` with `rootKeys.listRootKeys`."],
  },
  workspace_not_found: {
    status: 404,
    type: "data/workspace_not_found",
    title: "Not Found",
    detail: missing("The workspace"),
    meaning: "There is no workspace with this id.",
    causes: ["The id is misspelt; capitals count.", "It is a workspace of another installation."],
    remedy: ["Find its `workspaceId` with `workspaces.listWorkspaces`."],
  },
  role_not_found: {
    status: 404,
    type: "data/role_not_found",
    title: "Not Found",
    detail: missing("The role"),
    meaning: "A role that the call names does not exist. Nothing was changed, not even in part.",
    causes: [
      "The name is misspelt.",
      "The role was deleted.",
      "An id was sent where only the name is expected, as with `keys.addRoles`.",
      "The role belongs to another workspace than the root key.",
    ],
    remedy: [
      "Find it with `permissions.listRoles`, or create it with `permissions.createRole`.",
      "Or leave it out: permissions are created where they are missing, roles are not.",
    ],
  },
  permission_not_found: {
    status: 404,
    type: "data/permission_not_found",
    title: "Not Found",
    detail: missing("The permission"),
    meaning: "A permission that the call names does not exist. Nothing was changed, not even in part.",
    causes: [
      "The slug is misspelt.",
      "The permission was deleted.",
      "With `keys.removePermissions`: an id was sent where the slug is expected.",
      "The permission belongs to another workspace than the root key.",
    ],
    remedy: ["Find it with `permissions.listPermissions`, or create it with `permissions.createPermission`."],
  },
  identity_not_found: {
    status: 404,
    type: "data/identity_not_found",
    title: "Not Found",
    detail: "This identity does not exist.",
    meaning: "There is no such identity, for this caller: what another workspace owns does not exist here.",
    causes: [
      "Neither an id nor an external id of that spelling exists; capitals count.",
      "It was deleted. Its external id may have been used again since, with a new id.",
      "The identity belongs to another workspace than the root key.",
    ],
    remedy: [
      "Find it with `identities.listIdentities`, or make it with `identities.createIdentity`.",
      "Check that the root key is one of the right workspace.",
    ],
  },
  namespace_not_found: {
    status: 404,
    type: "data/ratelimit_namespace_not_found",
    title: "Not Found",
    detail: "This namespace does not exist.",
    meaning: "There is no such rate limit namespace, for this caller: what another workspace owns does not exist here.",
    causes: [
      "Nothing was counted in it yet: the first `ratelimits.limit` makes a namespace, overrides do not.",
      "The name is spelt differently; capitals, blanks and control characters count.",
      "It was deleted, with its overrides.",
    ],
    remedy: ["Compare the name with `ratelimits.listNamespaces`.", "Count in it once, then set the override."],
  },
  override_not_found: {
    status: 404,
    type: "data/ratelimit_override_not_found",
    title: "Not Found",
    detail: "This override does not exist.",
    meaning: "The namespace is there, and it has no such override.",
    causes: [
      "With `ratelimits.getOverride`: no pattern matches the identifier, or the root key may not read overrides here.",
      "With `ratelimits.deleteOverride`: an identifier was sent that only matches a pattern. The pattern itself is needed.",
      "It was deleted.",
    ],
    remedy: ["Take the `identifier` of the override from `ratelimits.listOverrides`, to the letter."],
  },
  method_not_allowed: {
    status: 405,
    type: "application/method_not_allowed",
    title: "Method Not Allowed",
    detail: "This address does not answer to this method.",
    meaning: "The address is right, the HTTP method is not.",
    causes: ["An operation is called with `GET`, or opened in a browser. Operations answer to `POST` only."],
    remedy: ["Use a method that the header `Allow` of the answer names."],
  },
  request_timeout: {
    status: 408,
    type: "user/bad_request/request_timeout",
    title: "Request Timeout",
    detail: "The request did not arrive in time. Send it again.",
    meaning: "The request began and did not become complete in the time that the service waits. Nothing was done.",
    causes: [
      "The network is slow, or the connection was left open without sending the rest.",
      "The client announces more in `Content-Length` than it sends.",
    ],
    remedy: ["Send the request again, on a new connection."],
  },
  identity_already_exists: {
    status: 409,
    type: "data/identity_already_exists",
    title: "Conflicting Resource",
    detail: "An identity with this external id already exists.",
    meaning: "Two identities of one workspace cannot have the same external id. Nothing was changed.",
    causes: [
      "The same request was sent twice.",
      "The identity came into being with a key: `keys.createKey` and `keys.updateKey` make the one that they name.",
    ],
    remedy: ["Change the one that is there with `identities.updateIdentity`."],
  },
  permission_already_exists: {
    status: 409,
    type: "data/permission_already_exists",
    title: "Conflicting Resource",
    detail: "A permission with this slug already exists.",
    meaning: "Two permissions of one workspace cannot have the same slug. Nothing was changed.",
    causes: [
      "The same request was sent twice.",
      "The slug is there with other capitals, which do not make it another one.",
      "The permission came into being with a key or a role: slugs that these name are created where they are missing.",
    ],
    remedy: ["Use the one that is there: `permissions.getPermission` finds it by its slug."],
  },
  role_already_exists: {
    status: 409,
    type: "data/role_already_exists",
    title: "Conflicting Resource",
    detail: "A role with this name already exists.",
    meaning: "Two roles of one workspace cannot have the same name. Nothing was changed.",
    causes: [
      "The same request was sent twice.",
      "The name is there with other capitals, which do not make it another one.",
    ],
    remedy: [
      "Use the one that is there: `permissions.getRole` finds it by its name.",
      "Change what it gives with `permissions.setRolePermissions`.",
    ],
  },
  override_limit_reached: {
    status: 409,
    type: "data/ratelimit_override_limit_reached",
    title: "Conflicting Resource",
    detail: "The namespace has as many overrides as it may have.",
    meaning:
      "Every decision in a namespace looks through its overrides, so their number is bounded: 10,000, and 100 patterns " +
      "with more than one `*`. The override was not set.",
    causes: [
      "An override is set for each of many users, where one pattern would do.",
      "Overrides of users who left are never deleted.",
    ],
    remedy: [
      "Replace many overrides by one pattern with one `*`, such as `customer_*`.",
      "Delete what is not needed with `ratelimits.deleteOverride`, or begin another namespace.",
    ],
  },
  precondition_failed: {
    status: 412,
    type: "application/precondition_failed",
    title: "Precondition Failed",
    detail: "Something that this operation builds on is not there.",
    meaning: "The call is fine, and something outside of it has to be in place first. Nothing was changed.",
    causes: ["A recoverable key is created or decrypted, and the service has no master key for its vault."],
    remedy: ["`error.detail` names what is missing. Have it set up, then send the same request again."],
  },
  idempotency_mismatch: {
    status: 422,
    type: "application/idempotency_mismatch",
    title: "Unprocessable Entity",
    detail: "This Idempotency-Key was used for a call with another body.",
    meaning:
      "An Idempotency-Key stands for one call. This one stands for a call with another body, so nothing was done.",
    causes: [
      "The same key is sent with different calls.",
      "A call was changed between its first attempt and its repetition.",
    ],
    remedy: ["Send a fresh key with each new call, and repeat a call exactly as it was sent first."],
  },
  idempotency_in_progress: {
    status: 409,
    type: "application/idempotency_in_progress",
    title: "Conflicting Resource",
    detail: "A call with this Idempotency-Key is still under way.",
    meaning: "The first attempt of this call has not ended yet, so it is not known what to answer to its repetition.",
    causes: ["A client gave up on a call too early and repeated it.", "Two processes share an Idempotency-Key."],
    remedy: ["Wait a moment, then repeat the call with the same key: it will be told what came of the first attempt."],
  },
  protected_resource: {
    status: 412,
    type: "application/protected_resource",
    title: "Resource is protected",
    detail: "The resource is protected against this change.",
    meaning: "The resource is protected, so that nobody loses it, or access to it, by mistake. It is as it was.",
    causes: [
      "The API has delete protection.",
      "The root key is the last administrator of its workspace, and would not be one any more.",
      "The root key is given by the service's configuration, which is the truth about it.",
      "The default workspace would shut out those who manage the service.",
    ],
    remedy: [
      "An API: make sure that it is the right one. Then set `deleteProtection` to false with `apis.updateApi`.",
      "The last administrator: make another one first, with the permission `*` and without an expiry.",
      "A root key of the configuration: change the configuration.",
    ],
  },
  request_body_too_large: {
    status: 413,
    type: "user/bad_request/request_body_too_large",
    title: "Request Entity Too Large",
    detail: "The request body is too large.",
    meaning: "The body is longer than this operation takes. It was not read to its end, and nothing was done.",
    causes: ["`meta` holds more than it is meant for.", "Many changes were put into one request."],
    remedy: [
      "`error.detail` names the most that is allowed. Split the request.",
      "Keep large data in your own database and only its id in `meta`.",
    ],
  },
  unsupported_content_encoding: {
    status: 415,
    type: "application/unsupported_content_encoding",
    title: "Unsupported Media Type",
    detail: "Compressed request bodies are not supported. Send the body without the Content-Encoding header.",
    meaning:
      "The header `Content-Encoding` says that the body is compressed, and operations take it as it is. Nothing was done.",
    causes: ["The client, or a proxy in front of the service, compresses requests."],
    remedy: ["Switch the compression of requests off. Bodies are small: at most 64 KiB on metered operations."],
  },
  expectation_failed: {
    status: 417,
    type: "application/expectation_failed",
    title: "Expectation Failed",
    detail: "The only value of the Expect header that is supported is `100-continue`.",
    meaning: "The header `Expect` asks for something that the service does not do. Nothing was done.",
    causes: ["The client, or a proxy in front of the service, sends `Expect` with a value of its own."],
    remedy: ["Leave the header `Expect` out."],
  },
  workspace_busy: {
    status: 429,
    type: "application/workspace_busy",
    title: "Too Many Requests",
    detail: "Too many calls of this workspace are waiting for the database. Nothing was done. Try again shortly.",
    meaning:
      "Calls that read or change the database wait in one line per workspace, so that none delays the others. The " +
      "line of this workspace is full. Nothing was done.",
    causes: ["A program makes hundreds of changes at the same time.", "The database is slower than usual."],
    remedy: [
      "Wait as many seconds as the header `Retry-After` says, then repeat the call.",
      "Make fewer calls at the same time: 20 are enough to keep the service busy.",
    ],
  },
  workspace_quota_exceeded: {
    status: 429,
    type: "application/workspace_quota_exceeded",
    title: "Too Many Requests",
    detail: "This workspace has as many records of this kind as it may have. Nothing was done.",
    meaning:
      "A workspace may have so many keys, so many rate limit namespaces, and so many remembered calls with an " +
      "`Idempotency-Key`. `error.detail` says which of them it is. Nothing was done, and nothing was charged.",
    causes: [
      "Keys or namespaces are made for every request or every visitor instead of once.",
      "A program sends an `Idempotency-Key` with calls that need none, such as every verification.",
      "The workspace has outgrown the bound that the operator of the service set.",
    ],
    remedy: [
      "Delete keys and namespaces that nobody uses. Remembered calls are forgotten after a day.",
      "Use one namespace for a kind of thing, and tell visitors apart by the identifier.",
      "Ask the operator of the service for a higher bound; the settings are in its documentation.",
    ],
  },
  too_many_counters: {
    status: 429,
    type: "application/too_many_counters",
    title: "Too Many Requests",
    detail:
      "This workspace counts more things at the same time than its share of the memory allows. Nothing was charged.",
    meaning:
      "Each thing that is limited has a counter, which takes memory until two of its windows have passed. The memory is " +
      "shared among workspaces. Counters that exist go on; this call needs a new one. Nothing was charged.",
    causes: [
      "A program limits by an identifier that is new in each call, such as a request id.",
      "Long windows with many identifiers.",
      "The memory for counters is small for what the workspaces do.",
    ],
    remedy: [
      "Wait as many seconds as the header `Retry-After` says, then repeat the call: counters end with their windows.",
      "Use shorter windows, or fewer identifiers.",
      "The operator can raise `LATCHKEY_COUNTER_BYTES`.",
    ],
  },
  workspace_rate_limited: {
    status: 429,
    type: "user/too_many_requests/workspace_rate_limited",
    title: "Too Many Requests",
    detail: "This workspace has made all the requests that it may make in a minute.",
    meaning: "All root keys of a workspace together may make so many requests in a minute. This one was not looked at.",
    causes: [
      "A program calls more often than it was meant to, perhaps in a loop.",
      "The workspace has outgrown the limit that the operator of the service set for it.",
      "The limit is 0: the operator stopped the workspace.",
    ],
    remedy: [
      "Wait as many seconds as the header `Retry-After` says. `RateLimit-Remaining` tells beforehand how many are left.",
      "Ask the operator of the service for a higher limit; it is set with `workspaces.updateWorkspace`.",
    ],
  },
  request_headers_too_large: {
    status: 431,
    type: "application/request_headers_too_large",
    title: "Request Header Fields Too Large",
    detail: "The headers of the request are too large: at most 16 KiB together.",
    meaning: "The address and the headers are longer than the service reads. Nothing was done.",
    causes: [
      "A cookie or a token that belongs to another service is sent along.",
      "A proxy adds a header again and again.",
    ],
    remedy: ["Send only the headers that an operation needs: `Authorization`, `Content-Type`, `Idempotency-Key`."],
  },
  unexpected_error: {
    status: 500,
    type: "application/unexpected_error",
    title: "Internal Server Error",
    detail: "Something went wrong on our side. Send the request id along when you report it.",
    meaning: "The service has a fault. It is not about the request, and it is in the service's log.",
    causes: ["A bug."],
    remedy: [
      "Give the operator `meta.requestId`: the log has an entry with the same id.",
      "Look before you repeat a change: it may or may not have been made.",
    ],
  },
  service_unavailable: {
    status: 503,
    type: "application/service_unavailable",
    title: "Service Unavailable",
    detail: "The service cannot answer this right now; nothing was changed. Try again shortly.",
    meaning: "The service runs, and something that it needs for this call does not answer.",
    causes: [
      "The database cannot be reached. Keys that the service knows are still verified for a while.",
      "The service is starting, stopping or overloaded.",
    ],
    remedy: [
      "Wait as many seconds as the header `Retry-After` says, then send the same request again.",
      "If it lasts, the operator finds the reason at `/health/ready` and in the log.",
    ],
  },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof problems;

/** Every operation may answer with these; an operation lists what it adds. */
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
  "service_unavailable",
] as const satisfies readonly ProblemCode[];

/** What an operation may answer to a call that carries an Idempotency-Key. */
export const idempotencyProblems = [
  "idempotency_mismatch",
  "idempotency_in_progress",
] as const satisfies readonly ProblemCode[];

/** One thing that is wrong with an input. */
export interface InputError {
  /** Where, as a path into the operation's schema: `/properties/name/maxLength`. */
  location: string;
  message: string;
  /** What would cure it. */
  fix?: string;
}

/** A problem on its way to the caller. Thrown by handlers, turned into a response in one place. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly InputError[];
  /** Headers that belong to the answer, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string = problems[code].detail,
    extra: { errors?: readonly InputError[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail);
    this.name = "Problem";
    this.code = code;
    this.errors = extra.errors ?? [];
    this.headers = extra.headers ?? {};
  }
}

/** A problem as it travels between threads. */
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
