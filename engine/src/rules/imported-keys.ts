/** The hash algorithms of imported keys. */
export const hashAlgorithms = ["sha256", "sha512", "hmac-sha256", "prefixed-api-key"] as const;

export type HashAlgorithm = (typeof hashAlgorithms)[number];

/** Whether the key string alone finds a key. The other algorithms need the migration too. */
export function isFoundByItself(algorithm: HashAlgorithm): boolean {
  return algorithm === "sha256" || algorithm === "sha512";
}

/** The version of a stored hash. `prefixed-api-key` is the SHA-256 of the long token. */
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
 * The stored form of a digest, base64url without padding, from hex, base64 or base64url; undefined unless the text is a
 * digest of the algorithm.
 */
export function readHash(text: string, algorithm: HashAlgorithm): string | undefined {
  const bytes = algorithm === "sha512" ? 64 : 32;
  if (text.length === 2 * bytes && HEX.test(text)) return Buffer.from(text, "hex").toString("base64url");
  const padding = (BASE64.exec(text) ?? BASE64URL.exec(text))?.[1];
  if (padding === undefined || (padding !== "" && text.length % 4 !== 0)) return undefined;
  const digest = Buffer.from(text, "base64");
  const stored = digest.toString("base64url");
  // The unused bits of the last character must be zero, so that a digest has one spelling.
  const written = text
    .slice(0, text.length - padding.length)
    .replaceAll("+", "-")
    .replaceAll("/", "_");
  return digest.length === bytes && stored === written ? stored : undefined;
}

/** The long part of a token `prefix_short_long`, the only hashed part; undefined if there are fewer parts. */
export function longTokenOf(token: string): string | undefined {
  const parts = token.split("_");
  return parts.length < 3 ? undefined : parts.at(-1);
}

const SHOWN = 4;

/**
 * The start of an imported key that may be shown: the text up to its first underscore, and 4 more characters. Never more
 * than a third of the key, because the secret part may contain underscores.
 */
export function startOf(key: string): string {
  const lead = key.indexOf("_") + 1;
  const start = firstOf(key, lead + SHOWN);
  return start.length * 3 <= key.length ? start : firstOf(key, Math.min(SHOWN, Math.max(1, key.length >> 2)));
}

/** The start of a token `prefix_short_long` that may be shown: the prefix and up to 4 characters of the short part. */
export function startOfToken(token: string): string {
  return firstOf(token.slice(0, token.lastIndexOf("_")), token.indexOf("_") + 1 + SHOWN);
}

/** The first UTF-16 code units, without an unpaired surrogate at the end. */
function firstOf(text: string, length: number): string {
  const first = text.slice(0, length);
  return first.isWellFormed() ? first : first.slice(0, -1);
}
