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
import { answered, rejected, valuesIn } from "./web-messages.ts";

export type { EndedAnswer, HoldOptions } from "./held-answer.ts";
export type { OpenHold, Settlement } from "./hold.ts";
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
    const { key, headers, held } = decision;
    context.set("latchkey", key as KeyOf<FailOpen>);
    const { signal } = context.req.raw;
    const answer = await answered(held, signal, held ? platformOf(context) : [], async () => {
      await next();
      return context.res;
    });
    if (answer !== context.res) {
      // Otherwise the headers of both were joined.
      context.res = undefined;
      context.res = answer;
    }
    addHeaders(context, headers);
    return undefined;
  };
}

/** The context of Workers, if there is one: reading it is an error elsewhere. */
function platformOf(context: Context): unknown[] {
  try {
    return [context.executionCtx];
  } catch {
    return [];
  }
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
