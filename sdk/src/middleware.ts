import { type Awaitable, atOnce, attempt, then } from "./at-once.ts";
import type { LatchkeyOptions } from "./call.ts";
import { Latchkey } from "./client.ts";
import { LatchkeyError } from "./error.ts";
import { HeldAnswer, type HoldOptions } from "./held-answer.ts";
import { HoldKeeper, madeHold, type OpenHold, TIME_NAMES, timesOf } from "./hold.ts";
import { limitHeaders, limitsOf, NO_HEADERS } from "./limit-headers.ts";
import { errorOf, print, safely } from "./on-error.ts";
import type { VerifyKeyInput, VerifyKeyOutput } from "./operations.ts";
import { checkNames, type Names } from "./option-names.ts";
import { challenge, DETAILS, type Rejection, type RejectionAnswer, rejectionOf, retryAfter } from "./rejection.ts";

/** A key in a request: printable, without space and comma, because repeated headers are joined by commas. */
const KEY = /^[\x21-\x2b\x2d-\x7e]{1,512}$/;
const BEARER_KEY = /^bearer +[\x21-\x2b\x2d-\x7e]{1,512}$/i;
const HEADER_NAME = /^[A-Za-z0-9-]{1,64}$/;
const METHOD = /^[A-Z]{1,20}$/;
const METHOD_TAGS = new Map(
  ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => [method, `method=${method}`]),
);
const TAG_LENGTH_MAX = 128;

/** A value, or a function that gets it from a request. */
export type PerRequest<Request, Value> = Value | ((request: Request) => Value | Promise<Value>);

/** A key that was verified, as `keys.verifyKey` returns it. */
export type VerifiedKey = Omit<VerifyKeyOutput, "hold"> & {
  valid: true;
  code: "VALID";
  keyId: string;
  apiId: string;
  /** The hold of the request, if `verify` has the option `hold`. */
  hold?: OpenHold;
};

/** What a handler gets: without `failOpen` there always is a key. */
export type KeyOf<FailOpen extends boolean> = FailOpen extends true ? VerifiedKey | undefined : VerifiedKey;

/** Options of `verify` and `ratelimit`. `Request` is what the framework passes to a middleware. */
export interface MiddlewareOptions<Request, FailOpen extends boolean> {
  /** A client, or the options of one. Omitted: `LATCHKEY_URL` and `LATCHKEY_ROOT_KEY` of the environment. */
  readonly latchkey?: Latchkey | LatchkeyOptions | undefined;
  /**
   * Whether requests pass while the service cannot be reached or fails. Default: false; they are answered with 503. A wrong
   * configuration, such as an unknown root key, never lets requests pass.
   */
  readonly failOpen?: FailOpen | undefined;
  /**
   * Called when a request could not be decided or its hold not be settled, with the reason. Default: prints it with
   * `console.error`.
   */
  readonly onError?: ((error: Error, request: Request) => void) | undefined;
  /** Changes the answer to a request that is rejected. Members that it leaves out stay as they are. */
  readonly onReject?:
    | ((rejection: Rejection, request: Request) => Partial<RejectionAnswer> | Promise<Partial<RejectionAnswer>>)
    | undefined;
  /**
   * The address of the end user: for `verify`, that of the allow-list of the API, which needs a root key; for `ratelimit`,
   * that of `identifier: "address"`. Headers such as `X-Forwarded-For` are only as true as the proxy that sets them.
   */
  readonly address?: ((request: Request) => string | undefined) | undefined;
}

/** Options of `verify`. */
export interface VerifyOptions<Request, FailOpen extends boolean = false> extends MiddlewareOptions<Request, FailOpen> {
  /** The API whose keys are accepted, or several. */
  readonly apiId: string | readonly string[];
  /** A permission query that the key must satisfy, such as `documents.read AND (admin OR billing.write)`. */
  readonly permissions?: PerRequest<Request, string> | undefined;
  /** The credits of the request, if the key has a balance. Default: 1. 0: check without charging. */
  readonly cost?: PerRequest<Request, number> | undefined;
  /**
   * Holds the cost while the handler answers, and charges what the answer did cost when it has ended. It needs a root key.
   * With `{}`, that is what the handler reported with `hold.report`, or else `cost`.
   */
  readonly hold?: HoldOptions<Request> | undefined;
  /**
   * The limits to charge, by name; with `limit` and `duration`, a limit of its own, which needs a root key. Omitted: those of
   * the key and its identity with `autoApply`.
   */
  readonly limits?: PerRequest<Request, NonNullable<VerifyKeyInput["ratelimits"]>> | undefined;
  /** The header with the key alone. Default: `Authorization`, as `Bearer <key>`. */
  readonly header?: string | undefined;
  /** Finds the key elsewhere. Undefined: the request has none. */
  readonly key?: ((request: Request) => string | undefined) | undefined;
  /** The route in the analytics, as the tag `path=…`, such as `/users/:id`. Default: that of the framework, if it has one. */
  readonly path?: string | undefined;
  /** Other tags in the analytics. Method and route are always sent. */
  readonly tags?: PerRequest<Request, readonly string[]> | undefined;
}

/** Options of `ratelimit`. */
export interface RatelimitOptions<Request, FailOpen extends boolean = false>
  extends MiddlewareOptions<Request, FailOpen> {
  /** Name or id of the namespace. A new name creates a namespace. */
  readonly namespace: string;
  /** Maximum cost per window, for each identifier. */
  readonly limit: PerRequest<Request, number>;
  /** Length of the window in milliseconds. */
  readonly duration: PerRequest<Request, number>;
  /** Cost of the request. Default: 1. */
  readonly cost?: PerRequest<Request, number> | undefined;
  /**
   * What is counted:
   *
   * - `owner`: the `externalId` of the identity of the key that `verify` accepted before; without an identity, its `keyId`.
   * - `address`: the address of the connection, of an IPv6 address the first 64 bits.
   * - the text that a function returns.
   */
  readonly identifier: "owner" | "address" | ((request: Request) => string | Promise<string>);
}

const SHARED_NAMES: Names<MiddlewareOptions<object, false>> = {
  latchkey: true,
  failOpen: true,
  onError: true,
  onReject: true,
  address: true,
};
const VERIFY_NAMES: Names<VerifyOptions<object>> = {
  ...SHARED_NAMES,
  apiId: true,
  permissions: true,
  cost: true,
  hold: true,
  limits: true,
  header: true,
  key: true,
  path: true,
  tags: true,
};
const HOLD_NAMES: Names<HoldOptions<object>> = { ...TIME_NAMES, settle: true, waitUntil: true };
const RATELIMIT_NAMES: Names<RatelimitOptions<object>> = {
  ...SHARED_NAMES,
  namespace: true,
  limit: true,
  duration: true,
  cost: true,
  identifier: true,
};

/** How the middleware reads the requests of a framework. */
export interface RequestReader<Request> {
  method(request: Request): string;
  /** Every value of a header, or all of them joined by commas. */
  values(request: Request, header: string): readonly string[];
  /** The pattern of the route; undefined if the framework knows none. */
  route?(request: Request): string | undefined;
  /** The address of the connection, or the one that the configuration of the framework trusts. */
  address?(request: Request): string | undefined;
}

/** A request that reaches its handler. */
interface Passed {
  readonly rejection?: undefined;
  /** Undefined from `ratelimit`, and if the request passes without a verification. */
  readonly key: VerifiedKey | undefined;
  /** Headers for the answer of the handler. */
  readonly headers: Readonly<Record<string, string>>;
  /** What must learn of the answer. Only the first middleware that a request passes with this decision gets it. */
  readonly held?: HeldAnswer | undefined;
}

/** Whether a request reaches its handler. */
export type Decision<Answer = RejectionAnswer> = Passed | { readonly rejection: Answer };

/** Decides about a request, at once if nothing must be awaited. Never throws: hooks that fail are a promise that rejects. */
export type Decide<Request> = (request: Request) => Awaitable<Decision>;

/** A request at one middleware. */
interface Visit {
  readonly decider: object;
  decision: Awaitable<Decision> | undefined;
  /** At `verify`: the key that it let pass; null if it has not. */
  key: VerifiedKey | null | undefined;
  /** At the middleware before. */
  readonly before: Visit | undefined;
}

/** The member of a request with its last visit. A map of requests would cost a microsecond per request, and the collector more. */
const VISIT = Symbol("@latchkey/sdk visit");

type Visited = { [VISIT]?: Visit | undefined };

/**
 * Verifies the keys of requests. A request that comes by again is not verified again.
 *
 * @throws {TypeError} for an option that cannot be used. It names the option.
 */
export function verifier<Request extends object>(
  options: VerifyOptions<Request, boolean>,
  reader: RequestReader<Request>,
): Decide<Request> {
  checkNames(options, VERIFY_NAMES);
  const { keys: operations, holds } = clientOf(options);
  const { hold, onError = print } = options;
  if (hold) checkNames(hold, HOLD_NAMES, "hold.");
  const times = hold && timesOf(hold, "hold.");
  const apis = typeof options.apiId === "string" ? [options.apiId] : options.apiId;
  if (!Array.isArray(apis) || apis.length === 0 || apis.some((api) => typeof api !== "string" || api === "")) {
    throw new TypeError(
      'The option `apiId` is missing: give the id of the API whose keys are accepted, such as "api_123".',
    );
  }
  const header = options.header ?? "Authorization";
  if (!HEADER_NAME.test(header)) throw new TypeError("The option `header` must be the name of a header.");
  if (options.header !== undefined && options.key) {
    throw new TypeError("The options `header` and `key` exclude each other.");
  }
  const place = options.key ? undefined : header;
  const valuesFor = valuesOf(["cost", "permissions", "limits", "tags", "address"], options);

  const holdOf = (request: Request, key: VerifiedKey, cost = 1): HeldAnswer | undefined => {
    if (!hold || !times) return undefined;
    const report = safely((error) => onError(error, request));
    const keeper = new HoldKeeper(holds, madeHold(key), cost, times, report);
    key.hold = keeper.open;
    const { settle, waitUntil } = hold;
    const held = new HeldAnswer(keeper, cost, reader.method(request), settle && ((ended) => settle(ended, request)));
    try {
      waitUntil?.(held.done, request);
    } catch (error) {
      report(errorOf(error));
    }
    return held;
  };

  const rejectionFor = (data: VerifyKeyOutput, requestId: string, headers: Passed["headers"]): Rejection => {
    const { code } = data;
    if (code === "VALID" || !Object.hasOwn(DETAILS, code))
      throw new TypeError(`The service answered with an unknown code: ${JSON.stringify(code)}.`);
    const isUnknown = code === "NOT_FOUND" || code === "EXPIRED" || code === "DISABLED";
    return rejectionOf(code, DETAILS[code], requestId, {
      ...(isUnknown && challenge(place, "invalid_token")),
      ...(code === "RATE_LIMITED" && retryAfter(data.retryAfter)),
      ...headers,
    });
  };

  return decider(options, "The API key cannot be verified right now. Try again shortly.", (request, visit) => {
    const found = options.key ? keyOf(options.key(request)) : keyIn(reader.values(request, header), header);
    if ("rejection" in found) return found;
    // If it stays undecided, `ratelimit` must know that a verification was tried.
    visit.key = null;
    const path = options.path ?? reader.route?.(request);
    return then(valuesFor(request), ({ cost, permissions, limits, tags = [], address }) => {
      const verified = atOnce(operations.verifyKey).call(operations, {
        key: found.key,
        keyspaces: apis,
        permissions,
        credits: cost === undefined ? undefined : { cost },
        hold: times && { ttl: times.ttl, onExpiry: times.onExpiry },
        ratelimits: limits,
        tags: tagsOf(tags, path, reader.method(request)),
        clientIp: address,
      });
      return then(verified, ({ data, requestId }) =>
        then(limitHeaders(limitsOf(data)), (headers): Decision<Rejection> => {
          const isValid = data.valid === true && data.code === "VALID";
          if (!isValid) return { rejection: rejectionFor(data, requestId, headers) };
          const key = data as VerifiedKey;
          visit.key = key;
          return { key, headers, held: holdOf(request, key, cost) };
        }),
      );
    });
  });
}

/**
 * Limits requests. One that comes by again is not counted again.
 *
 * @throws {TypeError} for an option that cannot be used. It names the option.
 */
export function limiter<Request extends object>(
  options: RatelimitOptions<Request, boolean>,
  reader: RequestReader<Request>,
): Decide<Request> {
  checkNames(options, RATELIMIT_NAMES);
  const { ratelimits: operations } = clientOf(options);
  const { namespace, identifier } = options;
  const address = options.address ?? reader.address;
  if (typeof namespace !== "string" || namespace === "") throw new TypeError("The option `namespace` is missing.");
  for (const name of ["limit", "duration"] as const) {
    if (options[name] === undefined) throw new TypeError(`The option \`${name}\` is missing.`);
  }
  if (identifier !== "owner" && identifier !== "address" && typeof identifier !== "function") {
    throw new TypeError('The option `identifier` must be "owner", "address" or a function.');
  }
  if (identifier === "address" && address === undefined) {
    throw new TypeError("The option `address` is missing: this framework does not know the address of the end user.");
  }

  const valuesFor = valuesOf(["duration", "limit", "cost"], options);

  return decider(options, "The limits cannot be checked right now. Try again shortly.", async (request) => {
    const counted =
      identifier === "owner"
        ? ownerOf(request)
        : identifier === "address"
          ? networkOf(present("address", address!(request)))
          : present("identifier", await identifier(request));
    const { duration, limit, cost } = await valuesFor(request);
    const { data, requestId } = await operations.limit({
      namespace,
      identifier: counted,
      limit: limit!,
      duration: duration!,
      cost,
    });
    if (typeof data.success !== "boolean" || !Number.isFinite(data.limit)) {
      throw new TypeError("The service answered without a decision. Is it too old or too new?");
    }
    const isOverridden = data.overrideId !== undefined;
    const { remaining, reset, retryAfter: wait, success } = data;
    const state = {
      name: namespace,
      limit: data.limit,
      remaining,
      reset,
      retryAfter: wait,
      exceeded: !success,
      duration: isOverridden ? undefined : duration,
      partition: counted,
    };
    // A limit in shadow mode denies nothing, and clients need not know it.
    const headers = await limitHeaders(data.shadow ? [] : [state]);
    if (success === true) return { key: undefined, headers };
    const detail = "A limit of requests has been reached.";
    return {
      rejection: rejectionOf("RATE_LIMITED", detail, requestId, { ...retryAfter(wait), ...headers }),
    };
  });
}

/** Whether the service is the reason why nothing was decided. End users can exhaust its look-ups with invented keys. */
function isOutage(error: unknown): boolean {
  return (
    error instanceof LatchkeyError &&
    error.type !== "aborted" &&
    error.type !== "application/lookups_exhausted" &&
    (error.status === undefined || error.status >= 500)
  );
}

/** Decides each request once. What `decide` throws is a rejection with 503, unless requests pass then. */
function decider<Request extends object>(
  { failOpen = false, onError = print, onReject }: MiddlewareOptions<Request, boolean>,
  undecided: string,
  decide: (request: Request, visit: Visit) => Awaitable<Decision<Rejection>>,
): Decide<Request> {
  const failed = (error: unknown, request: Request): Decision<Rejection> => {
    onError(errorOf(error), request);
    if (failOpen && (error instanceof Unverified || isOutage(error))) return { key: undefined, headers: NO_HEADERS };
    const { requestId, retryAfter: wait = 1_000 } = error instanceof LatchkeyError ? error : {};
    return { rejection: rejectionOf("UNDECIDED", undecided, requestId, retryAfter(wait)) };
  };
  const settle = (request: Request, visit: Visit): Awaitable<Decision> =>
    then(
      attempt(
        () => decide(request, visit),
        (error) => failed(error, request),
      ),
      (decision) => {
        const { rejection } = decision;
        if (!rejection || !onReject) return decision;
        return then<unknown, Decision>(onReject(rejection, request), (changed) => ({
          // A hook that only counts or logs returns nothing. That must not let the request pass.
          rejection: typeof changed === "object" && changed ? answerOf(rejection, changed) : rejection,
        }));
      },
    );
  return (request) => {
    const before = (request as Visited)[VISIT];
    const decision = decisionBy(settle, before);
    // The answer has the headers already, and its end is watched.
    if (decision) return then(decision, (known) => (known.rejection ? known : { key: known.key, headers: NO_HEADERS }));
    const visit: Visit = { decider: settle, decision: undefined, key: undefined, before };
    (request as Visited)[VISIT] = visit;
    visit.decision = attempt(
      () => settle(request, visit),
      // What a hook throws is the answer to the next visit too.
      (error) => Promise.reject(error),
    );
    return visit.decision;
  };
}

/** The answer to a rejected request with what a hook changed of it. */
function answerOf({ status, headers, body }: RejectionAnswer, changed: Partial<RejectionAnswer>): RejectionAnswer {
  return {
    status: changed.status ?? status,
    headers: changed.headers ?? headers,
    body: changed.body === undefined ? body : changed.body,
  };
}

/** What a middleware has decided at an earlier visit. */
function decisionBy(decider: object, last: Visit | undefined): Awaitable<Decision> | undefined {
  for (let visit = last; visit; visit = visit.before) if (visit.decider === decider) return visit.decision;
  return undefined;
}

function clientOf({ latchkey = {} }: MiddlewareOptions<never, boolean>): Latchkey {
  // Another copy of the package makes instances of another class.
  if ("keys" in latchkey) return latchkey;
  // Requests that wait for a service over its limit would pile up.
  return new Latchkey({ retryWaitMax: 0, ...latchkey });
}

type Values<Options, Name extends keyof Options> = { readonly [Each in Name]?: Resolved<Options[Each]> | undefined };

/** Finds the values of options for a request. Functions are called one after the other. */
function valuesOf<Request, Options extends object, Name extends keyof Options & string>(
  names: readonly Name[],
  options: Options,
): (request: Request) => Awaitable<Values<Options, Name>> {
  const isFunction = (name: Name) => typeof options[name] === "function";
  const fixed = Object.fromEntries(names.filter((name) => !isFunction(name)).map((name) => [name, options[name]]));
  const functions = names
    .filter(isFunction)
    .map((name) => [name, options[name] as (request: Request) => unknown] as const);
  return (request) =>
    functions.reduce<Awaitable<Values<Options, Name>>>(
      (before, [name, find]) =>
        then(before, (values) => then(find(request), (value) => ({ ...values, [name]: present(name, value) }))),
      fixed as Values<Options, Name>,
    );
}

// biome-ignore lint/suspicious/noExplicitAny: any function matches.
type Resolved<Option> = Exclude<Option, (...args: any) => any>;

/** What the function of an option returned. It must return something: otherwise what it decides would be left out. */
function present<Value>(name: string, value: Value): NonNullable<Value> {
  if (value !== undefined && value !== null && value !== "") return value;
  throw new TypeError(`The function in the option \`${name}\` returned nothing for a request.`);
}

type FoundKey = { readonly key: string } | { readonly rejection: Rejection };

/** The key in the values of a header. */
function keyIn(values: readonly string[], header: string): FoundKey {
  const isBearer = header.toLowerCase() === "authorization";
  const value = values[0]?.trim() ?? "";
  if (values.length === 0 || (value === "" && values.length === 1)) {
    const detail = `The request has no API key in the header ${header}.`;
    return { rejection: rejectionOf("MISSING", detail, undefined, challenge(header)) };
  }
  // A match would be an array for each request.
  if (values.length === 1 && (isBearer ? BEARER_KEY : KEY).test(value)) {
    return { key: isBearer ? value.slice(value.lastIndexOf(" ") + 1) : value };
  }
  const form = isBearer ? "`Bearer <key>`" : "the key alone";
  const detail = `The header ${header} must be there once, with ${form} as its value.`;
  return { rejection: rejectionOf("MALFORMED", detail, undefined, challenge(header, "invalid_request")) };
}

/** The key that the function of the options found. */
function keyOf(key: string | undefined): FoundKey {
  if (key === undefined || key === "") {
    return { rejection: rejectionOf("MISSING", "The request has no API key.", undefined, challenge(undefined)) };
  }
  if (KEY.test(key)) return { key };
  const detail = "The API key must have 1 to 512 visible ASCII characters, without commas.";
  return { rejection: rejectionOf("MALFORMED", detail, undefined, challenge(undefined, "invalid_request")) };
}

function tagsOf(own: readonly string[], path: string | undefined, method: string): string[] {
  const tags = [...own];
  if (path) tags.push(`path=${path}`.slice(0, TAG_LENGTH_MAX));
  const tag = METHOD_TAGS.get(method) ?? (METHOD.test(method) ? `method=${method}` : undefined);
  if (tag !== undefined) tags.push(tag);
  return tags;
}

/** `ratelimit` by owner, but no key was verified. */
class Unverified extends TypeError {}

function ownerOf(request: object): string {
  let isTried = false;
  for (let visit = (request as Visited)[VISIT]; visit; visit = visit.before) {
    if (visit.key) return visit.key.identity?.externalId ?? visit.key.keyId;
    isTried ||= visit.key === null;
  }
  if (isTried) throw new Unverified("The owner of the key is unknown, because it was not verified.");
  throw new TypeError('`identifier: "owner"` needs `verify` before `ratelimit`.');
}

/** The address, or of an IPv6 address the network: an end user has 2⁶⁴ addresses of it. */
function networkOf(address: string): string {
  const url = `http://[${address.replace(/%.*$/, "")}]`;
  if (!address.includes(":") || !URL.canParse(url)) return address;
  // The parser writes every address in one way.
  const [head = "", tail] = new URL(url).hostname.slice(1, -1).split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail ? tail.split(":") : [];
  const groups = [...first, ...Array<string>(8 - first.length - last.length).fill("0"), ...last];
  if (groups.slice(0, 6).join() === "0,0,0,0,0,ffff") {
    const [high, low] = groups.slice(6).map((group) => Number.parseInt(group, 16)) as [number, number];
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  return `${groups
    .slice(0, 4)
    .join(":")
    .replace(/(^|:)0(:0)*$/, "")}::/64`;
}
