import type { IncomingMessage, ServerResponse } from "node:http";
import { type KeyOf, limiter, type RatelimitOptions, type VerifyOptions, verifier } from "./middleware.ts";
import { addHeaders, messageReader, reject } from "./node-messages.ts";

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
  const decide = verifier(options, messageReader);
  return async (request, response) => {
    const decision = await decide(request);
    if (decision.rejection) return reject(response, decision.rejection);
    addHeaders(response, decision.headers);
    await handler(request, response, decision.key as KeyOf<FailOpen>);
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
  const decide = limiter(options, messageReader);
  return async (request, response, ...rest) => {
    const decision = await decide(request);
    if (decision.rejection) return reject(response, decision.rejection);
    addHeaders(response, decision.headers);
    await handler(request, response, ...rest);
  };
}
