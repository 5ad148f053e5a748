import { ProtocolError } from "./errors.ts";
import { COMPRESSION_ERROR } from "./frames.ts";
import { decodeHuffman } from "./huffman.ts";

/** A header field as it was received. */
export interface HeaderField {
  readonly name: string;
  /** In Latin-1. */
  readonly value: string;
  /** Whether name and value have only characters that RFC 9113, section 8.2.1, and RFC 9110 allow. */
  readonly isValid: boolean;
}

/** A name as a table has it: judged once, however often blocks refer to it. */
interface TableEntry extends HeaderField {
  readonly isNameValid: boolean;
}

/** How much of a header list is kept. */
export interface ListLimits {
  /** As SETTINGS_MAX_HEADER_LIST_SIZE counts them. */
  readonly bytesMax: number;
  readonly fieldsMax: number;
}

/** The bytes of the dynamic table that a peer may use: the default of SETTINGS_HEADER_TABLE_SIZE. */
const TABLE_BYTES_MAX = 4_096;
/** What an entry costs besides its texts (RFC 7541, section 4.1). */
const ENTRY_BYTES = 32;
/** No integer of a block has more bits. */
const SHIFT_MAX = 21;

/** The static table (RFC 7541, appendix A), from index 1 on. */
const staticTable: readonly TableEntry[] = `:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`
  .split("\n")
  .map((line) => {
    const [name = "", ...value] = line.split(" ");
    return { name, value: value.join(" "), isValid: true, isNameValid: true };
  });

/**
 * Decodes the header blocks of one connection (RFC 7541). The table that it keeps has 4 KiB. A list that is longer than
 * allowed is decoded to its end, because the table follows from it, and not kept.
 */
export class HpackDecoder {
  /** Another number after each change of the table: the same block has the same fields while it stays. */
  version = 0;
  /** The dynamic table, the latest entry last. */
  readonly #entries: TableEntry[] = [];
  #bytes = 0;
  #bytesMax = TABLE_BYTES_MAX;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;

  /**
   * The fields of a block in their order; undefined: they are more than the limits allow.
   *
   * @throws {ProtocolError} if it is no block, which ends the connection.
   */
  decode(block: Buffer, { bytesMax, fieldsMax }: ListLimits): HeaderField[] | undefined {
    this.#block = block;
    this.#at = 0;
    const fields: HeaderField[] = [];
    let bytes = 0;
    let isFirst = true;
    while (this.#at < block.length) {
      const first = block.readUInt8(this.#at);
      if (first >> 5 === 0b001) {
        // Sizes of the table are at the beginning of a block.
        if (!isFirst) throw malformed();
        this.#resize(this.#integer(5));
        continue;
      }
      isFirst = false;
      const field = this.#field(first);
      bytes += sizeOf(field);
      if (bytes <= bytesMax && fields.length < fieldsMax) fields.push(field);
      else bytes = Number.POSITIVE_INFINITY;
    }
    this.#block = Buffer.alloc(0);
    return bytes <= bytesMax ? fields : undefined;
  }

  #field(first: number): HeaderField {
    if (first >= 0x80) return this.#entry(this.#integer(7));
    const isAdded = first >= 0x40;
    const index = this.#integer(isAdded ? 6 : 4);
    const { name, isNameValid } = index === 0 ? this.#newName() : this.#entry(index);
    const value = this.#text();
    const field = { name, value, isValid: isNameValid && isValidValue(value), isNameValid };
    if (isAdded) this.#add(field);
    return field;
  }

  #newName(): Pick<TableEntry, "name" | "isNameValid"> {
    const name = this.#text();
    return { name, isNameValid: isValidName(name) };
  }

  #entry(index: number): TableEntry {
    const isStatic = index <= staticTable.length;
    const entry = isStatic ? staticTable[index - 1] : this.#entries[this.#entries.length - index + staticTable.length];
    if (entry === undefined) throw malformed();
    return entry;
  }

  #add(field: TableEntry): void {
    this.version++;
    this.#bytes += sizeOf(field);
    this.#entries.push(field);
    this.#evict();
  }

  #resize(bytes: number): void {
    if (bytes > TABLE_BYTES_MAX) throw malformed();
    this.version++;
    this.#bytesMax = bytes;
    this.#evict();
  }

  #evict(): void {
    while (this.#bytes > this.#bytesMax) {
      const oldest = this.#entries.shift();
      if (oldest === undefined) break;
      this.#bytes -= sizeOf(oldest);
    }
  }

  /** An integer with a prefix of so many bits (RFC 7541, section 5.1). */
  #integer(prefix: number): number {
    const max = (1 << prefix) - 1;
    let value = this.#byte() & max;
    if (value < max) return value;
    for (let shift = 0; shift <= SHIFT_MAX; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  }

  #text(): string {
    const isHuffman = (this.#block[this.#at] ?? 0) >= 0x80;
    const length = this.#integer(7);
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#block.length) throw malformed();
    if (!isHuffman) return this.#block.toString("latin1", from, this.#at);
    const text = decodeHuffman(this.#block, from, this.#at);
    if (text === undefined) throw malformed();
    return text;
  }

  #byte(): number {
    const byte = this.#block[this.#at++];
    if (byte === undefined) throw malformed();
    return byte;
  }
}

function sizeOf({ name, value }: HeaderField): number {
  return name.length + value.length + ENTRY_BYTES;
}

function malformed(): ProtocolError {
  return new ProtocolError(COMPRESSION_ERROR);
}

/** A token in lower case; that of a pseudo-header begins with a colon. */
function isValidName(name: string): boolean {
  return /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name);
}

function isValidValue(value: string): boolean {
  return /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/.test(value);
}

/** A field that no table has and that is kept in none (RFC 7541, section 6.2.2). The name is in lower case. */
export function encodeField(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), encodeText(name), encodeText(value)]);
}

function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  const max = 0x7f;
  if (bytes.length < max) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [max];
  let rest = bytes.length - max;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) length.push((rest % 0x80) | 0x80);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}
