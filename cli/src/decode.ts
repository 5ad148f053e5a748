import { isUtf8 } from "node:buffer";
import { CommandError } from "./output.ts";

const NEWLINE = 0x0a;
/** The first byte of a character of several bytes has both of its highest bits set, and the others only the first. */
const [CONTINUATION, BEGINNING] = [0x80, 0xc0];
const CHARACTER_BYTES_MAX = 4;

/** Encodings by the byte order mark with which a text begins. Spreadsheets write UTF-16 with one. */
const marks = [
  { mark: [0xef, 0xbb, 0xbf], encoding: "utf-8" },
  { mark: [0xff, 0xfe], encoding: "utf-16le" },
  { mark: [0xfe, 0xff], encoding: "utf-16be" },
] as const;
const MARK_BYTES_MAX = 3;

/**
 * The text of a stream: UTF-8, or what its byte order mark says, which is no part of the text.
 *
 * @throws {CommandError} when bytes are in another encoding. Replacement characters instead would change names, and the
 * hashes of key strings, without a word.
 */
export async function* decode(stream: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<string> {
  let decoder: ((bytes: Buffer, isLast: boolean) => string) | undefined;
  let first = Buffer.alloc(0);
  for await (const chunk of stream) {
    let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (decoder === undefined) {
      first = Buffer.concat([first, bytes]);
      if (first.length < MARK_BYTES_MAX) continue;
      [decoder, bytes] = begin(first, name);
    }
    yield decoder(bytes, false);
  }
  let last = Buffer.alloc(0);
  if (decoder === undefined) [decoder, last] = begin(first, name);
  yield decoder(last, true);
}

function begin(
  first: Buffer,
  name: string,
): [decoder: (bytes: Buffer, isLast: boolean) => string, rest: Buffer<ArrayBuffer>] {
  const found = marks.find(({ mark }) => mark.every((byte, at) => first[at] === byte));
  const rest = Buffer.from(first.subarray(found?.mark.length ?? 0));
  if (found === undefined || found.encoding === "utf-8") return [utf8Decoder(name), rest];
  const decoder = new TextDecoder(found.encoding, { fatal: true, ignoreBOM: true });
  const decodePart = (bytes: Buffer, isLast: boolean) => {
    try {
      return decoder.decode(bytes, { stream: !isLast });
    } catch {
      throw new CommandError(`${name} begins as ${found.encoding.toUpperCase()}, but is not. ${CONVERT}`);
    }
  };
  return [decodePart, rest];
}

function utf8Decoder(name: string): (bytes: Buffer, isLast: boolean) => string {
  let held = Buffer.alloc(0);
  let line = 1;
  return (bytes, isLast) => {
    const all = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
    const end = isLast ? all.length : endOfCharacters(all);
    const whole = all.subarray(0, end);
    held = Buffer.from(all.subarray(end));
    if (!isUtf8(whole)) {
      throw new CommandError(`${name} is not UTF-8: see line ${line + newlinesBeforeFault(whole)}. ${CONVERT}`);
    }
    line += newlinesIn(whole);
    return whole.toString("utf8");
  };
}

const CONVERT = "Convert it, for example with iconv -f WINDOWS-1252 -t UTF-8.";

/** Where the last character begins, if it may continue in what follows. */
function endOfCharacters(bytes: Buffer): number {
  for (let at = bytes.length - 1; at >= 0 && at >= bytes.length - CHARACTER_BYTES_MAX; at--) {
    const byte = bytes.readUInt8(at);
    if (byte >= BEGINNING) return at;
    if (byte < CONTINUATION) break;
  }
  return bytes.length;
}

function newlinesBeforeFault(bytes: Buffer): number {
  let newlines = 0;
  for (let start = 0; ; newlines++) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end === -1 || !isUtf8(bytes.subarray(start, end))) return newlines;
    start = end + 1;
  }
}

function newlinesIn(bytes: Buffer): number {
  let newlines = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) newlines++;
  return newlines;
}
