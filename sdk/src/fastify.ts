import type { FastifyReply, FastifyRequest } from "fastify";
import { isPending } from "./at-once.ts";
import {
  type Decide,
  limiter,
  type RatelimitOptions,
  type RequestReader,
  type VerifiedKey,
  type VerifyOptions,
  verifier,
} from "./middleware.ts";
import { joinHeaders, messageReader, watch } from "./node-messages.ts";
import { textOf } from "./rejection.ts";

export type { EndedAnswer, HoldOptions } from "./held-answer.ts";
export type { OpenHold, Settlement } from "./hold.ts";
export type { RatelimitOptions, VerifiedKey, VerifyOptions } from "./middleware.ts";
export type { Rejection, RejectionAnswer, RejectionCode } from "./rejection.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The key that `verify` accepted. */
    latchkey?: VerifiedKey;
  }
}

/** A hook for `onRequest` of an instance or a route. */
export type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>;

const reader: RequestReader<FastifyRequest> = {
  method: ({ method }) => method,
  values: ({ raw }, header) => messageReader.values(raw, header),
  route: ({ routeOptions }) => routeOptions.url,
  // That of the connection, unless the option `trustProxy` names proxies.
  address: ({ ip }) => ip,
};

/**
 * A hook for Fastify that verifies the key of each request. Handlers find it in `request.latchkey`.
 *
 * ```ts
 * app.addHook("onRequest", verify({ apiId }));
 * ```
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function verify(options: VerifyOptions<FastifyRequest, boolean>): Hook {
  return hook(verifier(options, reader), (request, key) => {
    if (key) request.latchkey = key;
    else delete request.latchkey;
  });
}

/**
 * A hook for Fastify that limits requests.
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function ratelimit(options: RatelimitOptions<FastifyRequest, boolean>): Hook {
  return hook(limiter(options, reader), () => {});
}

function hook(
  decide: Decide<FastifyRequest>,
  onPass: (request: FastifyRequest, key: VerifiedKey | undefined) => void,
): Hook {
  return async (request, reply) => {
    const undecided = decide(request);
    const decision = isPending(undecided) ? await undecided : undecided;
    if (decision.rejection) {
      const { status, headers } = decision.rejection;
      // Fastify would add a charset to the content type of a text.
      return reply
        .code(status)
        .headers(headers)
        .send(new TextEncoder().encode(textOf(decision.rejection)));
    }
    for (const [name, value] of Object.entries(decision.headers)) {
      const earlier = reply.getHeader(name);
      reply.header(name, earlier === undefined ? value : `${earlier}, ${value}`);
    }
    joinHeaders(reply.raw, decision.headers);
    onPass(request, decision.key);
    return watch(reply.raw, decision.held) ? undefined : reply.hijack();
  };
}
