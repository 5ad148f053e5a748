import { randomBytes } from "node:crypto";

/** A source of random bytes for secrets. In production there is one source, which cannot be seeded. */
export type SecretSource = (byteLength: number) => Uint8Array;

/** Two random words: a key for `Fingerprint`. */
export function newFingerprintKey(): [number, number] {
  const bytes = randomBytes(8);
  return [bytes.readInt32LE(0), bytes.readInt32LE(4)];
}

export const systemSecrets: SecretSource = (byteLength) => randomBytes(byteLength);
