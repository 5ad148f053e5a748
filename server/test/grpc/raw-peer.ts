/** A peer of HTTP/2 whose frames are written and read by hand: what no client of HTTP/2 would send, or would not show. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export const [DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, CONTINUATION] = [0, 1, 3, 4, 7, 9];
export const [END_STREAM, END_HEADERS] = [1, 4];

const HEAD_BYTES = 9;

export interface Frame {
  type: number;
  flags: number;
  stream: number;
  payload: Buffer;
}

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header field of HPACK, literal and without indexing; shorter than 127 bytes each. */
export function field(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

/** The headers of a call without metadata. */
export function callHeaders(method: string): Buffer {
  return Buffer.concat([
    field(":method", "POST"),
    field(":scheme", "http"),
    field(":path", `/${method}`),
    field(":authority", "a"),
    field("content-type", "application/grpc"),
  ]);
}

export interface RawPeer {
  readonly socket: Socket;
  /** What has been received. */
  readonly frames: readonly Frame[];
  readonly closed: Promise<unknown>;
}

/** Connects, from an address of this machine, and begins HTTP/2. */
export async function rawPeer(port: number, localAddress = "127.0.0.1"): Promise<RawPeer> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => {});
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + rest.readUIntBE(0, 3);
      if (rest.length < end) return;
      frames.push({
        type: rest.readUInt8(3),
        flags: rest.readUInt8(4),
        stream: rest.readUInt32BE(5),
        payload: rest.subarray(HEAD_BYTES, end),
      });
      rest = rest.subarray(end);
    }
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await once(socket, "connect");
  socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(SETTINGS, 0, 0)]));
  return { socket, frames, closed };
}
