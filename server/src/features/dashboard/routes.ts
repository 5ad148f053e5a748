import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply } from "fastify";
import { z } from "zod";
import { isListed, isLoopback } from "../../../../engine/src/rules/address.ts";
import { addressOf } from "../../platform/http/caller-address.ts";
import { REJECTED_CALLER } from "../../platform/http/long-body.ts";
import { decodeText } from "../../platform/http/metered.ts";
import type { Answer } from "../../platform/http/respond.ts";
import type { AddRoutes, RouteParts } from "../../platform/http/routes.ts";
import { readBody, requireJson } from "../../platform/rpc/body.ts";
import { pathOf } from "../../platform/rpc/operation.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { Rpc, RpcResponse } from "../../platform/rpc/server.ts";
import type { ChangeWatch } from "./change-watch.ts";
import { compress } from "./compress.ts";
import type { DashboardSessions } from "./sessions.ts";

const SESSION = "/dashboard/session";
const CHANGES = "/dashboard/changes";
const API = "/dashboard/api";
const COOKIE = "latchkey_session";
const COOKIE_PATH = "/dashboard";
/** As long as a session can last; the service ends it earlier. */
const COOKIE_SECONDS = 30 * 86_400;
const COOKIES_LENGTH_MAX = 8_192;
const CREDENTIAL_BYTES_MAX = 4_096;

const CREDENTIAL = z.union([
  z.strictObject({ rootKey: z.string().min(1).max(512) }),
  z.strictObject({ link: z.string().min(1).max(100) }),
]);

/** Security headers of every answer. */
const guards = {
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "X-Frame-Options": "DENY",
  "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

interface DashboardSessionParts extends RouteParts {
  version: string;
  sessions: DashboardSessions;
  changes: ChangeWatch;
}

/**
 * The sessions of the dashboard: `/dashboard/session`, and every operation at `/dashboard/api/v2/<name>`, where the
 * cookie of a session stands for its root key. `/dashboard/changes` waits for a change of the workspace. Nothing else reads
 * the cookie.
 */
export function dashboardSessionRoutes(version: string, sessions: DashboardSessions, changes: ChangeWatch): AddRoutes {
  return (app, parts) => {
    const all = { ...parts, version, sessions, changes };
    addSession(app, all);
    addChanges(app, all);
    addOperations(all);
  };
}

function addSession(app: FastifyInstance, parts: DashboardSessionParts): void {
  const { rpc, sessions, version, send, sendUnread } = parts;
  const answer = (reply: FastifyReply, response: RpcResponse, headers: Record<string, string> = {}) =>
    send(reply, { ...response, headers: { ...response.headers, ...guards, ...headers } }, SESSION);
  /** Nothing of the body is read. */
  const refuse = (reply: FastifyReply, error: unknown) => {
    const address = addressOf(reply.request.raw, parts.trustedProxies);
    const response = error instanceof Problem ? rpc.reject(error, SESSION, address) : rpc.failed(error, SESSION);
    return sendUnread(reply, { ...response, headers: { ...response.headers, ...guards } }, SESSION);
  };

  app.get(SESSION, async ({ raw }, reply) => {
    try {
      requireSameSite(raw);
      const session = await sessions.find(readToken(raw), addressOf(raw, parts.trustedProxies));
      return answer(reply, rpc.plain({ ...session, version }, SESSION));
    } catch (error) {
      return refuse(reply, error);
    }
  });

  app.post(SESSION, async ({ raw }, reply) => {
    try {
      requireSameOrigin(raw, parts);
      requireJson(raw.headers["content-type"], raw.headers["content-encoding"]);
      const body = await parts.read(raw, reply, CREDENTIAL_BYTES_MAX, async () => null);
      if (body === REJECTED_CALLER) throw new Problem("authentication_failed");
      const text = decodeText(body);
      if (text === null) throw new Problem("invalid_input");
      const credential = readBody(CREDENTIAL, text, SESSION, false);
      const { token, session } = await sessions.signIn(credential, {
        address: addressOf(raw, parts.trustedProxies),
        userAgent: raw.headers["user-agent"] ?? "",
        isLocal: isLocal(raw),
      });
      // The session of an earlier cookie ends, so that signing in again leaves none behind.
      // If that fails, it ends by itself.
      await endSession(raw, parts).catch(() => {});
      const headers = { "Set-Cookie": cookie(token, COOKIE_SECONDS, isSecure(raw, parts)) };
      return answer(reply, rpc.plain({ ...session, version }, SESSION), headers);
    } catch (error) {
      return refuse(reply, error);
    }
  });

  app.delete(SESSION, async ({ raw }, reply) => {
    try {
      requireSameOrigin(raw, parts);
      await endSession(raw, parts);
      return answer(reply, rpc.plain({}, SESSION), { "Set-Cookie": cookie("", 0, isSecure(raw, parts)) });
    } catch (error) {
      return refuse(reply, error);
    }
  });
}

/** Windows ask here for changes that others made, and wait for the answer. */
function addChanges(
  app: FastifyInstance,
  { rpc, sessions, changes, trustedProxies, send }: DashboardSessionParts,
): void {
  // A stop does not wait for them.
  app.addHook("preClose", async () => changes.close());
  app.get(CHANGES, async ({ raw, query }, reply) => {
    const closed = new AbortController();
    reply.raw.on("close", () => closed.abort());
    const address = addressOf(raw, trustedProxies);
    const answer = async () => {
      try {
        requireSameSite(raw);
        const after = readPlace((query as Record<string, unknown>).after);
        const token = readToken(raw);
        const check = () => sessions.look(token, address);
        const { sessionId, workspace } = await check();
        const watching = { sessionId, workspaceId: workspace.id, check };
        return rpc.plain(await changes.wait(watching, after, closed.signal), CHANGES);
      } catch (error) {
        return error instanceof Problem ? rpc.reject(error, CHANGES, address) : rpc.failed(error, CHANGES);
      }
    };
    const response = await answer();
    return send(reply, { ...response, headers: { ...response.headers, ...guards } }, CHANGES);
  });
}

/** The place after which changes are wanted. @throws {Problem} for another text. */
function readPlace(after: unknown): number | undefined {
  if (after === undefined) return undefined;
  if (typeof after === "string" && /^\d{1,15}$/.test(after)) return Number(after);
  throw new Problem("invalid_input", "`after` is the `cursor` of an earlier answer. Omit it in the first request.");
}

async function endSession(request: IncomingMessage, parts: DashboardSessionParts): Promise<void> {
  const address = addressOf(request, parts.trustedProxies);
  for (const token of tokensOf(request)) await parts.sessions.signOut(token, address);
}

function addOperations(parts: DashboardSessionParts): void {
  const { rpc, sessions, operations, send, sendUnread } = parts;
  const members = new Map(operations.map((operation) => [operation.name, operation]));
  parts.groups.add("POST", `${API}${pathOf("")}`, members, {
    async answer(operation, { raw }, reply) {
      const path = pathOf(operation.name);
      const guarded = (response: Answer) => ({ ...response, headers: { ...response.headers, ...guards } });
      let request: Parameters<Rpc["call"]>[1];
      try {
        requireSameOrigin(raw, parts);
        request = {
          path,
          credentials: { authorization: undefined },
          authentication: sessions,
          session: readToken(raw),
          contentType: raw.headers["content-type"],
          contentEncoding: raw.headers["content-encoding"],
          idempotencyKey: raw.headers["idempotency-key"] as string | undefined,
          body: "",
          address: addressOf(raw, parts.trustedProxies),
        };
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        return sendUnread(reply, guarded(rpc.reject(error, path)), path);
      }
      try {
        const body = await parts.read(raw, reply, parts.bodyBytesMax(operation), () => rpc.recognize(request));
        const response = await rpc.call(
          operation,
          body === REJECTED_CALLER ? request : { ...request, body: decodeText(body) },
        );
        if (body === REJECTED_CALLER) return sendUnread(reply, guarded(response), path);
        const isRead = operation.kind === "query";
        const answer = isRead
          ? await compress(response, raw.headers["accept-encoding"] as string | undefined)
          : response;
        return send(reply, guarded(answer), path);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        return sendUnread(reply, guarded(rpc.reject(error, path)), path);
      }
    },
  });
}

/**
 * Rejects requests that a page of another origin made. Browsers set `Sec-Fetch-Site` and `Origin`, and scripts cannot
 * change them. A request with neither does not come from a browser that protects its user.
 */
function requireSameOrigin(request: IncomingMessage, { publicUrl }: DashboardSessionParts): void {
  const { origin, host } = request.headers;
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined) {
    if (site !== "same-origin") throw new Problem("cross_origin_request");
    return;
  }
  const isOwn =
    origin !== undefined &&
    URL.canParse(origin) &&
    (new URL(origin).host === host || (publicUrl !== "" && new URL(origin).origin === new URL(publicUrl).origin));
  if (!isOwn) throw new Problem("cross_origin_request");
}

/** For requests that change nothing. */
function requireSameSite(request: IncomingMessage): void {
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") throw new Problem("cross_origin_request");
}

/** @throws {Problem} unless the request has exactly one cookie of a session. */
function readToken(request: IncomingMessage): string {
  const tokens = tokensOf(request);
  if (tokens.length === 1) return tokens[0]!;
  // Two cookies: another site of the same domain has set one. It must not decide whose session is used.
  throw new Problem("authentication_missing", "There is no session. Sign in.");
}

function tokensOf({ headers: { cookie = "" } }: IncomingMessage): string[] {
  if (cookie.length > COOKIES_LENGTH_MAX) return [];
  return cookie.split(";").flatMap((pair) => {
    const [name, value] = pair.trim().split("=");
    return name === COOKIE && value !== undefined && value !== "" ? [value] : [];
  });
}

function cookie(token: string, seconds: number, isSecure: boolean): string {
  const attributes = `Path=${COOKIE_PATH}; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
  return `${COOKIE}=${token}; ${attributes}${isSecure ? "; Secure" : ""}`;
}

/** Whether the browser speaks HTTPS, as the configuration or a trusted proxy says. */
function isSecure({ headers, socket }: IncomingMessage, { publicUrl, trustedProxies }: DashboardSessionParts): boolean {
  if (publicUrl.startsWith("https:")) return true;
  const isTrusted = trustedProxies !== null && isListed(trustedProxies, socket.remoteAddress ?? "");
  return (
    isTrusted &&
    String(headers["x-forwarded-proto"] ?? "")
      .trim()
      .toLowerCase() === "https"
  );
}

/** Whether the request comes from this machine. A proxy on this machine would forward requests of others. */
function isLocal({ headers, socket }: IncomingMessage): boolean {
  const isForwarded = ["x-forwarded-for", "forwarded", "x-real-ip", "via"].some((name) => headers[name] !== undefined);
  return !isForwarded && isLoopback(socket.remoteAddress ?? "");
}
