import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** A sealed value cannot be opened: the key or the context is wrong, or the value is damaged. */
export class SealBroken extends Error {
  constructor(cause?: unknown) {
    super("A sealed value cannot be opened: its key or context differs, or it is damaged", {
      cause,
    });
    this.name = "SealBroken";
  }
}

/** Creates a random key of 32 bytes for `seal`. */
export function newSealingKey(): Buffer {
  return randomBytes(KEY_BYTES);
}

/**
 * Encrypts with AES-256-GCM (NIST SP 800-38D) under a random nonce. The result is base64url of nonce, ciphertext and tag.
 * `context` is authenticated and not stored: `unseal` needs the same context.
 */
export function seal(key: Uint8Array, context: string, plaintext: Uint8Array): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]).toString("base64url");
}

/**
 * Decrypts the result of `seal`.
 *
 * @throws {SealBroken}
 */
export function unseal(key: Uint8Array, context: string, sealed: string): Buffer {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new SealBroken();
  const tagAt = bytes.length - TAG_BYTES;
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(tagAt));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, tagAt)), decipher.final()]);
  } catch (error) {
    throw new SealBroken(error);
  }
}

/** Identifies a key without revealing it: 128 bits of HMAC-SHA-256, as hex. */
export function sealingKeyFingerprint(key: Uint8Array): string {
  return createHmac("sha256", key).update("latchkey sealing key fingerprint").digest("hex").slice(0, 32);
}
