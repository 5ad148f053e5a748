/** The listener for gRPC at an edge. Loaded only if the configuration has a port for it. */
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { DecidedElsewhere } from "../../../engine/src/errors/decided-elsewhere.ts";
import { newRequestId, type Random } from "../../../engine/src/random/random.ts";
import { answerCheck, type CheckServices, check } from "../features/keys/gateways/envoy/check.ts";
import { type VerifyKeyAnswer, verifyKey } from "../features/keys/verifyKey.ts";
import type { GrpcListener } from "../platform/grpc/listener.ts";
import { type GrpcCaller, type UnaryMethod, withRootKey } from "../platform/grpc/method.ts";
import { type GrpcStart, openGrpc as open } from "../platform/grpc/open.ts";
import { FAILED_PRECONDITION, GrpcError, grpcError } from "../platform/grpc/status.ts";
import { headersTimeoutOf } from "../platform/http/limits.ts";
import { isAuthenticationProblem } from "../platform/rpc/failed-authentications.ts";
import { pathOf } from "../platform/rpc/operation.ts";
import { type InputError, Problem, problemCodeOf } from "../platform/rpc/problems.ts";
import { FailedCall, type Rpc, type RpcResponse } from "../platform/rpc/server.ts";
import { shouldRateLimit } from "./descriptors.ts";
import type { EdgeCalls } from "./edge-calls.ts";
import type { EdgeLimitServices } from "./limits.ts";

export { listenForGrpc } from "../platform/grpc/open.ts";

/** The methods that are answered here. */
export const grpcMethods = [check, shouldRateLimit];

export interface EdgeGrpcParts {
  rpc: Rpc;
  services: CheckServices & EdgeLimitServices;
  edgeCalls: EdgeCalls;
  isReady(): boolean;
}

/** Opens the listener, which does not listen yet. */
export function openGrpc(
  start: GrpcStart & { config: Parameters<typeof headersTimeoutOf>[0] },
  { isReady, ...parts }: EdgeGrpcParts,
): GrpcListener {
  return open(start, {
    headersTimeout: headersTimeoutOf(start.config),
    methods: [edgeCheck(start, parts), edgeLimit(parts)],
    isReady,
  });
}

/** `ShouldRateLimit`, which home counts. There is no call of its API with which it could be passed on. */
function edgeLimit({ rpc, services }: Pick<EdgeGrpcParts, "rpc" | "services">): UnaryMethod {
  return orElsewhere(withRootKey(shouldRateLimit, rpc, services), () => {
    throw new GrpcError(
      FAILED_PRECONDITION,
      "Only the service can count for this caller in this namespace. Give the root key of the edge ratelimits.*.limit, or " +
        "Envoy's rate limit filter the gRPC port of the service.",
    );
  });
}

/** `Check`, decided here like a verification. What only home can decide is passed on as a call of `keys.verifyKey`. */
function edgeCheck(start: GrpcStart, { rpc, services, edgeCalls }: Omit<EdgeGrpcParts, "isReady">): UnaryMethod {
  const decidedHere = withRootKey(check, rpc, services);
  const passOn = async (message: Buffer, caller: GrpcCaller) => {
    const passed = new PassedOnCheck(start, services, edgeCalls, caller);
    try {
      return await answerCheck(message, passed);
    } catch (error) {
      throw error instanceof Problem ? grpcError(error, passed.requestId) : error;
    }
  };
  return orElsewhere(decidedHere, passOn);
}

/** A method that answers in another way what is not decided here. */
function orElsewhere(method: UnaryMethod, answerElsewhere: UnaryMethod["answer"]): UnaryMethod {
  const recover = (error: unknown, message: Buffer, caller: GrpcCaller) => {
    if (error instanceof DecidedElsewhere) return answerElsewhere(message, caller);
    throw error;
  };
  return {
    ...method,
    answer(message, caller) {
      try {
        const answer = method.answer(message, caller);
        return answer instanceof Promise ? answer.catch((error) => recover(error, message, caller)) : answer;
      } catch (error) {
        return recover(error, message, caller);
      }
    },
  };
}

/**
 * A `Check` whose key is verified by home, with the root key of its caller. Home judges that too, so a request without a key, or of a
 * route that is misconfigured, is answered without it, as `/auth/verify` answers it.
 */
class PassedOnCheck {
  readonly clock: Pick<Clock, "now">;
  readonly trustedProxies: CheckServices["gateways"]["trustedProxies"];
  /** That of home, once it has answered. */
  requestId: string;
  readonly #calls: EdgeCalls;
  readonly #caller: GrpcCaller;

  constructor(
    { clock, random }: { clock: Clock; random: Random },
    { gateways }: CheckServices,
    calls: EdgeCalls,
    caller: GrpcCaller,
  ) {
    this.clock = clock;
    this.trustedProxies = gateways.trustedProxies;
    this.requestId = newRequestId(random);
    this.#calls = calls;
    this.#caller = caller;
  }

  readonly verify = async (body: object, address: string): Promise<VerifyKeyAnswer> => {
    const answer = await this.#calls.passOn(verifyKey, {
      path: pathOf(verifyKey.name),
      credentials: { authorization: this.#caller.authorization },
      contentType: "application/json",
      contentEncoding: undefined,
      idempotencyKey: undefined,
      body: JSON.stringify(body),
      address,
    });
    this.requestId = answer.requestId;
    if (answer.status !== 200) throw failureOf(answer);
    return (JSON.parse(answer.body) as { data: VerifyKeyAnswer }).data;
  };
}

/** The error of a call that home has answered with a problem. A caller that home refuses has made no `Check`. */
function failureOf({ body, requestId, headers = {} }: RpcResponse): Error {
  const { type, detail, errors } = problemIn(body);
  const code = type === undefined ? undefined : problemCodeOf(type);
  if (code === undefined) return new FailedCall(new Problem("service_unavailable"), requestId);
  const problem = new Problem(code, detail, { headers, ...(errors && { errors }) });
  return isAuthenticationProblem(code) ? new FailedCall(problem, requestId) : problem;
}

/** A proxy before home may answer anything. */
function problemIn(body: string): { type?: string; detail?: string; errors?: readonly InputError[] } {
  try {
    return (JSON.parse(body) as { error?: object }).error ?? {};
  } catch {
    return {};
  }
}
