import { type KeyOf, limiter, type RatelimitOptions, type VerifyOptions, verifier } from "./middleware.ts";
import { answered, rejected, webReader, withHeaders } from "./web-messages.ts";

export type { EndedAnswer, HoldOptions } from "./held-answer.ts";
export type { OpenHold, Settlement } from "./hold.ts";
export type { KeyOf, RatelimitOptions, VerifiedKey, VerifyOptions } from "./middleware.ts";
export type { Rejection, RejectionAnswer, RejectionCode } from "./rejection.ts";

/**
 * A fetch handler that verifies the key of a request before it calls `handler`.
 *
 * ```ts
 * export default { fetch: verify({ apiId }, (request, key) => new Response(`Hello ${key.keyId}`)) };
 * ```
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function verify<FailOpen extends boolean = false, Rest extends unknown[] = unknown[]>(
  options: VerifyOptions<Request, FailOpen>,
  handler: (request: Request, key: KeyOf<FailOpen>, ...rest: Rest) => Response | Promise<Response>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const decide = verifier(options, webReader);
  return async (request, ...rest) => {
    const decision = await decide(request);
    if (decision.rejection) return rejected(decision.rejection);
    const { key, headers, held } = decision;
    const handle = () => handler(request, key as KeyOf<FailOpen>, ...rest);
    return withHeaders(await answered(held, request, rest, handle), headers, request);
  };
}

/**
 * A fetch handler that limits requests before it calls `handler`, with what it was called with: further arguments are
 * those of the platform, such as `env` of Workers.
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function ratelimit<Incoming extends Request, Rest extends unknown[]>(
  options: RatelimitOptions<Incoming, boolean>,
  handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
): (request: Incoming, ...rest: Rest) => Promise<Response> {
  const decide = limiter(options, webReader);
  return async (request, ...rest) => {
    const decision = await decide(request);
    if (decision.rejection) return rejected(decision.rejection);
    return withHeaders(await handler(request, ...rest), decision.headers, request);
  };
}
