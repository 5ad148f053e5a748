import type { Context, MiddlewareHandler, Next } from "hono";
import { routePath } from "hono/route";
import type { HeldAnswer } from "./held-answer.ts";
import { has } from "./limit-headers.ts";
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
    prepare(context, headers);
    if (held) await whileHeld(context, held, next);
    else await next();
    complete(context, headers);
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

/** Adds headers to the answer that the handler is going to make: the outer middleware is the first. */
function prepare(context: Context, headers: Readonly<Record<string, string>>): void {
  const added = Object.entries(headers);
  if (added.length > 0) remember(context);
  for (const [name, value] of added) context.header(name, value, { append: true });
}

/** The member of a context with the headers of its answer as the handler made it. */
const MADE = Symbol("@latchkey/sdk made");

type Made = { [MADE]?: Headers | undefined };

/** Prototypes of contexts that remember, by the one of Hono, of which a program can have several copies. */
const remembering = new WeakMap<object, object>();

/**
 * Remembers the headers of what becomes `res` of a context. If a middleware read `res` before there is an answer, as `cors` does,
 * Hono replaces headers of the answer by those that were prepared.
 */
function remember(context: Context): void {
  const prototype = Object.getPrototypeOf(context) as object;
  if (MADE in prototype) return;
  let own = remembering.get(prototype);
  if (!own) {
    const { get, set } = Object.getOwnPropertyDescriptor(prototype, "res") ?? {};
    if (!get || !set) return;
    own = Object.create(prototype, {
      [MADE]: { value: undefined, writable: true },
      res: {
        get,
        set(this: Context & Made, answer: Response | undefined) {
          if (answer) this[MADE] = answer.headers;
          set.call(this, answer);
        },
      },
    }) as object;
    remembering.set(prototype, own);
  }
  // A property of each context would make it an object that is slow to use.
  Object.setPrototypeOf(context, own);
}

/** Joins those that the answer has not: it was made without the context, or with values instead. That copies it, which is slow. */
function complete(context: Context, headers: Readonly<Record<string, string>>): void {
  const made = (context as Made)[MADE];
  const before: Record<string, string> = {};
  const after: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const sent = context.res.headers.get(name);
    const own = made?.get(name);
    if (!has(sent, value)) before[name] = value;
    else if (own && !has(own, value) && !has(sent, own)) after[name] = own;
  }
  if (Object.keys(before).length > 0) replace(context, withHeaders(context.res, before));
  if (Object.keys(after).length > 0) replace(context, withHeaders(context.res, after, "after"));
}

/** Sends another answer than that of the handler. */
function replace(context: Context, answer: Response): void {
  if (answer === context.res) return;
  const made = (context as Made)[MADE];
  // Otherwise the headers of both were joined.
  context.res = undefined;
  context.res = answer;
  if (made) (context as Made)[MADE] = made;
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
    prepare(context, decision.headers);
    await next();
    complete(context, decision.headers);
  };
}
