import { Problem } from "../../../platform/rpc/problems.ts";

const HEADER_NAME = /^[A-Za-z0-9-]{1,64}$/;
/** Without what separates parameters, and what a quoted string escapes. */
const QUERY_NAME = /^[\x21\x23-\x25\x27-\x2a\x2c-\x3a\x3c\x3e-\x5b\x5d-\x7e]{1,64}$/;
/** A key in a header: printable, without space and comma, because proxies join repeated headers by commas. */
const KEY = /^[\x21-\x2b\x2d-\x7e]{1,512}$/;
const INLINE_LIMIT = /^(.+):(\d{1,15}):(\d{1,15})(ms|s|m|h|d)$/s;
const COST = /^\d{1,15}$/;
const METHOD = /^[A-Z]{1,20}$/;
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TAG_LENGTH_MAX = 128;

/** A parameter, with the field of `keys.verifyKey` that it sets, if there is one. */
export interface Parameter {
  readonly field?: string;
  readonly repeats?: boolean;
}

/** What a proxy says about a route, whatever its protocol is. */
export const commonParameters = {
  api: { field: "keyspaces", repeats: true },
  header: {},
  permission: { field: "permissions" },
  cost: { field: "credits" },
  limit: { field: "ratelimits", repeats: true },
  path: {},
  tag: { field: "tags", repeats: true },
} as const satisfies Readonly<Record<string, Parameter>>;

export type Parameters = ReadonlyMap<string, readonly string[]>;

/** How a protocol calls its parameters, for a proxy that is misconfigured. */
export interface ParameterPlace {
  /** "The proxy asks /auth/verify with a wrong query." */
  readonly mistake: string;
  /** The location of a parameter in errors begins with it. */
  readonly location: string;
  readonly known: Readonly<Record<string, Parameter>>;
}

/** @throws {Problem} `invalid_input`. */
export function collectParameters(entries: Iterable<[name: string, value: string]>, place: ParameterPlace): Parameters {
  const { known } = place;
  const parameters = new Map<string, string[]>();
  for (const [name, value] of entries) {
    const parameter = Object.hasOwn(known, name) ? known[name] : undefined;
    if (parameter === undefined) {
      throw misconfigured(place, name.slice(0, 50), `is unknown: use ${Object.keys(known).join(", ")}`);
    }
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else if (parameter.repeats) values.push(value);
    else throw misconfigured(place, name, "is there twice");
  }
  // A proxy that lets the end user's root key through would otherwise accept the keys of any workspace.
  // An empty value is that of a variable that the configuration of the proxy does not set.
  if (!parameters.get("api")?.some((value) => value !== "")) {
    throw misconfigured(place, "api", "is missing: add the id of the API, such as api=api_123");
  }
  return parameters;
}

/** What a verification gets besides the key. @throws {Problem} `invalid_input`. */
export function inputOf(parameters: Parameters, tags: readonly string[], place: ParameterPlace): object {
  const cost = parameters.get("cost")?.[0];
  if (cost !== undefined && !COST.test(cost)) throw misconfigured(place, "cost", "is not a whole number");
  return {
    keyspaces: parameters.get("api"),
    permissions: parameters.get("permission")?.[0],
    ...(cost !== undefined && { credits: { cost: Number(cost) } }),
    ratelimits: parameters.get("limit")?.map((limit) => {
      const [, name, quota, length, unit] = INLINE_LIMIT.exec(limit) ?? [];
      if (name === undefined) return { name: limit };
      return { name, limit: Number(quota), duration: Number(length) * UNITS[unit as keyof typeof UNITS] };
    }),
    ...(tags.length > 0 && { tags }),
  };
}

/** What is known of the request of the end user. */
export interface DescribedRequest {
  readonly method: unknown;
  /** Its path, with or without its query. */
  readonly uri: string | undefined;
}

/** The tags of the parameters, and those of the end user's request. `isSecret`: whether a text contains the key. */
export function tagsOf(
  parameters: Parameters,
  { method, uri }: DescribedRequest,
  isSecret: (text: string) => boolean,
): readonly string[] {
  let path = parameters.get("path")?.[0];
  // Queries can contain secrets, and paths this one.
  if (path === "*") path = uri === undefined || isSecret(uri) ? undefined : splitQuery(uri)[0];
  const tags = [...(parameters.get("tag") ?? [])];
  if (path) tags.push(`path=${path}`.slice(0, TAG_LENGTH_MAX).toWellFormed());
  if (typeof method === "string" && METHOD.test(method)) tags.push(`method=${method}`);
  return tags;
}

/** Where the key of the end user is. */
export interface KeyPlace {
  readonly in: "header" | "query";
  readonly name: string;
}

/** @throws {Problem} `invalid_input`. */
export function keyPlaceOf(parameters: Parameters, place: ParameterPlace): KeyPlace {
  const query = parameters.get("query")?.[0];
  const header = parameters.get("header")?.[0];
  if (query !== undefined) {
    if (header !== undefined) throw misconfigured(place, "query", "and header exclude each other");
    if (!QUERY_NAME.test(query)) throw misconfigured(place, "query", "is not the name of a parameter");
    return { in: "query", name: query };
  }
  if (header !== undefined && !HEADER_NAME.test(header)) {
    throw misconfigured(place, "header", "is not the name of a header");
  }
  return { in: "header", name: header ?? "Authorization" };
}

/** Why a request has no key that could be verified, with the error of RFC 6750, section 3.1. */
export interface KeyMistake {
  readonly code: "MISSING" | "MALFORMED";
  readonly detail: string;
  readonly error?: "invalid_request";
}

/** The key among the values of its place. */
export function readKey(values: readonly string[], { in: kind, name }: KeyPlace): { found: string } | KeyMistake {
  const text = values[0]?.trim() ?? "";
  const what = kind === "header" ? `header ${name}` : `parameter ${name} of the query`;
  if (text === "") return { code: "MISSING", detail: `The request has no API key in the ${what}.` };
  const isAuthorization = kind === "header" && name.toLowerCase() === "authorization";
  const key = isAuthorization ? /^bearer +(.*)$/is.exec(text)?.[1]?.trim() : text;
  if (values.length === 1 && key !== undefined && KEY.test(key)) return { found: key };
  const form = isAuthorization ? "`Bearer <key>`" : "the key alone";
  const detail = `The ${what} must be there once, with ${form} as its value.`;
  return { code: "MALFORMED", detail, error: "invalid_request" };
}

export function misconfigured(place: ParameterPlace, parameter: string, message: string): Problem {
  return new Problem("invalid_input", `${place.mistake} ${parameter}: ${message}`, {
    errors: [{ location: `${place.location}/${parameter}`, message }],
  });
}

export function splitQuery(url: string): [path: string, query?: string] {
  const at = url.indexOf("?");
  return at < 0 ? [url] : [url.slice(0, at), url.slice(at + 1)];
}
