import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import type { GrpcCall } from "./call.ts";
import type { Certificates } from "./certificates.ts";
import { type ConnectionLimits, GrpcConnections, SWEEP_INTERVAL } from "./connections.ts";
import { HANDSHAKES_MAX, Handshakes, type HandshakesOptions } from "./handshakes.ts";
import { MessageBudget } from "./message-bytes.ts";
import type { UnaryMethod } from "./method.ts";

/** Connections beside the maximum, which are refused or end. */
const ENDING_MAX = 1_000;

const CERTIFICATES_INTERVAL: Milliseconds = 60_000;

export interface GrpcLimits extends ConnectionLimits {
  /** Memory for messages that have not been answered, and as much again for answers that have not been read. */
  bodiesBytesMax: number;
}

export interface GrpcOptions {
  clock: Clock;
  methods: readonly UnaryMethod[];
  limits: GrpcLimits;
  /** Undefined: the listener speaks HTTP/2 without TLS. */
  certificates: Certificates | undefined;
  /** A number from 0 to 1. */
  chance(): number;
}

export interface GrpcListener {
  listen(host: string, port: number): Promise<AddressInfo>;
  /** What the metrics show. */
  readonly counts: Pick<GrpcConnections, "size" | "calls" | "refused">;
  /** Asks every peer to connect elsewhere. Calls are still answered. */
  drain(): void;
  /** Accepts no connection, finishes open calls, then resolves. */
  close(): Promise<void>;
  /** Ends every connection at once. */
  destroy(): void;
}

/** Opens the listener for gRPC, which does not listen yet. */
export function openGrpcListener({ clock, methods, limits, certificates, chance }: GrpcOptions): GrpcListener {
  const budget = new MessageBudget(limits.bodiesBytesMax);
  const byPath = new Map(methods.map((method) => [`/${method.name}`, method]));
  const connections = new GrpcConnections(
    limits,
    { clock, methods: byPath, budget, incomplete: new Set<GrpcCall>() },
    chance,
  );
  const accept = (socket: Socket) => connections.add(socket);
  const secure = certificates && openSecureServer(certificates, { clock, timeMax: limits.headersTimeout }, accept);
  const server = secure ? secure.server : createServer({ noDelay: true }, accept);
  server.maxConnections = limits.connectionsMax + HANDSHAKES_MAX + ENDING_MAX;
  const sweep = every(clock, SWEEP_INTERVAL, async () => {
    secure?.handshakes.sweep();
    connections.sweep();
  });
  const renewal = certificates && every(clock, CERTIFICATES_INTERVAL, async () => secure?.renew());
  return {
    counts: connections,
    async listen(host, port) {
      const listening = Promise.withResolvers<void>();
      server.once("error", listening.reject);
      server.listen(port, host, listening.resolve);
      await listening.promise;
      server.off("error", listening.reject);
      return server.address() as AddressInfo;
    },
    drain: () => connections.drain(),
    async close() {
      sweep.cancel();
      renewal?.cancel();
      const closed = Promise.withResolvers<void>();
      // It reports that it never listened.
      server.close(() => closed.resolve());
      secure?.handshakes.destroy();
      connections.close();
      await closed.promise;
    },
    destroy() {
      secure?.handshakes.destroy();
      connections.destroy();
    },
  };
}

interface SecureListener {
  readonly server: Server;
  readonly handshakes: Handshakes;
  /** Takes renewed certificates for new connections. */
  renew(): void;
}

/** Clients have to name HTTP/2 in their handshake (RFC 9113, section 3.2). */
function openSecureServer(
  certificates: Certificates,
  options: Omit<HandshakesOptions, "begin">,
  accept: (socket: Socket) => void,
): SecureListener {
  const secure = createSecureServer(
    {
      ...certificates.read(),
      ALPNProtocols: ["h2"],
      minVersion: "TLSv1.2",
      requestCert: certificates.asksClient,
      rejectUnauthorized: certificates.asksClient,
    },
    (socket) => {
      handshakes.end(socket);
      if (socket.alpnProtocol === "h2") accept(socket);
      else socket.destroy();
    },
  );
  secure.on("tlsClientError", (_error, socket) => socket.destroy());
  const handshakes = new Handshakes({ ...options, begin: (socket) => secure.emit("connection", socket) });
  return {
    server: createServer({ noDelay: true, pauseOnConnect: true }, (socket) => handshakes.add(socket)),
    handshakes,
    renew() {
      const renewed = certificates.readChanged();
      if (renewed) secure.setSecureContext(renewed);
    },
  };
}
