import type { NextFunction, Request, RequestHandler, Response } from "express";
import { isPending } from "./at-once.ts";
import {
  type Decide,
  type Decision,
  limiter,
  type RatelimitOptions,
  type RequestReader,
  type VerifiedKey,
  type VerifyOptions,
  verifier,
} from "./middleware.ts";
import { addHeaders, messageReader, reject, watch } from "./node-messages.ts";

export type { EndedAnswer, HoldOptions } from "./held-answer.ts";
export type { OpenHold, Settlement } from "./hold.ts";
export type { RatelimitOptions, VerifiedKey, VerifyOptions } from "./middleware.ts";
export type { Rejection, RejectionAnswer, RejectionCode } from "./rejection.ts";

declare global {
  namespace Express {
    interface Request {
      /** The key that `verify` accepted. */
      latchkey?: VerifiedKey;
    }
  }
}

const reader: RequestReader<Request> = {
  ...messageReader,
  // Only known in the middleware of a route. `baseUrl` has the values of its parameters, not their names.
  route: ({ route }) => (typeof route?.path === "string" ? route.path : undefined),
  // That of the connection, unless the setting `trust proxy` names proxies.
  address: ({ ip }) => ip,
};

/**
 * A middleware for Express that verifies the key of each request. Handlers find it in `req.latchkey`.
 *
 * ```ts
 * app.use(verify({ apiId }));
 * ```
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function verify(options: VerifyOptions<Request, boolean>): RequestHandler {
  return middleware(verifier(options, reader), (request, key) => {
    if (key) request.latchkey = key;
    else delete request.latchkey;
  });
}

/**
 * A middleware for Express that limits requests.
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function ratelimit(options: RatelimitOptions<Request, boolean>): RequestHandler {
  return middleware(limiter(options, reader), () => {});
}

function middleware(
  decide: Decide<Request>,
  onPass: (request: Request, key: VerifiedKey | undefined) => void,
): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const apply = (decision: Decision) => {
      if (decision.rejection) return reject(response, decision.rejection);
      addHeaders(response, decision.headers);
      onPass(request, decision.key);
      if (watch(response, decision.held)) next();
    };
    const decision = decide(request);
    if (isPending(decision)) decision.then(apply).catch(next);
    else apply(decision);
  };
}
