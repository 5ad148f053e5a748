import type { AddressInfo } from "node:net";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { Events } from "../../log/events.ts";
import { Certificates } from "./certificates.ts";
import { healthCheck } from "./health.ts";
import { type GrpcLimits, type GrpcListener, openGrpcListener } from "./listener.ts";
import type { UnaryMethod } from "./method.ts";

/** The settings of gRPC. */
interface GrpcSettings extends Omit<GrpcLimits, "connectionAge" | "headersTimeout"> {
  readonly host: string;
  readonly grpc: {
    readonly port: number | undefined;
    readonly certificate: string | undefined;
    readonly key: string | undefined;
    readonly clientAuthority: string | undefined;
    readonly connectionAge: Milliseconds;
  };
}

/** What a program gives its listener for gRPC. */
export interface GrpcStart {
  readonly config: GrpcSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
}

export interface GrpcParts {
  readonly headersTimeout: Milliseconds;
  /** Their services are healthy while the program is ready. */
  readonly methods: readonly UnaryMethod[];
  isReady(): boolean;
}

/** Opens the listener with the settings of the program. It does not listen yet. */
export function openGrpc(
  { config, clock, random, events }: GrpcStart,
  { headersTimeout, methods, isReady }: GrpcParts,
): GrpcListener {
  const { certificate, key, clientAuthority, connectionAge } = config.grpc;
  const files = certificate === undefined || key === undefined ? undefined : { certificate, key, clientAuthority };
  const names = new Set(methods.map(({ name }) => name.slice(0, name.indexOf("/"))));
  return openGrpcListener({
    clock,
    limits: { ...config, connectionAge, headersTimeout },
    certificates: files && new Certificates(files, events.grpcCertificateUnusable),
    chance: () => random.below(1_000) / 1_000,
    methods: [healthCheck([...names], isReady), ...methods],
  });
}

/** Listens beside HTTP. */
export async function listenForGrpc(
  { config, events }: Pick<GrpcStart, "config" | "events">,
  listener: GrpcListener,
): Promise<AddressInfo> {
  const { host, grpc } = config;
  const address = await listener.listen(host, grpc.port ?? 0);
  const shown = address.family === "IPv6" ? `[${address.address}]` : address.address;
  events.grpcStarted({ address: `${shown}:${address.port}`, tls: grpc.certificate !== undefined });
  return address;
}
