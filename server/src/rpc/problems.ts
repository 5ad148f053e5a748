/** One failure that a caller hears about: how it travels. Titles and types are contract B0.1 and A7. */
interface ProblemKind {
  readonly status: number;
  /** The path under `/errors/` that names the problem for good. */
  readonly type: string;
  readonly title: string;
  /** What it says when the operation has nothing more precise to say. */
  readonly detail: string;
}

const kind = (status: number, type: string, title: string, detail: string): ProblemKind => ({
  status,
  type,
  title,
  detail,
});

const missing = (what: string) => `${what} does not exist or has been deleted.`;

/** Every problem there is. */
export const problems = {
  invalid_input: kind(400, "application/invalid_input", "Bad Request", "The request is not valid."),
  authentication_malformed: kind(
    400,
    "authentication/malformed",
    "Bad Request",
    "The Authorization header must carry a valid root key: `Authorization: Bearer <root key>`.",
  ),
  permissions_query_syntax_error: kind(
    400,
    "user/bad_request/permissions_query_syntax_error",
    "Bad Request",
    "The permission query cannot be read.",
  ),
  request_body_unreadable: kind(
    400,
    "user/bad_request/request_body_unreadable",
    "Bad Request",
    "The request body ended before it was complete. Send it again.",
  ),
  authentication_missing: kind(
    401,
    "authentication/missing",
    "Unauthorized",
    "This operation needs a root key. Send it as `Authorization: Bearer <root key>`.",
  ),
  authentication_failed: kind(
    401,
    "authentication/key_not_found",
    "Unauthorized",
    "The provided root key is invalid. We could not find the requested key.",
  ),
  insufficient_permissions: kind(
    403,
    "authorization/insufficient_permissions",
    "Insufficient Permissions",
    "The root key does not have the permission that this operation needs.",
  ),
  root_key_disabled: kind(403, "authorization/key_disabled", "Key is disabled", "The root key is disabled."),
  root_key_expired: kind(403, "authorization/forbidden", "Forbidden", "The root key has expired."),
  workspace_disabled: kind(
    403,
    "authorization/workspace_disabled",
    "Workspace is disabled",
    "The workspace of this root key is disabled. Ask the operator of the service to enable it.",
  ),
  route_not_found: kind(404, "application/not_found", "Not Found", "There is nothing at this address."),
  key_not_found: kind(404, "data/key_not_found", "Not Found", "The specified key was not found."),
  api_not_found: kind(404, "data/api_not_found", "Not Found", missing("The requested API")),
  role_not_found: kind(404, "data/role_not_found", "Not Found", missing("The role")),
  method_not_allowed: kind(
    405,
    "application/method_not_allowed",
    "Method Not Allowed",
    "This address does not answer to this method.",
  ),
  request_timeout: kind(
    408,
    "user/bad_request/request_timeout",
    "Request Timeout",
    "The request did not arrive in time. Send it again.",
  ),
  precondition_failed: kind(
    412,
    "application/precondition_failed",
    "Precondition Failed",
    "Something that this operation builds on is not there.",
  ),
  protected_resource: kind(
    412,
    "application/protected_resource",
    "Resource is protected",
    "The resource is protected against deletion.",
  ),
  request_body_too_large: kind(
    413,
    "user/bad_request/request_body_too_large",
    "Request Entity Too Large",
    "The request body is too large.",
  ),
  unexpected_error: kind(
    500,
    "application/unexpected_error",
    "Internal Server Error",
    "Something went wrong on our side. Send the request id along when you report it.",
  ),
  service_unavailable: kind(
    503,
    "application/service_unavailable",
    "Service Unavailable",
    "The service cannot answer this right now; nothing was changed. Try again shortly.",
  ),
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
  "unexpected_error",
  "service_unavailable",
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
}

export function plainProblem(problem: Problem): PlainProblem {
  return { code: problem.code, detail: problem.message, errors: problem.errors };
}

export function problemFrom(plain: PlainProblem): Problem {
  return new Problem(plain.code, plain.detail, { errors: plain.errors });
}
