import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../../../engine/src/clock/clock.ts";
import { addressOf } from "../../platform/http/caller-address.ts";
import { REJECTED_CALLER } from "../../platform/http/long-body.ts";
import { decodeText } from "../../platform/http/metered.ts";
import type { AddRoutes, RouteParts } from "../../platform/http/routes.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { RpcCalls, RpcResponse } from "../../platform/rpc/server.ts";
import { type ClientCredentials, type Form, type ReadForm, readBasic, readForm } from "./form.ts";
import { introspect } from "./introspect.ts";
import type { Issuers } from "./issuers.ts";
import { issueToken, type TokenError } from "./issueToken.ts";
import type { SigningKeys } from "./signing-keys.ts";

const INTROSPECT = "/oauth/introspect";
const METADATA = "/.well-known/oauth-authorization-server";
/** Of the default workspace, and of others. */
const TOKEN_PATHS = ["/oauth/token", "/oauth/:workspaceId/token"];
const JWKS_PATHS = ["/oauth/jwks", "/oauth/:workspaceId/jwks"];
const METADATA_PATHS = [METADATA, `${METADATA}/oauth/:workspaceId`];

const BODY_BYTES_MAX = 16 * 1024;
/** Resource indicators of one request. */
const RESOURCES_MAX = 10;

/** Headers of every answer that depends on a secret: RFC 6749, section 5.1. */
const uncached = { "Cache-Control": "no-store", Pragma: "no-cache" };
/** Much shorter than a key is published before its use. */
const cached = { "Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*" };

const CHALLENGE = 'Basic realm="latchkey"';

type ErrorCode = TokenError | "invalid_request" | "unsupported_grant_type" | "temporarily_unavailable" | "server_error";

/** What the routes for access tokens need. */
export interface TokenRouteOptions {
  clock: Clock;
  issuers: Issuers;
  signingKeys: Pick<SigningKeys, "published">;
}

/**
 * The routes of OAuth 2.0: introspection (RFC 7662), and with `tokens` the access tokens of keys (RFC 6749, section 4.4, and
 * RFC 9068), the keys that verify them (RFC 7517) and the metadata of issuers (RFC 8414). Requests become calls of operations,
 * whose answers and problems are put into the forms of these standards.
 */
export function oauthRoutes(tokens: TokenRouteOptions | undefined): AddRoutes {
  return (app, parts) => {
    addForm(app, parts, INTROSPECT, answerIntrospection);
    if (tokens === undefined) addTokensOff(app, parts);
    else addTokenRoutes(app, parts, tokens);
  };
}

/** Says that access tokens are off: whoever follows the guide would look for a mistake in the address. */
function addTokensOff(app: FastifyInstance, { rpc, sendUnread }: RouteParts): void {
  const off = new Problem("route_not_found", TOKENS_OFF);
  const answer = (path: string) => (_: unknown, reply: FastifyReply) => sendUnread(reply, rpc.reject(off, path), path);
  for (const path of TOKEN_PATHS) app.post(path, answer(path));
  for (const path of [...JWKS_PATHS, ...METADATA_PATHS]) app.get(path, answer(path));
}

const TOKENS_OFF = "Access tokens are off. The operator of the service turns them on with LATCHKEY_OAUTH_TOKENS=on.";

/** A request whose body is a form. */
interface FormRequest {
  readonly raw: IncomingMessage;
  readonly form: Form;
  readonly params: Readonly<Record<string, string>>;
  readonly address: string;
}

type AnswerForm = (request: FormRequest, parts: RouteParts) => Promise<RpcResponse>;

function addForm(
  app: FastifyInstance,
  parts: RouteParts,
  path: string,
  answer: AnswerForm,
  repeated: readonly string[] = [],
): void {
  const { rpc, read, trustedProxies, send, sendUnread } = parts;
  app.post(path, async ({ raw, params }, reply) => {
    const guarded = (response: RpcResponse) => ({ ...response, headers: { ...response.headers, ...uncached } });
    try {
      const body = await read(raw, reply, BODY_BYTES_MAX, async () => null);
      if (body === REJECTED_CALLER) throw new Problem("request_body_too_large");
      const found: ReadForm = readForm(decodeText(body), raw.headers, repeated);
      if ("mistake" in found)
        return send(reply, guarded(refuse(rpc, path, 400, "invalid_request", found.mistake)), path);
      const address = addressOf(raw, trustedProxies);
      const request = { raw, form: found.form, params: params as Record<string, string>, address };
      return send(reply, guarded(await answer(request, parts)), path);
    } catch (error) {
      const failed = error instanceof Problem ? rpc.reject(error, path) : rpc.failed(error, path);
      return sendUnread(reply, guarded(asOAuthError(failed)), path);
    }
  });
}

async function answerIntrospection({ raw, form, address }: FormRequest, { rpc }: RouteParts): Promise<RpcResponse> {
  const token = form.get("token");
  const caller = readCaller(raw.headers.authorization, form);
  if (caller === undefined) return refuse(rpc, INTROSPECT, 400, "invalid_request", TWICE);
  if (token === undefined) return refuse(rpc, INTROSPECT, 400, "invalid_request", "The parameter `token` is missing.");
  const input = { token, clientId: caller.id, clientIp: form.get("client_ip") };
  const answer = await rpc.call(introspect, {
    path: INTROSPECT,
    credentials: { authorization: caller.authorization },
    contentType: "application/json",
    contentEncoding: undefined,
    idempotencyKey: undefined,
    body: JSON.stringify(input),
    address,
  });
  return answer.status === 200 ? { ...answer, body: JSON.stringify(dataOf(answer)) } : asOAuthError(answer);
}

const TWICE = "Send one set of credentials: in the header Authorization, or as `client_id` and `client_secret`.";

/**
 * The root key of a caller as a header of RFC 6750, with the id that it sent. Undefined: the credentials are there twice, or in a
 * header of another scheme.
 */
function readCaller(
  header: string | undefined,
  form: Form,
): { authorization: string | undefined; id?: string | undefined } | undefined {
  const inBody = readBodyCredentials(form);
  if (header === undefined || header.trim() === "") {
    return inBody ? { authorization: `Bearer ${inBody.secret}`, id: inBody.id } : { authorization: undefined };
  }
  if (inBody !== undefined) return undefined;
  if (!/^basic /i.test(header)) return { authorization: header };
  const basic = readBasic(header);
  // A header that cannot be read is answered like an unknown root key.
  return basic ? { authorization: `Bearer ${basic.secret}`, id: basic.id || undefined } : { authorization: "Bearer ?" };
}

function readBodyCredentials(form: Form): ClientCredentials | undefined {
  const secret = form.get("client_secret");
  return secret === undefined ? undefined : { id: form.get("client_id") ?? "", secret };
}

function addTokenRoutes(app: FastifyInstance, parts: RouteParts, options: TokenRouteOptions): void {
  for (const path of TOKEN_PATHS) {
    addForm(app, parts, path, (request) => answerToken(path, request, parts, options), ["resource"]);
  }
  const { issuers, signingKeys, clock } = options;
  for (const path of JWKS_PATHS) {
    addDocument(app, parts, path, options, async (workspaceId) => {
      const keys = await signingKeys.published(workspaceId, clock.now());
      return { keys: keys.map(({ jwk }) => jwk) };
    });
  }
  for (const path of METADATA_PATHS) {
    addDocument(app, parts, path, options, async (workspaceId) => issuers.metadata(workspaceId));
  }
}

async function answerToken(
  path: string,
  { raw, form, params, address }: FormRequest,
  { rpc }: RouteParts,
  { issuers }: TokenRouteOptions,
): Promise<RpcResponse> {
  const reject = (code: ErrorCode, detail: string, status = 400) => refuse(rpc, path, status, code, detail);
  const { authorization } = raw.headers;
  const inBody = readBodyCredentials(form);
  if (authorization !== undefined && inBody !== undefined) return reject("invalid_request", TWICE);
  const client = authorization === undefined ? inBody : readBasic(authorization);
  const grant = form.get("grant_type");
  if (grant === undefined) return reject("invalid_request", "The parameter `grant_type` is missing.");
  if (grant !== "client_credentials") return reject("unsupported_grant_type", "The grant is `client_credentials`.");
  const resources = form.all("resource");
  if (resources.length > RESOURCES_MAX) return reject("invalid_target", `Name at most ${RESOURCES_MAX} resources.`);
  if (!client?.id || !client.secret) {
    return reject("invalid_client", "Send the id of the key as `client_id` and the key as `client_secret`.", 401);
  }
  const workspaceId = await issuers.find(params.workspaceId, address);
  if (workspaceId === null) return reject("invalid_client", "The key is not valid.", 401);
  const answer = await rpc.call(issueToken, {
    path,
    credentials: { authorization: undefined },
    contentType: "application/json",
    contentEncoding: undefined,
    idempotencyKey: undefined,
    body: JSON.stringify({ workspaceId, keyId: client.id, key: client.secret, scope: form.get("scope"), resources }),
    address,
  });
  if (answer.status !== 200) return asOAuthError(answer);
  const data = dataOf(answer) as { error?: TokenError };
  const status = data.error === undefined ? 200 : data.error === "invalid_client" ? 401 : 400;
  const headers = { ...answer.headers, ...(status === 401 && { "WWW-Authenticate": CHALLENGE }) };
  return { ...answer, status, headers, body: JSON.stringify(data) };
}

/** A document about the issuer that the path names, for anybody. */
function addDocument(
  app: FastifyInstance,
  { rpc, trustedProxies, send }: RouteParts,
  path: string,
  { issuers }: TokenRouteOptions,
  make: (workspaceId: string) => Promise<object>,
): void {
  app.get(path, async ({ raw, params }: FastifyRequest, reply: FastifyReply) => {
    const { workspaceId: name } = params as { workspaceId?: string };
    try {
      const workspaceId = await issuers.find(name, addressOf(raw, trustedProxies));
      if (workspaceId === null) return send(reply, rpc.reject(new Problem("route_not_found"), path), path);
      return send(reply, { ...rpc.bare(200, await make(workspaceId), path), headers: cached }, path);
    } catch (error) {
      return send(reply, rpc.failed(error, path), path);
    }
  });
}

function dataOf({ body }: RpcResponse): object {
  return (JSON.parse(body) as { data: object }).data;
}

/** An error of RFC 6749, section 5.2, outside of a call. */
function refuse(rpc: RpcCalls, path: string, status: number, code: ErrorCode, detail: string): RpcResponse {
  const headers = status === 401 ? { "WWW-Authenticate": CHALLENGE } : {};
  return { ...rpc.bare(status, errorBody(code, detail), path), headers };
}

/** The problem of a call in the form of RFC 6749, section 5.2. */
function asOAuthError(answer: RpcResponse): RpcResponse {
  const { status, body, headers: { "www-authenticate": _, ...headers } = {} } = answer;
  const { detail, errors = [] } = (JSON.parse(body) as { error: { detail: string; errors?: { message: string }[] } })
    .error;
  const [first] = errors;
  const description = first === undefined ? detail : `${detail} ${first.message}`;
  if (status === 401 || status === 403) {
    return {
      ...answer,
      status: 401,
      headers: { ...headers, "WWW-Authenticate": `${CHALLENGE}, Bearer realm="latchkey"` },
      body: JSON.stringify(errorBody("invalid_client", description)),
    };
  }
  return { ...answer, headers, body: JSON.stringify(errorBody(codeOf(status), description)) };
}

function codeOf(status: number): ErrorCode {
  if (status === 429 || status === 503) return "temporarily_unavailable";
  return status >= 500 ? "server_error" : "invalid_request";
}

/** Descriptions have no quotation marks and backslashes: RFC 6749, section 5.2. */
function errorBody(code: ErrorCode, detail: string): { error: ErrorCode; error_description: string } {
  return { error: code, error_description: detail.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "'") };
}
