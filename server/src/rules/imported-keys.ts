/** What keys that were made elsewhere may be hashed with. */
export const hashAlgorithms = ["sha256", "sha512", "hmac-sha256", "prefixed-api-key"] as const;

export type HashAlgorithm = (typeof hashAlgorithms)[number];

/** Whether a key is found by what is presented alone. The others are found by who names their migration. */
export function isFoundByItself(algorithm: HashAlgorithm): boolean {
  return algorithm === "sha256" || algorithm === "sha512";
}

/** The version written beside a stored hash. The last is of the long token alone, SHA-256 like the first. */
export const hashVersions: Readonly<Record<HashAlgorithm, number>> = {
  sha256: 1,
  sha512: 2,
  "hmac-sha256": 3,
  "prefixed-api-key": 4,
};

const HEX = /^[0-9a-fA-F]+$/;
const BASE64 = /^[A-Za-z0-9+/]+(={0,2})$/;
const BASE64URL = /^[A-Za-z0-9_-]+(={0,2})$/;

/**
 * A digest as it is stored, base64url without padding, from hex, base64 or base64url; undefined when the text is none
 * of the algorithm's length.
 */
export function readHash(text: string, algorithm: HashAlgorithm): string | undefined {
  const bytes = algorithm === "sha512" ? 64 : 32;
  if (text.length === 2 * bytes && HEX.test(text)) return Buffer.from(text, "hex").toString("base64url");
  const padding = (BASE64.exec(text) ?? BASE64URL.exec(text))?.[1];
  if (padding === undefined || (padding !== "" && text.length % 4 !== 0)) return undefined;
  const digest = Buffer.from(text, "base64");
  const stored = digest.toString("base64url");
  // The last character may hold bits beyond the digest, which must be zero: one digest, one text.
  const written = text
    .slice(0, text.length - padding.length)
    .replaceAll("+", "-")
    .replaceAll("/", "_");
  return digest.length === bytes && stored === written ? stored : undefined;
}

/** The last part of a token `prefix_short_long`, which alone is hashed; undefined when there are fewer parts. */
export function longTokenOf(token: string): string | undefined {
  const parts = token.split("_");
  return parts.length < 3 ? undefined : parts.at(-1);
}

const SHOWN = 4;

/**
 * What may be shown of a key that was made elsewhere: what stands before its first underscore, and 4 characters more;
 * never more than a third of the key, as an underscore may stand anywhere in what is secret.
 */
export function startOf(key: string): string {
  const lead = key.indexOf("_") + 1;
  const start = firstOf(key, lead + SHOWN);
  return start.length * 3 <= key.length ? start : firstOf(key, Math.min(SHOWN, Math.max(1, key.length >> 2)));
}

/** What may be shown of a token `prefix_short_long`: its prefix, and up to 4 characters of what is not secret. */
export function startOfToken(token: string): string {
  return firstOf(token.slice(0, token.lastIndexOf("_")), token.indexOf("_") + 1 + SHOWN);
}

/** At most so many UTF-16 units, without half of a character at the end. */
function firstOf(text: string, length: number): string {
  const first = text.slice(0, length);
  return first.isWellFormed() ? first : first.slice(0, -1);
}
