import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type Decide,
  type Decision,
  type KeyOf,
  limiter,
  type MiddlewareOptions,
  type RatelimitOptions,
  type VerifyOptions,
  verifier,
} from "./middleware.ts";
import { addHeaders, messageReader, reject, watch } from "./node-messages.ts";
import { errorOf, print } from "./on-error.ts";

export type { EndedAnswer, HoldOptions } from "./held-answer.ts";
export type { OpenHold, Settlement } from "./hold.ts";
export type { KeyOf, RatelimitOptions, VerifiedKey, VerifyOptions } from "./middleware.ts";
export type { Rejection, RejectionAnswer, RejectionCode } from "./rejection.ts";

type Listener<Rest extends unknown[] = []> = (
  request: IncomingMessage,
  response: ServerResponse,
  ...rest: Rest
) => unknown;

/**
 * A listener for node:http that verifies the key of a request before it calls `handler`.
 *
 * ```ts
 * createServer(verify({ apiId }, (request, response, key) => response.end(`Hello ${key.keyId}`)));
 * ```
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function verify<FailOpen extends boolean = false>(
  options: VerifyOptions<IncomingMessage, FailOpen>,
  handler: Listener<[key: KeyOf<FailOpen>]>,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const admit = admitter(verifier(options, messageReader), options);
  return async (request, response) => {
    const admitted = await admit(request, response);
    if (admitted) await handler(request, response, admitted.key as KeyOf<FailOpen>);
  };
}

/**
 * A listener for node:http that limits requests before it calls `handler`, with what it was called with.
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function ratelimit<Rest extends unknown[]>(
  options: RatelimitOptions<IncomingMessage, boolean>,
  handler: Listener<Rest>,
): (request: IncomingMessage, response: ServerResponse, ...rest: Rest) => Promise<void> {
  const admit = admitter(limiter(options, messageReader), options);
  return async (request, response, ...rest) => {
    if (await admit(request, response)) await handler(request, response, ...rest);
  };
}

/**
 * Answers each request that does not reach its handler. If a hook fails, with 500: node:http would end the process for an
 * error of a listener, and anyone can send a request that is rejected.
 */
function admitter(
  decide: Decide<IncomingMessage>,
  { onError = print }: MiddlewareOptions<IncomingMessage, boolean>,
): (request: IncomingMessage, response: ServerResponse) => Promise<(Decision & { rejection?: undefined }) | undefined> {
  return async (request, response) => {
    try {
      const decision = await decide(request);
      if (decision.rejection) return void reject(response, decision.rejection);
      addHeaders(response, decision.headers);
      return watch(response, decision.held) ? decision : undefined;
    } catch (thrown) {
      const error = errorOf(thrown);
      if (!response.headersSent) {
        for (const name of response.getHeaderNames()) response.removeHeader(name);
        response.statusCode = 500;
        response.end();
      }
      try {
        onError(error, request);
      } catch {
        print(error);
      }
      return undefined;
    }
  };
}
