/** The listener for gRPC with its methods. Loaded only if the configuration has a port for it. */
import type { AddressInfo } from "node:net";
import { check } from "../features/keys/gateways/envoy/check.ts";
import { shouldRateLimit } from "../features/ratelimits/envoy/should-rate-limit.ts";
import type { Services } from "../features/services.ts";
import { Certificates } from "../platform/grpc/certificates.ts";
import { healthCheck } from "../platform/grpc/health.ts";
import { type GrpcListener, openGrpcListener } from "../platform/grpc/listener.ts";
import type { GrpcMethod, UnaryMethod } from "../platform/grpc/method.ts";
import { headersTimeoutOf } from "../platform/http/limits.ts";
import type { Rpc } from "../platform/rpc/server.ts";
import type { Start } from "./open.ts";

/** The methods whose callers need a root key. */
export const grpcMethods: readonly GrpcMethod<Services>[] = [check, shouldRateLimit];

export interface GrpcParts {
  rpc: Rpc;
  services: Services;
  isReady(): boolean;
}

/** Opens the listener, which does not listen yet. */
export function openGrpc(
  { config, clock, random, events }: Start,
  { rpc, services, isReady }: GrpcParts,
): GrpcListener {
  const { certificate, key, clientAuthority, connectionAge } = config.grpc;
  const files = certificate === undefined || key === undefined ? undefined : { certificate, key, clientAuthority };
  const names = new Set(grpcMethods.map(({ name }) => name.slice(0, name.indexOf("/"))));
  return openGrpcListener({
    clock,
    limits: { ...config, connectionAge, headersTimeout: headersTimeoutOf(config) },
    certificates: files && new Certificates(files, events.grpcCertificateUnusable),
    chance: () => random.below(1_000) / 1_000,
    methods: [healthCheck([...names], isReady), ...grpcMethods.map((method) => withRootKey(method, rpc, services))],
  });
}

function withRootKey(
  { name, messageBytesMax, handle }: GrpcMethod<Services>,
  rpc: Rpc,
  services: Services,
): UnaryMethod {
  return {
    name,
    messageBytesMax,
    answer: (message, { authorization, address }) =>
      rpc.run({ name, credentials: { authorization }, address }, (context) => handle(message, services, context)),
  };
}

/** Listens beside HTTP. */
export async function listenForGrpc({ config, events }: Start, listener: GrpcListener): Promise<AddressInfo> {
  const { host, grpc } = config;
  const address = await listener.listen(host, grpc.port ?? 0);
  const shown = address.family === "IPv6" ? `[${address.address}]` : address.address;
  events.grpcStarted({ address: `${shown}:${address.port}`, tls: grpc.certificate !== undefined });
  return address;
}
