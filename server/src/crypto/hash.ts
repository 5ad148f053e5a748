import { createHmac, hash, hkdfSync, timingSafeEqual } from "node:crypto";

/** The version written beside every stored hash, so that a pepper or another algorithm can come. 1: SHA-256. */
export const HASH_VERSION = 1;

/** SHA-256 of a secret as base64url, 43 characters: how secrets are stored and looked up. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

/** SHA-512 of a secret as base64url, 86 characters: how some keys that were made elsewhere are looked up. */
export function hashSecret512(secret: string): string {
  return hash("sha512", secret, "base64url");
}

/** HMAC-SHA-256 of a secret as base64url, 43 characters: the same, where they were hashed with a pepper. */
export function hashPeppered(pepper: Uint8Array, secret: string): string {
  return createHmac("sha256", pepper).update(secret).digest("base64url");
}

/** Compares two texts, or bytes, in a time that depends on their lengths only. */
export function constantTimeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A key for `seal` that only who knows the secret can derive: HKDF-SHA-256 (RFC 5869). */
export function deriveSealingKey(secret: string, salt: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, "latchkey sealing key", 32));
}
