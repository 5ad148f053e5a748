import { randomBytes } from "node:crypto";

/** Where secrets come from. A production process has one source, which cannot be seeded. */
export type SecretSource = (byteLength: number) => Uint8Array;

/** Two random words for the keyed hash of counters. */
export function newFingerprintKey(): [number, number] {
  const bytes = randomBytes(8);
  return [bytes.readInt32LE(0), bytes.readInt32LE(4)];
}

export const systemSecrets: SecretSource = (byteLength) => randomBytes(byteLength);
