/** Byte streams that a peer of HTTP/2 may send: valid ones in all the forms that the protocol has, and then anything. */
import type { Random } from "../../../engine/src/random/random.ts";
import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  GOAWAY,
  HEAD_BYTES,
  HEADERS,
  numbersFrame,
  PADDED,
  PING,
  PREFACE,
  PRIORITY,
  PUSH_PROMISE,
  RST_STREAM,
  SETTINGS,
  settingsFrame,
  WINDOW_UPDATE,
  WITH_PRIORITY,
} from "../../src/platform/grpc/http2/frames.ts";
import { HpackDecoder } from "../../src/platform/grpc/http2/hpack.ts";
import { codeLengths } from "../../src/platform/grpc/http2/huffman.ts";

export const LARGE = "/large";

const nothing = Buffer.alloc(0);
const [HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE] = [1, 4, 5];
const WINDOW_MAX = 2 ** 31 - 1;
const PATHS = ["/a.B/C", "/a.B/C", "/a.B/C", "/a.B/D", "/a.B/D", "/a.B/D", LARGE, "/x?y=z", "/%7e"];

/** What a peer sends: what keeps to the protocol, and then what may not. */
export interface PeerStream {
  readonly valid: readonly Buffer[];
  readonly anything: readonly Buffer[];
}

type Field = readonly [name: string, value: string];

/** Draws a stream. The same state of `random` gives the same stream. */
export function drawStream(random: Random): PeerStream {
  const peer = new Peer(random);
  const first = [PREFACE, peer.settings()];
  for (let i = 1 + random.below(6); i > 0; i--) first.push(...peer.calls());
  first.push(settingsFrame([[INITIAL_WINDOW_SIZE, 1_000_000]]), numbersFrame(WINDOW_UPDATE, 0, 100_000_000));
  const rest: Buffer[] = [];
  for (let i = random.below(4); i > 0; i--) rest.push(...(random.below(3) === 0 ? peer.calls() : peer.violation()));
  const bytes = Buffer.concat(rest);
  if (bytes.length > 0 && random.below(3) === 0) {
    for (let i = 1 + random.below(3); i > 0; i--) bytes[random.below(bytes.length)] = random.below(256);
  }
  return { valid: split(random, Buffer.concat(first)), anything: split(random, completed(bytes)) };
}

/** With all of the last frame and header block: Node judges some before they are complete. */
function completed(bytes: Buffer): Buffer {
  let at = 0;
  let end: Buffer = nothing;
  while (at + HEAD_BYTES <= bytes.length) {
    const [type, flags, stream] = [bytes.readUInt8(at + 3), bytes.readUInt8(at + 4), bytes.readUInt32BE(at + 5)];
    const isOpen = (type === HEADERS || type === CONTINUATION) && (flags & END_HEADERS) === 0;
    end = isOpen ? frame(CONTINUATION, END_HEADERS, stream, nothing) : nothing;
    at += HEAD_BYTES + bytes.readUIntBE(at, 3);
  }
  const missing = Math.max(0, Math.min(at - bytes.length, 20_000));
  return Buffer.concat([bytes, Buffer.alloc(missing), end]);
}

function split(random: Random, bytes: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  const isFine = random.below(8) === 0;
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.below(isFine ? 40 : 20_000);
    chunks.push(bytes.subarray(at, end));
    at = end;
  }
  return chunks;
}

/** Whether a stream is opened whose number is smaller than that of an earlier one. */
export function opensBackwards(bytes: Buffer): boolean {
  const opened = new Set<number>();
  let last = 0;
  for (let at = PREFACE.length; at + HEAD_BYTES <= bytes.length; at += HEAD_BYTES + bytes.readUIntBE(at, 3)) {
    if (bytes.readUInt8(at + 3) !== HEADERS) continue;
    const stream = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    if (stream < last && !opened.has(stream)) return true;
    opened.add(stream);
    last = Math.max(last, stream);
  }
  return false;
}

/** A peer with its numbers of streams, and the table of its encoder. */
class Peer {
  readonly #random: Random;
  #stream = 1;
  readonly #encoder: Encoder;

  constructor(random: Random) {
    this.#random = random;
    this.#encoder = new Encoder(random);
  }

  settings(): Buffer {
    const settings: [number, number][] = [];
    if (this.#chance(3)) settings.push([INITIAL_WINDOW_SIZE, this.#random.below(100_000)]);
    if (this.#chance(3)) settings.push([MAX_FRAME_SIZE, 16_384 + this.#random.below(50_000)]);
    if (this.#chance(3)) settings.push([HEADER_TABLE_SIZE, this.#random.below(5_000)]);
    if (this.#chance(3)) settings.push([77, 5]);
    return settingsFrame(settings);
  }

  /** Some calls whose frames are mixed. */
  calls(): Buffer[] {
    const calls = Array.from({ length: 1 + this.#random.below(4) }, () => this.#call());
    // Blocks of header fields have to stay in their order, because of the table.
    const frames: Buffer[] = calls.map(({ head }) => head);
    const bodies = calls.map(({ body }) => body);
    for (let left = bodies.flat().length; left > 0; left--) {
      const open = bodies.filter((body) => body.length > 0);
      const next = open[this.#random.below(open.length)]?.shift();
      if (next !== undefined) frames.push(next);
      if (this.#chance(6)) frames.push(this.#interlude());
    }
    return frames;
  }

  #call(): { head: Buffer; body: Buffer[] } {
    const stream = this.#stream;
    this.#stream += 2 * (1 + this.#random.below(2));
    const content = this.#bytes(this.#random.below(this.#chance(20) ? 40_000 : 60));
    const isEnd = content.length === 0 && this.#chance(2);
    const head = this.#headers(stream, this.#fields(content.length), isEnd);
    if (isEnd) return { head, body: [] };
    const body: Buffer[] = [];
    let at = 0;
    do {
      const end = Math.min(content.length, at + 1 + this.#random.below(16_000));
      const isLast = end === content.length;
      body.push(this.#data(stream, content.subarray(at, end), isLast));
      at = end;
    } while (at < content.length);
    return { head, body };
  }

  #fields(length: number): Field[] {
    const fields: Field[] = [
      [":method", "POST"],
      [":scheme", "http"],
      [":path", PATHS[this.#random.below(PATHS.length)] ?? "/"],
      ["content-type", "application/grpc"],
    ];
    if (this.#chance(4)) fields.push(["host", "a.example"]);
    else fields.splice(1, 0, [":authority", "a.example"]);
    if (this.#chance(2)) fields.push(["authorization", `Bearer ${this.#text()}`]);
    if (this.#chance(4)) fields.push(["grpc-timeout", "1S"]);
    if (this.#chance(4)) fields.push(["te", "trailers"]);
    if (this.#chance(4)) fields.push(["content-length", String(length)]);
    for (let i = this.#random.below(4); i > 0; i--) fields.push([`x-${this.#random.below(9)}`, this.#text()]);
    return fields;
  }

  #headers(stream: number, fields: readonly Field[], isEnd: boolean): Buffer {
    const block = this.#encoder.encode(fields);
    let flags = isEnd ? END_STREAM : 0;
    const isSplit = this.#chance(5);
    let first = isSplit ? block.subarray(0, this.#random.below(block.length)) : block;
    const rest = block.subarray(first.length);
    if (this.#chance(5)) {
      flags |= WITH_PRIORITY;
      first = Buffer.concat([Buffer.from([0, 0, 0, 0, 9]), first]);
    }
    if (this.#chance(5)) {
      flags |= PADDED;
      first = padded(first, this.#random.below(20));
    }
    if (!isSplit) return frame(HEADERS, flags | END_HEADERS, stream, first);
    return Buffer.concat([frame(HEADERS, flags, stream, first), frame(CONTINUATION, END_HEADERS, stream, rest)]);
  }

  #data(stream: number, content: Buffer, isEnd: boolean): Buffer {
    const flags = isEnd ? END_STREAM : 0;
    if (!this.#chance(5)) return frame(DATA, flags, stream, content);
    return frame(DATA, flags | PADDED, stream, padded(content, this.#random.below(200)));
  }

  /** A frame that is allowed anywhere between others. */
  #interlude(): Buffer {
    const last = this.#stream - 2;
    const frames = [
      () => frame(PING, 0, 0, this.#bytes(8)),
      () => this.settings(),
      () => numbersFrame(WINDOW_UPDATE, 0, 1 + this.#random.below(1_000)),
      () => frame(PRIORITY, 0, last, Buffer.from([0, 0, 0, 0, 1])),
      () => frame(100 + this.#random.below(100), this.#random.below(256), last, this.#bytes(this.#random.below(30))),
    ];
    return frames[this.#random.below(frames.length)]?.() ?? nothing;
  }

  /** What a peer must not send, or need not. */
  violation(): Buffer[] {
    const { below } = this.#random;
    const stream = this.#stream;
    const next = () => {
      this.#stream += 2;
      return this.#stream - 2;
    };
    const call = (change: (fields: Field[]) => unknown, length = 0) => {
      const fields = this.#fields(length);
      change(fields);
      return this.#headers(next(), fields, true);
    };
    const set = (name: string, value: string) => (fields: Field[]) => fields.push([name, value]);
    const without = (name: string) => (fields: Field[]) =>
      fields.splice(0, fields.length, ...fields.filter(([of]) => of !== name));
    const kinds: (() => Buffer)[] = [
      () => call(without([":method", ":scheme", ":path", ":authority"][below(4)] ?? "")),
      () => call((fields) => fields.push([":method", "POST"])),
      () => call((fields) => fields.unshift(["x-a", "before"])),
      () => call(set(":status", "200")),
      () => call(set("X-Upper", "a")),
      () => call(set(["connection", "keep-alive", "transfer-encoding", "upgrade"][below(4)] ?? "", "a")),
      () => call(set("te", "gzip")),
      () => call(set("x-a", [" a", "a ", "a\rb", "a\0b"][below(4)] ?? "")),
      () => call(set("content-length", "7")),
      () => call(set("content-length", "x")),
      () => call(set("x-large", "y".repeat(17_000))),
      () => call((fields) => fields.push(...Array.from({ length: 80 }, (_, i): Field => [`x-${i}`, "a"]))),
      () => this.#headers(stream + 1, this.#fields(0), true),
      () => this.#headers(0, this.#fields(0), true),
      // Content, or trailers, of a call that has ended.
      () => Buffer.concat([this.#headers(next(), this.#fields(0), true), frame(DATA, 1, stream, this.#bytes(5))]),
      () => Buffer.concat([this.#headers(next(), this.#fields(0), false), this.#headers(stream, [["x-a", "b"]], true)]),
      () =>
        Buffer.concat([this.#headers(next(), this.#fields(0), false), this.#headers(stream, [["x-a", "b"]], false)]),
      () => Buffer.concat([this.#headers(next(), this.#fields(0), false), numbersFrame(RST_STREAM, stream, 8)]),
      () => frame(DATA, 0, [0, stream][below(2)] ?? 0, this.#bytes(3)),
      () => frame(DATA, PADDED, this.#stream - 2, Buffer.from([9, 1])),
      () => numbersFrame(RST_STREAM, [0, stream][below(2)] ?? 0, 8),
      () => frame(SETTINGS, 0, 0, this.#bytes(1 + below(5))),
      () => settingsFrame([[INITIAL_WINDOW_SIZE, 2 ** 31]]),
      () => settingsFrame([[MAX_FRAME_SIZE, [100, 2 ** 24][below(2)] ?? 0]]),
      () => settingsFrame([[2, 2]]),
      () => frame(SETTINGS, 1, 0, this.#bytes(6)),
      () => frame(SETTINGS, 0, 1, nothing),
      () => frame(PING, 0, [0, 1][below(2)] ?? 0, this.#bytes([7, 8][below(2)] ?? 0)),
      () => numbersFrame(WINDOW_UPDATE, [0, stream][below(2)] ?? 0, [0, WINDOW_MAX][below(2)] ?? 0),
      () => frame(PRIORITY, 0, 0, this.#bytes(5)),
      () => frame(PUSH_PROMISE, END_HEADERS, this.#stream - 2, Buffer.from([0, 0, 0, 2])),
      () => frame(CONTINUATION, END_HEADERS, this.#stream - 2, nothing),
      () => Buffer.concat([frame(HEADERS, 0, next(), nothing), frame(PING, 0, 0, this.#bytes(8))]),
      () => frame(HEADERS, END_HEADERS | END_STREAM, next(), this.#bytes(1 + below(20))),
      () => Buffer.from([1, 0, 0, DATA, 0, 0, 0, 0, 1]),
      () => this.#bytes(below(60)),
    ];
    return [kinds[below(kinds.length)]?.() ?? nothing];
  }

  #text(): string {
    return Array.from({ length: 1 + this.#random.below(30) }, () =>
      String.fromCharCode(33 + this.#random.below(94)),
    ).join("");
  }

  #bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.#random.below(256)));
  }

  #chance(of: number): boolean {
    return this.#random.below(of) === 0;
  }
}

/** Encodes fields in all the ways that there are. The table is that of a decoder which reads the same blocks. */
class Encoder {
  readonly #random: Random;
  #table: Field[] = [];
  #bytes = 0;
  #bytesMax = 4_096;

  constructor(random: Random) {
    this.#random = random;
  }

  encode(fields: readonly Field[]): Buffer {
    const parts: Buffer[] = [];
    if (this.#random.below(10) === 0) {
      this.#bytesMax = this.#random.below(4_097);
      parts.push(integer(0x20, 5, this.#bytesMax));
      this.#evict();
    }
    for (const field of fields) parts.push(this.#field(field));
    return Buffer.concat(parts);
  }

  #field(field: Field): Buffer {
    const [name, value] = field;
    const known = this.#table.findIndex(([of, text]) => of === name && text === value);
    if (known >= 0 && this.#random.below(4) > 0) return integer(0x80, 7, FIRST_DYNAMIC + known);
    const index = this.#table.findIndex(([of]) => of === name);
    const kind = this.#random.below(3);
    const [first, prefix] = (
      [
        [0x40, 6],
        [0x00, 4],
        [0x10, 4],
      ] as const
    )[kind] ?? [0, 4];
    const named = index >= 0 && this.#random.below(2) === 0;
    const head = named
      ? integer(first, prefix, FIRST_DYNAMIC + index)
      : Buffer.concat([Buffer.from([first]), this.#text(name)]);
    const encoded = Buffer.concat([head, this.#text(value)]);
    if (kind === 0) {
      this.#table.unshift(field);
      this.#bytes += sizeOf(field);
      this.#evict();
    }
    return encoded;
  }

  #text(text: string): Buffer {
    const bytes = Buffer.from(text, "latin1");
    if (this.#random.below(2) === 0) return Buffer.concat([integer(0, 7, bytes.length), bytes]);
    const coded = huffman(bytes);
    return Buffer.concat([integer(0x80, 7, coded.length), coded]);
  }

  #evict(): void {
    while (this.#bytes > this.#bytesMax) {
      const oldest = this.#table.pop();
      if (oldest !== undefined) this.#bytes -= sizeOf(oldest);
    }
  }
}

const FIRST_DYNAMIC = 62;

function sizeOf([name, value]: Field): number {
  return name.length + value.length + 32;
}

function integer(first: number, prefix: number, value: number): Buffer {
  const max = 2 ** prefix - 1;
  if (value < max) return Buffer.from([first | value]);
  const bytes = [first | max];
  let rest = value - max;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

function padded(content: Buffer, bytes: number): Buffer {
  return Buffer.concat([Buffer.from([bytes]), content, Buffer.alloc(bytes)]);
}

/** The code of each byte as a text of bits. */
const codes = (() => {
  const symbols = codeLengths.map((length, symbol) => ({ length, symbol }));
  symbols.sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  const texts: string[] = [];
  let code = 0n;
  let bits = 0;
  for (const { length, symbol } of symbols) {
    code <<= BigInt(length - bits);
    bits = length;
    texts[symbol] = code.toString(2).padStart(length, "0");
    code++;
  }
  return texts;
})();

export function huffman(bytes: Buffer): Buffer {
  let bits = [...bytes].map((byte) => codes[byte]).join("");
  while (bits.length % 8 > 0) bits += "1";
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

/** What a server sent, without what has no meaning for a peer: by stream, and the rest. */
export interface Received {
  /** By the number of the stream: its head, its content, its end. */
  readonly streams: Readonly<Record<string, string>>;
  readonly pings: readonly string[];
  /** Codes of the frames GOAWAY. */
  readonly goaways: readonly number[];
}

/** Reads what a server sent, whose header blocks have to be decodable. */
export function readOutput(output: Buffer): Received {
  const decoder = new HpackDecoder();
  const streams: Record<string, string> = {};
  const contents: Record<string, Buffer[]> = {};
  const pings: string[] = [];
  const goaways: number[] = [];
  const add = (stream: number, text: string) => {
    streams[stream] = (streams[stream] ?? "") + text;
  };
  for (let at = 0; at + 9 <= output.length; ) {
    const end = at + 9 + output.readUIntBE(at, 3);
    const [type, flags, stream] = [output.readUInt8(at + 3), output.readUInt8(at + 4), output.readUInt32BE(at + 5)];
    const payload = output.subarray(at + 9, end);
    at = end;
    if (type === DATA) {
      contents[stream] ??= [];
      contents[stream].push(payload);
      if ((flags & END_STREAM) !== 0) add(stream, " end");
    } else if (type === HEADERS) {
      const fields = decoder.decode(payload, { bytesMax: 100_000, fieldsMax: 100 }) ?? [];
      const content = Buffer.concat(contents[stream] ?? []).toString("latin1");
      delete contents[stream];
      const shown = fields.filter(({ name }) => name !== "date").map(({ name, value }) => `${name}: ${value}`);
      add(stream, `${content}[${shown.join(", ")}]${(flags & END_STREAM) === 0 ? "" : " end"}`);
    } else if (type === RST_STREAM) add(stream, ` reset ${payload.readUInt32BE(0)}`);
    else if (type === PING) pings.push(payload.toString("hex"));
    else if (type === GOAWAY) goaways.push(payload.readUInt32BE(4));
  }
  return { streams, pings, goaways };
}
