/** The listener for gRPC with its methods. Loaded only if the configuration has a port for it. */
import { check } from "../features/keys/gateways/envoy/check.ts";
import { shouldRateLimit } from "../features/ratelimits/envoy/should-rate-limit.ts";
import type { Services } from "../features/services.ts";
import type { GrpcListener } from "../platform/grpc/listener.ts";
import { type GrpcMethod, withRootKey } from "../platform/grpc/method.ts";
import { openGrpc as open } from "../platform/grpc/open.ts";
import { headersTimeoutOf } from "../platform/http/limits.ts";
import type { Rpc } from "../platform/rpc/server.ts";
import type { Start } from "./open.ts";

export { listenForGrpc } from "../platform/grpc/open.ts";

/** The methods whose callers need a root key. */
export const grpcMethods: readonly GrpcMethod<Services>[] = [check, shouldRateLimit];

export interface GrpcParts {
  rpc: Rpc;
  services: Services;
  isReady(): boolean;
}

/** Opens the listener, which does not listen yet. */
export function openGrpc(start: Start, { rpc, services, isReady }: GrpcParts): GrpcListener {
  return open(start, {
    headersTimeout: headersTimeoutOf(start.config),
    methods: grpcMethods.map((method) => withRootKey(method, rpc, services)),
    isReady,
  });
}
