/**
 * What two threads send each other about a connection that one of them accepted and the other one reads. `data`: what the
 * peer sent or gets. `read`: so many bytes of it were used. `end`: the other side is ended. `ended`: the answer to `end`,
 * once the peer has everything. `close`: the connection is closed.
 */
export type TunnelMessage =
  | readonly [kind: "data", connection: number, bytes: Uint8Array<ArrayBuffer>]
  | readonly [kind: "read", connection: number, bytes: number]
  | readonly [kind: "end" | "ended" | "close", connection: number];

/** The first message about a connection. */
export type TunnelOpening = readonly [kind: "open", connection: number, address: string];

/** Bytes in each direction of one connection that may be on their way between the threads. */
export const WINDOW_BYTES = 128 * 1024;

/** A copy without the rest of the memory in which Node keeps what it read. */
export function copyOf(chunk: Buffer): Uint8Array<ArrayBuffer> {
  return new Uint8Array(chunk);
}
