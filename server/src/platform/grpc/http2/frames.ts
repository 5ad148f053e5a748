/** Frames of HTTP/2 (RFC 9113, sections 4 to 7). */

export const HEAD_BYTES = 9;
/** Where the number of the stream is in it. */
export const STREAM_AT = 5;
/** The payload of a frame at most: the default of SETTINGS_MAX_FRAME_SIZE. */
export const PAYLOAD_BYTES_MAX = 16_384;
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

export const ACK = 1;
export const END_STREAM = 1;
export const END_HEADERS = 4;
export const PADDED = 8;
export const WITH_PRIORITY = 32;

export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const FLOW_CONTROL_ERROR = 3;
export const STREAM_CLOSED = 5;
export const FRAME_SIZE_ERROR = 6;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;
export const COMPRESSION_ERROR = 9;
export const ENHANCE_YOUR_CALM = 11;

export const HEADER_TABLE_SIZE = 1;
export const ENABLE_PUSH = 2;
export const MAX_CONCURRENT_STREAMS = 3;
export const INITIAL_WINDOW_SIZE = 4;
export const MAX_FRAME_SIZE = 5;
export const MAX_HEADER_LIST_SIZE = 6;

/** The largest window, and the largest number of a stream. */
export const NUMBER_MAX = 2 ** 31 - 1;
/** The windows of a connection and its streams at first. */
export const WINDOW_BYTES = 65_535;

/** Writes the head of a frame, and returns where its payload begins. */
export function writeHead(to: Buffer, at: number, length: number, type: number, flags: number, stream: number): number {
  to[at] = length >>> 16;
  to[at + 1] = (length >>> 8) & 0xff;
  to[at + 2] = length & 0xff;
  to[at + 3] = type;
  to[at + 4] = flags;
  return to.writeUInt32BE(stream, at + 5);
}

export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  bytes.set(payload, writeHead(bytes, 0, payload.length, type, flags, stream));
  return bytes;
}

/** A frame whose payload is numbers of 32 bits. */
export function numbersFrame(type: number, stream: number, ...numbers: number[]): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + 4 * numbers.length);
  let at = writeHead(bytes, 0, 4 * numbers.length, type, 0, stream);
  for (const number of numbers) at = bytes.writeUInt32BE(number, at);
  return bytes;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + 6 * settings.length);
  let at = writeHead(bytes, 0, 6 * settings.length, SETTINGS, 0, 0);
  for (const [id, value] of settings) at = bytes.writeUInt32BE(value, bytes.writeUInt16BE(id, at));
  return bytes;
}
