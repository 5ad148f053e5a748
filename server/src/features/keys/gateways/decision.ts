import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { VerificationCode } from "../../../../../engine/src/verification/request.ts";
import { type LimitField, limitHeaders } from "../../../platform/rpc/limit-fields.ts";
import { Problem, problems } from "../../../platform/rpc/problems.ts";
import type { VerifyKeyAnswer } from "../verifyKey.ts";
import { type KeyMistake, type KeyPlace, misconfigured, type ParameterPlace } from "./parameters.ts";

/** Longer metadata is left out: proxies read the headers of an answer into buffers of 4 to 16 KiB. */
export const META_LENGTH_MAX = 2_048;

/** The answer for each code. */
const ANSWERS: Record<VerificationCode, { status: number; title: string; detail: string }> = {
  VALID: { status: 200, title: "OK", detail: "" },
  NOT_FOUND: { status: 401, title: "Unauthorized", detail: "The API key is not valid." },
  EXPIRED: { status: 401, title: "Unauthorized", detail: "The API key has expired." },
  DISABLED: { status: 401, title: "Unauthorized", detail: "The API key is disabled." },
  FORBIDDEN: { status: 403, title: "Forbidden", detail: "The API key may not be used here." },
  INSUFFICIENT_PERMISSIONS: { status: 403, title: "Forbidden", detail: "The API key lacks a permission." },
  USAGE_EXCEEDED: { status: 402, title: "Payment Required", detail: "The API key has too few credits." },
  RATE_LIMITED: { status: 429, title: "Too Many Requests", detail: "The API key has reached a limit." },
};

/** The answer for a key whose calls need a hold. */
const HOLD_REQUIRED = {
  ...ANSWERS.FORBIDDEN,
  code: "HOLD_REQUIRED",
  detail: "The API key may not be used here: it limits how many calls run at once.",
};

/** The answer when the service cannot decide. */
const UNDECIDED = {
  status: 503,
  title: "Service Unavailable",
  code: "UNDECIDED",
  detail: "The API key cannot be verified right now. Try again shortly.",
};

/** What a proxy does with a request: passes it on with the headers of the owner, or answers it. */
export interface Decision {
  /** 200: it passes. */
  readonly status: number;
  /** Of a request that passes: what the application reads. Each is always there, an unknown one is empty. */
  readonly owner: Readonly<Record<string, string>>;
  /** Headers of the answer to the end user. */
  readonly headers: Readonly<Record<string, string>>;
  /** The `error` of the answer to the end user; undefined if the request passes. */
  readonly error: object | undefined;
}

/** Turns the answer of a verification into a decision. */
export function decide(data: VerifyKeyAnswer, place: KeyPlace, now: Instant): Decision {
  const limits = limitHeaders(fieldsOf(data), now);
  if (!data.valid) {
    const answer = rejection({ ...ANSWERS[data.code], code: data.code }, place, "invalid_token");
    const { retryAfter } = data;
    const isLimited = data.code === "RATE_LIMITED" && retryAfter !== undefined;
    const retry = isLimited ? { "Retry-After": String(Math.max(1, Math.ceil(retryAfter / 1_000))) } : {};
    return { ...answer, headers: { ...answer.headers, ...limits, ...retry } };
  }
  const { keyId = "", identity, credits, derived } = data;
  const meta = encoded(JSON.stringify(data.meta ?? {}));
  const derivedMeta = derived ? encoded(JSON.stringify(derived.meta)) : "";
  // Each is always there: some proxies would otherwise pass on the end user's, or the name of a variable.
  const owner = {
    "X-Latchkey-Code": data.code,
    "X-Latchkey-Key-Id": keyId,
    "X-Latchkey-Owner": identity ? encoded(identity.externalId) : "",
    "X-Latchkey-Meta": meta.length <= META_LENGTH_MAX ? meta : "",
    "X-Latchkey-Parent-Key-Id": derived?.parentKeyId ?? "",
    "X-Latchkey-Derived-Meta": derivedMeta.length <= META_LENGTH_MAX ? derivedMeta : "",
    "X-Latchkey-Remaining": credits === undefined ? "" : String(credits),
  };
  return { status: 200, owner, headers: limits, error: undefined };
}

/** The decision on a request without a key that could be verified. */
export function rejectMistake({ code, detail, error }: KeyMistake, place: KeyPlace): Decision {
  return rejection({ code, detail, status: 401, title: "Unauthorized" }, place, error);
}

/** The decision when the service cannot decide. */
export function undecided(retryAfterSeconds: string): Decision {
  const { code, ...answer } = UNDECIDED;
  const error = { ...answer, type: "about:blank", code };
  return {
    status: answer.status,
    owner: {},
    headers: { "X-Latchkey-Code": code, "Retry-After": retryAfterSeconds },
    error,
  };
}

/** The problem of a verification that was not made. */
export interface FailedVerification {
  readonly status: number;
  readonly type: string;
  readonly detail: string;
  readonly errors?: readonly { location: string; message: string }[] | undefined;
}

/**
 * What follows when a verification was not made: a rejection if its key cannot be verified at a proxy, a problem if the proxy must
 * be configured differently, and undefined if the service cannot decide.
 *
 * @param rootKeyPlace where the proxy sends its root key.
 */
export function judgeFailure(
  { status, type, detail, errors = [] }: FailedVerification,
  keyPlace: KeyPlace,
  place: ParameterPlace,
  rootKeyPlace: string,
): Decision | Problem | undefined {
  // No proxy says when a request has ended, so a slot would stay taken.
  if (type.endsWith(problems.hold_required.type)) return rejection(HOLD_REQUIRED, keyPlace);
  if (type.endsWith(problems.authentication_missing.type)) {
    const why = "because of LATCHKEY_VERIFY_AUTH=required, or for a limit of its own";
    return new Problem("invalid_input", `The proxy needs a root key, in ${rootKeyPlace}, ${why}.`);
  }
  const isCredential = type.endsWith(problems.authentication_malformed.type);
  switch (isCredential ? 401 : status) {
    case 400: {
      const [first] = errors;
      const [parameter, { field = "" } = {}] =
        Object.entries(place.known).find(
          ([, { field }]) => field && first?.location.startsWith(`/properties/${field}`),
        ) ?? [];
      if (!parameter || !first) return misconfigured(place, "query", detail);
      // `keyspaces[0] must be …`: the proxy knows the parameter by another name.
      const named = first.message.startsWith(field) ? first.message.replace(/^\S+ /, "") : first.message;
      return misconfigured(place, parameter, named);
    }
    case 401:
    case 403:
      return new Problem("invalid_input", `The root key of the proxy, in ${rootKeyPlace}: ${detail}`);
    case 412:
      return misconfigured(place, "limit", detail);
    default:
      return undefined;
  }
}

function rejection(
  { code, detail, status, title }: { code: string; detail: string; status: number; title: string },
  { in: kind, name }: KeyPlace,
  error?: string,
): Decision {
  const headers: Record<string, string> = { "X-Latchkey-Code": code };
  if (status === 401) {
    const scheme = kind === "header" && name.toLowerCase() === "authorization" ? "Bearer" : "ApiKey";
    const where = scheme === "Bearer" ? "" : `, ${kind}="${name}"`;
    headers["WWW-Authenticate"] = `${scheme} realm="api"${where}${error === undefined ? "" : `, error="${error}"`}`;
  }
  return { status, owner: {}, headers, error: { title, detail, status, type: "about:blank", code } };
}

/** The limits of a verification for headers. */
/** Without those in shadow mode: clients need not know a limit that denies nothing. */
function fieldsOf({ keyId, identity, ratelimits = [] }: VerifyKeyAnswer): LimitField[] {
  const inForce = ratelimits.filter(({ shadow }) => !shadow);
  return inForce.map(({ from, ...limit }) => ({ ...limit, partition: from === "identity" ? identity?.id : keyId }));
}

/** Percent-encodes a text, so that no character of it has a meaning in a header. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
