import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply } from "fastify";
import { z } from "zod";
import { hasEcdsaSignature } from "../../../../engine/src/crypto/signature.ts";
import type { VerificationCode } from "../../../../engine/src/verification/request.ts";
import { addressOf } from "../../platform/http/caller-address.ts";
import { REJECTED_CALLER } from "../../platform/http/long-body.ts";
import { METERED_BODY_BYTES_MAX } from "../../platform/http/metered.ts";
import type { AddRoutes, RouteParts } from "../../platform/http/routes.ts";
import { requireJson } from "../../platform/rpc/body.ts";
import type { Operation } from "../../platform/rpc/operation.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { RpcResponse } from "../../platform/rpc/server.ts";
import { KEY_LENGTH_MAX } from "../../platform/vocabulary/schema.ts";
import { type GithubKeys, GithubKeysUnavailable } from "./github-keys.ts";
import { GITHUB_REPORTS_PATH, LEAK_VERIFICATION_PATH } from "./kit.ts";
import { type LeakReports, leakReport } from "./reports.ts";

const GITHUB_BODY_BYTES_MAX = 1024 * 1024;
const REPORTS_MAX = 5_000;
const IDENTIFIER_LENGTH_MAX = 200;
const SIGNATURE_LENGTH_MAX = 200;
const URL_LENGTH_MAX = 2_000;

/** The matches of a message of GitHub; see "Secret scanning partner program" in its documentation. */
const GithubReports = z.array(z.object({ token: z.string(), url: z.string().nullish() })).max(REPORTS_MAX);

/** What TruffleHog sends: the name of the detector, the names of its expressions, and the match of each. */
const TruffleHogQuestion = z.record(z.string(), z.object({ key: z.array(z.string()).min(1).max(10) }));

/** Codes of keys that give access to something, at this moment or later. */
const LIVE: ReadonlySet<VerificationCode> = new Set([
  "VALID",
  "FORBIDDEN",
  "INSUFFICIENT_PERMISSIONS",
  "USAGE_EXCEEDED",
  "RATE_LIMITED",
]);

export interface LeakRouteOptions {
  leaks: Pick<LeakReports, "handle">;
  /** Undefined: reports of GitHub are not accepted. */
  githubKeys: Pick<GithubKeys, "find"> | undefined;
  /** `keys.verifyKey`. */
  verifyKey: Operation;
}

type LeakRouteParts = LeakRouteOptions & RouteParts;

/** The routes for scanners: GitHub reports keys, and TruffleHog asks whether a key is live. */
export function leakRoutes(options: LeakRouteOptions): AddRoutes {
  return (app, parts) => {
    addRoute(app, GITHUB_REPORTS_PATH, { ...parts, ...options }, takeGithubReports);
    addRoute(app, LEAK_VERIFICATION_PATH, { ...parts, ...options }, answerTruffleHog);
  };
}

type Handler = (request: IncomingMessage, reply: FastifyReply, parts: LeakRouteParts) => Promise<RpcResponse>;

function addRoute(app: FastifyInstance, path: string, parts: LeakRouteParts, handle: Handler): void {
  const { rpc, trustedProxies, send, sendUnread } = parts;
  app.post(path, async ({ raw }, reply) => {
    try {
      return send(reply, await handle(raw, reply, parts), path);
    } catch (error) {
      if (!(error instanceof Problem)) return sendUnread(reply, rpc.failed(error, path), path);
      return sendUnread(reply, rpc.reject(error, path, addressOf(raw, trustedProxies)), path);
    }
  });
}

/** The answer is sent after the reports are stored, so that GitHub repeats those that were not. */
async function takeGithubReports(
  request: IncomingMessage,
  reply: FastifyReply,
  { rpc, leaks, githubKeys, read }: LeakRouteParts,
): Promise<RpcResponse> {
  if (!githubKeys) {
    throw new Problem("route_not_found", "This service takes no reports of GitHub: LATCHKEY_GITHUB_KEYS is not set.");
  }
  const identifier = textOf(request, "github-public-key-identifier", IDENTIFIER_LENGTH_MAX);
  const signature = textOf(request, "github-public-key-signature", SIGNATURE_LENGTH_MAX);
  requireJson(request.headers["content-type"], request.headers["content-encoding"]);
  const key = await findKey(githubKeys, identifier);
  const body = await read(request, reply, GITHUB_BODY_BYTES_MAX, async () => GITHUB_REPORTS_PATH);
  if (body === REJECTED_CALLER) throw unsigned();
  if (!hasEcdsaSignature(key, body, Buffer.from(signature, "base64"))) throw unsigned();
  const matches = parse(GithubReports, body);
  await leaks.handle(
    matches
      .filter(({ token }) => token.length > 0 && token.length <= KEY_LENGTH_MAX)
      .map(({ token, url }) => leakReport(token, "github", url?.slice(0, URL_LENGTH_MAX) ?? null)),
  );
  return rpc.plain({}, GITHUB_REPORTS_PATH);
}

async function findKey(keys: Pick<GithubKeys, "find">, identifier: string) {
  try {
    const key = await keys.find(identifier);
    if (!key) throw unsigned();
    return key;
  } catch (error) {
    if (!(error instanceof GithubKeysUnavailable)) throw error;
    throw new Problem("service_unavailable", `${error.message}. Send the report again.`, {
      headers: { "retry-after": "60" },
    });
  }
}

/** Verifies the key as `keys.verifyKey` does, without spending credits. 200: it is live. 404: it is not. */
async function answerTruffleHog(
  request: IncomingMessage,
  reply: FastifyReply,
  { rpc, verifyKey, trustedProxies, read }: LeakRouteParts,
): Promise<RpcResponse> {
  requireJson(request.headers["content-type"] ?? "application/json", request.headers["content-encoding"]);
  const body = await read(request, reply, METERED_BODY_BYTES_MAX, async () => null);
  if (body === REJECTED_CALLER) throw new Problem("request_body_too_large");
  const detectors = Object.values(parse(TruffleHogQuestion, body));
  if (detectors.length !== 1) throw new Problem("invalid_input", "Send the matches of one detector.");
  const answer = await rpc.call(verifyKey, {
    path: LEAK_VERIFICATION_PATH,
    credentials: { authorization: request.headers.authorization },
    contentType: "application/json",
    contentEncoding: undefined,
    idempotencyKey: undefined,
    body: JSON.stringify({ key: detectors[0]!.key[0], credits: { cost: 0 } }),
    address: addressOf(request, trustedProxies),
  });
  if (answer.status !== 200) return answer;
  const { code } = (JSON.parse(answer.body) as { data: { code: VerificationCode } }).data;
  if (!LIVE.has(code)) throw new Problem("key_not_found", "This key does not exist, is disabled or has expired.");
  return rpc.plain({}, LEAK_VERIFICATION_PATH);
}

/** @throws {Problem} `authentication_failed` unless the header is there once, and not too long. */
function textOf({ headers }: IncomingMessage, name: string, lengthMax: number): string {
  const value = headers[name];
  if (typeof value !== "string" || value === "" || value.length > lengthMax) throw unsigned();
  return value;
}

function unsigned(): Problem {
  return new Problem("authentication_failed", "The report has no valid signature of GitHub.");
}

/** @throws {Problem} `invalid_input`. */
function parse<T>(schema: z.ZodType<T>, body: Buffer): T {
  try {
    return schema.parse(JSON.parse(body.toString()));
  } catch {
    throw new Problem("invalid_input", "The body does not have the form that this address takes.");
  }
}
