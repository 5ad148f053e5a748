import type { VerifyKeyOutput } from "./operations.ts";

/** Why a request is rejected: the code of the verification, or that there was none. */
export type RejectionCode =
  | Exclude<VerifyKeyOutput["code"], "VALID">
  /** The request has no key. */
  | "MISSING"
  /** The key is there twice, or cannot be a key. */
  | "MALFORMED"
  /** The service did not decide: it is unreachable, or the middleware is configured wrongly. */
  | "UNDECIDED";

/** The answer to a request that does not reach the handler. */
export interface RejectionAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A text, or an object that is sent as JSON. Default: `{ meta, error }`, as the service answers. */
  readonly body: unknown;
}

/** The same, with its reason. */
export interface Rejection extends RejectionAnswer {
  readonly code: RejectionCode;
}

const TITLES: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  402: "Payment Required",
  403: "Forbidden",
  429: "Too Many Requests",
  503: "Service Unavailable",
};

const STATUSES: Readonly<Record<RejectionCode, number>> = {
  MISSING: 401,
  MALFORMED: 401,
  NOT_FOUND: 401,
  EXPIRED: 401,
  DISABLED: 401,
  USAGE_EXCEEDED: 402,
  FORBIDDEN: 403,
  INSUFFICIENT_PERMISSIONS: 403,
  RATE_LIMITED: 429,
  UNDECIDED: 503,
};

/** The sentences for the codes of a verification. */
export const DETAILS = {
  NOT_FOUND: "The API key is not valid.",
  EXPIRED: "The API key has expired.",
  DISABLED: "The API key is disabled.",
  FORBIDDEN: "The API key may not be used here.",
  INSUFFICIENT_PERMISSIONS: "The API key lacks a permission.",
  USAGE_EXCEEDED: "The API key has too few credits.",
  RATE_LIMITED: "The API key has reached a limit.",
} as const;

/** The answer for a code. `/auth/verify` of the service answers in the same way. */
export function rejectionOf(
  code: RejectionCode,
  detail: string,
  requestId?: string,
  headers?: Record<string, string>,
): Rejection {
  const status = STATUSES[code];
  return {
    code,
    status,
    headers: {
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      "X-Latchkey-Code": code,
      ...headers,
    },
    body: {
      meta: requestId === undefined ? {} : { requestId },
      error: { title: TITLES[status], detail, status, type: "about:blank", code },
    },
  };
}

/** The body as it is sent. */
export function textOf({ body }: RejectionAnswer): string {
  return typeof body === "string" ? body : JSON.stringify(body);
}

/** `WWW-Authenticate` for a key in a header, or elsewhere (undefined), with the error of RFC 6750, section 3.1. */
export function challenge(header: string | undefined, error?: string): Record<string, string> {
  const isBearer = header?.toLowerCase() === "authorization";
  const place = header === undefined || isBearer ? "" : `, header="${header}"`;
  const reason = error === undefined ? "" : `, error="${error}"`;
  return { "WWW-Authenticate": `${isBearer ? "Bearer" : "ApiKey"} realm="api"${place}${reason}` };
}

/** `Retry-After` in whole seconds, at least 1. Nothing without a time. */
export function retryAfter(milliseconds: number | undefined): Record<string, string> {
  return milliseconds === undefined ? {} : { "Retry-After": String(Math.max(1, Math.ceil(milliseconds / 1_000))) };
}
