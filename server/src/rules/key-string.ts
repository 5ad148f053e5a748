import { crc32 } from "node:zlib";

/** The alphabet of Bitcoin's base58: no 0, O, I or l, which the eye confuses. Its place is a character's value. */
const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** Six characters count to 58^6, the first power that has room for every CRC-32. */
const checksumLength = 6;

const startLength = 4;

/**
 * Writes a key: `prefix_`, the random bytes in base58, and a checksum over both; without a prefix there is no underscore.
 *
 * `start` is what may be shown for good: the prefix and the first 4 characters of the random text.
 */
export function formatKey(prefix: string | null, random: Uint8Array): { key: string; start: string } {
  const lead = prefix === null ? "" : `${prefix}_`;
  const text = base58(random);
  return { key: lead + text + checksum(lead + text), start: lead + text.slice(0, startLength) };
}

/**
 * Tells whether a text ends in the checksum of all that stands before, as every key we made does.
 *
 * It finds every single wrong character before the checksum and in it, and lets one random text in four thousand
 * million pass. It proves nothing about who made the text.
 */
export function hasValidChecksum(key: string): boolean {
  const end = key.length - checksumLength;
  if (end <= 0) return false;
  let rest = crc32(key.slice(0, end));
  for (let at = key.length - 1; at >= end; at--) {
    if (key.charCodeAt(at) !== alphabet.charCodeAt(rest % 58)) return false;
    rest = Math.floor(rest / 58);
  }
  return true;
}

/** The prefix in the `start` of a key, null when it has none. */
export function prefixOf(start: string): string | null {
  // A prefix may contain underscores and base58 has none, so the last one is the separator.
  const separator = start.lastIndexOf("_");
  return separator > 0 ? start.slice(0, separator) : null;
}

/** Base58 as Bitcoin writes it: the bytes are one big-endian number, and each leading zero byte is a leading `1`. */
export function base58(bytes: Uint8Array): string {
  let zeros = 0;
  while (bytes[zeros] === 0) zeros++;

  // Least significant digit first, so that the number grows at the end.
  const digits: number[] = [];
  for (const byte of bytes) {
    let carry = byte;
    for (let place = 0; place < digits.length; place++) {
      carry += digits[place]! * 256;
      digits[place] = carry % 58;
      carry = Math.floor(carry / 58);
    }
    for (; carry > 0; carry = Math.floor(carry / 58)) digits.push(carry % 58);
  }

  let text = "1".repeat(zeros);
  for (let place = digits.length - 1; place >= 0; place--) text += alphabet[digits[place]!];
  return text;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let place = 0; place < checksumLength; place++) {
    digits = alphabet[rest % 58] + digits;
    rest = Math.floor(rest / 58);
  }
  return digits;
}
