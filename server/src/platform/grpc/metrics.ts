import type { GrpcListener } from "./listener.ts";

/** The metrics of a listener, also of none. */
export function grpcMetrics(
  counts: GrpcListener["counts"] | undefined,
): (readonly [name: string, help: string, read: () => number])[] {
  return [
    ["latchkey_grpc_connections", "Open connections of gRPC.", () => counts?.size ?? 0],
    ["latchkey_grpc_calls", "Open calls of gRPC.", () => counts?.calls ?? 0],
    [
      "latchkey_grpc_refused_total",
      "Connections and calls of gRPC that were refused because there were too many.",
      () => (counts ? counts.refused.connections + counts.refused.calls : 0),
    ],
  ];
}
