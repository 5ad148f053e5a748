import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { VerificationCode } from "../../../../engine/src/verification/request.ts";
import { addressOf } from "../../platform/http/caller-address.ts";
import type { AddRoutes, RouteParts } from "../../platform/http/routes.ts";
import { type LimitField, limitHeaders } from "../../platform/rpc/limit-fields.ts";
import type { Operation } from "../../platform/rpc/operation.ts";
import { Problem, problems } from "../../platform/rpc/problems.ts";
import type { Rpc, RpcResponse } from "../../platform/rpc/server.ts";
import type { VerifyKeyAnswer } from "./verifyKey.ts";

const PATH = "/auth/verify";

/** The header with the root key of the proxy. `Authorization` belongs to the end user. */
const ROOT_KEY_HEADER = "x-latchkey-root-key";

/** The header with the parameters when the query of the address is the end user's: below `/auth/verify/`. */
const PARAMETERS_HEADER = "x-latchkey-auth";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] as const;

const PARAMETERS_LENGTH_MAX = 8_192;
const TAG_LENGTH_MAX = 128;
/** Longer metadata is left out: proxies read the headers of an answer into buffers of 4 to 16 KiB. */
const META_LENGTH_MAX = 2_048;

/** A key in a header: printable, without space and comma, because proxies join repeated headers by commas. */
const KEY = /^[\x21-\x2b\x2d-\x7e]{1,512}$/;
const HEADER_NAME = /^[A-Za-z0-9-]{1,64}$/;
const INLINE_LIMIT = /^(.+):(\d{1,15}):(\d{1,15})(ms|s|m|h|d)$/s;
const COST = /^\d{1,15}$/;
const METHOD = /^[A-Z]{1,20}$/;
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The parameters, each with the field of `keys.verifyKey` that it sets, if there is one. */
const PARAMETERS: Readonly<Record<string, { field?: string; repeats?: boolean }>> = {
  api: { field: "keyspaces", repeats: true },
  header: {},
  permission: { field: "permissions" },
  cost: { field: "credits" },
  limit: { field: "ratelimits", repeats: true },
  path: {},
  tag: { field: "tags", repeats: true },
};

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

interface ForwardAuthParts extends RouteParts {
  /** `keys.verifyKey`. */
  verifyKey: Operation;
}

/**
 * `/auth/verify`, where a proxy asks whether it may pass a request on.
 *
 * The request becomes a call of `keys.verifyKey`, and the status of the answer is the decision. Everything except 200
 * rejects the request. The body of the request is not read.
 */
export function forwardAuthRoutes(verifyKey: Operation): AddRoutes {
  return (app, parts) => addForwardAuth(app, { ...parts, verifyKey });
}

function addForwardAuth(app: FastifyInstance, parts: ForwardAuthParts): void {
  const { rpc, send, sendUnread } = parts;
  for (const url of [PATH, `${PATH}/*`]) {
    app.route({
      method: [...METHODS],
      url,
      // Before the framework looks at the body.
      async onRequest({ raw }, reply) {
        const { "content-length": length, "transfer-encoding": encoding } = raw.headers;
        const write = encoding !== undefined || (length !== undefined && length !== "0") ? sendUnread : send;
        let answer: RpcResponse;
        try {
          answer = await authorize(parts, raw);
        } catch (error) {
          answer = error instanceof Problem ? rpc.reject(error, PATH) : closed(rpc.failed(error, PATH));
        }
        return write(reply, { ...answer, headers: { "Cache-Control": "no-store", ...answer.headers } }, PATH);
      },
      handler: (_request, reply) => reply,
    });
  }
}

/** @throws {Problem} `invalid_input` if the proxy is misconfigured. */
async function authorize(parts: ForwardAuthParts, request: IncomingMessage): Promise<RpcResponse> {
  const { rpc, clock, verifyKey, trustedProxies } = parts;
  const parameters = readParameters(request);
  const header = parameters.get("header")?.[0] ?? "Authorization";
  if (!HEADER_NAME.test(header)) throw misconfigured("header", "is not the name of a header");
  const rootKeys = valuesOf(request, ROOT_KEY_HEADER);
  if (rootKeys.length > 1) {
    throw new Problem(
      "invalid_input",
      "The header X-Latchkey-Root-Key is there twice: let the proxy set it, not add it.",
    );
  }
  const key = readKey(valuesOf(request, header), header);
  if ("rejected" in key) return rejection(rpc.plain({}, PATH).requestId, key.rejected, header, key.error);
  const answer = await rpc.call(verifyKey, {
    path: PATH,
    credentials: { authorization: rootKeys[0] === undefined ? undefined : `Bearer ${rootKeys[0]}` },
    contentType: "application/json",
    contentEncoding: undefined,
    idempotencyKey: undefined,
    body: JSON.stringify({ key: key.found, ...readInput(parameters, tagsOf(request, parameters, key.found)) }),
    address: addressOf(request, trustedProxies),
  });
  if (answer.status !== 200) return undecided(rpc, answer, header);
  return decided(answer, header, clock.now());
}

/** @throws {Problem} `invalid_input`. */
function readParameters(request: IncomingMessage): ReadonlyMap<string, readonly string[]> {
  const text = parametersText(request);
  if (text.length > PARAMETERS_LENGTH_MAX) throw misconfigured("query", "is too long");
  const parameters = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const parameter = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined;
    if (parameter === undefined) {
      throw misconfigured(name.slice(0, 50), `is unknown: use ${Object.keys(PARAMETERS).join(", ")}`);
    }
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else if (parameter.repeats) values.push(value);
    else throw misconfigured(name, "is there twice");
  }
  // A proxy that lets the end user's root key through would otherwise accept the keys of any workspace.
  if (!parameters.has("api")) throw misconfigured("api", "is missing: add the id of the API, such as api=api_123");
  return parameters;
}

function parametersText(request: IncomingMessage): string {
  const [path, query = ""] = splitQuery(request.url!);
  if (path === PATH) return query;
  const values = valuesOf(request, PARAMETERS_HEADER);
  const [only] = values;
  if (only !== undefined && values.length === 1) return only;
  throw new Problem(
    "invalid_input",
    `Below ${PATH}/ the query belongs to the end user, so the proxy sends the parameters in one header X-Latchkey-Auth, ` +
      `such as api=api_123. There are ${values.length}.`,
  );
}

/** @throws {Problem} `invalid_input`. */
function readInput(parameters: ReadonlyMap<string, readonly string[]>, tags: readonly string[]): object {
  const cost = parameters.get("cost")?.[0];
  if (cost !== undefined && !COST.test(cost)) throw misconfigured("cost", "is not a whole number");
  return {
    keyspaces: parameters.get("api"),
    permissions: parameters.get("permission")?.[0],
    ...(cost !== undefined && { credits: { cost: Number(cost) } }),
    ratelimits: parameters.get("limit")?.map((limit) => {
      const [, name, quota, length, unit] = INLINE_LIMIT.exec(limit) ?? [];
      if (name === undefined) return { name: limit };
      return { name, limit: Number(quota), duration: Number(length) * UNITS[unit as keyof typeof UNITS] };
    }),
    ...(tags.length > 0 && { tags }),
  };
}

/** The tags of the parameters, and those of the end user's request, as far as the proxy describes it. */
function tagsOf(
  request: IncomingMessage,
  parameters: ReadonlyMap<string, readonly string[]>,
  key: string,
): readonly string[] {
  const { headers, url } = request;
  const first = (...names: string[]) => names.map((name) => headers[name]).find((value) => typeof value === "string");
  const isBelow = splitQuery(url!)[0] !== PATH;
  const method = isBelow ? request.method : first("x-forwarded-method", "x-original-method");
  let path = parameters.get("path")?.[0];
  if (path === "*") {
    const uri = isBelow ? url!.slice(PATH.length) : first("x-forwarded-uri", "x-original-uri");
    // Queries can contain secrets, and paths this one.
    path = uri === undefined || uri.includes(key) ? undefined : splitQuery(uri as string)[0];
  }
  const tags = [...(parameters.get("tag") ?? [])];
  if (path) tags.push(`path=${path}`.slice(0, TAG_LENGTH_MAX));
  if (typeof method === "string" && METHOD.test(method)) tags.push(`method=${method}`);
  return tags;
}

/** The key in the header, or why there is none, with the error of RFC 6750, section 3.1. */
function readKey(
  values: readonly string[],
  header: string,
): { found: string } | { rejected: { code: string; detail: string }; error?: string } {
  const name = header.toLowerCase();
  const text = values[0]?.trim() ?? "";
  if (text === "") {
    return { rejected: { code: "MISSING", detail: `The request has no API key in the header ${header}.` } };
  }
  const key = name === "authorization" ? /^bearer +(.*)$/is.exec(text)?.[1]?.trim() : text;
  if (values.length === 1 && key !== undefined && KEY.test(key)) return { found: key };
  const form = name === "authorization" ? "`Bearer <key>`" : "the key alone";
  return {
    rejected: { code: "MALFORMED", detail: `The header ${header} must be there once, with ${form} as its value.` },
    error: "invalid_request",
  };
}

/** Turns the answer of a verification into a decision. */
function decided({ body, requestId }: RpcResponse, header: string, now: Instant): RpcResponse {
  const { data } = JSON.parse(body) as { data: VerifyKeyAnswer };
  const limits = limitHeaders(fieldsOf(data), now);
  if (!data.valid) {
    const answer = rejection(requestId, { ...ANSWERS[data.code], code: data.code }, header, "invalid_token");
    const { retryAfter } = data;
    const isLimited = data.code === "RATE_LIMITED" && retryAfter !== undefined;
    const retry = isLimited ? { "Retry-After": String(Math.max(1, Math.ceil(retryAfter / 1_000))) } : {};
    return { ...answer, headers: { ...answer.headers, ...limits, ...retry } };
  }
  const { keyId, identity, credits } = data;
  const meta = encoded(JSON.stringify(data.meta ?? {}));
  // Each is always there: some proxies would otherwise pass on the end user's, or the name of a variable.
  const headers = {
    "X-Latchkey-Code": data.code,
    "X-Latchkey-Key-Id": keyId!,
    "X-Latchkey-Owner": identity ? encoded(identity.externalId) : "",
    "X-Latchkey-Meta": meta.length <= META_LENGTH_MAX ? meta : "",
    "X-Latchkey-Remaining": credits === undefined ? "" : String(credits),
    ...limits,
  };
  return { status: 200, requestId, headers, body: `{"meta":{"requestId":"${requestId}"},"data":{"valid":true}}` };
}

/** The limits of a verification for headers. */
function fieldsOf({ keyId, identity, ratelimits = [] }: VerifyKeyAnswer): LimitField[] {
  return ratelimits.map(({ from, ...limit }) => ({ ...limit, partition: from === "identity" ? identity?.id : keyId }));
}

function rejection(
  requestId: string,
  {
    code,
    detail,
    status = 401,
    title = "Unauthorized",
  }: { code: string; detail: string; status?: number; title?: string },
  header: string,
  error?: string,
): RpcResponse {
  const headers: Record<string, string> = { "X-Latchkey-Code": code };
  if (status === 401) {
    const scheme = header.toLowerCase() === "authorization" ? "Bearer" : "ApiKey";
    const place = scheme === "Bearer" ? "" : `, header="${header}"`;
    headers["WWW-Authenticate"] = `${scheme} realm="api"${place}${error === undefined ? "" : `, error="${error}"`}`;
  }
  const body = { meta: { requestId }, error: { title, detail, status, type: "about:blank", code } };
  return { status, requestId, headers, body: JSON.stringify(body) };
}

/**
 * The answer when the verification was not made: 403 if its key cannot be verified here, 400 if the proxy must be configured
 * differently, else 503.
 */
function undecided(rpc: Rpc, answer: RpcResponse, header: string): RpcResponse {
  const { error } = JSON.parse(answer.body) as {
    error: { type: string; detail: string; errors?: readonly { location: string; message: string }[] };
  };
  // No proxy says when a request has ended, so a slot would stay taken.
  if (error.type.endsWith(problems.hold_required.type)) return rejection(answer.requestId, HOLD_REQUIRED, header);
  const isCredential = error.type.endsWith(problems.authentication_malformed.type);
  switch (isCredential ? 401 : answer.status) {
    case 400: {
      const [first] = error.errors ?? [];
      const parameter = Object.entries(PARAMETERS).find(
        ([, { field }]) => field !== undefined && first?.location.startsWith(`/properties/${field}`),
      )?.[0];
      return rpc.reject(parameter ? misconfigured(parameter, first!.message) : misconfigured("query", error.detail));
    }
    case 401:
    case 403:
      return rpc.reject(
        new Problem("invalid_input", `The root key of the proxy, in the header X-Latchkey-Root-Key: ${error.detail}`),
      );
    case 412:
      return rpc.reject(misconfigured("limit", error.detail));
    default:
      return closed(answer);
  }
}

/** The answer when the service cannot decide. The limits of the workspace are not those of the end user. */
function closed({ requestId, headers }: RpcResponse): RpcResponse {
  const retryAfter = headers?.["retry-after"] ?? "1";
  const title = "Service Unavailable";
  const detail = "The API key cannot be verified right now. Try again shortly.";
  const error = { title, detail, status: 503, type: "about:blank", code: "UNDECIDED" };
  return {
    status: 503,
    requestId,
    headers: { "X-Latchkey-Code": "UNDECIDED", "Retry-After": retryAfter },
    body: JSON.stringify({ meta: { requestId }, error }),
  };
}

function misconfigured(parameter: string, message: string): Problem {
  return new Problem("invalid_input", `The proxy asks ${PATH} with a wrong query. ${parameter}: ${message}`, {
    errors: [{ location: `query/${parameter}`, message }],
  });
}

/** Percent-encodes a text, so that no character of it has a meaning in a header. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Every value of a header. Node would keep only the first of some headers, and join others. */
function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  const wanted = name.toLowerCase();
  return rawHeaders.filter((_value, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === wanted);
}

function splitQuery(url: string): [path: string, query?: string] {
  const at = url.indexOf("?");
  return at < 0 ? [url] : [url.slice(0, at), url.slice(at + 1)];
}
