import type { FastifyInstance } from "fastify";
import { addressOf } from "../../platform/http/caller-address.ts";
import { REJECTED_CALLER } from "../../platform/http/long-body.ts";
import { decodeText } from "../../platform/http/metered.ts";
import type { Answer } from "../../platform/http/respond.ts";
import type { AddRoutes, RouteParts } from "../../platform/http/routes.ts";
import type { Operation } from "../../platform/rpc/operation.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { CallerAuthentication } from "../../platform/rpc/server.ts";

const PREFLIGHT_SECONDS = 7_200;
const BODY_BYTES_MAX = 16 * 1024;

/**
 * Any page may send calls, because a call needs the token of a session and no browser adds that by itself. Cookies are
 * neither read nor set, and `*` forbids browsers to send them.
 */
const shared = { "Access-Control-Allow-Origin": "*" };

/** Headers of every answer. */
const guards = {
  ...shared,
  "Access-Control-Expose-Headers": "X-Request-Id, Retry-After",
  "Cache-Control": "no-store",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
};

/** The path of a call: `/portal/api/listKeys`. */
export function portalPathOf({ name }: Pick<Operation, "name">): string {
  return `/portal/api/${name.slice(name.indexOf(".") + 1)}`;
}

/** The calls of sessions of the portal. */
export function portalCallRoutes(
  portalOperations: readonly Operation[],
  authentication: CallerAuthentication,
): AddRoutes {
  return (app, parts) => {
    for (const operation of portalOperations) addCall(app, operation, authentication, parts);
  };
}

function addCall(
  app: FastifyInstance,
  operation: Operation,
  authentication: CallerAuthentication,
  parts: RouteParts,
): void {
  const { rpc, trustedProxies, read, send, sendUnread } = parts;
  const path = portalPathOf(operation);
  const guarded = (response: Answer) => ({ ...response, headers: { ...response.headers, ...guards } });
  app.options(path, (_request, reply) =>
    reply
      .headers({
        ...shared,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Max-Age": String(PREFLIGHT_SECONDS),
      })
      .status(204)
      .send(),
  );
  app.post(path, async ({ raw }, reply) => {
    const { headers } = raw;
    const request = {
      path,
      credentials: { authorization: headers.authorization },
      authentication,
      idempotencyKey: undefined,
      contentType: headers["content-type"],
      contentEncoding: headers["content-encoding"],
      body: "",
      address: addressOf(raw, trustedProxies),
    };
    try {
      const body = await read(raw, reply, BODY_BYTES_MAX, () => rpc.recognize(request));
      if (body === REJECTED_CALLER) return sendUnread(reply, guarded(await rpc.call(operation, request)), path);
      return send(reply, guarded(await rpc.call(operation, { ...request, body: decodeText(body) })), path);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return sendUnread(reply, guarded(rpc.reject(error, path)), path);
    }
  });
}
