import { type KeyOf, type VerifyOptions, verifier } from "./middleware.ts";
import { rejected, webReader, withHeaders } from "./web-messages.ts";

export { ratelimit } from "./fetch.ts";
export type { KeyOf, RatelimitOptions, VerifiedKey, VerifyOptions } from "./middleware.ts";
export type { Rejection, RejectionAnswer, RejectionCode } from "./rejection.ts";

/**
 * A route handler of Next.js that verifies the key of a request before it calls `handler`.
 *
 * ```ts
 * export const GET = verify({ apiId }, (request, context, key) => Response.json({ hello: key.keyId }));
 * ```
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function verify<NextRequest extends Request, Context, FailOpen extends boolean = false>(
  options: VerifyOptions<NextRequest, FailOpen>,
  handler: (request: NextRequest, context: Context, key: KeyOf<FailOpen>) => Response | Promise<Response>,
): (request: NextRequest, context: Context) => Promise<Response> {
  const decide = verifier(options, webReader);
  return async (request, context) => {
    const decision = await decide(request);
    if (decision.rejection) return rejected(decision.rejection);
    return withHeaders(await handler(request, context, decision.key as KeyOf<FailOpen>), decision.headers);
  };
}
