import { crc32 } from "node:zlib";

/** Bitcoin's base58 alphabet, without the similar characters 0, O, I and l. The index of a character is its value. */
const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** 58^6 is the first power of 58 above 2^32, so 6 characters hold every CRC-32. */
const checksumLength = 6;

const startLength = 4;

/** The number of random bytes in a key, at least and at most. */
export const RANDOM_BYTES_MIN = 16;
export const RANDOM_BYTES_MAX = 255;

/**
 * The length of a key after its prefix and the underscore, at least and at most. A zero byte at the beginning is one
 * character; otherwise a byte takes up to log(256) / log(58) characters.
 */
export const KEY_TEXT_LENGTH_MIN = RANDOM_BYTES_MIN + checksumLength;
export const KEY_TEXT_LENGTH_MAX = Math.ceil((RANDOM_BYTES_MAX * Math.log(256)) / Math.log(58)) + checksumLength;

/**
 * What the checksum of a derived key covers besides its text: so its string tells where to look it up, and has the form that
 * scanners for leaked keys know.
 */
const DERIVED = "derived";

/** The prefixes of secrets that give access to the service itself. */
export const ROOT_KEY_PREFIX = "lk_root";
export const PORTAL_TOKEN_PREFIX = "lk_portal";

/** Whether a text has the form of such a secret. Sent as a key by mistake, it must not leave the service. */
export function isOwnSecret(text: string): boolean {
  return text.startsWith(`${ROOT_KEY_PREFIX}_`) || text.startsWith(`${PORTAL_TOKEN_PREFIX}_`);
}

/**
 * Formats a key: `prefix_`, the random bytes in base58, and a checksum over both. Without a prefix there is no underscore.
 *
 * `start` is stored and shown: the prefix and the first 4 characters of the random part.
 */
export function formatKey(prefix: string | null, random: Uint8Array): { key: string; start: string } {
  return formatted(prefix, random, "");
}

/** Formats a derived key: like other keys, except for its checksum. */
export function formatDerivedKey(prefix: string | null, random: Uint8Array): { key: string; start: string } {
  return formatted(prefix, random, DERIVED);
}

function formatted(prefix: string | null, random: Uint8Array, kind: string): { key: string; start: string } {
  const lead = prefix === null ? "" : `${prefix}_`;
  const text = base58(random);
  return { key: lead + text + checksum(lead + text + kind), start: lead + text.slice(0, startLength) };
}

/**
 * Whether a text ends with the checksum of the rest, like every key that this service creates.
 *
 * It detects every single wrong character. One random text in 4 billion passes. The checksum does not prove the origin of
 * a key.
 */
export function hasValidChecksum(key: string): boolean {
  return endsWithChecksum(key, "");
}

/** Whether a text ends with the checksum of a derived key. */
export function hasDerivedChecksum(key: string): boolean {
  return endsWithChecksum(key, DERIVED);
}

function endsWithChecksum(key: string, kind: string): boolean {
  const end = key.length - checksumLength;
  if (end <= 0) return false;
  let rest = crc32(key.slice(0, end) + kind);
  for (let at = key.length - 1; at >= end; at--) {
    if (key.charCodeAt(at) !== alphabet.charCodeAt(rest % 58)) return false;
    rest = Math.floor(rest / 58);
  }
  return true;
}

/** The prefix in the `start` of a key, or null. */
export function prefixOf(start: string): string | null {
  // A prefix may contain underscores and base58 has none, so the last one is the separator.
  const separator = start.lastIndexOf("_");
  return separator > 0 ? start.slice(0, separator) : null;
}

/** Bitcoin's base58: the bytes are one big-endian number, and each leading zero byte is a leading `1`. */
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
