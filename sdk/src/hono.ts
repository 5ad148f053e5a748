import type { Context, MiddlewareHandler, Next } from "hono";
import { routePath } from "hono/route";
import type { HeldAnswer } from "./held-answer.ts";
import { NO_HEADERS } from "./limit-headers.ts";
import {
  type KeyOf,
  limiter,
  type RatelimitOptions,
  type RequestReader,
  type VerifiedKey,
  type VerifyOptions,
  verifier,
} from "./middleware.ts";
import { answered, rejected, valuesIn, withHeaders } from "./web-messages.ts";

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
    if (held) await whileHeld(context, held, next);
    else await next();
    addHeaders(context, headers);
    return undefined;
  };
}

/** Runs what comes after the middleware, and ends the hold of its answer when that has ended. */
async function whileHeld(context: Context, held: HeldAnswer, next: Next): Promise<void> {
  const answer = await answered(held, context.req.raw, platformOf(context), async () => {
    await next();
    return context.res;
  });
  replace(context, answer);
}

/** Adds headers to the answer of the handler. */
function addHeaders(context: Context, headers: Readonly<Record<string, string>>): void {
  if (headers !== NO_HEADERS) replace(context, withHeaders(context.res, headers, context.req.raw));
}

/** Sends another answer than that of the handler. */
function replace(context: Context, answer: Response): void {
  if (answer === context.res) return;
  // Otherwise the headers of both were joined.
  context.res = undefined;
  context.res = answer;
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
