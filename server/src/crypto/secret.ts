import { randomBytes } from "node:crypto";

/** Where secrets come from. A production process has one source, which cannot be seeded. */
export type SecretSource = (byteLength: number) => Uint8Array;

export const systemSecrets: SecretSource = (byteLength) => randomBytes(byteLength);
