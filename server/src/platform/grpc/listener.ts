import { createSecureServer, createServer, type Http2SecureServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import type { Certificates } from "./certificates.ts";
import { type ConnectionLimits, GrpcConnections, SWEEP_INTERVAL } from "./connections.ts";
import { MessageBudget } from "./message-bytes.ts";
import type { UnaryMethod } from "./method.ts";

/** Streams of one connection that may be open at once. */
const STREAMS_MAX = 256;

/** Bytes of the headers of a call, as HTTP/2 counts them, and their number. */
const HEADERS_BYTES_MAX = 16 * 1024;
const HEADER_PAIRS_MAX = 64;

/** What Node may keep for one connection, in MB: states of streams, and output that its peer does not read. */
const SESSION_MEGABYTES_MAX = 4;

/**
 * Frames that are not as they should be, and streams beyond the maximum, after which a connection ends. A gateway that has not
 * read yet how many it may open can begin with more.
 */
const INVALID_FRAMES_MAX = 1_000;
const REJECTED_STREAMS_MAX = 1_000;

/**
 * Streams that a peer may reset: at once, and then per second. A gateway resets each call that takes longer than its time
 * limit, so the numbers are above what one sends while a node is slow; beyond them the connection ends.
 */
const RESETS_BURST = 10_000;
const RESETS_PER_SECOND = 1_000;

/** Connections beside the maximum, whose handshake has not ended. */
const HANDSHAKES_MAX = 1_000;

const CERTIFICATES_INTERVAL: Milliseconds = 60_000;

export interface GrpcLimits extends ConnectionLimits {
  /** Memory for messages that have not been answered. */
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
  const connections = new GrpcConnections(limits, { clock, methods: byPath, budget }, chance);
  const server = openServer(limits, certificates);
  server.maxConnections = limits.connectionsMax + HANDSHAKES_MAX;
  server.on("session", (session) => connections.add(session));
  // A peer that is no client of HTTP/2, or does not end its handshake.
  server.on("sessionError", ignore);
  const sweep = every(clock, SWEEP_INTERVAL, async () => connections.sweep());
  const renewal = certificates && every(clock, CERTIFICATES_INTERVAL, async () => renew(server, certificates));
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
      connections.close();
      await closed.promise;
    },
    destroy: () => connections.destroy(),
  };
}

function openServer({ headersTimeout }: GrpcLimits, certificates: Certificates | undefined) {
  const options = {
    settings: {
      enablePush: false,
      maxConcurrentStreams: STREAMS_MAX,
      maxHeaderListSize: HEADERS_BYTES_MAX,
    },
    maxHeaderListPairs: HEADER_PAIRS_MAX,
    maxSessionMemory: SESSION_MEGABYTES_MAX,
    maxSessionInvalidFrames: INVALID_FRAMES_MAX,
    maxSessionRejectedStreams: REJECTED_STREAMS_MAX,
    streamResetBurst: RESETS_BURST,
    streamResetRate: RESETS_PER_SECOND,
  };
  if (certificates === undefined) return createServer(options);
  return createSecureServer({
    ...options,
    ...certificates.read(),
    handshakeTimeout: headersTimeout,
    minVersion: "TLSv1.2",
    requestCert: certificates.asksClient,
    rejectUnauthorized: certificates.asksClient,
  });
}

/** Takes renewed certificates for new connections. */
function renew(server: Http2Server | Http2SecureServer, certificates: Certificates): void {
  const renewed = certificates.readChanged();
  if (renewed) (server as Http2SecureServer).setSecureContext(renewed);
}

function ignore(): void {}
