import { ratelimit as ratelimitOfFetch } from "./fetch.ts";
import { type KeyOf, type RatelimitOptions, type VerifyOptions, verifier } from "./middleware.ts";
import { answered, rejected, webReader, withHeaders } from "./web-messages.ts";

export type { EndedAnswer, HoldOptions } from "./held-answer.ts";
export type { OpenHold, Settlement } from "./hold.ts";
export type { KeyOf, RatelimitOptions, VerifiedKey, VerifyOptions } from "./middleware.ts";
export type { Rejection, RejectionAnswer, RejectionCode } from "./rejection.ts";

/**
 * A route handler of Next.js that verifies the key of a request before it calls `handler`.
 *
 * ```ts
 * export const GET = verify({ apiId }, (request, context, key) => Response.json({ hello: key.keyId }));
 * ```
 *
 * The options and the environment are read at the first request: `next build` imports route handlers on machines without
 * settings. An option that cannot be used is a `TypeError` then, and every request is answered with 500.
 */
export function verify<NextRequest extends Request, Context, FailOpen extends boolean = false>(
  options: VerifyOptions<NextRequest, FailOpen>,
  handler: (request: NextRequest, context: Context, key: KeyOf<FailOpen>) => Response | Promise<Response>,
): (request: NextRequest, context: Context) => Promise<Response> {
  let decide: ReturnType<typeof verifier<NextRequest>> | undefined;
  return async (request, context) => {
    decide ??= verifier(options, webReader);
    const decision = await decide(request);
    if (decision.rejection) return rejected(decision.rejection);
    const { key, headers, held } = decision;
    const handle = () => handler(request, context, key as KeyOf<FailOpen>);
    return withHeaders(await answered(held, request, [], handle), headers, request);
  };
}

/**
 * A route handler of Next.js that limits requests before it calls `handler`, with what it was called with. Its options are
 * read at the first request, as those of `verify`.
 */
export function ratelimit<Incoming extends Request, Rest extends unknown[]>(
  options: RatelimitOptions<Incoming, boolean>,
  handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
): (request: Incoming, ...rest: Rest) => Promise<Response> {
  let limited: typeof handler | undefined;
  return async (...call) => {
    limited ??= ratelimitOfFetch(options, handler);
    return await limited(...call);
  };
}
