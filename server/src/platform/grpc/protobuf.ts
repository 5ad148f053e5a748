import { isUtf8 } from "node:buffer";
import { Problem } from "../rpc/problems.ts";

/** Wire types (protobuf encoding, "Message structure"). Groups, 3 and 4, are obsolete and rejected. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Where UTF-8 was not valid, or where the text has this character. */
const REPLACEMENT = "\ufffd";

/** Characters of a text that is written one by one. */
const SHORT_TEXT_MAX = 40;

/** Reads the fields of one message. Nothing is copied but texts. Malformed bytes throw a `Problem`. */
export class MessageReader {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;

  constructor(bytes: Buffer, from = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = from;
    this.#end = end;
  }

  /** The tag of the next field, which has its number in `tag >>> 3`; 0 after the last one. */
  tag(): number {
    if (this.#at === this.#end) return 0;
    const tag = this.uint32();
    if (tag >>> 3 === 0) throw malformed();
    return tag;
  }

  /** A varint; of a longer one the lower 32 bits, as the format asks for. */
  uint32(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    let value = first & 0x7f;
    for (let shift = 7; ; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
      if (shift === 63) throw malformed();
    }
  }

  /** A varint without sign. Beyond 2^53 it is rounded. */
  uint64(): number {
    let value = this.#byte();
    if (value < 0x80) return value;
    value -= 0x80;
    let unit = 128;
    for (let count = 2; ; count++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
      if (count === 10) throw malformed();
      unit *= 128;
    }
  }

  bool(): boolean {
    return this.uint64() !== 0;
  }

  string(): string {
    const end = this.#lengthEnd();
    const text = this.#bytes.toString("utf8", this.#at, end);
    if (text.includes(REPLACEMENT) && !isUtf8(this.#bytes.subarray(this.#at, end))) {
      throw new Problem("invalid_input", "A text of the message is not UTF-8.");
    }
    this.#at = end;
    return text;
  }

  /** The bytes themselves, not a copy. */
  bytes(): Buffer {
    const end = this.#lengthEnd();
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  /** The reader of a nested message. */
  message(): MessageReader {
    const end = this.#lengthEnd();
    const reader = new MessageReader(this.#bytes, this.#at, end);
    this.#at = end;
    return reader;
  }

  /** Skips a field that the reader does not know, or that has another type than it should. */
  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        this.uint64();
        return;
      case FIXED64:
        this.#advance(8);
        return;
      case BYTES:
        this.#at = this.#lengthEnd();
        return;
      case FIXED32:
        this.#advance(4);
        return;
      default:
        throw malformed();
    }
  }

  #byte(): number {
    const byte = this.#at < this.#end ? this.#bytes[this.#at++] : undefined;
    if (byte === undefined) throw malformed();
    return byte;
  }

  #lengthEnd(): number {
    const end = this.uint64() + this.#at;
    if (end > this.#end) throw malformed();
    return end;
  }

  #advance(length: number): void {
    if (this.#at + length > this.#end) throw malformed();
    this.#at += length;
  }
}

/** The tag of a field with a varint. */
export function varintTag(field: number): number {
  return (field << 3) | VARINT;
}

/** The tag of a field with a text, bytes or a message. */
export function bytesTag(field: number): number {
  return (field << 3) | BYTES;
}

function malformed(): Problem {
  return new Problem("invalid_input", "The message is not in the format of protobuf.");
}

/** Writes the fields of one message. Members with the value that a missing field has are left out. */
export class MessageWriter {
  #bytes: Buffer;
  #size = 0;

  constructor(capacity = 128) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  uint32(field: number, value: number): void {
    this.uint64(field, value);
  }

  /** An integer from 0 to 2^53. */
  uint64(field: number, value: number): void {
    if (value === 0) return;
    this.#varint(varintTag(field));
    this.#varint(value);
  }

  bool(field: number, value: boolean): void {
    if (value) this.uint32(field, 1);
  }

  double(field: number, value: number): void {
    if (Object.is(value, 0)) return;
    this.#varint((field << 3) | FIXED64);
    this.#reserve(8);
    this.#size = this.#bytes.writeDoubleLE(value, this.#size);
  }

  string(field: number, text: string): void {
    if (text === "") return;
    if (text.length <= SHORT_TEXT_MAX && this.#shortText(field, text)) return;
    const length = Buffer.byteLength(text);
    this.#length(field, length);
    this.#bytes.write(text, this.#size, length, "utf8");
    this.#size += length;
  }

  /** Writes a short text, if all of it is ASCII: Node takes longer to count and to copy it. */
  #shortText(field: number, text: string): boolean {
    const start = this.#size;
    this.#length(field, text.length);
    const bytes = this.#bytes;
    let at = this.#size;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 0x80) {
        this.#size = start;
        return false;
      }
      bytes[at++] = code;
    }
    this.#size = at;
    return true;
  }

  bytes(field: number, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#length(field, bytes.length);
    this.#bytes.set(bytes, this.#size);
    this.#size += bytes.length;
  }

  /** Fields that are encoded. */
  append(fields: Uint8Array): void {
    this.#reserve(fields.length);
    this.#bytes.set(fields, this.#size);
    this.#size += fields.length;
  }

  /** A nested message, which is written also if it is empty. */
  message(field: number, write: (writer: this) => void): void {
    this.#varint(bytesTag(field));
    const from = this.#size;
    // Most nested messages have fewer than 128 bytes, so that their length takes one.
    this.#reserve(1);
    this.#size += 1;
    write(this);
    const length = this.#size - from - 1;
    const extra = varintBytes(length) - 1;
    this.#reserve(extra);
    if (extra > 0) this.#bytes.copyWithin(from + 1 + extra, from + 1, this.#size);
    this.#size = from;
    this.#varint(length);
    this.#size += length;
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  #length(field: number, length: number): void {
    this.#varint(bytesTag(field));
    this.#varint(length);
    this.#reserve(length);
  }

  #varint(value: number): void {
    this.#reserve(10);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#size++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#size++] = rest;
  }

  #reserve(length: number): void {
    if (this.#size + length <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#size + length));
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
  }
}

function varintBytes(value: number): number {
  let count = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) count++;
  return count;
}
