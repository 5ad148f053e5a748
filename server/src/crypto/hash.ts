import { hash, hkdfSync, timingSafeEqual } from "node:crypto";

/** The version written beside every stored hash, so that a pepper or another algorithm can come. 1: SHA-256. */
export const HASH_VERSION = 1;

/** SHA-256 of a secret as base64url, 43 characters: how secrets are stored and looked up. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

/** Compares two texts in a time that depends on their lengths only. */
export function constantTimeEqual(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A key for `seal` that only who knows the secret can derive: HKDF-SHA-256 (RFC 5869). */
export function deriveSealingKey(secret: string, salt: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, "latchkey sealing key", 32));
}
