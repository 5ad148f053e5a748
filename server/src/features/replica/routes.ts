import type { FastifyInstance } from "fastify";
import { addressOf } from "../../platform/http/caller-address.ts";
import { REJECTED_CALLER } from "../../platform/http/long-body.ts";
import { decodeText } from "../../platform/http/metered.ts";
import type { AddRoutes, RouteParts } from "../../platform/http/routes.ts";
import { type Operation, pathOf } from "../../platform/rpc/operation.ts";
import { Problem } from "../../platform/rpc/problems.ts";

/** Bodies of edges. A report of two thousand counts takes a third of it. */
const BODY_BYTES_MAX = 1024 * 1024;

/** The calls of edges. They are not part of the API, and have its paths and its envelope. */
export function replicaRoutes(replicaOperations: readonly Operation[]): AddRoutes {
  return (app, parts) => {
    for (const operation of replicaOperations) addCall(app, operation, parts);
  };
}

function addCall(app: FastifyInstance, operation: Operation, parts: RouteParts): void {
  const { rpc, trustedProxies, read, send, sendUnread } = parts;
  const path = pathOf(operation.name);
  app.post(path, async ({ raw }, reply) => {
    const { headers } = raw;
    const request = {
      path,
      credentials: { authorization: headers.authorization },
      idempotencyKey: undefined,
      contentType: headers["content-type"],
      contentEncoding: headers["content-encoding"],
      body: "",
      address: addressOf(raw, trustedProxies),
    };
    try {
      const body = await read(raw, reply, BODY_BYTES_MAX, () => rpc.recognize(request));
      if (body === REJECTED_CALLER) return sendUnread(reply, await rpc.call(operation, request), path);
      return send(reply, await rpc.call(operation, { ...request, body: decodeText(body) }), path);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return sendUnread(reply, rpc.reject(error, path), path);
    }
  });
}
