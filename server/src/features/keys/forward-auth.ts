import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import { addressOf } from "../../platform/http/caller-address.ts";
import type { AddRoutes, RouteParts } from "../../platform/http/routes.ts";
import type { Operation } from "../../platform/rpc/operation.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { RpcCalls, RpcResponse } from "../../platform/rpc/server.ts";
import {
  type Decision,
  decide,
  type FailedVerification,
  judgeFailure,
  rejectMistake,
  undecided,
} from "./gateways/decision.ts";
import {
  collectParameters,
  commonParameters,
  type DescribedRequest,
  inputOf,
  type KeyPlace,
  keyPlaceOf,
  misconfigured,
  type ParameterPlace,
  type Parameters,
  readKey,
  splitQuery,
  tagsOf,
} from "./gateways/parameters.ts";
import type { VerifyKeyAnswer } from "./verifyKey.ts";

const PATH = "/auth/verify";

/** The header with the root key of the proxy. `Authorization` belongs to the end user. */
const ROOT_KEY_HEADER = "x-latchkey-root-key";

/** The header with the parameters when the query of the address is the end user's: below `/auth/verify/`. */
const PARAMETERS_HEADER = "x-latchkey-auth";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] as const;

const PARAMETERS_LENGTH_MAX = 8_192;

const place: ParameterPlace = {
  mistake: `The proxy asks ${PATH} with a wrong query.`,
  location: "query",
  known: commonParameters,
};

interface ForwardAuthParts extends RouteParts {
  /** `keys.verifyKey`. */
  verifyKey: Operation;
}

/**
 * `/auth/verify`, where a proxy asks whether it may pass a request on.
 *
 * The request becomes a call of `keys.verifyKey`, and the status of the answer is the decision. Everything except 200
 * rejects the request. The body of the request is not read.
 */
export function forwardAuthRoutes(verifyKey: Operation): AddRoutes {
  return (app, parts) => addForwardAuth(app, { ...parts, verifyKey });
}

function addForwardAuth(app: FastifyInstance, parts: ForwardAuthParts): void {
  const { rpc, send, sendUnread } = parts;
  for (const url of [PATH, `${PATH}/*`]) {
    app.route({
      method: [...METHODS],
      url,
      // Before the framework looks at the body.
      async onRequest({ raw }, reply) {
        const { "content-length": length, "transfer-encoding": encoding } = raw.headers;
        const write = encoding !== undefined || (length !== undefined && length !== "0") ? sendUnread : send;
        let answer: RpcResponse;
        try {
          answer = await authorize(parts, raw);
        } catch (error) {
          answer = error instanceof Problem ? rpc.reject(error, PATH) : closed(rpc.failed(error, PATH));
        }
        return write(reply, { ...answer, headers: { "Cache-Control": "no-store", ...answer.headers } }, PATH);
      },
      handler: (_request, reply) => reply,
    });
  }
}

/** @throws {Problem} `invalid_input` if the proxy is misconfigured. */
async function authorize(parts: ForwardAuthParts, request: IncomingMessage): Promise<RpcResponse> {
  const { rpc, clock, verifyKey, trustedProxies } = parts;
  const parameters = readParameters(request);
  const keyPlace = keyPlaceOf(parameters, place);
  const rootKeys = valuesOf(request, ROOT_KEY_HEADER);
  if (rootKeys.length > 1) {
    throw new Problem(
      "invalid_input",
      "The header X-Latchkey-Root-Key is there twice: let the proxy set it, not add it.",
    );
  }
  const key = readKey(valuesOf(request, keyPlace.name), keyPlace);
  if (!("found" in key)) return answerOf(rejectMistake(key, keyPlace), rpc.plain({}, PATH).requestId);
  const tags = tagsOf(parameters, described(request), (text) => text.includes(key.found));
  const answer = await rpc.call(verifyKey, {
    path: PATH,
    credentials: { authorization: rootKeys[0] === undefined ? undefined : `Bearer ${rootKeys[0]}` },
    contentType: "application/json",
    contentEncoding: undefined,
    idempotencyKey: undefined,
    body: JSON.stringify({ key: key.found, ...inputOf(parameters, tags, place) }),
    address: addressOf(request, trustedProxies),
  });
  if (answer.status !== 200) return failed(rpc, answer, keyPlace);
  const { data } = JSON.parse(answer.body) as { data: VerifyKeyAnswer };
  return answerOf(decide(data, keyPlace, clock.now()), answer.requestId);
}

/** @throws {Problem} `invalid_input`. */
function readParameters(request: IncomingMessage): Parameters {
  const text = parametersText(request);
  if (text.length > PARAMETERS_LENGTH_MAX) throw misconfigured(place, "query", "is too long");
  return collectParameters(new URLSearchParams(text), place);
}

function parametersText(request: IncomingMessage): string {
  const [path, query = ""] = splitQuery(request.url!);
  if (path === PATH) return query;
  const values = valuesOf(request, PARAMETERS_HEADER);
  const [only] = values;
  if (only !== undefined && values.length === 1) return only;
  throw new Problem(
    "invalid_input",
    `Below ${PATH}/ the query belongs to the end user, so the proxy sends the parameters in one header X-Latchkey-Auth, ` +
      `such as api=api_123. There are ${values.length}.`,
  );
}

/** The request of the end user, as far as the proxy describes it. */
function described({ headers, method, url }: IncomingMessage): DescribedRequest {
  const first = (...names: string[]) => names.map((name) => headers[name]).find((value) => typeof value === "string");
  if (splitQuery(url!)[0] !== PATH) return { method, uri: url!.slice(PATH.length) };
  return {
    method: first("x-forwarded-method", "x-original-method"),
    uri: first("x-forwarded-uri", "x-original-uri") as string | undefined,
  };
}

function answerOf({ status, owner, headers, error }: Decision, requestId: string): RpcResponse {
  const body = error === undefined ? { meta: { requestId }, data: { valid: true } } : { meta: { requestId }, error };
  return { status, requestId, headers: { ...owner, ...headers }, body: JSON.stringify(body) };
}

/** The answer when the verification was not made. */
function failed(rpc: RpcCalls, answer: RpcResponse, keyPlace: KeyPlace): RpcResponse {
  const { error } = JSON.parse(answer.body) as { error: FailedVerification };
  const judged = judgeFailure({ ...error, status: answer.status }, keyPlace, place, "the header X-Latchkey-Root-Key");
  if (judged === undefined) return closed(answer);
  return judged instanceof Problem ? rpc.reject(judged) : answerOf(judged, answer.requestId);
}

/** The answer when the service cannot decide. The limits of the workspace are not those of the end user. */
function closed({ requestId, headers }: RpcResponse): RpcResponse {
  return answerOf(undecided(headers?.["retry-after"] ?? "1"), requestId);
}

/** Every value of a header. Node would keep only the first of some headers, and join others. */
function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  const wanted = name.toLowerCase();
  return rawHeaders.filter((_value, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === wanted);
}
