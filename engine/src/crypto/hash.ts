import { createHmac, hash, hkdfSync, timingSafeEqual } from "node:crypto";

/** The version stored with every hash, so that a pepper or another algorithm can be added. 1: SHA-256. */
export const HASH_VERSION = 1;

/** SHA-256 of a secret as base64url, 43 characters. Secrets are stored and looked up by it. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

/** SHA-512 of a secret as base64url, 86 characters. Some imported keys are looked up by it. */
export function hashSecret512(secret: string): string {
  return hash("sha512", secret, "base64url");
}

/** HMAC-SHA-256 of a secret as base64url, 43 characters. Keys imported with a pepper are looked up by it. */
export function hashPeppered(pepper: Uint8Array, secret: string): string {
  return createHmac("sha256", pepper).update(secret).digest("base64url");
}

/** HMAC-SHA-256 of a text. */
export function hmacSha256(key: string, text: string): Uint8Array {
  return createHmac("sha256", key).update(text).digest();
}

/** Compares two strings or byte arrays in a time that depends only on their lengths. */
export function constantTimeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Derives a key for `seal` from a secret: HKDF-SHA-256 (RFC 5869). */
export function deriveSealingKey(secret: string, salt: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, "latchkey sealing key", 32));
}
