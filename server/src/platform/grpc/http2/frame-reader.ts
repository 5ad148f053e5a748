import { ProtocolError } from "./errors.ts";
import {
  CONTINUATION,
  END_HEADERS,
  ENHANCE_YOUR_CALM,
  FRAME_SIZE_ERROR,
  HEAD_BYTES,
  HEADERS,
  PADDED,
  PAYLOAD_BYTES_MAX,
  PREFACE,
  PROTOCOL_ERROR,
  SETTINGS,
  WITH_PRIORITY,
} from "./frames.ts";

/** Frames of one header block, and its bytes before they are decoded. */
const BLOCK_FRAMES_MAX = 8;
const BLOCK_BYTES_MAX = 32 * 1_024;

/** What a reader passes on. Payloads are parts of what was read. */
export interface FrameHandler {
  /** Any frame but one of a header block. */
  frame(type: number, flags: number, stream: number, payload: Buffer): void;
  /** A whole header block, with the flags of its first frame. */
  block(flags: number, stream: number, block: Buffer): void;
}

/** A header block whose end is missing. */
interface OpenBlock {
  readonly flags: number;
  readonly stream: number;
  readonly parts: Buffer[];
  bytes: number;
}

/** Cuts what a peer sends into frames: the preface, then `SETTINGS`, then any. Keeps less than a frame and a header block. */
export class FrameReader {
  readonly #handler: FrameHandler;
  #rest: Buffer = Buffer.alloc(0);
  #block: OpenBlock | undefined;
  #hasPreface = false;
  #hasSettings = false;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /**
   * Reads frames until `mayGoOn` says no, and returns the bytes that are left then; undefined: all were read.
   *
   * @throws {ProtocolError}
   */
  read(chunk: Buffer, mayGoOn: () => boolean): Buffer | undefined {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = Buffer.alloc(0);
    let at = this.#hasPreface ? 0 : this.#readPreface(bytes);
    while (this.#hasPreface && bytes.length - at >= HEAD_BYTES) {
      const length = bytes.readUIntBE(at, 3);
      if (length > PAYLOAD_BYTES_MAX) throw new ProtocolError(FRAME_SIZE_ERROR);
      const from = at + HEAD_BYTES;
      if (bytes.length < from + length) break;
      if (!mayGoOn()) return bytes.subarray(at);
      const stream = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
      const payload = bytes.subarray(from, from + length);
      this.#dispatch(bytes.readUInt8(at + 3), bytes.readUInt8(at + 4), stream, payload);
      at = from + length;
    }
    // A copy, because it would keep all that was read.
    if (at < bytes.length) this.#rest = Buffer.from(bytes.subarray(at));
    return undefined;
  }

  #readPreface(bytes: Buffer): number {
    const length = Math.min(bytes.length, PREFACE.length);
    if (PREFACE.compare(bytes, 0, length, 0, length) !== 0) throw new ProtocolError(PROTOCOL_ERROR);
    if (length < PREFACE.length) return 0;
    this.#hasPreface = true;
    return length;
  }

  #dispatch(type: number, flags: number, stream: number, payload: Buffer): void {
    if (!this.#hasSettings) {
      if (type !== SETTINGS || flags !== 0) throw new ProtocolError(PROTOCOL_ERROR);
      this.#hasSettings = true;
    }
    if (this.#block !== undefined) this.#continue(this.#block, type, flags, stream, payload);
    else if (type === HEADERS) this.#begin(flags, stream, payload);
    else if (type === CONTINUATION) throw new ProtocolError(PROTOCOL_ERROR);
    else this.#handler.frame(type, flags, stream, payload);
  }

  #begin(flags: number, stream: number, payload: Buffer): void {
    if (stream === 0) throw new ProtocolError(PROTOCOL_ERROR);
    const content = withoutPadding(flags, payload);
    const priorityBytes = (flags & WITH_PRIORITY) === 0 ? 0 : 5;
    if (content.length < priorityBytes) throw new ProtocolError(FRAME_SIZE_ERROR);
    const part = content.subarray(priorityBytes);
    if ((flags & END_HEADERS) !== 0) this.#handler.block(flags, stream, part);
    else this.#block = { flags, stream, parts: [Buffer.from(part)], bytes: part.length };
  }

  /** Nothing else may be in between (RFC 9113, section 6.10). */
  #continue(block: OpenBlock, type: number, flags: number, stream: number, payload: Buffer): void {
    if (type !== CONTINUATION || stream !== block.stream) throw new ProtocolError(PROTOCOL_ERROR);
    block.bytes += payload.length;
    if (block.parts.length === BLOCK_FRAMES_MAX || block.bytes > BLOCK_BYTES_MAX) {
      throw new ProtocolError(ENHANCE_YOUR_CALM);
    }
    block.parts.push(Buffer.from(payload));
    if ((flags & END_HEADERS) === 0) return;
    this.#block = undefined;
    this.#handler.block(block.flags, stream, Buffer.concat(block.parts));
  }
}

/** The content of a frame that may be padded. */
export function withoutPadding(flags: number, payload: Buffer): Buffer {
  if ((flags & PADDED) === 0) return payload;
  const padding = payload[0];
  if (padding === undefined) throw new ProtocolError(FRAME_SIZE_ERROR);
  if (padding >= payload.length) throw new ProtocolError(PROTOCOL_ERROR);
  return payload.subarray(1, payload.length - padding);
}
