import type { Clock } from "../../../../../../engine/src/clock/clock.ts";
import { then } from "../../../../../../engine/src/clock/then.ts";
import { type AddressList, callerAddress } from "../../../../../../engine/src/rules/address.ts";
import { grpcMethodsUsing } from "../../../../platform/grpc/method.ts";
import type { StructObject, StructValue } from "../../../../platform/grpc/struct.ts";
import { byTightness } from "../../../../platform/rpc/limit-fields.ts";
import type { MeteredHandler } from "../../../../platform/rpc/operation.ts";
import { Problem, problems } from "../../../../platform/rpc/problems.ts";
import { compiledSchema, validate } from "../../../../platform/rpc/validate.ts";
import type { Services } from "../../../services.ts";
import { type VerifyKeyAnswer, verifyKey } from "../../verifyKey.ts";
import { type Decision, decide, judgeFailure, META_LENGTH_MAX, rejectMistake } from "../decision.ts";
import {
  collectParameters,
  commonParameters,
  inputOf,
  type KeyPlace,
  keyPlaceOf,
  misconfigured,
  type ParameterPlace,
  type Parameters,
  readKey,
  splitQuery,
  tagsOf,
} from "../parameters.ts";
import { type CheckRequest, readCheckRequest, writeCheckResponse } from "./messages.ts";

const NAME = "envoy.service.auth.v3.Authorization/Check";

/** Envoy takes 60 KiB of headers by default, and sends them all. */
const MESSAGE_BYTES_MAX = 128 * 1024;

/** Deeper metadata of keys is left out, like longer one: Envoy reads no message with more than 100 levels. */
const META_DEPTH_MAX = 16;

const place: ParameterPlace = {
  mistake: "The route has wrong context_extensions.",
  location: "context_extensions",
  known: { ...commonParameters, query: {}, remove_key: {} },
};

/** What `Check` uses. */
export type CheckServices = Pick<Services, "verification" | "gateways">;

/** Operations have forgotten the type of their services. */
const handle = verifyKey.handle as MeteredHandler<CheckServices, typeof verifyKey.declaration>;

/** Codes of google.rpc.Code by the status of a denial. Envoy shows them in its logs and statistics. */
const CODES: Readonly<Record<number, number>> = { 400: 3, 401: 16, 402: 8, 403: 7, 429: 8 };
const UNKNOWN = 2;

/** The units of Envoy's rate limits, by their length in milliseconds. */
const units: ReadonlyMap<number, string> = new Map([
  [1_000, "SECOND"],
  [60_000, "MINUTE"],
  [3_600_000, "HOUR"],
  [86_400_000, "DAY"],
]);

/**
 * `Check` of envoy.service.auth.v3: what `/auth/verify` decides, as Envoy's filter `ext_authz` asks over gRPC. The route says in
 * its `context_extensions` what it needs, under the names of the parameters there.
 *
 * A denial is an answer. If the service cannot decide, the call fails, so that `failure_mode_allow` applies.
 */
export const check = grpcMethodsUsing<CheckServices>()(NAME, {
  messageBytesMax: MESSAGE_BYTES_MAX,
}).handle((message, services, context) =>
  answerCheck(message, {
    clock: context.clock,
    requestId: context.requestId,
    trustedProxies: services.gateways.trustedProxies,
    verify: (body, address) =>
      then(
        handle(validate(compiledSchema(verifyKey.declaration.input), body, ""), services, { ...context, address }),
        (text) => JSON.parse(text as string) as VerifyKeyAnswer,
      ),
  }),
);

/** How a `Check` is answered. */
export interface CheckParts {
  readonly clock: Pick<Clock, "now">;
  /** Names the verification in the log. Read after it. */
  readonly requestId: string;
  /** Proxies whose `X-Forwarded-For` counts. */
  readonly trustedProxies: AddressList | null;
  /**
   * Verifies a key by the body of a call of `keys.verifyKey`, for the address of the end user.
   *
   * @throws {Problem} or rejects with the problem of the call; with anything else if the `Check` fails with it.
   */
  verify(body: object, address: string): VerifyKeyAnswer | Promise<VerifyKeyAnswer>;
}

/** Answers a `CheckRequest`. */
export function answerCheck(message: Buffer, parts: CheckParts): Uint8Array | Promise<Uint8Array> {
  const request = readCheckRequest(message);
  return caught(
    () => then(authorize(request, parts), (checked) => answer(request, checked, parts.requestId)),
    (error) => answer(request, { decision: misconfiguration(error) }, parts.requestId),
  );
}

interface Checked {
  readonly decision: Decision;
  /** Where the key is, if the application must not get it. */
  readonly removed?: KeyPlace | undefined;
  /** The answer of the verification; undefined if none was made. */
  readonly data?: VerifyKeyAnswer;
}

/** @throws {Problem} or rejects: `invalid_input` if the route is misconfigured, and any other if the service cannot decide. */
function authorize(request: CheckRequest, { clock, trustedProxies, verify }: CheckParts): Checked | Promise<Checked> {
  const parameters = readParameters(request);
  const keyPlace = keyPlaceOf(parameters, place);
  const removed = isTrue(parameters, "remove_key") ? keyPlace : undefined;
  const key = readKey(valuesOf(request, keyPlace), keyPlace);
  if (!("found" in key)) return { decision: rejectMistake(key, keyPlace) };
  const { method, path } = request;
  const tags = tagsOf(parameters, { method, uri: path }, (text) => text.includes(key.found));
  const body = { key: key.found, ...inputOf(parameters, tags, place) };
  return caught<Checked>(
    () =>
      then(verify(body, addressOf(request, trustedProxies)), (data) => ({
        decision: decide(data, keyPlace, clock.now()),
        removed,
        data,
      })),
    (error) => ({ decision: judge(error, keyPlace) }),
  );
}

/** The decision on a verification that was not made. @throws what says that there is none. */
function judge(error: unknown, keyPlace: KeyPlace): Decision {
  if (!(error instanceof Problem)) throw error;
  const { status, type } = problems[error.code];
  const failed = { status, type, detail: error.message, errors: error.errors };
  const judged = judgeFailure(failed, keyPlace, place, "the metadata authorization");
  if (judged === undefined || judged instanceof Problem) throw judged ?? error;
  return judged;
}

/** What a function gives, or what `recover` makes of its error. Without a promise if it waits for nothing. */
function caught<T>(run: () => T | Promise<T>, recover: (error: unknown) => T): T | Promise<T> {
  try {
    const result = run();
    return result instanceof Promise ? result.catch(recover) : result;
  } catch (error) {
    return recover(error);
  }
}

/** A list in one text has commas between its values, and %2C for a comma in one. */
function readParameters({ contextExtensions }: CheckRequest): Parameters {
  const entries = contextExtensions.flatMap(([name, value]): [string, string][] => {
    if (!(Object.hasOwn(place.known, name) && place.known[name]?.repeats)) return [[name, value]];
    return value.split(",").map((one) => [name, decoded(name, one.trim())]);
  });
  return collectParameters(entries, place);
}

function decoded(name: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw misconfigured(place, name, "has a % that begins no escape: write %25");
  }
}

function isTrue(parameters: Parameters, name: string): boolean {
  const value = parameters.get(name)?.[0] ?? "false";
  if (value !== "true" && value !== "false") throw misconfigured(place, name, "is neither true nor false");
  return value === "true";
}

/** Every value of the place of the key. Envoy joins those of a header by commas, unless it sends raw headers. */
function valuesOf({ headers, path }: CheckRequest, { in: kind, name }: KeyPlace): string[] {
  if (kind === "query") return new URLSearchParams(splitQuery(path)[1] ?? "").getAll(name);
  const wanted = name.toLowerCase();
  return headers.filter(([header]) => header.toLowerCase() === wanted).map(([, value]) => value);
}

/** The address of the end user: the last hop of Envoy, or what trusted proxies say before it. */
function addressOf({ source, headers }: CheckRequest, trustedProxies: AddressList | null): string {
  const forwarded = headers.filter(([name]) => name.toLowerCase() === "x-forwarded-for").map(([, value]) => value);
  return callerAddress(source, forwarded.length === 0 ? undefined : forwarded.join(","), trustedProxies);
}

/** @throws what is no mistake of the route. */
function misconfiguration(failure: unknown): Decision {
  if (!(failure instanceof Problem) || failure.code !== "invalid_input") throw failure;
  const { code, message, errors } = failure;
  const { status, title, type } = problems[code];
  const error = { title, detail: message, status, type: `/errors/${type}`, errors };
  return { status, owner: {}, headers: {}, error };
}

function answer(request: CheckRequest, { decision, removed: keyPlace, data }: Checked, requestId: string): Uint8Array {
  const { status, owner, headers, error } = decision;
  const metadata = metadataOf(decision, data);
  if (error !== undefined) {
    const body = JSON.stringify({ meta: { requestId }, error });
    const type = status === 429 ? "application/problem+json" : "application/json";
    const own = { "Content-Type": type, "X-Request-Id": requestId, "Cache-Control": "no-store", ...headers };
    return writeCheckResponse({
      code: CODES[status] ?? UNKNOWN,
      denied: { status, headers: entriesOf(own), body },
      metadata,
    });
  }
  const owned = entriesOf(owner);
  const set = owned.filter(([, value]) => value !== "");
  const removed = new Set(owned.filter(([, value]) => value === "").map(([name]) => name));
  for (const [spelled] of request.headers) {
    // Applications take other spellings for the headers of the service too.
    const name = spelled.toLowerCase();
    if (name.includes("latchkey") && !set.some(([of]) => of === name)) removed.add(name);
  }
  if (keyPlace?.in === "header") removed.add(keyPlace.name.toLowerCase());
  const ok = {
    headers: set,
    headersToRemove: [...removed],
    responseHeaders: entriesOf(headers),
    queryParametersToRemove: keyPlace?.in === "query" ? [keyPlace.name] : [],
  };
  return writeCheckResponse({ code: 0, ok, metadata });
}

/** Envoy wants names in lower case. */
function entriesOf(headers: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
}

/** What Envoy's own limits and logs can use. */
function metadataOf({ owner, headers }: Decision, data: VerifyKeyAnswer | undefined): StructObject {
  const code = data?.code ?? owner["X-Latchkey-Code"] ?? headers["X-Latchkey-Code"] ?? "MISCONFIGURED";
  if (data === undefined) return { code };
  const { keyId, apiId, identity, plan, credits, ratelimits = [], meta = {} } = data;
  // Envoy enforces it.
  const inForce = ratelimits.filter(({ shadow }) => !shadow);
  const limit = byTightness(inForce).find(({ duration }) => units.has(duration));
  return {
    code,
    key_id: keyId,
    api_id: apiId,
    owner: identity?.externalId,
    plan,
    remaining: credits,
    meta: fits(meta) ? (meta as StructValue) : undefined,
    limit: limit && { requests_per_unit: limit.limit, unit: units.get(limit.duration) },
    limits: inForce.map(({ name, limit, remaining, reset }) => ({ name, limit, remaining, reset })),
  };
}

function fits(meta: object): boolean {
  return JSON.stringify(meta).length <= META_LENGTH_MAX && isShallow(meta, META_DEPTH_MAX);
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((one) => isShallow(one, depth - 1));
}
