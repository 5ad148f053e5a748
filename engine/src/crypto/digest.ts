import { createHash, hash } from "node:crypto";

/** A digest of 128 bits for indexes, 22 characters. Not for secrets. */
export function digest(text: string): string {
  return fullDigest(text).slice(0, 22);
}

/** The SHA-256 of a text in UTF-8 as base64url, 43 characters: in a third of the time of `sha256` and a conversion. */
export function fullDigest(text: string): string {
  return hash("sha256", text, "base64url");
}

/** The SHA-256 of a stream as base64url, 43 characters. */
export async function digestOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const sum = createHash("sha256");
  for await (const chunk of chunks) sum.update(chunk);
  return sum.digest("base64url");
}

/** The SHA-256 of a text in UTF-8, 32 bytes. */
export function sha256(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
