/** Calls of gRPC over HTTP/2, as gateways make them. */
import {
  type ClientHttp2Session,
  type ClientSessionOptions,
  connect,
  type SecureClientSessionOptions,
} from "node:http2";

export interface GrpcReply {
  /** The status of gRPC; −1: the stream was reset. */
  status: number;
  message: string;
  /** The answer; empty without one. */
  body: Buffer;
  headers: Readonly<Record<string, string | string[] | number | undefined>>;
}

export interface CallSettings {
  as?: string | null;
  headers?: Record<string, string>;
  /** Sent instead of the message with its prefix. */
  raw?: Buffer;
}

/** Puts the flag and the length before a message. */
export function framed(message: Uint8Array, flag = 0): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame[0] = flag;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

/** A connection to a listener. */
export class GrpcClient {
  readonly session: ClientHttp2Session;
  readonly #rootKey: string | undefined;

  constructor(address: string, rootKey?: string, options: ClientSessionOptions | SecureClientSessionOptions = {}) {
    this.session = connect(address, options);
    this.session.on("error", () => {});
    this.#rootKey = rootKey;
  }

  call(method: string, message: Uint8Array, settings: CallSettings = {}): Promise<GrpcReply> {
    const { as = this.#rootKey, headers = {}, raw = framed(message) } = settings;
    const stream = this.session.request({
      ":method": "POST",
      ":path": `/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...(as && { authorization: `Bearer ${as}` }),
      ...headers,
    });
    const replied = Promise.withResolvers<GrpcReply>();
    const chunks: Buffer[] = [];
    let head: GrpcReply["headers"] = {};
    stream.on("response", (received) => {
      head = { ...received };
    });
    stream.on("trailers", (received) => {
      head = { ...head, ...received };
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", () => {});
    stream.on("close", () =>
      replied.resolve({
        status: Number(head["grpc-status"] ?? -1),
        message: decodeURIComponent(String(head["grpc-message"] ?? "")),
        body: Buffer.concat(chunks).subarray(5),
        headers: head,
      }),
    );
    stream.end(raw);
    return replied.promise;
  }

  close(): Promise<void> {
    const closed = Promise.withResolvers<void>();
    if (this.session.destroyed) return Promise.resolve();
    this.session.close(() => closed.resolve());
    return closed.promise;
  }
}
