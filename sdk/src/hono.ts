import type { Context, MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import {
  type KeyOf,
  limiter,
  type RatelimitOptions,
  type RequestReader,
  type VerifiedKey,
  type VerifyOptions,
  verifier,
} from "./middleware.ts";
import { rejected, valuesIn } from "./web-messages.ts";

export type { KeyOf, RatelimitOptions, VerifiedKey, VerifyOptions } from "./middleware.ts";
export type { Rejection, RejectionAnswer, RejectionCode } from "./rejection.ts";

declare module "hono" {
  interface ContextVariableMap {
    /** The key that `verify` accepted. Handlers that are chained to it know that there is one. */
    latchkey?: VerifiedKey;
  }
}

const reader: RequestReader<Context> = {
  method: ({ req }) => req.method,
  values: ({ req }, header) => valuesIn(req.raw.headers, header),
  // That of the handler, not of the middleware.
  route: (context) => routePath(context, -1),
};

/**
 * A middleware for Hono that verifies the key of each request. Handlers find it in `c.var.latchkey`.
 *
 * ```ts
 * app.use(verify({ apiId }));
 * ```
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function verify<FailOpen extends boolean = false>(
  options: VerifyOptions<Context, FailOpen>,
): MiddlewareHandler<{ Variables: { latchkey: KeyOf<FailOpen> } }> {
  const decide = verifier(options, reader);
  return async (context, next) => {
    const decision = await decide(context);
    if (decision.rejection) return rejected(decision.rejection);
    context.set("latchkey", decision.key as KeyOf<FailOpen>);
    await next();
    addHeaders(context, decision.headers);
  };
}

/**
 * A middleware for Hono that limits requests.
 *
 * @throws {TypeError} for an option that cannot be used.
 */
export function ratelimit(options: RatelimitOptions<Context, boolean>): MiddlewareHandler {
  const decide = limiter(options, reader);
  return async (context, next) => {
    const decision = await decide(context);
    if (decision.rejection) return rejected(decision.rejection);
    await next();
    addHeaders(context, decision.headers);
  };
}

/** Adds headers to the answer of the handler, before those that are there: the outer middleware is the first. */
function addHeaders(context: Context, headers: Readonly<Record<string, string>>): void {
  // The answer to an upgrade cannot be copied.
  if (context.res.status === 101) return;
  for (const [name, value] of Object.entries(headers)) {
    const inner = context.res.headers.get(name);
    context.header(name, inner === null ? value : `${value}, ${inner}`);
  }
}
